//! Requests over 64 connections, each compared with a bare handler in the same process and the same run: two lists, one
//! object, and the staging of a change.
//!
//! What the service does in addition with every request: authentication and authorization; the checks of path, query
//! and body; a transaction, so that all that is read is of one moment; limits, ids, headers and a span; an `ETag` for
//! one object. What it does in addition to stage is listed in [`bare::staging`].

use heddle_core::ControllerId;
use heddle_lab_openwrt::{Call, Router};
use serde_json::json;
use tokio::runtime::Runtime;

use self::client::{Client, Request, Round};
use self::seed::ROUTER_PASSWORD;
use crate::measure::Report;
use crate::plain_host::PlainHost;
use crate::support::{Database, Options, Server};

mod bare;
mod client;
mod seed;

const ROUNDS: usize = 4;
const READS_PER_ROUND: usize = 1_000;
const STAGINGS_PER_ROUND: usize = 256;
const POOL_SIZE: u32 = 20;
/// More than any of these benches asks for in a minute.
const NO_LIMIT: &str = "1000000";

pub(crate) fn measure(runtime: &Runtime, report: &mut Report) {
    for (name, database) in databases(runtime) {
        reads(name, runtime, report, database);
    }
    for (name, database) in databases(runtime) {
        staging(name, runtime, report, database);
    }
}

fn databases(runtime: &Runtime) -> Vec<(&'static str, Database)> {
    let mut databases = vec![("SQLite", Database::sqlite())];
    databases.extend(runtime.block_on(Database::postgres()).map(|database| ("PostgreSQL", database)));
    databases
}

async fn start(database: Database) -> Server {
    let options = Options::default()
        .with("DB_POOL_SIZE", POOL_SIZE.to_string())
        .with("RATE_LIMIT_RPM", NO_LIMIT)
        .with("RATE_LIMIT_BURST", NO_LIMIT);
    Server::start_with(database, options).await
}

fn reads(name: &str, runtime: &Runtime, report: &mut Report, database: Database) {
    let mut server = runtime.block_on(start(database));
    let network = runtime.block_on(seed::network(&server));
    let url = server.running().app.config.database();
    let bare = runtime.block_on(bare::serve(runtime, &url, network.org));
    let one_device = format!("/api/v1/devices/{}", network.device);
    for (what, path) in [
        ("100 of 10,000 devices", "/api/v1/devices?per_page=100"),
        ("100 of 200 sites with counts", "/api/v1/sites?per_page=100"),
        ("one device", &one_device),
        ("100 of 10,000 objects of the model", "/api/v1/inventory/vlan?per_page=100"),
    ] {
        let request = [Request::get(path, &network.token)];
        let mut ours = Client::connect(server.running().addr, &request, 200);
        let mut baseline = Client::connect(bare, &request, 200);
        assert_eq!(ours.fetch(), baseline.fetch(), "both answer the same bytes");
        let rounds = in_turns(&mut [&mut ours, &mut baseline], READS_PER_ROUND, report, || ());
        let aim = if what == "one device" || what.contains("model") { ">= 70 %" } else { ">= 60 %" };
        compare(&format!("{what}, {name}"), &rounds, report, aim);
    }
    runtime.block_on(server.stop());
}

/// One connection for each controller, and all in one organization: how many calls of a component
/// an organization may have under way is bounded, the others wait for their turn.
fn staging(name: &str, runtime: &Runtime, report: &mut Report, database: Database) {
    let router = runtime.block_on(Router::builder().password(ROUTER_PASSWORD).start());
    let mut server = runtime.block_on(start(database));
    let seeded = runtime.block_on(seed::controllers(&server, &router.url()));
    let app = server.running().app.clone();
    let rule = json!({ "payload": {
        "name": "Allow-HTTPS", "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT",
    } });
    let path = |controller: &ControllerId| {
        format!(
            "/api/v1/gateway-openwrt-firewall/{controller}/changes/openwrt.firewall.rule?operation=create"
        )
    };
    let requests = |controllers: &[ControllerId]| -> Vec<Request> {
        controllers.iter().map(|controller| Request::post(&path(controller), &seeded.token, &rule)).collect()
    };
    let forget = || {
        runtime.block_on(seed::forget_changes(&app));
        router.forget_calls();
    };

    let everywhere = requests(&seeded.of_organizations.concat());
    let mut ours = Client::connect(server.running().addr, &everywhere, 201);
    let staged = ours.fetch();
    let host = PlainHost::log_in(runtime, &router, ROUTER_PASSWORD);
    let bare = runtime.block_on(bare::staging::serve(runtime, &app, host, &staged));
    let mut baseline = Client::connect(bare, &everywhere, 201);
    let asked = [&mut ours, &mut baseline].map(|side| {
        router.forget_calls();
        side.fetch();
        router.calls().iter().map(Call::name).collect::<Vec<String>>()
    });
    assert_eq!(asked[0], asked[1], "both ask the router the same");
    let rounds = in_turns(&mut [&mut ours, &mut baseline], STAGINGS_PER_ROUND, report, forget);
    let organizations = seeded.of_organizations.len();
    compare(&format!("staging in {organizations} organizations, {name}"), &rounds, report, "");

    let one = requests(&seeded.of_organizations[0]);
    let mut ours = Client::connect(server.running().addr, &one, 201);
    let [round] = in_turns(&mut [&mut ours], STAGINGS_PER_ROUND, report, forget);
    let what = format!("staging in 1 organization, {name}, ours");
    report.row(what, &round.latencies(), round.result(), "");
    runtime.block_on(server.stop());
    runtime.block_on(router.shutdown());
}

/// The rounds of each side, after one that only warms it up.
fn in_turns<const SIDES: usize>(
    sides: &mut [&mut Client; SIDES],
    requests: usize,
    report: &mut Report,
    before_each: impl Fn(),
) -> [Round; SIDES] {
    let mut rounds: [Vec<Round>; SIDES] = std::array::from_fn(|_| Vec::new());
    for round in 0..=ROUNDS {
        for (side, rounds) in sides.iter_mut().zip(&mut rounds) {
            before_each();
            let measured = side.round(requests);
            if round > 0 {
                rounds.push(measured);
            }
        }
        report.noise.sample();
    }
    rounds.map(Round::joined)
}

fn compare(what: &str, [ours, bare]: &[Round; 2], report: &mut Report, aim: &str) {
    report.row(format!("{what}, bare handler"), &bare.latencies(), bare.result(), "");
    report.row(format!("{what}, ours"), &ours.latencies(), ours.result(), "");
    let share = 100.0 * ours.per_second() / bare.per_second();
    report.value(format!("{what}, ours / bare"), format!("{share:.0} %"), aim);
}
