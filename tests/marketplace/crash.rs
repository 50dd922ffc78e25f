//! A server that is killed while it follows the catalogue or installs from it.
//!
//! The catalogue, what it revokes and what serves belong to one state then.

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::registry::Registry;
use super::{options, syncs};
use crate::plugins::kills::{Kills, Request, Rig, Step, Subject};
use crate::plugins::standing::{Scripted, check_chain};
use crate::plugins::{agree, archive_of, guest, manifest, plugin};
use crate::support::{Adapters, Database, adapters, on_both};

const SYNC: &str = "/marketplace/plugins/sync";

fn archive(registry: &Registry, version: &str) -> Vec<u8> {
    let mut manifest = manifest("http://127.0.0.1:9");
    manifest["version"] = json!(version);
    archive_of(&manifest, guest(), &registry.acme)
}

/// A server that follows a registry with version 1.0.0 of the plugin, which serves.
async fn following(database: Database) -> (Registry, Rig, Catalogue) {
    let registry = Registry::new();
    registry.add(&archive(&registry, "1.0.0"));
    let options = options(&registry, &registry.served().display().to_string());
    let rig = Rig::start(database, options).await;
    syncs(rig.api(), "updated").await;
    rig.api().post("/marketplace/plugins/scripted/install", &json!({})).await.expect_status(201);
    agree(rig.api()).await;
    let catalogue = Catalogue { plugin: Scripted::switched_on(rig.api()).await };
    (registry, rig, catalogue)
}

/// The plugin, and what the catalogue says of it.
struct Catalogue {
    plugin: Scripted,
}

/// What [`Catalogue`] describes.
struct Seen<'a> {
    plugin: &'a str,
    catalogue: u32,
    /// The newest version that can be installed.
    lists: &'a str,
    installed: &'a str,
    revoked: u32,
}

impl Seen<'_> {
    fn line(&self) -> String {
        let Self { plugin, catalogue, lists, installed, revoked } = self;
        format!("{plugin}; catalogue {catalogue} lists {lists}, {installed} is installed, {revoked} revoked")
    }
}

/// A version that serves, as [`Scripted`] describes it.
fn active(version: &str) -> String {
    format!("active {version}, on for night, told active {version}")
}

impl Subject for Catalogue {
    async fn check_stored(&self, rig: &Rig) {
        self.plugin.check_stored(rig).await;
    }

    async fn look(&self, rig: &Rig) -> String {
        let plugin = self.plugin.look(rig).await;
        let status = rig.api().get(SYNC).await.expect_status(200).body;
        let shown = rig.api().get("/marketplace/plugins/scripted").await.expect_status(200).body;
        let text = |field: &str| shown[field].as_str().unwrap_or("nothing");
        let number = |field: &str| u32::try_from(status[field].as_u64().unwrap()).unwrap();
        let seen = Seen {
            plugin: &plugin,
            catalogue: number("catalog_version"),
            lists: text("version"),
            installed: text("installed_version"),
            revoked: number("revocations"),
        };
        seen.line()
    }
}

on_both! {
    async fn a_kill_at_a_sync_or_an_update_leaves_the_old_or_the_new(database: Database) {
        let (registry, mut rig, catalogue) = following(database).await;
        let version = |n: u32| format!("1.{n}.0");
        let seen = |serves: u32, listed: u32| {
            let (installed, lists) = (version(serves), version(listed));
            let plugin = active(&installed);
            Seen { plugin: &plugin, catalogue: listed + 1, lists: &lists, installed: &installed, revoked: 0 }.line()
        };
        let mut listed = 0;
        rig.kill_in(&catalogue, Kills::of(5), async |_: &Rig| {
            listed += 1;
            registry.add(&archive(&registry, &version(listed)));
            Step { before: seen(0, listed - 1), request: Request::post(SYNC), after: seen(0, listed) }
        })
        .await;
        let mut serves = 0;
        rig.kill_in(&catalogue, Kills::of(5), async |rig: &Rig| {
            listed += 1;
            registry.add(&archive(&registry, &version(listed)));
            syncs(rig.api(), "updated").await;
            let request = Request::post("/marketplace/plugins/scripted/update");
            let step = Step { before: seen(serves, listed), request, after: seen(listed, listed) };
            serves = listed;
            step
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_an_installation_from_the_catalogue_leaves_the_plugin_or_nothing() {
    let (_registry, mut rig, catalogue) = following(Database::sqlite()).await;
    let seen = |plugin: &str, installed: &str| {
        Seen { plugin, catalogue: 1, lists: "1.0.0", installed, revoked: 0 }.line()
    };
    let absent = seen("absent, told removed 1.0.0", "nothing");
    let waits = seen("awaiting_consent 1.0.0, off without settings, told awaiting_consent 1.0.0", "1.0.0");
    let api = rig.api();
    api.delete("/plugins/scripted").await.expect_status(204);
    api.post("/marketplace/plugins/scripted/install", &json!({})).await.expect_status(201);
    let steps = Step::around(&[
        (Request::delete("/plugins/scripted"), absent.as_str()),
        (Request::post("/marketplace/plugins/scripted/install"), waits.as_str()),
    ]);
    rig.kill_around(&catalogue, &steps, Kills::of(5)).await;
}

on_both! {
    async fn a_kill_at_a_sync_that_revokes_leaves_the_plugin_in_service_or_out_of_it(database: Database) {
        let (registry, mut rig, catalogue) = following(database).await;
        // The first version is never revoked, and is what the catalogue lists where all others are.
        let (mut n, mut revoked) = (0, 0);
        for (action, state) in [("disable", "disabled"), ("kill", "quarantined")] {
            rig.kill_in(&catalogue, Kills::of(4), async |rig: &Rig| {
                n += 1;
                let version = format!("1.{n}.0");
                let archive = archive(&registry, &version);
                registry.add(&archive);
                let api = rig.api();
                syncs(api, "updated").await;
                api.post("/marketplace/plugins/scripted/update", &json!({})).await.expect_status(201);
                if plugin(api).await["state"] == "disabled" {
                    api.post("/plugins/scripted/enable", &json!({})).await.expect_status(200);
                }
                registry.revoke("package", &hex::encode(Sha256::digest(&archive)), action);
                let serves = active(&version);
                let gone = format!("{state} {version}, on for night, told {state} {version}");
                let before = Seen {
                    plugin: &serves, catalogue: n + 1, lists: &version, installed: &version, revoked,
                };
                revoked += 1;
                let after = Seen { plugin: &gone, lists: "1.0.0", revoked, ..before };
                Step { before: before.line(), request: Request::post(SYNC), after: after.line() }
            })
            .await;
        }
    }
}

/// Adapters that serve, and those that are revoked.
struct Serving;

impl Serving {
    fn line(adapters: &[String], revoked: usize) -> String {
        format!("{} serve, {revoked} revoked, {revoked} told", adapters.join(" "))
    }
}

impl Subject for Serving {
    async fn look(&self, rig: &Rig) -> String {
        let api = rig.api();
        let list = api.get("/adapters").await.expect_status(200).body;
        let ids: Vec<&str> =
            list["items"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
        let status = api.get(SYNC).await.expect_status(200).body;
        let told = api.get("/events?event_type=marketplace.adapter_revoked").await.expect_status(200).body;
        let noted = api.get("/audit?action=adapter.revoked").await.expect_status(200).body;
        assert_eq!(told["total"], noted["total"]);
        check_chain(api).await;
        format!("{} serve, {} revoked, {} told", ids.join(" "), status["revocations"], told["total"])
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_a_sync_that_revokes_leaves_an_adapter_in_service_or_out_of_it() {
    let registry = Registry::new();
    registry.add(&archive(&registry, "1.0.0"));
    let options = options(&registry, &registry.served().display().to_string()).serving(Adapters::All);
    let mut rig = Rig::start(Database::sqlite(), options).await;
    syncs(rig.api(), "updated").await;
    let mut serve = adapters();
    // Each of them is revoked once: an adapter that is revoked stays so.
    let kills = u32::try_from(serve.len() - 1).unwrap();
    let mut revoked = 0;
    rig.kill_in(&Serving, Kills::of(kills), async |_: &Rig| {
        let before = Serving::line(&serve, revoked);
        registry.revoke("plugin", &serve.pop().unwrap(), "kill");
        revoked += 1;
        Step { before, request: Request::post(SYNC), after: Serving::line(&serve, revoked) }
    })
    .await;
}
