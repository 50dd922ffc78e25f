//! Headers that every response carries.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

const SECURITY: &[(&str, &str)] = &[
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("x-xss-protection", "1; mode=block"),
    ("referrer-policy", "strict-origin-when-cross-origin"),
    ("cache-control", "no-store, no-cache, must-revalidate"),
    ("pragma", "no-cache"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=(), payment=()"),
    (
        "content-security-policy",
        "default-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
    ),
];

pub(crate) fn add_security(headers: &mut HeaderMap) {
    for (name, value) in SECURITY {
        // A page brings a policy of its own.
        if *name == "content-security-policy" && headers.contains_key(*name) {
            continue;
        }
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}
