//! What the clock starts: once for each time, and what is done about times that were missed.

use chrono::{DateTime, TimeDelta, Utc};
use heddle_core::Role;
use serde_json::{Value, json};

use super::{World, broken, id_of, runs};
use crate::support::on_both;

const BASE: &str = "/automation/schedules";

fn filled(fields: Value) -> Value {
    let mut body = json!({
        "name": "Nightly", "cron": "30 2 * * *", "time_zone": "Europe/Berlin", "missed": "skip",
        "steps": [{ "operation_id": "sites.list", "params": { "limit": 1 } }],
    });
    for (name, value) in fields.as_object().cloned().unwrap_or_default() {
        body[name] = value;
    }
    body
}

fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap_or_else(|| panic!("a time: {value}")).parse().unwrap()
}

async fn seen(world: &World, schedule: &Value) -> Value {
    world.api.get(&format!("{BASE}/{}", id_of(schedule))).await.expect_status(200).body
}

/// Sets the clock to some seconds behind the time at which the schedule is due.
async fn advance_past(world: &mut World, schedule: &Value, seconds: i64) {
    let due = time(&seen(world, schedule).await["next_due_at"]);
    let clock = world.app().clock.clone();
    clock.advance(due + TimeDelta::seconds(seconds) - clock.now());
    // The token of before has expired.
    world.api = world.server.log_in("ada").await;
}

on_both! {
    async fn a_schedule_is_written_shown_with_its_next_times_and_removed(database: Database) {
        let world = World::start(database).await;
        let created = world.api.post(BASE, &filled(json!({}))).await.expect_status(201);
        let path = format!("{BASE}/{}", id_of(&created.body));
        assert_eq!(created.header("location"), format!("/api/v1{path}"));
        let upcoming = created.body["upcoming"].as_array().unwrap();
        assert_eq!((upcoming.len(), &upcoming[0]), (5, &created.body["next_due_at"]));
        let etag = created.header("etag").to_owned();
        let paused = world.api.with("if-match", &etag).patch(&path, &json!({ "state": "paused" })).await.expect_status(200);
        assert_eq!(paused.body["next_due_at"], Value::Null);
        world.api.with("if-match", &etag).patch(&path, &json!({ "name": "x" })).await.expect_status(412);
        let moved = json!({ "state": "enabled", "cron": "0 9 * * mon", "time_zone": "UTC", "missed": "run_once" });
        let moved = world.api.patch(&path, &moved).await.expect_status(200).body;
        assert_eq!((&moved["missed"], time(&moved["next_due_at"]).format("%H:%M %a").to_string()), (&json!("run_once"), "09:00 Mon".to_owned()));
        for (wrong, field) in [
            (json!({ "cron": "* * * *" }), "cron"), (json!({ "cron": "0 0 30 2 *" }), "cron"),
            (json!({ "time_zone": "Mars/Olympus" }), "time_zone"), (json!({ "missed": "perhaps" }), "missed"),
            (json!({ "steps": [] }), "steps"),
        ] {
            for answer in [world.api.post(BASE, &filled(wrong.clone())).await, world.api.patch(&path, &wrong).await] {
                let answer = answer.expect_status(422);
                assert_eq!(answer.body["error"]["details"][0]["field"], crate::support::at(field), "{}", answer.text);
            }
        }
        let (_, viewer) = world.member("vera", Role::Viewer).await;
        viewer.post(BASE, &filled(json!({}))).await.expect_status(403);
        assert_eq!(viewer.get(&path).await.body["steps"][0]["params"], json!({ "hidden": true }));
        assert_eq!(world.api.get(&format!("{BASE}?search=night")).await.body["total"], 1);
        assert_eq!(world.api.get("/fabric/connections").await.body["total"], 0, "it is no Connection");
        world.api.delete(&path).await.expect_status(204);
        world.api.get(&path).await.expect_status(404);
    }
}

on_both! {
    async fn a_removed_schedule_comes_back_for_the_times_to_come(database: Database) {
        let mut world = World::start(database).await;
        let created = world.api.post(BASE, &filled(json!({ "missed": "run_once" }))).await.expect_status(201).body;
        let path = format!("{BASE}/{}", id_of(&created));
        let due = time(&created["next_due_at"]);
        world.api.delete(&path).await.expect_status(204);
        let clock = world.app().clock.clone();
        clock.advance(due + TimeDelta::days(3) - clock.now());
        world.api = world.server.log_in("ada").await;
        let back = world.api.post(&format!("{path}/restore"), &json!({})).await.expect_status(200);
        let next = time(&back.body["next_due_at"]);
        assert!(next > clock.now() && next - clock.now() < TimeDelta::days(1), "{}", back.text);
        assert_eq!(&back.body["upcoming"][0], &back.body["next_due_at"]);
        assert_eq!(world.api.get(&path).await.expect_status(200).header("etag"), back.header("etag"));
        tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
        assert!(runs(&world.api, &path, 0).await.is_empty(), "what passed meanwhile was not missed");
        clock.advance(next - clock.now());
        world.api = world.server.log_in("ada").await;
        let ran = runs(&world.api, &path, 1).await;
        assert_eq!(ran[0]["state"], "success", "{}", ran[0]);
        // One that is paused is not due.
        world.api.patch(&path, &json!({ "state": "paused" })).await.expect_status(200);
        world.api.delete(&path).await.expect_status(204);
        let back = world.api.post(&format!("{path}/restore"), &json!({})).await.expect_status(200).body;
        assert_eq!((&back["state"], &back["next_due_at"]), (&json!("paused"), &Value::Null));
        let audit = world.api.get("/audit?target_type=schedule&action=schedule.restored").await.expect_status(200);
        assert_eq!(audit.body["total"], 2);
    }
}

on_both! {
    async fn a_time_that_is_due_runs_once_and_a_missed_one_by_its_policy(database: Database) {
        let mut world = World::start(database).await;
        let skipping = world.api.post(BASE, &filled(json!({}))).await.expect_status(201).body;
        let due = time(&skipping["next_due_at"]);
        let of = |schedule: &Value| format!("{BASE}/{}", id_of(schedule));
        advance_past(&mut world, &skipping, 2).await;
        let first = &runs(&world.api, &of(&skipping), 1).await[0];
        assert_eq!((&first["kind"], &first["state"], time(&first["due_at"])), (&json!("schedule"), &json!("success"), due), "{first}");
        assert_eq!(first["steps"][0]["output"]["total"], 1);
        let next = time(&seen(&world, &skipping).await["next_due_at"]);
        assert!(next > due && next - due <= TimeDelta::hours(25));
        // For three days no process is running.
        let once = world.api.post(BASE, &filled(json!({ "missed": "run_once" }))).await.expect_status(201).body;
        advance_past(&mut world, &skipping, 3 * 86_400 + 120).await;
        let found = runs(&world.api, &of(&skipping), 2).await;
        assert_eq!(found[0]["state"], "skipped", "{found:?}");
        assert!(found[0]["reason"].as_str().unwrap().starts_with("missed"), "{found:?}");
        let found = runs(&world.api, &of(&once), 1).await;
        assert_eq!(found[0]["state"], "success", "{found:?}");
        let now = world.app().clock.now();
        for schedule in [&skipping, &once] {
            assert!(time(&seen(&world, schedule).await["next_due_at"]) > now);
        }
        runs(&world.api, &of(&once), 1).await;
    }
}

on_both! {
    async fn a_schedule_of_who_is_no_administrator_any_more_breaks(database: Database) {
        let mut world = World::start(database).await;
        let (user, olga) = world.member("olga", Role::OrgAdmin).await;
        let schedule = olga.post(BASE, &filled(json!({}))).await.expect_status(201).body;
        world.api.patch(&format!("/users/{user}"), &json!({ "role": "viewer" })).await.expect_status(200);
        let due = time(&schedule["next_due_at"]);
        let broken = broken(&world.api, &format!("{BASE}/{}", id_of(&schedule))).await;
        assert_eq!(broken["next_due_at"], Value::Null, "{broken}");
        let event = world.api.get("/events?event_type=automation.connection.broken").await.expect_status(200).body;
        assert_eq!(event["items"][0]["payload"]["kind"], "schedule", "{event}");
        // Its time comes, and nothing is done.
        let clock = world.app().clock.clone();
        clock.advance(due + TimeDelta::seconds(1) - clock.now());
        world.api = world.server.log_in("ada").await;
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        runs(&world.api, &format!("{BASE}/{}", id_of(&schedule)), 0).await;
    }
}

on_both! {
    async fn a_schedule_whose_time_zone_nobody_knows_any_more_breaks(database: Database) {
        let mut world = World::start(database).await;
        let schedule = world.api.post(BASE, &filled(json!({}))).await.expect_status(201).body;
        let app = world.app();
        let mut tx = app.db.write().await.unwrap();
        let scope = heddle_store::Scope::organization(world.org);
        let id = id_of(&schedule).parse().unwrap();
        let mut row = heddle_store::connections::find_any(&mut tx, &scope, id).await.unwrap().unwrap();
        row.time_zone = Some("Mars/Olympus".to_owned());
        heddle_store::connections::update(&mut tx, &row, app.clock.now()).await.unwrap();
        tx.commit().await.unwrap();
        advance_past(&mut world, &schedule, 1).await;
        let broken = broken(&world.api, &format!("{BASE}/{}", id_of(&schedule))).await;
        assert_eq!((&broken["state"], &broken["next_due_at"]), (&json!("broken"), &Value::Null), "{broken}");
        assert!(broken["state_reason"].as_str().unwrap().contains("time zone"), "{broken}");
        let notices = world.api.get("/notifications").await.expect_status(200).body;
        assert!(notices["items"][0]["subject"].as_str().unwrap().contains("is broken"), "{notices}");
        runs(&world.api, &format!("{BASE}/{}", id_of(&schedule)), 0).await;
    }
}
