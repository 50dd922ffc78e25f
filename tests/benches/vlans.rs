//! The VLANs of a site with forty controllers: side by side and compared, over HTTP, beside the bare queries that load them.
//!
//! The address of the controllers is that of no device: the views come from what is stored.

use std::time::Duration;

use heddle_core::adapter::{Completeness, Origin};
use heddle_core::tls::TlsPolicy;
use heddle_core::{ControllerId, CredentialId, OrgId, SiteId};
use heddle_kernel::app::App;
use heddle_store::controllers::{self, NewController};
use heddle_store::model_objects::of_site;
use heddle_store::model_objects::record::{self, List, Place, Storable};
use heddle_store::model_readings::{self, Row};
use heddle_store::{Scope, Tx};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::measure::{Report, Samples, in_turns, ratio};
use crate::support::{Database, Options, Server};

const CONTROLLERS: usize = 40;
const VLANS: usize = 60;
const PORTS: usize = 24;
const ROUNDS: usize = if cfg!(debug_assertions) { 10 } else { 100 };
const KINDS: [&str; 6] = ["vlan", "port", "ssid", "neighbour", "interface", "system"];

pub(crate) fn measure(runtime: &Runtime, report: &mut Report) {
    let options = Options::default().with("RATE_LIMIT_RPM", "1000000").with("RATE_LIMIT_BURST", "1000000");
    let mut server = runtime.block_on(Server::start_with(Database::sqlite(), options));
    let api = runtime.block_on(server.set_up());
    let sites = runtime.block_on(api.get("/sites")).expect_status(200).body;
    let (org, site): (OrgId, SiteId) =
        (id(&sites["items"][0]["organization_id"]), id(&sites["items"][0]["id"]));
    let credential = json!({ "name": "unused", "username": "root", "password": "x" });
    let credential = runtime.block_on(api.post("/credentials", &credential)).expect_status(201).body;
    let app = server.running().app.clone();
    runtime.block_on(seed(&app, (org, site, id(&credential["id"]))));

    let aim = Duration::from_millis(50);
    for (what, path, kinds) in [
        ("side by side", format!("/network/vlans?site_id={site}&per_page=200"), &KINDS[..1]),
        ("compared", format!("/network/vlans/compare?site_id={site}"), &KINDS[..]),
        ("on links", format!("/network/vlans/truth-map?site_id={site}&per_page=200"), &KINDS[..]),
    ] {
        let ours = || runtime.block_on(api.get(&path)).expect_status(200);
        let seen = ours();
        assert_eq!(seen.body["controllers"].as_array().map_or(CONTROLLERS, Vec::len), CONTROLLERS);
        let bare = || runtime.block_on(load(&app, org, site, kinds));
        assert_eq!(bare().iter().filter(|object| object.kind == "vlan").count(), CONTROLLERS * VLANS);
        let (ours, bare): (Samples, Samples) = in_turns(3, ROUNDS, ours, bare);
        let over = format!("x {:.2}", ratio(ours.median(), bare.median()));
        report.row(format!("VLANs of {CONTROLLERS} controllers {what}"), &ours, over, "< 50 ms");
        report.row("the same, the bare queries", &bare, "", "");
        report.value(format!("the same, {what}, within the aim"), ours.median() < aim, "true");
        report.noise.sample();
    }
    runtime.block_on(server.stop());
}

/// What a view loads, and nothing else.
async fn load(app: &App, org: OrgId, site: SiteId, kinds: &[&'static str]) -> Vec<of_site::AtSite> {
    let scope = Scope::organization(org);
    let mut tx = app.db.read().await.expect("the database can be read");
    let lists = of_site::lists(&mut tx, &scope, site).await.expect("lists can be read");
    assert!(lists.len() >= CONTROLLERS, "each controller has a list");
    of_site::objects(&mut tx, &scope, site, kinds).await.expect("objects can be read").0
}

fn id<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).expect("it is an id")
}

/// A chain of devices, each with the VLANs and ports of a switch.
async fn seed(app: &App, (org, site, credential): (OrgId, SiteId, CredentialId)) {
    let mut tx = app.db.write().await.expect("the database takes writes");
    for at in 0..CONTROLLERS {
        let new = NewController {
            id: app.clock.new_id(),
            org_id: org,
            site_id: site,
            credential_id: credential,
            name: format!("controller-{at:02}"),
            vendor: "openwrt".to_owned(),
            url: "http://192.0.2.1".to_owned(),
            tls: TlsPolicy::default(),
            settings: json!({}),
            sync_interval_secs: 3_600,
            next_sync_at: None,
            push_enabled: true,
            now: app.clock.now(),
        };
        let controller = controllers::insert(&mut tx, &new).await.expect("a controller can be written").id;
        let ports: Vec<(String, Value)> =
            (1..=PORTS).map(|number| (format!("lan{number}"), port(number))).collect();
        let vlans: Vec<(String, Value)> =
            (1..=VLANS).map(|n| (format!("br-lan:{}", n + 9), vlan(n + 9))).collect();
        let next = json!({
            "port": "lan1", "remote_chassis": mac(at + 1), "remote_port": "lan2", "protocol": "lldp",
        });
        let heard = if at + 1 < CONTROLLERS { vec![("next".to_owned(), next)] } else { Vec::new() };
        for (kind, objects) in [("port", ports), ("vlan", vlans), ("neighbour", heard)] {
            write(&mut tx, app, (org, site, controller), (kind, at), objects).await;
        }
    }
    tx.commit().await.expect("a site can be kept");
}

fn mac(at: usize) -> String {
    format!("02:00:00:00:00:{at:02x}")
}

fn vlan(number: usize) -> Value {
    let members: Vec<Value> =
        (1..=8).map(|port| json!({ "port": format!("lan{port}"), "tagged": port < 3 })).collect();
    json!({
        "vlan_id": number, "name": format!("net-{number}"), "subnets": [format!("10.0.{number}.0/24")],
        "gateway": format!("10.0.{number}.1"), "members": members,
    })
}

fn port(number: usize) -> Value {
    let tagged: Vec<usize> = if number < 3 { (10..VLANS + 10).collect() } else { Vec::new() };
    json!({
        "number": number, "enabled": true, "link": "up", "speed_mbps": 1_000, "native_vlan": if number < 3 { 1 } else { number + 9 },
        "tagged_mode": "list", "tagged_vlans": tagged,
        "counters": { "rx_bytes": 1_234_567, "tx_bytes": 7_654_321, "rx_packets": 4_711, "tx_packets": 815 },
    })
}

async fn write(
    tx: &mut Tx,
    app: &App,
    (org_id, site_id, controller_id): (OrgId, SiteId, ControllerId),
    (kind, at): (&str, usize),
    objects: Vec<(String, Value)>,
) {
    let object = |(key, fields): (String, Value)| Storable {
        label: key.clone(),
        searched: key.clone(),
        digest: key.clone(),
        key,
        origin: Origin::Own,
        device_key: Some(mac(at)),
        native: Some(json!({ "kind": kind, "key": "native" })),
        fields,
        contents_digest: String::new(),
    };
    let objects: Vec<Storable> = objects.into_iter().map(object).collect();
    let rows: Vec<_> = objects.iter().map(|object| (app.clock.new_id(), object)).collect();
    let place = Place { org_id, site_id, reading_id: app.clock.new_id(), now: app.clock.now() };
    let list = List { controller_id, kind, site_ref: "" };
    record::write(tx, &list, &place, &rows).await.expect("objects can be written");
    let (read_at, complete) = (Some(app.clock.now()), Completeness::Complete);
    let row = Row { read_at, complete, begun_at: read_at, ..Row::new(kind, "") };
    model_readings::save(tx, controller_id, &row).await.expect("a reading can be written");
}
