//! Events that a plugin emits: of its declared types, so many a minute, and seen by who may.

use serde_json::{Value, json};

use super::{Lab, agree, fails, send, works};
use crate::fixtures::created;
use crate::support::{Api, on_both};

const DONE: &str = "plugin.scripted.done";

fn emit(n: &Value) -> Value {
    json!({ "do": "emit", "event-type": DONE, "payload": { "n": n } })
}

on_both! {
    async fn only_declared_events_are_emitted_and_start_connections(database: Database) {
        let lab = Lab::in_use(database).await;
        let types = lab.api.get("/events/types").await.expect_status(200).body;
        let declared = types.as_array().unwrap().iter().find(|one| one["event_type"] == DONE).expect("it is declared");
        assert_eq!(declared["payload_schema"]["properties"]["n"], json!({ "type": "integer" }));
        let steps = json!([{ "operation_id": "plugin.scripted.look", "params": { "do": "echo", "value": "{{trigger.n}}" } }]);
        let connection = created(&lab.api, "/fabric/connections", &json!({ "source_event": DONE, "steps": steps })).await;
        let undeclared = json!({ "source_event": DONE, "steps": [{ "operation_id": "fabric.log", "params": { "message": "{{trigger.other}}" } }] });
        lab.api.post("/fabric/connections", &undeclared).await.expect_status(422);

        works(&lab.api, "act", emit(&json!(7))).await;
        let mut ran = Value::Null;
        for _ in 0..300 {
            ran = lab.api.get(&format!("/fabric/connections/{connection}/runs")).await.expect_status(200).body["items"][0].clone();
            if ran["state"] == "success" {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        assert_eq!(ran["steps"][0]["output"]["value"], 7, "{ran}");
        for (event, payload) in [("plugin.scripted.other", json!({})), ("device.offline", json!({})), (DONE, json!({ "n": "x" }))] {
            fails(&lab.api, "act", json!({ "do": "emit", "event-type": event, "payload": payload })).await;
        }
        let found = lab.api.get(&format!("/events?event_type={DONE}")).await.expect_status(200).body;
        assert_eq!((&found["total"], &found["items"][0]["category"]), (&json!(1), &json!("plugin")), "{found}");
        // Events of an organization are its own.
        let stranger = lab.stranger().await;
        assert_eq!(stranger.get(&format!("/events?event_type={DONE}")).await.expect_status(200).body["total"], 0);
        // They stay readable when the plugin is gone.
        lab.api.delete("/plugins/scripted").await.expect_status(204);
        let found = lab.api.get(&format!("/events?event_type={DONE}")).await.expect_status(200).body;
        assert_eq!(found["total"], 1, "{found}");
    }
}

/// How many events of the plugin can be read.
async fn readable(api: &Api) -> Value {
    api.get(&format!("/events?event_type={DONE}")).await.expect_status(200).body["total"].clone()
}

on_both! {
    async fn events_stay_readable_when_no_package_declares_their_type_any_more(database: Database) {
        let mut lab = Lab::in_use(database).await;
        let [update, again] = ["1.1.0", "1.2.0"].map(|version| lab.archive(|manifest| {
            let other = manifest.to_string().replace(DONE, "plugin.scripted.other");
            *manifest = serde_json::from_str(&other).unwrap();
            manifest["version"] = json!(version);
        }));
        works(&lab.api, "act", emit(&json!(7))).await;
        send(&lab.api, &update).await.expect_status(201);
        assert_eq!(agree(&lab.api).await["version"], "1.1.0");
        assert_eq!(readable(&lab.api).await, 1, "after an update");
        lab.restart().await;
        assert_eq!(readable(&lab.api).await, 1, "after a start");
        fails(&lab.api, "act", emit(&json!(8))).await;
        lab.api.delete("/plugins/scripted").await.expect_status(204);
        assert_eq!(send(&lab.api, &again).await.expect_status(201).body["state"], "awaiting_consent");
        assert_eq!(readable(&lab.api).await, 1, "while another package waits for consent");
    }
}

on_both! {
    async fn a_type_of_a_package_that_never_served_is_not_declared(database: Database) {
        let lab = Lab::start(database).await;
        send(&lab.api, &lab.archive(|_| ())).await.expect_status(201);
        lab.api.get(&format!("/events?event_type={DONE}")).await.expect_status(422);
    }
}

on_both! {
    async fn an_event_with_the_key_of_an_earlier_one_is_dropped(database: Database) {
        let lab = Lab::in_use(database).await;
        let keyed = json!({ "do": "emit", "event-type": DONE, "payload": {}, "dedup-key": "ticket-1", "times": 3 });
        works(&lab.api, "act", keyed.clone()).await;
        works(&lab.api, "act", keyed).await;
        let found = lab.api.get(&format!("/events?event_type={DONE}")).await.expect_status(200).body;
        assert_eq!(found["total"], 1, "{found}");
    }
}

on_both! {
    async fn an_organization_gets_at_most_120_events_a_minute(database: Database) {
        let lab = Lab::in_use(database).await;
        let many = |times: u32| json!({ "do": "emit", "event-type": DONE, "payload": {}, "times": times });
        works(&lab.api, "act", many(100)).await;
        let (code, message) = fails(&lab.api, "act", many(50)).await;
        assert!(code == "RATE_LIMITED" && message.contains("120"), "{code}: {message}");
        let found = lab.api.get(&format!("/events?event_type={DONE}")).await.expect_status(200).body;
        assert_eq!(found["total"], 100, "all of a call or none");
        let stranger = lab.stranger().await;
        lab.switch_on(&stranger).await;
        works(&stranger, "act", many(100)).await;
    }
}
