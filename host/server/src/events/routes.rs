//! The event stream's upgrade, its count, and the catalogue.

use axum::extract::{State, WebSocketUpgrade};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use heddle_core::event::EventType;
use heddle_core::secret::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::connection;
use crate::app::{App, SharedApp};
use crate::auth::cookies;
use crate::http::access::Access;
use crate::http::extract::Params;
use crate::http::routes::{Routes, doc};

/// Largest frame, and largest message of several frames, that a client may send; in bytes.
const FRAME_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SocketQuery {
    token: Option<Secret>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Stats {
    active_connections: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Declared {
    event_type: &'static str,
    category: &'static str,
    payload_schema: Value,
}

/// Outside the access table: a connection authenticates after its upgrade.
pub(crate) fn socket_routes() -> Router<SharedApp> {
    Router::new().route("/ws", get(upgrade))
}

pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/ws/stats", Access::Authenticated, stats, doc("Open connections").answers::<Stats>(200))
        .get(
            "/events/types",
            Access::Authenticated,
            types,
            doc("Declared event types").answers::<Vec<Declared>>(200),
        )
}

async fn upgrade(
    State(app): State<SharedApp>,
    Params(query): Params<SocketQuery>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let is_allowed = origin_is_allowed(&app, &headers);
    // A browser sends it without being asked; the origin was looked at for that.
    let token = query.token.or_else(|| cookies::access_token(&headers).map(Secret::new));
    upgrade
        .max_message_size(FRAME_BYTES_MAX)
        .max_frame_size(FRAME_BYTES_MAX)
        .on_upgrade(move |socket| connection::serve(app, socket, token, is_allowed))
}

/// A browser names its origin; it must be ours or a configured one. Scripts send none.
fn origin_is_allowed(app: &App, headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &axum::http::HeaderValue| value.to_str().ok());
    let Some(origin) = text(header::ORIGIN) else { return true };
    let is_own = text(header::HOST).is_some_and(|host| {
        origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")) == Some(host)
    });
    is_own || app.config.cors_origins.iter().any(|allowed| allowed == origin)
}

async fn stats(State(app): State<SharedApp>) -> Json<Stats> {
    Json(Stats { active_connections: app.hub.connections() })
}

async fn types() -> Json<Vec<Declared>> {
    let declared = |t: &EventType| Declared {
        event_type: t.as_str(),
        category: t.category(),
        payload_schema: t.payload_schema(),
    };
    Json(EventType::ALL.iter().map(declared).collect())
}
