//! The main job, as a newcomer does it.

use serde_json::json;

use super::Lab;
use crate::support::{Socket, on_both};

on_both! {
    async fn a_reviewed_change_reaches_the_router_and_is_confirmed(database: Database) {
        let lab = Lab::start(database).await;
        let api = &lab.api;
        let mut socket = Socket::subscribe(api, &["controller.*", "device.*"]).await;

        // What is on the network.
        api.post(&format!("/controllers/{}/sync", lab.controller), &json!({})).await.expect_status(202);
        let synced = socket.event("controller.sync.finished").await;
        assert_eq!(synced["payload"]["controller_id"], lab.controller);
        let devices = api.get("/devices?per_page=100").await.expect_status(200).body;
        assert!(devices["items"].as_array().unwrap().iter().any(|d| d["kind"] == "router"), "{devices}");
        assert!(devices["items"].as_array().unwrap().iter().any(|d| d["kind"] == "client"), "{devices}");
        let features = api.get(&lab.area("firewall")).await.expect_status(200).body;
        assert!(features["features"].as_array().unwrap().iter().any(|f| f["id"] == "openwrt.firewall.rule"));
        for (area, resource) in
            [("base", "network.interface"), ("base", "network.vlan"), ("dhcp", "dhcp.lease"), ("firewall", "firewall.rule")]
        {
            let page = api.get(&format!("{}/{resource}", lab.area(area))).await.expect_status(200).body;
            assert!(page["items"].is_array(), "{resource}: {page}");
        }

        // Staged: nothing is written, and everything that will be is shown.
        let before = lab.router.fingerprint();
        let change = lab.stage_rule("Allow-HTTPS-mgmt").await;
        assert_eq!(change["status"], "pending");
        assert_eq!(change["outcome"]["state"], "none");
        assert!(!change["plan"]["native"].as_array().unwrap().is_empty(), "{change}");
        assert_eq!(lab.router.fingerprint(), before, "staging writes nothing");
        assert_eq!(socket.event("controller.change.staged").await["payload"]["change_id"], change["id"]);

        // Applied with a window, and confirmed in it.
        let applied = api
            .post(
                &Lab::path(&change, "apply"),
                &json!({ "force": true, "plan_hash": change["plan"]["hash"], "confirm_within_secs": 60 }),
            )
            .await
            .expect_status(200)
            .body;
        assert_eq!(applied["outcome"]["state"], "awaiting_confirm", "{applied}");
        assert_eq!(applied["status"], "pending");
        assert_eq!(lab.router.counters().confirms, 0, "the device still holds the change provisionally");
        let confirmed = api.post(&Lab::path(&change, "confirm"), &json!({})).await.expect_status(200).body;
        assert_eq!(confirmed["outcome"]["state"], "applied", "{confirmed}");
        assert_eq!(confirmed["status"], "applied");
        assert_eq!(lab.router.counters().confirms, 1);
        assert_ne!(lab.router.fingerprint(), before);
        assert_eq!(socket.event("controller.change.applied").await["payload"]["change_id"], change["id"]);

        // Every step is in the audit log, and the chain holds.
        let audit = api.get("/audit?per_page=200&target_type=change").await.expect_status(200).body;
        let actions: Vec<&str> =
            audit["items"].as_array().unwrap().iter().rev().map(|e| e["action"].as_str().unwrap()).collect();
        assert_eq!(actions, ["change.staged", "change.apply_started", "change.confirmed", "change.applied"]);
        for entry in audit["items"].as_array().unwrap() {
            assert_eq!(entry["detail"]["plan_hash"], change["plan"]["hash"]);
        }
        let valid = api.get("/audit/validate").await.expect_status(200).body;
        assert_eq!(valid["valid"], true, "{valid}");
    }
}

on_both! {
    async fn a_change_without_a_window_is_read_back_and_permanent(database: Database) {
        let lab = Lab::start(database).await;
        let change = lab.stage_rule("Allow-HTTPS-mgmt").await;
        let applied =
            lab.api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await.expect_status(200).body;
        assert_eq!(applied["outcome"]["state"], "applied", "{applied}");
        assert_eq!(lab.router.counters().confirms, 1);
        let again = lab.api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await.expect_status(409);
        assert_eq!(again.error_type(), "not_pending");
    }
}

on_both! {
    async fn a_reverted_change_leaves_the_router_as_it_was(database: Database) {
        let lab = Lab::start(database).await;
        let before = lab.router.fingerprint();
        let change = lab.stage_rule("Allow-HTTPS-mgmt").await;
        lab.api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await.expect_status(200);
        let inverse = lab.api.post(&Lab::path(&change, "revert"), &json!({})).await.expect_status(201).body;
        assert_eq!(inverse["reverts"], change["id"]);
        lab.api.post(&Lab::path(&inverse, "apply"), &json!({ "force": true })).await.expect_status(200);
        assert_eq!(lab.router.fingerprint(), before);
        let original = lab.get(&change).await;
        assert_eq!(original["outcome"]["state"], "reverted", "{original}");
        assert_eq!(original["status"], "applied");
        assert_eq!(original["reverted_by"], inverse["id"]);
    }
}

on_both! {
    async fn an_unreachable_controller_does_not_prevent_staging(database: Database) {
        let lab = Lab::start(database).await;
        lab.router.fault(heddle_lab_openwrt::Fault::Cut { for_ms: None });
        let change = lab.stage_rule("Allow-HTTPS-mgmt").await;
        assert!(change["plan"].is_null(), "{change}");
        assert_eq!(change["plan_error"]["type"], "adapter_connection_error", "{change}");
        let refused = lab.api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await.expect_status(409);
        assert_eq!(refused.error_type(), "not_planned");
        lab.router.clear_faults();
        let planned = lab.api.post(&Lab::path(&change, "plan"), &json!({})).await.expect_status(200).body;
        assert!(planned["plan"]["hash"].is_string(), "{planned}");
        lab.api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await.expect_status(200);
    }
}
