//! Whether the service lives and can do its work.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use heddle_core::Permission;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::SharedApp;
use crate::http::access::Access;
use crate::http::routes::{Routes, doc};

#[derive(Debug, Serialize, JsonSchema)]
struct Health {
    /// `healthy` or `degraded`.
    status: &'static str,
    degraded_subsystems: Vec<String>,
}

pub(crate) fn root_routes() -> Router<SharedApp> {
    Router::new().route("/health", get(health)).route(
        "/",
        get(|| async {
            Json(json!({"app": "Heddle", "docs": "/api/v1/openapi.json", "api": super::PREFIX}))
        }),
    )
}

pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/health", Access::Public, health, doc("Overall status").answers::<Health>(200))
        .get("/health/live", Access::Public, live, doc("The process runs").answers::<Value>(200))
        .get("/health/ready", Access::Public, ready, doc("The process can serve").answers::<Value>(200))
        .get("/health/db", Access::Public, database, doc("The database answers").answers::<Value>(200))
        .get(
            "/health/detail",
            Access::Permission(Permission::SettingsRead),
            detail,
            doc("Latencies, versions and adapters").answers::<Value>(200),
        )
}

async fn degraded(app: &SharedApp) -> Vec<String> {
    let mut names = Vec::new();
    if app.db.ping().await.is_err() {
        names.push("database".to_owned());
    }
    names.extend(app.refused_adapters.iter().map(|refused| format!("adapter:{}", refused.package)));
    names
}

async fn health(State(app): State<SharedApp>) -> Json<Health> {
    let degraded_subsystems = degraded(&app).await;
    let status = if degraded_subsystems.is_empty() { "healthy" } else { "degraded" };
    Json(Health { status, degraded_subsystems })
}

async fn live() -> Json<Value> {
    Json(json!({ "status": "alive" }))
}

async fn ready(State(app): State<SharedApp>) -> Response {
    let database = match app.db.ping().await {
        Ok(()) => "ok",
        Err(_) => "unreachable",
    };
    let checks = json!({ "database": database, "cache": "ok", "logdb": "ok" });
    if database == "ok" {
        return Json(json!({ "status": "ready", "failed": [], "degraded_subsystems": [], "checks": checks }))
            .into_response();
    }
    let body = json!({
        "status": "not_ready", "failed": ["database"], "degraded_subsystems": ["database"], "checks": checks,
    });
    (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
}

async fn database(State(app): State<SharedApp>) -> Response {
    match app.db.ping().await {
        Ok(()) => Json(json!({ "status": "ok" })).into_response(),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "status": "unreachable" }))).into_response(),
    }
}

async fn detail(State(app): State<SharedApp>) -> Json<Value> {
    let started = std::time::Instant::now();
    let database = app.db.ping().await.is_ok();
    let database_ms = started.elapsed().as_secs_f64() * 1000.0;
    let adapters: Vec<Value> =
        app.runtime.adapters().iter().map(|a| json!({ "id": a.id(), "version": a.version() })).collect();
    let refused: Vec<Value> =
        app.refused_adapters.iter().map(|r| json!({ "package": r.package, "reason": r.reason })).collect();
    Json(json!({
        "status": if database && refused.is_empty() { "healthy" } else { "degraded" },
        "version": crate::VERSION,
        "database": { "ok": database, "latency_ms": database_ms },
        "adapters": adapters,
        "refused_adapters": refused,
        "adapter_read_only": app.config.adapter_read_only,
    }))
}
