//! What a quiet organization notices of one whose devices answer far too much, not at all, or what no device should.
//!
//! The quiet one reads its router live and applies changes to it, one request at a time, first alone and then together
//! with the other: in one process, one run, by turns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router as Axum;
use axum::body::Bytes;
use axum::extract::State;
use futures::future::join_all;
use heddle_lab_openwrt::Router;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::measure::{Report, Samples, elsewhere, ratio};
use crate::support::{Api, Database, Options, Server};

const PASSWORD: &str = "router-bench-5uP3r";
const ROUNDS: usize = 3;
/// Reads of the quiet organization in a round.
const READS: usize = if cfg!(debug_assertions) { 60 } else { 300 };
/// Changes that it stages and applies in a round.
const APPLIES: usize = if cfg!(debug_assertions) { 4 } else { 30 };
/// Reads that the other organization has under way all the time, of each of its devices.
const READS_BESIDE: usize = 4;
const FAT_BYTES: usize = (79 << 20) / 10;
const NO_LIMIT: &str = "1000000";
const RESOURCE: &str = "firewall.rule";

pub(crate) fn measure(runtime: &Runtime, report: &mut Report) {
    // The server, and so every worker of it, is on the threads of this runtime; the router has its own, and so has all that is
    // the loud organization's: its devices and who reads them.
    let devices = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("threads can be started");
    let router = devices.block_on(Router::builder().password(PASSWORD).start());
    let options = Options::default()
        .with("RATE_LIMIT_RPM", NO_LIMIT)
        .with("RATE_LIMIT_BURST", NO_LIMIT)
        // The pause before a device is compared would hide the work that is measured.
        .with("APPLY_SETTLE_MS", "10")
        .with("SYNC_INTERVAL_SECS", "3600");
    let mut server = runtime.block_on(Server::start_with(Database::sqlite(), options));
    let api = runtime.block_on(server.set_up());
    let quiet = runtime.block_on(organization(&api, "Quiet", &[router.url()]));
    let others = elsewhere();
    let bad = [device(&others, &fat()), device(&others, &lying()), silent(&others)];
    let loud = runtime.block_on(organization(&api, "Loud", &bad));
    let path = format!("/gateway-openwrt-firewall/{}/{RESOURCE}", quiet[0]);
    runtime.block_on(read(&api, &path, READS / 4));

    let resident = memory("VmRSS");
    let (mut alone, mut beside, mut asked) = (Vec::new(), Vec::new(), 0);
    let (mut applied_alone, mut applied_beside) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        alone.extend(runtime.block_on(read(&api, &path, READS)));
        applied_alone.extend(runtime.block_on(apply(&api, &quiet[0], &format!("alone-{round}"))));
        report.noise.sample();
        let noise = make_noise(&others, &api, &loud);
        runtime.block_on(async { tokio::time::sleep(Duration::from_secs(2)).await });
        beside.extend(runtime.block_on(read(&api, &path, READS)));
        applied_beside.extend(runtime.block_on(apply(&api, &quiet[0], &format!("beside-{round}"))));
        for reading in noise {
            asked += usize::from(!reading.is_finished());
            reading.abort();
        }
    }
    compare("read of a quiet organization", alone, beside, report);
    compare("apply of a quiet organization", applied_alone, applied_beside, report);
    report.value("loud readings at the same time", asked / ROUNDS, "");
    report.value("resident memory before", format!("{} MiB", resident >> 10), "");
    report.value("resident memory at most, with the devices", format!("{} MiB", memory("VmHWM") >> 10), "");
    runtime.block_on(server.stop());
    devices.block_on(router.shutdown());
    devices.shutdown_background();
    others.shutdown_background();
}

fn compare(what: &str, alone: Vec<Duration>, beside: Vec<Duration>, report: &mut Report) {
    let (alone, beside) = (Samples::of(alone), Samples::of(beside));
    report.row(format!("{what}, alone"), &alone, "", "");
    report.row(format!("{what}, beside a loud one"), &beside, "", "");
    let times = |one, other| format!("x {:.2}", ratio(one, other));
    report.value("the same, p50 beside / alone", times(beside.median(), alone.median()), "");
    report.value("the same, p99 beside / alone", times(beside.p99(), alone.p99()), "< x 2");
}

/// How long it takes to stage and apply each of so many rules, one after the other; each is taken out again.
async fn apply(api: &Api, controller: &str, name: &str) -> Vec<Duration> {
    let stage = |operation: &str| {
        format!("/gateway-openwrt-firewall/{controller}/changes/openwrt.firewall.rule?operation={operation}")
    };
    let mut times = Vec::new();
    for n in 0..APPLIES {
        let rule = json!({ "payload": {
            "name": format!("{name}-{n}"), "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT",
        } });
        let started = Instant::now();
        let change = api.post(&stage("create"), &rule).await.expect_status(201).body;
        let path = |verb: &str| {
            format!("/gateway-vpn/changes/{}/{verb}", change["id"].as_str().expect("a change has an id"))
        };
        let applied = api.post(&path("apply"), &json!({ "force": true })).await.expect_status(200).body;
        assert_eq!(applied["outcome"]["state"], "applied", "{applied}");
        times.push(started.elapsed());
        let inverse = api.post(&path("revert"), &json!({})).await.expect_status(201).body;
        let inverse = format!("/gateway-vpn/changes/{}/apply", inverse["id"].as_str().expect("an id"));
        api.post(&inverse, &json!({ "force": true })).await.expect_status(200);
    }
    times
}

/// How long each of so many reads takes, one after the other.
async fn read(api: &Api, path: &str, count: usize) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..count {
        let started = Instant::now();
        api.get(path).await.expect_status(200);
        times.push(started.elapsed());
    }
    times
}

/// Reads the devices of the loud organization without a pause, whatever comes of it.
fn make_noise(runtime: &Runtime, api: &Api, controllers: &[String]) -> Vec<JoinHandle<()>> {
    let each = controllers.iter().flat_map(|controller| [controller; READS_BESIDE]);
    let reading = |controller: &String| {
        let (api, path) = (api.clone(), format!("/gateway-openwrt-firewall/{controller}/{RESOURCE}"));
        runtime.spawn(async move {
            loop {
                let answer = api.get(&path).await;
                if answer.status == 503 {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        })
    };
    each.map(reading).collect()
}

/// An organization with a controller for each of these addresses; answers the controllers.
async fn organization(api: &Api, name: &str, urls: &[String]) -> Vec<String> {
    let text = |value: &Value| value.as_str().expect("it is a text").to_owned();
    let organization = api.post("/organizations", &json!({ "name": name })).await.expect_status(201).body;
    let org = &organization["id"];
    let site = json!({ "name": "Head office", "organization_id": org });
    let site = api.post("/sites", &site).await.expect_status(201).body;
    let credential =
        json!({ "name": "edge", "username": "root", "password": PASSWORD, "organization_id": org });
    let credential = api.post("/credentials", &credential).await.expect_status(201).body;
    let controllers = urls.iter().enumerate().map(|(n, url)| {
        let controller = json!({
            "name": format!("edge-{n}"), "site_id": site["id"], "vendor": "openwrt", "url": url,
            "credential_id": credential["id"],
        });
        async move { text(&api.post("/controllers", &controller).await.expect_status(201).body["id"]) }
    });
    join_all(controllers).await
}

fn fat() -> Value {
    let values: Vec<Value> = vec![json!({ "a": 0 }); FAT_BYTES / 8];
    json!([0, { "values": values }])
}

fn lying() -> Value {
    json!([0, { "values": { "cfg01": { ".type": "rule", ".name": "cfg01", "name": "hdl-secret:".repeat(80_000) } } }])
}

/// A device that takes every login and answers everything else with the same.
fn device(runtime: &Runtime, result: &Value) -> String {
    let answer =
        |result: &Value| Bytes::from(json!({ "jsonrpc": "2.0", "id": 1, "result": result }).to_string());
    let login = answer(&json!([0, { "ubus_rpc_session": "0123456789abcdef0123456789abcdef" }]));
    let both = Arc::new((login, answer(result)));
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let app = Axum::new().fallback(say).with_state(both);
        runtime.spawn(async move { axum::serve(listener, app).await });
        format!("http://{address}")
    })
}

async fn say(
    State(answers): State<Arc<(Bytes, Bytes)>>,
    body: Bytes,
) -> ([(&'static str, &'static str); 1], Bytes) {
    let is_login = body.windows(7).any(|window| window == b"\"login\"");
    ([("content-type", "application/json")], if is_login { answers.0.clone() } else { answers.1.clone() })
}

/// A device that takes connections and never says anything.
fn silent(runtime: &Runtime) -> String {
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        runtime.spawn(async move {
            let mut open = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                open.push(stream);
            }
        });
        format!("http://{address}")
    })
}

/// KiB that the system says of this process.
fn memory(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or_default()
}
