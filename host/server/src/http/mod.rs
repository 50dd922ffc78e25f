//! The edge: what every request meets before a handler and every response after it.

pub mod access;
mod body;
pub mod client;
pub mod conditional;
mod cors;
pub mod creation;
pub mod error;
pub mod extract;
mod headers;
mod health;
mod metrics;
pub(crate) mod nulls;
pub mod openapi;
mod pages;
pub mod rate_limit;
pub mod routes;
mod words;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use heddle_core::Clock;
use tower::util::MapRequestLayer;
use tower::{Layer, ServiceExt as _};
use tracing::Instrument as _;

use crate::app::{App, SharedApp};
use client::Client;
use error::{Error, Failure};
use heddle_runtime::CallError;
use rate_limit::{Allowance, Demand};

/// Prefix of the versioned interface.
pub const PREFIX: &str = "/api/v1";

/// The id of a request, as clients and logs see it.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(pub(crate) String);

/// Everything that the service answers, ready to serve.
pub fn service(app: &SharedApp) -> Router {
    let table = routes(app);
    let document = Arc::new(openapi::document(&table));
    let table = table.merge(openapi::routes(app, &document));
    let meters = metrics::Meters::new(&table);
    let api = table.into_router(app).merge(crate::events::socket_routes());
    let router = Router::new()
        .nest(PREFIX, api)
        .merge(health::root_routes())
        .merge(metrics::router(&app.config))
        .merge(crate::oauth2::root_routes())
        .merge(pages::router(&app.config, &document))
        .merge(crate::auth::recovery::pages())
        .fallback(|| async { StatusCode::NOT_FOUND })
        .method_not_allowed_fallback(|| async { StatusCode::METHOD_NOT_ALLOWED })
        .layer(DefaultBodyLimit::max(extract::BODY_BYTES_MAX))
        .layer(tower_http::catch_panic::CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(app.clone(), draining))
        .layer(from_fn_with_state(app.clone(), gate));
    let router = match cors::layer(&app.config.cors_origins) {
        // It answers preflights itself, so they pass the gate before it; and a refusal of the gate is readable for a page.
        Some(cors) => router.layer(cors).layer(from_fn_with_state(app.clone(), gate_of_preflights)),
        None => router,
    };
    let router = router
        .layer(from_fn_with_state(app.clone(), edge))
        .layer(from_fn_with_state((app.clone(), meters), metrics::measure))
        .with_state(app.clone());
    // The trailing slash goes before the router looks at the path, so both spellings reach one handler.
    let service = MapRequestLayer::new(strip_trailing_slash).layer(router);
    Router::new().fallback_service(service.map_response(IntoResponse::into_response))
}

/// The table of all routes below the prefix.
pub fn routes(app: &SharedApp) -> routes::Routes {
    health::routes()
        .merge(crate::setup::routes())
        .merge(crate::auth::routes())
        .merge(crate::sso::routes())
        .merge(crate::oauth2::routes())
        .merge(crate::tenancy::routes())
        .merge(crate::adapters::routes())
        .merge(crate::devices::routes())
        .merge(crate::staging::routes(app))
        .merge(crate::events::routes())
        .merge(crate::fabric::routes())
        .merge(crate::notifications::routes())
        .merge(crate::automation::routes())
        .merge(crate::audit::routes())
        .merge(crate::logs::routes())
        .merge(crate::webhooks::routes())
        .merge(crate::access_control::routes())
}

fn strip_trailing_slash(mut request: Request) -> Request {
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

/// While the service stops, only questions after its health are answered; the drain waits for the others that came before.
async fn draining(State(app): State<SharedApp>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if path.strip_prefix(PREFIX).unwrap_or(path).starts_with("/health") {
        return next.run(request).await;
    }
    let _held = app.tasks.hold();
    if app.tasks.stopping().is_cancelled() {
        return Error::Unavailable("service is stopping; try again".to_owned()).into_response();
    }
    next.run(request).await
}

/// Gives the request its id, client and span, and the response its error body and headers.
async fn edge(State(app): State<SharedApp>, request: Request, next: Next) -> Response {
    let started = Instant::now();
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
    let mut request = body::read_to_its_end(request, &app.tasks, body_limit);
    request.extensions_mut().insert(RequestId(id.clone()));
    request.extensions_mut().insert(client);
    let response = next.run(request).instrument(span.clone()).await;
    let _entered = span.enter();
    finish(response, &id, &client, started)
}

/// Refuses what is too much or too large, before anything looks at what it is.
async fn gate(
    State(app): State<SharedApp>,
    Extension(client): Extension<Client>,
    request: Request,
    next: Next,
) -> Response {
    let demand = Demand::of(&app, &client, &request);
    let length = body::check_length(request.headers());
    match admit(&app, demand, length).await {
        Ok(allowance) => {
            let mut response = next.run(request).await;
            if let Some(allowance) = allowance {
                allowance.tell(&mut response);
            }
            response
        }
        Err(error) => error.into_response(),
    }
}

async fn gate_of_preflights(
    app: State<SharedApp>,
    client: Extension<Client>,
    request: Request,
    next: Next,
) -> Response {
    if request.method() == Method::OPTIONS {
        gate(app, client, request, next).await
    } else {
        next.run(request).await
    }
}

/// Too many before too large, so that what is too large counts, too.
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

fn finish(response: Response, id: &str, client: &Client, started: Instant) -> Response {
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
    let elapsed_ms = started.elapsed().as_secs_f64() * 1000.0;
    let headers = response.headers_mut();
    headers::add_security(headers, client);
    if let Ok(value) = HeaderValue::from_str(id) {
        headers.insert("x-request-id", value);
    }
    if let Ok(value) = HeaderValue::from_str(&format!("{elapsed_ms:.3}")) {
        headers.insert("x-response-time", value);
    }
    tracing::debug!(http.status = response.status().as_u16(), duration_ms = elapsed_ms, "answered");
    response
}

/// The rendered error, with what the layers below have said in headers: `Allow`, what origins may read, cookies.
fn with_body_of(response: Response, rendered: Response) -> Response {
    let mut headers = response.into_parts().0.headers;
    headers.remove(header::CONTENT_LENGTH);
    let (mut parts, body) = rendered.into_parts();
    headers.extend(std::mem::take(&mut parts.headers));
    parts.headers = headers;
    Response::from_parts(parts, body)
}

fn log(error: &Error) {
    if let Error::Adapter(CallError::Host(cause)) = error {
        tracing::error!(error = %cause, "adapter call failed in the host");
    }
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

fn panicked(payload: Box<dyn std::any::Any + Send>) -> Response {
    let text = payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_default();
    tracing::error!(panic = %text, "handler panicked");
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}

/// The client's id when it is well formed, and how the log marks it; else a new one.
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
