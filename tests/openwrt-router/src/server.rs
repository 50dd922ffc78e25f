//! The port of the router: connections, and what faults make of them.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsAcceptor;

use crate::device::Device;
use crate::dispatch::{self, Answer, BODY_BYTES_MAX};
use crate::fault::Gate;

/// How often a hung request looks whether the fault is over.
const HANG_POLL: Duration = Duration::from_millis(20);

/// The router's state behind its one lock. The lock is never held across an await.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<Device>>);

impl Shared {
    pub(crate) fn new(device: Device) -> Self {
        Self(Arc::new(Mutex::new(device)))
    }

    /// The state, brought up to now.
    pub(crate) fn device(&self) -> MutexGuard<'_, Device> {
        let mut device = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        device.advance(Instant::now());
        device
    }
}

/// The connection closes without an answer.
#[derive(Debug)]
struct Unanswered;

impl std::fmt::Display for Unanswered {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("the router does not answer")
    }
}

impl std::error::Error for Unanswered {}

/// Accepts until the task is aborted, which ends all of its connections.
pub(crate) async fn serve(listener: TcpListener, shared: Shared, tls: Option<TlsAcceptor>) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            sleep(HANG_POLL).await;
            continue;
        };
        if shared.device().gate() == Gate::Down {
            continue;
        }
        let (shared, tls) = (shared.clone(), tls.clone());
        connections.spawn(async move {
            match tls {
                None => connection(stream, shared).await,
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        connection(stream, shared).await;
                    }
                }
            }
        });
    }
}

async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin, shared: Shared) {
    let service = service_fn(move |request| respond(shared.clone(), request));
    // An error is a peer that left, or an answer withheld on purpose: both end here.
    let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn respond(shared: Shared, request: Request<Incoming>) -> Result<Response<Body>, Unanswered> {
    let (head, body) = request.into_parts();
    let status = match (head.uri.path(), head.method) {
        ("/ubus", Method::POST) => None,
        ("/ubus", Method::PUT) => Some(StatusCode::BAD_REQUEST),
        _ => Some(StatusCode::NOT_FOUND),
    };
    // A body over the limit is read to its end, so that the refusal reaches the client.
    let body = to_bytes(Body::new(body), 64 * BODY_BYTES_MAX).await.map_err(|_| Unanswered)?;
    pass(&shared).await?;
    if let Some(status) = status {
        return Ok(page(status, "text/plain", status.canonical_reason().unwrap_or_default()));
    }
    let (response, delay) = execute(&shared, &body)?;
    if !delay.is_zero() {
        sleep(delay).await;
        pass(&shared).await?;
    }
    Ok(response)
}

/// Waits out a hang, and fails when the router does not answer.
async fn pass(shared: &Shared) -> Result<(), Unanswered> {
    let mut was_hung = false;
    loop {
        let gate = shared.device().gate();
        match gate {
            Gate::Open if !was_hung => return Ok(()),
            Gate::Open | Gate::Down => return Err(Unanswered),
            Gate::Hung => was_hung = true,
        }
        sleep(HANG_POLL).await;
    }
}

/// Runs the calls of one request under the lock: all of them in order, none of another request in between.
fn execute(shared: &Shared, body: &Bytes) -> Result<(Response<Body>, Duration), Unanswered> {
    let mut device = shared.device();
    let delay = device.faults.delay;
    if device.faults.take_html() {
        let html = "<!DOCTYPE html><html><body><h1>Sign in to continue</h1></body></html>";
        return Ok((page(StatusCode::OK, "text/html", html), delay));
    }
    let (json, is_last) = match dispatch::answer(&mut device, body) {
        Answer::Json(json) => (json.to_string(), false),
        Answer::LastJson(json) => (json.to_string(), true),
        Answer::Lost => return Err(Unanswered),
    };
    let text = if device.faults.take_truncate() {
        json.chars().take(json.chars().count() / 2).collect()
    } else {
        json
    };
    let mut response = page(StatusCode::OK, "application/json", &text);
    if is_last {
        response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    }
    Ok((response, delay))
}

fn page(status: StatusCode, content_type: &'static str, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(text.to_owned()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}
