//! The source of the keys: the settings, or in development a file that is generated once.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use heddle_core::secret::{Secret, random_secret};
use serde::{Deserialize, Serialize};

use super::{KeyFileError, Keys};
use crate::config::Config;

/// The service's secrets as they are configured or stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyTexts {
    pub secret: Secret,
    pub encryption: Secret,
    /// The encryption key before this one.
    pub previous: Option<Secret>,
}

/// The form of the file, and of the keys in a backup.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    secret_key: String,
    encryption_key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
}

impl KeyTexts {
    /// Returns the keys; in development they are generated when there are none.
    pub fn open(config: &Config) -> Result<Self, KeyFileError> {
        if let Some(found) = Self::find(config)? {
            return Ok(found);
        }
        let fresh = Self { secret: random_secret(), encryption: random_secret(), previous: None };
        fresh.keep(config)?;
        Ok(fresh.under(config))
    }

    /// Returns the keys, if there are any: nothing is generated.
    pub fn find(config: &Config) -> Result<Option<Self>, KeyFileError> {
        let previous = config.encryption_key_previous.clone();
        if let (Some(secret), Some(encryption)) = (&config.secret_key, &config.encryption_key) {
            return Ok(Some(Self { secret: secret.clone(), encryption: encryption.clone(), previous }));
        }
        Ok(Self::kept(config)?.map(|kept| kept.under(config)))
    }

    /// Returns the keys of the file in the data folder, whatever is configured.
    pub fn kept(config: &Config) -> Result<Option<Self>, KeyFileError> {
        match fs::read(path(config)) {
            Ok(bytes) => Ok(Some(Self::from_json(&bytes).map_err(io::Error::from)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the file: at any moment either the old one or the new one is there, and it is complete.
    pub fn keep(&self, config: &Config) -> Result<(), KeyFileError> {
        let path = path(config);
        let staging = path.with_extension("new");
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&staging)?;
        file.write_all(&self.to_json())?;
        file.sync_all()?;
        fs::rename(&staging, &path)?;
        sync_folder(&path)?;
        Ok(())
    }

    /// Returns the keys in clear text, in the form of the file of generated keys. The bytes may only be
    /// written where no other user can read them, or into a sealed backup.
    pub fn to_json(&self) -> Vec<u8> {
        let file = KeyFile {
            secret_key: self.secret.expose().to_owned(),
            encryption_key: self.encryption.expose().to_owned(),
            previous: self.previous.as_ref().map(|key| key.expose().to_owned()),
        };
        serde_json::to_vec_pretty(&file).expect("texts are valid JSON")
    }

    /// Reads what [`KeyTexts::to_json`] wrote. An unknown field is an error, and so is a missing one; only
    /// `previous` may be absent.
    pub fn from_json(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let file: KeyFile = serde_json::from_slice(bytes)?;
        Ok(Self {
            secret: Secret::new(file.secret_key),
            encryption: Secret::new(file.encryption_key),
            previous: file.previous.map(Secret::new),
        })
    }

    /// Derives the keys. They also open what the previous encryption key sealed.
    pub fn keys(&self) -> Keys {
        let keys = Keys::from_texts(self.secret.expose(), self.encryption.expose());
        match &self.previous {
            Some(previous) => keys.also_opening(previous.expose()),
            None => keys,
        }
    }

    /// Returns the same keys, but configured keys replace stored ones.
    #[must_use]
    pub fn under(self, config: &Config) -> Self {
        Self {
            secret: config.secret_key.clone().unwrap_or(self.secret),
            // A configured key has its own previous key; the previous key in the file belongs to the key in the file.
            previous: match &config.encryption_key {
                Some(_) => config.encryption_key_previous.clone(),
                None => config.encryption_key_previous.clone().or(self.previous),
            },
            encryption: config.encryption_key.clone().unwrap_or(self.encryption),
        }
    }
}

/// The file of generated keys.
pub fn path(config: &Config) -> PathBuf {
    config.data_dir.join("keys.json")
}

/// Syncs the folder, so that a renamed file keeps its name after a power failure.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    fs::File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()
}
