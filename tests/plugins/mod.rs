//! Plugins as a `super_admin`, an administrator of an organization and the author of a Connection use them.
//!
//! The guest is `tests/plugin`, whose actions do what their parameters say.

mod actions;
mod consent;
mod crash;
mod elsewhere;
mod events;
mod examples;
mod hooks;
mod install;
mod keeping;
mod lifecycle;
mod migration;
mod organization;
mod origin;
mod services;
mod timers;
mod triggers;
mod watcher;

use std::collections::BTreeMap;

use heddle_core::Role;
use heddle_marketplace::{
    PublisherKey, TrustedKey, pack, parse_trusted_keys, write_archive, write_trusted_keys,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixtures::member;
use crate::sandbox::device::Device;
use crate::support::{Answer, Api, Database, Options, Server, packages, target_folder};

/// The secret that the organization gives the plugin.
const SECRET: &str = "plugin-canary-9kW2x";

/// A trusted publisher of plugins, and one that is not.
pub(crate) struct Keys {
    folder: TempDir,
    pub(crate) acme: PublisherKey,
    globex: PublisherKey,
}

impl Keys {
    pub(crate) fn new() -> Self {
        let key = |name: &str| PublisherKey::generate(name).unwrap();
        let keys = Self { folder: tempfile::tempdir().unwrap(), acme: key("acme"), globex: key("globex") };
        keys.trust(&[keys.acme.trusted()]);
        keys
    }

    /// Trusts these keys in addition to those of the adapters.
    fn trust(&self, more: &[TrustedKey]) {
        let adapters = std::fs::read(packages().join("trusted-keys.json")).unwrap();
        let mut keys = parse_trusted_keys(&adapters).unwrap();
        keys.extend(more.iter().cloned());
        std::fs::write(self.file(), write_trusted_keys(&keys)).unwrap();
    }

    fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("trusted-keys.json")
    }

    pub(crate) fn options(&self) -> Options {
        Options::default()
            .with("ADAPTER_TRUSTED_KEYS", self.file().display().to_string())
            .with("PLUGIN_PRIVATE_NETWORKS", "127.0.0.0/8")
    }
}

/// A manifest that gives the guest what it may have, with a server of the test as its target.
pub(crate) fn manifest(device: &str) -> Value {
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

/// The guest, as `cargo xtask components` builds it.
pub(crate) fn guest() -> Vec<u8> {
    let path = target_folder().join("guests/plugin.wasm");
    std::fs::read(&path)
        .unwrap_or_else(|_| panic!("'{}' is missing; run 'cargo xtask components' first", path.display()))
}

pub(crate) fn archive_of(manifest: &Value, component: Vec<u8>, key: &PublisherKey) -> Vec<u8> {
    let contents = BTreeMap::from([("component.wasm".to_owned(), component)]);
    write_archive(&pack(manifest.to_string().as_bytes(), contents, key).unwrap()).unwrap()
}

/// A server, its first admin, and what the plugin reaches.
struct Lab {
    server: Server,
    /// The `super_admin` of the first organization.
    api: Api,
    device: Device,
    keys: Keys,
}

impl Lab {
    async fn start(database: Database) -> Self {
        let (keys, device) = (Keys::new(), Device::start().await);
        let server = Server::start_with(database, keys.options()).await;
        let api = server.set_up().await;
        Self { server, api, device, keys }
    }

    /// The same with the plugin in service, and switched on in the first organization.
    async fn in_use(database: Database) -> Self {
        let lab = Self::start(database).await;
        send(&lab.api, &lab.archive(|_| ())).await.expect_status(201);
        agree(&lab.api).await;
        lab.switch_on(&lab.api).await;
        lab
    }

    /// A package of the guest with this change of its manifest.
    fn archive(&self, change: impl FnOnce(&mut Value)) -> Vec<u8> {
        let mut manifest = manifest(&self.device.url());
        change(&mut manifest);
        archive_of(&manifest, guest(), &self.keys.acme)
    }

    /// One of this version, and nothing else changed.
    fn version(&self, version: &str) -> Vec<u8> {
        self.archive(|manifest| manifest["version"] = json!(version))
    }

    async fn switch_on(&self, api: &Api) {
        let body = json!({ "enabled": true, "settings": { "team": "night" } });
        api.put("/plugins/scripted/organization", &body).await.expect_status(200);
    }

    async fn organization(&self) -> String {
        let me = self.api.get("/auth/me").await.expect_status(200).body;
        me["organization_id"].as_str().unwrap().to_owned()
    }

    /// A member of the first organization.
    async fn member(&self, role: Role, name: &str) -> Api {
        member(&self.server, &self.organization().await, role, name).await.1
    }

    /// An administrator of another organization.
    async fn stranger(&self) -> Api {
        let other =
            self.api.post("/organizations", &json!({ "name": "Umbrella" })).await.expect_status(201).body;
        member(&self.server, other["id"].as_str().unwrap(), Role::OrgAdmin, "uma").await.1
    }

    async fn restart(&mut self) {
        self.server.restart().await;
        self.api = self.server.log_in("ada").await;
    }
}

/// Sends a package.
pub(crate) async fn send(api: &Api, archive: &[u8]) -> Answer {
    api.with("content-type", "application/zip").send("POST", "/plugins/install", Some(archive.to_vec())).await
}

/// Agrees to what the waiting package may do.
pub(crate) async fn agree(api: &Api) -> Value {
    let asked = api.get("/plugins/scripted/consent").await.expect_status(200).body;
    let body = json!({ "grant_hash": asked["grant_hash"] });
    api.post("/plugins/scripted/consent", &body).await.expect_status(200).body
}

pub(crate) async fn plugin(api: &Api) -> Value {
    api.get("/plugins/scripted").await.expect_status(200).body
}

pub(crate) async fn change(api: &Api, verb: &str) -> Answer {
    api.post(&format!("/plugins/scripted/{verb}"), &json!({})).await
}

/// Has an action of the plugin carried out at once, and answers its run.
pub(crate) async fn act(api: &Api, action: &str, step: Value) -> Value {
    let body = json!({ "operation_id": format!("plugin.scripted.{action}"), "params": step });
    api.post("/actions", &body).await.expect_status(201).body
}

/// The output of an action that works.
pub(crate) async fn works(api: &Api, action: &str, step: Value) -> Value {
    let run = act(api, action, step).await;
    assert_eq!(run["success"], true, "{run}");
    run["steps"][0]["output"].clone()
}

/// Code and message of an action that fails.
pub(crate) async fn fails(api: &Api, action: &str, step: Value) -> (String, String) {
    let run = act(api, action, step).await;
    assert_eq!(run["success"], false, "{run}");
    let step = &run["steps"][0];
    (step["error_code"].as_str().unwrap().to_owned(), step["message"].as_str().unwrap().to_owned())
}

/// The states that events tell of the plugin's packages, the oldest first, with the version.
pub(crate) async fn told(api: &Api) -> Vec<(String, String)> {
    let events = api.get("/events?event_type=plugin.state_changed&per_page=100&sort=occurred_at").await;
    let events = events.expect_status(200).body;
    let text = |event: &Value, field: &str| event["payload"][field].as_str().unwrap().to_owned();
    let items = events["items"].as_array().unwrap();
    items.iter().map(|event| (text(event, "version"), text(event, "state"))).collect()
}

pub(crate) fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(version, state)| ((*version).to_owned(), (*state).to_owned())).collect()
}

/// The newest entry of the audit log with this action.
pub(crate) async fn entry(api: &Api, action: &str) -> Value {
    let entries = api.get(&format!("/audit?action={action}")).await.expect_status(200).body;
    entries["items"][0].clone()
}

/// Whether the catalogue offers an action of the plugin.
pub(crate) async fn is_offered(api: &Api) -> bool {
    let catalog = api.get("/fabric/catalog?owner=scripted").await.expect_status(200).body;
    !catalog["operations"].as_array().unwrap().is_empty()
}
