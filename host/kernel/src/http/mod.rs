//! The edge: the layers that every request passes before a handler, and every response after it.

pub mod access;
mod body;
pub mod client;
pub mod conditional;
mod cors;
pub mod creation;
pub mod error;
pub mod extract;
pub mod glossary;
mod headers;
pub mod health;
pub mod incoming;
pub mod list_query;
mod metrics;
pub mod nulls;
pub mod openapi;
mod pages;
mod prefix;
pub mod rate_limit;
mod request_id;
pub mod routes;
mod words;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use client::Client;
use error::{Error, Failure};
use futures::FutureExt as _;
use heddle_core::Clock;
use rate_limit::{Allowance, Classes, Demand};
use request_id::RequestId;
use tower::ServiceBuilder;
use tracing::Instrument as _;

pub use self::prefix::PREFIX;
use crate::app::{App, SharedApp};
use crate::feature::{Feature, Pages};

/// Room for the headers that every answer gets.
const HEADERS_ADDED: usize = 12;

/// State of the layers.
struct Edge {
    app: SharedApp,
    meters: metrics::Meters,
    classes: Classes,
    sizes: body::Sizes,
    /// Preflights are answered before the gate that others pass.
    answers_preflights: bool,
}

/// Builds all routes behind their layers. A trailing slash of the path must be gone.
pub(crate) fn router(app: &SharedApp) -> Router {
    let table = routes(app);
    let document = openapi::Written::of(&table, &app.declared(), &app.config);
    let table = table.merge(openapi::routes(document.as_ref()));
    let pages: Vec<Pages> = app.features().iter().map(Feature::pages).collect();
    let meters = metrics::Meters::new(&table, pages.iter().flat_map(|pages| pages.counted));
    let cors = cors::layer(&app.config.cors_origins);
    let classes = Classes::of(&table, &pages);
    let sizes = body::Sizes::of(&table);
    let state =
        Arc::new(Edge { app: app.clone(), meters, classes, sizes, answers_preflights: cors.is_some() });
    // One stack: each layer that the router gets by itself costs every request two allocations more.
    let layers = ServiceBuilder::new()
        .layer(from_fn_with_state(state.clone(), edge))
        // Outside of the gate, so that a page can read its refusals.
        .option_layer(cors)
        .layer(from_fn_with_state(state, gate))
        .layer(DefaultBodyLimit::max(body::BODY_BYTES_MAX));
    let beside = pages.into_iter().map(|pages| pages.router);
    beside
        .fold(table.into_router(app), Router::merge)
        .merge(metrics::router(&app.config))
        .merge(pages::router(document.as_ref()))
        .fallback(|| async { StatusCode::NOT_FOUND })
        .method_not_allowed_fallback(|| async { StatusCode::METHOD_NOT_ALLOWED })
        .layer(layers)
        .with_state(app.clone())
}

/// The table of all routes below the prefix.
pub fn routes(app: &SharedApp) -> routes::Routes {
    app.features().iter().fold(routes::Routes::default(), |table, feature| {
        table.merge(feature.routes(app)).speaking(feature.glossary())
    })
}

/// Removes the trailing slash before the router looks at the path, so that both spellings reach one handler.
pub(crate) fn without_trailing_slash(mut request: Request) -> Request {
    let path = request.uri().path();
    if path.len() > 1 && path.ends_with('/') {
        let trimmed = path.trim_end_matches('/');
        let path_and_query = match request.uri().query() {
            Some(query) => format!("{trimmed}?{query}"),
            None => trimmed.to_owned(),
        };
        let mut parts = request.uri().clone().into_parts();
        if let Ok(value) = path_and_query.parse() {
            parts.path_and_query = Some(value);
            if let Ok(uri) = Uri::from_parts(parts) {
                *request.uri_mut() = uri;
            }
        }
    }
    request
}

/// Measures a request and gives it its id, client and span. Gives the response its error body and headers. Preflights
/// pass the limit here: they are answered before the gate.
async fn edge(State(edge): State<Arc<Edge>>, request: Request, next: Next) -> Response {
    let app = &edge.app;
    let measured = metrics::Measured::begin(&app.metrics, &request);
    let (id, logged) = request_id(&request, &app.clock);
    let client = Client::of(&request, &app.config.trusted_proxies);
    let span = tracing::info_span!(
        "request",
        http.method = %request.method(),
        http.path = %request.uri().path(),
        http.route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str),
        client.ip = %client.ip,
        request.id = %logged,
        user.id = tracing::field::Empty,
    );
    let body_limit = Duration::from_secs(app.config.http_body_timeout_secs.into());
    let pace = edge.sizes.pace(&request);
    let mut request = body::read_to_its_end(request, &app.tasks, body_limit, pace);
    request.extensions_mut().insert(RequestId(id.clone()));
    request.extensions_mut().insert(client);
    let answered = async {
        if edge.answers_preflights && request.method() == Method::OPTIONS {
            let answer = async |request| next.run(request).await;
            admitted(&edge, &client, request, answer).await
        } else {
            next.run(request).await
        }
    };
    let response = answered.instrument(span.clone()).await;
    let _entered = span.enter();
    let response = finish(response, &id, &client, measured.elapsed());
    measured.end(&app.metrics, &edge.meters, response.status());
    response
}

/// Refuses requests over the limit, bodies that are too large, and requests that come while the service stops. Nothing
/// is parsed before.
async fn gate(
    State(edge): State<Arc<Edge>>,
    Extension(client): Extension<Client>,
    request: Request,
    next: Next,
) -> Response {
    admitted(&edge, &client, request, async |request| unless_stopping(&edge.app, request, next).await).await
}

/// Answers a request and adds what is left of its limit, or refuses it.
async fn admitted(
    edge: &Edge,
    client: &Client,
    request: Request,
    answer: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let app = &edge.app;
    let demand = Demand::of(app, &edge.classes, client, &request);
    let length = body::check_length(request.headers(), edge.sizes.max(&request));
    match admit(app, demand, length).await {
        Ok(allowance) => {
            let mut response = answer(request).await;
            if let Some(allowance) = allowance {
                allowance.tell(&mut response);
            }
            response
        }
        Err(error) => error.into_response(),
    }
}

/// While the service stops, only health probes are answered. The drain waits for requests that came before.
async fn unless_stopping(app: &App, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_probe = path.strip_prefix(PREFIX).unwrap_or(path).starts_with("/health");
    let _held = (!is_probe).then(|| app.tasks.hold());
    if !is_probe && app.tasks.stopping().is_cancelled() {
        return Error::Unavailable("service is stopping; try again".to_owned()).into_response();
    }
    // A handler that panics fails its own request only.
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    answered.unwrap_or_else(|payload| panicked(payload.as_ref()))
}

/// Checks the rate before the size, so that a request that is too large counts, too.
async fn admit(
    app: &App,
    demand: Option<Demand>,
    length: Result<(), Error>,
) -> Result<Option<Allowance>, Error> {
    let allowance = match demand {
        Some(demand) => demand.count(app).await?,
        None => None,
    };
    length.map(|()| allowance)
}

fn finish(response: Response, id: &str, client: &Client, elapsed: Duration) -> Response {
    let failure = response.extensions().get::<Failure>().cloned();
    let status = response.status();
    let is_plain_error = (status.is_client_error() || status.is_server_error())
        && !response.headers().contains_key("content-type");
    let is_rejection = status.is_client_error()
        && response.headers().get("content-type").is_some_and(|v| v.as_bytes().starts_with(b"text/plain"));
    let mut response = match failure {
        Some(Failure(failure)) => {
            log(&failure);
            with_body_of(response, error::render(&failure, id))
        }
        None if is_plain_error || is_rejection => with_body_of(response, error::render_plain(status, id)),
        None => response,
    };
    let elapsed_ms = milliseconds(elapsed);
    let headers = response.headers_mut();
    headers.reserve(HEADERS_ADDED);
    headers::add_security(headers, client);
    if let Ok(value) = HeaderValue::from_str(id) {
        headers.insert("x-request-id", value);
    }
    if let Ok(value) = HeaderValue::from_str(&elapsed_ms) {
        headers.insert("x-response-time", value);
    }
    tracing::debug!(
        http.status = response.status().as_u16(),
        duration_ms = elapsed.as_secs_f64() * 1000.0,
        "answered"
    );
    response
}

/// Milliseconds with three decimals.
fn milliseconds(elapsed: Duration) -> String {
    let micros = elapsed.as_micros();
    format!("{}.{:03}", micros / 1000, micros % 1000)
}

/// Returns the rendered error with the headers that the inner layers have set: `Allow`, CORS headers, cookies.
fn with_body_of(response: Response, rendered: Response) -> Response {
    let mut headers = response.into_parts().0.headers;
    headers.remove(header::CONTENT_LENGTH);
    let (mut parts, body) = rendered.into_parts();
    headers.extend(std::mem::take(&mut parts.headers));
    parts.headers = headers;
    Response::from_parts(parts, body)
}

fn log(error: &Error) {
    if let Error::Internal(source) = error {
        let mut causes = vec![source.to_string()];
        let mut next = source.source();
        while let Some(cause) = next {
            causes.push(cause.to_string());
            next = cause.source();
        }
        tracing::error!(error = %causes.join(": "), "request failed");
    }
}

fn panicked(payload: &(dyn std::any::Any + Send)) -> Response {
    tracing::error!(panic = crate::task::text_of(payload), "handler panicked");
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}

/// Returns the client's id when it is well formed, else a new one, and the form that the log shows.
fn request_id(request: &Request, clock: &Clock) -> (String, String) {
    let given = request.headers().get("x-request-id").and_then(|v| v.to_str().ok()).filter(|text| {
        (1..=128).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    });
    if let Some(text) = given {
        (text.to_owned(), format!("ext-{text}"))
    } else {
        let id = clock.new_id::<uuid::Uuid>().simple().to_string();
        (id.clone(), id)
    }
}
