//! Disabled and enabled, rolled back, in quarantine and released, removed.

use chrono::TimeDelta;
use heddle_core::Role;
use serde_json::{Value, json};

use super::{
    Lab, act, agree, archive_of, change, entry, guest, is_offered, manifest, pairs, plugin, send, told, works,
};
use crate::fixtures::created;
use crate::support::{Api, on_both, until};

async fn connection(api: &Api, id: &str) -> Value {
    api.get(&format!("/fabric/connections/{id}")).await.expect_status(200).body
}

async fn uses_plugin(api: &Api) -> String {
    let steps = json!([{ "operation_id": "plugin.scripted.look", "params": { "do": "echo", "value": 1 } }]);
    created(api, "/fabric/connections", &json!({ "source_event": "ingest.external", "steps": steps })).await
}

on_both! {
    async fn disabling_breaks_connections_with_a_notice_and_enabling_mends_them(database: Database) {
        let lab = Lab::in_use(database).await;
        let (used, paused) = (uses_plugin(&lab.api).await, uses_plugin(&lab.api).await);
        let other = json!({ "source_event": "ingest.external", "steps": [{ "operation_id": "sites.list" }] });
        let other = created(&lab.api, "/fabric/connections", &other).await;
        lab.api.patch(&format!("/fabric/connections/{paused}"), &json!({ "state": "paused" })).await.expect_status(200);
        let schedule = json!({ "name": "Nightly", "cron": "0 3 * * *", "time_zone": "UTC", "missed": "skip",
            "steps": [{ "operation_id": "plugin.scripted.look", "params": { "do": "echo", "value": 1 } }] });
        let schedule = created(&lab.api, "/automation/schedules", &schedule).await;

        assert_eq!(change(&lab.api, "disable").await.expect_status(200).body["state"], "disabled");
        let broken = connection(&lab.api, &used).await;
        assert_eq!(broken["state"], "broken");
        assert!(broken["state_reason"].as_str().unwrap().contains("'plugin.scripted.look'"), "{broken}");
        assert_eq!(connection(&lab.api, &paused).await["state"], "paused");
        assert_eq!(connection(&lab.api, &other).await["state"], "enabled");
        let path = format!("/automation/schedules/{schedule}");
        assert_eq!(lab.api.get(&path).await.expect_status(200).body["state"], "broken");
        let notices = lab.api.get("/notifications").await.expect_status(200).body;
        assert!(notices.to_string().contains("is broken"), "{notices}");
        assert_eq!(entry(&lab.api, "connection.broken").await["detail"]["run_id"], Value::Null);
        assert!(!is_offered(&lab.api).await);
        let gone = json!({ "operation_id": "plugin.scripted.look", "params": {} });
        assert_eq!(lab.api.post("/actions", &gone).await.status, 422);
        let twice = change(&lab.api, "disable").await.expect_status(409);
        assert_eq!(twice.error_type(), "plugin_state", "{}", twice.text);

        change(&lab.api, "enable").await.expect_status(200);
        let mended = connection(&lab.api, &used).await;
        assert_eq!((&mended["state"], &mended["state_reason"]), (&json!("enabled"), &Value::Null), "{mended}");
        assert_eq!(connection(&lab.api, &paused).await["state"], "paused");
        let schedule = lab.api.get(&path).await.expect_status(200).body;
        assert!(schedule["state"] == "enabled" && schedule["next_due_at"].is_string(), "{schedule}");
        let event = lab.api.get("/events?event_type=automation.connection.recovered").await.expect_status(200).body;
        assert_eq!(event["total"], 2, "{event}");
        assert_eq!(entry(&lab.api, "connection.recovered").await["detail"]["name"], mended["name"]);
        works(&lab.api, "look", json!({ "do": "echo", "value": 1 })).await;
        assert_eq!(entry(&lab.api, "plugin.disabled").await["detail"]["after"]["state"], "disabled");
    }
}

on_both! {
    async fn the_switch_of_an_organization_breaks_and_mends_its_connections_only(database: Database) {
        let lab = Lab::in_use(database).await;
        let stranger = lab.stranger().await;
        lab.switch_on(&stranger).await;
        let (ours, theirs) = (uses_plugin(&lab.api).await, uses_plugin(&stranger).await);
        let off = json!({ "enabled": false, "settings": { "team": "night" } });
        stranger.put("/plugins/scripted/organization", &off).await.expect_status(200);
        assert_eq!(connection(&stranger, &theirs).await["state"], "broken");
        assert_eq!(connection(&lab.api, &ours).await["state"], "enabled");
        // An edit by people takes it out of what waits.
        stranger.patch(&format!("/fabric/connections/{theirs}"), &json!({ "state": "paused" })).await.expect_status(200);
        lab.switch_on(&stranger).await;
        assert_eq!(connection(&stranger, &theirs).await["state"], "paused");
    }
}

on_both! {
    async fn the_package_before_is_put_back(database: Database) {
        let mut lab = Lab::in_use(database).await;
        let none = change(&lab.api, "rollback").await.expect_status(409);
        assert_eq!(none.error_type(), "no_earlier_package", "{}", none.text);
        let more = lab.archive(|manifest| {
            manifest["version"] = json!("1.1.0");
            manifest["actions"].as_array_mut().unwrap().remove(0);
        });
        let used = uses_plugin(&lab.api).await;
        send(&lab.api, &more).await.expect_status(201);
        assert_eq!(plugin(&lab.api).await["version"], "1.1.0");
        // The new package has lost the action that a Connection uses.
        assert_eq!(connection(&lab.api, &used).await["state"], "broken");
        let seen = lab.api.get("/plugins/scripted").await.expect_status(200).header("etag").to_owned();
        lab.api.with("if-match", "\"other\"").post("/plugins/scripted/rollback", &json!({})).await.expect_status(412);
        let other = lab.api.post("/plugins/scripted/rollback", &json!({ "version": "0.9.0" })).await.expect_status(409);
        assert!(other.message().contains("1.0.0"), "{}", other.text);
        let back = lab.api.with("if-match", &seen).post("/plugins/scripted/rollback", &json!({ "version": "1.0.0" })).await;
        assert_eq!(back.expect_status(200).body["version"], "1.0.0");
        assert_eq!(connection(&lab.api, &used).await["state"], "enabled");
        let all = told(&lab.api).await;
        assert_eq!(all[all.len() - 2..], pairs(&[("1.1.0", "rolled_back"), ("1.0.0", "active")]));
        lab.restart().await;
        assert_eq!(plugin(&lab.api).await["version"], "1.0.0", "it stays so");
        works(&lab.api, "look", json!({ "do": "echo", "value": 1 })).await;
    }
}

on_both! {
    async fn a_removed_plugin_is_gone_and_breaks_what_used_it(database: Database) {
        let mut lab = Lab::in_use(database).await;
        let used = uses_plugin(&lab.api).await;
        lab.api.with("if-match", "\"other\"").delete("/plugins/scripted").await.expect_status(412);
        lab.api.delete("/plugins/scripted").await.expect_status(204);
        lab.api.get("/plugins/scripted").await.expect_status(404);
        assert_eq!(lab.api.get("/plugins").await.expect_status(200).body["items"], json!([]));
        for (method, path) in [
            ("GET", "/consent"), ("GET", "/organization"), ("POST", "/enable"), ("POST", "/rollback"), ("DELETE", ""),
        ] {
            let answer = lab.api.send(method, &format!("/plugins/scripted{path}"), Some(b"{}".to_vec())).await;
            assert_eq!(answer.status, 404, "{path}: {}", answer.text);
        }
        assert_eq!(connection(&lab.api, &used).await["state"], "broken");
        let scope = json!({ "name": "k", "scopes": ["plugin.scripted.use"] });
        lab.api.post("/api-keys", &scope).await.expect_status(422);
        lab.restart().await;
        lab.api.get("/plugins/scripted").await.expect_status(404);
        // The id stays that of its publisher.
        lab.keys.trust(&[lab.keys.acme.trusted(), lab.keys.globex.trusted()]);
        let mut manifest = manifest(&lab.device.url());
        manifest["version"] = json!("2.0.0");
        let foreign = archive_of(&manifest, guest(), &lab.keys.globex);
        let refused = send(&lab.api, &foreign).await.expect_status(409);
        assert!(refused.message().contains("acme"), "{}", refused.text);
        // Installed again it needs consent again, and then mends what waited for it.
        send(&lab.api, &lab.archive(|_| ())).await.expect_status(201);
        agree(&lab.api).await;
        assert_eq!(connection(&lab.api, &used).await["state"], "broken", "it is not switched on yet");
        lab.switch_on(&lab.api).await;
        assert_eq!(connection(&lab.api, &used).await["state"], "enabled");
    }
}

on_both! {
    async fn a_plugin_that_fails_too_often_is_in_quarantine_until_it_is_released(database: Database) {
        let mut lab = Lab::in_use(database).await;
        let used = uses_plugin(&lab.api).await;
        change(&lab.api, "release").await.expect_status(409);
        let strangers = [lab.stranger().await, lab.stranger_of("Initech", "ivy").await];
        for stranger in &strangers {
            lab.switch_on(stranger).await;
        }
        let body =
            json!({ "operation_id": "plugin.scripted.look", "params": { "do": "burn", "how": "panic" } });
        // Three times it fails in all of them, and is suspended in between.
        for _ in 0..3 {
            for api in strangers.iter().chain([&lab.api]) {
                for _ in 0..5 {
                    api.post("/actions", &body).await;
                }
            }
            lab.server.running().app.clock.advance(TimeDelta::minutes(2));
        }
        until("it is in quarantine", async || plugin(&lab.api).await["state"] == "quarantined").await;
        until("its Connection waits", async || connection(&lab.api, &used).await["state"] == "broken").await;
        assert_eq!(entry(&lab.api, "plugin.quarantined").await["actor_name"], "heddle");
        lab.restart().await;
        assert_eq!(plugin(&lab.api).await["state"], "quarantined", "also after a restart");
        assert_eq!(change(&lab.api, "release").await.expect_status(200).body["state"], "active");
        assert_eq!(connection(&lab.api, &used).await["state"], "enabled");
        let run = act(&lab.api, "look", json!({ "do": "echo", "value": 1 })).await;
        assert_eq!(run["success"], true, "{run}");
    }
}

on_both! {
    async fn a_plugin_that_cannot_be_loaded_is_absent_with_its_reason(database: Database) {
        let mut lab = Lab::in_use(database).await;
        lab.member(Role::OrgAdmin, "olga").await;
        lab.keys.trust(&[]);
        lab.restart().await;
        let shown = plugin(&lab.api).await;
        assert_eq!(shown["state"], "active", "what the database says");
        assert!(shown["behind"].as_str().unwrap().contains("trusted"), "{shown}");
        // The reason is the operator's: it may name files of the server.
        let admin = lab.server.log_in("olga").await;
        let all = admin.get("/plugins").await.expect_status(200).body;
        for seen in [plugin(&admin).await, all["items"][0].clone()] {
            assert_eq!(seen["behind"], "it does not serve in this process now; a super_admin sees why", "{seen}");
        }
        let gone = json!({ "operation_id": "plugin.scripted.look", "params": {} });
        assert_eq!(lab.api.post("/actions", &gone).await.status, 422);
        lab.keys.trust(&[lab.keys.acme.trusted()]);
        lab.restart().await;
        assert_eq!(plugin(&lab.api).await["behind"], Value::Null);
        works(&lab.api, "look", json!({ "do": "echo", "value": 1 })).await;
    }
}

on_both! {
    async fn a_connection_of_two_plugins_recovers_when_both_are_back(database: Database) {
        let lab = Lab::in_use(database).await;
        let other = lab.archive(|manifest| {
            let text = manifest.to_string().replace("plugin.scripted.", "plugin.other.");
            *manifest = serde_json::from_str(&text).unwrap();
            manifest["id"] = json!("other");
        });
        send(&lab.api, &other).await.expect_status(201);
        let asked = lab.api.get("/plugins/other/consent").await.expect_status(200).body;
        let body = json!({ "grant_hash": asked["grant_hash"] });
        lab.api.post("/plugins/other/consent", &body).await.expect_status(200);
        let on = |enabled: bool| json!({ "enabled": enabled, "settings": { "team": "night" } });
        lab.api.put("/plugins/other/organization", &on(true)).await.expect_status(200);
        let step = |plugin: &str| json!({ "operation_id": format!("plugin.{plugin}.look"), "params": { "do": "echo", "value": 1 } });
        let both = json!({ "source_event": "ingest.external", "steps": [step("scripted"), step("other")] });
        let both = created(&lab.api, "/fabric/connections", &both).await;
        change(&lab.api, "disable").await.expect_status(200);
        // The second is missing in two ways: by the organization, and in the whole service.
        for (off, back) in [("organization", "organization"), ("disable", "enable")] {
            let turn = async |how: &str, enabled: bool| match how {
                "organization" => lab.api.put("/plugins/other/organization", &on(enabled)).await,
                verb => lab.api.post(&format!("/plugins/other/{verb}"), &json!({})).await,
            };
            turn(off, false).await.expect_status(200);
            change(&lab.api, "enable").await.expect_status(200);
            let waits = connection(&lab.api, &both).await;
            assert_eq!(waits["state"], "broken", "{off}: {waits}");
            assert!(waits["state_reason"].as_str().unwrap().contains("'other'"), "{off}: {waits}");
            turn(back, true).await.expect_status(200);
            assert_eq!(connection(&lab.api, &both).await["state"], "enabled", "{back}");
            change(&lab.api, "disable").await.expect_status(200);
        }
    }
}

on_both! {
    async fn a_restored_connection_waits_for_a_plugin_that_is_off(database: Database) {
        let lab = Lab::in_use(database).await;
        let used = uses_plugin(&lab.api).await;
        lab.api.delete(&format!("/fabric/connections/{used}")).await.expect_status(204);
        let off = json!({ "enabled": false, "settings": { "team": "night" } });
        lab.api.put("/plugins/scripted/organization", &off).await.expect_status(200);
        let restored = lab.api.post(&format!("/fabric/connections/{used}/restore"), &json!({})).await;
        assert_eq!(restored.expect_status(200).body["state"], "broken");
        lab.switch_on(&lab.api).await;
        assert_eq!(connection(&lab.api, &used).await["state"], "enabled");
    }
}

on_both! {
    async fn a_connection_whose_author_is_gone_says_so_when_the_plugin_is_back(database: Database) {
        let lab = Lab::in_use(database).await;
        let author = lab.member(Role::OrgAdmin, "olga").await;
        let used = uses_plugin(&author).await;
        let me = author.get("/auth/me").await.expect_status(200).body;
        change(&lab.api, "disable").await.expect_status(200);
        lab.api.delete(&format!("/users/{}", me["id"].as_str().unwrap())).await.expect_status(204);
        change(&lab.api, "enable").await.expect_status(200);
        let stays = connection(&lab.api, &used).await;
        assert_eq!(stays["state"], "broken", "{stays}");
        assert!(!stays["state_reason"].as_str().unwrap().contains("offered"), "{stays}");
    }
}
