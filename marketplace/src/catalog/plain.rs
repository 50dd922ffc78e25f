//! The simple mode: one pinned key signs the bare bytes of a catalogue.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ed25519_dalek::{Signature, VerifyingKey};

/// Whether a detached signature of these exact bytes is by the pinned key. A signature is 64 bytes, or a text of 128 hex
/// digits or of base64 with or without padding, which may have white space around it.
#[must_use]
pub fn signs_plainly(key: &[u8; 32], content: &[u8], signature: &[u8]) -> bool {
    let key = VerifyingKey::from_bytes(key);
    read(signature).is_some_and(|signature| {
        key.is_ok_and(|key| key.verify_strict(content, &Signature::from_bytes(&signature)).is_ok())
    })
}

/// The forms have different lengths, so that none is taken for another.
fn read(signature: &[u8]) -> Option<[u8; 64]> {
    if let Ok(bytes) = signature.try_into() {
        return Some(bytes);
    }
    let text = signature.trim_ascii();
    let bytes = match text.len() {
        128 => hex::decode(text).ok(),
        88 => STANDARD.decode(text).ok(),
        86 => STANDARD_NO_PAD.decode(text).ok(),
        _ => None,
    };
    bytes?.try_into().ok()
}
