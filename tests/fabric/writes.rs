//! Steps that write stage a change, once, as who wrote them.

use serde_json::{Value, json};

use super::{connect, device, emit, id_of, organization, runs};
use crate::staging::Lab;
use crate::support::{event_type, on_both};

fn rule(lab: &Lab) -> Value {
    json!([{ "operation_id": "openwrt.firewall.rule.create", "params": {
        "controller_id": lab.controller,
        "payload": { "name": "{{trigger.name}}", "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT" },
        "notes": "by a Connection",
    } }])
}

on_both! {
    async fn a_write_step_stages_one_change_and_the_device_is_untouched(database: Database) {
        let lab = Lab::start(database).await;
        let org = organization(&lab.api).await;
        let before = lab.router.fingerprint();
        let connection = connect(&lab.api, json!({ "steps": rule(&lab) })).await;
        emit(&lab.server.running().app, org, event_type("device.offline"), device("Block-office")).await;
        let run = &runs(&lab.api, &format!("/fabric/connections/{}", id_of(&connection)), 1).await[0];
        assert_eq!(run["success"], true, "{run}");
        let output = &run["steps"][0]["output"];
        let path = format!("{}/changes", lab.area("firewall"));
        let changes = lab.api.get(&path).await.expect_status(200).body;
        assert_eq!(changes.as_array().unwrap().len(), 1, "{changes}");
        let change = &changes[0];
        assert_eq!((&change["id"], &change["status"]), (&output["change_id"], &json!("pending")));
        assert_eq!((&change["payload"]["name"], &change["notes"]), (&json!("Block-office"), &json!("by a Connection")));
        assert_eq!(change["staged_by"], connection["author_id"]);
        assert_eq!(lab.router.fingerprint(), before, "nothing is written before somebody applies it");
        let applied = lab.api.post(&Lab::path(change, "apply"), &json!({ "force": true })).await.expect_status(200).body;
        assert_eq!(applied["outcome"]["state"], "applied", "{applied}");
        assert_ne!(lab.router.fingerprint(), before);
        // The change and all its events name where it comes from.
        let via = json!({ "kind": "connection", "connection_id": connection["id"], "run_id": run["id"], "step": 0 });
        assert_eq!(change["staged_via"], via);
        let of_change = lab.api.get("/events?event_type=controller.change.*").await.expect_status(200).body;
        let causes: Vec<&Value> = of_change["items"].as_array().unwrap().iter().map(|event| &event["causation_id"]).collect();
        assert_eq!(causes, [&run["event_id"], &run["event_id"]], "staged and applied: {of_change}");
        let audit = lab.api.get("/audit?action=change.staged").await.expect_status(200).body;
        assert_eq!(audit["items"][0]["detail"]["run_id"], run["id"], "{audit}");
    }
}

on_both! {
    async fn a_connection_never_fires_twice_in_one_chain(database: Database) {
        let lab = Lab::start(database).await;
        let org = organization(&lab.api).await;
        let mut steps = rule(&lab);
        steps[0]["params"]["payload"]["name"] = json!("Again");
        let ring = connect(&lab.api, json!({ "source_event": "controller.change.staged", "steps": steps })).await;
        let start = connect(&lab.api, json!({ "steps": rule(&lab) })).await;
        emit(&lab.server.running().app, org, event_type("device.offline"), device("First")).await;
        let of = |connection: &Value| format!("/fabric/connections/{}", id_of(connection));
        assert_eq!(runs(&lab.api, &of(&start), 1).await[0]["success"], true);
        let found = runs(&lab.api, &of(&ring), 2).await;
        // Each event of the chain names the one before it.
        let staged = lab.api.get("/events?event_type=controller.change.staged").await.expect_status(200).body;
        let (second, first) = (&staged["items"][0], &staged["items"][1]);
        assert_eq!(second["causation_id"], first["id"], "{staged}");
        let cause = lab.api.get(&format!("/events/{}", first["causation_id"].as_str().unwrap())).await.expect_status(200).body;
        assert_eq!(cause["event_type"], "device.offline");
        assert_eq!((&found[0]["state"], &found[1]["state"]), (&json!("skipped"), &json!("success")), "{found:?}");
        assert!(found[0]["reason"].as_str().unwrap().starts_with("loop"), "{found:?}");
        let changes = lab.api.get(&format!("{}/changes", lab.area("firewall"))).await.expect_status(200).body;
        assert_eq!(changes.as_array().unwrap().len(), 2);
        // Its discard is an event of the same chain.
        lab.api.post(&Lab::path(&changes[0], "discard"), &json!({})).await.expect_status(200);
        runs(&lab.api, &of(&ring), 2).await;
    }
}

on_both! {
    async fn a_read_step_reads_live_and_what_cannot_be_reached_says_so(database: Database) {
        let lab = Lab::start(database).await;
        let org = organization(&lab.api).await;
        let steps = json!([{ "operation_id": "firewall.rule.list", "params": { "controller_id": lab.controller } }]);
        let connection = connect(&lab.api, json!({ "steps": steps })).await;
        let path = format!("/fabric/connections/{}", id_of(&connection));
        emit(&lab.server.running().app, org, event_type("device.offline"), device("x")).await;
        let run = &runs(&lab.api, &path, 1).await[0];
        assert!(!run["steps"][0]["output"]["items"].as_array().unwrap().is_empty(), "{run}");
        lab.router.fault(heddle_lab_openwrt::Fault::Cut { for_ms: None });
        emit(&lab.server.running().app, org, event_type("device.offline"), device("x")).await;
        let run = &runs(&lab.api, &path, 2).await[0];
        assert_eq!((&run["success"], &run["steps"][0]["error_code"]), (&json!(false), &json!("ADAPTER_ERROR")), "{run}");
    }
}
