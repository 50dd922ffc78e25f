//! Plugins as a `super_admin`, an administrator of an organization and the author of a Connection use them.
//!
//! The guest is `tests/plugin`, whose actions do what their parameters say.

mod actions;
mod consent;
mod crash;
mod crash_updates;
mod elsewhere;
mod events;
mod examples;
mod hooks;
mod install;
mod keeping;
pub(crate) mod kills;
mod lifecycle;
mod migration;
mod organization;
mod origin;
mod services;
pub(crate) mod standing;
mod swaps;
mod timers;
mod triggers;
mod turns;
mod watcher;

use heddle_core::Role;
use serde_json::{Value, json};

use crate::fixtures::member;
use crate::sandbox::device::Device;
use crate::support::plugins;
pub(crate) use crate::support::plugins::{Keys, archive_of, send};
use crate::support::{Answer, Api, Database, Server};

/// The secret that the organization gives the plugin.
const SECRET: &str = "plugin-canary-9kW2x";

/// A manifest that gives the guest what it may have, with a server of the test as its target.
pub(crate) fn manifest(device: &str) -> Value {
    plugins::scripted(device)
}

/// The guest, as `cargo xtask components` builds it.
pub(crate) fn guest() -> Vec<u8> {
    plugins::guest("plugin")
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
        self.stranger_of("Umbrella", "uma").await
    }

    /// A user of an organization that is made for them.
    async fn stranger_of(&self, organization: &str, user: &str) -> Api {
        let other = self.api.post("/organizations", &json!({ "name": organization })).await;
        let id = other.expect_status(201).body["id"].as_str().unwrap().to_owned();
        member(&self.server, &id, Role::OrgAdmin, user).await.1
    }

    async fn restart(&mut self) {
        self.server.restart().await;
        self.api = self.server.log_in("ada").await;
    }
}

/// Agrees to what the waiting package may do.
pub(crate) async fn agree(api: &Api) -> Value {
    plugins::agree(api, "scripted").await
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
