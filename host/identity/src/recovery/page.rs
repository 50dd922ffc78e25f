//! The page that the link in a mail opens. It needs nothing but this binary and the interface.

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use heddle_kernel::app::SharedApp;

/// Below the root: the page, its program and its style.
pub(crate) const PATHS: &[&str] = &["/reset-password", "/reset-password/page.js", "/reset-password/page.css"];

const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

pub(crate) fn router() -> Router<SharedApp> {
    let html =
        || async { file("text/html; charset=utf-8", include_str!("../../assets/pages/reset-password.html")) };
    let script = || async {
        file("text/javascript; charset=utf-8", include_str!("../../assets/pages/reset-password.js"))
    };
    let style =
        || async { file("text/css; charset=utf-8", include_str!("../../assets/pages/reset-password.css")) };
    Router::new().route(PATHS[0], get(html)).route(PATHS[1], get(script)).route(PATHS[2], get(style))
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let kind = HeaderValue::from_static(kind);
    ([(header::CONTENT_TYPE, kind), (header::CONTENT_SECURITY_POLICY, POLICY)], text).into_response()
}
