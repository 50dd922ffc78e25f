//! Keys on disk: the publisher's own, and the list of those that a server trusts.
//!
//! Publisher's key, one JSON object, mode 0600:
//! `{"format":"heddle-publisher-key-v1","publisher":"acme","public":"<64 hex>","secret":"<64 hex>"}`.
//! Trusted keys: `[{"publisher":"acme","public_key":"<64 hex>","ids":["acme-switch","acme-wifi-*"]}]`.
//!
//! `ids` says which packages the key may sign: exact ids, or beginnings that end with `*`. Without `ids` a key
//! may sign the publisher's own name and what begins with it and `-`: `acme` and `acme-*`. The old name `key`
//! for `public_key` is read too.

use std::io::Write as _;
use std::path::Path;

use ed25519_dalek::{SigningKey, VerifyingKey};
use serde::Deserialize;
use serde_json::{Value, json};
use zeroize::{Zeroize as _, Zeroizing};

use crate::signature;

const FORMAT: &str = "heddle-publisher-key-v1";
const KEY_FILE_BYTES_MAX: u64 = 4096;

/// A publisher's key that this server trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedKey {
    pub publisher: String,
    /// Ed25519 public key.
    pub key: [u8; 32],
    /// Which packages it may sign: exact ids, or beginnings that end with `*`.
    pub ids: Vec<String>,
}

impl TrustedKey {
    /// Whether it may sign a package of this id.
    #[must_use]
    pub fn may_sign(&self, id: &str) -> bool {
        covers(&self.ids, id)
    }

    /// Whether the list names this very id, not only a beginning of it.
    #[must_use]
    pub fn names(&self, id: &str) -> bool {
        self.ids.iter().any(|allowed| allowed == id)
    }

    /// The name that signatures give the key: SHA-256 of it, lower-case hex.
    pub fn key_id(&self) -> String {
        signature::key_id(&self.key)
    }
}

/// Why a key or a list of keys was not accepted. Never holds key bytes.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("key file cannot be read or written")]
    Io(#[from] std::io::Error),
    #[error("key file may be read by others; set its mode to 0600")]
    Mode,
    #[error("not a key file: {0}")]
    Format(String),
    #[error(
        "publisher '{0}' is not accepted; a-z, 0-9 and '-' are, starting with a letter, 2 to 41 characters"
    )]
    Publisher(String),
    #[error("key of publisher '{0}' is not an Ed25519 public key as 64 hex digits")]
    Public(String),
    #[error("key '{0}' is listed twice")]
    Duplicate(String),
    #[error(
        "'{id}' among the ids of publisher '{publisher}' is not accepted; write ids such as 'acme-switch', or beginnings such as 'acme-*'"
    )]
    Id { publisher: String, id: String },
    #[error(
        "the key of publisher '{0}' has an empty list of ids and may sign nothing; name ids or leave the key out"
    )]
    NoIds(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustedEntry {
    publisher: String,
    #[serde(alias = "key")]
    public_key: String,
    ids: Option<Vec<String>>,
}

/// Reads the list of trusted keys, as
/// `[{"publisher": "acme", "public_key": "<64 hex>", "ids": ["acme-switch"]}]`.
pub fn parse_trusted_keys(json: &[u8]) -> Result<Vec<TrustedKey>, KeyError> {
    let entries: Vec<TrustedEntry> =
        serde_json::from_slice(json).map_err(|error| KeyError::Format(error.to_string()))?;
    let mut keys: Vec<TrustedKey> = Vec::new();
    for TrustedEntry { publisher, public_key, ids } in entries {
        check_publisher(&publisher)?;
        let key = decode(&public_key).ok_or_else(|| KeyError::Public(publisher.clone()))?;
        if !is_sound(&key) {
            return Err(KeyError::Public(publisher));
        }
        if keys.iter().any(|known| known.key == key) {
            return Err(KeyError::Duplicate(signature::key_id(&key)));
        }
        let ids = ids.unwrap_or_else(|| own_ids(&publisher));
        check_ids(&publisher, &ids)?;
        keys.push(TrustedKey { publisher, key, ids });
    }
    Ok(keys)
}

/// Returns the ids that a publisher may sign where nothing else is said: a key that was listed before there were ids
/// must not take over another publisher's adapter.
fn own_ids(publisher: &str) -> Vec<String> {
    vec![publisher.to_owned(), format!("{publisher}-*")]
}

fn check_ids(publisher: &str, ids: &[String]) -> Result<(), KeyError> {
    if ids.is_empty() {
        return Err(KeyError::NoIds(publisher.to_owned()));
    }
    match ids.iter().find(|id| !is_pattern(id)) {
        None => Ok(()),
        Some(id) => Err(KeyError::Id {
            publisher: publisher.to_owned(),
            id: id.chars().take(80).flat_map(char::escape_default).collect(),
        }),
    }
}

/// Whether a text may say which packages a key may sign: an id, or the beginning of ids and `*`.
pub(crate) fn is_pattern(text: &str) -> bool {
    let beginning = text.strip_suffix('*').unwrap_or(text);
    text.len() <= 42
        && !text.is_empty()
        && beginning.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Whether one of the patterns covers this id of a package.
pub(crate) fn covers(patterns: &[String], id: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(beginning) => id.starts_with(beginning),
        None => pattern == id,
    })
}

/// The list as `parse_trusted_keys` reads it.
#[must_use]
pub fn write_trusted_keys(keys: &[TrustedKey]) -> String {
    let entry = |key: &TrustedKey| json!({ "publisher": key.publisher, "public_key": hex::encode(key.key), "ids": key.ids });
    format!("{:#}", Value::Array(keys.iter().map(entry).collect()))
}

/// A publisher's name and the key that signs its packages.
#[derive(Clone)]
pub struct PublisherKey {
    publisher: String,
    signing: SigningKey,
}

impl std::fmt::Debug for PublisherKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PublisherKey({}, {})", self.publisher, self.trusted().key_id())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    format: String,
    publisher: String,
    public: String,
    secret: String,
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

impl PublisherKey {
    pub fn new(publisher: &str, signing: SigningKey) -> Result<Self, KeyError> {
        check_publisher(publisher)?;
        Ok(Self { publisher: publisher.to_owned(), signing })
    }

    /// A new key from the system's random source.
    pub fn generate(publisher: &str) -> Result<Self, KeyError> {
        Self::new(publisher, signature::keygen()?)
    }

    pub fn publisher(&self) -> &str {
        &self.publisher
    }

    pub fn signing(&self) -> &SigningKey {
        &self.signing
    }

    /// The public half, for the publisher's own checks: it may sign every id.
    #[must_use]
    pub fn trusted(&self) -> TrustedKey {
        self.trusted_for(vec!["*".to_owned()])
    }

    /// The public half as servers list it by default: for the publisher's own name and what begins with it.
    #[must_use]
    pub fn trusted_for_own(&self) -> TrustedKey {
        self.trusted_for(own_ids(&self.publisher))
    }

    /// The public half as servers list it, for these ids or beginnings of ids.
    #[must_use]
    pub fn trusted_for(&self, ids: Vec<String>) -> TrustedKey {
        let key = self.signing.verifying_key().to_bytes();
        TrustedKey { publisher: self.publisher.clone(), key, ids }
    }

    /// Writes a new file of mode 0600. An existing file is never overwritten.
    pub fn save(&self, path: &Path) -> Result<(), KeyError> {
        let secret = Zeroizing::new(hex::encode(self.signing.as_bytes()));
        let public = hex::encode(self.trusted().key);
        // Written as text, so that no copy of the secret stays in a value tree.
        let text = Zeroizing::new(format!(
            "{{\"format\": \"{FORMAT}\", \"publisher\": \"{}\", \"public\": \"{public}\", \"secret\": \"{}\"}}\n",
            self.publisher,
            secret.as_str()
        ));
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut out = options.open(path)?;
        out.write_all(text.as_bytes())?;
        Ok(out.sync_all()?)
    }

    /// Reads a file that `save` wrote; refuses one that others may read.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        use std::io::Read as _;
        let file = std::fs::File::open(path)?;
        #[cfg(unix)]
        if std::os::unix::fs::PermissionsExt::mode(&file.metadata()?.permissions()) & 0o077 != 0 {
            return Err(KeyError::Mode);
        }
        let mut text = Zeroizing::new(String::new());
        file.take(KEY_FILE_BYTES_MAX).read_to_string(&mut text)?;
        let file: KeyFile = serde_json::from_str(&text)
            .map_err(|error| KeyError::Format(format!("line {}, column {}", error.line(), error.column())))?;
        if file.format != FORMAT {
            return Err(KeyError::Format(format!("format '{}' is unknown; '{FORMAT}' is read", file.format)));
        }
        let seed = Zeroizing::new(
            decode(&file.secret)
                .ok_or_else(|| KeyError::Format("'secret' must be 64 hex digits".to_owned()))?,
        );
        let key = Self::new(&file.publisher, SigningKey::from_bytes(&seed))?;
        if hex::encode(key.trusted().key) != file.public {
            return Err(KeyError::Format("'public' is not the public half of 'secret'".to_owned()));
        }
        Ok(key)
    }
}

pub(crate) fn is_publisher(text: &str) -> bool {
    (2..=41).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn check_publisher(text: &str) -> Result<(), KeyError> {
    if is_publisher(text) { Ok(()) } else { Err(KeyError::Publisher(text.to_owned())) }
}

/// Whether these bytes are an Ed25519 public key that is not weak: a weak one verifies signatures that were never made
/// with it.
pub(crate) fn is_sound(key: &[u8; 32]) -> bool {
    VerifyingKey::from_bytes(key).is_ok_and(|public| !public.is_weak())
}

/// Reads 32 bytes as hex.
pub(crate) fn decode(text: &str) -> Option<[u8; 32]> {
    hex::decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests;
