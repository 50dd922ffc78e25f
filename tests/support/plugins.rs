//! Packages of plugins as a test or a bench makes, sends and agrees to them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use heddle_marketplace::{
    PublisherKey, TrustedKey, pack, parse_trusted_keys, write_archive, write_trusted_keys,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Answer, Api, Options, packages, target_folder, variable};

/// A trusted publisher of plugins, and one that is not.
pub(crate) struct Keys {
    folder: TempDir,
    pub(crate) acme: PublisherKey,
    pub(crate) globex: PublisherKey,
}

impl Keys {
    pub(crate) fn new() -> Self {
        let key = |name: &str| PublisherKey::generate(name).expect("a key can be made");
        let keys = Self {
            folder: tempfile::tempdir().expect("a folder can be made"),
            acme: key("acme"),
            globex: key("globex"),
        };
        keys.trust(&[keys.acme.trusted()]);
        keys
    }

    /// Trusts these keys in addition to those of the adapters.
    pub(crate) fn trust(&self, more: &[TrustedKey]) {
        let adapters = std::fs::read(packages().join("trusted-keys.json")).expect("packages are built");
        let mut keys = parse_trusted_keys(&adapters).expect("the keys are sound");
        keys.extend(more.iter().cloned());
        std::fs::write(self.file(), write_trusted_keys(&keys)).expect("a file can be written");
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("trusted-keys.json")
    }

    pub(crate) fn options(&self) -> Options {
        Options::default()
            .with("ADAPTER_TRUSTED_KEYS", self.file().display().to_string())
            .with("PLUGIN_PRIVATE_NETWORKS", "127.0.0.0/8")
    }
}

/// A guest of the tests, as `cargo xtask components` builds it.
pub(crate) fn guest(name: &str) -> Vec<u8> {
    let path = target_folder().join(format!("guests/{name}.wasm"));
    std::fs::read(&path)
        .unwrap_or_else(|_| panic!("'{}' is missing; run 'cargo xtask components' first", path.display()))
}

/// The folder in which `cargo xtask test` built an example plugin.
pub(crate) fn example_folder(id: &str) -> PathBuf {
    let folder =
        variable("HEDDLE_PLUGINS").map_or_else(|| target_folder().join("plugins"), PathBuf::from).join(id);
    assert!(folder.is_dir(), "'{}' is missing; 'cargo xtask test' builds the plugins", folder.display());
    folder
}

/// Manifest and component of an example plugin.
pub(crate) fn example(id: &str) -> (Value, Vec<u8>) {
    let folder = example_folder(id);
    let read = |name: &str| std::fs::read(folder.join(name)).expect("the plugin is built");
    let manifest = serde_json::from_slice(&read("manifest.json")).expect("a manifest is JSON");
    (manifest, read(".heddle/component.wasm"))
}

pub(crate) fn archive_of(manifest: &Value, component: Vec<u8>, key: &PublisherKey) -> Vec<u8> {
    let contents = BTreeMap::from([("component.wasm".to_owned(), component)]);
    let files = pack(manifest.to_string().as_bytes(), contents, key).expect("the package is sound");
    write_archive(&files).expect("an archive can be written")
}

/// A manifest that gives the guest `plugin` what it may have, with this server as its target.
pub(crate) fn scripted(device: &str) -> Value {
    let object = || json!({ "type": "object" });
    let action = |id: &str, effect: &str| json!({ "id": id, "title": id, "effect": effect, "params-schema": object(), "output-schema": object() });
    json!({
        "schema": 1, "id": "scripted", "version": "1.0.0", "kind": "plugin", "api": "1.0", "name": "Scripted",
        "license": "Apache-2.0", "component": "component.wasm", "limits": { "cpu-ms": 5_000, "requests": 16 },
        "capabilities": {
            "http": [{
                "name": "api", "origin": device, "methods": ["GET", "POST"], "paths": ["/v1/**"], "private": true,
            }],
            "secrets": [{ "name": "key", "target": "api", "places": ["header:X-Key"] }],
            "events": { "emit": ["plugin.scripted.done"] },
            "fabric": { "call": ["sites.list", "fabric.log", "openwrt.firewall.rule.create"] },
            "kv": { "bytes": 2_000 },
        },
        "permissions": [{ "id": "plugin.scripted.use", "title": "Use the plugin" }],
        "event-types": [{ "type": "plugin.scripted.done", "title": "Done", "payload-schema": {
            "type": "object", "properties": { "n": { "type": "integer" } }, "additionalProperties": false
        } }],
        "actions": [action("look", "read"), action("arrange", "stage"), action("act", "outward")],
        "config-schema": {
            "type": "object", "properties": { "team": { "type": "string", "maxLength": 10 } },
            "required": ["team"], "additionalProperties": false,
        },
    })
}

/// A manifest with all that can call the guest `watcher`, and this server as its target.
pub(crate) fn watcher(device: &str) -> Value {
    let object = || json!({ "type": "object" });
    json!({
        "schema": 1, "id": "watcher", "version": "1.0.0", "kind": "plugin", "api": "1.0", "name": "Watcher",
        "license": "Apache-2.0", "component": "component.wasm",
        "capabilities": {
            "http": [{ "name": "api", "origin": device, "methods": ["POST"], "paths": ["/v1/**"], "private": true }],
            "secrets": [{ "name": "key", "target": "api", "places": ["bearer"] }],
            "events": { "emit": ["plugin.watcher.seen"], "subscribe": ["ingest.external", "controller.change.staged"] },
            "fabric": { "call": ["openwrt.firewall.rule.create"] },
            "kv": { "bytes": 100_000, "migrates": true },
            "schedule": { "min-interval-s": 60 },
        },
        "event-types": [{ "type": "plugin.watcher.seen", "title": "Seen", "payload-schema": object() }],
        "triggers": [
            { "id": "seen", "title": "Write down", "effect": "outward", "events": ["ingest.external"] },
            { "id": "restage", "title": "Stage once more", "effect": "stage", "events": ["controller.change.staged"] },
            { "id": "nightly", "title": "By the clock", "effect": "read" },
        ],
        "tools": [{
            "id": "ask", "title": "Ask", "description": "Says what called the plugin.",
            "params-schema": object(), "output-schema": object(),
        }],
        "hooks": [
            { "name": "answers", "title": "Answers", "effect": "outward", "signature": {
                "scheme": "hmac-sha256", "secret": "signing-secret", "header": "x-signature", "prefix": "v0=",
                "signed": "v0:{header.x-time}:{body}", "timestamp": { "header": "x-time", "tolerance-s": 300 },
            } },
            { "name": "ping", "title": "Ping", "effect": "read", "signature": {
                "scheme": "token", "secret": "ping-token", "header": "x-token",
            } },
        ],
        "config-schema": { "type": "object" },
    })
}

/// The same manifest for a plugin of another id.
pub(crate) fn named(manifest: &Value, id: &str) -> Value {
    let own = manifest["id"].as_str().expect("a plugin has an id");
    serde_json::from_str(&manifest.to_string().replace(own, id)).expect("an id needs no quotes")
}

/// Sends a package.
pub(crate) async fn send(api: &Api, archive: &[u8]) -> Answer {
    api.with("content-type", "application/zip").send("POST", "/plugins/install", Some(archive.to_vec())).await
}

/// Agrees to what the waiting package of this plugin may do.
pub(crate) async fn agree(api: &Api, id: &str) -> Value {
    let asked = api.get(&format!("/plugins/{id}/consent")).await.expect_status(200).body;
    let body = json!({ "grant_hash": asked["grant_hash"] });
    api.post(&format!("/plugins/{id}/consent"), &body).await.expect_status(200).body
}
