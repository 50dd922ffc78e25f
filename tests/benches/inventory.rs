//! Readings of large controllers: what one reading of devices and objects takes in time, requests and memory. The second
//! reading finds everything as it was. The memory is that of this process, in which the practice controller is, too.

use std::fs;
use std::time::{Duration, Instant};

use heddle_lab::{Controller, Lab};
use heddle_lab_omada::{Omada, Seed};
use heddle_lab_opnsense::{Firewall, Settings};
use heddle_lab_proxmox::{Proxmox, ROOT_TOKEN, Setup};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::measure::Report;
use crate::support::{Adapters, Database, Options, Server};

/// Readings of one controller: the first stores everything, the second compares.
const READINGS: [&str; 2] = ["first", "second"];
/// A reading of all lists takes two minutes at most; what is left is read the next time.
const WAIT: Duration = Duration::from_mins(10);

pub(crate) fn measure(runtime: &Runtime, report: &mut Report) {
    let rules = Firewall::new(Settings { rules: 5_000, ..Settings::default() });
    let key = json!({ "username": "admin-key", "password": "admin-secret" });
    let firewall = Case { vendor: "opnsense", kind: "firewall-rule", credential: key, settings: json!({}) };
    runtime.block_on(read(report, "OPNsense with 5,000 rules", rules, firewall));
    let guests = Proxmox::new(Setup { guests: 2_000, ..Setup::default() });
    let cluster = Case {
        vendor: "proxmox",
        kind: "guest",
        credential: json!({ "api_key": ROOT_TOKEN.trim_start_matches("PVEAPIToken=") }),
        settings: json!({ "login": "token" }),
    };
    runtime.block_on(read(report, "Proxmox VE with 2,000 guests", guests, cluster));
    let clients = Omada::new(Seed { clients: 10_000, sites: 1, ..Seed::default() });
    let credential = json!({ "username": "lab-client", "password": "lab-secret" });
    let settings = json!({ "site": "Main" });
    let controller = Case { vendor: "omada", kind: "client", credential, settings };
    runtime.block_on(read(report, "Omada with 10,000 clients", clients, controller));
}

/// How a controller is registered, and the kind of which it has many objects.
struct Case {
    vendor: &'static str,
    kind: &'static str,
    credential: Value,
    settings: Value,
}

async fn read<C: Controller>(report: &mut Report, name: &str, device: C, mut case: Case) {
    let device = Lab::builder(device).start().await;
    let serving = Adapters::Of(vec![case.vendor.to_owned()]);
    let mut server = Server::start_with(Database::sqlite(), Options::default().serving(serving)).await;
    let api = server.set_up().await;
    case.credential["name"] = json!("key");
    let credential = api.post("/credentials", &case.credential).await.expect_status(201).body;
    let sites = api.get("/sites").await.expect_status(200).body;
    let controller = json!({
        "name": "large", "site_id": sites["items"][0]["id"], "vendor": case.vendor, "url": device.url(),
        "credential_id": credential["id"], "settings": case.settings, "sync_interval_secs": 3600,
    });
    let controller = api.post("/controllers", &controller).await.expect_status(201).body;
    let at = format!("/controllers/{}", controller["id"].as_str().expect("a controller has an id"));
    for reading in READINGS {
        device.forget_record();
        let before = resident_kib("VmRSS:");
        // From here on the greatest amount is counted anew.
        fs::write("/proc/self/clear_refs", "5").expect("the kernel forgets the greatest amount");
        let started = Instant::now();
        let sync = api.post(&format!("{at}/sync"), &json!({})).await.expect_status(202).body;
        let path = format!("{at}/syncs/{}", sync["id"].as_str().expect("a sync has an id"));
        while api.get(&path).await.expect_status(200).body["ended_at"].is_null() {
            assert!(started.elapsed() < WAIT, "the reading ends");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let (took, peak) = (started.elapsed(), resident_kib("VmHWM:"));
        let requests = device.record().len();
        let listed = api.get(&format!("/inventory/{}?per_page=1", case.kind)).await.expect_status(200).body;
        let readings = api.get(&format!("{at}/inventory")).await.expect_status(200).body;
        assert_ne!(listed["total"], 0, "{name}: nothing was read: {readings}");
        let what = format!("{name}, {reading} reading");
        report.value(format!("{what}, time"), format!("{:.1} s", took.as_secs_f64()), "");
        report.value(format!("{what}, requests"), requests.to_string(), "");
        report.value(format!("{what}, {} objects", case.kind), listed["total"].to_string(), "");
        report.value(
            format!("{what}, memory on top"),
            format!("{} MiB", peak.saturating_sub(before) / 1024),
            "",
        );
    }
    server.stop().await;
}

/// A line of this process's state, in KiB.
fn resident_kib(line: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("the kernel tells the state of a process");
    let found = status.lines().find_map(|text| text.strip_prefix(line)).unwrap_or_default();
    found.trim().trim_end_matches(" kB").parse().expect("a number of KiB")
}
