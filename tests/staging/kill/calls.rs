//! Kills between the calls of a plan: each call arrives at most once, in its order.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::rig::{Ends, Moments};
use crate::staging::Lab;
use crate::staging::scripted::{Device, stage};
use crate::support::{Database, Place, Process, Random, on_both};

const CALLS: u64 = 6;

/// The numbers of the calls of a stage, as they arrived.
fn arrived(device: &Device, stage: &str) -> Vec<u64> {
    device.script().calls.iter().filter(|(of, _)| of == stage).map(|(_, n)| *n).collect()
}

async fn at_rest(process: &Process, change: &Value) -> Value {
    for _ in 0..900 {
        let seen = process.api.get(&Lab::path(change, "")).await.expect_status(200).body;
        if seen["outcome"]["step"] == "idle" {
            return seen;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the apply does not end: {change}");
}

/// Kills while a change of many calls is applied.
async fn kill_between_calls(database: Database, kills: u32) {
    let device = Device::start().await;
    device.script().plan = json!({
        "holds": true, "once": true, "stages": ["apply", "restore"], "calls": { "apply": CALLS, "restore": 3 },
    });
    device.script().takes = Duration::from_millis(20);
    let folder = tempfile::tempdir().expect("a folder can be made");
    let options = device.options().with("SYNC_INTERVAL_SECS", "3600").with("LOG_FILTER", "warn");
    let (mut process, token) = Process::start(folder.path(), &database, &options).await.set_up().await;
    let controller = device.register(&process.api).await;
    let mut random = Random::new();
    let mut ends = Ends::default();
    let undisturbed = stage(&process.api, &controller, "first").await;
    let began = Instant::now();
    process.api.post(&Lab::path(&undisturbed, "apply"), &json!({ "force": true })).await.expect_status(200);
    let moments = Moments::since(began, kills);
    for kill in 0..kills {
        let _place = Place(format!("seed {} kill {kill}", random.seed));
        {
            let mut script = device.script();
            script.calls.clear();
            script.sent.clear();
            script.compare = json!({ "standing": "before", "items": [], "foreign": [] });
        }
        let change = stage(&process.api, &controller, &format!("kill {kill}")).await;
        let (api, path) = (process.api.clone(), Lab::path(&change, "apply"));
        let moment = moments.of(kill, &mut random);
        let sending = async {
            let body = json!({ "force": true }).to_string().into_bytes();
            let _ = api.try_send("POST", &path, Some(body)).await;
        };
        let dying = async {
            tokio::time::sleep(moment.unwrap_or(Duration::from_secs(2))).await;
            process.kill();
        };
        tokio::join!(sending, dying);
        process = Process::start(folder.path(), &database, &options).await.with_token(&token);
        let seen = at_rest(&process, &change).await;
        let state = seen["outcome"]["state"].as_str().unwrap_or_default().to_owned();
        let sent = arrived(&device, "apply");
        let in_order: Vec<u64> = (0..sent.len() as u64).collect();
        assert_eq!(sent, in_order, "each call once and in its order: {seen}");
        match state.as_str() {
            "applied" => assert_eq!(sent.len() as u64, CALLS, "{seen}"),
            "none" | "failed" => assert!(sent.is_empty(), "{sent:?}: {seen}"),
            "reverted" => assert_eq!(arrived(&device, "restore"), [0, 1, 2], "{seen}"),
            other => panic!("the end is {other}: {seen}"),
        }
        ends.count(&state);
        if seen["status"] == "pending" {
            process.api.post(&Lab::path(&change, "discard"), &json!({})).await.expect_status(200);
        }
    }
    let kinds = ["applied", "reverted", "failed", "none"].map(|state| ends.of(state));
    assert!(
        kinds.iter().filter(|count| **count > 0).count() > 1,
        "the kills fell on different moments: {ends:?}"
    );
}

on_both! {
    async fn a_kill_while_a_task_runs_goes_on_with_the_calls_behind_it(database: Database) {
        let device = Device::start().await;
        device.script().plan = json!({
            "holds": true, "once": true, "stages": ["apply", "restore"], "calls": { "apply": 4 },
        });
        device.script().said.insert("apply-1".to_owned(), json!({ "task": true }));
        device.script().task = vec![json!({ "task": true })];
        let folder = tempfile::tempdir().expect("a folder can be made");
        let options = device.options().with("SYNC_INTERVAL_SECS", "3600");
        let (mut process, token) = Process::start(folder.path(), &database, &options).await.set_up().await;
        let controller = device.register(&process.api).await;
        let change = stage(&process.api, &controller, "in parts").await;
        let (api, path) = (process.api.clone(), Lab::path(&change, "apply"));
        let sending = async {
            let body = json!({ "force": true }).to_string().into_bytes();
            let _ = api.try_send("POST", &path, Some(body)).await;
        };
        let dying = async {
            loop {
                let seen = process.api.get(&Lab::path(&change, "")).await.expect_status(200).body;
                if seen["outcome"]["step"] == "polling" {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            process.kill();
        };
        tokio::join!(sending, dying);
        assert_eq!(arrived(&device, "apply"), [0, 1]);
        device.script().task = vec![json!({})];
        process = Process::start(folder.path(), &database, &options).await.with_token(&token);
        let seen = at_rest(&process, &change).await;
        assert_eq!(seen["outcome"]["state"], "applied", "{seen}");
        assert_eq!(arrived(&device, "apply"), [0, 1, 2, 3], "each call once and in its order");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_between_calls_repeat_none_on_sqlite() {
    kill_between_calls(Database::sqlite(), 24).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_between_calls_repeat_none_on_postgres() {
    if let Some(database) = Database::postgres().await {
        kill_between_calls(database, 8).await;
    }
}
