//! The timestamp: which catalogue is the current one, and what is revoked.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use super::bounds::{CATALOG_BYTES_MAX, REVOCATIONS_MAX, TIMESTAMP_BYTES_MAX, TIMESTAMP_DAYS_MAX};
use super::error::Refusal;
use super::revocation::Revocation;
use super::time::{self, Time};
use super::{TIMESTAMP, strict};
use crate::signature;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Tag {
    #[serde(rename = "timestamp")]
    Timestamp,
}

/// `timestamp.json`, signed anew every few days by a key that is online.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Timestamp {
    #[serde(rename = "type")]
    tag: Tag,
    pub version: u64,
    /// When it was signed. A server whose clock is earlier refuses it.
    #[serde(with = "time")]
    pub signed: Time,
    /// At most 31 days later: a stolen key cannot hide news for longer.
    #[serde(with = "time")]
    pub expires: Time,
    pub catalog: CatalogRef,
    /// Only ever grows.
    pub revocations: Vec<Revocation>,
}

/// Names one catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogRef {
    pub version: u64,
    /// Bytes.
    pub length: u64,
    /// Lower-case hex.
    pub sha256: String,
}

impl Timestamp {
    /// A timestamp which nothing has judged yet.
    #[must_use]
    pub fn new(
        version: u64,
        signed: Time,
        expires: Time,
        catalog: CatalogRef,
        revocations: Vec<Revocation>,
    ) -> Self {
        Self { tag: Tag::Timestamp, version, signed, expires, catalog, revocations }
    }

    /// Parses a timestamp whose signatures were verified.
    pub fn parse(content: &[u8]) -> Result<Self, Refusal> {
        let timestamp: Self = strict::parse(TIMESTAMP, content, TIMESTAMP_BYTES_MAX)?;
        timestamp.check().map_err(|problem| Refusal::Format { file: TIMESTAMP.to_owned(), problem })?;
        Ok(timestamp)
    }

    /// Returns the file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("it has text keys only")
    }

    fn check(&self) -> Result<(), String> {
        strict::version(self.version)?;
        strict::version(self.catalog.version)?;
        let lasts = self.expires.signed_duration_since(self.signed);
        if lasts <= TimeDelta::zero() || lasts > TimeDelta::days(TIMESTAMP_DAYS_MAX) {
            return Err(format!("it expires within {TIMESTAMP_DAYS_MAX} days after it was signed"));
        }
        if self.catalog.length == 0 || self.catalog.length > CATALOG_BYTES_MAX {
            return Err(format!(
                "a catalogue has 1 to {CATALOG_BYTES_MAX} bytes, not {}",
                self.catalog.length
            ));
        }
        if !signature::is_sha256(&self.catalog.sha256) {
            return Err("'sha256' of the catalogue must be 64 lower-case hex digits".to_owned());
        }
        strict::count("revocations", self.revocations.len(), REVOCATIONS_MAX)?;
        self.revocations.iter().try_for_each(Revocation::check)
    }
}
