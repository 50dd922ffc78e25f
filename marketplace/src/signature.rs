//! Detached signatures over the exact bytes of a manifest.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::error::PackageError;
use crate::keys::TrustedKey;

/// Put before the manifest, so that a signature made for something else never fits.
const CONTEXT: &[u8] = b"heddle-plugin-manifest-v1\0";
/// Most signatures that are looked at.
const SIGNATURES_MAX: usize = 16;

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
    let signature = key.sign(&signed_bytes(manifest));
    let keyid = key_id(key.verifying_key().as_bytes());
    let sig = STANDARD.encode(signature.to_bytes());
    json!({ "signatures": [{ "keyid": keyid, "sig": sig }] }).to_string().into_bytes()
}

/// The trusted keys that signed these bytes; at least one.
pub(crate) fn signers<'a>(
    manifest: &[u8],
    signature: &[u8],
    trusted: &'a [TrustedKey],
) -> Result<Vec<&'a TrustedKey>, PackageError> {
    let file = parse(signature)?;
    let message = signed_bytes(manifest);
    let mut signers = Vec::new();
    let mut broken = None;
    for entry in &file.signatures {
        let bytes: [u8; 64] = STANDARD
            .decode(&entry.sig)
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(|| format_error("'sig' must be 64 bytes as base64"))?;
        for key in trusted.iter().filter(|key| key_id(&key.key) == entry.keyid) {
            let fits = VerifyingKey::from_bytes(&key.key)
                .and_then(|public| public.verify_strict(&message, &Signature::from_bytes(&bytes)))
                .is_ok();
            if fits {
                signers.push(key);
            } else {
                broken = Some(&entry.keyid);
            }
        }
    }
    match (signers.is_empty(), broken) {
        (false, _) => Ok(signers),
        (true, Some(id)) => Err(PackageError::BadSignature(id.clone())),
        (true, None) => {
            Err(PackageError::UntrustedKey(file.signatures.into_iter().map(|e| e.keyid).collect()))
        }
    }
}

fn parse(signature: &[u8]) -> Result<SignatureFile, PackageError> {
    let file: SignatureFile =
        serde_json::from_slice(signature).map_err(|error| format_error(&error.to_string()))?;
    if file.signatures.is_empty() || file.signatures.len() > SIGNATURES_MAX {
        return Err(format_error(&format!("it must hold 1 to {SIGNATURES_MAX} signatures")));
    }
    for entry in &file.signatures {
        if entry.keyid.len() != 64 || !entry.keyid.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(format_error("'keyid' must be 64 lower-case hex digits"));
        }
    }
    Ok(file)
}

fn signed_bytes(manifest: &[u8]) -> Vec<u8> {
    [CONTEXT, manifest].concat()
}

fn format_error(problem: &str) -> PackageError {
    PackageError::SignatureFormat(problem.to_owned())
}
