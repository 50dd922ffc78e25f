//! A server that is killed while a plugin comes from one state into another: what the database says is what serves.
//!
//! Updates are in `crash_updates`.

use std::collections::BTreeMap;

use heddle_core::event::NewEvent;
use heddle_core::plugin::PluginState;
use heddle_core::{Clock, OrgId};
use heddle_store::events;
use heddle_store::plugins::{self, PluginRow};
use serde_json::json;

use super::kills::{Kills, Request, Rig, Step, Subject};
use super::standing::{Scripted, check_chain, check_kept, package, set};
use super::{Keys, archive_of, change, guest, manifest, send};
use crate::fixtures::created;
use crate::support::plugins::named;
use crate::support::{Database, event_type, on_both, until};

const ACTIVE: &str = "active 1.0.0, on for night, told active 1.0.0";
const QUARANTINED: &str = "quarantined 1.0.0, on for night, told quarantined 1.0.0";

/// A package of another plugin that does the same.
fn package_of(keys: &Keys, id: &str) -> Vec<u8> {
    archive_of(&named(&manifest("http://127.0.0.1:9"), id), guest(), &keys.acme)
}

/// Plugins that were never there before.
struct Newcomers;

impl Subject for Newcomers {
    async fn check_stored(&self, rig: &Rig) {
        check_kept(rig).await;
    }

    async fn look(&self, rig: &Rig) -> String {
        const STATES: [&str; 6] =
            ["received", "verified", "compiled", "linked", "checked", "awaiting_consent"];
        let api = rig.api();
        let list = api.get("/plugins").await.expect_status(200).body;
        let list = list["items"].as_array().unwrap();
        assert!(list.iter().all(|one| one["state"] == "awaiting_consent"), "{list:?}");
        let installed: Vec<&str> = list.iter().map(|one| one["id"].as_str().unwrap()).collect();
        let events = api.get("/events?event_type=plugin.state_changed&per_page=100&sort=occurred_at").await;
        let events = events.expect_status(200).body;
        let mut told: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for event in events["items"].as_array().unwrap() {
            let text = |field: &str| event["payload"][field].as_str().unwrap();
            told.entry(text("plugin")).or_default().push(text("state"));
        }
        assert!(told.values().all(|states| *states == STATES), "{told:?}");
        assert_eq!(told.into_keys().collect::<Vec<_>>(), installed);
        check_chain(api).await;
        format!("{} wait", installed.len())
    }
}

on_both! {
    async fn a_kill_at_a_first_installation_leaves_all_of_it_or_nothing(database: Database) {
        let keys = Keys::new();
        let mut rig = Rig::start(database, keys.options()).await;
        let mut n = 0;
        rig.kill_in(&Newcomers, Kills::of(5), async |_: &Rig| {
            n += 1;
            let request = Request::package("/plugins/install", package_of(&keys, &format!("newcomer{n}")));
            Step { before: format!("{} wait", n - 1), request, after: format!("{n} wait") }
        })
        .await;
    }
}

on_both! {
    async fn a_kill_at_a_transition_leaves_a_true_state(database: Database) {
        let keys = Keys::new();
        let (mut rig, plugin) = Scripted::in_use(database, &keys).await;
        let asked = rig.api().get("/plugins/scripted/consent").await.expect_status(200).body;
        let agreed = json!({ "grant_hash": asked["grant_hash"] });
        let steps = Step::around(&[
            (Request::delete("/plugins/scripted"), "absent, told removed 1.0.0"),
            (
                Request::package("/plugins/install", package(&keys, |_| ())),
                "awaiting_consent 1.0.0, off without settings, told awaiting_consent 1.0.0",
            ),
            (
                Request::json("POST", "/plugins/scripted/consent", &agreed),
                "active 1.0.0, off without settings, told active 1.0.0",
            ),
            (set(true, "night"), ACTIVE),
        ]);
        rig.kill_around(&plugin, &steps, Kills::of(4)).await;
    }
}

async fn organization(rig: &Rig) -> OrgId {
    let me = rig.api().get("/auth/me").await.expect_status(200).body;
    OrgId(me["organization_id"].as_str().unwrap().parse().unwrap())
}

/// Writes how the plugin stands, in one transaction, as a process does that changes it.
async fn write(rig: &Rig, org: OrgId, state: PluginState) {
    let (db, clock) = (rig.db().await, Clock::default());
    let mut tx = db.write().await.unwrap();
    let before = plugins::lock(&mut tx, "scripted").await.unwrap().unwrap();
    let row = PluginRow { state, reason: None, ..before.clone() };
    let row = plugins::update(&mut tx, &row, clock.now()).await.unwrap();
    let serving = row.serving_sha256.as_deref().unwrap();
    plugins::set_version_state(&mut tx, serving, state, None).await.unwrap();
    let payload = json!({
        "plugin": "scripted", "version": "1.0.0", "state": state, "previous_state": before.state, "reason": null,
    });
    let event = NewEvent::of(event_type("plugin.state_changed"), org, payload);
    events::append(&mut tx, &event, &clock).await.unwrap();
    tx.commit().await.unwrap();
    db.close().await;
}

on_both! {
    async fn a_kill_at_a_switch_of_the_service_leaves_it_on_or_off(database: Database) {
        let keys = Keys::new();
        let (mut rig, plugin) = Scripted::in_use(database, &keys).await;
        let steps = Step::around(&[
            (
                Request::post("/plugins/scripted/disable"),
                "disabled 1.0.0, on for night, told disabled 1.0.0",
            ),
            (Request::post("/plugins/scripted/enable"), ACTIVE),
        ]);
        rig.kill_around(&plugin, &steps, Kills::of(4)).await;
        let org = organization(&rig).await;
        rig.kill_in(&plugin, Kills::of(4), async |rig: &Rig| {
            // As another process does in which the plugin failed too often. This process follows it.
            write(rig, org, PluginState::Quarantined).await;
            assert_eq!(plugin.look(rig).await, QUARANTINED);
            let request = Request::post("/plugins/scripted/release");
            Step { before: QUARANTINED.to_owned(), request, after: ACTIVE.to_owned() }
        })
        .await;
    }
}

/// The plugin, and the last event of the organization's switch.
struct Switched(Scripted);

impl Subject for Switched {
    async fn look(&self, rig: &Rig) -> String {
        let stands = self.0.look(rig).await;
        let path = "/events?event_type=plugin.switched&per_page=1";
        let told = rig.api().get(path).await.expect_status(200).body;
        format!("{stands}, switched {}", told["items"][0]["payload"]["new_status"].as_str().unwrap())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_a_switch_of_an_organization_leaves_the_old_or_the_new_settings() {
    let keys = Keys::new();
    let (mut rig, plugin) = Scripted::in_use(Database::sqlite(), &keys).await;
    let steps = Step::around(&[
        (set(true, "day"), "active 1.0.0, on for day, told active 1.0.0, switched enabled"),
        (set(false, "day"), "active 1.0.0, off for day, told active 1.0.0, switched disabled"),
        (set(true, "night"), "active 1.0.0, on for night, told active 1.0.0, switched enabled"),
    ]);
    rig.kill_around(&Switched(plugin), &steps, Kills::of(5)).await;
}

/// The process is killed after the transaction that enables a plugin, and before those that mend its Connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_of_two_plugins_is_enabled_after_a_kill() {
    let keys = Keys::new();
    let (mut rig, plugin) = Scripted::in_use(Database::sqlite(), &keys).await;
    let api = rig.api();
    // Plugins are put into service in the order of their ids: this one comes second.
    send(api, &package_of(&keys, "second")).await.expect_status(201);
    let asked = api.get("/plugins/second/consent").await.expect_status(200).body;
    let agreed = json!({ "grant_hash": asked["grant_hash"] });
    api.post("/plugins/second/consent", &agreed).await.expect_status(200);
    let on = json!({ "enabled": true, "settings": { "team": "night" } });
    api.put("/plugins/second/organization", &on).await.expect_status(200);
    let params = json!({ "do": "echo", "value": 1 });
    let step = |id: &str| json!({ "operation_id": id, "params": params });
    let steps = [step("plugin.scripted.look"), step("plugin.second.look")];
    let both = json!({ "source_event": "ingest.external", "steps": steps });
    let path = format!("/fabric/connections/{}", created(api, "/fabric/connections", &both).await);
    change(api, "disable").await.expect_status(200);
    assert_eq!(api.get(&path).await.expect_status(200).body["state"], "broken");

    let org = organization(&rig).await;
    rig.kill_now(async |rig: &Rig| write(rig, org, PluginState::Active).await).await;
    assert_eq!(plugin.look(&rig).await, ACTIVE);
    let is_enabled = async || rig.api().get(&path).await.expect_status(200).body["state"] == "enabled";
    until("the Connection of both is enabled", is_enabled).await;
}
