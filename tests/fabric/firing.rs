//! What fires, what does not and why, and how steps follow each other.

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{World, device, id_of};
use crate::support::{event_type, on_both};

fn when(conditions: Value) -> Value {
    json!({ "conditions": { "logic": "and", "conditions": conditions } })
}

on_both! {
    async fn an_event_fires_what_it_meets_and_the_rest_says_why_not(database: Database) {
        let world = World::start(database).await;
        world.emit(event_type("device.offline"), device("before")).await;
        let all = world.connect(json!({ "source_event": "*" })).await;
        let office = world.connect(when(json!([
            { "field": "name", "operator": "starts_with", "value": "off" },
            { "field": "event_type", "operator": "eq", "value": "device.offline" },
        ]))).await;
        let other = world.connect(json!({ "source_event": "device.status.*" })).await;
        let draft = world.connect(json!({ "state": "draft" })).await;
        world.emit(event_type("device.offline"), device("office")).await;
        world.emit(event_type("device.offline"), device("lab")).await;
        let runs = world.runs(&all, 2).await;
        assert!(runs.iter().all(|run| run["success"] == true && run["event_type"] == "device.offline"), "{runs:?}");
        let runs = world.runs(&office, 2).await;
        assert_eq!((&runs[0]["state"], &runs[1]["state"]), (&json!("skipped"), &json!("success")));
        let reason = runs[0]["reason"].as_str().unwrap();
        assert!(reason.contains("condition 0") && reason.contains("name starts_with"), "{reason}");
        assert_eq!(runs[1]["steps"][0]["output"]["items"][0]["name"], "Head office", "{runs:?}");
        let path = format!("/fabric/connections/{}/runs", id_of(&office));
        let skipped = world.api.get(&format!("{path}?outcome=skipped")).await.expect_status(200).body;
        assert_eq!(skipped["total"], 1);
        let first = world.api.get(&format!("{path}?limit=1")).await.expect_status(200).body;
        let next = first["next_cursor"].as_str().unwrap();
        let second = world.api.get(&format!("{path}?limit=1&cursor={next}")).await.expect_status(200).body;
        assert_eq!((id_of(&second["items"][0]), &second["next_cursor"]), (id_of(&runs[1]), &Value::Null));
        world.api.get(&format!("{path}?limit=201")).await.expect_status(422);
        world.runs(&other, 0).await;
        world.runs(&draft, 0).await;
        // Enabled, it begins with what comes.
        let path = format!("/fabric/connections/{}", id_of(&draft));
        world.api.patch(&path, &json!({ "state": "enabled" })).await.expect_status(200);
        world.emit(event_type("device.offline"), device("office")).await;
        world.runs(&draft, 1).await;
        world.api.patch(&path, &json!({ "state": "paused" })).await.expect_status(200);
        world.emit(event_type("device.offline"), device("office")).await;
        world.runs(&all, 4).await;
        world.runs(&draft, 1).await;
    }
}

on_both! {
    async fn a_cooldown_keeps_it_quiet_for_its_time(database: Database) {
        let world = World::start(database).await;
        let quiet = world.connect(json!({ "cooldown": 600 })).await;
        world.emit(event_type("device.offline"), device("office")).await;
        world.emit(event_type("device.offline"), device("office")).await;
        let runs = world.runs(&quiet, 2).await;
        assert_eq!((&runs[0]["state"], &runs[1]["state"]), (&json!("skipped"), &json!("success")));
        assert!(runs[0]["reason"].as_str().unwrap().starts_with("cooldown"), "{runs:?}");
        world.app().clock.advance(TimeDelta::seconds(601));
        world.emit(event_type("device.offline"), device("office")).await;
        assert_eq!(world.runs(&quiet, 3).await[0]["state"], "success");
    }
}

on_both! {
    async fn steps_follow_each_other_and_errors_end_the_chain_unless_they_may_go_on(database: Database) {
        let world = World::start(database).await;
        let steps = |goes_on: bool| json!({ "steps": [
            { "operation_id": "sites.list", "params": { "search": "head" } },
            { "operation_id": "devices.get", "params": { "device_id": "{{trigger.device_id}}" }, "continue_on_error": goes_on },
            { "operation_id": "sites.get", "params": { "site_id": "{{steps.0.output.items.0.id}}" } },
            { "operation_id": "sites.list", "params": { "search": "{{steps.2.output.name}}", "limit": "{{steps.0.output.total}}" } },
        ] });
        let going = world.connect(steps(true)).await;
        let ending = world.connect(steps(false)).await;
        // A field that only some of the covered types have.
        let missing = world.connect(json!({ "source_event": "device.*", "steps": [
            { "operation_id": "sites.list", "params": { "search": "{{trigger.new_status}}" } },
        ] })).await;
        let misfit = world.connect(json!({ "steps": [
            { "operation_id": "sites.list", "params": { "limit": "{{trigger.name}}" } },
        ] })).await;
        world.emit(event_type("device.offline"), device("office")).await;
        let run = &world.runs(&going, 1).await[0];
        assert_eq!((&run["success"], run["steps"].as_array().unwrap().len()), (&json!(true), 4), "{run}");
        assert_eq!((&run["steps"][1]["success"], &run["steps"][1]["error_code"]), (&json!(false), &json!("NOT_FOUND")));
        assert_eq!(run["steps"][3]["params"], json!({ "search": "Head office", "limit": 1 }));
        let run = &world.runs(&ending, 1).await[0];
        assert_eq!((&run["state"], run["steps"].as_array().unwrap().len()), (&json!("failed"), 2), "{run}");
        let run = &world.runs(&missing, 1).await[0];
        assert_eq!(run["steps"][0]["error_code"], "TEMPLATE_ERROR", "{run}");
        assert!(run["steps"][0]["message"].as_str().unwrap().contains("'new_status'"), "{run}");
        let run = &world.runs(&misfit, 1).await[0];
        assert_eq!(run["steps"][0]["error_code"], "INVALID_PARAMS", "{run}");
    }
}

on_both! {
    async fn a_trial_fires_once_and_a_dry_run_only_shows(database: Database) {
        let world = World::start(database).await;
        let paused = world.connect(json!({
            "state": "paused",
            "conditions": { "logic": "and", "conditions": [{ "field": "name", "operator": "eq", "value": "lab" }] },
            "steps": [
                { "operation_id": "sites.list", "params": { "search": "{{trigger.name}}" } },
                { "operation_id": "sites.list", "params": { "limit": "{{steps.0.output.total}}" } },
            ],
        })).await;
        let path = format!("/fabric/connections/{}/test", id_of(&paused));
        let dry = world.api.post(&path, &json!({ "payload": { "name": "head" }, "dry_run": true })).await.expect_status(200).body;
        assert_eq!((&dry["state"], &dry["steps"][0]["params"]), (&json!("skipped"), &json!({ "search": "head" })), "{dry}");
        assert_eq!(dry["steps"][1]["params"], json!({ "limit": "{{steps.0.output.total}}" }));
        assert!(dry["reason"].as_str().unwrap().contains("condition 0"), "{dry}");
        assert!(dry["steps"].as_array().unwrap().iter().all(|step| step["state"] == "skipped" && step["success"] == false), "{dry}");
        let wrong = world.api.post(&path, &json!({ "payload": {}, "dry_run": true })).await.expect_status(200).body;
        assert_eq!((&wrong["steps"][0]["error_code"], &wrong["steps"][0]["state"]), (&json!("TEMPLATE_ERROR"), &json!("failed")), "{wrong}");
        world.runs(&paused, 0).await;
        let run = world.api.post(&path, &json!({ "payload": { "name": "head" } })).await.expect_status(200).body;
        assert_eq!((&run["kind"], &run["success"], &run["steps"][1]["params"]), (&json!("test"), &json!(true), &json!({ "limit": 1 })), "{run}");
        assert_eq!(id_of(&world.runs(&paused, 1).await[0]), id_of(&run));
    }
}
