//! Keys on disk: the publisher's own, and the list of those that a server trusts.
//!
//! Publisher's key, one JSON object, mode 0600:
//! `{"format":"heddle-publisher-key-v1","publisher":"acme","public":"<64 hex>","secret":"<64 hex>"}`.
//! Trusted keys: `[{"publisher":"acme","key":"<64 hex of the public key>"}]`.

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
}

impl TrustedKey {
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
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustedEntry {
    publisher: String,
    key: String,
}

/// Reads the list of trusted keys, as `[{"publisher": "acme", "key": "<64 hex>"}]`.
pub fn parse_trusted_keys(json: &[u8]) -> Result<Vec<TrustedKey>, KeyError> {
    let entries: Vec<TrustedEntry> =
        serde_json::from_slice(json).map_err(|error| KeyError::Format(error.to_string()))?;
    let mut keys: Vec<TrustedKey> = Vec::new();
    for TrustedEntry { publisher, key } in entries {
        check_publisher(&publisher)?;
        let key = decode(&key).ok_or_else(|| KeyError::Public(publisher.clone()))?;
        // A weak key verifies signatures that nobody made.
        let sound = VerifyingKey::from_bytes(&key).is_ok_and(|public| !public.is_weak());
        if !sound {
            return Err(KeyError::Public(publisher));
        }
        if keys.iter().any(|known| known.key == key) {
            return Err(KeyError::Duplicate(signature::key_id(&key)));
        }
        keys.push(TrustedKey { publisher, key });
    }
    Ok(keys)
}

/// The list as `parse_trusted_keys` reads it.
#[must_use]
pub fn write_trusted_keys(keys: &[TrustedKey]) -> String {
    let entries: Vec<Value> =
        keys.iter().map(|key| json!({ "publisher": key.publisher, "key": hex::encode(key.key) })).collect();
    format!("{:#}", Value::Array(entries))
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

    /// The public half, as servers list it.
    #[must_use]
    pub fn trusted(&self) -> TrustedKey {
        TrustedKey { publisher: self.publisher.clone(), key: self.signing.verifying_key().to_bytes() }
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

fn decode(text: &str) -> Option<[u8; 32]> {
    hex::decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests;
