//! Keys for the bytes of one object, which are too many to be sealed anew when the service's key changes.
//!
//! The key of an object is sealed like any secret of a row; a rotation seals only that one anew.

use chacha20poly1305::aead::{Aead as _, KeyInit as _};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use heddle_core::secret::random_bytes;
use zeroize::Zeroizing;

use super::{Keys, NONCE_BYTES, Unsealable};

/// Seals the pieces of one object. Each number may be sealed once only.
pub struct DataKey(Zeroizing<[u8; 32]>);

impl Keys {
    /// Makes a key for the object that `context` names; returns it and what is stored of it.
    pub fn new_data_key(&self, context: &str) -> (DataKey, Vec<u8>) {
        let key = DataKey(random_bytes());
        let sealed = self.seal(context, key.0.as_slice());
        (key, sealed)
    }

    /// Opens what was stored of an object's key.
    pub fn open_data_key(&self, context: &str, sealed: &[u8]) -> Result<DataKey, Unsealable> {
        let plain = self.open_sealed(context, sealed)?;
        let key = plain.as_slice().try_into().map_err(|_| Unsealable::Altered)?;
        Ok(DataKey(Zeroizing::new(key)))
    }
}

impl DataKey {
    /// Bytes that a sealed piece has more than the plain one.
    pub const TAG_BYTES: usize = 16;

    /// Seals the piece of this number.
    pub fn seal(&self, number: u64, plain: &[u8]) -> Vec<u8> {
        self.cipher().encrypt(&nonce(number), plain).expect("the piece is far below the cipher's limit")
    }

    /// Opens the piece of this number; another one, or another object's, does not open.
    pub fn open(&self, number: u64, sealed: &[u8]) -> Result<Vec<u8>, Unsealable> {
        self.cipher().decrypt(&nonce(number), sealed).map_err(|_| Unsealable::Altered)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.0).into())
    }
}

/// The key is used for one object alone, so its pieces need different nonces and no random ones.
fn nonce(number: u64) -> XNonce {
    let mut nonce = [0; NONCE_BYTES];
    nonce[NONCE_BYTES - 8..].copy_from_slice(&number.to_be_bytes());
    nonce.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_opens_only_in_its_place() {
        let keys = Keys::from_texts("one", "two");
        let (key, sealed) = keys.new_data_key("file:1");
        let piece = key.seal(3, b"bytes");
        assert_eq!(piece.len(), 5 + DataKey::TAG_BYTES);
        let opened = keys.open_data_key("file:1", &sealed).unwrap();
        assert_eq!(opened.open(3, &piece).unwrap(), b"bytes");
        assert_eq!(opened.open(4, &piece), Err(Unsealable::Altered));
        assert!(keys.open_data_key("file:2", &sealed).is_err());
        let (other, _) = keys.new_data_key("file:1");
        assert_eq!(other.open(3, &piece), Err(Unsealable::Altered));
    }
}
