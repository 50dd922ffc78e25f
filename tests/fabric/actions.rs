//! One operation at once, with the rights of the caller.

use heddle_core::Role;
use serde_json::json;

use super::{World, id_of};
use crate::staging::Lab;
use crate::support::on_both;

on_both! {
    async fn an_action_answers_its_run_and_is_kept(database: Database) {
        let world = World::start(database).await;
        let action = json!({ "operation_id": "sites.list", "params": { "search": "head" } });
        let done = world.api.post("/actions", &action).await.expect_status(201);
        assert_eq!(done.header("location"), format!("/api/v1/fabric/runs/{}", id_of(&done.body)));
        assert_eq!((&done.body["kind"], &done.body["success"]), (&json!("action"), &json!(true)), "{}", done.text);
        assert_eq!(done.body["steps"][0]["output"]["total"], 1);
        assert_eq!(world.api.get(&format!("/fabric/runs/{}", id_of(&done.body))).await.expect_status(200).body, done.body);
        let failed = json!({ "operation_id": "sites.get", "params": { "site_id": "01900000-0000-7000-8000-000000000000" } });
        let failed = world.api.post("/actions", &failed).await.expect_status(201).body;
        assert_eq!((&failed["state"], &failed["steps"][0]["error_code"]), (&json!("failed"), &json!("NOT_FOUND")));
        for (body, field) in [
            (json!({ "operation_id": "no.such" }), "operation_id"),
            (json!({ "operation_id": "sites.list", "params": { "limit": 0 } }), "params.limit"),
            (json!({ "operation_id": "sites.list", "params": { "search": "{{steps.0.output}}" } }), "steps.0.params"),
        ] {
            let answer = world.api.post("/actions", &body).await.expect_status(422);
            assert_eq!(answer.body["error"]["details"][0]["field"], crate::support::at(field), "{}", answer.text);
        }
        let (_, viewer) = world.member("vera", Role::Viewer).await;
        let seen = viewer.get("/actions").await.expect_status(200).body;
        assert_eq!((&seen["total"], &seen["items"][1]["steps"][0]["params"]), (&json!(2), &json!({ "hidden": true })));
        let (_, guest) = world.member("gus", Role::Guest).await;
        guest.post("/actions", &action).await.expect_status(201);
        let controllers = json!({ "operation_id": "controllers.list" });
        let refused = guest.post("/actions", &controllers).await.expect_status(403);
        assert!(refused.message().contains("controller:read"), "{}", refused.text);
        // The output of a run is shown only to a user who could have asked for it.
        let answered = viewer.post("/actions", &controllers).await.expect_status(201).body;
        let hidden = guest.get(&format!("/fabric/runs/{}", id_of(&answered))).await.expect_status(200).body;
        assert_eq!(hidden["steps"][0]["output"], json!({ "hidden": true }));
    }
}

on_both! {
    async fn a_key_with_scopes_keeps_its_ceiling(database: Database) {
        let world = World::start(database).await;
        let key = world.api.post("/api-keys", &json!({ "name": "k", "scopes": ["site:read"] })).await.expect_status(201).body;
        let scoped = world.server.nobody().with("x-api-key", key["api_key"].as_str().unwrap());
        scoped.post("/actions", &json!({ "operation_id": "sites.list" })).await.expect_status(201);
        let refused = scoped.post("/actions", &json!({ "operation_id": "devices.list" })).await.expect_status(403);
        assert_eq!(refused.error_type(), "scope_ceiling");
    }
}

on_both! {
    async fn an_action_that_writes_stages_once_for_one_key(database: Database) {
        let lab = Lab::start(database).await;
        let before = lab.router.fingerprint();
        let action = json!({ "operation_id": "openwrt.firewall.rule.create", "params": {
            "controller_id": lab.controller,
            "payload": { "name": "Once", "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT" },
        } });
        let keyed = lab.api.with("idempotency-key", "3f1c");
        let one = keyed.post("/actions", &action).await.expect_status(201);
        let two = keyed.post("/actions", &action).await.expect_status(201);
        assert_eq!((&one.body, two.header("idempotency-replayed")), (&two.body, "true"));
        assert_eq!(one.body["success"], true, "{}", one.text);
        let changes = lab.api.get(&format!("{}/changes", lab.area("firewall"))).await.expect_status(200).body;
        assert_eq!(changes.as_array().unwrap().len(), 1, "{changes}");
        // A key is good for a day.
        lab.server.running().app.clock.advance(chrono::TimeDelta::hours(25));
        let later = lab.server.log_in("ada").await.with("idempotency-key", "3f1c");
        let three = later.post("/actions", &action).await.expect_status(201);
        assert_ne!(id_of(&three.body), id_of(&one.body));
        assert_eq!(lab.router.fingerprint(), before);
    }
}
