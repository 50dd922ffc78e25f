//! What a catalogue is believed for: a first root, a pinned key, or nothing.

use std::path::Path;

use heddle_kernel::config::Config;
use heddle_kernel::http::error::Error;
use heddle_marketplace::catalog::bounds::ROOT_BYTES_MAX;
use heddle_marketplace::catalog::{Refusal, State, Time, pinned_key};
use sha2::{Digest as _, Sha256};

use crate::settings::CatalogSettings;
use crate::source;

/// What trust begins with.
#[derive(Debug)]
pub(crate) enum Trust {
    /// The file of a first root.
    Root(Vec<u8>),
    /// A pinned key.
    Key([u8; 32]),
    /// No signature is needed.
    Unsigned,
}

impl Trust {
    /// What the settings say; `None` where they say nothing, and no catalogue is believed.
    ///
    /// # Errors
    /// The file of the first root cannot be read.
    pub(crate) fn of(config: &Config) -> Result<Option<Self>, Error> {
        let settings = config.of::<CatalogSettings>();
        if let Some(root) = &settings.root {
            return read(root).map(|root| Some(Self::Root(root)));
        }
        // The settings were checked at the start.
        if let Some(key) = settings.key.as_deref().and_then(pinned) {
            return Ok(Some(Self::Key(key)));
        }
        Ok(settings.allow_unsigned.then_some(Self::Unsigned))
    }

    /// The name under which the database keeps what is believed: another root or key begins anew.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Root(root) => format!("root:{}", hex::encode(Sha256::digest(root))),
            Self::Key(key) => format!("key:{}", hex::encode(key)),
            Self::Unsigned => "unsigned".to_owned(),
        }
    }

    /// What is known before the first update.
    ///
    /// # Errors
    /// The file is no root.
    pub(crate) fn begin(&self, now: Time) -> Result<State, Refusal> {
        Ok(match self {
            Self::Root(root) => State::with_root(root, now)?,
            Self::Key(key) => State::with_pinned_key(key, now),
            Self::Unsigned => State::unsigned(now),
        })
    }
}

/// A key as the settings have it.
pub(crate) fn pinned(hex: &str) -> Option<[u8; 32]> {
    pinned_key(&hex.to_ascii_lowercase()).ok()
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let problem = match source::read_file(path, ROOT_BYTES_MAX) {
        Ok(Some(root)) => return Ok(root),
        Ok(None) => "there is no such file".to_owned(),
        Err(problem) => problem,
    };
    Err(Error::Unavailable(format!("MARKETPLACE_ROOT cannot be read: {problem}")))
}
