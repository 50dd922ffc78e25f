//! The event stream: what 5,000 connections cost that wait for nothing, how soon 200 among them hear of an event, and
//! 2,000 events a second to 100 listeners. Each is compared with a bare broadcast over axum's WebSocket, in the same
//! run.
//!
//! A client that is dropped, or hears too little, ends the bench.

pub(crate) mod bare;
mod client;

use std::path::Path;
use std::time::{Duration, Instant};

use futures::future::join_all;
use heddle_core::event::NewEvent;
use heddle_core::{Clock, OrgId, Role};
use heddle_store::users::{self, NewUser};
use heddle_store::{Db, PoolSettings};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::runtime::Runtime;

use self::bare::{Bare, BareProcess};
use self::client::{Client, Idle, connect, now_micros};
use crate::measure::{Report, Samples};
use crate::support::{Api, Database, Options, PASSWORD, Process, Server, event_type};

/// An unoptimised build only shows that it works.
const CONNECTIONS: usize = if cfg!(debug_assertions) { 500 } else { 5_000 };
/// The most that one user may have.
const PER_USER: usize = 25;
const SUBSCRIBERS: usize = if cfg!(debug_assertions) { 50 } else { 200 };
const SINGLE_EVENTS: usize = 50;
const LISTENERS: usize = if cfg!(debug_assertions) { 10 } else { 100 };
const EVENTS_PER_BURST: usize = if cfg!(debug_assertions) { 10 } else { 100 };
const BURSTS: usize = 100;
/// Twenty bursts a second.
const BURST_PERIOD: Duration = Duration::from_millis(50);
/// Sockets of one process, and some more.
const FILES: u64 = 12_000;

pub(crate) fn measure(runtime: &Runtime, report: &mut Report) {
    raise_limit();
    runtime.block_on(idle(report));
    report.noise.sample();
    runtime.block_on(busy(report));
}

fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(FILES, |maximum| maximum.min(FILES));
    let needed = u64::try_from(CONNECTIONS).expect("it is small") + 500;
    assert!(wanted > needed, "{needed} open files are needed, and {wanted} allowed: 'ulimit -Hn' says so");
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).expect("a limit can be raised");
}

fn options() -> Options {
    let unlimited =
        Options::default().with("RATE_LIMIT_RPM", "10000000").with("RATE_LIMIT_BURST", "10000000");
    unlimited.with("SYNC_INTERVAL_SECS", "3600")
}

/// Memory of a process that is its own, in bytes.
fn memory(id: u32) -> usize {
    let text = std::fs::read_to_string(format!("/proc/{id}/smaps_rollup")).expect("the process runs");
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).expect("the kernel says it");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") * 1024
}

/// So many users of the first organization, each with a token.
async fn tokens(api: &Api, db: &Db, count: usize) -> Vec<String> {
    let clock = Clock::default();
    let mut tx = db.write().await.expect("the database answers");
    let admin = users::find_by_login(&mut tx, "ada").await.expect("it can be read").expect("there is one");
    let names: Vec<String> = (0..count).map(|n| format!("listener-{n}")).collect();
    for name in &names {
        let new = NewUser {
            id: clock.new_id(),
            org_id: admin.user.org_id,
            username: name.clone(),
            email: format!("{name}@acme.test"),
            full_name: None,
            password_hash: admin.password_hash.clone(),
            role: Role::SuperAdmin,
            now: clock.now(),
        };
        users::insert(&mut tx, &new).await.expect("a user is new");
    }
    tx.commit().await.expect("it is written");
    let mut tokens = Vec::new();
    for name in names {
        let login = json!({ "login": name, "password": PASSWORD });
        let answer = api.post("/auth/login", &login).await.expect_status(200).body;
        tokens.push(answer["access_token"].as_str().expect("a token").to_owned());
    }
    tokens
}

/// A server in a process of its own, its admin and a token for each user that listens.
async fn serve(folder: &Path) -> (Process, Api, Vec<String>) {
    let process = Process::start(folder, &Database::sqlite(), &options()).await;
    let setup = json!({
        "organization": { "name": "Acme" },
        "admin": { "username": "ada", "email": "ada@acme.test", "password": PASSWORD },
    });
    let answer = process.api.post("/setup/complete", &setup).await.expect_status(201).body;
    let api = process.api.with_token(answer["access_token"].as_str().expect("a token"));
    let url = format!("sqlite://{}", folder.join("data/heddle.db").display());
    let pool = PoolSettings { connections_max: 1, acquire_timeout: Duration::from_secs(10) };
    let db = Db::open(&url, &pool).await.expect("the database opens");
    let tokens = tokens(&api, &db, CONNECTIONS / PER_USER).await;
    db.close().await;
    (process, api, tokens)
}

/// Opens all connections; answers those that subscribe, those that only wait, and the memory of each.
async fn crowd(id: u32, base: &str, tokens: &[Option<&str>]) -> (Vec<Client>, Idle, usize) {
    let before = memory(id);
    let mut idle = Idle::default();
    let mut last = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let of_one = join_all((0..PER_USER).map(|_| connect(base, *token))).await;
        if (tokens.len() - at) * PER_USER <= SUBSCRIBERS {
            last.extend(of_one);
        } else {
            idle.extend(of_one);
        }
    }
    assert_eq!(last.len(), SUBSCRIBERS);
    let each = memory(id).saturating_sub(before) / (tokens.len() * PER_USER);
    (last, idle, each)
}

/// Connections that wait, in a process of their own, and how soon some of them hear.
async fn idle(report: &mut Report) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (process, api, tokens) = serve(folder.path()).await;
    let tokens: Vec<Option<&str>> = tokens.iter().map(|token| Some(token.as_str())).collect();
    let (mut subscribers, crowd_of_ours, ours) = crowd(process.id(), api.base(), &tokens).await;
    for client in &mut subscribers {
        client.subscribe().await;
    }
    let heard = hear_each(&mut subscribers, |n| {
        let event = json!({ "name": format!("n{n}") });
        let api = &api;
        async move { drop(api.post("/fabric/ingest", &event).await.expect_status(202)) }
    })
    .await;
    crowd_of_ours.all_wait();
    drop((subscribers, crowd_of_ours, process));

    let bare = BareProcess::start();
    let nobody = vec![None; tokens.len()];
    let (mut subscribers, crowd_of_bare, baseline) = crowd(bare.id(), bare.base(), &nobody).await;
    for client in &mut subscribers {
        client.subscribe().await;
    }
    let heard_bare = hear_each(&mut subscribers, |n| bare.say(format!("n{n}"))).await;
    crowd_of_bare.all_wait();

    let among = format!("one event, from the request to each of {SUBSCRIBERS} among {CONNECTIONS}");
    report.value(format!("{CONNECTIONS} idle connections, memory of each"), kib(ours), "");
    report.value("the same, of a bare broadcast", kib(baseline), "");
    report.row(among, &heard, "", "");
    report.row("the same, of a bare broadcast, without a database", &heard_bare, "", "");
}

/// How soon each of these hears of single events, from when they are handed in.
async fn hear_each<F: Future<Output = ()>>(
    subscribers: &mut [Client],
    hand_in: impl Fn(usize) -> F,
) -> Samples {
    let mut heard = Vec::new();
    for n in 0..SINGLE_EVENTS {
        let started = Instant::now();
        let hearing = join_all(subscribers.iter_mut().map(async |client| {
            client.text().await;
            started.elapsed()
        }));
        heard.extend(tokio::join!(hand_in(n), hearing).1);
    }
    Samples::of(heard)
}

fn kib(bytes: usize) -> String {
    format!("{:.1} KiB", f64::from(u32::try_from(bytes).expect("it is small")) / 1024.0)
}

/// All that each listener hears, until they have heard everything.
async fn listen(clients: Vec<Client>) -> Samples {
    let all = join_all(clients.into_iter().map(async |mut client| {
        let mut delays = Vec::with_capacity(EVENTS_PER_BURST * BURSTS);
        while delays.len() < EVENTS_PER_BURST * BURSTS {
            delays.push(client::delay(&client.text().await));
        }
        delays
    }));
    let heard = tokio::time::timeout(Duration::from_mins(2), all).await.expect("nobody is dropped");
    Samples::of(heard.concat())
}

/// Calls for a burst twenty times a second; answers for how long.
async fn bursts(mut burst: impl AsyncFnMut()) -> Duration {
    let started = Instant::now();
    let mut period = tokio::time::interval(BURST_PERIOD);
    for _ in 0..BURSTS {
        period.tick().await;
        burst().await;
    }
    started.elapsed()
}

async fn busy(report: &mut Report) {
    let mut server = Server::start_with(Database::sqlite(), options()).await;
    let api = server.set_up().await;
    let me = api.get("/auth/me").await.expect_status(200).body;
    let org: OrgId = serde_json::from_value(me["organization_id"].clone()).expect("an id");
    let app = server.running().app.clone();
    let mut clients = Vec::new();
    for token in tokens(&api, &app.db, LISTENERS).await {
        let mut client = connect(api.base(), Some(&token)).await;
        client.subscribe().await;
        clients.push(client);
    }
    let writing = bursts(async || {
        let data = json!({ "at": now_micros(), "text": "x".repeat(200) });
        let event = NewEvent {
            event_type: event_type("ingest.external"),
            org_id: org,
            site_id: None,
            controller_id: None,
            device_id: None,
            causation_id: None,
            run_id: None,
            payload: json!({ "name": "burst", "data": data }),
        };
        let events = vec![event; EVENTS_PER_BURST];
        let mut tx = app.db.write().await.expect("the database answers");
        heddle_store::events::append_all(&mut tx, org, &events, &app.clock).await.expect("it is written");
        tx.commit().await.expect("it is written");
    });
    let (ours, took) = tokio::join!(listen(clients), writing);
    server.stop().await;
    let what = |took: Duration| {
        let count = u32::try_from(EVENTS_PER_BURST * BURSTS).expect("it is small");
        format!("{:.0} events a second to {LISTENERS}, none dropped", f64::from(count) / took.as_secs_f64())
    };
    report.row(format!("{} (SQLite)", what(took)), &ours, "", "");

    let bare = Bare::start().await;
    let mut clients = join_all((0..LISTENERS).map(|_| connect(bare.base(), None))).await;
    for client in &mut clients {
        client.subscribe().await;
    }
    let writing = bursts(async || {
        for _ in 0..EVENTS_PER_BURST {
            bare.say(json!({ "at": now_micros(), "text": "x".repeat(400) }).to_string());
        }
    });
    let (baseline, took) = tokio::join!(listen(clients), writing);
    report.row(format!("{}, of a bare broadcast", what(took)), &baseline, "", "");
}
