//! A due controller is read by one process.

use std::time::Duration;

use serde_json::json;

use super::{Pair, quick};
use crate::support::{Api, Socket};

/// Waits until the controller was read after this moment's reading, and answers when.
async fn read_after(api: &Api, controller: &str, last: &serde_json::Value) -> serde_json::Value {
    for _ in 0..600 {
        let seen = api.get(&format!("/controllers/{controller}")).await.expect_status(200).body;
        if seen["last_sync_at"] != *last && !seen["last_sync_at"].is_null() {
            return seen["last_sync_at"].clone();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the controller is not read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_two_processes_see_due_is_read_once() {
    let Some(mut pair) = Pair::start(quick()).await else { return };
    let mut stream = Socket::subscribe(&pair.b.api, &["controller.sync.finished"]).await;
    let mut last = read_after(&pair.a.api, &pair.controller, &json!(null)).await;
    // What one reading asks of the router, when no other client is there.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    pair.b.kill();
    let count = |pair: &Pair| pair.router.calls().len();
    let sync = format!("/controllers/{}/sync", pair.controller);
    pair.router.forget_calls();
    pair.a.api.post(&sync, &json!({})).await.expect_status(202);
    last = read_after(&pair.a.api, &pair.controller, &last).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let alone = count(&pair);
    assert!(alone > 0);
    drop(stream);
    pair.restart_b().await;
    stream = Socket::subscribe(&pair.b.api, &["controller.sync.finished", "device.*"]).await;
    // The first reading of the new process logs in: it is not counted.
    for round in 0..8 {
        let api = if round % 2 == 0 { &pair.a.api } else { &pair.b.api };
        pair.router.forget_calls();
        api.post(&sync, &json!({})).await.expect_status(202);
        last = read_after(&pair.b.api, &pair.controller, &last).await;
        // Time for a second reading, were there one.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        // A process that reads for the first time logs in, which is a few calls more.
        assert!(count(&pair) < alone * 2, "round {round}: {} calls, alone {alone}", count(&pair));
        let event = stream.next().await;
        assert_eq!(event["event"]["event_type"], "controller.sync.finished", "{event}");
    }
    // Exactly one event of each reading: the next frame is the answer to this.
    stream.send(&json!({ "type": "ping" })).await;
    assert_eq!(stream.next().await["type"], "pong");
    // The next reading may have begun by itself; none keeps the controller.
    let mut owned = 1;
    for _ in 0..600 {
        owned = pair.sql("SELECT COUNT(*) FROM controller WHERE sync_owner IS NOT NULL").await;
        if owned == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(owned, 0);
}
