//! How the plugin of these tests stands after a kill, in one line, and whether everything else says the same.

use std::collections::BTreeSet;

use heddle_core::plugin::PluginState;
use heddle_store::{installed_packages, plugins};
use serde_json::{Value, json};

use super::kills::{Request, Rig, Subject};
use super::{Keys, agree, archive_of, guest, manifest, send, works};
use crate::fixtures::created;
use crate::support::{Api, Database, until};

/// The states that a package goes through before it waits or serves, the last one first.
const STEPS_BACK: [&str; 5] = ["checked", "linked", "compiled", "verified", "received"];

/// A package of the plugin with this change of its manifest. Nothing listens at its target.
pub(super) fn package(keys: &Keys, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut manifest = manifest("http://127.0.0.1:9");
    change(&mut manifest);
    archive_of(&manifest, guest(), &keys.acme)
}

/// Sets the plugin in the organization.
pub(super) fn set(enabled: bool, team: &str) -> Request {
    let body = json!({ "enabled": enabled, "settings": { "team": team } });
    Request::json("PUT", "/plugins/scripted/organization", &body)
}

/// The plugin `scripted`, and a Connection that uses it.
pub(crate) struct Scripted {
    connection: String,
}

impl Scripted {
    /// A server with the plugin in service and switched on.
    pub(super) async fn in_use(database: Database, keys: &Keys) -> (Rig, Self) {
        let rig = Rig::start(database, keys.options()).await;
        send(rig.api(), &package(keys, |_| ())).await.expect_status(201);
        agree(rig.api()).await;
        let plugin = Self::switched_on(rig.api()).await;
        (rig, plugin)
    }

    /// Switches the plugin on, which serves, and creates a Connection that uses it.
    pub(crate) async fn switched_on(api: &Api) -> Self {
        let body = json!({ "enabled": true, "settings": { "team": "night" } });
        api.put("/plugins/scripted/organization", &body).await.expect_status(200);
        let steps =
            json!([{ "operation_id": "plugin.scripted.look", "params": { "do": "echo", "value": 1 } }]);
        let connection = json!({ "source_event": "ingest.external", "steps": steps });
        Self { connection: created(api, "/fabric/connections", &connection).await }
    }
}

impl Subject for Scripted {
    async fn check_stored(&self, rig: &Rig) {
        check_kept(rig).await;
    }

    /// Such as `active 1.0.0, on for night, told active 1.0.0`: the last part is the last event.
    async fn look(&self, rig: &Rig) -> String {
        let api = rig.api();
        let found = api.get("/plugins/scripted").await;
        let shown = if found.status == 404 { Value::Null } else { found.expect_status(200).body };
        assert_eq!(shown["behind"], Value::Null, "{shown}");
        let is_on = shown["state"] == "active" && shown["enabled"] == true;
        let expected = if is_on { ids(&shown["actions"], "operation_id") } else { BTreeSet::new() };
        let path = format!("/fabric/connections/{}", self.connection);
        until(&format!("the catalogue and the Connection agree with {shown}"), async || {
            let catalog = api.get("/fabric/catalog?owner=scripted").await.expect_status(200).body;
            let stands = api.get(&path).await.expect_status(200).body;
            ids(&catalog["operations"], "id") == expected && (stands["state"] == "enabled") == is_on
        })
        .await;
        if is_on {
            works(api, "look", json!({ "do": "echo", "value": 1 })).await;
        }
        check_chain(api).await;
        let told = last_told(api).await;
        if shown.is_null() {
            return format!("absent, told {told}");
        }
        let text = |field: &str| shown[field].as_str().unwrap_or("nothing");
        let waits = if shown["is_update_waiting"] == true { " and an update waits" } else { "" };
        let organization = organization(api).await;
        format!("{} {}{waits}, {organization}, told {told}", text("state"), text("version"))
    }
}

fn ids(list: &Value, field: &str) -> BTreeSet<String> {
    let items = list.as_array().into_iter().flatten();
    items.map(|one| one[field].as_str().unwrap().to_owned()).collect()
}

async fn organization(api: &Api) -> String {
    let set = api.get("/plugins/scripted/organization").await;
    if set.status == 409 {
        // There is nothing to set before the first consent.
        return "off without settings".to_owned();
    }
    let set = set.expect_status(200).body;
    let switch = if set["enabled"] == true { "on" } else { "off" };
    match set["settings"]["team"].as_str() {
        Some(team) => format!("{switch} for {team}"),
        None => format!("{switch} without settings"),
    }
}

/// State and version of the last change that an event tells of. A package that was installed went through all states.
pub(super) async fn last_told(api: &Api) -> String {
    let path = format!("/events?event_type=plugin.state_changed&per_page={}", STEPS_BACK.len() + 1);
    let events = api.get(&path).await.expect_status(200).body;
    let told: Vec<&Value> =
        events["items"].as_array().unwrap().iter().map(|event| &event["payload"]).collect();
    let states: Vec<&str> = told.iter().map(|one| one["state"].as_str().unwrap()).collect();
    // A package that a rollback puts back was checked, too.
    if told[0]["previous_state"] == "checked" && states[1] != "rolled_back" {
        assert_eq!(states[1..], STEPS_BACK, "{events}");
    }
    format!("{} {}", states[0], told[0]["version"].as_str().unwrap())
}

pub(crate) async fn check_chain(api: &Api) {
    let chain = api.get("/audit/validate").await.expect_status(200).body;
    assert_eq!(chain["valid"], true, "{chain}");
}

/// Requires that the packages that are kept of each plugin are those that it names.
pub(super) async fn check_kept(rig: &Rig) {
    let db = rig.stored().await;
    let mut tx = db.read().await.unwrap();
    for row in plugins::all(&mut tx).await.unwrap() {
        let kept = installed_packages::kept_of(&mut tx, &row.plugin_id).await.unwrap();
        let named = [&row.serving_sha256, &row.before_sha256, &row.waiting_sha256];
        let is_there = row.state != PluginState::Removed;
        let named: BTreeSet<&String> = named.into_iter().flatten().filter(|_| is_there).collect();
        assert_eq!(kept.iter().collect::<BTreeSet<_>>(), named, "{row:?}");
    }
    drop(tx);
    db.close().await;
}
