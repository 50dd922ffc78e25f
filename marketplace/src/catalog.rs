//! The catalogue of a marketplace: signed files that any web server serves, and what a server believes of them.
//!
//! A chain of roots says which keys sign the catalogue and the timestamp. The timestamp names one catalogue by version,
//! length and hash, and lists what is revoked; it expires within days, so that withheld news are noticed. This module
//! judges bytes; it fetches nothing, reads no clock and stores nothing.

mod accept;
pub mod bounds;
mod error;
mod listing;
mod plain;
mod questions;
mod revocation;
mod root;
mod rules;
mod signed;
mod state;
mod strict;
mod time;
mod timestamp;
mod update;

pub use accept::pinned_key;
pub use error::{Failure, Refusal, Step};
pub use listing::{Archive, Catalog, ListedKey, Plugin, PluginVersion, Publisher};
pub use plain::signs_plainly;
pub use questions::is_lookalike;
pub use revocation::{Action, Revocation, RevokedKind, Subject, VersionRange, gravest};
pub use root::{Role, Roles, Root, RootKey};
pub use signed::{Document, Signatures};
pub use state::{Assurance, State, Unfit, WARNING_DAYS};
pub use time::{Time, to_text as time_to_text};
pub use timestamp::{CatalogRef, Timestamp};
pub use update::{FetchedCatalog, Next, Update, Updated};

/// Name of the catalogue.
pub const CATALOG: &str = "catalog.json";
/// Name of the timestamp.
pub const TIMESTAMP: &str = "timestamp.json";

/// Returns the name of the root of this version.
#[must_use]
pub fn root_name(version: u64) -> String {
    format!("{version}.root.json")
}

/// Returns the name under which this version of the catalogue stays, while `catalog.json` is replaced by the next one.
#[must_use]
pub fn catalog_name(version: u64) -> String {
    format!("{version}.{CATALOG}")
}

/// Returns the name of the signatures of a file, which lie beside it.
#[must_use]
pub fn signature_name(file: &str) -> String {
    format!("{file}.sig")
}

#[cfg(test)]
mod tests;
