//! The package format and the catalogue of packages. A package is a manifest, a description, signatures and hashes, as a folder
//! or a ZIP archive; a catalogue is a set of signed files that lists packages. Verifying is this library; signing, packing and
//! publishing are the binaries of this crate. It knows nothing of the host and does not look inside a component beyond its
//! first bytes.

mod archive;
pub mod catalog;
pub mod credentials;
pub mod description;
mod effects;
mod error;
mod file_fields;
pub mod grant;
pub mod headers;
mod json;
mod keys;
pub mod manifest;
mod manifest_schema;
pub mod model;
mod names;
mod pack;
mod places;
pub mod plugin;
mod plugin_rules;
pub mod push;
mod push_rules;
pub mod reading;
pub mod release;
mod rules;
pub mod schema;
mod schemas;
mod session_rules;
mod signature;
pub mod template;
mod verify;
mod words;

pub use archive::{ARCHIVE_BYTES_MAX, read_archive, write_archive};
pub use error::PackageError;
pub use keys::{KeyError, PublisherKey, TrustedKey, parse_trusted_keys, write_trusted_keys};
pub use manifest_schema::manifest_schema;
pub use pack::{PackError, pack, write_dir};
pub use plugin_rules::parse_origin;
pub use rules::ID_CHARS_MAX;
pub use schema::{Schema, SchemaError};
pub use schemas::{judge_schemas, settings_schema};
pub use session_rules::SESSION_SECS_MAX;
pub use signature::{key_id, keygen, sign};
pub use verify::{COMPONENT_BYTES_MAX, MANIFEST_BYTES_MAX, Verified, inspect, read_dir};
pub use words::in_words;

/// Interface versions that a manifest may name in `api`.
pub const SUPPORTED_API: &[&str] = &["1.0", "1.1"];
/// Name of the manifest inside a package.
pub const MANIFEST: &str = "manifest.json";
/// Name of the description inside a package.
pub const DESCRIPTION: &str = "description.json";
/// Name of the signatures inside a package.
pub const SIGNATURE: &str = "manifest.sig";
