//! Staging as a program would do it that trusts its vendor code and its users.
//!
//! It plans with the same adapter, called natively on a thread that may wait:
//! the same calls to the same router, in one session that is open already. It
//! writes a row of the same values with the same statement, in one transaction,
//! and answers an object of the same size.
//!
//! What the service does in addition: authentication, and whether the caller may change this feature; the payload held
//! against its schema; the adapter in a fresh instance of the sandbox, behind admission; every request and answer
//! through the egress engine; in the transaction also the organization's settings, the audit entry with its hash chain,
//! the event, and the changes that conflict; secrets masked, an `ETag`; and the event published after the commit.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use heddle_adapter_openwrt::OpenWrt;
use heddle_core::Clock;
use heddle_kernel::app::App;
use heddle_sdk::{Adapter as _, Change};
use heddle_store::changes::{self, ChangeRow, NewChange, Planned};
use heddle_store::{Db, PoolSettings, Scope};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::super::POOL_SIZE;
use crate::plain_host::PlainHost;

#[derive(Clone)]
struct Stage {
    db: Db,
    clock: Clock,
    host: Arc<PlainHost>,
    /// What ours wrote and answered for the same request.
    row: Arc<ChangeRow>,
    answer: Arc<Value>,
}

/// Stages what ours has staged once, with this answer; until the process ends.
pub(in crate::requests) async fn serve(
    runtime: &Runtime,
    app: &App,
    host: PlainHost,
    answer: &str,
) -> SocketAddr {
    let answer: Value = serde_json::from_str(answer).expect("a change is JSON");
    let id = serde_json::from_value(answer["id"].clone()).expect("a change has an id");
    let mut tx = app.db.read().await.expect("the database can be read");
    let row = changes::find(&mut tx, &Scope::everything(), id).await.expect("changes can be read");
    let settings = PoolSettings { connections_max: POOL_SIZE, acquire_timeout: Duration::from_secs(30) };
    let state = Stage {
        db: Db::open(&app.config.database(), &settings).await.expect("the database opens"),
        clock: Clock::default(),
        host: Arc::new(host),
        row: Arc::new(row.expect("the change was staged")),
        answer: Arc::new(answer),
    };
    let path = "/api/v1/gateway-openwrt-firewall/{controller_id}/changes/{feature}";
    super::listen(runtime, Router::new().route(path, post(stage)).with_state(state)).await
}

async fn stage(State(state): State<Stage>, Json(body): Json<Value>) -> Response {
    let Stage { db, clock, host, row, answer } = state;
    let change = Change {
        feature: row.feature.clone(),
        operation: heddle_sdk::Operation::Create,
        site: None,
        payload: body["payload"].to_string(),
    };
    let plan = tokio::task::spawn_blocking(move || OpenWrt::plan(&*host, &[change])).await;
    let plan = plan.expect("planning ends").expect("the rule can be planned");
    assert_eq!(row.plan_token.as_ref(), Some(&plan.token), "both plan the same");
    let new = new_change(&row, plan.token, body["payload"].clone(), &clock);
    let mut tx = db.write().await.expect("the database takes writes");
    changes::insert(&mut tx, &new).await.expect("a change can be written");
    tx.commit().await.expect("a change can be kept");
    (StatusCode::CREATED, Json(&*answer)).into_response()
}

fn new_change(row: &ChangeRow, token: Vec<u8>, payload: Value, clock: &Clock) -> NewChange {
    NewChange {
        id: clock.new_id(),
        org_id: row.org_id,
        site_id: row.site_id,
        site_ref: None,
        controller_id: row.controller_id,
        vendor: row.vendor.clone(),
        area: row.area.clone(),
        feature: row.feature.clone(),
        operation: row.operation,
        payload,
        also: Vec::new(),
        notes: None,
        staged_by: row.staged_by,
        expires_at: row.expires_at,
        reverts: None,
        run: None,
        is_set: false,
        planned: Planned {
            expressed_as: None,
            plan: row.plan.clone(),
            error: None,
            token: Some(token),
            inverse: row.plan_inverse.clone(),
            secret: row.secret.clone(),
            danger: row.danger,
        },
        now: clock.now(),
    }
}
