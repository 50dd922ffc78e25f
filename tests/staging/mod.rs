//! Staged changes against a router that keeps state.

mod cancel;
mod foreign;
mod gates;
mod holes;
mod kill;
mod lists;
mod native;
mod path_cut;
mod places;
mod quarantine;
mod sagas;
mod scenario;
pub(crate) mod scripted;
mod secrets;
mod sets;
mod stages;
mod statements;
mod subject;
mod ways_out;
mod windows;

use std::time::Duration;

use heddle_lab_openwrt::Router;
use serde_json::{Value, json};

use crate::support::{Api, Database, Options, Server, register};

pub(crate) const ROUTER_PASSWORD: &str = "router-canary-5uP3r";

/// A server, its admin, a router, and the router's controller.
pub(crate) struct Lab {
    pub(crate) server: Server,
    pub(crate) api: Api,
    pub(crate) router: Router,
    pub(crate) controller: String,
}

pub(crate) async fn start_router() -> Router {
    Router::builder().password(ROUTER_PASSWORD).boot_time(Duration::from_millis(300)).start().await
}

impl Lab {
    pub(crate) async fn start(database: Database) -> Self {
        Self::start_with(database, Options::default()).await
    }

    pub(crate) async fn start_with(database: Database, options: Options) -> Self {
        let router = start_router().await;
        let server = Server::start_with(database, options).await;
        let api = server.set_up().await;
        let controller = register(&api, &router.url(), ROUTER_PASSWORD).await;
        let controller = controller["id"].as_str().expect("a controller has an id").to_owned();
        Self { server, api, router, controller }
    }

    pub(crate) fn area(&self, area: &str) -> String {
        format!("/gateway-openwrt-{area}/{}", self.controller)
    }

    /// Stages and answers the change.
    pub(crate) async fn stage(&self, area: &str, feature: &str, operation: &str, payload: &Value) -> Value {
        let path = format!("{}/changes/{feature}?operation={operation}", self.area(area));
        self.api.post(&path, &json!({ "payload": payload })).await.expect_status(201).body
    }

    /// A firewall rule that opens a port.
    pub(crate) async fn stage_rule(&self, name: &str) -> Value {
        let payload = json!({
            "name": name, "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT",
        });
        self.stage("firewall", "openwrt.firewall.rule", "create", &payload).await
    }

    /// A change that moves the router's own address, so that the path to it is lost.
    pub(crate) async fn stage_lockout(&self) -> Value {
        let payload = json!({ "name": "lan", "ipaddr": ["10.99.99.1"] });
        self.stage("base", "openwrt.network.interface", "update", &payload).await
    }

    pub(crate) fn path(change: &Value, verb: &str) -> String {
        let id = change["id"].as_str().expect("a change has an id");
        if verb.is_empty() {
            format!("/gateway-vpn/changes/{id}")
        } else {
            format!("/gateway-vpn/changes/{id}/{verb}")
        }
    }

    pub(crate) async fn get(&self, change: &Value) -> Value {
        self.api.get(&Self::path(change, "")).await.expect_status(200).body
    }

    /// Waits until the change's outcome is one of these.
    pub(crate) async fn wait_for(&self, change: &Value, states: &[&str]) -> Value {
        for _ in 0..600 {
            let seen = self.get(change).await;
            let state = seen["outcome"]["state"].as_str().unwrap_or_default();
            if states.contains(&state) && (state == "awaiting_confirm" || seen["outcome"]["step"] == "idle") {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("change did not become {states:?}: {}", self.get(change).await);
    }
}
