//! The catalogue: publishers with their keys, and plugins with their versions.

use std::fmt;

use semver::Version;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::bounds::{
    CATALOG_BYTES_MAX, CATEGORIES_MAX, PLUGIN_VERSIONS_MAX, PLUGINS_MAX, PUBLISHER_IDS_MAX,
    PUBLISHER_KEYS_MAX, PUBLISHERS_MAX, SIGNERS_MAX,
};
use super::error::Refusal;
use super::time::{self, Time};
use super::{CATALOG, rules, strict};
use crate::manifest::Kind;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Tag {
    #[serde(rename = "catalog")]
    Catalog,
}

/// `catalog.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Catalog {
    #[serde(rename = "type")]
    tag: Tag,
    pub version: u64,
    #[serde(with = "time")]
    pub expires: Time,
    /// Each id once.
    #[serde(deserialize_with = "strict::list::<_, _, PUBLISHERS_MAX>")]
    pub publishers: Vec<Publisher>,
    /// Each id once.
    #[serde(deserialize_with = "strict::list::<_, _, PLUGINS_MAX>")]
    pub plugins: Vec<Plugin>,
}

/// A person or company that provides plugins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Publisher {
    /// As manifests name it.
    pub id: String,
    /// For people.
    pub name: String,
    /// Two keys of overlapping times are a rotation. A key belongs to one publisher.
    #[serde(deserialize_with = "strict::list::<_, _, PUBLISHER_KEYS_MAX>")]
    pub keys: Vec<ListedKey>,
    /// Plugins that the keys may sign: exact ids, or beginnings that end with `*`.
    #[serde(deserialize_with = "strict::list::<_, _, PUBLISHER_IDS_MAX>")]
    pub ids: Vec<String>,
}

/// A key of a publisher, and when it is valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ListedKey {
    /// SHA-256 of the 32 bytes, lower-case hex.
    pub keyid: String,
    /// Ed25519 public key, 64 hex digits.
    pub public: String,
    /// First moment at which it signs.
    #[serde(with = "time")]
    pub not_before: Time,
    /// First moment at which it does not sign any more.
    #[serde(with = "time")]
    pub not_after: Time,
}

/// What can be installed, as a person looks at it before.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Plugin {
    pub id: String,
    /// Id of a publisher of this catalogue whose `ids` cover the plugin.
    pub publisher: String,
    pub kind: Kind,
    pub name: String,
    /// One line.
    pub summary: String,
    /// Several lines of plain text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Words such as `switching`: a-z, 0-9 and `-`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(deserialize_with = "strict::list::<_, _, CATEGORIES_MAX>")]
    pub categories: Vec<String>,
    pub license: String,
    /// An address of `https:` or `http:`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub homepage: Option<String>,
    /// `icons/<sha256>.svg` or `.png`, beside the catalogue: the name says which bytes it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
    /// In any order, each once.
    #[serde(deserialize_with = "strict::list::<_, _, PLUGIN_VERSIONS_MAX>")]
    pub versions: Vec<PluginVersion>,
}

/// One version of a plugin.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PluginVersion {
    pub version: Version,
    pub package: Archive,
    /// SHA-256 of the exact manifest, lower-case hex.
    pub manifest_sha256: String,
    /// SHA-256 of the component, lower-case hex.
    pub component_sha256: String,
    /// Interface version, `major.minor`.
    pub api: String,
    /// Oldest version of the server that may run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_host: Option<Version>,
    #[serde(with = "time")]
    pub released: Time,
    /// Not offered any more, and not dangerous: where it is installed, it stays.
    pub yanked: bool,
    /// Ids of the publisher's keys that signed it, so that a revoked key is seen before anything is fetched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(deserialize_with = "strict::list::<_, _, SIGNERS_MAX>")]
    pub signed_by: Vec<String>,
    /// What it asks for, as its manifest says: a JSON object. What counts is the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Box<RawValue>>,
    /// Permissions that it brings: a JSON array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Box<RawValue>>,
}

/// Where the archive of a package is, and what it has to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    /// A path beside the catalogue such as `packages/<sha256>.zip`, or an address of `https:` or `http:`.
    pub url: String,
    /// Bytes.
    pub length: u64,
    /// Lower-case hex.
    pub sha256: String,
}

impl fmt::Debug for PluginVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PluginVersion({}, {})", self.version, self.package.sha256)
    }
}

impl Catalog {
    /// A catalogue of nothing.
    #[must_use]
    pub fn empty(version: u64, expires: Time) -> Self {
        Self { tag: Tag::Catalog, version, expires, publishers: Vec::new(), plugins: Vec::new() }
    }

    /// Parses a catalogue whose signatures were verified.
    pub fn parse(content: &[u8]) -> Result<Self, Refusal> {
        let catalog: Self = strict::parse(CATALOG, content, CATALOG_BYTES_MAX)?;
        rules::check(&catalog).map_err(|problem| Refusal::Format { file: CATALOG.to_owned(), problem })?;
        Ok(catalog)
    }

    /// Returns the file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("it has text keys only")
    }

    /// A plugin by its id.
    #[must_use]
    pub fn plugin(&self, id: &str) -> Option<&Plugin> {
        self.plugins.iter().find(|plugin| plugin.id == id)
    }

    /// A publisher by its id.
    #[must_use]
    pub fn publisher(&self, id: &str) -> Option<&Publisher> {
        self.publishers.iter().find(|publisher| publisher.id == id)
    }
}
