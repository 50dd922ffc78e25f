//! The event stream's upgrade, its count, and the catalogue.

use axum::extract::{Extension, State, WebSocketUpgrade};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use heddle_core::event::{Event, EventType};
use heddle_core::page::CursorPage;
use heddle_core::secret::Secret;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_tungstenite::WebSocketStream;
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::{Role, WebSocketConfig};

use super::connection::{self, Opening};
use super::list::{ListQuery, get as get_one, list};
use super::meter::Metered;
use crate::app::{App, SharedApp};
use crate::caller::{api_key, cookies};
use crate::http::access::Access;
use crate::http::client::Client;
use crate::http::error::Error;
use crate::http::extract::Params;
use crate::http::routes::{Routes, doc};
use crate::task;

/// Largest frame, and largest message of several frames, that a client may send; in bytes.
const FRAME_BYTES_MAX: usize = 64 * 1024;
/// What a connection holds ready for frames that come; a larger frame makes it grow for a while.
const READ_BUFFER_BYTES: usize = 2 * 1024;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SocketQuery {
    token: Option<Secret>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Stats {
    /// Connections to this process that have authenticated.
    active_connections: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Declared")]
struct TypeView {
    event_type: &'static str,
    category: &'static str,
    #[schemars(with = "serde_json::Map<String, Value>")]
    payload_schema: Value,
}

/// Where connections are upgraded.
pub(super) const SOCKET_PATH: &str = "/api/v1/ws";

/// Outside the access table: a connection authenticates after its upgrade.
pub(super) fn socket_routes() -> Router<SharedApp> {
    Router::new().route(SOCKET_PATH, get(upgrade))
}

pub(super) fn routes() -> Routes {
    Routes::default()
        .get(
            "/ws/stats",
            Access::Member,
            stats,
            doc("Open connections").named("get_stream_statistics").answers::<Stats>(200),
        )
        .get(
            "/events",
            Access::Member,
            list,
            doc("Events, the newest first; with after_seq or until_seq in the order of their numbers")
                .query::<ListQuery>()
                .answers::<CursorPage<Event>>(200),
        )
        .get("/events/{event_id}", Access::Member, get_one, doc("One event").answers::<Event>(200).tagged())
        .get(
            "/events/types",
            Access::Member,
            types,
            doc("Declared event types").named("list_event_types").answers::<Vec<TypeView>>(200),
        )
}

async fn upgrade(
    State(app): State<SharedApp>,
    Params(query): Params<SocketQuery>,
    headers: HeaderMap,
    client: Option<Extension<Client>>,
    upgrading: Option<Extension<OnUpgrade>>,
    // Refuses a request that is not an upgrade. The service does the upgrade itself, so that it sees the bytes.
    _: WebSocketUpgrade,
) -> Result<Response, Error> {
    let is_https = client.is_some_and(|client| client.is_https);
    let opening = if !origin_is_allowed(&app, &headers, is_https) {
        Opening::ForeignOrigin
    } else if headers.contains_key(api_key::HEADER) {
        Opening::ApiKey
    } else {
        // A browser sends it by itself; the origin was checked for that.
        let cookie = || cookies::access_token(&headers).map(Secret::new).map(Opening::Cookie);
        query.token.map(Opening::Token).or_else(cookie).unwrap_or(Opening::Unproved)
    };
    let (Some(Extension(upgrading)), Some(key)) = (upgrading, headers.get(header::SEC_WEBSOCKET_KEY)) else {
        return Err(Error::internal("a connection that can be upgraded has an upgrade and a key"));
    };
    let accept = derive_accept_key(key.as_bytes());
    // A task of the service: a drain waits until the peer was notified.
    let ended = app.tasks.spawn("events.socket", serve(app.clone(), upgrading, opening));
    task::spawn_apart("events.socket_end", async {
        if ended.await.is_err() {
            tracing::error!("a connection to the event stream ended by a panic");
        }
    });
    let headers = [
        (header::UPGRADE, HeaderValue::from_static("websocket")),
        (header::CONNECTION, HeaderValue::from_static("upgrade")),
        (header::SEC_WEBSOCKET_ACCEPT, HeaderValue::from_str(&accept).map_err(Error::internal)?),
    ];
    Ok((StatusCode::SWITCHING_PROTOCOLS, headers).into_response())
}

async fn serve(app: SharedApp, upgrading: OnUpgrade, opening: Opening) {
    // A peer that went away before it was answered has no stream.
    let Ok(upgraded) = upgrading.await else { return };
    let config = WebSocketConfig::default()
        .max_message_size(Some(FRAME_BYTES_MAX))
        .max_frame_size(Some(FRAME_BYTES_MAX))
        .read_buffer_size(READ_BUFFER_BYTES);
    let wire = Metered::new(TokioIo::new(upgraded));
    let socket = WebSocketStream::from_raw_socket(wire, Role::Server, Some(config)).await;
    connection::serve(app, socket, opening).await;
}

/// Whether the origin that a browser names is the service's own or a configured one. Scripts send none.
///
/// Whether clients reach the service by TLS is only known where a proxy says so: else both schemes are its own.
fn origin_is_allowed(app: &App, headers: &HeaderMap, is_https: bool) -> bool {
    let text = |name| headers.get(name).and_then(|value: &axum::http::HeaderValue| value.to_str().ok());
    let Some(origin) = text(header::ORIGIN) else { return true };
    let is_own = text(header::HOST).is_some_and(|host| {
        let plain = || origin.strip_prefix("http://").filter(|_| !is_https);
        let named = origin.strip_prefix("https://").or_else(plain);
        named.is_some_and(|named| named.eq_ignore_ascii_case(host))
    });
    is_own || app.config.cors_origins.iter().any(|allowed| allowed == origin)
}

async fn stats(State(app): State<SharedApp>) -> Json<Stats> {
    Json(Stats { active_connections: app.hub.connections() })
}

async fn types(State(app): State<SharedApp>) -> Json<Vec<TypeView>> {
    let declared = |t: EventType| TypeView {
        event_type: t.as_str(),
        category: t.category(),
        payload_schema: t.payload_schema(),
    };
    Json(app.declared().events.iter().map(declared).collect())
}
