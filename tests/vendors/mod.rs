//! The main job with every vendor: one test body for all of them, against a simulated controller each. What the bodies need
//! of a vendor is in its file in `practice`.

#[macro_use]
mod practice;

mod cancel;
mod document;
mod drift;
mod files;
mod intent;
mod kill;
mod large;
mod logins;
mod modelled;
mod museum;
mod push;
mod record;
mod recorder;
mod releases;
mod sandbox;
mod saved;
mod scenario;
mod sets;
mod sites;
mod spoiled;
mod topology;
mod vlans;

use serde_json::{Value, json};

use crate::support::{Adapters, Answer, Api, Database, Options, Server};
use practice::{Case, Practice, Vendor};

/// A server with one adapter, a controller of its vendor, and the practice device behind it.
struct Lab {
    server: Server,
    api: Api,
    vendor: &'static dyn Vendor,
    case: Case,
    device: Box<dyn Practice>,
    controller: String,
}

impl Lab {
    async fn start(database: Database, vendor: &'static dyn Vendor) -> Self {
        let device = vendor.start().await;
        Self::start_with(database, vendor, device).await
    }

    async fn start_with(database: Database, vendor: &'static dyn Vendor, device: Box<dyn Practice>) -> Self {
        let serving = Adapters::Of(vec![vendor.id().to_owned()]);
        let server = Server::start_with(database, Options::default().serving(serving)).await;
        Self::on(server, vendor, device).await
    }

    async fn on(server: Server, vendor: &'static dyn Vendor, device: Box<dyn Practice>) -> Self {
        let api = server.set_up().await;
        let controller = register(&api, vendor.id(), &*device).await;
        Self { server, api, vendor, case: vendor.case(), device, controller }
    }

    fn area(&self) -> String {
        format!("/gateway-{}-{}/{}", self.vendor.id(), self.case.area, self.controller)
    }

    async fn stage(&self) -> Value {
        let change = self.try_stage().await.expect_status(201).body;
        assert!(change["plan"].is_object(), "{change}");
        change
    }

    async fn try_stage(&self) -> Answer {
        let path = format!("{}/changes/{}?operation=create", self.area(), self.case.feature);
        self.api.post(&path, &json!({ "payload": self.case.payload })).await
    }

    async fn act(&self, change: &Value, verb: &str, body: &Value) -> Answer {
        self.api.post(&path(change, verb), body).await
    }

    async fn get(&self, change: &Value) -> Value {
        self.api.get(&path(change, "")).await.expect_status(200).body
    }

    /// Keys of the objects of the scenario's kind, as a live list has them.
    async fn live(&self) -> Vec<String> {
        let path = format!("{}/{}?limit=1000", self.area(), self.case.kind);
        let page = self.api.get(&path).await.expect_status(200).body;
        let items = page["items"].as_array().expect("a page has items").iter();
        items.map(|item| item["reference"]["key"].as_str().expect("an object has a key").to_owned()).collect()
    }

    /// Waits until the change's apply has ended in one of these states.
    async fn ended(&self, change: &Value, states: &[&str]) -> Value {
        for _ in 0..600 {
            let seen = self.get(change).await;
            let state = seen["outcome"]["state"].as_str().unwrap_or_default();
            if states.contains(&state) && seen["outcome"]["step"] == "idle" {
                return seen;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        panic!("{}: the change did not become {states:?}: {}", self.vendor.id(), self.get(change).await);
    }
}

/// Registers a practice device; returns the id of its controller.
async fn register(api: &Api, vendor: &str, device: &dyn Practice) -> String {
    let mut credential = device.credential();
    credential["name"] = json!("key");
    let credential = api.post("/credentials", &credential).await.expect_status(201).body;
    let sites = api.get("/sites").await.expect_status(200).body;
    let body = json!({
        "name": "edge", "site_id": sites["items"][0]["id"], "vendor": vendor, "url": device.url(),
        "credential_id": credential["id"], "settings": device.settings(),
    });
    let controller = api.post("/controllers", &body).await.expect_status(201).body;
    let id = controller["id"].as_str().expect("a controller has an id").to_owned();
    // A change that is staged before the vendor's sites are known is at none of them.
    for _ in 0..1200 {
        let seen = api.get(&format!("/controllers/{id}")).await.expect_status(200).body;
        if seen["status"] != "unknown" {
            return id;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{vendor}: the controller was not read in a minute");
}

fn path(change: &Value, verb: &str) -> String {
    let id = change["id"].as_str().expect("a change has an id");
    let path = format!("/gateway-vpn/changes/{id}");
    if verb.is_empty() { path } else { format!("{path}/{verb}") }
}
