//! Many at once: floods of events, slow steps, people who go away, and what was lost on the way.

use heddle_core::event::NewEvent;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{World, device, emit, event, filled, id_of, organization, runs};
use crate::support::{Database, Options, Server, event_type, on_both};

/// More than wait at once, and more than one transaction takes.
const FLOOD: usize = 1_300;

/// A place that takes requests and never answers.
async fn silence() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/hook", listener.local_addr().expect("it is bound"));
    (listener, url)
}

/// A server whose steps may call this machine.
async fn world(database: Database) -> World {
    let options = Options::default().with("FABRIC_WEBHOOK_ALLOWED_HOSTS", "127.0.0.1");
    let server = Server::start_with(database, options).await;
    let api = server.set_up().await;
    let org = organization(&api).await;
    World { server, api, org }
}

fn calling(url: &str) -> Value {
    json!({ "name": "Slow", "steps": [{ "operation_id": "fabric.webhook", "params": { "url": url } }] })
}

async fn flood(world: &World) {
    let events: Vec<NewEvent> = (0..FLOOD)
        .map(|number| event(event_type("device.offline"), world.org, device(&format!("device-{number}"))))
        .collect();
    let app = world.app();
    let mut tx = app.db.write().await.unwrap();
    heddle_store::events::append_all(&mut tx, world.org, &events, &app.clock).await.unwrap();
    tx.commit().await.unwrap();
}

async fn total(world: &World, connection: &Value, state: &str) -> u64 {
    let path = format!("/fabric/connections/{}/runs?limit=1&outcome={state}", id_of(connection));
    world.api.get(&path).await.expect_status(200).body["total"].as_u64().expect("a list has a total")
}

/// Waits until this is true, for a minute.
async fn until(what: &str, mut is_true: impl AsyncFnMut() -> bool) {
    for _ in 0..600 {
        if is_true().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("{what}");
}

on_both! {
    async fn a_flood_waits_for_its_turn_and_none_of_it_is_lost(database: Database) {
        let world = world(database).await;
        let steps = json!([{ "operation_id": "fabric.log", "params": { "level": "info", "message": "{{trigger.name}}" } }]);
        let conditions = [json!([]), json!([{ "field": "name", "operator": "eq", "value": "device-7" }])];
        let mut connections = Vec::new();
        for conditions in conditions {
            connections.push(world.connect(json!({ "steps": steps, "conditions": { "logic": "and", "conditions": conditions } })).await);
        }
        flood(&world).await;
        until("every event started its run", async || total(&world, &connections[0], "success").await == FLOOD as u64).await;
        assert_eq!(total(&world, &connections[1], "success").await, 1);
        let skipped = total(&world, &connections[1], "skipped").await;
        assert!((1_000..FLOOD as u64).contains(&skipped), "the newest thousand are kept: {skipped}");
        for state in ["queued", "running", "failed", "interrupted"] {
            assert_eq!(total(&world, &connections[0], state).await, 0, "{state}");
        }
    }
}

on_both! {
    async fn slow_steps_take_an_organizations_places_and_no_more(database: Database) {
        let world = world(database).await;
        let (_silence, url) = silence().await;
        let slow = world.connect(calling(&url)).await;
        for _ in 0..9 {
            world.emit(event_type("device.offline"), device("x")).await;
        }
        until("four are under way", async || total(&world, &slow, "running").await == 4).await;
        tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
        assert_eq!((total(&world, &slow, "running").await, total(&world, &slow, "queued").await), (4, 5));
        // Another organization is not held up.
        let body = json!({ "name": "Other" });
        let other = world.api.post("/organizations", &body).await.expect_status(201).body;
        let of_other = json!({ "organization_id": other["id"] });
        let quick = world.connect(of_other).await;
        let org = id_of(&other).parse().unwrap();
        emit(world.app(), org, event_type("device.offline"), device("y")).await;
        let found = world.runs(&quick, 1).await;
        assert_eq!(found[0]["organization_id"], other["id"], "{found:?}");
    }
}

on_both! {
    async fn four_people_may_wait_for_runs_and_who_goes_away_leaves_none_hanging(database: Database) {
        let world = world(database).await;
        let (silence, url) = silence().await;
        let slow = world.connect(calling(&url)).await;
        let path = format!("/fabric/connections/{}/test", id_of(&slow));
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let (api, path) = (world.api.clone(), path.clone());
            waiting.spawn(async move { api.post(&path, &json!({})).await });
        }
        until("four are under way", async || total(&world, &slow, "running").await == 4).await;
        let action = json!({ "operation_id": "sites.list", "params": {} });
        for answer in [world.api.post(&path, &json!({})).await, world.api.post("/actions", &action).await] {
            let answer = answer.expect_status(429);
            assert!(answer.body["detail"].as_str().unwrap().contains("wait until one has ended"), "{}", answer.text);
        }
        world.api.post(&path, &json!({ "dry_run": true })).await.expect_status(200);
        waiting.abort_all();
        drop(silence);
        let found = runs(&world.api, &format!("/fabric/connections/{}", id_of(&slow)), 4).await;
        assert!(found.iter().all(|run| run["state"] == "failed"), "{found:?}");
        world.api.post("/actions", &action).await.expect_status(201);
    }
}

on_both! {
    async fn a_run_that_nobody_has_in_hand_ends_as_interrupted(database: Database) {
        let world = world(database).await;
        let connection = world.connect(json!({})).await;
        world.emit(event_type("device.offline"), device("x")).await;
        let ended = world.runs(&connection, 1).await.remove(0);
        // As if the answer to a claim had been lost.
        let app = world.app();
        let mut tx = app.db.write().await.unwrap();
        let scope = heddle_store::Scope::organization(world.org);
        let id = id_of(&ended).parse().unwrap();
        let mut run = heddle_store::runs::find(&mut tx, &scope, id).await.unwrap().unwrap();
        run.id = app.clock.new_id();
        run.event_id = Some(app.clock.new_id());
        run.state = heddle_core::operation::RunState::Running;
        (run.ended_at, run.secret, run.steps) = (None, None, Vec::new());
        heddle_store::runs::insert_all(&mut tx, &[run]).await.unwrap();
        tx.commit().await.unwrap();
        let found = world.runs(&connection, 2).await;
        let lost = found.iter().find(|run| run["state"] == "interrupted").expect("one was lost");
        assert!(lost["reason"].as_str().unwrap().contains("not run again"), "{lost}");
    }
}

on_both! {
    async fn one_event_starts_no_more_than_two_hundred_of_one_pattern(database: Database) {
        let world = world(database).await;
        let first = world.connect(json!({})).await;
        let app = world.app();
        let mut tx = app.db.write().await.unwrap();
        let scope = heddle_store::Scope::organization(world.org);
        let row = heddle_store::connections::find_any(&mut tx, &scope, id_of(&first).parse().unwrap()).await.unwrap().unwrap();
        for _ in 1..200 {
            let row = heddle_store::connections::ConnectionRow { id: app.clock.new_id(), ..row.clone() };
            heddle_store::connections::insert(&mut tx, &row).await.unwrap();
        }
        tx.commit().await.unwrap();
        let body = filled(json!({}));
        let refused = world.api.post("/fabric/connections", &body).await.expect_status(409);
        assert!(refused.message().contains("200 enabled"), "{}", refused.text);
        let paused = world.connect(json!({ "state": "paused" })).await;
        let path = format!("/fabric/connections/{}", id_of(&paused));
        world.api.patch(&path, &json!({ "state": "enabled" })).await.expect_status(409);
        world.connect(json!({ "source_event": "device.state_changed" })).await;
        world.emit(event_type("device.offline"), device("x")).await;
        until("all of them ran", async || {
            let request = heddle_core::page::WalkRequest { per_page: 1, place: heddle_core::page::Place::Page(1), is_ascending: false };
            let filter = heddle_store::runs::RunFilter::default();
            let mut tx = world.app().db.read().await.unwrap();
            heddle_store::runs::walk(&mut tx, &scope, &filter, request).await.unwrap().total == 200
        })
        .await;
    }
}

on_both! {
    async fn an_event_of_a_newer_version_is_left_to_it_for_a_while(database: Database) {
        let world = world(database).await;
        let connection = world.connect(json!({ "source_event": "device.*" })).await;
        let app = world.app();
        let mut tx = app.db.write().await.unwrap();
        for name in ["abducted", "after"] {
            let event = event(event_type("device.offline"), world.org, device(name));
            heddle_store::events::append(&mut tx, &event, &app.clock).await.unwrap();
        }
        let renamed = "UPDATE event SET event_type = 'device.abducted' WHERE seq = (SELECT MAX(seq) - 1 FROM event)";
        match &mut tx {
            heddle_store::Tx::Sqlite(tx) => drop(sqlx::query(renamed).execute(&mut **tx).await.unwrap()),
            heddle_store::Tx::Postgres(tx) => drop(sqlx::query(renamed).execute(&mut **tx).await.unwrap()),
        }
        tx.commit().await.unwrap();
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        world.runs(&connection, 0).await;
        // No process of a newer version came.
        app.clock.advance(chrono::TimeDelta::minutes(6));
        let found = world.runs(&connection, 1).await;
        assert_eq!(found[0]["steps"][0]["params"], json!({ "search": "after" }), "{found:?}");
    }
}
