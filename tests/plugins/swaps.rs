//! Versions that take each other's place while the plugin is called, and take over what the one before has stored: no call
//! fails, and each event is told once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use super::watcher::{Watch, guest, ingest, manifest, names, until};
use super::{archive_of, send};
use crate::support::{Api, on_both, until as until_true};

const SWAPS: usize = 12;
const EVENTS_MAX: usize = 100;

/// Calls a tool of the plugin until it is told to stop, and answers how often.
async fn call(api: Api, stop: Arc<AtomicBool>) -> usize {
    let body = json!({ "operation_id": "plugin.watcher.ask", "params": {} });
    let mut calls = 0;
    while !stop.load(Ordering::Relaxed) {
        let run = api.post("/actions", &body).await.expect_status(201).body;
        assert_eq!(run["success"], true, "{run}");
        calls += 1;
    }
    calls
}

/// Hands events in until it is told to stop, and counts them. An organization may hand in 120 in a minute.
async fn hand_in(api: Api, stop: Arc<AtomicBool>, handed: &AtomicUsize) {
    for n in 0..EVENTS_MAX {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        ingest(&api, &format!("e{n}"), "note").await;
        handed.store(n + 1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

on_both! {
    async fn versions_take_each_others_place_under_load_and_nothing_is_lost(database: Database) {
        let watch = Watch::start(database, json!({})).await;
        let api = &watch.api;
        let (stop, handed) = (Arc::new(AtomicBool::new(false)), AtomicUsize::new(0));
        let swapping = async {
            for n in 1..=SWAPS {
                let mut manifest = manifest(&watch.device.url());
                manifest["version"] = json!(format!("1.0.{n}"));
                let archive = archive_of(&manifest, guest(), &watch.keys.acme);
                let sent = send(api, &archive).await.expect_status(201).body;
                assert_eq!(sent["state"], "active", "{sent}");
                // Events come in the whole time, however fast the versions are.
                until_true("an event comes", async || handed.load(Ordering::Relaxed) >= n).await;
            }
            stop.store(true, Ordering::Relaxed);
        };
        let calling = || call(api.clone(), Arc::clone(&stop));
        let ((), first, second, ()) =
            tokio::join!(swapping, calling(), calling(), hand_in(api.clone(), Arc::clone(&stop), &handed));
        let events = handed.into_inner();
        assert!(first > 0 && second > 0 && events >= SWAPS, "{first}, {second}, {events}");
        let found = until(api, |log| names(log, "seen").len() >= events).await;
        let expected: Vec<String> = (0..events).map(|n| format!("e{n}")).collect();
        assert_eq!(names(&found, "seen"), expected);
    }
}
