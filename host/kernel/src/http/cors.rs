//! Which pages of other sites may read our answers: those of `CORS_ORIGINS`, and without them none.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::CorsLayer;

/// Methods that routes have; HEAD comes with GET.
const METHODS: [Method; 6] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// Headers that pages may send.
const ASKED: [HeaderName; 7] = [
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    header::IF_MATCH,
    HeaderName::from_static("x-csrf-token"),
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("idempotency-key"),
];

/// Headers that pages may read.
const ANSWERED: [HeaderName; 7] = [
    header::ETAG,
    header::LOCATION,
    header::RETRY_AFTER,
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-response-time"),
];

/// How long a browser may cache this permission.
const MAX_AGE: Duration = Duration::from_mins(10);

/// `None` when no other site is allowed: then answers have no CORS headers.
pub(super) fn layer(origins: &[String]) -> Option<CorsLayer> {
    let origins: Vec<HeaderValue> = origins.iter().filter_map(|origin| origin.parse().ok()).collect();
    (!origins.is_empty()).then(|| {
        CorsLayer::new()
            .allow_origin(origins)
            .allow_credentials(true)
            .allow_methods(METHODS)
            .allow_headers(ASKED)
            .expose_headers(ANSWERED)
            .max_age(MAX_AGE)
    })
}
