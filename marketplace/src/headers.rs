//! Headers that decide how a request is read: neither a package nor a component chooses them freely.

/// Headers that belong to the connection, never to a session, a credential or a component.
const CONNECTION: &[&str] = &[
    "host",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "expect",
    "http2-settings",
];

/// Headers that belong to the host, because they decide what is checked and what is seen:
/// how the body is read, and which part of it comes back.
const OF_THE_HOST: &[&str] = &[
    "authorization",
    "cookie",
    "content-type",
    "content-encoding",
    "accept-encoding",
    "accept-charset",
    "range",
    "if-range",
];
/// Headers that make a server take a request for another one: of another method, path, host or client.
const MISLEADING: &[&str] = &[
    "forwarded",
    "via",
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "x-original-url",
    "x-original-uri",
    "x-original-host",
    "x-original-method",
    "x-rewrite-url",
    "x-rewrite-uri",
    "x-override-url",
    "x-request-uri",
    "x-host",
    "x-http-host-override",
    "x-real-ip",
    "x-client-ip",
    "x-remote-ip",
    "x-remote-addr",
    "x-remote-user",
    "x-cluster-client-ip",
    "x-originating-ip",
    "x-proxyuser-ip",
    "x-azure-clientip",
    "true-client-ip",
    "client-ip",
    "cf-connecting-ip",
    "fastly-client-ip",
];

/// Whether a header makes a server take a request for another one than was checked. No component and no user sets it.
#[must_use]
pub fn misleads(name: &str) -> bool {
    // Many servers read '_' as '-'.
    let name = name.to_ascii_lowercase().replace('_', "-");
    MISLEADING.contains(&name.as_str()) || name.starts_with("x-forwarded") || name.starts_with("x-accel-")
}

/// Whether a header belongs to the connection; `lower` is its name in lower case.
#[must_use]
pub fn is_connection(lower: &str) -> bool {
    CONNECTION.contains(&lower) || lower.starts_with("proxy-")
}

/// Whether a header of a request is set by the host alone.
#[must_use]
pub fn belongs_to_host(lower: &str) -> bool {
    OF_THE_HOST.contains(&lower)
}

/// Whether a credential or a session may go into this header: into none that changes what is asked for or how it is
/// sent.
#[must_use]
pub fn carries_credentials(lower: &str) -> bool {
    matches!(lower, "authorization" | "cookie")
        || !(is_connection(lower) || belongs_to_host(lower) || misleads(lower))
}
