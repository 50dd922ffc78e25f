//! Headers that every response carries.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::client::Client;

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

/// Keeps browsers to HTTPS for a year. Over HTTP it would mean nothing (RFC 6797 section 7.2).
const TRANSPORT: (&str, &str) = ("strict-transport-security", "max-age=31536000; includeSubDomains");

pub(super) fn add_security(headers: &mut HeaderMap, client: &Client) {
    let transport = client.is_https.then_some(&TRANSPORT);
    for (name, value) in SECURITY.iter().chain(transport) {
        // A page brings its own policy.
        if *name == "content-security-policy" && headers.contains_key(*name) {
            continue;
        }
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}
