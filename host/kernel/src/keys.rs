//! Keys of the service and what they seal.
//!
//! Two secrets come from the configuration; every other key is derived from
//! them by a label, so that no key serves two purposes.

mod data;
mod texts;

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use heddle_core::ControllerId;
use heddle_core::secret::{Secret, random_bytes};
use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

pub use self::data::DataKey;
pub use self::texts::{KeyTexts, path as key_file, sync_folder};
use crate::config::Config;

/// First byte of everything sealed: the form of the rest.
const FORM: u8 = 1;
const KEY_ID_BYTES: usize = 8;
const MARK_BYTES: usize = 1 + KEY_ID_BYTES;
const NONCE_BYTES: usize = 24;

const _: () = assert!(MARK_BYTES == heddle_store::sealed::MARK_BYTES);

/// Holds the two keys from which all others are derived, and earlier encryption keys. It is wiped from memory
/// when it is dropped. Its debug form shows only the id of the encryption key.
#[derive(Clone)]
pub struct Keys {
    signing: Zeroizing<[u8; 32]>,
    encryption: Zeroizing<[u8; 32]>,
    /// Keys that still open what they sealed, but no longer seal.
    previous: Vec<Zeroizing<[u8; 32]>>,
}

/// Sealed bytes that cannot be opened.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsealable {
    #[error(
        "sealed value was sealed with the key {0}, which is neither ENCRYPTION_KEY nor ENCRYPTION_KEY_PREVIOUS"
    )]
    UnknownKey(String),
    #[error("sealed value cannot be opened: it was altered, or belongs to another object")]
    Altered,
}

/// Says why the file of generated keys could not be read, parsed or written. A missing file is no error.
#[derive(Debug, thiserror::Error)]
#[error("keys in the data folder cannot be read or written: {0}")]
pub struct KeyFileError(#[from] std::io::Error);

impl Keys {
    /// Keys from the configuration; in development generated once and kept in the data folder.
    pub fn open(config: &Config) -> Result<Self, KeyFileError> {
        Ok(KeyTexts::open(config)?.keys())
    }

    /// Derives the keys from the texts of `SECRET_KEY` and `ENCRYPTION_KEY`, by one SHA-256 each. Weak texts
    /// are not refused here, but where the settings are read.
    pub fn from_texts(secret: &str, encryption: &str) -> Self {
        let stretch = |text: &str| Zeroizing::new(<[u8; 32]>::from(Sha256::digest(text.as_bytes())));
        Self { signing: stretch(secret), encryption: stretch(encryption), previous: Vec::new() }
    }

    /// The same keys, which also open what the encryption key `previous` sealed.
    #[must_use]
    pub fn also_opening(mut self, previous: &str) -> Self {
        self.previous.push(Zeroizing::new(Sha256::digest(previous.as_bytes()).into()));
        self
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
    pub(crate) fn csrf_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&self.signing, "csrf-v1", b"")
    }

    /// Key of the hashes under which links to reset a password are stored, and of what they are bound to.
    pub fn password_reset_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&self.signing, "password-reset-v1", b"")
    }

    /// Key of the hashes under which limits know email addresses.
    pub fn limited_email_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&self.signing, "limited-email-v1", b"")
    }

    /// Key of the hashes by which a request is known again that a plugin repeats.
    pub fn request_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&self.signing, "plugin-request-v1", b"")
    }

    /// Key of the hashes under which API keys are stored.
    pub fn api_key_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&self.signing, "api-key-v1", b"")
    }

    /// Key of the hashes under which the codes of apps are stored.
    pub fn app_code_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&self.signing, "oauth2-code-v1", b"")
    }

    /// Key of the hashes under which the access tokens of apps are stored.
    pub(crate) fn app_access_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&self.signing, "oauth2-access-v1", b"")
    }

    /// Key of the hashes under which the refresh tokens of apps are stored.
    pub fn app_refresh_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&self.signing, "oauth2-refresh-v1", b"")
    }

    /// Key of the hashes under which the secrets of apps are stored.
    pub fn app_secret_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&self.signing, "oauth2-secret-v1", b"")
    }

    /// Key of the tokens that keep other sites from sending a page's form.
    pub fn form_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&self.signing, "form-v1", b"")
    }

    /// Key of the hashes under which names are counted that fail to log in.
    pub fn login_name_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&self.signing, "login-name-v1", b"")
    }

    /// Key of the hashes under which sign-ins are stored that are on their way to a provider.
    pub fn sso_attempt_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&self.signing, "sso-attempt-v1", b"")
    }

    /// Key of the hashes under which backup codes are stored.
    pub fn backup_code_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&self.signing, "backup-code-v1", b"")
    }

    /// Returns the key that authenticates compiled components in the data folder. Under another encryption
    /// key they are compiled again.
    pub fn code_cache_key(&self) -> Zeroizing<[u8; 32]> {
        derive(&self.encryption, "plugin-code-cache-v1", b"")
    }

    /// Key of the references that stand for a controller's secrets.
    pub fn reference_key(&self, controller: ControllerId) -> Zeroizing<[u8; 32]> {
        derive(&self.encryption, "secret-reference-v1", controller.0.as_bytes())
    }

    /// Names the key that seals now, so that a rotation can tell rows apart.
    pub fn key_id(&self) -> String {
        hex::encode(key_id(&self.encryption))
    }

    /// How everything begins that the current key sealed.
    pub fn mark(&self) -> [u8; MARK_BYTES] {
        mark(&self.encryption)
    }

    /// Whether the current key sealed it.
    pub fn is_current(&self, sealed: &[u8]) -> bool {
        sealed.starts_with(&self.mark())
    }

    /// Whether one of the keys sealed what begins like this.
    pub fn knows(&self, sealed: &[u8]) -> bool {
        self.opening(sealed).is_ok()
    }

    /// Encrypts for the row that `context` names; the result opens only there.
    ///
    /// It is a byte for the form, the id of the key, the nonce, and the cipher text with its tag.
    pub fn seal(&self, context: &str, plain: &[u8]) -> Vec<u8> {
        let nonce = random_bytes::<NONCE_BYTES>();
        let cipher = XChaCha20Poly1305::new((&*derive(&self.encryption, "seal-v1", b"")).into());
        let payload = Payload { msg: plain, aad: context.as_bytes() };
        let sealed = cipher
            .encrypt(XNonce::from_slice(nonce.as_slice()), payload)
            .expect("the plain text is far below the cipher's limit");
        [self.mark().as_slice(), nonce.as_slice(), &sealed].concat()
    }

    /// Opens what the current key or a previous one sealed.
    pub fn open_sealed(&self, context: &str, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, Unsealable> {
        let key = self.opening(sealed)?;
        let (nonce, body) = sealed[MARK_BYTES..].split_at_checked(NONCE_BYTES).ok_or(Unsealable::Altered)?;
        let cipher = XChaCha20Poly1305::new((&*derive(key, "seal-v1", b"")).into());
        let payload = Payload { msg: body, aad: context.as_bytes() };
        cipher
            .decrypt(XNonce::from_slice(nonce), payload)
            .map(Zeroizing::new)
            .map_err(|_| Unsealable::Altered)
    }

    fn opening(&self, sealed: &[u8]) -> Result<&[u8; 32], Unsealable> {
        let found = sealed.get(..MARK_BYTES).filter(|found| found[0] == FORM).ok_or(Unsealable::Altered)?;
        let mut keys = std::iter::once(&self.encryption).chain(&self.previous);
        keys.find(|key| mark(key) == found)
            .map(|key| &**key)
            .ok_or_else(|| Unsealable::UnknownKey(hex::encode(&found[1..])))
    }
}

fn key_id(key: &[u8; 32]) -> [u8; KEY_ID_BYTES] {
    let mut id = [0; KEY_ID_BYTES];
    id.copy_from_slice(&derive(key, "key-id-v1", b"")[..KEY_ID_BYTES]);
    id
}

fn mark(key: &[u8; 32]) -> [u8; MARK_BYTES] {
    let mut mark = [FORM; MARK_BYTES];
    mark[1..].copy_from_slice(&key_id(key));
    mark
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

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::from_texts("one", "two")
    }

    #[test]
    fn a_sealed_value_opens_only_in_its_own_context_and_unaltered() {
        let sealed = keys().seal("credential:1", b"hunter2");
        assert_eq!(&**keys().open_sealed("credential:1", &sealed).unwrap(), b"hunter2");
        assert_eq!(keys().open_sealed("credential:2", &sealed), Err(Unsealable::Altered));
        for at in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[at] ^= 1;
            assert!(keys().open_sealed("credential:1", &altered).is_err(), "byte {at}");
            assert!(keys().open_sealed("credential:1", &sealed[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_previous_key_opens_and_does_not_seal() {
        let sealed = keys().seal("credential:1", b"hunter2");
        let newer = Keys::from_texts("one", "three");
        assert_eq!(newer.open_sealed("credential:1", &sealed), Err(Unsealable::UnknownKey(keys().key_id())));
        let both = newer.clone().also_opening("two");
        assert_eq!(&**both.open_sealed("credential:1", &sealed).unwrap(), b"hunter2");
        assert!(!both.is_current(&sealed) && both.knows(&sealed) && !newer.knows(&sealed));
        let again = both.seal("credential:1", b"hunter2");
        assert!(both.is_current(&again));
        assert_eq!(&**newer.open_sealed("credential:1", &again).unwrap(), b"hunter2");
    }
}
