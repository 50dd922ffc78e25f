//! Several processes on one database: each event fires each Connection once, whoever dies.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{filled, id_of};
use crate::processes::{Pair, quick};
use crate::support::Api;

/// Events of the test with two processes.
const EVENTS: i64 = 300;
const CONNECTIONS: usize = 3;

async fn connect(api: &Api, fields: Value) -> Value {
    api.post("/fabric/connections", &filled(fields)).await.expect_status(201).body
}

/// So many devices go offline, as far as the database knows.
async fn make_events(pair: &Pair, count: i64) {
    use heddle_core::event::{EventType, NewEvent};
    let crate::support::Database::Postgres(url) = &pair.database else { panic!("a pair is on PostgreSQL") };
    let pool = heddle_store::PoolSettings { connections_max: 2, acquire_timeout: Duration::from_secs(10) };
    let db = heddle_store::Db::open(url, &pool).await.unwrap();
    let clock = heddle_core::Clock::default();
    let org = super::organization(&pair.a.api).await;
    for number in 0..count {
        let event = NewEvent {
            event_type: EventType::DeviceOffline,
            org_id: org,
            site_id: None,
            controller_id: None,
            device_id: None,
            causation_id: None,
            run_id: None,
            payload: super::device(&format!("device-{number}")),
        };
        let mut tx = db.write().await.unwrap();
        heddle_store::events::append(&mut tx, &event, &clock).await.unwrap();
        tx.commit().await.unwrap();
    }
    db.close().await;
}

async fn settled(pair: &Pair, expected: i64) {
    for _ in 0..900 {
        let all = pair.sql("SELECT COUNT(*) FROM connection_run").await;
        let open = pair.sql("SELECT COUNT(*) FROM connection_run WHERE state IN ('queued', 'running')").await;
        if all >= expected && open == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let all = pair.sql("SELECT COUNT(*) FROM connection_run").await;
    panic!("{all} runs of {expected}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_fire_each_connection_once_for_each_event() {
    let Some(pair) = Pair::start(quick()).await else { return };
    for _ in 0..CONNECTIONS {
        connect(&pair.a.api, json!({})).await;
    }
    make_events(&pair, EVENTS).await;
    let expected = EVENTS * i64::try_from(CONNECTIONS).unwrap();
    settled(&pair, expected).await;
    assert_eq!(pair.sql("SELECT COUNT(*) FROM connection_run").await, expected);
    assert_eq!(pair.sql("SELECT COUNT(*) FROM connection_run WHERE state = 'success'").await, expected);
    let pairs = "SELECT COUNT(*) FROM (SELECT DISTINCT connection_id, event_id FROM connection_run) AS pairs";
    assert_eq!(pair.sql(pairs).await, expected);
    let workers = pair.sql("SELECT COUNT(DISTINCT owner) FROM connection_run").await;
    assert_eq!(workers, 2, "both processes carried runs out");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_leaves_runs_interrupted_and_none_runs_twice() {
    let Some(mut pair) = Pair::start(quick()).await else { return };
    let steps = json!([{ "operation_id": "openwrt.firewall.rule.create", "params": {
        "controller_id": pair.controller,
        "payload": { "name": "{{trigger.name}}", "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT" },
    } }]);
    let connection = connect(&pair.a.api, json!({ "steps": steps })).await;
    let events = 40;
    make_events(&pair, events).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    pair.a.kill();
    pair.restart_a().await;
    settled(&pair, events).await;
    let runs = pair.b.api.get(&format!("/fabric/connections/{}/runs?limit=200", id_of(&connection))).await;
    let runs = runs.expect_status(200).body;
    let mut ends = BTreeMap::<String, usize>::new();
    for run in runs["items"].as_array().unwrap() {
        *ends.entry(run["state"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert_eq!(ends.values().sum::<usize>(), 40, "{ends:?}");
    assert!(ends.keys().all(|state| state == "success" || state == "interrupted"), "{ends:?}");
    // A change for each run that succeeded, at most one more for each that was interrupted, and never two of one name.
    let changes = pair.sql("SELECT COUNT(*) FROM change").await;
    let names = pair.sql("SELECT COUNT(DISTINCT payload ->> 'name') FROM change").await;
    let [good, lost] = ["success", "interrupted"].map(|state| ends.get(state).copied().unwrap_or_default());
    assert_eq!(changes, names);
    assert!((good..=good + lost).contains(&usize::try_from(changes).unwrap()), "{changes} changes, {ends:?}");
    assert_eq!(pair.sql("SELECT COUNT(*) FROM connection_run WHERE state = 'running'").await, 0);
}
