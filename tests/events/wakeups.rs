//! Processes that share a cache call each other; without it they find each other's events a little later.

use std::time::{Duration, Instant};

use serde_json::json;

use super::ingest;
use crate::processes::set_up;
use crate::support::{Api, Database, Options, Process, Redis, Socket};

async fn until_health(api: &Api, degraded: serde_json::Value) {
    let started = Instant::now();
    while api.get("/health").await.body["degraded_subsystems"] != degraded {
        assert!(started.elapsed() < crate::support::PATIENCE, "{}", api.get("/health").await.text);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// How long after it was handed in at one process each of these events came to a listener of the other.
async fn delays(from: &Api, listener: &mut Socket, count: usize) -> Vec<Duration> {
    let mut delays = Vec::new();
    for n in 0..count {
        let handed_in = ingest(from, &format!("n{n}")).await;
        let started = Instant::now();
        let event = listener.event("ingest.external").await;
        assert_eq!(event["id"], handed_in["event_id"], "each comes once");
        delays.push(started.elapsed());
        // So that looks every half second fall anywhere.
        tokio::time::sleep(Duration::from_millis(83)).await;
    }
    delays.sort_unstable();
    delays
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_brings_an_event_at_once_and_is_not_needed() {
    let Some(database) = Database::postgres().await else { return };
    let mut redis = Redis::start();
    let options = Options::default().with("CACHE_URL", redis.url()).with("SYNC_INTERVAL_SECS", "3600");
    let folders = [0, 1].map(|_| tempfile::tempdir().unwrap());
    let one = Process::start(folders[0].path(), &database, &options).await;
    let token = set_up(&one).await;
    let one = one.with_token(&token);
    let two = Process::start(folders[1].path(), &database, &options).await.with_token(&token);
    until_health(&two.api, json!([])).await;
    let mut listener = Socket::subscribe(&two.api, &["*"]).await;
    let called = delays(&one.api, &mut listener, 12).await;

    redis.kill();
    until_health(&two.api, json!(["cache", "event_wakeups"])).await;
    let looked = delays(&one.api, &mut listener, 12).await;
    // Without a call an event waits for a look, a quarter of a second on average.
    assert!(called[6] < looked[6], "{called:?} {looked:?}");

    redis.restart();
    until_health(&two.api, json!([])).await;
    until_health(&one.api, json!([])).await;
    let again = delays(&one.api, &mut listener, 12).await;
    assert!(again[6] < looked[6], "{again:?} {looked:?}");

    // Frozen, it takes calls and hands none on.
    redis.pause();
    until_health(&two.api, json!(["cache", "event_wakeups"])).await;
    delays(&one.api, &mut listener, 3).await;
    redis.resume();
    until_health(&two.api, json!([])).await;
}
