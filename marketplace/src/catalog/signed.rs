//! Signatures of the files of a catalogue, and how many keys made them.

use std::collections::BTreeSet;

use ed25519_dalek::SigningKey;

use super::error::Refusal;
use super::root::Root;
use super::signature_name;
use crate::signature::{self, Detached, Purpose, SIGNATURES_MAX};

/// A kind of signed file, and the role that signs it. Signatures of one kind never fit another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Document {
    Root,
    Catalog,
    Timestamp,
}

impl Document {
    fn purpose(self) -> Purpose {
        Purpose(match self {
            Self::Root => b"heddle-root-v1\0",
            Self::Catalog => b"heddle-catalog-v1\0",
            Self::Timestamp => b"heddle-timestamp-v1\0",
        })
    }
}

/// The signatures that lie beside a file: `{"signatures": [{"keyid": "<64 hex>", "sig": "<base64>"}]}`, at most 16.
#[derive(Debug, Clone, Default)]
pub struct Signatures(Vec<Detached>);

impl Signatures {
    /// Reads a file of signatures; else says what is wrong with it. None of them is verified.
    pub fn parse(content: &[u8]) -> Result<Self, String> {
        signature::parse(content).map(Self)
    }

    /// Returns the file that [`Signatures::parse`] reads.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        signature::write(&self.0)
    }

    /// Whether there are none, which no file of signatures may have.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Signs these bytes, unless the key did before.
    ///
    /// # Errors
    /// There are as many signatures as a file may have.
    pub fn sign(&mut self, document: Document, content: &[u8], key: &SigningKey) -> Result<(), String> {
        let public = key.verifying_key().to_bytes();
        if !self.signers(document, content, &[public]).is_empty() {
            return Ok(());
        }
        if self.0.len() >= SIGNATURES_MAX {
            return Err(format!("a file has at most {SIGNATURES_MAX} signatures"));
        }
        self.0.push(Detached::by(key, &document.purpose().message(content)));
        Ok(())
    }

    /// Keeps only signatures of these bytes by these keys, one for each key.
    pub fn retain(&mut self, document: Document, content: &[u8], keys: &[[u8; 32]]) {
        let message = document.purpose().message(content);
        let mut kept = BTreeSet::new();
        self.0.retain(|one| {
            !kept.contains(&one.keyid) && made_by(one, keys, &message) && kept.insert(one.keyid.clone())
        });
    }

    /// Adds the signatures of another file of them, as far as there is room.
    pub fn extend(&mut self, others: Self) {
        let room = SIGNATURES_MAX.saturating_sub(self.0.len());
        self.0.extend(others.0.into_iter().take(room));
    }

    /// Ids of those keys that signed these bytes. A key that is given or signs twice counts once.
    #[must_use]
    pub fn signers(&self, document: Document, content: &[u8], keys: &[[u8; 32]]) -> BTreeSet<String> {
        let message = document.purpose().message(content);
        let mut signers = BTreeSet::new();
        for one in &self.0 {
            if !signers.contains(&one.keyid) && made_by(one, keys, &message) {
                signers.insert(one.keyid.clone());
            }
        }
        signers
    }
}

/// Whether one of the keys made the signature under its own id.
fn made_by(one: &Detached, keys: &[[u8; 32]], message: &[u8]) -> bool {
    keys.iter().any(|key| signature::key_id(key) == one.keyid && one.fits(key, message))
}

/// Refuses a file that too few keys of its role in this root signed. Returns the ids of those that did.
pub(crate) fn verify(
    document: Document,
    file: &str,
    content: &[u8],
    signatures: &[u8],
    root: &Root,
) -> Result<BTreeSet<String>, Refusal> {
    let signatures = Signatures::parse(signatures)
        .map_err(|problem| Refusal::SignatureFormat { file: signature_name(file), problem })?;
    let signers = signatures.signers(document, content, &root.keys_of(document));
    let (needed, found) = (root.role(document).threshold, signers.len());
    if found < needed {
        return Err(Refusal::Threshold { file: file.to_owned(), needed, found });
    }
    Ok(signers)
}
