//! The VLANs of a site with controllers of three vendors: a firewall, a controller of switches, and a router.
//!
//! The firewall begins with the VLANs 10 (things) and 20 (guests); the switches with 20 (Staff), 30 (Things) and 40 (Guests);
//! the router with none.

mod aligned;
mod distributed;
mod drift;
mod rights;

use heddle_core::SiteLevel;
use serde_json::{Value, json};

use super::practice::{self, Practice};
use crate::support::{Adapters, Api, Database, Options, Server};

const VENDORS: [&str; 3] = ["opnsense", "omada", "openwrt"];

/// A server, a site, and the three controllers there, read to the end.
struct Site {
    server: Server,
    api: Api,
    id: String,
    devices: Vec<Box<dyn Practice>>,
    /// In the order of the vendors.
    controllers: Vec<String>,
}

impl Site {
    async fn start(database: Database) -> Self {
        let serving = Adapters::Of(VENDORS.iter().map(|vendor| (*vendor).to_owned()).collect());
        let server = Server::start_with(database, Options::default().serving(serving)).await;
        let api = server.set_up().await;
        let sites = api.get("/sites").await.expect_status(200).body;
        let id = text(&sites["items"][0]["id"]);
        let mut site = Self { server, api, id, devices: Vec::new(), controllers: Vec::new() };
        for vendor in VENDORS {
            site.add(vendor).await;
        }
        site.read().await;
        site
    }

    async fn add(&mut self, vendor: &'static str) {
        let device = practice::of(vendor).start().await;
        let mut credential = device.credential();
        credential["name"] = json!(vendor);
        let credential = self.api.post("/credentials", &credential).await.expect_status(201).body;
        let controller = json!({
            "name": vendor, "site_id": self.id, "vendor": vendor, "url": device.url(),
            "credential_id": credential["id"], "settings": device.settings(), "sync_interval_secs": 3600,
        });
        let controller = self.api.post("/controllers", &controller).await.expect_status(201).body;
        self.controllers.push(text(&controller["id"]));
        self.devices.push(device);
    }

    /// Has all controllers read to the end, objects and all.
    async fn read(&self) {
        for controller in &self.controllers {
            let path = format!("/controllers/{controller}/sync");
            let asked = self.api.post(&path, &json!({})).await.expect_status(202).body;
            let ended = crate::devices::controllers::ended(&self.api, &asked).await;
            assert_eq!(ended["state"], "succeeded", "{ended}");
        }
    }

    fn firewall(&self) -> &str {
        &self.controllers[0]
    }

    fn switches(&self) -> &str {
        &self.controllers[1]
    }

    fn router(&self) -> &str {
        &self.controllers[2]
    }

    async fn get(&self, path: &str) -> Value {
        let sign = if path.contains('?') { '&' } else { '?' };
        self.api.get(&format!("{path}{sign}site_id={}", self.id)).await.expect_status(200).body
    }

    /// Asks for something at the site.
    async fn post(&self, path: &str, mut body: Value) -> Value {
        body["site_id"] = json!(self.id);
        self.api.post(path, &body).await.expect_status(200).body
    }

    /// What all devices are set to.
    fn configurations(&self) -> Vec<Value> {
        self.devices.iter().map(|device| device.configuration()).collect()
    }

    /// The differences of a class at a controller, by their VLANs.
    async fn vlans_with(&self, query: &str, class: &str, controller: &str) -> Vec<u64> {
        let compared = self.get(&format!("/network/vlans/compare{query}")).await;
        of(&compared["findings"], class, controller)
    }

    /// Applies a change as it was planned.
    async fn apply(&self, change: &str) {
        let path = format!("/gateway-vpn/changes/{change}");
        let seen = self.api.get(&path).await.expect_status(200).body;
        let body = json!({ "force": true, "plan_hash": seen["plan"]["hash"] });
        let done = self.api.post(&format!("{path}/apply"), &body).await.expect_status(200).body;
        assert_eq!(done["outcome"]["state"], "applied", "{done}");
    }

    /// Pending changes.
    async fn pending(&self) -> Vec<Value> {
        let page =
            self.api.get("/gateway-vpn/changes?status=pending&per_page=200").await.expect_status(200).body;
        list(&page["items"])
    }

    /// A member with a grant at the site.
    async fn member(&self, name: &str, role: heddle_core::Role, level: SiteLevel) -> Api {
        crate::devices::member(&self.server, name, role, &[(self.id.as_str(), level)]).await
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("it is a text").to_owned()
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("it is a list: {value}")).clone()
}

/// The VLANs of entries of a class at a controller.
fn of(entries: &Value, class: &str, controller: &str) -> Vec<u64> {
    let entries = list(entries);
    let meant = entries.iter().filter(|one| one["class"] == class && one["controller_id"] == controller);
    meant.map(|one| one["vlan_id"].as_u64().expect("a VLAN has a number")).collect()
}
