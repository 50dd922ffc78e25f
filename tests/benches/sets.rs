//! A set of 50 changes over seven controllers of three vendors: what its plan and its apply take, beside the same changes
//! planned and applied one by one in the same run.

use std::time::{Duration, Instant};

use heddle_lab::{Controller, Lab};
use heddle_lab_omada::{Omada, Seed};
use heddle_lab_openwrt::Router;
use heddle_lab_opnsense::{Firewall, Settings};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::measure::{Report, ratio};
use crate::support::{Adapters, Api, Database, Options, Server};

const CHANGES: usize = 50;
const PASSWORD: &str = "router-bench-5uP3r";
const WAIT: Duration = Duration::from_mins(5);

/// A practice device and how it is registered.
struct Place {
    vendor: &'static str,
    url: String,
    credential: Value,
    settings: Value,
    area: &'static str,
    feature: &'static str,
    /// What is created under a name.
    payload: fn(&str) -> Value,
    /// Keeps the device there.
    _device: Box<dyn std::any::Any>,
}

async fn router() -> Place {
    let device = Router::builder().password(PASSWORD).boot_time(Duration::from_millis(300)).start().await;
    Place {
        vendor: "openwrt",
        url: device.url(),
        credential: json!({ "username": "root", "password": PASSWORD }),
        settings: json!({}),
        area: "firewall",
        feature: "openwrt.firewall.rule",
        payload: |name| json!({ "name": name, "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT" }),
        _device: Box::new(device),
    }
}

async fn on_skeleton<C: Controller + 'static>(
    device: C,
    place: impl FnOnce(String, Box<dyn std::any::Any>) -> Place,
) -> Place {
    let device = Lab::builder(device).start().await;
    let url = device.url();
    place(url, Box::new(device))
}

async fn firewall() -> Place {
    on_skeleton(Firewall::new(Settings::default()), |url, device| Place {
        vendor: "opnsense",
        url,
        credential: json!({ "username": "admin-key", "password": "admin-secret" }),
        settings: json!({}),
        area: "firewall",
        feature: "opnsense.firewall.alias",
        payload: |name| json!({ "name": name, "type": "host", "content": ["192.0.2.7", "192.0.2.8"] }),
        _device: device,
    })
    .await
}

async fn controller() -> Place {
    on_skeleton(Omada::new(Seed::default()), |url, device| Place {
        vendor: "omada",
        url,
        credential: json!({ "username": "lab-client", "password": "lab-secret" }),
        settings: json!({ "site": "Main" }),
        area: "profiles",
        feature: "omada.profiles.rate-limit",
        payload: |name| json!({ "name": name, "downLimitEnable": false, "upLimitEnable": false }),
        _device: device,
    })
    .await
}

async fn register(api: &Api, place: &Place) -> String {
    let mut credential = place.credential.clone();
    credential["name"] = json!("key");
    let credential = api.post("/credentials", &credential).await.expect_status(201).body;
    let sites = api.get("/sites").await.expect_status(200).body;
    let body = json!({
        "name": place.vendor, "site_id": sites["items"][0]["id"], "vendor": place.vendor, "url": place.url,
        "credential_id": credential["id"], "settings": place.settings, "sync_interval_secs": 3600,
    });
    let controller = api.post("/controllers", &body).await.expect_status(201).body;
    let at = format!("/controllers/{}", controller["id"].as_str().expect("a controller has an id"));
    let began = Instant::now();
    while api.get(&at).await.expect_status(200).body["status"] == "unknown" {
        assert!(began.elapsed() < WAIT, "the controller is read");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    controller["id"].as_str().expect("a controller has an id").to_owned()
}

/// Stages the changes in turns at all places; returns their ids.
async fn stage(api: &Api, places: &[(Place, String)], word: &str) -> Vec<Value> {
    let mut ids = Vec::with_capacity(CHANGES);
    for (at, (place, controller)) in places.iter().cycle().take(CHANGES).enumerate() {
        let (vendor, area, feature) = (place.vendor, place.area, place.feature);
        let path = format!("/gateway-{vendor}-{area}/{controller}/changes/{feature}?operation=create");
        let payload = json!({ "payload": (place.payload)(&format!("{word}{at}")) });
        let change = api.post(&path, &payload).await.expect_status(201).body;
        assert!(change["plan"].is_object(), "{change}");
        ids.push(change["id"].clone());
    }
    ids
}

/// Does this with every change, one after the other.
async fn each(api: &Api, ids: &[Value], verb: &str, body: &Value) -> Duration {
    let began = Instant::now();
    for id in ids {
        let path = format!("/gateway-vpn/changes/{}/{verb}", id.as_str().expect("an id"));
        api.post(&path, body).await.expect_status(200);
    }
    began.elapsed()
}

pub(crate) fn measure(runtime: &Runtime, report: &mut Report) {
    runtime.block_on(run(report));
}

async fn run(report: &mut Report) {
    let vendors = ["openwrt", "opnsense", "omada"].map(str::to_owned).to_vec();
    let options = Options::default().serving(Adapters::Of(vendors)).with("APPLY_SETTLE_MS", "50");
    let mut server = Server::start_with(Database::sqlite(), options).await;
    let api = server.set_up().await;
    let made = [
        router().await,
        router().await,
        router().await,
        firewall().await,
        firewall().await,
        controller().await,
        controller().await,
    ];
    let mut places = Vec::new();
    for place in made {
        let id = register(&api, &place).await;
        places.push((place, id));
    }
    let force = json!({ "force": true });
    let single = stage(&api, &places, "single").await;
    let single_plans = each(&api, &single, "plan", &json!({})).await;
    let single_applies = each(&api, &single, "apply", &force).await;

    let together = stage(&api, &places, "together").await;
    let began = Instant::now();
    let body = json!({ "change_ids": together });
    let set = api.post("/gateway-vpn/changes/sets", &body).await.expect_status(201).body;
    let plan = began.elapsed();
    assert!(set["plan"]["hash"].is_string(), "{set}");
    let apply = format!("/gateway-vpn/changes/sets/{}/apply", set["id"].as_str().expect("a set has an id"));
    let began = Instant::now();
    let done = api.post(&apply, &force).await.expect_status(200).body;
    let applied = began.elapsed();
    assert_eq!(done["outcome"]["state"], "committed", "{done}");

    let what = format!("set of {CHANGES} changes over {} controllers", places.len());
    for (act, took, alone) in [("plan", plan, single_plans), ("apply", applied, single_applies)] {
        let shown = |took: Duration| format!("{:.2} s", took.as_secs_f64());
        report.value(format!("{what}, {act}"), shown(took), "");
        report.value(format!("{CHANGES} changes one by one, {act}"), shown(alone), "");
        report.value(
            format!("{what}, {act}, of one by one"),
            format!("{:.2}", ratio(took, alone)),
            "below 1",
        );
    }
    server.stop().await;
}
