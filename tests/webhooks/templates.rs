//! Payloads that an organization writes itself.

use serde_json::json;

use super::{delivery, emit, start, subscribe, until};
use crate::support::on_both;

on_both! {
    async fn a_template_is_filled_with_the_event_and_stays_while_it_is_used(database: Database) {
        let (server, api, receiver) = start(database).await;
        let payload = json!({
            "text": "{{trigger.name}} is gone ({{event.event_type}})",
            "number": "{{event.seq}}", "fixed": [1, true],
        });
        let body = json!({ "name": "Chat", "payload": payload });
        let made = api.post("/webhooks/templates", &body).await.expect_status(201);
        let path = format!("/webhooks/templates/{}", made.body["id"].as_str().unwrap());
        assert_eq!(api.get(&path).await.expect_status(200).body["payload"], payload);
        let again = api.post("/webhooks/templates", &json!({ "name": "CHAT", "payload": {} })).await.expect_status(409);
        assert!(again.message().contains("'CHAT'"), "{}", again.text);
        for bad in ["{{", "{{event.di}}", "{{steps.0.output.x}}", "{{trigger.a b}}", "{{trigger.nmae}}", "{{trigger.payload.name}}"] {
            let refused = api.post("/webhooks/templates", &json!({ "name": bad, "payload": { "text": bad } })).await.expect_status(422);
            assert_eq!(refused.body["error"]["details"][0]["field"], "/payload", "{bad}: {}", refused.text);
        }
        let hook = subscribe(&api, &receiver.url("/ok")).await;
        let used = json!({ "template_id": made.body["id"] });
        api.patch(&format!("/webhooks/{hook}"), &used).await.expect_status(200);
        let seq = emit(&server, &api, None, "edge").await;
        let got = until("the delivery", || async { receiver.got("/ok").pop() }).await;
        let expected = json!({ "text": "edge is gone (device.offline)", "number": seq, "fixed": [1, true] });
        assert_eq!(got.json(), expected);
        let refused = api.delete(&path).await.expect_status(409);
        assert!(refused.message().contains("(1)"), "{}", refused.text);

        // What is not in the event cannot be sent, and trying again would not help.
        let missing = json!({ "payload": { "site": "{{trigger.new_status}}" } });
        api.patch(&path, &missing).await.expect_status(200);
        let audit = api.get("/audit?target_type=webhook_template").await.expect_status(200);
        assert_eq!(audit.body["items"][0]["detail"], json!({ "name": "Chat" }), "no payload in the audit log");
        let other = subscribe(&api, &receiver.url("/other")).await;
        api.patch(&format!("/webhooks/{other}"), &used).await.expect_status(200);
        emit(&server, &api, None, "edge").await;
        let dead = delivery(&api, &other, |row| row["state"] == "dead").await;
        assert!(dead["last_error"].as_str().unwrap().contains("new_status"), "{dead}");
        // A template has to fit what the subscription is sent.
        let users = json!({ "events": ["user.*"] });
        let misfit = api.post("/webhooks/templates", &json!({ "name": "Users", "payload": { "who": "{{trigger.username}}" } })).await.expect_status(201).body;
        let refused = api.patch(&format!("/webhooks/{other}"), &json!({ "template_id": misfit["id"] })).await.expect_status(422);
        assert!(refused.text.contains("'{{trigger.username}}'"), "{}", refused.text);
        api.patch(&format!("/webhooks/{other}"), &users).await.expect_status(200);
        api.patch(&format!("/webhooks/{other}"), &json!({ "template_id": misfit["id"] })).await.expect_status(200);
        for id in [hook, other] {
            api.delete(&format!("/webhooks/{id}")).await.expect_status(204);
        }
        api.delete(&format!("/webhooks/templates/{}", misfit["id"].as_str().unwrap())).await.expect_status(204);
        api.delete(&path).await.expect_status(204);
        api.get(&path).await.expect_status(404);
        assert_eq!(api.get("/webhooks/templates").await.expect_status(200).body["total"], 0);
    }
}
