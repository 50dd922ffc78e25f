//! Actions of a plugin in Connections: with the rights of the author, and never writing a device.

use heddle_core::Role;
use serde_json::{Value, json};

use super::{Lab, SECRET, act, agree, fails, send, works};
use crate::fixtures::created;
use crate::staging::{ROUTER_PASSWORD, start_router};
use crate::support::{Api, on_both, register};

/// A Connection on events from outside with these steps.
async fn connect(api: &Api, steps: Value) -> String {
    created(api, "/fabric/connections", &json!({ "source_event": "ingest.external", "steps": steps })).await
}

/// Starts it, and answers its run.
async fn fire(api: &Api, connection: &str) -> Value {
    api.post("/fabric/ingest", &json!({ "name": "go", "payload": { "n": 7 } })).await.expect_status(202);
    for _ in 0..300 {
        let runs = api.get(&format!("/fabric/connections/{connection}/runs")).await.expect_status(200).body;
        let run = &runs["items"][0];
        if !run.is_null() && !["queued", "running"].contains(&run["state"].as_str().unwrap()) {
            return run.clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("it does not run");
}

on_both! {
    async fn a_connection_runs_an_action_with_the_organizations_secret(database: Database) {
        let lab = Lab::in_use(database).await;
        lab.api.put("/plugins/scripted/secrets/key", &json!({ "value": SECRET })).await.expect_status(204);
        let steps = json!([
            { "operation_id": "plugin.scripted.act", "params": {
                "do": "http", "target": "api", "path": "/v1/tickets", "method": "POST", "body": { "n": "{{trigger.data.n}}" },
                "secrets": { "header:X-Key": "key" },
            } },
            { "operation_id": "plugin.scripted.look", "params": { "do": "echo", "value": "{{steps.0.output.answers}}" } },
        ]);
        let connection = connect(&lab.api, steps).await;
        let run = fire(&lab.api, &connection).await;
        assert_eq!(run["success"], true, "{run}");
        assert_eq!(run["steps"][1]["output"]["value"][0]["status"], 200, "typed in and out: {run}");
        let sent = lab.device.seen();
        let sent = sent.last().unwrap();
        assert_eq!((sent.path.as_str(), sent.body.as_str()), ("/v1/tickets", r#"{"n":7}"#));
        assert!(sent.headers.contains(&("x-key".to_owned(), SECRET.to_owned())));
        let catalog = lab.api.get("/fabric/catalog/plugin.scripted.act").await.expect_status(200).body;
        assert_eq!((&catalog["tier"], &catalog["kind"], &catalog["owner"]), (&json!("plugin"), &json!("sink"), &json!("scripted")));
    }
}

on_both! {
    async fn what_a_plugin_does_not_declare_it_cannot_do(database: Database) {
        let lab = Lab::in_use(database).await;
        let http = |target: &str, path: &str, method: &str| json!({ "do": "http", "target": target, "path": path, "method": method });
        fails(&lab.api, "act", http("other", "/v1/x", "GET")).await;
        fails(&lab.api, "act", http("api", "/v2/x", "GET")).await;
        fails(&lab.api, "act", http("api", "/v1/x", "DELETE")).await;
        let read = fails(&lab.api, "look", http("api", "/v1/x", "POST")).await;
        assert!(!read.1.is_empty());
        assert!(lab.device.seen().is_empty(), "{:?}", lab.device.seen());
        fails(&lab.api, "look", json!({ "do": "call", "operation": "devices.list", "params": {} })).await;
    }
}

on_both! {
    async fn an_action_that_stages_stages_a_change_and_the_device_is_untouched(database: Database) {
        let lab = Lab::in_use(database).await;
        let router = start_router().await;
        let controller = register(&lab.api, &router.url(), ROUTER_PASSWORD).await;
        let before = router.fingerprint();
        let call = json!({ "do": "call", "operation": "openwrt.firewall.rule.create", "params": {
            "controller_id": controller["id"],
            "payload": { "name": "By-plugin", "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT" },
        } });
        // Only an action that says so stages.
        for action in ["look", "act"] {
            let (_, message) = fails(&lab.api, action, call.clone()).await;
            assert!(message.contains("does not call"), "{message}");
        }
        let connection = connect(&lab.api, json!([{ "operation_id": "plugin.scripted.arrange", "params": call }])).await;
        let run = fire(&lab.api, &connection).await;
        assert_eq!(run["success"], true, "{run}");
        let staged = &run["steps"][0]["output"]["answer"];
        assert_eq!(staged["status"], "pending", "{run}");
        assert_eq!(router.fingerprint(), before, "nothing is written before a person applies it");
        let change = lab.api.get(&format!("/gateway-vpn/changes/{}", staged["change_id"].as_str().unwrap())).await;
        let change = change.expect_status(200).body;
        assert_eq!((&change["staged_via"]["connection_id"], &change["staged_via"]["run_id"]), (&json!(connection), &run["id"]));
        // A sink of the host is nothing that a plugin calls.
        let log = json!({ "do": "call", "operation": "fabric.log", "params": { "message": "x" } });
        let (_, message) = fails(&lab.api, "arrange", log).await;
        assert!(message.contains("does not call"), "{message}");
    }
}

on_both! {
    async fn what_a_plugin_calls_is_done_with_the_rights_of_the_author(database: Database) {
        let lab = Lab::in_use(database).await;
        let list = json!({ "do": "call", "operation": "sites.list", "params": {} });
        let own = works(&lab.api, "look", list.clone()).await;
        assert_eq!(own["answer"]["total"], 1);
        // Another organization's author sees the other organization.
        let stranger = lab.stranger().await;
        lab.switch_on(&stranger).await;
        assert_eq!(works(&stranger, "look", list.clone()).await["answer"]["total"], 0);
        // A key without the permission has none through the plugin either.
        let key = json!({ "name": "k", "scopes": ["plugin.scripted.use"] });
        let key = lab.api.post("/api-keys", &key).await.expect_status(201).body;
        let scoped = lab.server.nobody().with("x-api-key", key["api_key"].as_str().unwrap());
        let step = json!({ "operation_id": "plugin.scripted.look", "params": list });
        let refused = scoped.post("/actions", &step).await.expect_status(403);
        assert_eq!(refused.error_type(), "scope_ceiling", "{}", refused.text);
        let operator = lab.member(Role::Operator, "otto").await;
        operator.post("/actions", &step).await.expect_status(403);
    }
}

on_both! {
    async fn a_permission_of_a_plugin_guards_its_actions_and_opens_scopes(database: Database) {
        let lab = Lab::start(database).await;
        let guarded = lab.archive(|manifest| manifest["actions"][0]["permission"] = json!("plugin.scripted.use"));
        send(&lab.api, &guarded).await.expect_status(201);
        let early = json!({ "name": "k", "scopes": ["plugin.scripted.use"] });
        lab.api.post("/api-keys", &early).await.expect_status(422);
        agree(&lab.api).await;
        lab.switch_on(&lab.api).await;
        let key = lab.api.post("/api-keys", &early).await.expect_status(201).body;
        let scoped = lab.server.nobody().with("x-api-key", key["api_key"].as_str().unwrap());
        works(&scoped, "look", json!({ "do": "echo", "value": 1 })).await;
        // The key reads nothing through the plugin that it could not read by itself.
        let (_, message) = fails(&scoped, "look", json!({ "do": "call", "operation": "sites.list", "params": {} })).await;
        assert!(message.contains("site:read"), "{message}");
        let role = json!({ "name": "Night shift", "permissions": ["plugin.scripted.use"] });
        lab.api.post("/roles", &role).await.expect_status(201);
        let other = lab.api.post("/api-keys", &json!({ "name": "o", "scopes": ["site:read"] })).await.expect_status(201).body;
        let other = lab.server.nobody().with("x-api-key", other["api_key"].as_str().unwrap());
        let step = json!({ "operation_id": "plugin.scripted.look", "params": { "do": "echo", "value": 1 } });
        let refused = other.post("/actions", &step).await.expect_status(403);
        assert!(refused.message().contains("plugin.scripted.use"), "{}", refused.text);
    }
}

on_both! {
    async fn an_answer_that_the_schema_does_not_allow_fails_the_step(database: Database) {
        let lab = Lab::start(database).await;
        let typed = lab.archive(|manifest| {
            manifest["actions"][0]["output-schema"] = json!({
                "type": "object", "properties": { "value": { "type": "integer" } }, "required": ["value"],
            });
            manifest["actions"][0]["params-schema"] = json!({
                "type": "object", "properties": { "do": { "type": "string" }, "value": {} }, "required": ["do"],
            });
        });
        send(&lab.api, &typed).await.expect_status(201);
        agree(&lab.api).await;
        lab.switch_on(&lab.api).await;
        works(&lab.api, "look", json!({ "do": "echo", "value": 1 })).await;
        let (code, message) = fails(&lab.api, "look", json!({ "do": "echo", "value": "x" })).await;
        assert_eq!(code, "ADAPTER_ERROR");
        assert!(message.contains("output-schema"), "{message}");
        let wrong = json!({ "operation_id": "plugin.scripted.look", "params": { "value": 1 } });
        lab.api.post("/actions", &wrong).await.expect_status(422);
    }
}

on_both! {
    async fn a_plugin_that_panics_spins_or_floods_fails_its_step_and_nothing_else(database: Database) {
        let lab = Lab::in_use(database).await;
        let (stopped, late) = ("ADAPTER_ERROR", "TIMEOUT");
        for (how, code) in [("panic", stopped), ("spin", late), ("memory", stopped), ("huge-output", stopped)] {
            let run = act(&lab.api, "look", json!({ "do": "burn", "how": how })).await;
            assert_eq!((&run["success"], &run["steps"][0]["error_code"]), (&json!(false), &json!(code)), "{how}: {run}");
        }
        lab.api.get("/health/ready").await.expect_status(200);
    }
}
