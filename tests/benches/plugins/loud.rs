//! What a quiet organization notices of one whose plugins spin, flood and fail: in one process, one run, by turns.
//!
//! The hostile plugins are called as often as the limit of requests lets a dozen users call them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::{NOBODY, act, asks, install, organization, scripted, served, switch_on};
use crate::measure::{Report, Samples, elsewhere, ratio};
use crate::support::Api;
use crate::support::plugins::{Keys, archive_of, guest};

const ROUNDS: usize = 3;
/// Calls of the quiet organization in a round, of its plugin and of the host.
const CALLS: usize = if cfg!(debug_assertions) { 50 } else { 400 };
/// Between two calls of the same kind.
const PAUSE: Duration = Duration::from_millis(100);

/// What the hostile plugins do: one is refused or fails each time, and the host suspends it again and again; the other uses
/// as much as it may, and stays.
fn noise() -> [(&'static str, Vec<Value>); 2] {
    let burn = |how: &str| json!({ "do": "burn", "how": how });
    let call = |operation: &str| json!({ "do": "call", "operation": operation, "params": {} });
    let emit =
        |event: &str, times: u32| json!({ "do": "emit", "event-type": event, "payload": {}, "times": times });
    let set = |bytes: u32| json!({ "do": "kv", "use": "set", "key": "k", "bytes": bytes });
    let fails = ["spin", "memory", "huge-output", "panic"].map(burn).into_iter();
    let refused = [set(1_000_000), call("devices.list"), emit("plugin.quiet.done", 1)];
    let allowed = [
        burn("log-flood"),
        set(90_000),
        json!({ "do": "kv", "use": "get-often", "times": 400 }),
        call("sites.list"),
        emit("plugin.greedy.done", 20),
        json!({ "do": "echo", "value": "x".repeat(200_000) }),
    ];
    [("failing", fails.chain(refused).collect()), ("greedy", allowed.into())]
}

pub(crate) fn measure(runtime: &Runtime, report: &mut Report) {
    let keys = Keys::new();
    let (mut server, api) = runtime.block_on(served(&keys, |options| options));
    let [quiet, loud] = runtime.block_on(async {
        let both = [organization(&server, &api, "quiet").await, organization(&server, &api, "loud").await];
        for (at, id) in [(0, "quiet"), (1, "failing"), (1, "greedy")] {
            install(&api, id, &archive_of(&scripted(id, NOBODY), guest("plugin"), &keys.acme)).await;
            switch_on(&both[at], id).await;
        }
        both
    });
    let body = asks("quiet", "look", &json!({ "do": "echo", "value": "x".repeat(1_000) }));
    runtime.block_on(act(&quiet, &body, CALLS / 4));

    let (counts, others) = (Counts::default(), elsewhere());
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    let (mut read_alone, mut read_beside) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        alone.extend(runtime.block_on(act(&quiet, &body, CALLS)));
        read_alone.extend(runtime.block_on(read(&quiet)));
        report.noise.sample();
        let noise = make_noise(&others, &loud, &counts);
        runtime.block_on(async { tokio::time::sleep(Duration::from_secs(2)).await });
        beside.extend(runtime.block_on(act(&quiet, &body, CALLS)));
        read_beside.extend(runtime.block_on(read(&quiet)));
        for task in noise {
            task.abort();
        }
        // What was under way at the abort ends in the server.
        runtime.block_on(async { tokio::time::sleep(Duration::from_secs(3)).await });
    }
    compare("call of a quiet plugin", alone, beside, report);
    compare("read of a quiet organization, no plugin", read_alone, read_beside, report);
    for (count, what) in counts.iter().zip(["worked", "failed", "were refused"]) {
        report.value(format!("hostile calls that {what}"), count.load(Ordering::Relaxed), "");
    }
    let status = runtime.block_on(api.get("/health/ready")).status;
    report.value("ready after all that", status, "200");
    others.shutdown_background();
    runtime.block_on(server.stop());
}

fn compare(what: &str, alone: Vec<Duration>, beside: Vec<Duration>, report: &mut Report) {
    let (alone, beside) = (Samples::of(alone), Samples::of(beside));
    report.row(format!("{what}, alone"), &alone, "", "");
    report.row(format!("{what}, beside a hostile plugin"), &beside, "", "");
    let times = |one, other| format!("x {:.2}", ratio(one, other));
    report.value("the same, p50 beside / alone", times(beside.median(), alone.median()), "");
    report.value("the same, p99 beside / alone", times(beside.p99(), alone.p99()), "< x 2");
}

async fn read(api: &Api) -> Vec<Duration> {
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let started = Instant::now();
        api.get("/sites").await.expect_status(200);
        times.push(started.elapsed());
    }
    times
}

/// Calls of the hostile plugins that were carried out, that failed in their run, and that were refused before.
type Counts = Arc<[AtomicU64; 3]>;

/// Calls the hostile plugins in each of their ways, whatever comes of it.
fn make_noise(runtime: &Runtime, loud: &Api, counts: &Counts) -> Vec<JoinHandle<()>> {
    let bodies = noise()
        .into_iter()
        .flat_map(|(id, steps)| steps.into_iter().map(move |step| asks(id, "look", &step)));
    let calling = |body: Value| {
        let (loud, counts) = (loud.clone(), Arc::clone(counts));
        runtime.spawn(async move {
            loop {
                let answer = loud.post("/actions", &body).await;
                let what =
                    if answer.status == 201 { usize::from(answer.body["success"] == false) } else { 2 };
                counts[what].fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(PAUSE).await;
            }
        })
    };
    bodies.map(calling).collect()
}
