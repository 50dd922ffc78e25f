//! What the servers hold before they are measured: written in few transactions,
//! by the store where the interface would write row by row.

use heddle_core::adapter::{Completeness, DeviceStatus, Origin, SeenDevice};
use heddle_core::tls::TlsPolicy;
use heddle_core::{ControllerId, CredentialId, DeviceId, OrgId, SiteId};
use heddle_kernel::app::App;
use heddle_store::Tx;
use heddle_store::controllers::{self, NewController};
use heddle_store::devices::{self, Seen};
use heddle_store::model_objects::record::{self, List, Place, Storable};
use heddle_store::sites::{self, NewSite};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::{Api, Server};

const SITES: usize = 200;
const DEVICES_PER_SITE: usize = 50;
/// As many as have together what one component may have under way.
const ORGANIZATIONS: usize = 4;
const CONTROLLERS_PER_ORGANIZATION: usize = 16;
pub(super) const ROUTER_PASSWORD: &str = "router-bench-5uP3r";

/// An administrator of one organization, and a device in the middle of it.
pub(super) struct Network {
    pub(super) token: String,
    pub(super) org: OrgId,
    pub(super) device: DeviceId,
}

/// One organization with its sites, one controller on each, and the devices that it saw.
pub(super) async fn network(server: &Server) -> Network {
    let api = server.set_up().await;
    let first = api.get("/sites").await.expect_status(200).body["items"][0].clone();
    let (org, first): (OrgId, SiteId) = (id(&first["organization_id"]), id(&first["id"]));
    let credential = add_credential(&api, org, "unused").await;
    let app = &server.running().app;
    let mut tx = app.db.write().await.expect("the database takes writes");
    for at in 0..SITES {
        let site = if at == 0 { first } else { add_site(&mut tx, app, org, at).await };
        // Its address is that of no device, and it is never read.
        let place = (org, site, credential, "http://192.0.2.1");
        let controller = add_controller(&mut tx, app, place, at).await;
        let seen: Vec<SeenDevice> =
            (0..DEVICES_PER_SITE).map(|n| device(at * DEVICES_PER_SITE + n)).collect();
        let seen = Seen {
            org_id: org,
            site_id: site,
            controller_id: controller,
            devices: &seen,
            sites: &std::collections::HashMap::new(),
            unread: &std::collections::HashSet::new(),
            complete: Completeness::Complete,
        };
        devices::upsert_seen(&mut tx, &seen, &app.clock).await.expect("devices can be written");
        add_objects(&mut tx, app, (org, site, controller), at).await;
    }
    // The first administrator spans organizations; what is of one organization is what users see.
    execute(&mut tx, "UPDATE app_user SET role = 'org_admin'").await;
    execute(&mut tx, "ANALYZE").await;
    tx.commit().await.expect("a network can be kept");
    app.callers.forget();
    let middle = format!("/devices?per_page=1&page={}", SITES * DEVICES_PER_SITE / 2);
    let middle = api.get(&middle).await.expect_status(200).body;
    Network { token: api.token().to_owned(), org, device: id(&middle["items"][0]["id"]) }
}

/// As many objects of the model as devices, each as large as a VLAN is.
async fn add_objects(tx: &mut Tx, app: &App, place: (OrgId, SiteId, ControllerId), at: usize) {
    let (org_id, site_id, controller_id) = place;
    let object = |n: usize| Storable {
        key: format!("vlan-{n}"),
        label: format!("VLAN {:05}", at * DEVICES_PER_SITE + n),
        origin: Origin::Own,
        device_key: None,
        native: Some(json!({ "kind": "network.vlan", "key": format!("br-lan:{n}") })),
        fields: json!({
            "vlan_id": n + 1, "name": format!("net-{n}"), "subnets": ["192.0.2.0/24"], "gateway": "192.0.2.1",
            "members": [{ "port": "lan1", "tagged": true }, { "port": "lan2", "tagged": false }],
        }),
        digest: n.to_string(),
        contents_digest: n.to_string(),
        searched: format!("vlan-{n}"),
    };
    let objects: Vec<Storable> = (0..DEVICES_PER_SITE).map(object).collect();
    let rows: Vec<_> = objects.iter().map(|object| (app.clock.new_id(), object)).collect();
    let list = List { controller_id, kind: "vlan", site_ref: "" };
    let place = Place { org_id, site_id, reading_id: app.clock.new_id(), now: app.clock.now() };
    record::write(tx, &list, &place, &rows).await.expect("objects can be written");
}

/// The token of a user who may stage in every organization, and the controllers, those of an organization together.
pub(super) struct Controllers {
    pub(super) token: String,
    pub(super) of_organizations: Vec<Vec<ControllerId>>,
}

/// Controllers of several organizations that all reach the same router.
pub(super) async fn controllers(server: &Server, router_url: &str) -> Controllers {
    let api = server.set_up().await;
    let app = &server.running().app;
    let mut of_organizations = Vec::new();
    for n in 0..ORGANIZATIONS {
        let organization = json!({ "name": format!("Organization {n}") });
        let org = id(&api.post("/organizations", &organization).await.expect_status(201).body["id"]);
        let site = json!({ "name": "Head office", "organization_id": org });
        let site = id(&api.post("/sites", &site).await.expect_status(201).body["id"]);
        let credential = add_credential(&api, org, ROUTER_PASSWORD).await;
        let mut tx = app.db.write().await.expect("the database takes writes");
        let mut of_one = Vec::new();
        for at in 0..CONTROLLERS_PER_ORGANIZATION {
            of_one.push(add_controller(&mut tx, app, (org, site, credential, router_url), at).await);
        }
        tx.commit().await.expect("controllers can be kept");
        of_organizations.push(of_one);
    }
    Controllers { token: api.token().to_owned(), of_organizations }
}

/// Forgets what was staged: a change names the others of its controller.
pub(super) async fn forget_changes(app: &App) {
    let mut tx = app.db.write().await.expect("the database takes writes");
    execute(&mut tx, "DELETE FROM change").await;
    tx.commit().await.expect("changes can be forgotten");
}

async fn add_credential(api: &Api, org: OrgId, password: &str) -> CredentialId {
    let credential =
        json!({ "name": "edge", "username": "root", "password": password, "organization_id": org });
    id(&api.post("/credentials", &credential).await.expect_status(201).body["id"])
}

async fn add_site(tx: &mut Tx, app: &App, org_id: OrgId, at: usize) -> SiteId {
    let new = NewSite {
        id: app.clock.new_id(),
        org_id,
        name: format!("Branch {at:03}"),
        slug: format!("branch-{at:03}"),
        settings: json!({ "auto_adopt": false }),
        now: app.clock.now(),
    };
    sites::insert(tx, &new).await.expect("a site can be written").id
}

/// A controller that is not read by itself.
async fn add_controller(
    tx: &mut Tx,
    app: &App,
    (org_id, site_id, credential_id, url): (OrgId, SiteId, CredentialId, &str),
    at: usize,
) -> ControllerId {
    let new = NewController {
        id: app.clock.new_id(),
        org_id,
        site_id,
        credential_id,
        name: format!("edge-{at:03}"),
        vendor: "openwrt".to_owned(),
        url: url.to_owned(),
        tls: TlsPolicy::default(),
        settings: json!({}),
        sync_interval_secs: 300,
        next_sync_at: None,
        push_enabled: true,
        now: app.clock.now(),
    };
    controllers::insert(tx, &new).await.expect("a controller can be written").id
}

fn device(at: usize) -> SeenDevice {
    SeenDevice {
        identity: format!("02:00:00:00:{:02x}:{:02x}", at / 256, at % 256),
        name: format!("ap-{at:05}"),
        kind: "access_point".to_owned(),
        status: if at.is_multiple_of(10) { DeviceStatus::Offline } else { DeviceStatus::Online },
        model: Some("AX-3000".to_owned()),
        serial: Some(format!("SN{at:08}")),
        firmware: Some("24.10.2".to_owned()),
        mac: Some(format!("02:00:00:00:{:02x}:{:02x}", at / 256, at % 256)),
        addresses: vec![format!("10.{}.{}.{}", at / 65_536, at / 256 % 256, at % 256)],
        site: None,
        attributes: json!({ "radios": 2, "uplink": "eth0", "channel": 36 + at % 4 }),
        measurements: json!({ "clients": at % 40, "uptime_s": at * 60, "load": 0.25 }),
    }
}

fn id<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).expect("an answer names ids")
}

async fn execute(tx: &mut Tx, sql: &'static str) {
    match tx {
        Tx::Sqlite(tx) => drop(sqlx::query(sql).execute(&mut **tx).await.expect("the statement works")),
        Tx::Postgres(tx) => drop(sqlx::query(sql).execute(&mut **tx).await.expect("the statement works")),
    }
}
