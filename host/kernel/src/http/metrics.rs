//! Counts requests, and serves the counters to Prometheus.
//!
//! A route's counters are found by its template, which the router knows, never by the requested path.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::future::join_all;
use prometheus::{Histogram, IntCounter, IntGauge};
use subtle::ConstantTimeEq as _;

use super::pages;
use super::prefix::PREFIX;
use crate::app::SharedApp;
use crate::config::{Config, Environment};
use crate::health;
use crate::http::error::Error;
use crate::http::routes::Routes;
use crate::metrics::{GaugeValues, Metrics};

pub(super) const PATH: &str = "/metrics";
/// The route of requests that matched none.
const OTHER: &str = "other";
/// Statuses that have their own place in a route's counters.
const STATUSES: &[u16] = &[
    101, 200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 409, 412, 413, 422, 423, 429, 500, 502, 503, 504,
];

/// Counters of one method on one route, looked up once.
#[derive(Debug, Default)]
struct Meter {
    duration: OnceLock<Histogram>,
    by_status: [OnceLock<IntCounter>; STATUSES.len()],
}

impl Meter {
    fn record(&self, metrics: &Metrics, method: &str, route: &str, status: StatusCode, seconds: f64) {
        let duration = || metrics.request_duration.with_label_values(&[method, route]);
        self.duration.get_or_init(duration).observe(seconds);
        let counter = || metrics.requests.with_label_values(&[method, route, status.as_str()]);
        match STATUSES.iter().position(|known| *known == status.as_u16()) {
            Some(at) => self.by_status[at].get_or_init(counter).inc(),
            None => counter().inc(),
        }
    }
}

/// Meters of all routes, by template; requests for other paths are counted as `other`.
#[derive(Debug)]
pub(super) struct Meters {
    by_route: HashMap<String, [Meter; METHODS.len()]>,
    other: [Meter; METHODS.len()],
}

/// Any other method is invented by a client and is counted as the last one.
const METHODS: [&str; 8] = ["GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS", OTHER];

impl Meters {
    /// `beside` are templates of features that are not in the table.
    pub(super) fn new<'t>(table: &Routes, beside: impl Iterator<Item = &'t &'static str>) -> Self {
        let of_table = table.iter().map(|route| format!("{PREFIX}{}", route.path));
        let beside = pages::PATHS.iter().chain([&PATH]).chain(beside).map(|path| (*path).to_owned());
        let by_route = of_table.chain(beside).map(|path| (path, Default::default())).collect();
        Self { by_route, other: Default::default() }
    }

    fn record(
        &self,
        metrics: &Metrics,
        method: &Method,
        route: Option<&str>,
        status: StatusCode,
        seconds: f64,
    ) {
        let at = METHODS.iter().position(|known| *known == method.as_str()).unwrap_or(METHODS.len() - 1);
        let known = route.and_then(|route| self.by_route.get_key_value(route));
        let (route, meters) = known.map_or((OTHER, &self.other), |(route, meters)| (route.as_str(), meters));
        meters[at].record(metrics, METHODS[at], route, status, seconds);
    }
}

/// Counts one request in flight while this lives, also when the client goes away.
struct InFlight(IntGauge);

impl InFlight {
    fn new(gauge: &IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Measures one request, from its arrival to the status of its response.
pub(super) struct Measured {
    method: Method,
    route: Option<MatchedPath>,
    began: Instant,
    _in_flight: InFlight,
}

impl Measured {
    pub(super) fn begin(metrics: &Metrics, request: &Request) -> Self {
        Self {
            method: request.method().clone(),
            route: request.extensions().get::<MatchedPath>().cloned(),
            began: Instant::now(),
            _in_flight: InFlight::new(&metrics.requests_in_flight),
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn end(self, metrics: &Metrics, meters: &Meters, status: StatusCode) {
        let route = self.route.as_ref().map(MatchedPath::as_str);
        meters.record(metrics, &self.method, route, status, self.began.elapsed().as_secs_f64());
    }
}

/// Returns the route of the exposition; where it is not served, its path is unknown.
pub(super) fn router(config: &Config) -> Router<SharedApp> {
    let is_open = config.environment == Environment::Production && config.metrics_auth_token.is_none();
    if !config.enable_metrics || is_open {
        return Router::new();
    }
    Router::new().route(PATH, get(expose))
}

async fn expose(State(app): State<SharedApp>, headers: HeaderMap) -> Result<Response, Error> {
    admit(&app.config, &headers)?;
    let report = health::report(&app).await;
    join_all(app.features().iter().map(|feature| feature.measure(&app))).await;
    let mut pools = vec![("main", app.db.pool_use())];
    pools.extend(app.logs.db().map(|logs| ("logs", logs.pool_use())));
    let values = GaugeValues {
        subsystems: &report.subsystems(),
        pools: &pools,
        last_look_age_secs: report.last_look_age_secs,
        websocket_connections: app.hub.connections(),
    };
    let text = app.metrics.text(&values)?;
    Ok(([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response())
}

/// Admits callers that present the token; without a configured token, everyone.
fn admit(config: &Config, headers: &HeaderMap) -> Result<(), Error> {
    let Some(token) = &config.metrics_auth_token else { return Ok(()) };
    let given = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
    let given = match given.split_at_checked(7) {
        Some((scheme, given)) if scheme.eq_ignore_ascii_case(b"bearer ") => given,
        _ => return Err(Error::Unauthenticated("send 'Authorization: Bearer' and METRICS_AUTH_TOKEN")),
    };
    if bool::from(given.ct_eq(token.expose().as_bytes())) {
        Ok(())
    } else {
        Err(Error::Unauthenticated("token is not the METRICS_AUTH_TOKEN of this service"))
    }
}
