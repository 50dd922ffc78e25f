//! A registry, made with the tool that its operators use, in a folder and on a web server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use heddle_core::Clock;
use heddle_marketplace::PublisherKey;
use heddle_marketplace::catalog::{CatalogRef, Document, Revocation, Signatures, Timestamp};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::support::target_folder;

const KEYS: [&str; 6] = ["root-1", "root-2", "root-3", "catalog", "timestamp", "thief"];

/// A registry whose publisher is `acme`.
pub(crate) struct Registry {
    folder: TempDir,
    pub(crate) acme: PublisherKey,
}

/// What is served.
pub(super) type Files = BTreeMap<PathBuf, Vec<u8>>;

impl Registry {
    pub(crate) fn new() -> Self {
        let registry =
            Self { folder: tempfile::tempdir().unwrap(), acme: PublisherKey::generate("acme").unwrap() };
        for name in KEYS {
            does(&["keygen", "--name", name, "--out", &registry.key(name)]);
        }
        registry.acme.save(&registry.path("acme.key")).unwrap();
        let home = registry.home();
        let roots = ["root-1", "root-2", "root-3"].map(|name| registry.key(name));
        let mut init = vec!["init", &home, "--root-threshold", "2"];
        for key in &roots {
            init.extend(["--root-key", key]);
        }
        let (catalog, timestamp) = (registry.key("catalog"), registry.key("timestamp"));
        init.extend(["--catalog-key", &catalog, "--timestamp-key", &timestamp]);
        does(&init);
        does(&["sign", &home, "--key", &roots[0]]);
        does(&["sign", &home, "--key", &roots[1]]);
        let acme = registry.key("acme");
        does(&[
            "publisher",
            &home,
            "--id",
            "acme",
            "--name",
            "ACME",
            "--key",
            &acme,
            "--may-sign",
            "scripted",
            "--may-sign",
            "acme-*",
        ]);
        registry
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn key(&self, name: &str) -> String {
        self.path(&format!("{name}.key")).display().to_string()
    }

    /// The public half of a key, hexadecimal.
    pub(super) fn public(&self, name: &str) -> String {
        hex::encode(PublisherKey::load(&self.path(&format!("{name}.key"))).unwrap().trusted().key)
    }

    pub(super) fn home(&self) -> String {
        self.path("registry").display().to_string()
    }

    /// The folder that is served.
    pub(crate) fn served(&self) -> PathBuf {
        self.path("registry/public")
    }

    /// The first root, as an operator is given it.
    pub(super) fn root(&self) -> String {
        self.served().join("1.root.json").display().to_string()
    }

    /// Has the catalogue list the publisher's key for one more plugin.
    pub(crate) fn may_sign(&self, id: &str) {
        does(&["publisher", &self.home(), "--id", "acme", "--may-sign", id]);
    }

    /// Adds a package, and publishes.
    pub(crate) fn add(&self, archive: &[u8]) {
        let path = self.path("package.zip");
        std::fs::write(&path, archive).unwrap();
        let path = path.display().to_string();
        does(&["add", &self.home(), &path, "--summary", "Does what it is told", "--category", "testing"]);
        self.publish();
    }

    pub(super) fn publish(&self) {
        let (catalog, timestamp) = (self.key("catalog"), self.key("timestamp"));
        does(&["publish", &self.home(), "--catalog-key", &catalog, "--timestamp-key", &timestamp]);
    }

    /// Revokes a plugin or what a hash names, and says so.
    pub(super) fn revoke(&self, kind: &str, value: &str, action: &str) {
        self.revoke_versions((kind, value), None, action);
    }

    /// Revokes these versions alone, such as `<1.1.0`.
    pub(super) fn revoke_versions(&self, (kind, value): (&str, &str), versions: Option<&str>, action: &str) {
        let home = self.home();
        let mut words = vec!["revoke", &home, "--kind", kind, "--value", value, "--action", action];
        words.extend(["--reason", "it steals"]);
        words.extend(versions.iter().flat_map(|versions| ["--versions", *versions]));
        does(&words);
        does(&["timestamp", &home, "--key", &self.key("timestamp")]);
    }

    /// All that is served now.
    pub(super) fn files(&self) -> Files {
        let mut files = Files::new();
        collect(&self.served(), &mut files);
        files
    }

    /// Serves exactly these files from now on.
    pub(super) fn put_back(&self, files: &Files) {
        std::fs::remove_dir_all(self.served()).unwrap();
        for (path, bytes) in files {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
    }

    pub(super) fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.served().join(name), bytes).unwrap();
    }

    pub(super) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.served().join(name)).unwrap()
    }

    /// Replaces the timestamp by one of this version that lasts so long, signed by this key, for what the catalogue is now.
    pub(super) fn stamp(&self, version: u64, lasts: Duration, key: &str) {
        let catalog = self.read("catalog.json");
        let parsed: serde_json::Value = serde_json::from_slice(&catalog).unwrap();
        let current: serde_json::Value = serde_json::from_slice(&self.read("timestamp.json")).unwrap();
        let revocations: Vec<Revocation> = serde_json::from_value(current["revocations"].clone()).unwrap();
        let listed = CatalogRef {
            version: parsed["version"].as_u64().unwrap(),
            length: u64::try_from(catalog.len()).unwrap(),
            sha256: hex::encode(Sha256::digest(&catalog)),
        };
        // Times of signed files have whole seconds.
        let now = Clock::default().now();
        let now = now - chrono::TimeDelta::nanoseconds(i64::from(now.timestamp_subsec_nanos()));
        let bytes = Timestamp::new(version, now, now + lasts, listed, revocations).to_bytes();
        let mut signatures = Signatures::default();
        let key = PublisherKey::load(Path::new(&self.key(key))).unwrap();
        signatures.sign(Document::Timestamp, &bytes, key.signing()).unwrap();
        self.write("timestamp.json", &bytes);
        self.write("timestamp.json.sig", &signatures.to_bytes());
    }
}

fn collect(folder: &Path, files: &mut Files) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
}

/// Has the tool carry out a command.
#[track_caller]
pub(super) fn does(arguments: &[&str]) {
    let output =
        Command::new(target_folder().join("debug/heddle-marketplace")).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
}
