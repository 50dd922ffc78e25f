//! The control port: the orders of [`crate::Router`], for tests and demos that run the router as a process.
//!
//! It is open to every client that reaches it; it binds to the loopback address unless told otherwise.

use std::collections::BTreeSet;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::device::Restart;
use crate::fault::{Fault, Faults};
use crate::recorder::Call;
use crate::server::Shared;
use crate::uci::Change;

/// An edit behind the manager's back: changes as `uci.changes` prints them.
#[derive(Deserialize)]
struct Edit {
    config: String,
    changes: Vec<Value>,
}

pub(crate) fn routes(shared: Shared) -> Router {
    Router::new()
        .route("/health", get(async || "ok\n"))
        .route("/calls", get(calls).delete(forget_calls))
        .route("/counters", get(counters))
        .route("/state", get(state))
        .route("/fingerprint", get(fingerprint))
        .route("/configs/{name}", get(config))
        .route("/faults", post(order).delete(clear))
        .route("/reboot", post(reboot))
        .route("/rpcd/restart", post(restart_rpcd))
        .route("/rollback/run-out", post(run_out_rollback_timer))
        .route("/sessions/expire", post(expire_sessions))
        .route("/edit", post(edit))
        .route("/objects/missing", post(missing))
        .route("/clients/{mac}/leave", post(leave))
        .route("/clients/{mac}/return", post(come_back))
        .route("/firewall/skipped", get(skipped))
        .with_state(shared)
}

async fn calls(State(shared): State<Shared>) -> Json<Vec<Call>> {
    Json(shared.device().recorder.calls.clone())
}

async fn forget_calls(State(shared): State<Shared>) -> StatusCode {
    shared.device().recorder.calls.clear();
    StatusCode::NO_CONTENT
}

async fn counters(State(shared): State<Shared>) -> Json<Value> {
    Json(json!(shared.device().recorder.counters))
}

async fn state(State(shared): State<Shared>) -> Json<Value> {
    Json(shared.device().to_json())
}

async fn fingerprint(State(shared): State<Shared>) -> String {
    shared.device().fingerprint()
}

/// The committed file, as text.
async fn config(State(shared): State<Shared>, Path(name): Path<String>) -> Result<String, StatusCode> {
    shared.device().configs.get(&name).map(crate::uci::Config::to_text).ok_or(StatusCode::NOT_FOUND)
}

async fn order(State(shared): State<Shared>, Json(fault): Json<Fault>) -> StatusCode {
    let mut device = shared.device();
    let now = device.now;
    device.faults.order(fault, now);
    StatusCode::NO_CONTENT
}

async fn clear(State(shared): State<Shared>) -> StatusCode {
    shared.device().faults = Faults::default();
    StatusCode::NO_CONTENT
}

async fn reboot(State(shared): State<Shared>) -> StatusCode {
    shared.device().restart(Restart::Reboot);
    StatusCode::NO_CONTENT
}

async fn restart_rpcd(State(shared): State<Shared>) -> StatusCode {
    shared.device().restart_rpcd();
    StatusCode::NO_CONTENT
}

/// 404 when no apply waits for its confirmation.
async fn run_out_rollback_timer(State(shared): State<Shared>) -> StatusCode {
    if shared.device().run_out_rollback_timer() { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND }
}

async fn expire_sessions(State(shared): State<Shared>) -> StatusCode {
    shared.device().end_sessions();
    StatusCode::NO_CONTENT
}

/// Names of ubus objects of packages that are not installed.
async fn missing(State(shared): State<Shared>, Json(names): Json<BTreeSet<String>>) -> StatusCode {
    shared.device().missing = names;
    StatusCode::NO_CONTENT
}

async fn leave(State(shared): State<Shared>, Path(mac): Path<String>) -> StatusCode {
    shared.device().away.insert(mac.to_ascii_lowercase());
    StatusCode::NO_CONTENT
}

async fn come_back(State(shared): State<Shared>, Path(mac): Path<String>) -> StatusCode {
    shared.device().away.remove(&mac.to_ascii_lowercase());
    StatusCode::NO_CONTENT
}

async fn skipped(State(shared): State<Shared>) -> Json<Vec<String>> {
    Json(crate::fw4::skipped(shared.device().config("firewall")))
}

async fn edit(
    State(shared): State<Shared>,
    Json(edit): Json<Edit>,
) -> Result<StatusCode, (StatusCode, String)> {
    let changes: Option<Vec<Change>> = edit.changes.iter().map(Change::from_json).collect();
    let malformed = "a change is an array such as [\"set\", \"lan\", \"mtu\", \"1400\"]";
    let changes = changes.ok_or((StatusCode::UNPROCESSABLE_ENTITY, malformed.to_owned()))?;
    if shared.device().edit(&edit.config, &changes) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err((StatusCode::NOT_FOUND, format!("configuration '{}' does not exist", edit.config)))
    }
}
