//! Sets of changes over several controllers: in effect everywhere, or nowhere, or the set says what is where.

mod ends;
mod gates;
mod stuck;
mod windows;

use std::time::Duration;

use serde_json::{Value, json};

use super::Lab;
use super::scripted::{Device, stage};
use crate::support::{Answer, Api, Database, Options, Server};

/// A server, and several devices that say themselves what their adapter does. The devices are applied in their order here:
/// nothing is known of how far they are.
struct World {
    server: Server,
    api: Api,
    devices: Vec<Device>,
    controllers: Vec<String>,
}

impl World {
    async fn start(database: Database, devices: usize) -> Self {
        Self::start_with(database, devices, |options| options).await
    }

    async fn start_with(database: Database, count: usize, with: impl FnOnce(Options) -> Options) -> Self {
        let mut devices = Vec::new();
        for _ in 0..count {
            devices.push(Device::start().await);
        }
        let server = Server::start_with(database, with(devices[0].options())).await;
        let api = server.set_up().await;
        let mut controllers = Vec::new();
        for device in &devices {
            controllers.push(device.register(&api).await);
        }
        Self { server, api, devices, controllers }
    }

    async fn stage(&self, at: usize, name: &str) -> Value {
        stage(&self.api, &self.controllers[at], name).await
    }

    /// Stages a change at each device.
    async fn stage_each(&self) -> Vec<Value> {
        let mut changes = Vec::new();
        for at in 0..self.devices.len() {
            changes.push(self.stage(at, &format!("at {at}")).await);
        }
        changes
    }

    /// A set of one change at each device.
    async fn set(&self) -> Value {
        let changes = self.stage_each().await;
        self.set_of(&changes.iter().collect::<Vec<_>>()).await
    }

    async fn set_of(&self, changes: &[&Value]) -> Value {
        let ids: Vec<&Value> = changes.iter().map(|change| &change["id"]).collect();
        let body = json!({ "change_ids": ids });
        let set = self.api.post("/gateway-vpn/changes/sets", &body).await.expect_status(201).body;
        assert!(set["plan"]["hash"].is_string(), "{set}");
        set
    }

    async fn act(&self, set: &Value, verb: &str, body: &Value) -> Answer {
        self.api.post(&path(set, verb), body).await
    }

    async fn apply(&self, set: &Value) -> Answer {
        self.act(set, "apply", &json!({ "force": true, "plan_hash": set["plan"]["hash"] })).await
    }

    /// Applies with a window, which is then open.
    async fn hold(&self, set: &Value) -> Value {
        let body = json!({ "force": true, "confirm_within_secs": 60 });
        let held = self.act(set, "apply", &body).await.expect_status(200).body;
        assert_eq!(held["outcome"]["state"], "awaiting_confirm", "{held}");
        held
    }

    async fn get(&self, set: &Value) -> Value {
        self.api.get(&path(set, "")).await.expect_status(200).body
    }

    /// Waits until the set is in this state, and nothing is under way.
    async fn comes_to(&self, set: &Value, state: &str) -> Value {
        for _ in 0..900 {
            let seen = self.get(set).await;
            if seen["outcome"]["state"] == *state && seen["outcome"]["step"] == "idle" {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the set does not become {state}: {}", self.get(set).await);
    }

    /// The stages that arrived at a device.
    fn sent(&self, at: usize) -> Vec<String> {
        self.devices[at].script().sent.clone()
    }

    /// Whether the device reads as before.
    fn is_before(&self, at: usize) -> bool {
        self.devices[at].script().compare["standing"] == "before"
    }

    /// Has the device refuse the call of an apply, which it then did not carry out.
    fn refuse(&self, at: usize) {
        let refusal = json!({ "fault": { "message": "the name is taken", "effect": "none" } });
        let mut script = self.devices[at].script();
        script.said.insert("apply".to_owned(), refusal);
        script.then.remove("apply");
    }
}

fn path(set: &Value, verb: &str) -> String {
    let id = set["id"].as_str().expect("a set has an id");
    if verb.is_empty() {
        format!("/gateway-vpn/changes/sets/{id}")
    } else {
        format!("/gateway-vpn/changes/sets/{id}/{verb}")
    }
}

/// Where the parts stand, in their order.
fn standings(set: &Value) -> Vec<&str> {
    let parts = set["parts"].as_array().expect("a set over several controllers has parts");
    parts.iter().map(|part| part["standing"].as_str().expect("a part stands somewhere")).collect()
}

/// A change of its own, as it is now.
async fn change(world: &World, change: &Value) -> Value {
    world.api.get(&Lab::path(change, "")).await.expect_status(200).body
}
