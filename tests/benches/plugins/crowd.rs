//! Many plugins in many organizations: how soon the release program serves them, what memory it holds when it is idle, and
//! what an event costs that interests one of them.
//!
//! The baseline is the same program, data and load with one plugin. Each package has code of its own, compiled before.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::{install, organization, served, switch_on, watcher};
use crate::measure::{Report, Samples, ratio, show, timed};
use crate::start::{Memory, Served};
use crate::support::plugins::{Keys, archive_of, guest};
use crate::support::{Api, Options, Server};

const PLUGINS: usize = if cfg!(debug_assertions) { 6 } else { 100 };
const ORGANIZATIONS: usize = if cfg!(debug_assertions) { 3 } else { 20 };
const RUNS: usize = 10;
const IDLE: Duration = Duration::from_secs(3);
/// In each organization, which may hand in 120 in a minute.
const EVENTS: u32 = if cfg!(debug_assertions) { 10 } else { 100 };
/// What only the first plugin waits for, and what the others do.
const WANTED: &str = "ingest.external";
const UNWANTED: &str = "controller.change.staged";
const WAIT: Duration = Duration::from_mins(2);

pub(crate) fn measure(runtime: &Runtime, report: &mut Report) {
    let keys = Keys::new();
    let (mut server, api) = runtime.block_on(served(&keys, |options| options));
    let tokens: Vec<String> = runtime.block_on(async {
        let mut tokens = vec![api.token().to_owned()];
        for n in 1..ORGANIZATIONS {
            tokens.push(organization(&server, &api, &format!("org-{n}")).await.token().to_owned());
        }
        tokens
    });
    runtime.block_on(in_service(&server, &tokens, &keys, 0));
    runtime.block_on(server.stop());
    let one = starts(server.folder(), &keys.options());
    let one_event = runtime.block_on(event(server.folder(), &keys.options(), &tokens));

    runtime.block_on(async {
        server.restart().await;
        for n in 1..PLUGINS {
            in_service(&server, &tokens, &keys, n).await;
        }
        server.stop().await;
    });
    let many = starts(server.folder(), &keys.options());
    let many_event = runtime.block_on(event(server.folder(), &keys.options(), &tokens));

    let what = format!("{PLUGINS} plugins in {ORGANIZATIONS} organizations");
    report.row("start, one plugin", &one.0, "", "");
    report.row(format!("start, {what}"), &many.0, "", "< 1 s");
    report.value("memory after 3 s idle, one plugin", one.1, "");
    report.value(format!("memory after 3 s idle, {what}"), many.1, "< 150 MB");
    report.value("processor time of an event for one plugin, when it is the only one", show(one_event), "");
    let times = format!("{}, x {:.2}", show(many_event), ratio(many_event, one_event));
    report.value(format!("the same, one of {what}"), times, "x 1");
}

/// Has the plugin with this number in service, and on in each organization.
async fn in_service(server: &Server, tokens: &[String], keys: &Keys, n: usize) {
    let id = format!("crowd-{n}");
    let wanted = if n == 0 { WANTED } else { UNWANTED };
    let archive = archive_of(&watcher(&id, wanted, 100_000), marked(guest("watcher"), &id), &keys.acme);
    let clients: Vec<Api> = tokens.iter().map(|token| server.nobody().with_token(token)).collect();
    install(&clients[0], &id, &archive).await;
    for client in &clients {
        switch_on(client, &id).await;
    }
}

/// The component with a custom section that says this: another file, which is compiled by itself.
fn marked(mut component: Vec<u8>, mark: &str) -> Vec<u8> {
    let name = "mark";
    let short =
        |length: usize| u8::try_from(length).ok().filter(|length| *length < 128).expect("it is short");
    component.extend([0, short(1 + name.len() + mark.len()), short(name.len())]);
    component.extend(name.bytes().chain(mark.bytes()));
    component
}

/// How long each start takes until the server is ready, and its memory.
fn starts(folder: &Path, options: &Options) -> (Samples, Memory) {
    let (mut starts, mut memories) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let (elapsed, served) = timed(|| Served::start(folder, options.clone()));
        std::thread::sleep(IDLE);
        starts.push(elapsed);
        memories.push(served.memory());
    }
    (Samples::of(starts), Memory::median(&memories))
}

/// The processor time of the server for each event that the first plugin is told of, in each of the organizations.
async fn event(folder: &Path, options: &Options, tokens: &[String]) -> Duration {
    let options =
        options.clone().with("RATE_LIMIT_RPM", super::NO_LIMIT).with("RATE_LIMIT_BURST", super::NO_LIMIT);
    let served = Served::start(folder, options);
    let nobody = Api::new(&served.base());
    let clients: Vec<Api> = tokens.iter().map(|token| nobody.with_token(token)).collect();
    // Also fetches the document that answers are checked against.
    is_waiting(&clients[0]).await;
    tokio::time::sleep(IDLE).await;
    let before = served.processor_time();
    for n in 0..EVENTS {
        for client in &clients {
            let body = json!({ "name": format!("{n}"), "payload": { "do": "note" } });
            client.post("/fabric/ingest", &body).await.expect_status(202);
        }
    }
    let started = Instant::now();
    for client in &clients {
        while is_waiting(client).await {
            assert!(started.elapsed() < WAIT, "the plugin is not told");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }
    let taken = served.processor_time().saturating_sub(before);
    taken / (EVENTS * u32::try_from(clients.len()).expect("they are few"))
}

async fn is_waiting(api: &Api) -> bool {
    let stands = api.get("/plugins/crowd-0/triggers").await.expect_status(200).body;
    assert_eq!(stands["triggers"][0]["problem"], Value::Null, "{stands}");
    stands["triggers"][0]["is_waiting"] == true
}
