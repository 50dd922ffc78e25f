//! What keeps a change from the device.

use heddle_core::Timestamp;
use heddle_lab_openwrt::Change;
use serde_json::json;

use super::Lab;
use crate::support::{Options, on_both};

on_both! {
    async fn a_read_only_platform_refuses_and_keeps_the_change(database: Database) {
        let lab = Lab::start_with(database, Options::default().with("ADAPTER_READ_ONLY", "true")).await;
        let change = lab.stage_rule("Allow-HTTPS-mgmt").await;
        let refused = lab.api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await.expect_status(403);
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains("ADAPTER_READ_ONLY=false") && detail.contains("force=true"), "{detail}");
        assert_eq!(lab.get(&change).await["status"], "pending");
        assert!(lab.router.write_calls().iter().all(|call| call.object == "session"));
    }
}

on_both! {
    async fn force_must_be_there_and_true(database: Database) {
        let lab = Lab::start(database).await;
        let change = lab.stage_rule("Allow-HTTPS-mgmt").await;
        let path = Lab::path(&change, "apply");
        let missing = lab.api.post(&path, &json!({})).await.expect_status(422);
        assert_eq!(missing.body["error"]["details"][0]["field"], "/force");
        let refused = lab.api.post(&path, &json!({ "force": false })).await.expect_status(400);
        assert_eq!(refused.error_type(), "force_required");
        let short = lab.api.post(&path, &json!({ "force": true, "confirm_within_secs": 9 })).await.expect_status(422);
        assert_eq!(short.body["error"]["details"][0]["field"], "/confirm_within_secs");
        assert!(lab.router.write_calls().iter().all(|call| call.object == "session"));
    }
}

on_both! {
    async fn what_was_reviewed_is_what_is_applied(database: Database) {
        let lab = Lab::start(database).await;
        let update = json!({ "name": "Allow-Ping", "target": "DROP" });
        let change = lab.stage("firewall", "openwrt.firewall.rule", "update", &update).await;
        // A foreign edit in another section of the file does not outdate the plan; one of the same rule does.
        assert!(lab.router.edit("firewall", &[Change::set("@defaults[0]", "syn_flood", "0")]));
        assert!(lab.router.edit("firewall", &[Change::set("@rule[1]", "target", "REJECT")]));
        let moved = lab
            .api
            .post(&Lab::path(&change, "apply"), &json!({ "force": true, "plan_hash": change["plan"]["hash"] }))
            .await
            .expect_status(409);
        assert_eq!(moved.error_type(), "state_moved", "{}", moved.text);
        assert!(lab.router.write_calls().iter().all(|call| call.object == "session"), "nothing was sent");
        let failed = lab.get(&change).await;
        assert_eq!(failed["status"], "pending");
        assert_eq!(failed["outcome"]["state"], "failed", "{failed}");
        assert_eq!(failed["attempts"].as_array().unwrap().len(), 1);

        let planned = lab.api.post(&Lab::path(&change, "plan"), &json!({})).await.expect_status(200).body;
        let stale = lab
            .api
            .post(&Lab::path(&change, "apply"), &json!({ "force": true, "plan_hash": change["plan"]["hash"] }))
            .await
            .expect_status(409);
        assert_eq!(stale.error_type(), "plan_changed");
        lab.api
            .post(&Lab::path(&change, "apply"), &json!({ "force": true, "plan_hash": planned["plan"]["hash"] }))
            .await
            .expect_status(200);
        assert_eq!(lab.router.option("firewall", "@rule[1]", "target"), Some(json!("DROP")));
        assert_eq!(lab.router.option("firewall", "@defaults[0]", "syn_flood"), Some(json!("0")));
    }
}

on_both! {
    async fn the_audit_log_names_the_key_that_applied(database: Database) {
        let lab = Lab::start(database).await;
        let change = lab.stage_rule("Allow-HTTPS-mgmt").await;
        let key = lab.api.post("/api-keys", &json!({ "name": "nightly" })).await.expect_status(201).body;
        let holder = lab.server.nobody().with("x-api-key", key["api_key"].as_str().unwrap());
        holder.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await.expect_status(200);
        for (action, by) in [("change.staged", None), ("change.apply_started", Some(&key["id"])), ("change.applied", Some(&key["id"]))] {
            let line = lab.api.get(&format!("/audit?action={action}")).await.expect_status(200).body;
            let via = &line["items"][0]["detail"]["via"]["api_key_id"];
            assert_eq!(via, by.unwrap_or(&serde_json::Value::Null), "{action}: {line}");
            assert_eq!(line["total"], 1, "{action}");
        }
    }
}

on_both! {
    async fn exactly_one_of_two_racing_applies_wins(database: Database) {
        let lab = Lab::start(database).await;
        let change = lab.stage_rule("Allow-HTTPS-mgmt").await;
        let (path, body) = (Lab::path(&change, "apply"), json!({ "force": true }));
        let (one, two) = tokio::join!(lab.api.post(&path, &body), lab.api.post(&path, &body));
        let mut statuses = [one.status, two.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{} {}", one.text, two.text);
        assert_eq!(lab.router.counters().applies, 1);
    }
}

on_both! {
    async fn the_one_who_staged_may_not_apply_where_a_second_person_is_required(database: Database) {
        let lab = Lab::start(database).await;
        let me = lab.api.get("/auth/me").await.expect_status(200).body;
        let org = me["organization"]["id"].as_str().or(me["organization_id"].as_str()).unwrap().to_owned();
        let settings = json!({ "settings": { "require_second_person": true } });
        lab.api.patch(&format!("/organizations/{org}"), &settings).await.expect_status(200);
        let change = lab.stage_rule("Allow-HTTPS-mgmt").await;
        let refused = lab.api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await.expect_status(403);
        assert_eq!(refused.error_type(), "second_person_required");
    }
}

on_both! {
    async fn a_discarded_change_stays_discarded(database: Database) {
        let lab = Lab::start(database).await;
        let change = lab.stage_rule("Allow-HTTPS-mgmt").await;
        lab.api.post(&format!("{}?force=false", Lab::path(&change, "discard")), &json!({})).await.expect_status(200);
        let refused = lab.api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await.expect_status(409);
        assert_eq!(refused.error_type(), "not_pending");
        assert_eq!(lab.get(&change).await["status"], "discarded");
    }
}

on_both! {
    async fn an_expired_change_does_not_look_like_a_discarded_one(database: Database) {
        let mut lab = Lab::start(database).await;
        let discarded = lab.stage_rule("Given-up").await;
        lab.api.post(&Lab::path(&discarded, "discard"), &json!({})).await.expect_status(200);
        let change = lab.stage_rule("Forgotten").await;
        let time = |name: &str| change[name].as_str().unwrap().parse::<Timestamp>().unwrap();
        lab.server.running().app.clock.advance(time("expires_at") - time("staged_at"));
        // Its token is of before.
        lab.api = lab.server.log_in("ada").await;
        let expired = lab.wait_for(&change, &["expired"]).await;
        assert_eq!(expired["status"], "discarded", "{expired}");
        assert!(expired["outcome"]["message"].as_str().unwrap().contains("expired"), "{expired}");
        assert_eq!(lab.get(&discarded).await["outcome"]["state"], "none");
        let refused = lab.api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await.expect_status(409);
        assert_eq!(refused.error_type(), "not_pending", "{}", refused.text);
        assert_eq!(lab.router.counters().applies, 0);
    }
}

on_both! {
    async fn a_payload_that_does_not_fit_the_schema_names_its_fields(database: Database) {
        let lab = Lab::start(database).await;
        let path = format!("{}/changes/openwrt.firewall.rule?operation=create", lab.area("firewall"));
        let payload = json!({ "payload": { "nam": "typo", "target": 7 } });
        let refused = lab.api.post(&path, &payload).await.expect_status(422);
        assert!(refused.text.contains("nam"), "{}", refused.text);
        let unknown = format!("{}/changes/openwrt.firewall.rul?operation=create", lab.area("firewall"));
        let refused = lab.api.post(&unknown, &payload).await.expect_status(404);
        assert!(refused.text.contains("openwrt.firewall.rule"), "{}", refused.text);
        let path = format!("{}/changes/openwrt.firewall.rule?operation=upsert", lab.area("firewall"));
        lab.api.post(&path, &payload).await.expect_status(422);
    }
}
