//! The course that steps take: branches, a step for each item, what follows a failure; and which events start them, by
//! what they are about and by a key.

use chrono::TimeDelta;
use heddle_lab_openwrt::Fault;
use serde_json::{Value, json};

use super::{World, connect, device, filled, id_of, runs};
use crate::staging::Lab;
use crate::support::{Socket, event_type, on_both};

/// The run once so many have ended: the newest.
async fn newest(world: &World, connection: &Value, count: usize) -> Value {
    world.runs(connection, count).await[0].clone()
}

fn states(run: &Value) -> Vec<&str> {
    run["steps"].as_array().unwrap().iter().map(|step| step["state"].as_str().unwrap()).collect()
}

on_both! {
    async fn of_two_branches_one_is_taken(database: Database) {
        let world = World::start(database).await;
        let asks = |field: &str, value: Value| json!({
            "logic": "and", "conditions": [{ "field": field, "operator": "eq", "value": value }],
        });
        let log = |text: &str, when: Value| {
            json!({ "operation_id": "fabric.log", "params": { "message": text }, "when": when })
        };
        let connection = world.connect(json!({ "steps": [
            log("of the office", asks("trigger.name", json!("office"))),
            log("still of the office", asks("steps.0.skipped", json!(false))),
            log("of another place", asks("steps.0.skipped", json!(true))),
        ] })).await;
        world.emit(event_type("device.offline"), device("office")).await;
        assert_eq!(states(&newest(&world, &connection, 1).await), ["success", "success", "skipped"]);
        world.emit(event_type("device.offline"), device("lab")).await;
        assert_eq!(states(&newest(&world, &connection, 2).await), ["skipped", "skipped", "success"]);
    }
}

on_both! {
    async fn a_step_is_done_once_for_each_item(database: Database) {
        let world = World::start(database).await;
        for name in ["Annex", "Barn"] {
            world.api.post("/sites", &json!({ "name": name })).await.expect_status(201);
        }
        let each = |max: u16, goes_on: bool| json!({ "steps": [
            { "operation_id": "sites.list" },
            {
                "operation_id": "sites.get", "params": { "site_id": "{{item.id}}" },
                "for_each": { "items": "{{steps.0.output.items}}", "max": max }, "continue_on_error": goes_on,
            },
            {
                "operation_id": "sites.list", "params": { "search": "{{item.output.name}}" },
                "for_each": { "items": "{{steps.1.output.items}}" },
            },
        ] });
        let connection = world.connect(each(10, false)).await;
        world.emit(event_type("device.offline"), device("office")).await;
        let run = newest(&world, &connection, 1).await;
        assert_eq!((&run["success"], states(&run)), (&json!(true), vec!["success"; 3]), "{run}");
        let output = &run["steps"][1]["output"];
        assert_eq!((&output["count"], &output["failed"]), (&json!(3), &json!(0)), "{run}");
        let names: Vec<&str> =
            output["items"].as_array().unwrap().iter().map(|item| item["output"]["name"].as_str().unwrap()).collect();
        assert!(names.contains(&"Annex") && names.contains(&"Barn"), "{run}");
        for (item, name) in run["steps"][2]["output"]["items"].as_array().unwrap().iter().zip(names) {
            assert_eq!(item["output"]["items"][0]["name"], name, "{run}");
        }

        // More than the bound: nothing is done for any of them.
        let path = format!("/fabric/connections/{}", id_of(&connection));
        world.api.patch(&path, &each(2, false)).await.expect_status(200);
        world.emit(event_type("device.offline"), device("office")).await;
        let run = newest(&world, &connection, 2).await;
        assert_eq!((&run["state"], states(&run).len()), (&json!("failed"), 2), "{run}");
        assert!(run["reason"].as_str().unwrap().contains("has 3 items, more than the 2 of 'max'"), "{run}");
    }
}

on_both! {
    async fn an_item_that_fails_ends_the_others_unless_the_step_goes_on(database: Database) {
        let world = World::start(database).await;
        let each = |goes_on: bool| json!({ "source_event": "ingest.external", "steps": [
            {
                "operation_id": "sites.list", "params": { "search": "{{item}}" },
                "for_each": { "items": "{{trigger.data.names}}" }, "continue_on_error": goes_on,
            },
            { "operation_id": "fabric.log", "params": { "message": "{{steps.0.output.failed}} failed" } },
        ] });
        let tell = async |names: Value| {
            let body = json!({ "name": "names", "payload": { "names": names } });
            world.api.post("/fabric/ingest", &body).await.expect_status(202);
        };
        let (strict, going) = (world.connect(each(false)).await, world.connect(each(true)).await);
        tell(json!(["head", 7, "head"])).await;
        let run = newest(&world, &strict, 1).await;
        assert_eq!((&run["state"], &run["steps"][0]["output"]["count"]), (&json!("failed"), &json!(2)), "{run}");
        assert!(run["steps"][0]["message"].as_str().unwrap().starts_with("item 1: "), "{run}");
        let run = newest(&world, &going, 1).await;
        let output = &run["steps"][0]["output"];
        assert_eq!((&run["state"], &output["count"], &output["failed"]), (&json!("partial"), &json!(3), &json!(1)), "{run}");
        assert_eq!(run["steps"][1]["params"]["message"], "1 failed", "{run}");
        tell(json!("head")).await;
        let run = newest(&world, &strict, 2).await;
        assert!(run["reason"].as_str().unwrap().contains("is no list"), "{run}");
    }
}

on_both! {
    async fn a_failure_leads_to_the_steps_that_are_for_it(database: Database) {
        let world = World::start(database).await;
        let steps = |site: &str| json!({ "steps": [
            { "operation_id": "sites.list", "params": { "search": site } },
            { "operation_id": "sites.get", "params": { "site_id": "{{steps.0.output.items.0.id}}" } },
            { "operation_id": "fabric.log", "params": { "message": "found" } },
            {
                "operation_id": "fabric.log", "on_error": true,
                "params": { "message": "step {{error.step}} ({{error.operation_id}}) {{error.code}}: {{error.message}}" },
            },
        ] });
        let connection = world.connect(steps("{{trigger.name}}")).await;
        world.emit(event_type("device.offline"), device("head")).await;
        let run = newest(&world, &connection, 1).await;
        assert_eq!((&run["state"], states(&run)), (&json!("success"), vec!["success", "success", "success", "skipped"]), "{run}");
        world.emit(event_type("device.offline"), device("nowhere")).await;
        let run = newest(&world, &connection, 2).await;
        assert_eq!((&run["state"], states(&run)), (&json!("failed"), vec!["success", "failed", "skipped", "success"]), "{run}");
        let message = run["steps"][3]["params"]["message"].as_str().unwrap();
        assert!(message.starts_with("step 1 (sites.get) TEMPLATE_ERROR: "), "{run}");
        assert!(run["reason"].as_str().unwrap().starts_with("step 1 (sites.get) failed"), "{run}");
    }
}

on_both! {
    async fn what_a_course_cannot_be_is_refused(database: Database) {
        let world = World::start(database).await;
        let first = json!({ "operation_id": "sites.list" });
        let log = |message: &str| json!({ "operation_id": "fabric.log", "params": { "message": message } });
        let with = |mut step: Value, name: &str, value: Value| {
            step[name] = value;
            step
        };
        let items = |text: &str| json!({ "items": text });
        for (steps, word) in [
            (json!([first, log("{{item.id}}")]), "only in a step with 'for_each'"),
            (json!([first, log("{{error.message}}")]), "only in a step with 'on_error'"),
            (json!([with(log("x"), "on_error", json!(true))]), "no step comes before"),
            (json!([first, with(log("x"), "for_each", items("all"))]), "must be one reference to a list"),
            (json!([first, with(log("x"), "for_each", items("{{steps.0.output.items}} and"))]), "one reference"),
            (json!([with(log("x"), "for_each", items("{{steps.0.output.items}}"))]), "of an earlier step"),
            (json!([first, with(log("x"), "for_each", items("{{steps.0.output.itmes}}"))]), "items"),
            (json!([first, with(log("x"), "for_each", json!({ "items": "{{steps.0.output.items}}", "max": 101 }))]), "100"),
            (json!([first, with(json!({ "operation_id": "fabric.wait", "params": { "for_secs": 5 } }), "for_each",
                items("{{steps.0.output.items}}"))]), "a run waits once"),
        ] {
            let refused = world.api.post("/fabric/connections", &filled(json!({ "steps": steps }))).await.expect_status(422);
            assert!(refused.text.contains(word), "{word}: {}", refused.text);
        }
        for (fields, word) in [
            (json!({ "cooldown_key": "always" }), "tells events apart"),
            (json!({ "cooldown_key": "{{trigger.devcie_id}}" }), "device_id"),
            (json!({ "cooldown_key": "{{steps.0.output.total}}" }), "not of the event"),
        ] {
            let refused = world.api.post("/fabric/connections", &filled(fields)).await.expect_status(422);
            assert!(refused.text.contains(word), "{word}: {}", refused.text);
        }
        let about = |field: &str| json!({ "conditions": { "logic": "and", "conditions": [
            { "field": field, "operator": "exists" },
        ] } });
        for (field, word) in [("device.knid", "kind"), ("device.tags.first", "one field"), ("device.serial", "no 'serial'")] {
            let refused = world.api.post("/fabric/connections", &filled(about(field))).await.expect_status(422);
            assert!(refused.text.contains(word), "{word}: {}", refused.text);
        }
    }
}

on_both! {
    async fn a_pause_by_a_key_holds_for_each_value_of_it(database: Database) {
        let world = World::start(database).await;
        let of = |number: u8| {
            let mut payload = device("office");
            payload["device_id"] = json!(format!("01900000-0000-7000-8000-00000000000{number}"));
            payload
        };
        let connection =
            world.connect(json!({ "cooldown": 600, "cooldown_key": "{{trigger.device_id}}" })).await;
        assert_eq!(connection["cooldown_key"], "{{trigger.device_id}}");
        // At once, and one after the other.
        for number in [1, 2, 1] {
            world.emit(event_type("device.offline"), of(number)).await;
        }
        world.runs(&connection, 3).await;
        world.emit(event_type("device.offline"), of(2)).await;
        let all = world.runs(&connection, 4).await;
        let reasons: Vec<bool> = all.iter().rev().map(|run| run["state"] == "skipped").collect();
        assert_eq!(reasons, [false, false, true, true], "{all:?}");
        assert!(all[0]["reason"].as_str().unwrap().contains("with the same cooldown_key"), "{all:?}");
        world.app().clock.advance(TimeDelta::seconds(601));
        world.emit(event_type("device.offline"), of(1)).await;
        assert_eq!(newest(&world, &connection, 5).await["state"], "success");
        // Without the key the pause is one for all.
        let path = format!("/fabric/connections/{}", id_of(&connection));
        let changed = world.api.patch(&path, &json!({ "cooldown_key": null })).await.expect_status(200).body;
        assert_eq!(changed["cooldown_key"], Value::Null);
        world.emit(event_type("device.offline"), of(2)).await;
        assert_eq!(newest(&world, &connection, 6).await["state"], "skipped");
    }
}

on_both! {
    async fn conditions_ask_for_what_an_event_is_about(database: Database) {
        let lab = Lab::start(database).await;
        crate::devices::read(&lab).await;
        let about = |field: &str, operator: &str, value: Value| json!({
            "source_event": "device.status.changed",
            "steps": [{ "operation_id": "fabric.log", "params": { "message": "{{trigger.device_id}}" } }],
            "conditions": { "logic": "and", "conditions": [
                { "field": field, "operator": operator, "value": value },
                { "field": "new_status", "operator": "ne", "value": "online" },
            ] },
        });
        let phone = crate::devices::device(&lab.api, crate::devices::PHONE).await;
        let path = format!("/devices/{}", phone["id"].as_str().unwrap());
        lab.api.patch(&path, &json!({ "tags": ["vip"] })).await.expect_status(200);
        let of_router = connect(&lab.api, about("device.kind", "eq", json!("router"))).await;
        let of_vip = connect(&lab.api, about("device.tags", "contains", json!("vip"))).await;
        let of_vendor = connect(&lab.api, about("controller.vendor", "eq", json!("omada"))).await;
        let mut socket = Socket::subscribe(&lab.api, &["*"]).await;
        lab.router.fault(Fault::Cut { for_ms: None });
        let asked = lab.api.post(&format!("/controllers/{}/sync", lab.controller), &json!({})).await;
        crate::devices::controllers::ended(&lab.api, &asked.expect_status(202).body).await;
        // A device that was not there before gives no event.
        let events = crate::devices::published(&lab, &mut socket).await;
        let lost = events.iter().filter(|event| event["event_type"] == "device.status.changed").count();
        assert!(lost >= 2, "the router and the phone are lost: {events:?}");
        for (connection, fires) in [(&of_router, 1), (&of_vip, 1), (&of_vendor, 0)] {
            let path = format!("/fabric/connections/{}", id_of(connection));
            let all = runs(&lab.api, &path, lost).await;
            assert_eq!(all.iter().filter(|run| run["state"] == "success").count(), fires, "{all:?}");
        }
        let told = runs_of(&lab, &of_vip).await;
        assert_eq!(told["steps"][0]["params"]["message"], phone["id"], "{told}");
    }
}

async fn runs_of(lab: &Lab, connection: &Value) -> Value {
    let path = format!("/fabric/connections/{}/runs?outcome=success", id_of(connection));
    lab.api.get(&path).await.expect_status(200).body["items"][0].clone()
}
