//! What a server knows of a catalogue between two updates. It is stored whole, in one transaction with the catalogue.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use super::error::Refusal;
use super::listing::Catalog;
use super::revocation::{self, Revocation, Subject};
use super::root::Root;
use super::signed::Document;
use super::time::{Time, to_text};
use super::timestamp::CatalogRef;
use super::{CATALOG, TIMESTAMP};
use crate::verify::sha256;

/// Days without a good timestamp after which a server warns.
pub const WARNING_DAYS: i64 = 90;

/// What a server knows of a catalogue. It goes through serde to be stored; the bytes of the catalogue are stored beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    pub(crate) trust: Trust,
    /// When the server began with this catalogue.
    pub(crate) since: Time,
    /// When the newest file was good for the last time.
    pub(crate) good_at: Option<Time>,
    pub(crate) timestamp: Option<KnownTimestamp>,
    pub(crate) catalog: Option<KnownCatalog>,
    pub(crate) revocations: Vec<Revocation>,
}

/// What the catalogue is believed for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "assurance", rename_all = "kebab-case")]
pub(crate) enum Trust {
    /// The text of the newest root.
    Full { root: String },
    /// One key, as 64 hex digits, that signs the bare bytes of the catalogue.
    Lower { key: String },
    /// Nothing: whoever serves it writes it.
    None,
}

/// How much a state is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assurance {
    /// Roots, timestamps and revocations.
    Full,
    /// One pinned key: no revocations, no rotation of the key, and news can be withheld until the catalogue expires.
    Lower,
    /// No signature at all: it is a list to look at, and none of its keys may be trusted.
    None,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KnownTimestamp {
    pub(crate) version: u64,
    pub(crate) sha256: String,
    pub(crate) signed: Time,
    pub(crate) expires: Time,
    /// Ids of the keys that signed it.
    pub(crate) signers: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KnownCatalog {
    pub(crate) file: CatalogRef,
    pub(crate) expires: Time,
    /// Ids of the keys that signed it; none where one key is pinned.
    pub(crate) signers: BTreeSet<String>,
    /// Expiry of the last timestamp that named it, where the known timestamp names another catalogue, which has not come yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current_until: Option<Time>,
}

/// Why nothing new may be installed from a catalogue. What is installed goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("the catalogue was never updated")]
    Never,
    /// Its keys were replaced, and no file that the new ones signed has come yet.
    #[error("the keys of the catalogue were replaced since its last update")]
    Replaced,
    #[error("'{file}' expired at {}", to_text(.at))]
    Expired { file: &'static str, at: Time },
    /// The timestamp names a newer catalogue, and no update has brought it.
    #[error(
        "the timestamp names a newer catalogue, which has not come; the known one was the current one until {}",
        to_text(.until)
    )]
    Behind { until: Time },
    /// The root that was stored cannot be read.
    #[error("the stored root of the catalogue is damaged")]
    Damaged,
    /// With such a clock nothing ever expires.
    #[error("the clock shows {}, but the timestamp was signed at {}; set the clock of this machine", to_text(.now), to_text(.signed))]
    Clock { now: Time, signed: Time },
}

impl State {
    /// The state of a server that begins with this root, a file that it was given and trusts. Trust begins with it, so its
    /// signatures are not looked at.
    pub fn with_root(root: &[u8], now: Time) -> Result<Self, Refusal> {
        let file = "the first root";
        Root::parse(file, root)?;
        let problem = "it is no UTF-8".to_owned();
        let root = String::from_utf8(root.to_vec())
            .map_err(|_| Refusal::Format { file: file.to_owned(), problem })?;
        Ok(Self::new(Trust::Full { root }, now))
    }

    /// The state of a server that trusts one pinned Ed25519 key instead of a root.
    #[must_use]
    pub fn with_pinned_key(key: &[u8; 32], now: Time) -> Self {
        Self::new(Trust::Lower { key: hex::encode(key) }, now)
    }

    /// The state of a server that takes a catalogue without signatures.
    #[must_use]
    pub fn unsigned(now: Time) -> Self {
        Self::new(Trust::None, now)
    }

    fn new(trust: Trust, since: Time) -> Self {
        Self { trust, since, good_at: None, timestamp: None, catalog: None, revocations: Vec::new() }
    }

    /// How much it is worth.
    #[must_use]
    pub fn assurance(&self) -> Assurance {
        match self.trust {
            Trust::Full { .. } => Assurance::Full,
            Trust::Lower { .. } => Assurance::Lower,
            Trust::None => Assurance::None,
        }
    }

    /// The exact text of the newest root, where there is one.
    #[must_use]
    pub fn root(&self) -> Option<&str> {
        match &self.trust {
            Trust::Full { root } => Some(root),
            Trust::Lower { .. } | Trust::None => None,
        }
    }

    /// The pinned key, where there is one.
    #[must_use]
    pub fn pinned_key(&self) -> Option<[u8; 32]> {
        match &self.trust {
            Trust::Full { .. } | Trust::None => None,
            Trust::Lower { key } => crate::keys::decode(key),
        }
    }

    /// Version of the newest root.
    #[must_use]
    pub fn root_version(&self) -> Option<u64> {
        self.parsed_root().map(|root| root.version)
    }

    /// Version of the last good timestamp.
    #[must_use]
    pub fn timestamp_version(&self) -> Option<u64> {
        self.timestamp.as_ref().map(|known| known.version)
    }

    /// When the last good timestamp was signed.
    #[must_use]
    pub fn timestamp_signed(&self) -> Option<Time> {
        self.timestamp.as_ref().map(|known| known.signed)
    }

    /// When the last good timestamp expires.
    #[must_use]
    pub fn timestamp_expires(&self) -> Option<Time> {
        self.timestamp.as_ref().map(|known| known.expires)
    }

    /// Version of the catalogue.
    #[must_use]
    pub fn catalog_version(&self) -> Option<u64> {
        self.catalog.as_ref().map(|known| known.file.version)
    }

    /// SHA-256 of the catalogue, lower-case hex.
    #[must_use]
    pub fn catalog_sha256(&self) -> Option<&str> {
        self.catalog.as_ref().map(|known| known.file.sha256.as_str())
    }

    /// When an update ended well for the last time.
    #[must_use]
    pub fn good_at(&self) -> Option<Time> {
        self.good_at
    }

    /// What is revoked, as the last good timestamp says.
    #[must_use]
    pub fn revocations(&self) -> &[Revocation] {
        &self.revocations
    }

    /// The gravest of the revocations of a package.
    #[must_use]
    pub fn revoked(&self, subject: &Subject<'_>) -> Option<&Revocation> {
        revocation::gravest(&self.revocations, subject)
    }

    /// Parses the catalogue that is stored beside the state, which must be the very bytes of the last update.
    pub fn open_catalog(&self, content: &[u8]) -> Result<Catalog, Refusal> {
        let known = self.catalog.as_ref().ok_or_else(|| Refusal::Missing(CATALOG.to_owned()))?;
        if sha256(content) != known.file.sha256 {
            return Err(Refusal::Hash(CATALOG.to_owned()));
        }
        Catalog::parse(content)
    }

    /// Whether something new may be installed or updated from the catalogue at this time; else says why not.
    pub fn may_install(&self, now: Time) -> Result<(), Unfit> {
        let catalog = self.catalog.as_ref().ok_or(Unfit::Never)?;
        if self.assurance() == Assurance::Full {
            let root = self.parsed_root().ok_or(Unfit::Damaged)?;
            let timestamp = self.timestamp.as_ref().ok_or(Unfit::Never)?;
            if now < timestamp.signed {
                return Err(Unfit::Clock { now, signed: timestamp.signed });
            }
            if !root.is_enough(Document::Timestamp, &timestamp.signers)
                || !root.is_enough(Document::Catalog, &catalog.signers)
            {
                return Err(Unfit::Replaced);
            }
            if timestamp.expires <= now {
                return Err(Unfit::Expired { file: TIMESTAMP, at: timestamp.expires });
            }
            if let Some(until) = catalog.current_until.filter(|until| *until <= now) {
                return Err(Unfit::Behind { until });
            }
        }
        if catalog.expires <= now {
            return Err(Unfit::Expired { file: CATALOG, at: catalog.expires });
        }
        Ok(())
    }

    /// Whether 90 days went by without a good timestamp, counted from the beginning where there never was one.
    #[must_use]
    pub fn is_warning_due(&self, now: Time) -> bool {
        now.signed_duration_since(self.good_at.unwrap_or(self.since)) >= TimeDelta::days(WARNING_DAYS)
    }

    fn parsed_root(&self) -> Option<Root> {
        self.root().and_then(|text| Root::parse("the stored root", text.as_bytes()).ok())
    }
}
