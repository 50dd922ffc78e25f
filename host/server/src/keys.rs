//! Keys of the service and what they seal.
//!
//! Two secrets come from the configuration; every other key is derived from
//! them by a label, so that no key serves two purposes.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use heddle_core::ControllerId;
use heddle_core::secret::{Secret, random_bytes, random_secret};
use hmac::{Hmac, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::config::Config;

const NONCE_BYTES: usize = 24;

#[derive(Clone)]
pub struct Keys {
    signing: Zeroizing<[u8; 32]>,
    encryption: Zeroizing<[u8; 32]>,
}

/// Sealed bytes that cannot be opened: altered, or sealed with another key.
#[derive(Debug, thiserror::Error)]
#[error("sealed value cannot be opened: it was altered, or ENCRYPTION_KEY is not the one it was sealed with")]
pub struct Unsealable;

#[derive(Debug, thiserror::Error)]
#[error("keys in the data folder cannot be read or written: {0}")]
pub struct KeyFileError(#[from] std::io::Error);

#[derive(Serialize, Deserialize)]
struct KeyFile {
    secret_key: String,
    encryption_key: String,
}

impl Keys {
    /// Keys from the configuration; in development generated once and kept in the data folder.
    pub fn open(config: &Config) -> Result<Self, KeyFileError> {
        if let (Some(secret), Some(encryption)) = (&config.secret_key, &config.encryption_key) {
            return Ok(Self::from_texts(secret.expose(), encryption.expose()));
        }
        let kept = kept_keys(&config.data_dir.join("keys.json"))?;
        let secret = config.secret_key.as_ref().map_or(kept.secret_key.as_str(), Secret::expose);
        let encryption = config.encryption_key.as_ref().map_or(kept.encryption_key.as_str(), Secret::expose);
        Ok(Self::from_texts(secret, encryption))
    }

    pub fn from_texts(secret: &str, encryption: &str) -> Self {
        let stretch = |text: &str| Zeroizing::new(<[u8; 32]>::from(Sha256::digest(text.as_bytes())));
        Self { signing: stretch(secret), encryption: stretch(encryption) }
    }

    /// Key of the access tokens' signatures.
    pub fn token_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&self.signing, "access-token-v1", b"")
    }

    /// Key of the hashes under which refresh tokens are stored.
    pub fn refresh_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&self.signing, "refresh-token-v1", b"")
    }

    /// Key of the tokens against forged requests of browsers.
    pub fn csrf_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&self.signing, "csrf-v1", b"")
    }

    /// Key of the hashes under which API keys are stored.
    pub fn api_key_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&self.signing, "api-key-v1", b"")
    }

    pub fn code_cache_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&self.encryption, "plugin-code-cache-v1", b"")
    }

    /// Key of the references that stand for a controller's secrets.
    pub fn reference_key(&self, controller: ControllerId) -> Zeroizing<[u8; 32]> {
        derive(&self.encryption, "secret-reference-v1", controller.0.as_bytes())
    }

    /// Names the key that sealed a row, so that a rotation can tell them apart.
    pub fn key_id(&self) -> String {
        hex::encode(&derive(&self.encryption, "key-id-v1", b"")[..8])
    }

    /// Encrypts for the row that `context` names; the result opens only there.
    pub fn seal(&self, context: &str, plain: &[u8]) -> Vec<u8> {
        let nonce = random_bytes::<NONCE_BYTES>();
        let cipher = XChaCha20Poly1305::new((&*derive(&self.encryption, "seal-v1", b"")).into());
        let payload = Payload { msg: plain, aad: context.as_bytes() };
        let sealed = cipher
            .encrypt(XNonce::from_slice(nonce.as_slice()), payload)
            .expect("the plain text is far below the cipher's limit");
        [nonce.as_slice(), &sealed].concat()
    }

    pub fn open_sealed(&self, context: &str, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, Unsealable> {
        let (nonce, body) = sealed.split_at_checked(NONCE_BYTES).ok_or(Unsealable)?;
        let cipher = XChaCha20Poly1305::new((&*derive(&self.encryption, "seal-v1", b"")).into());
        let payload = Payload { msg: body, aad: context.as_bytes() };
        cipher.decrypt(XNonce::from_slice(nonce), payload).map(Zeroizing::new).map_err(|_| Unsealable)
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys({})", self.key_id())
    }
}

fn derive(key: &[u8; 32], label: &str, context: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut mac = <Hmac<Sha256> as hmac::Mac>::new_from_slice(key).expect("any key length is accepted");
    mac.update(label.as_bytes());
    mac.update(&[0]);
    mac.update(context);
    Zeroizing::new(mac.finalize().into_bytes().into())
}

/// HMAC-SHA256 in hex, for values that are looked up by their hash.
pub fn keyed_hash(key: &[u8; 32], value: &Secret) -> String {
    hex::encode(*derive(key, "hash", value.expose().as_bytes()))
}

fn kept_keys(path: &Path) -> Result<KeyFile, KeyFileError> {
    match fs::read(path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).map_err(std::io::Error::from)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let fresh = KeyFile {
                secret_key: random_secret().expose().to_owned(),
                encryption_key: random_secret().expose().to_owned(),
            };
            let staging = path.with_extension("new");
            let mut file =
                fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&staging)?;
            file.write_all(&serde_json::to_vec_pretty(&fresh).map_err(std::io::Error::from)?)?;
            file.sync_all()?;
            fs::rename(&staging, path)?;
            Ok(fresh)
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::from_texts("one", "two")
    }

    #[test]
    fn a_sealed_value_opens_only_in_its_own_context_and_unaltered() {
        let mut sealed = keys().seal("credential:1", b"hunter2");
        assert_eq!(&**keys().open_sealed("credential:1", &sealed).unwrap(), b"hunter2");
        assert!(keys().open_sealed("credential:2", &sealed).is_err());
        assert!(Keys::from_texts("one", "three").open_sealed("credential:1", &sealed).is_err());
        *sealed.last_mut().unwrap() ^= 1;
        assert!(keys().open_sealed("credential:1", &sealed).is_err());
        assert!(keys().open_sealed("credential:1", b"short").is_err());
    }
}
