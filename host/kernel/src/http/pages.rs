//! The documentation pages: Swagger UI and Redoc, from the binary alone.
//!
//! They are not part of the interface and not in its document. Where documentation is not served, these paths do not
//! exist.

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::openapi::Written;
use crate::app::SharedApp;

/// Both pages write their own styles into the document, and use images inside their style sheets. Redoc searches in a
/// worker that it makes from a blob.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     connect-src 'self'; worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! asset {
    ($folder:literal, $name:literal, $kind:expr) => {
        Asset {
            name: $name,
            kind: $kind,
            bytes: include_bytes!(concat!("../../assets/", $folder, "/", $name)),
        }
    };
}

const ASSETS: &[Asset] = &[
    asset!("swagger-ui", "swagger-ui-bundle.js", JAVASCRIPT),
    asset!("swagger-ui", "swagger-ui-bundle.js.LICENSE.txt", "text/plain; charset=utf-8"),
    asset!("swagger-ui", "swagger-ui.css", STYLE),
    asset!("redoc", "redoc.standalone.js", JAVASCRIPT),
    asset!("redoc", "redoc.standalone.js.LICENSE.txt", "text/plain; charset=utf-8"),
    asset!("pages", "docs.js", JAVASCRIPT),
    asset!("pages", "redoc.js", JAVASCRIPT),
    asset!("pages", "redoc.css", STYLE),
];

/// Where the pages are, below the root and below the prefix.
pub(super) const PATHS: &[&str] =
    &["/docs", "/api/v1/docs", "/redoc", "/api/v1/redoc", "/openapi.json", "/api/v1/docs/assets/{name}"];

/// The pages, and the document at the root; nothing where documentation is not served.
pub(super) fn router(document: Option<&Written>) -> Router<SharedApp> {
    let Some(document) = document.cloned() else { return Router::new() };
    let docs = || async { page(include_str!("../../assets/pages/docs.html")) };
    let redoc = || async { page(include_str!("../../assets/pages/redoc.html")) };
    Router::new()
        .route(PATHS[0], get(docs))
        .route(PATHS[1], get(docs))
        .route(PATHS[2], get(redoc))
        .route(PATHS[3], get(redoc))
        .route(PATHS[4], get(move || async move { document.answer() }))
        .route(PATHS[5], get(asset))
}

fn page(html: &'static str) -> Response {
    file("text/html; charset=utf-8", html.as_bytes())
}

async fn asset(Path(name): Path<String>) -> Response {
    match ASSETS.iter().find(|asset| asset.name == name) {
        Some(asset) => file(asset.kind, asset.bytes),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn file(kind: &'static str, bytes: &'static [u8]) -> Response {
    let policy: HeaderName = header::CONTENT_SECURITY_POLICY;
    ([(header::CONTENT_TYPE, HeaderValue::from_static(kind)), (policy, POLICY)], bytes).into_response()
}
