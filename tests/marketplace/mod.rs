//! The marketplace as a `super_admin` uses it: a registry that the tool made, a server that follows it, and those who serve other
//! files than they should.

mod attacks;
mod attacks_more;
mod busy;
mod crash;
mod install;
mod keys;
mod ratings;
pub(crate) mod registry;
mod revocations;
mod sync;
mod together;
mod web;

use heddle_marketplace::PublisherKey;
use serde_json::{Value, json};

use self::registry::Registry;
use crate::plugins::{archive_of, guest, manifest};
use crate::sandbox::device::Device;
use crate::support::{Answer, Api, Database, Options, Server};

/// A server that follows a registry.
struct Lab {
    server: Server,
    api: Api,
    registry: Registry,
    device: Device,
}

/// Settings under which a server follows a registry at this place, believed for its first root.
pub(crate) fn options(registry: &Registry, place: &str) -> Options {
    Options::default()
        .with("MARKETPLACE_URL", place)
        .with("MARKETPLACE_ROOT", registry.root())
        .with("MARKETPLACE_SYNC_MINUTES", "0")
        .with("PLUGIN_PRIVATE_NETWORKS", "127.0.0.0/8")
}

impl Lab {
    /// A server that follows a mirror in a folder. The registry has version 1.0.0 of a plugin.
    async fn start(database: Database) -> Self {
        Self::start_with(database, |options| options).await
    }

    async fn start_with(database: Database, change: impl FnOnce(Options) -> Options) -> Self {
        let (registry, device) = (Registry::new(), Device::start().await);
        registry.add(&archive_of(&plugin(&device, "1.0.0"), guest(), &registry.acme));
        let place = registry.served().display().to_string();
        let server = Server::start_with(database, change(options(&registry, &place))).await;
        let api = server.set_up().await;
        Self { server, api, registry, device }
    }

    /// A package of this version of the plugin.
    fn package(&self, version: &str) -> Vec<u8> {
        self.package_of(version, &self.registry.acme, |_| ())
    }

    fn package_of(&self, version: &str, key: &PublisherKey, change: impl FnOnce(&mut Value)) -> Vec<u8> {
        let mut manifest = plugin(&self.device, version);
        change(&mut manifest);
        archive_of(&manifest, guest(), key)
    }

    async fn restart(&mut self) {
        self.server.restart().await;
        self.api = self.server.log_in("ada").await;
    }

    /// The plugin in service and switched on, installed from the catalogue.
    async fn in_use(&self) {
        syncs(&self.api, "updated").await;
        self.api.post("/marketplace/plugins/scripted/install", &json!({})).await.expect_status(201);
        crate::plugins::agree(&self.api).await;
        let body = json!({ "enabled": true, "settings": { "team": "night" } });
        self.api.put("/plugins/scripted/organization", &body).await.expect_status(200);
    }
}

fn plugin(device: &Device, version: &str) -> Value {
    let mut manifest = manifest(&device.url());
    manifest["version"] = json!(version);
    manifest["capabilities"]["http"][0]["paths"] = json!(["/v1/**", "/slow"]);
    manifest
}

async fn sync(api: &Api) -> Answer {
    api.post("/marketplace/plugins/sync", &json!({})).await
}

/// Updates the catalogue, with this outcome.
async fn syncs(api: &Api, state: &str) -> Value {
    let report = sync(api).await.expect_status(200).body;
    assert_eq!(report["state"], state, "{report}");
    report
}

async fn offered(api: &Api, query: &str) -> Vec<String> {
    let list = api.get(&format!("/marketplace/plugins{query}")).await.expect_status(200).body;
    list["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}
