//! What each step of an update believes, and in which order it looks: signatures come before any parser, and length and hash
//! of a catalogue before both.

use std::collections::BTreeSet;

use super::error::{Refusal, Step};
use super::listing::Catalog;
use super::plain;
use super::root::Root;
use super::signed::{self, Document};
use super::state::{KnownCatalog, KnownTimestamp, Trust};
use super::timestamp::{CatalogRef, Timestamp};
use super::update::{Trusted, Update};
use super::{CATALOG, TIMESTAMP, root_name};
use crate::keys;
use crate::verify::{length, sha256};

impl Update {
    /// Refuses a clock that is behind the last good timestamp: with it, nothing old would ever look expired.
    pub(crate) fn check_clock(&self) -> Result<(), Refusal> {
        match self.known_timestamp() {
            Some(known) if self.now < known.signed => {
                Err(Refusal::Clock { now: self.now, signed: known.signed })
            }
            _ => Ok(()),
        }
    }

    /// Takes the next root, signed by the keys of this one and by its own.
    pub(crate) fn accept_root(&mut self, content: Vec<u8>, signatures: &[u8]) -> Result<(), Refusal> {
        let Trusted::Root(current) = &self.trusted else { return Ok(()) };
        let expected = current.version.saturating_add(1);
        let file = root_name(expected);
        signed::verify(Document::Root, &file, &content, signatures, current)?;
        let root = Root::parse(&file, &content)?;
        if root.version != expected {
            return Err(Refusal::Version { file, expected, found: root.version });
        }
        signed::verify(Document::Root, &file, &content, signatures, &root)?;
        let problem = "it is no UTF-8".to_owned();
        let root_text = String::from_utf8(content).map_err(|_| Refusal::Format { file, problem })?;
        self.trusted = Trusted::Root(Box::new(root));
        self.new.trust = Trust::Full { root: root_text };
        Ok(())
    }

    pub(crate) fn check_root_expiry(&self) -> Result<(), Refusal> {
        match &self.trusted {
            Trusted::Root(root) if root.expires <= self.now => {
                Err(Refusal::Expired { file: root.name(), at: root.expires, now: self.now })
            }
            _ => Ok(()),
        }
    }

    /// Takes a timestamp and returns which catalogue it names. What was known under keys that were replaced is forgotten, so
    /// that a thief's high version, or a false revocation, does not outlast the key.
    pub(crate) fn accept_timestamp(
        &mut self,
        content: &[u8],
        signatures: &[u8],
    ) -> Result<CatalogRef, (Step, Refusal)> {
        let at = |step: Step| move |refusal: Refusal| (step, refusal);
        let Trusted::Root(root) = &self.trusted else {
            return Err((Step::Timestamp, Refusal::Missing(TIMESTAMP.to_owned())));
        };
        let signers = signed::verify(Document::Timestamp, TIMESTAMP, content, signatures, root)
            .map_err(at(Step::Timestamp))?;
        let timestamp = Timestamp::parse(content).map_err(at(Step::Timestamp))?;
        let found = KnownTimestamp {
            version: timestamp.version,
            sha256: sha256(content),
            signed: timestamp.signed,
            expires: timestamp.expires,
            signers,
        };
        self.check_timestamp(&found).map_err(at(Step::Timestamp))?;
        if self.now < timestamp.signed {
            return Err((Step::Clock, Refusal::Clock { now: self.now, signed: timestamp.signed }));
        }
        self.check_named(&timestamp.catalog).map_err(at(Step::Timestamp))?;
        self.check_revocations(&timestamp).map_err(at(Step::Revocations))?;
        self.bound_catalog(&timestamp.catalog);
        self.new.timestamp = Some(found);
        self.new.revocations = timestamp.revocations;
        Ok(timestamp.catalog)
    }

    fn check_timestamp(&self, found: &KnownTimestamp) -> Result<(), Refusal> {
        let file = TIMESTAMP.to_owned();
        if let Some(known) = self.known_timestamp() {
            if found.version < known.version {
                return Err(Refusal::Rollback { file, known: known.version, found: found.version });
            }
            if found.version == known.version && found.sha256 != known.sha256 {
                return Err(Refusal::Replaced { file, version: found.version });
            }
        }
        if found.expires <= self.now {
            return Err(Refusal::Expired { file, at: found.expires, now: self.now });
        }
        // Also one of replaced keys: a file from before that the new keys signed, too, would take back what was revoked since.
        // No thief can have moved this time past the clock of this machine.
        if let Some(last) = self.new.timestamp.as_ref().filter(|last| found.signed < last.signed) {
            return Err(Refusal::Earlier { file, known: last.signed, found: found.signed });
        }
        Ok(())
    }

    /// Refuses a timestamp that names an older catalogue than the known one, or another one of the same version.
    fn check_named(&self, listed: &CatalogRef) -> Result<(), Refusal> {
        let file = CATALOG.to_owned();
        match self.known_catalog() {
            Some(known) if listed.version < known.file.version => {
                Err(Refusal::Rollback { file, known: known.file.version, found: listed.version })
            }
            Some(known) if listed.version == known.file.version && *listed != known.file => {
                Err(Refusal::Replaced { file, version: listed.version })
            }
            _ => Ok(()),
        }
    }

    /// Keeps a timestamp that names another catalogue from prolonging the known one: until the named one is there, the known one
    /// counts as the current one for as long as the last timestamp that named it.
    fn bound_catalog(&mut self, listed: &CatalogRef) {
        let expires = self.new.timestamp.as_ref().map(|last| last.expires);
        if let Some(known) = &mut self.new.catalog {
            known.current_until = known.current_until.or(expires).filter(|_| known.file != *listed);
        }
    }

    fn check_revocations(&self, timestamp: &Timestamp) -> Result<(), Refusal> {
        if self.known_timestamp().is_none() {
            return Ok(());
        }
        let is_lost =
            |known: &&super::Revocation| !timestamp.revocations.iter().any(|one| one.is_same(known));
        match self.new.revocations.iter().find(is_lost) {
            None => Ok(()),
            Some(lost) => {
                Err(Refusal::RevocationLost { kind: lost.kind.to_string(), value: lost.value.clone() })
            }
        }
    }

    /// Whether the named catalogue is the known one, which then must not have expired.
    pub(crate) fn is_known(&self, listed: &CatalogRef) -> Result<bool, Refusal> {
        match self.known_catalog() {
            Some(known) if *listed == known.file => {
                if known.expires <= self.now {
                    let file = CATALOG.to_owned();
                    return Err(Refusal::Expired { file, at: known.expires, now: self.now });
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Takes the catalogue that the timestamp names; [`check_listed`] has seen its bytes.
    pub(crate) fn accept_catalog(
        &mut self,
        file: &str,
        listed: &CatalogRef,
        content: &[u8],
        signatures: &[u8],
    ) -> Result<Catalog, Refusal> {
        let Trusted::Root(root) = &self.trusted else { return Err(Refusal::Missing(file.to_owned())) };
        let signers = signed::verify(Document::Catalog, file, content, signatures, root)?;
        let catalog = Catalog::parse(content)?;
        if catalog.version != listed.version {
            let file = file.to_owned();
            return Err(Refusal::Version { file, expected: listed.version, found: catalog.version });
        }
        let found =
            KnownCatalog { file: listed.clone(), expires: catalog.expires, signers, current_until: None };
        self.take_catalog(found)?;
        Ok(catalog)
    }

    /// Takes a catalogue whose bare bytes the pinned key signed.
    pub(crate) fn accept_plain(&mut self, content: &[u8], signature: &[u8]) -> Result<Catalog, Refusal> {
        let file = CATALOG.to_owned();
        let Trusted::Key(key) = &self.trusted else { return Err(Refusal::Missing(file)) };
        if !plain::signs_plainly(key, content, signature) {
            return Err(Refusal::Threshold { file, needed: 1, found: 0 });
        }
        self.accept_unsigned(content)
    }

    /// Takes a catalogue that nobody has to sign, or whose signature was seen.
    pub(crate) fn accept_unsigned(&mut self, content: &[u8]) -> Result<Catalog, Refusal> {
        let catalog = Catalog::parse(content)?;
        let file = CatalogRef { version: catalog.version, length: length(content), sha256: sha256(content) };
        self.check_named(&file)?;
        let signers = BTreeSet::new();
        self.take_catalog(KnownCatalog { file, expires: catalog.expires, signers, current_until: None })?;
        Ok(catalog)
    }

    fn take_catalog(&mut self, found: KnownCatalog) -> Result<(), Refusal> {
        if found.expires <= self.now {
            return Err(Refusal::Expired { file: CATALOG.to_owned(), at: found.expires, now: self.now });
        }
        self.new.catalog = Some(found);
        Ok(())
    }

    /// The known timestamp, unless its keys were replaced since. It is asked for before a new one is accepted.
    fn known_timestamp(&self) -> Option<&KnownTimestamp> {
        let Trusted::Root(root) = &self.trusted else { return None };
        self.new.timestamp.as_ref().filter(|known| root.is_enough(Document::Timestamp, &known.signers))
    }

    /// The known catalogue, in the same way.
    fn known_catalog(&self) -> Option<&KnownCatalog> {
        self.new.catalog.as_ref().filter(|known| match &self.trusted {
            Trusted::Root(root) => root.is_enough(Document::Catalog, &known.signers),
            Trusted::Key(_) | Trusted::Anything => true,
        })
    }
}

/// Refuses a catalogue that is not the one that the timestamp names.
pub(crate) fn check_listed(file: &str, listed: &CatalogRef, content: &[u8]) -> Result<(), Refusal> {
    let found = length(content);
    if found != listed.length {
        return Err(Refusal::Length { file: file.to_owned(), listed: listed.length, found });
    }
    if sha256(content) != listed.sha256 {
        return Err(Refusal::Hash(file.to_owned()));
    }
    Ok(())
}

/// Reads a pinned key: an Ed25519 public key as 64 lower-case hex digits.
///
/// # Errors
/// It is none.
pub fn pinned_key(hex: &str) -> Result<[u8; 32], Refusal> {
    keys::decode(hex).filter(keys::is_sound).ok_or_else(|| Refusal::Format {
        file: "the pinned key".to_owned(),
        problem: "it is no Ed25519 public key as 64 hex digits".to_owned(),
    })
}
