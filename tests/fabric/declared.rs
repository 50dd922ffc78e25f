//! What the declared schemas tell is refused when it is saved, with the nearest right word; and what the catalogue says of
//! operations is what they give.

use serde_json::{Value, json};

use super::{World, filled, id_of};
use crate::staging::Lab;
use crate::support::{Answer, on_both};

/// Field and message of what an answer refuses.
fn refusals(answer: &Answer) -> Vec<(String, String)> {
    let details = answer.body["error"]["details"].as_array().cloned().unwrap_or_default();
    let text = |detail: &Value, name: &str| detail[name].as_str().unwrap_or_default().to_owned();
    details.iter().map(|detail| (text(detail, "field"), text(detail, "message"))).collect()
}

fn one_step(operation: &str, params: &Value) -> Value {
    json!({ "steps": [{ "operation_id": operation, "params": params }] })
}

on_both! {
    async fn what_is_not_declared_is_refused_with_the_nearest_word(database: Database) {
        let world = World::start(database).await;
        let absent = "01900000-0000-7000-8000-0000000000ff";
        let when = |field: &str| json!({ "conditions": { "logic": "and", "conditions": [{ "field": field, "operator": "exists" }] } });
        let search = |text: &str| one_step("sites.list", &json!({ "search": text }));
        let hook = |params: Value| one_step("fabric.webhook", &params);
        for (change, said) in [
            (search("{{trigger.devcie_id}}"), "did you mean 'device_id'?"),
            (search("{{trigger.event_type}}"), "did you mean 'event.event_type'?"),
            (search("{{event.sqe}}"), "did you mean 'seq'?"),
            (search("{{event.name}}"), "did you mean 'trigger.name'?"),
            (search("{{trigger.name.first}}"), "no object"),
            (when("nmae"), "did you mean 'name'?"),
            (when("trigger.nmae"), "did you mean 'name'?"),
            (when("event.prioritty"), "did you mean 'priority'?"),
            (one_step("sites.get", &json!({ "site_id": absent })), "does not exist in the organization"),
            (one_step("devices.list", &json!({ "controller_id": absent })), "controller '01900000"),
            (one_step("fabric.notify", &json!({ "channel_id": absent, "subject": "s", "body": "b" })), "channel '01900000"),
            (one_step("devices.get", &json!({ "device_id": "x" })), "is not the id of a device"),
            (hook(json!({ "url": "hooks.example.org/x" })), "full URL"),
            (hook(json!({ "url": "https://user:pass@hooks.example.org/x" })), "give credentials in a header"),
            (hook(json!({ "url": "https://hooks.example.org/x", "headers": { "Host": "a" } })), "set by the service alone"),
            (hook(json!({ "url": "https://hooks.example.org/x", "headers": { "X-Fabric-Signature": "a" } })), "set by the service alone"),
        ] {
            for list in ["/fabric/connections", "/automation/rules"] {
                let answer = world.api.post(list, &filled(change.clone())).await.expect_status(422);
                let found = refusals(&answer);
                assert!(found.len() == 1 && found[0].1.contains(said), "{change}: {found:?}");
            }
        }
        // An output that the operation does not declare.
        let steps = json!({ "steps": [
            { "operation_id": "sites.list" },
            { "operation_id": "sites.get", "params": { "site_id": "{{steps.0.output.itmes.0.id}}" } },
        ] });
        let found = refusals(&world.api.post("/fabric/connections", &filled(steps)).await.expect_status(422));
        assert!(found[0].1.contains("did you mean 'items'?"), "{found:?}");
        // The clock gives what it gives.
        let schedule = |text: &str| json!({
            "name": "Nightly", "cron": "0 3 * * *", "time_zone": "UTC", "missed": "skip",
            "steps": [{ "operation_id": "sites.list", "params": { "search": text } }],
        });
        for wrong in ["{{trigger.deu_at}}", "{{event.id}}"] {
            world.api.post("/automation/schedules", &schedule(wrong)).await.expect_status(422);
        }
        let made = world.api.post("/automation/schedules", &schedule("{{trigger.due_at}}")).await.expect_status(201).body;
        let path = format!("/automation/schedules/{}", id_of(&made));
        let steps = json!([{ "operation_id": "sites.get", "params": { "site_id": absent } }]);
        world.api.patch(&path, &json!({ "steps": steps })).await.expect_status(422);
    }
}

on_both! {
    async fn an_edit_is_judged_as_a_whole(database: Database) {
        let world = World::start(database).await;
        let made = world.connect(json!({ "steps": [{ "operation_id": "sites.list", "params": { "search": "{{trigger.name}} {{event.seq}}" } }] })).await;
        let path = format!("/fabric/connections/{}", id_of(&made));
        // Its steps read what the other event does not have.
        let refused = world.api.patch(&path, &json!({ "source_event": "user.created" })).await.expect_status(422);
        assert!(refusals(&refused)[0].1.contains("'username'") || refusals(&refused)[0].1.contains("there are"), "{}", refused.text);
        let both = json!({ "source_event": "user.created", "steps": [{ "operation_id": "sites.list", "params": { "search": "{{trigger.username}}" } }] });
        world.api.patch(&path, &both).await.expect_status(200);
        world.api.patch(&path, &json!({ "conditions": { "logic": "and", "conditions": [{ "field": "name", "operator": "exists" }] } })).await.expect_status(422);
        world.api.patch(&path, &json!({ "name": "Only a name" })).await.expect_status(200);
    }
}

on_both! {
    async fn a_channel_in_use_is_not_removed_and_says_by_what(database: Database) {
        let world = World::start(database).await;
        let channel = json!({ "kind": "slack", "label": "Ops", "webhook_url": "https://hooks.example/canary" });
        let channel = world.api.post("/notifications/channels", &channel).await.expect_status(201).body;
        let path = format!("/notifications/channels/{}", id_of(&channel));
        let params = json!({ "channel_id": channel["id"], "subject": "{{trigger.name}}", "body": "gone" });
        let mut body = one_step("fabric.notify", &params);
        body["name"] = json!("Tell operators");
        let made = world.connect(body).await;
        let refused = world.api.delete(&path).await.expect_status(409);
        assert_eq!(refused.error_type(), "in_use");
        assert!(refused.message().contains("connection 'Tell operators'"), "{}", refused.text);
        world.api.delete(&format!("/fabric/connections/{}", id_of(&made))).await.expect_status(204);
        world.api.delete(&path).await.expect_status(204);
    }
}

/// What an operation answers fits what it declares.
#[track_caller]
fn fits(schema: &Value, value: &Value, what: &str) {
    let validator = jsonschema::validator_for(schema).unwrap_or_else(|error| panic!("{what}: {error}"));
    let faults: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(faults.is_empty(), "{what}: {faults:?}\n{value}\n{schema}");
}

/// One operation carried out at once; its output.
async fn act(lab: &Lab, operation: &str, params: &Value) -> Value {
    let action = json!({ "operation_id": operation, "params": params });
    let run = lab.api.post("/actions", &action).await.expect_status(201).body;
    assert_eq!(run["success"], true, "{operation}: {run}");
    run["steps"][0]["output"].clone()
}

on_both! {
    async fn every_operation_declares_what_it_gives_and_gives_that(database: Database) {
        let lab = Lab::start(database).await;
        crate::devices::read(&lab).await;
        let catalog = lab.api.get("/fabric/catalog?schemas=true").await.expect_status(200).body;
        let operations = catalog["operations"].as_array().unwrap();
        assert!(operations.len() > 30, "{}", operations.len());
        // There is a controller of one vendor.
        let described = heddle_adapter_openwrt::description();
        let own_kinds = described["kinds"].as_array().unwrap();
        let mut done = Vec::new();
        for operation in operations {
            let (id, schema) = (operation["id"].as_str().unwrap(), &operation["output_schema"]);
            assert!(["normal", "destructive", "catastrophic"].contains(&operation["danger"].as_str().unwrap()), "{id}");
            assert!(schema["properties"].as_object().is_some_and(|fields| !fields.is_empty()), "{id} declares no output");
            assert_eq!(schema["additionalProperties"], false, "{id} gives what it declares and nothing else");
            fits(schema, &operation["example"]["output"], &format!("example of the output of {id}"));
            fits(&operation["params_schema"], &operation["example"]["params"], &format!("example of the parameters of {id}"));
            // Lists of objects as they are on the device, and one of each.
            let Some(kind) = id.strip_suffix(".list").filter(|_| operation["kind"] == "read") else { continue };
            let is_live = operation["params_schema"]["properties"].get("cursor").is_some();
            if is_live && !own_kinds.iter().any(|own| own["id"] == kind) {
                continue;
            }
            let params = if is_live { json!({ "controller_id": lab.controller, "limit": 5 }) } else { json!({}) };
            let output = act(&lab, id, &params).await;
            fits(schema, &output, id);
            if !is_live {
                // With every filter that it declares.
                fits(schema, &act(&lab, id, &operation["example"]["params"]).await, id);
            }
            done.push(id.to_owned());
            let get = format!("{kind}.get");
            let declared = operations.iter().find(|other| other["id"] == get);
            let (Some(declared), Some(first)) = (declared, output["items"].as_array().and_then(|items| items.first())) else { continue };
            let params = if is_live {
                json!({ "controller_id": lab.controller, "key": first["reference"]["key"] })
            } else {
                let name = declared["params_schema"]["required"][0].as_str().unwrap();
                json!({ name: first["id"] })
            };
            fits(&declared["output_schema"], &act(&lab, &get, &params).await, &get);
            done.push(get);
        }
        let find = |id: &str| operations.iter().find(|operation| operation["id"] == id).unwrap();
        for (id, params) in [
            ("fabric.log", json!({ "message": "m" })),
            ("fabric.notify", json!({ "subject": "s", "body": "b" })),
            ("openwrt.firewall.rule.create", json!({
                "controller_id": lab.controller,
                "payload": { "name": "Once", "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT" },
            })),
        ] {
            fits(&find(id)["output_schema"], &act(&lab, id, &params).await, id);
        }
        assert!(done.len() > 12, "{done:?}");
        let triggers = catalog["triggers"].as_array().unwrap();
        let schedule = triggers.iter().find(|trigger| trigger["kind"] == "schedule").unwrap();
        assert!(schedule["payload_schema"]["properties"]["due_at"]["description"].is_string(), "{schedule}");
        let event = lab.api.get("/events?per_page=1").await.expect_status(200).body["items"][0].clone();
        fits(&triggers[0]["event_schema"], &event, "event");
    }
}

on_both! {
    async fn a_json_answer_of_a_webhook_is_an_object_in_the_output(database: Database) {
        let (_server, api, receiver) = crate::webhooks::start(database).await;
        let steps = |path: &str| json!({ "steps": [
            { "operation_id": "fabric.webhook", "params": { "url": receiver.url(path) } },
            { "operation_id": "sites.list", "params": { "search": "ticket {{steps.0.output.body.ticket.id}}" } },
        ] });
        let run = async |path: &str| {
            let made = api.post("/fabric/connections", &filled(steps(path))).await.expect_status(201).body;
            let test = format!("/fabric/connections/{}/test", id_of(&made));
            api.post(&test, &json!({ "payload": { "name": "edge" } })).await.expect_status(200).body
        };
        let parsed = run("/json").await;
        assert_eq!(parsed["steps"][0]["output"]["body"], json!({ "ticket": { "id": 4711 } }), "{parsed}");
        assert_eq!(parsed["steps"][1]["params"], json!({ "search": "ticket 4711" }));
        let broken = run("/broken-json").await;
        assert_eq!(broken["steps"][0]["output"]["body"], "{\"ticket\":", "{broken}");
        assert_eq!(broken["steps"][1]["error_code"], "TEMPLATE_ERROR");
        let text = run("/ok").await;
        assert!(text["steps"][0]["output"]["body"].as_str().unwrap().starts_with("fine"), "{text}");
    }
}
