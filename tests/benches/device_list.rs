//! The list of devices, 100 of 10,000, beside a bare handler in the same process
//! that runs the same two statements and answers the same bytes.
//!
//! What ours does more: who is calling, read with each request; a transaction,
//! so that page and total are of one moment; ids, headers and a span per request.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use heddle_core::adapter::{Completeness, DeviceStatus, SeenDevice};
use heddle_core::page::PageRequest;
use heddle_core::tls::TlsPolicy;
use heddle_core::{ControllerId, OrgId, SiteId};
use heddle_store::controllers::{self, NewController};
use heddle_store::devices::{self, Device, Seen};
use serde_json::json;
use sqlx::{PgPool, SqlitePool};
use tokio::runtime::Runtime;

use self::client::{Client, Round};
use crate::measure::{Report, ratio};
use crate::support::{Api, Database, Options, Server};

mod client;

const DEVICES: usize = 10_000;
const ROUNDS: usize = 4;
const REQUESTS_PER_ROUND: usize = 1_000;
const POOL_SIZE: u32 = 20;
const PATH: &str = "/api/v1/devices/?per_page=100";

const SELECT: &str = "SELECT id, org_id, site_id, controller_id, identity, name, display_name, kind, status,
    state, tags, notes, model, serial, firmware, mac, addresses, attributes, measurements, first_seen_at, last_seen_at, updated_at, deleted_at
    FROM device WHERE org_id = $1 AND deleted_at IS NULL ORDER BY first_seen_at, id LIMIT 100";
const COUNT: &str = "SELECT COUNT(*) FROM device WHERE org_id = $1 AND deleted_at IS NULL";

pub(crate) fn measure(runtime: &Runtime, report: &mut Report) {
    let mut databases = vec![("SQLite", Database::sqlite())];
    databases.extend(runtime.block_on(Database::postgres()).map(|database| ("PostgreSQL", database)));
    for (name, database) in databases {
        compare(name, runtime, report, database);
    }
}

fn compare(name: &str, runtime: &Runtime, report: &mut Report, database: Database) {
    let options = Options::default().with("DB_POOL_SIZE", POOL_SIZE.to_string());
    let mut server = runtime.block_on(Server::start_with(database, options));
    let (token, org) = runtime.block_on(seed(&server));
    let url = server.running().app.config.database();
    let bare = runtime.block_on(serve_bare(runtime, &url, org));

    let mut ours = Client::connect(server.running().addr, PATH, Some(&token));
    let mut baseline = Client::connect(bare, "/", None);
    assert_eq!(ours.fetch(), baseline.fetch(), "both answer the same bytes");
    ours.round(REQUESTS_PER_ROUND);
    baseline.round(REQUESTS_PER_ROUND);
    let (mut our_rounds, mut bare_rounds) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        our_rounds.push(ours.round(REQUESTS_PER_ROUND));
        bare_rounds.push(baseline.round(REQUESTS_PER_ROUND));
        report.noise.sample();
    }
    let (ours, baseline) = (Round::joined(our_rounds), Round::joined(bare_rounds));
    let share = 100.0 * ratio(baseline.elapsed, ours.elapsed);
    let per_second = |round: &Round| format!("{:.0}/s", round.per_second());
    report.row(format!("devices, {name}, bare handler"), &baseline.latencies(), per_second(&baseline), "");
    report.row(format!("devices, {name}, ours"), &ours.latencies(), per_second(&ours), "");
    report.value(format!("devices, {name}, ours / bare"), format!("{share:.0} %"), ">= 60 %");
    runtime.block_on(server.stop());
}

/// An administrator of one organization, and its devices.
async fn seed(server: &Server) -> (String, OrgId) {
    let api = server.set_up().await;
    let site = api.get("/sites").await.expect_status(200).body["items"][0].clone();
    let (org_id, site_id): (OrgId, SiteId) = (
        serde_json::from_value(site["organization_id"].clone()).expect("a site has an organization"),
        serde_json::from_value(site["id"].clone()).expect("a site has an id"),
    );
    let app = &server.running().app;
    let controller_id = add_controller(server, &api, org_id, site_id).await;
    let devices: Vec<SeenDevice> = (0..DEVICES).map(device).collect();
    let seen = Seen { org_id, site_id, controller_id, devices: &devices, complete: Completeness::Complete };
    let mut tx = app.db.write().await.expect("the database takes writes");
    devices::upsert_seen(&mut tx, &seen, &app.clock).await.expect("devices can be written");
    tx.commit().await.expect("devices can be kept");
    // The first administrator spans organizations; a list of one organization is what users see.
    execute(&app.config.database(), "UPDATE app_user SET role = 'org_admin'").await;
    (api.token().to_owned(), org_id)
}

/// A controller that is never read.
async fn add_controller(server: &Server, api: &Api, org_id: OrgId, site_id: SiteId) -> ControllerId {
    let credential = json!({ "name": "edge", "username": "root", "password": "unused" });
    let credential = api.post("/credentials", &credential).await.expect_status(201);
    let app = &server.running().app;
    let new = NewController {
        id: app.clock.new_id(),
        org_id,
        site_id,
        credential_id: serde_json::from_value(credential.body["id"].clone()).expect("a credential has an id"),
        name: "edge".to_owned(),
        vendor: "openwrt".to_owned(),
        url: "http://192.0.2.1".to_owned(),
        tls: TlsPolicy::default(),
        settings: json!({}),
        sync_interval_secs: 300,
        next_sync_at: None,
        now: app.clock.now(),
    };
    let mut tx = app.db.write().await.expect("the database takes writes");
    controllers::insert(&mut tx, &new).await.expect("a controller can be written");
    tx.commit().await.expect("a controller can be kept");
    new.id
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

async fn execute(url: &str, sql: &'static str) {
    if url.starts_with("sqlite:") {
        let pool = SqlitePool::connect(url).await.expect("the database opens");
        sqlx::query(sql).execute(&pool).await.expect("the statement works");
    } else {
        let pool = PgPool::connect(url).await.expect("the database opens");
        sqlx::query(sql).execute(&pool).await.expect("the statement works");
    }
}

macro_rules! bare_handler {
    ($name:ident, $pool:ty) => {
        async fn $name(State((pool, org)): State<($pool, OrgId)>) -> Response {
            let total: i64 =
                sqlx::query_scalar(COUNT).bind(org).fetch_one(&pool).await.expect("devices can be counted");
            let items: Vec<Device> =
                sqlx::query_as(SELECT).bind(org).fetch_all(&pool).await.expect("devices can be read");
            axum::Json(PageRequest { page: 1, per_page: 100 }.of(items, total)).into_response()
        }
    };
}
bare_handler!(bare_sqlite, SqlitePool);
bare_handler!(bare_postgres, PgPool);

/// Serves the bare handler until the process ends.
async fn serve_bare(runtime: &Runtime, url: &str, org: OrgId) -> std::net::SocketAddr {
    let router = if url.starts_with("sqlite:") {
        let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(POOL_SIZE).connect(url).await;
        Router::new().route("/", get(bare_sqlite)).with_state((pool.expect("the database opens"), org))
    } else {
        let pool = sqlx::postgres::PgPoolOptions::new().max_connections(POOL_SIZE).connect(url).await;
        Router::new().route("/", get(bare_postgres)).with_state((pool.expect("the database opens"), org))
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    runtime.spawn(async move { axum::serve(listener, router).await });
    address
}
