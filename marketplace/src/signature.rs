//! Detached signatures over the exact bytes of a file: of the manifest of a package, and of the files of a catalogue.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::error::PackageError;
use crate::keys::TrustedKey;

/// What is put before the signed bytes, so that a signature made for something else never fits. It ends with a zero byte.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Purpose(pub(crate) &'static [u8]);

const MANIFEST: Purpose = Purpose(b"heddle-plugin-manifest-v1\0");
/// Most signatures of a file.
pub(crate) const SIGNATURES_MAX: usize = 16;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignatureFile {
    signatures: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    keyid: String,
    sig: String,
}

/// One signature of a file, whose form was checked and nothing else.
#[derive(Debug, Clone)]
pub(crate) struct Detached {
    /// Id of the key that it claims to be by.
    pub(crate) keyid: String,
    pub(crate) sig: [u8; 64],
}

impl Purpose {
    /// The bytes that a signature of `content` is over.
    pub(crate) fn message(self, content: &[u8]) -> Vec<u8> {
        [self.0, content].concat()
    }
}

impl Detached {
    /// Signs what [`Purpose::message`] gave.
    pub(crate) fn by(key: &SigningKey, message: &[u8]) -> Self {
        Self { keyid: key_id(key.verifying_key().as_bytes()), sig: key.sign(message).to_bytes() }
    }

    /// Whether this key made the signature of what [`Purpose::message`] gave.
    pub(crate) fn fits(&self, key: &[u8; 32], message: &[u8]) -> bool {
        VerifyingKey::from_bytes(key)
            .and_then(|public| public.verify_strict(message, &Signature::from_bytes(&self.sig)))
            .is_ok()
    }
}

/// Name of a public key: its SHA-256 in lower-case hex.
pub fn key_id(public: &[u8; 32]) -> String {
    hex::encode(Sha256::digest(public))
}

/// A new signing key from the system's random source.
///
/// Fails when that source does.
pub fn keygen() -> std::io::Result<SigningKey> {
    let mut seed = zeroize::Zeroizing::new([0_u8; 32]);
    #[expect(
        clippy::disallowed_methods,
        reason = "publishers make keys without any part of the host, which owns the other source"
    )]
    getrandom::fill(seed.as_mut()).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(SigningKey::from_bytes(&seed))
}

/// Content of `manifest.sig` for these bytes of `manifest.json`.
#[must_use]
pub fn sign(manifest: &[u8], key: &SigningKey) -> Vec<u8> {
    write(&[Detached::by(key, &MANIFEST.message(manifest))])
}

/// Content of a signature file, as [`parse`] reads it.
pub(crate) fn write(signatures: &[Detached]) -> Vec<u8> {
    let entry = |one: &Detached| json!({ "keyid": one.keyid, "sig": STANDARD.encode(one.sig) });
    json!({ "signatures": signatures.iter().map(entry).collect::<Vec<_>>() }).to_string().into_bytes()
}

/// The trusted keys that signed these bytes; at least one.
pub(crate) fn signers<'a>(
    manifest: &[u8],
    signature: &[u8],
    trusted: &'a [TrustedKey],
) -> Result<Vec<&'a TrustedKey>, PackageError> {
    let signatures = parse(signature).map_err(PackageError::SignatureFormat)?;
    let message = MANIFEST.message(manifest);
    let mut signers = Vec::new();
    let mut broken = None;
    for one in &signatures {
        for key in trusted.iter().filter(|key| key_id(&key.key) == one.keyid) {
            if one.fits(&key.key, &message) {
                signers.push(key);
            } else {
                broken = Some(&one.keyid);
            }
        }
    }
    match (signers.is_empty(), broken) {
        (false, _) => Ok(signers),
        (true, Some(id)) => Err(PackageError::BadSignature(id.clone())),
        (true, None) => {
            Err(PackageError::UntrustedKey(signatures.into_iter().map(|one| one.keyid).collect()))
        }
    }
}

/// Reads `{"signatures": [{"keyid": "<64 hex>", "sig": "<base64 of 64 bytes>"}]}`; else says what is wrong.
pub(crate) fn parse(signature: &[u8]) -> Result<Vec<Detached>, String> {
    let file: SignatureFile = serde_json::from_slice(signature).map_err(|error| error.to_string())?;
    if file.signatures.is_empty() || file.signatures.len() > SIGNATURES_MAX {
        return Err(format!("it must hold 1 to {SIGNATURES_MAX} signatures"));
    }
    file.signatures.into_iter().map(checked).collect()
}

fn checked(Entry { keyid, sig }: Entry) -> Result<Detached, String> {
    if !is_sha256(&keyid) {
        return Err("'keyid' must be 64 lower-case hex digits".to_owned());
    }
    let sig = STANDARD.decode(sig).ok().and_then(|bytes| bytes.try_into().ok());
    Ok(Detached { keyid, sig: sig.ok_or("'sig' must be 64 bytes as base64")? })
}

/// Whether a text is a SHA-256 as lower-case hex.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
