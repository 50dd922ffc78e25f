//! The device: takes everything, keeps what it took, and answers some paths badly.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::stream;
use serde_json::{Value, json};

/// Where a redirect points: the metadata service of most clouds.
pub(crate) const METADATA: &str = "http://169.254.169.254/latest/meta-data/";

const EMPTY: HeaderValue = HeaderValue::from_static("");

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// With its query.
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

type Log = Arc<Mutex<Vec<Seen>>>;

pub(crate) struct Device {
    address: SocketAddr,
    log: Log,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Device {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Device {
    pub(crate) async fn start() -> Self {
        let log = Log::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&log));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("the listener has an address");
        #[expect(
            clippy::disallowed_methods,
            reason = "the device is the outside world, and ends with the test"
        )]
        let serving =
            tokio::spawn(async move { axum::serve(listener, router).await.expect("the device serves") });
        Self { address, log, serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Everything that arrived so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        lock(&self.log).clone()
    }

    /// The last authorisation that arrived.
    pub(crate) fn authorization(&self) -> String {
        let headers = self.seen().into_iter().flat_map(|seen| seen.headers);
        headers
            .filter(|(name, _)| name == "authorization")
            .map(|(_, value)| value)
            .next_back()
            .unwrap_or_default()
    }

    /// Bodies of the writes that arrived, in order.
    pub(crate) fn written(&self) -> Vec<Value> {
        let writes = self.seen().into_iter().filter(|seen| seen.path.starts_with("/write"));
        writes.map(|seen| serde_json::from_str(&seen.body).unwrap_or_default()).collect()
    }
}

fn lock(log: &Log) -> MutexGuard<'_, Vec<Seen>> {
    log.lock().expect("nobody panics with the log in hand")
}

async fn answer(State(log): State<Log>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 16 << 20).await.unwrap_or_default();
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    lock(&log).push(Seen {
        method: head.method.to_string(),
        path: head.uri.to_string(),
        headers: head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
        body: String::from_utf8_lossy(&body).into_owned(),
    });
    if head.headers.get("accept").is_some_and(|accept| accept == "x-slow") {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    match head.uri.path() {
        "/after-30-ms" => {
            tokio::time::sleep(Duration::from_millis(30)).await;
            json!({}).to_string().into_response()
        }
        "/echo" => echo(&text(head.headers.get("x-key").unwrap_or(&EMPTY))),
        "/last" => last(&log),
        "/login" => login(&body),
        "/login-body" => login_body(&log).into_response(),
        "/headers" => text(head.headers.get("authorization").unwrap_or(&EMPTY)).into_response(),
        "/bomb" => ([(header::CONTENT_ENCODING, "gzip")], gzip_bomb()).into_response(),
        "/endless" => {
            let chunk = Bytes::from(vec![b'a'; 64 << 10]);
            Body::from_stream(stream::repeat_with(move || Ok::<_, std::io::Error>(chunk.clone())))
                .into_response()
        }
        "/slow" => slow().into_response(),
        "/redirect" => (StatusCode::FOUND, [(header::LOCATION, METADATA)]).into_response(),
        _ => json!({ "ok": true }).to_string().into_response(),
    }
}

/// Repeats a secret in the ways that devices know.
fn echo(key: &str) -> Response {
    let percent: String = key.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let form: String = url::form_urlencoded::byte_serialize(key.as_bytes()).collect();
    let body = json!({ "raw": key, "base64": STANDARD.encode(key), "percent": percent, "form": form });
    let reflected = HeaderValue::from_bytes(key.as_bytes()).expect("it came in a header");
    ([(header::HeaderName::from_static("x-reflected"), reflected)], format!("{body}\nraw: {key}\n"))
        .into_response()
}

/// A login whose answer repeats the user name and the password in many ways.
fn login(body: &[u8]) -> Response {
    let sent: Value = serde_json::from_slice(body).unwrap_or_default();
    let field = |name: &str| sent[name].as_str().unwrap_or_default().to_owned();
    let (user, password) = (field("user"), field("password"));
    let percent: String = password.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let answer = json!({
        "token": "tok-17",
        "site": "site-1",
        "password": password,
        "percent": percent,
        "base64": STANDARD.encode(format!("{user}:{password}")),
        "user": format!("id-of-{user}"),
        "copy": "is-tok-17",
        "long": "a".repeat(300),
        "mark": "site\u{202e}1",
    });
    axum::Json(answer).into_response()
}

/// The last login as it arrived.
fn login_body(log: &Log) -> String {
    let log = lock(log);
    log.iter().rev().find(|seen| seen.path == "/login").map(|seen| seen.body.clone()).unwrap_or_default()
}

/// What a log page of a device shows: the key that came with an earlier request.
fn last(log: &Log) -> Response {
    let log = lock(log);
    let keys = log.iter().flat_map(|seen| &seen.headers).filter(|(name, _)| name == "x-key");
    keys.map(|(_, key)| key.as_str()).collect::<String>().into_response()
}

/// One byte every 50 ms, without end.
fn slow() -> Body {
    Body::from_stream(stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Some((Ok::<_, std::io::Error>(Bytes::from_static(b"a")), ()))
    }))
}

/// 64 MiB of zeros in 400 KiB: a literal, then "258 bytes from one byte ago" over and over.
fn gzip_bomb() -> Vec<u8> {
    let mut bits = Bits(vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255], 0);
    // The last block, in the fixed code; the literal 0 is 00110000.
    bits.push(&[1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0]);
    for _ in 0..(64 << 20) / 258 {
        // Length 258 is 11000101, distance 1 is 00000.
        bits.push(&[1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0]);
    }
    bits.push(&[0; 7]);
    bits.0
}

/// Bytes, and how many bits of the last one are used.
struct Bits(Vec<u8>, u8);

impl Bits {
    fn push(&mut self, bits: &[u8]) {
        for bit in bits {
            if self.1 == 0 {
                self.0.push(0);
            }
            *self.0.last_mut().expect("there is a byte with room") |= bit << self.1;
            self.1 = (self.1 + 1) % 8;
        }
    }
}
