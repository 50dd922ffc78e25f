//! Channels against controllers of the test: how they are opened, and why they are not.

mod sockets;
mod streams;

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use futures::{Stream, StreamExt as _, stream};
use heddle_marketplace::push::Channel;
use serde_json::{Value, json};

use super::limits::MESSAGE_BYTES_MAX;
use super::*;
use crate::egress::tests::{Bench, PASSWORD, bench, manifest};

/// A controller that opens sessions, and accepts those from a number on.
#[derive(Default)]
struct Device {
    logins: AtomicUsize,
    /// The first login whose session it accepts.
    accepts_from: AtomicUsize,
    /// Requests for a channel that came.
    asked: AtomicUsize,
}

impl Device {
    fn accepts(&self, headers: &HeaderMap) -> bool {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let token = headers.get("x-token").map_or("", |value| value.to_str().unwrap());
        let number: Option<usize> = token.strip_prefix("sid-").and_then(|number| number.parse().ok());
        number.is_some_and(|number| number >= self.accepts_from.load(Ordering::SeqCst))
    }
}

struct Lab {
    bench: Bench,
    device: Arc<Device>,
    facts: Arc<Facts>,
    cut: CancellationToken,
}

const RULES: &str = r#"[
    { "when": { "/kind": ["device:*"] }, "reads": ["device"], "again-s": 5 },
    { "when": { "/event": ["up"] }, "reads": ["client"] },
    { "when": { "/id": ["*"] }, "reads": ["guest"] }
]"#;

/// A controller with these routes, and a package with this channel.
async fn lab(channel: Value, routes: Router<Arc<Device>>) -> Lab {
    let device = Arc::new(Device::default());
    let login = |State(device): State<Arc<Device>>| async move {
        let number = device.logins.fetch_add(1, Ordering::SeqCst) + 1;
        axum::Json(json!({"ok": true, "sid": format!("sid-{number}"), "device": "d"}))
    };
    let bench = bench(routes.route("/login", post(login)).with_state(Arc::clone(&device))).await;
    let mut channel = channel;
    channel["rules"] = serde_json::from_str(RULES).unwrap();
    if channel.get("ways").is_none() {
        channel["ways"] = json!([{ "session": "main", "path": "/events" }]);
    }
    let mut manifest = manifest();
    let channel: Channel = serde_json::from_value(channel).unwrap();
    manifest.push.insert("events".to_owned(), channel);
    let facts = Arc::new(Facts::new(manifest, "0".repeat(64), crate::description::Bindings::default()));
    Lab { bench, device, facts, cut: CancellationToken::new() }
}

impl Lab {
    async fn listen(&self, place: Place) -> Result<Listening, Ended> {
        let (of, threads) = ((&self.bench.egress, &self.facts), Handle::current());
        listen(of, &self.bench.target, ("events", place), (&threads, &self.cut)).await
    }

    async fn open(&self) -> Listening {
        self.listen(Place::Controller).await.unwrap()
    }

    async fn refused(&self) -> Ended {
        let ended = self.listen(Place::Controller).await.unwrap_err();
        let text = ended.to_string();
        assert!(!text.contains(PASSWORD) && !text.contains("sid-") && !text.contains("peer"), "{text}");
        ended
    }

    fn logins(&self) -> usize {
        self.device.logins.load(Ordering::SeqCst)
    }
}

fn socket() -> Value {
    json!({ "socket": { "ping-s": 1, "silence-s": 60 } })
}

fn sse() -> Value {
    json!({ "stream": { "format": "sse" } })
}

/// A WebSocket that is served like this to those who have a good session.
fn served<F, R>(serve: F) -> Router<Arc<Device>>
where
    F: Fn(WebSocket) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let events = move |State(device): State<Arc<Device>>, headers: HeaderMap, upgrade: WebSocketUpgrade| async move {
        if !device.accepts(&headers) {
            return StatusCode::UNAUTHORIZED.into_response();
        }
        upgrade.on_upgrade(serve)
    };
    Router::new().route("/events", get(events))
}

fn answered(answer: impl Fn() -> Response + Clone + Send + Sync + 'static) -> Router<Arc<Device>> {
    Router::new().route("/events", get(move || async move { answer() }))
}

fn streamed(kind: &'static str, texts: impl Stream<Item = String> + Send + 'static) -> Response {
    let body = Body::from_stream(texts.map(Ok::<_, Infallible>));
    ([("content-type", kind)], body).into_response()
}

/// Sends these texts, and never ends.
fn and_open(texts: &[&str]) -> impl Stream<Item = String> + Send + 'static {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    stream::iter(texts).chain(stream::pending())
}

#[tokio::test]
async fn a_session_that_is_gone_is_opened_anew_once() {
    let routes = || {
        served(|mut socket| async move {
            socket.send(Message::text("{\"id\": \"1\"}")).await.unwrap();
            std::future::pending::<()>().await;
        })
    };
    let renewed = lab(socket(), routes()).await;
    renewed.device.accepts_from.store(2, Ordering::SeqCst);
    let mut listening = renewed.open().await;
    assert!(listening.next().await.is_ok());
    assert_eq!(renewed.logins(), 2);
    let refused = lab(socket(), routes()).await;
    refused.device.accepts_from.store(usize::MAX, Ordering::SeqCst);
    let ended = refused.refused().await;
    assert!(matches!(ended, Ended::Refused(_)) && ended.retry() == Retry::Late, "{ended:?}");
    assert_eq!((refused.logins(), refused.device.asked.load(Ordering::SeqCst)), (2, 2));
}

#[tokio::test]
async fn an_answer_that_opens_nothing_says_why_in_own_words() {
    let channel = |unsupported: Value| {
        let mut channel = socket();
        channel["unsupported"] = unsupported;
        channel
    };
    let text = |status: u16, text: &'static str| {
        answered(move || (StatusCode::from_u16(status).unwrap(), text).into_response())
    };
    let check = |channel: Value, routes: Router<Arc<Device>>| async move {
        lab(channel, routes).await.refused().await
    };
    let found = check(channel(json!({ "status": [404] })), text(404, "peer")).await;
    assert_eq!((&found, found.retry()), (&Ended::Unsupported { status: 404 }, Retry::Changed));
    let body = channel(json!({ "json": { "/code": [4] } }));
    let coded = check(body.clone(), text(200, "{\"code\": 4, \"peer\": 1}")).await;
    assert_eq!(coded, Ended::Unsupported { status: 200 });
    assert_eq!(check(body, text(200, "{\"code\": 5}")).await, Ended::NotThat);
    assert!(matches!(check(socket(), text(403, "peer")).await, Ended::Refused(_)));
    assert_eq!(check(socket(), text(503, "peer")).await, Ended::Unexpected { status: 503 });
    let away = answered(|| (StatusCode::FOUND, [("location", "/other")]).into_response());
    let away = check(socket(), away).await;
    assert_eq!(away, Ended::Unexpected { status: 302 });
    assert!(away.to_string().contains("a redirect, which is not followed"), "{away}");
    let endless = answered(|| streamed("text/plain", stream::repeat("peer".repeat(1_000))));
    assert_eq!(check(sse(), endless).await, Ended::NotThat);
    let page = answered(|| streamed("text/html", stream::iter(["peer".to_owned()])));
    assert_eq!(check(sse(), page).await, Ended::NotThat);
}

#[tokio::test]
async fn a_channel_passes_the_guard_and_ends_with_its_adapter() {
    let mut lab = lab(sse(), answered(|| streamed("text/event-stream", and_open(&[])))).await;
    let mut listening = lab.open().await;
    lab.cut.cancel();
    assert_eq!(listening.next().await, Err(Ended::OutOfService));
    assert_eq!(lab.listen(Place::Controller).await.unwrap_err(), Ended::OutOfService);
    lab.cut = CancellationToken::new();
    let held: Vec<_> = (0..limits::CHANNELS_PER_CONTROLLER_MAX)
        .map(|_| {
            lab.bench.egress.channels.take(lab.bench.target.org_id, lab.bench.target.controller_id).unwrap()
        })
        .collect();
    let full = Ended::NoPlace { whose: Whose::Controller, most: limits::CHANNELS_PER_CONTROLLER_MAX };
    assert_eq!(lab.listen(Place::Controller).await.unwrap_err(), full);
    drop(held);
    let strict = crate::egress::address::Rules::new(Vec::new(), Vec::new());
    let vault = Arc::new(crate::egress::tests::TestVault);
    lab.bench.egress =
        Arc::new(Egress::new(vault, crate::egress::tests::apart(), lab.bench.clock.clone(), strict));
    let ended = lab.listen(Place::Controller).await.unwrap_err();
    assert!(matches!(ended, Ended::Denied(_)), "{ended:?}");
}

#[tokio::test]
async fn a_way_is_chosen_by_what_the_controller_has_and_carries_the_session_as_it_says() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let inner = Arc::clone(&seen);
    let any = move |uri: Uri, headers: HeaderMap| async move {
        let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        inner.lock().unwrap().push((uri.to_string(), header("authorization"), header("x-token")));
        streamed("text/event-stream", and_open(&[]))
    };
    let channel = json!({
        "stream": { "format": "sse" },
        "ways": [
            { "when": { "setting": "mode", "is": ["new"] }, "session": "main", "path": "/new" },
            {
                "when": { "secret": "team" }, "session": "main", "path": "/team",
                "apply": [{ "to": { "header": "authorization" }, "value": "Bearer {{session.sid}} {{secret.team}}" }]
            }
        ]
    });
    let mut lab = lab(channel, Router::new().fallback(any)).await;
    lab.open().await;
    lab.bench.target.settings = json!({"mode": "new"});
    lab.open().await;
    let team = format!("Bearer sid-1 {}", crate::egress::tests::TEAM);
    let expected =
        [("/team".to_owned(), Some(team), None), ("/new".to_owned(), None, Some("sid-1".to_owned()))];
    assert_eq!(*seen.lock().unwrap(), expected);
    let mut manifest = lab.facts.manifest.clone();
    manifest.push.get_mut("events").unwrap().ways[1].when.as_mut().unwrap().secret = Some("other".to_owned());
    lab.facts = Arc::new(Facts::new(manifest, "0".repeat(64), crate::description::Bindings::default()));
    lab.bench.target.settings = json!({});
    assert_eq!(lab.refused().await, Ended::NoWay);
}

/// What a controller says goes nowhere but into rules: no line of a channel is logged here.
#[test]
fn nothing_of_a_channel_is_logged() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/egress/push");
    for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let logs = ["tracing", "::"].concat();
        assert!(
            file.is_dir() || !std::fs::read_to_string(&file).unwrap().contains(&logs),
            "{}",
            file.display()
        );
    }
}
