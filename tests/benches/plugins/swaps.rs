//! Versions of a plugin that take each other's place under load, and take over what the one before has stored: no call fails,
//! and no event is lost or told twice.
//!
//! The baseline is the same load while nothing is swapped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use heddle_core::OrgId;
use heddle_core::event::NewEvent;
use heddle_kernel::app::SharedApp;
use heddle_store::events;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::{asks, install, served, switch_on, watcher};
use crate::measure::{Report, Samples, ratio};
use crate::support::plugins::{Keys, archive_of, guest, send};
use crate::support::{Api, Server, event_type};

const SWAPS: u32 = if cfg!(debug_assertions) { 20 } else { 1_000 };
const EVENTS: &str = "ingest.external";
/// Clients that call a tool of the plugin without a pause.
const CALLERS: usize = 3;
const BETWEEN_EVENTS: Duration = Duration::from_millis(100);
/// How long the plugin may take to be told of the last events.
const WAIT: Duration = Duration::from_mins(5);

pub(crate) fn measure(runtime: &Runtime, report: &mut Report) {
    runtime.block_on(swaps(report));
}

async fn swaps(report: &mut Report) {
    let keys = Keys::new();
    let (mut server, api) = served(&keys, |options| options).await;
    let version = |n: u32| {
        let mut manifest = watcher("watcher", EVENTS, 1_000_000);
        manifest["version"] = json!(format!("1.0.{n}"));
        archive_of(&manifest, guest("watcher"), &keys.acme)
    };
    install(&api, "watcher", &version(0)).await;
    switch_on(&api, "watcher").await;
    let me = api.get("/auth/me").await.expect_status(200).body;
    let org: OrgId = me["organization_id"].as_str().and_then(|id| id.parse().ok()).expect("it is an id");
    let load = Load::start(&server, &api, org, 0);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (calm, told) = load.stop().await;
    let load = Load::start(&server, &api, org, told);
    let mut times = Vec::new();
    for n in 1..=SWAPS {
        let archive = version(n);
        let started = Instant::now();
        let sent = send(&api, &archive).await.expect_status(201).body;
        times.push(started.elapsed());
        assert_eq!(sent["state"], "active", "{sent}");
        taken_over(&api, n).await;
        if n % 50 == 0 {
            report.noise.sample();
        }
    }
    let (busy, told) = load.stop().await;
    let last = api.get("/plugins/watcher").await.expect_status(200).body;
    assert_eq!(last["version"], format!("1.0.{SWAPS}"));
    every_event_once(&api, told).await;

    let (calm, busy) = (Samples::of(calm), Samples::of(busy));
    report.row(format!("{SWAPS} versions in turn, each until it serves"), &Samples::of(times), "", "");
    report.row("call of the plugin, nothing is swapped", &calm, "", "");
    let times = format!("p99 x {:.2}", ratio(busy.p99(), calm.p99()));
    report.row("call of the plugin, versions are swapped", &busy, times, "");
    report.value("calls meanwhile, none failed", busy.len(), "");
    report.value("events meanwhile, each told once and in order", told, "");
    server.stop().await;
}

/// Waits until this version has taken over what was stored. Calls wait for that: a version that is replaced before gives none an
/// answer.
async fn taken_over(api: &Api, n: u32) {
    let (version, started) = (format!("1.0.{n}"), Instant::now());
    loop {
        let own = api.get("/plugins/watcher/organization").await.expect_status(200).body;
        if own["storage"]["version"] == version {
            return;
        }
        assert!(started.elapsed() < WAIT, "{own}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Clients that call the plugin and hand events in until they are stopped.
struct Load {
    stop: Arc<AtomicBool>,
    callers: Vec<JoinHandle<Vec<Duration>>>,
    events: JoinHandle<u32>,
}

impl Load {
    /// The first event has this number.
    #[expect(clippy::disallowed_methods, reason = "a bench is the outside world")]
    fn start(server: &Server, api: &Api, org: OrgId, first: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let calling = |_| tokio::spawn(call(api.clone(), Arc::clone(&stop)));
        Self {
            callers: (0..CALLERS).map(calling).collect(),
            events: tokio::spawn(hand_in(server.running().app.clone(), org, Arc::clone(&stop), first)),
            stop,
        }
    }

    /// How long the calls took, and the number after that of the last event.
    async fn stop(self) -> (Vec<Duration>, u32) {
        self.stop.store(true, Ordering::Relaxed);
        let mut times = Vec::new();
        for caller in self.callers {
            times.extend(caller.await.expect("no call fails"));
        }
        (times, self.events.await.expect("every event is taken"))
    }
}

async fn call(api: Api, stop: Arc<AtomicBool>) -> Vec<Duration> {
    let body = asks("watcher", "ask", &json!({}));
    let mut times = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let started = Instant::now();
        let run = api.post("/actions", &body).await.expect_status(201).body;
        times.push(started.elapsed());
        assert_eq!(run["success"], true, "{run}");
    }
    times
}

/// As the route for events from outside does, which takes two in a second.
async fn hand_in(app: SharedApp, org: OrgId, stop: Arc<AtomicBool>, first: u32) -> u32 {
    let mut next = first;
    while !stop.load(Ordering::Relaxed) {
        let payload = json!({ "name": format!("{next}"), "data": { "do": "note" } });
        let new = NewEvent::of(event_type(EVENTS), org, payload);
        let mut tx = app.db.write().await.expect("the database is there");
        events::append(&mut tx, &new, &app.clock).await.expect("the event is written");
        tx.commit().await.expect("the event is written");
        next += 1;
        tokio::time::sleep(BETWEEN_EVENTS).await;
    }
    next
}

/// Waits until the plugin has been told of all these events, and compares.
async fn every_event_once(api: &Api, count: u32) {
    let expected: Vec<String> = (0..count).map(|n| n.to_string()).collect();
    let started = Instant::now();
    loop {
        let run = api.post("/actions", &asks("watcher", "ask", &json!({}))).await.expect_status(201).body;
        let lines = run["steps"][0]["output"]["log"].as_array().cloned().unwrap_or_default();
        let told: Vec<&str> = lines
            .iter()
            .filter_map(|line| line.as_str()?.strip_prefix("seen: "))
            .flat_map(|names| names.split(' '))
            .collect();
        if told == expected {
            return;
        }
        assert!(
            told.len() < expected.len() && started.elapsed() < WAIT,
            "{} of {count}: {told:?}",
            told.len()
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
