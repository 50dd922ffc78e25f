//! Steps that wait, steps with conditions, and what becomes of runs that fail.

use chrono::TimeDelta;
use heddle_core::event::format_time;
use heddle_core::{Role, Timestamp};
use serde_json::{Value, json};

use super::{World, connect, device, filled, id_of};
use crate::support::{event_type, on_both};

/// The newest run of a Connection once it stands so.
async fn standing(world: &World, connection: &Value, state: &str) -> Value {
    let path = format!("/fabric/connections/{}/runs?limit=1", id_of(connection));
    let mut seen = Value::Null;
    for _ in 0..300 {
        seen = world.api.get(&path).await.expect_status(200).body;
        if seen["items"][0]["state"] == state {
            return seen["items"][0].clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("no run is {state}: {seen}");
}

fn after_a_wait(wait: Value) -> Value {
    json!({ "steps": [
        { "operation_id": "sites.list", "params": { "search": "head" } },
        { "operation_id": "fabric.wait", "params": wait },
        { "operation_id": "sites.list", "params": { "search": "{{steps.0.output.items.0.name}}" } },
    ] })
}

on_both! {
    async fn a_wait_lasts_its_time_and_the_steps_behind_it_read_what_came_before(database: Database) {
        let world = World::start(database).await;
        let connection = world.connect(after_a_wait(json!({ "for_secs": 300 }))).await;
        world.emit(event_type("device.offline"), device("office")).await;
        let run = standing(&world, &connection, "waiting").await;
        assert_eq!((run["steps"].as_array().unwrap().len(), &run["success"]), (1, &json!(null)), "{run}");
        assert!(run["resume_at"].is_string() && run["reason"].as_str().unwrap().starts_with("waits until"), "{run}");
        world.app().clock.advance(TimeDelta::seconds(301));
        let run = standing(&world, &connection, "success").await;
        let waited = &run["steps"][1]["output"];
        assert_eq!((&waited["came"], &waited["event"]), (&json!(false), &json!(null)), "{run}");
        assert!(waited["waited_secs"].as_i64().unwrap() >= 300, "{run}");
        assert_eq!(run["steps"][2]["params"], json!({ "search": "Head office" }), "{run}");
        assert_eq!(run["steps"][2]["output"]["total"], 1);
        assert_eq!(run["resume_at"], json!(null));
    }
}

on_both! {
    async fn a_wait_ends_by_the_event_that_fits_and_by_no_other(database: Database) {
        let world = World::start(database).await;
        let connection = world.connect(after_a_wait(json!({
            "for_secs": 3600,
            "event": "device.status.changed",
            "conditions": { "logic": "and", "conditions": [
                { "field": "device_id", "operator": "eq", "value": "{{trigger.device_id}}" },
                { "field": "new_status", "operator": "eq", "value": "online" },
            ] },
        }))).await;
        world.emit(event_type("device.offline"), device("office")).await;
        standing(&world, &connection, "waiting").await;
        let status = |device: &str, status: &str| {
            let id = "01900000-0000-7000-8000-000000000001";
            json!({ "device_id": device, "controller_id": id, "site_id": id, "new_status": status })
        };
        let (own, other) = ("01900000-0000-7000-8000-000000000001", "01900000-0000-7000-8000-000000000002");
        world.emit(event_type("device.status.changed"), status(other, "online")).await;
        world.emit(event_type("device.status.changed"), status(own, "offline")).await;
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        standing(&world, &connection, "waiting").await;
        world.emit(event_type("device.status.changed"), status(own, "online")).await;
        let run = standing(&world, &connection, "success").await;
        let waited = &run["steps"][1]["output"];
        assert_eq!((&waited["came"], &waited["event"]["new_status"]), (&json!(true), &json!("online")), "{run}");
    }
}

on_both! {
    async fn a_wait_survives_a_restart(database: Database) {
        let mut world = World::start(database).await;
        let connection = world.connect(after_a_wait(json!({ "for_secs": 300 }))).await;
        world.emit(event_type("device.offline"), device("office")).await;
        let before = standing(&world, &connection, "waiting").await;
        world.restart().await;
        let waiting = standing(&world, &connection, "waiting").await;
        assert_eq!((&waiting["id"], &waiting["resume_at"]), (&before["id"], &before["resume_at"]));
        world.app().clock.advance(TimeDelta::seconds(301));
        let run = standing(&world, &connection, "success").await;
        assert_eq!((&run["id"], run["steps"].as_array().unwrap().len()), (&before["id"], 3), "{run}");
        assert!(run["steps"][1]["output"]["waited_secs"].as_i64().unwrap() >= 300, "{run}");
        assert_eq!(run["steps"][2]["params"], json!({ "search": "Head office" }), "{run}");
    }
}

on_both! {
    async fn a_wait_until_a_time_ends_then_and_not_before(database: Database) {
        let world = World::start(database).await;
        let until = world.app().clock.now() + TimeDelta::minutes(10);
        let connection = world.connect(after_a_wait(json!({ "until": format_time(until) }))).await;
        world.emit(event_type("device.offline"), device("office")).await;
        let run = standing(&world, &connection, "waiting").await;
        assert_eq!(run["resume_at"].as_str().unwrap().parse::<Timestamp>().unwrap(), until, "{run}");
        world.app().clock.advance(TimeDelta::minutes(8));
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        standing(&world, &connection, "waiting").await;
        world.app().clock.advance(TimeDelta::minutes(3));
        let run = standing(&world, &connection, "success").await;
        let waited = &run["steps"][1]["output"];
        assert_eq!((&waited["came"], &waited["event"]), (&json!(false), &json!(null)), "{run}");
        assert_eq!(run["steps"][2]["params"], json!({ "search": "Head office" }), "{run}");
        // A time that is over holds nothing up.
        let path = format!("/fabric/connections/{}", id_of(&connection));
        world.api.patch(&path, &after_a_wait(json!({ "until": format_time(until) }))).await.expect_status(200);
        world.emit(event_type("device.offline"), device("office")).await;
        let run = &world.runs(&connection, 2).await[0];
        assert_eq!((&run["state"], &run["steps"][1]["output"]["waited_secs"]), (&json!("success"), &json!(0)), "{run}");
    }
}

on_both! {
    async fn the_absence_of_an_event_leads_to_the_steps_that_are_for_it(database: Database) {
        let world = World::start(database).await;
        let came = |came: bool| json!({
            "logic": "and", "conditions": [{ "field": "steps.0.output.came", "operator": "eq", "value": came }],
        });
        let connection = world.connect(json!({ "steps": [
            { "operation_id": "fabric.wait", "params": { "for_secs": 600, "event": "device.status.changed" } },
            { "operation_id": "sites.list", "when": came(true) },
            { "operation_id": "sites.list", "params": { "search": "head" }, "when": came(false) },
        ] })).await;
        world.emit(event_type("device.offline"), device("office")).await;
        let run = standing(&world, &connection, "waiting").await;
        assert!(run["reason"].as_str().unwrap().starts_with("waits for 'device.status.changed' until"), "{run}");
        world.app().clock.advance(TimeDelta::seconds(601));
        let run = standing(&world, &connection, "success").await;
        let waited = &run["steps"][0]["output"];
        assert_eq!((&waited["came"], &waited["event"]), (&json!(false), &json!(null)), "{run}");
        let states: Vec<&str> = run["steps"].as_array().unwrap().iter().map(|step| step["state"].as_str().unwrap()).collect();
        assert_eq!(states, ["success", "skipped", "success"], "{run}");
        assert_eq!(run["steps"][2]["output"]["total"], 1, "{run}");
    }
}

on_both! {
    async fn a_run_that_waits_goes_on_with_its_own_steps_and_ends_with_its_connection(database: Database) {
        let world = World::start(database).await;
        let connection = world.connect(after_a_wait(json!({ "for_secs": 600 }))).await;
        let path = format!("/fabric/connections/{}", id_of(&connection));
        world.emit(event_type("device.offline"), device("office")).await;
        standing(&world, &connection, "waiting").await;
        let steps = json!({ "steps": [{ "operation_id": "controllers.list" }] });
        world.api.patch(&path, &steps).await.expect_status(200);
        world.app().clock.advance(TimeDelta::seconds(601));
        let run = standing(&world, &connection, "success").await;
        assert_eq!((run["steps"].as_array().unwrap().len(), &run["steps"][2]["operation_id"]), (3, &json!("sites.list")), "{run}");
        // Removed while one waits, nothing of it goes on.
        world.api.patch(&path, &after_a_wait(json!({ "for_secs": 600 }))).await.expect_status(200);
        world.emit(event_type("device.offline"), device("office")).await;
        let run = standing(&world, &connection, "waiting").await;
        world.api.patch(&path, &json!({ "state": "paused" })).await.expect_status(200);
        world.app().clock.advance(TimeDelta::seconds(601));
        let ended = standing(&world, &connection, "skipped").await;
        assert_eq!((id_of(&ended), ended["steps"].as_array().unwrap().len()), (id_of(&run), 1), "{ended}");
    }
}

on_both! {
    async fn a_step_is_passed_over_unless_its_conditions_hold(database: Database) {
        let world = World::start(database).await;
        let when = |field: &str, operator: &str, value: Value| json!({
            "logic": "and", "conditions": [{ "field": field, "operator": operator, "value": value }],
        });
        let connection = world.connect(json!({ "steps": [
            { "operation_id": "sites.list", "params": { "search": "{{trigger.name}}" } },
            { "operation_id": "sites.list", "when": when("steps.0.output.total", "gt", json!(0)) },
            { "operation_id": "sites.list", "when": when("steps.0.output.total", "eq", json!(0)) },
            { "operation_id": "sites.list", "when": when("event.event_type", "eq", json!("device.offline")) },
        ] })).await;
        for (name, passed_over) in [("head", [false, false, true, false]), ("nowhere", [false, true, false, false])] {
            world.emit(event_type("device.offline"), device(name)).await;
            let run = standing(&world, &connection, "success").await;
            let mut run = run;
            for _ in 0..300 {
                if run["payload"]["name"] == name {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                run = standing(&world, &connection, "success").await;
            }
            let skipped: Vec<bool> = run["steps"].as_array().unwrap().iter().map(|step| step["state"] == "skipped").collect();
            assert_eq!(skipped, passed_over, "{run}");
        }
        let ahead = filled(json!({ "steps": [
            { "operation_id": "sites.list", "when": when("steps.0.output.total", "eq", json!(0)) },
        ] }));
        let refused = world.api.post("/fabric/connections", &ahead).await.expect_status(422);
        assert!(refused.text.contains("of an earlier step"), "{}", refused.text);
    }
}

on_both! {
    async fn a_run_that_fails_is_told_listed_and_run_again(database: Database) {
        let world = World::start(database).await;
        // The id of no site, which only the run knows.
        let get = |goes_on: bool| {
            json!({ "operation_id": "sites.get", "params": { "site_id": "{{trigger.device_id}}" }, "continue_on_error": goes_on })
        };
        let failing = world.connect(json!({ "steps": [get(false)] })).await;
        let going = world.connect(json!({ "steps": [get(true), { "operation_id": "sites.list" }] })).await;
        world.emit(event_type("device.offline"), device("office")).await;
        let run = standing(&world, &failing, "failed").await;
        let reason = run["reason"].as_str().unwrap();
        assert!(reason.contains("step 0 (sites.get)") && reason.contains("NOT_FOUND"), "{run}");
        assert_eq!(run["payload"]["name"], "office", "{run}");
        let partial = standing(&world, &going, "partial").await;
        assert_eq!(partial["success"], true, "{partial}");
        // One event, and one notice an hour.
        world.emit(event_type("device.offline"), device("lab")).await;
        world.runs(&failing, 2).await;
        let events = world.api.get("/events?event_type=automation.run.failed").await.expect_status(200).body;
        assert_eq!(events["total"], 2, "{events}");
        let payload = &events["items"][1]["payload"];
        assert_eq!((&payload["run_id"], &payload["step"], &payload["error_code"]), (&run["id"], &json!(0), &json!("NOT_FOUND")), "{events}");
        let notices = world.api.get("/notifications").await.expect_status(200).body;
        let told = notices["items"].as_array().unwrap().iter().filter(|one| one["subject"].as_str().unwrap().contains("failed"));
        assert_eq!(told.count(), 1, "{notices}");
        let listed = world.api.get("/fabric/runs?outcome=failed").await.expect_status(200).body;
        assert_eq!(listed["total"], 2, "{listed}");
        let of_type = world.api.get("/fabric/runs?event_type=device.offline").await.expect_status(200).body;
        assert_eq!(of_type["total"], 4, "{of_type}");
        // Mended, it is run again with what came.
        let path = format!("/fabric/connections/{}", id_of(&failing));
        let mended = json!({ "steps": [{ "operation_id": "sites.list", "params": { "search": "{{trigger.name}}" } }] });
        world.api.patch(&path, &mended).await.expect_status(200);
        let again = world.api.post(&format!("/fabric/runs/{}/rerun", id_of(&run)), &json!({})).await.expect_status(201).body;
        assert_eq!((&again["kind"], &again["rerun_of"]), (&json!("rerun"), &run["id"]), "{again}");
        let ended = standing(&world, &failing, "success").await;
        assert_eq!((id_of(&ended), &ended["steps"][0]["params"]), (id_of(&again), &json!({ "search": "office" })), "{ended}");
        world.api.patch(&path, &json!({ "state": "paused" })).await.expect_status(200);
        world.api.post(&format!("/fabric/runs/{}/rerun", id_of(&run)), &json!({})).await.expect_status(409);
    }
}

on_both! {
    async fn a_run_that_failed_shows_its_event_without_secrets(database: Database) {
        let world = World::start(database).await;
        let canary = "canary-of-the-event-5uP3r";
        let get = json!({ "operation_id": "sites.get", "params": { "site_id": "{{trigger.device_id}}" } });
        let connection = world.connect(json!({ "steps": [get] })).await;
        let mut payload = device("office");
        payload["token"] = json!(canary);
        payload["about"] = json!({ "key": { "access_token": canary }, "model": "x1" });
        world.emit(event_type("device.offline"), payload).await;
        let run = standing(&world, &connection, "failed").await;
        assert_eq!((&run["payload"]["name"], &run["payload"]["about"]), (&json!("office"), &json!({ "key": {}, "model": "x1" })), "{run}");
        let one = format!("/fabric/runs/{}", id_of(&run));
        let own = format!("/fabric/connections/{}/runs", id_of(&connection));
        for path in [one.as_str(), &own, "/fabric/runs", "/events?event_type=automation.run.failed", "/notifications"] {
            let shown = world.api.get(path).await.expect_status(200).text;
            assert!(!shown.contains(canary), "{path}: {shown}");
        }
    }
}

on_both! {
    async fn all_connections_of_an_author_break_soon_after_the_loss(database: Database) {
        let world = World::start(database).await;
        for (name, body) in [("dora", json!({ "is_active": false })), ("olga", json!({ "role": "operator" }))] {
            let (user, api) = world.member(name, Role::OrgAdmin).await;
            let mut paths = Vec::new();
            for _ in 0..3 {
                paths.push(format!("/fabric/connections/{}", id_of(&connect(&api, json!({})).await)));
            }
            world.api.patch(&format!("/users/{user}"), &body).await.expect_status(200);
            for path in &paths {
                let mut seen = Value::Null;
                for _ in 0..200 {
                    seen = world.api.get(path).await.expect_status(200).body;
                    if seen["state"] == "broken" {
                        break;
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
                assert!(seen["state"] == "broken" && seen["state_reason"].as_str().unwrap().contains(name), "{seen}");
            }
        }
        let events = world.api.get("/events?event_type=automation.connection.broken").await.expect_status(200).body;
        assert_eq!(events["total"], 6, "each once: {events}");
        let notices = world.api.get("/notifications").await.expect_status(200).body;
        assert_eq!(notices["total"], 6, "{notices}");
    }
}

on_both! {
    async fn a_schedule_is_tried_by_hand(database: Database) {
        let world = World::start(database).await;
        let schedule = world.api.post("/automation/schedules", &json!({
            "name": "Nightly", "cron": "0 3 * * *", "time_zone": "Europe/Vienna", "missed": "skip",
            "steps": [{ "operation_id": "sites.list", "params": { "search": "{{trigger.schedule_id}}" } }],
        })).await.expect_status(201).body;
        let path = format!("/automation/schedules/{}/test", id_of(&schedule));
        let run = world.api.post(&path, &json!({ "payload": { "schedule_id": "head" } })).await.expect_status(200).body;
        assert_eq!((&run["kind"], &run["state"], &run["steps"][0]["output"]["total"]), (&json!("test"), &json!("success"), &json!(1)), "{run}");
    }
}
