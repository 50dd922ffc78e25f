//! The root: which keys sign what, and how many of them it takes.

use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use super::bounds::{ROLE_KEYS_MAX, ROOT_BYTES_MAX, ROOT_KEYS_MAX};
use super::error::Refusal;
use super::signed::Document;
use super::time::{self, Time};
use super::{root_name, strict};
use crate::{keys, signature};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Tag {
    #[serde(rename = "root")]
    Root,
}

/// `N.root.json`: the keys of a catalogue. The next root is signed by the keys of this one and by its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Root {
    #[serde(rename = "type")]
    tag: Tag,
    /// From 1; the next root has the next one.
    pub version: u64,
    #[serde(with = "time")]
    pub expires: Time,
    /// Each once; a key that no role names has no power.
    pub keys: Vec<RootKey>,
    pub roles: Roles,
}

/// A key by its id and its bytes, which must agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RootKey {
    /// SHA-256 of the 32 bytes, lower-case hex.
    pub keyid: String,
    /// Ed25519 public key, 64 hex digits.
    pub public: String,
}

impl RootKey {
    /// The entry of a public key.
    #[must_use]
    pub fn of(public: &[u8; 32]) -> Self {
        Self { keyid: signature::key_id(public), public: hex::encode(public) }
    }
}

/// The three roles. All of them are there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roles {
    pub root: Role,
    pub catalog: Role,
    pub timestamp: Role,
}

/// What signs one kind of file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    pub keyids: Vec<String>,
    /// How many of the keys must sign: at least 1, at most all.
    pub threshold: usize,
}

impl Root {
    /// A root of these keys and roles, which nothing has judged yet.
    #[must_use]
    pub fn new(version: u64, expires: Time, keys: Vec<RootKey>, roles: Roles) -> Self {
        Self { tag: Tag::Root, version, expires, keys, roles }
    }

    /// Parses a root that is trusted: one whose signatures were verified, or the first one, which is a setting of the
    /// server. `file` names it in refusals.
    pub fn parse(file: &str, content: &[u8]) -> Result<Self, Refusal> {
        let root: Self = strict::parse(file, content, ROOT_BYTES_MAX)?;
        root.check().map_err(|problem| Refusal::Format { file: file.to_owned(), problem })?;
        Ok(root)
    }

    /// Returns the file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("it has text keys only")
    }

    /// `N.root.json`.
    #[must_use]
    pub fn name(&self) -> String {
        root_name(self.version)
    }

    /// The role that signs a kind of file.
    #[must_use]
    pub fn role(&self, document: Document) -> &Role {
        match document {
            Document::Root => &self.roles.root,
            Document::Catalog => &self.roles.catalog,
            Document::Timestamp => &self.roles.timestamp,
        }
    }

    /// Public keys of a role.
    #[must_use]
    pub fn keys_of(&self, document: Document) -> Vec<[u8; 32]> {
        let ids = &self.role(document).keyids;
        let listed = self.keys.iter().filter(|key| ids.contains(&key.keyid));
        listed.filter_map(|key| keys::decode(&key.public)).collect()
    }

    /// Whether the keys that signed a known file are still enough for its role. A file for which they are not is forgotten, so
    /// that the version of a thief does not outlast the stolen key. A key that is only added makes nothing forgotten: else
    /// old files by the other keys would be taken again.
    pub(crate) fn is_enough(&self, document: Document, signers: &BTreeSet<String>) -> bool {
        let role = self.role(document);
        role.keyids.iter().filter(|id| signers.contains(*id)).count() >= role.threshold
    }

    fn check(&self) -> Result<(), String> {
        strict::version(self.version)?;
        strict::count("keys", self.keys.len(), ROOT_KEYS_MAX)?;
        let mut known = HashSet::new();
        for key in &self.keys {
            let id = strict::shown(&key.keyid);
            let public = keys::decode(&key.public).filter(keys::is_sound);
            let public =
                public.ok_or_else(|| format!("key '{id}' is no Ed25519 public key as 64 hex digits"))?;
            if signature::key_id(&public) != key.keyid {
                return Err(format!("key '{id}' is listed under an id that is not its own"));
            }
            if !known.insert(key.keyid.as_str()) {
                return Err(format!("key '{id}' is listed twice"));
            }
        }
        for (name, role) in [
            ("root", &self.roles.root),
            ("catalog", &self.roles.catalog),
            ("timestamp", &self.roles.timestamp),
        ] {
            strict::count(&format!("keys of the role '{name}'"), role.keyids.len(), ROLE_KEYS_MAX)?;
            let distinct: HashSet<&str> = role.keyids.iter().map(String::as_str).collect();
            if distinct.len() != role.keyids.len() {
                return Err(format!("the role '{name}' names a key twice"));
            }
            if let Some(id) = distinct.iter().find(|id| !known.contains(**id)) {
                return Err(format!(
                    "the role '{name}' names the key '{}', which is not listed",
                    strict::shown(id)
                ));
            }
            if !(1..=distinct.len()).contains(&role.threshold) {
                return Err(format!(
                    "the threshold of the role '{name}' is {} of {} keys",
                    role.threshold,
                    distinct.len()
                ));
            }
        }
        Ok(())
    }
}
