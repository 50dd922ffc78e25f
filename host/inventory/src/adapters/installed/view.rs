//! Packages as clients see them.

use heddle_core::Timestamp;
use heddle_marketplace::{Verified, in_words};
use heddle_store::installed_packages::{Installed, Known};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::changes::{Replaced, capabilities};

/// What became of a package that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "AdapterPackageOutcome")]
pub(super) enum Outcome {
    /// It serves from now on.
    Installed,
    /// It is the one that is installed.
    Unchanged,
    /// It can be installed; nothing was changed.
    Judged,
    /// It served before, and serves again.
    RolledBack,
}

/// A package that was judged: its signature, its schemas, its imports and its code.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "JudgedAdapterPackage", example = example())]
pub(super) struct Judged {
    /// Id of the adapter, which is also the `vendor` of its controllers.
    id: String,
    /// Version of the package, such as `1.4.0`.
    version: String,
    /// Name of the publisher.
    publisher: String,
    /// Id of the publisher's key that signed it.
    key_id: String,
    /// SHA-256 of its manifest, hexadecimal: names this very package.
    manifest_sha256: String,
    /// SHA-256 of its code, hexadecimal.
    component_sha256: String,
    /// What its component asks to import.
    capabilities: Vec<String>,
    /// What it may do at a device, in words.
    rules: Vec<String>,
    /// The package that it takes the place of, and what differs; null where none served.
    replaces: Option<Replaced>,
    /// What became of it.
    outcome: Outcome,
}

fn example() -> serde_json::Value {
    json!({
        "id": "acme",
        "version": "0.2.0",
        "publisher": "acme",
        "key_id": "5f2b9c0d7a1e4f63",
        "manifest_sha256": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
        "component_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "capabilities": ["controller-http"],
        "rules": ["no session: no login is sent", "only GET and HEAD count as reads"],
        "replaces": null,
        "outcome": "installed",
    })
}

impl Judged {
    pub(super) fn outcome(&self) -> Outcome {
        self.outcome
    }

    pub(super) fn of(
        package: &Verified,
        key_id: String,
        replaces: Option<Replaced>,
        outcome: Outcome,
    ) -> Self {
        let manifest = package.manifest();
        Self {
            id: manifest.id.clone(),
            version: manifest.version.to_string(),
            publisher: manifest.publisher.clone(),
            key_id,
            manifest_sha256: package.manifest_sha256().to_owned(),
            component_sha256: package.component_sha256().to_owned(),
            capabilities: capabilities(manifest),
            rules: in_words(manifest),
            replaces,
            outcome,
        }
    }
}

/// A package of an adapter that served at some time.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AdapterPackage")]
pub(super) struct Package {
    /// Version of the package, such as `1.4.0`.
    version: String,
    /// SHA-256 of its manifest, hexadecimal: names this very package.
    manifest_sha256: String,
    /// Name of the publisher.
    publisher: String,
    /// Id of the publisher's key that signed it.
    key_id: String,
    /// It serves in this process.
    serves: bool,
    /// It serves although a newer version did, until a newer one is installed.
    pinned: bool,
    /// It is kept in the database, and can be put back in service.
    kept: bool,
    /// When it first served.
    first_served_at: Timestamp,
    /// When it was last installed over the API, or kept for a rollback; null where it was only ever in a folder.
    installed_at: Option<Timestamp>,
    /// Name of the user who installed it; null where it came from a folder.
    installed_by: Option<String>,
}

/// The packages of an adapter that served, the latest first. At most 100 are listed, so there are no pages.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AdapterPackages", example = list_example())]
pub(super) struct Packages {
    pub(super) items: Vec<Package>,
}

fn list_example() -> serde_json::Value {
    json!({ "items": [{
        "version": "0.2.0",
        "manifest_sha256": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
        "publisher": "acme",
        "key_id": "5f2b9c0d7a1e4f63",
        "serves": true,
        "pinned": false,
        "kept": true,
        "first_served_at": "2026-01-05T08:00:00Z",
        "installed_at": "2026-01-05T08:00:00Z",
        "installed_by": "ada",
    }] })
}

impl Package {
    /// `serving` is the SHA-256 of the manifest of the package that serves in this process.
    pub(super) fn of(known: Known, serving: Option<&str>, installed: Option<&Installed>) -> Self {
        let is_installed = |one: &&Installed| one.manifest_sha256 == known.manifest_sha256;
        Self {
            serves: serving == Some(known.manifest_sha256.as_str()),
            pinned: installed.filter(is_installed).is_some_and(|one| one.is_pinned),
            version: known.version,
            manifest_sha256: known.manifest_sha256,
            publisher: known.publisher,
            key_id: known.key_id,
            kept: known.is_kept,
            first_served_at: known.first_served_at,
            installed_at: known.installed_at,
            installed_by: known.installed_by,
        }
    }
}
