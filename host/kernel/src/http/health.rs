//! Answers whether the service is alive and whether it can do its work.
//!
//! The public answers say which parts work, and nothing of tenants or addresses.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use heddle_store::{Db, PoolUse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::openapi;
use crate::app::{App, SharedApp};
use crate::declarations::SETTINGS_READ;
use crate::feature::{Feature, Pages};
use crate::health::cache::{Check, Status};
use crate::health::{self, Report};
use crate::http::access::Access;
use crate::http::glossary::Glossary;
use crate::http::routes::{Doc, Routes, doc};

/// A database that just answered must give its version within this time, else the answer has none.
const VERSION_LIMIT: Duration = Duration::from_secs(2);

#[derive(Debug, Serialize, JsonSchema)]
struct Health {
    /// `healthy` or `degraded`.
    status: &'static str,
    degraded_subsystems: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Readiness {
    /// `ready`, or `not_ready` with 503.
    status: &'static str,
    /// Why no traffic should come here: `database`, `modules`, `event_bus`, `draining`, and with
    /// `READINESS_STRICT_DEPS` also `cache` and `logdb`.
    failed: Vec<&'static str>,
    degraded_subsystems: Vec<String>,
    checks: Checks,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Checks {
    database: Status,
    cache: Status,
    logdb: Status,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Alive {
    /// Always `alive`.
    status: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Connectivity {
    status: Status,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "HealthDetail")]
struct Detail {
    /// `healthy` or `degraded`.
    status: &'static str,
    degraded_subsystems: Vec<String>,
    version: &'static str,
    api_version: &'static str,
    /// How the program was built: `release` or `debug`, and for which platform.
    build: String,
    environment: String,
    uptime_secs: u64,
    adapter_read_only: bool,
    database: DatabaseDetail,
    log_database: DatabaseDetail,
    cache: CacheDetail,
    event_bus: EventBusDetail,
    adapters: Vec<AdapterDetail>,
    refused_adapters: Vec<RefusedDetail>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct DatabaseDetail {
    status: Status,
    latency_ms: f64,
    /// `sqlite` or `postgres`; null while it was never reached.
    kind: Option<&'static str>,
    version: Option<String>,
    pool: Option<Pool>,
}

/// Connections of this process.
#[derive(Debug, Serialize, JsonSchema)]
struct Pool {
    open: u32,
    idle: u32,
    max: u32,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CacheDetail {
    status: Status,
    latency_ms: f64,
    /// `in_process` or `redis`.
    kind: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
struct EventBusDetail {
    up: bool,
    /// Whether events of other processes arrive at once; otherwise they arrive within half a second.
    wakeups_up: bool,
    last_look_age_secs: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AdapterDetail {
    id: String,
    version: String,
    /// The adapter failed too often: it takes no calls until a person releases it.
    quarantined: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct RefusedDetail {
    package: String,
    reason: String,
}

const GLOSSARY: Glossary = Glossary {
    groups: &[(
        "health",
        "Health",
        "Whether the service lives, is ready for traffic, and which of its parts are degraded.",
    )],
    ..Glossary::EMPTY
};

/// Answers to probes.
pub struct Probes;

impl Feature for Probes {
    fn name(&self) -> &'static str {
        "health"
    }

    fn glossary(&self) -> &'static Glossary {
        &GLOSSARY
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        let probes = Routes::default()
            .get(
                "/health",
                Access::Public,
                health,
                doc("Overall status").named("get_health").answers::<Health>(200),
            )
            .get(
                "/health/live",
                Access::Public,
                live,
                doc("The process runs").named("get_liveness").answers::<Alive>(200),
            )
            .get(
                "/health/ready",
                Access::Public,
                ready,
                doc("The process can serve; 503 with the same body when it cannot")
                    .named("get_readiness")
                    .answers::<Readiness>(200)
                    .also_answers::<Readiness>(503),
            )
            .get(
                "/health/db",
                Access::Public,
                database,
                doc("The database answers; 503 with the same body when it does not")
                    .named("get_database_health")
                    .answers::<Connectivity>(200)
                    .also_answers::<Connectivity>(503),
            )
            .get(
                "/health/detail",
                Access::Permission(SETTINGS_READ),
                detail,
                doc("Latencies, versions and adapters").named("get_health_detail").answers::<Detail>(200),
            );
        probes.each(Doc::unlimited)
    }

    fn pages(&self) -> Pages {
        let router = Router::new()
            .route("/health", get(health))
            .route("/", get(root))
            .route(super::prefix::PREFIX, get(root));
        Pages::new(router, &["/", "/health"]).unlimited(&["/health"])
    }
}

async fn root(State(app): State<SharedApp>) -> Json<Value> {
    let docs = openapi::is_served(&app.config).then_some("/api/v1/docs");
    Json(json!({ "app": "Heddle", "docs": docs, "api": super::prefix::PREFIX }))
}

fn word(degraded: &[String]) -> &'static str {
    if degraded.is_empty() { "healthy" } else { "degraded" }
}

async fn health(State(app): State<SharedApp>) -> Json<Health> {
    let degraded_subsystems = health::report(&app).await.degraded();
    Json(Health { status: word(&degraded_subsystems), degraded_subsystems })
}

async fn live() -> Json<Alive> {
    Json(Alive { status: "alive" })
}

async fn ready(State(app): State<SharedApp>) -> Response {
    let report = health::report(&app).await;
    let failed = report.failed();
    let (code, status) = if failed.is_empty() {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not_ready")
    };
    let checks = Checks {
        database: report.seen.database.status,
        cache: report.seen.cache.status,
        logdb: report.seen.logdb.status,
    };
    let degraded_subsystems = report.degraded();
    (code, Json(Readiness { status, failed, degraded_subsystems, checks })).into_response()
}

async fn database(State(app): State<SharedApp>) -> Response {
    let check = health::report(&app).await.seen.database;
    let code = if check.is_up() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(Connectivity { status: check.status })).into_response()
}

async fn detail(State(app): State<SharedApp>) -> Json<Detail> {
    let report = health::report(&app).await;
    let (database, log_database) = tokio::join!(
        database_detail(report.seen.database, Some(&app.db)),
        database_detail(report.seen.logdb, app.logs.db()),
    );
    Json(describe(&app, &report, database, log_database))
}

fn describe(app: &App, report: &Report, database: DatabaseDetail, log_database: DatabaseDetail) -> Detail {
    let adapter = |adapter: &heddle_runtime::Adapter| AdapterDetail {
        id: adapter.id().to_owned(),
        version: adapter.version().to_owned(),
        quarantined: adapter.is_quarantined(),
    };
    let refused = |refused: &crate::modules::RefusedPackage| RefusedDetail {
        package: refused.package.clone(),
        reason: refused.reason.clone(),
    };
    let degraded_subsystems = report.degraded();
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    Detail {
        status: word(&degraded_subsystems),
        degraded_subsystems,
        version: crate::version::VERSION,
        api_version: crate::version::API_VERSION,
        build: format!("{profile} {}-{}", std::env::consts::ARCH, std::env::consts::OS),
        environment: app.config.environment.to_string(),
        uptime_secs: app.started.elapsed().as_secs(),
        adapter_read_only: app.config.adapter_read_only,
        database,
        log_database,
        cache: CacheDetail {
            status: report.seen.cache.status,
            latency_ms: millis(report.seen.cache),
            kind: app.cache.kind(),
        },
        event_bus: EventBusDetail {
            up: report.event_bus_up,
            wakeups_up: report.event_wakeups_up,
            last_look_age_secs: report.last_look_age_secs,
        },
        adapters: app.runtime.adapters().iter().map(adapter).collect(),
        refused_adapters: app.refused_packages().0.iter().map(refused).collect(),
    }
}

async fn database_detail(check: Check, db: Option<&Db>) -> DatabaseDetail {
    let version = match db {
        Some(db) if check.status == Status::Ok => {
            tokio::time::timeout(VERSION_LIMIT, db.version()).await.ok().and_then(Result::ok)
        }
        _ => None,
    };
    let pool = |PoolUse { open, idle, max }| Pool { open, idle, max };
    DatabaseDetail {
        status: check.status,
        latency_ms: millis(check),
        kind: db.map(Db::kind),
        version,
        pool: db.map(Db::pool_use).map(pool),
    }
}

fn millis(check: Check) -> f64 {
    check.latency.as_secs_f64() * 1000.0
}
