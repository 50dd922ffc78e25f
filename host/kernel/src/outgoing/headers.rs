//! Headers that users may set on a request, and those that they may not.

use http::{HeaderName, HeaderValue};

/// Most headers of one request.
pub const HEADERS_MAX: usize = 50;
/// Most bytes of a header's value.
pub const HEADER_VALUE_BYTES_MAX: usize = 4096;

/// Headers that decide where a message ends or goes: only the connection sets them.
const OF_THE_CONNECTION: &[&str] = &[
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "proxy-connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "http2-settings",
    "proxy-authorization",
    "proxy-authenticate",
    "accept-encoding",
];
/// Headers that prove the sender: a user cannot set them.
const OF_THE_SIGNATURE: &[&str] = &["x-fabric-signature", "x-fabric-timestamp"];
/// Prefix of headers that name the delivery.
const OF_THE_SERVICE: &str = "x-heddle-";

/// Parses a header as a user gave it.
pub fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
        format!("header name '{}' has characters that a name cannot have", name.escape_debug())
    })?;
    // Many receivers read '_' as '-'.
    let dashed = parsed.as_str().replace('_', "-");
    if is_reserved(&dashed) || dashed.starts_with(OF_THE_SERVICE) {
        return Err(format!("header '{parsed}' is set by the service alone"));
    }
    if value.len() > HEADER_VALUE_BYTES_MAX {
        return Err(format!("value of header '{parsed}' has more than {HEADER_VALUE_BYTES_MAX} bytes"));
    }
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| format!("value of header '{parsed}' has characters other than visible ASCII"))?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

/// Returns the first header that only the connection or the signature may set.
pub(super) fn refused(headers: &[(HeaderName, HeaderValue)]) -> Option<&HeaderName> {
    headers.iter().map(|(name, _)| name).find(|name| is_reserved(name.as_str()))
}

fn is_reserved(name: &str) -> bool {
    OF_THE_CONNECTION.contains(&name) || OF_THE_SIGNATURE.contains(&name) || heddle_runtime::misleads(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_sets_neither_frame_nor_signature_and_injects_nothing() {
        for (name, value) in [
            ("Host", "127.0.0.1"),
            ("CONTENT-LENGTH", "0"),
            ("transfer-encoding", "chunked"),
            ("Connection", "upgrade"),
            ("Upgrade", "h2c"),
            ("TE", "trailers"),
            ("Expect", "100-continue"),
            ("X-Fabric-Signature", "sha256=00"),
            ("x-fabric-timestamp", "1"),
            ("X-Heddle-Delivery", "1"),
            ("X-Forwarded-For", "127.0.0.1"),
            ("X_Original_URL", "/admin"),
            ("Forwarded", "for=127.0.0.1"),
            ("X-HTTP-Method-Override", "DELETE"),
            ("X_Fabric_Signature", "sha256=00"),
            ("X_Heddle_Delivery", "1"),
            ("x-heddle-anything", "1"),
            ("a b", "1"),
            ("a:b", "1"),
            ("", "1"),
            ("x\r\ny", "1"),
            ("ü", "1"),
            ("x-a", "1\r\nHost: evil"),
            ("x-a", "1\nb"),
            ("x-a", "\0"),
            ("x-a", "\u{7f}"),
        ] {
            assert!(header(name, value).is_err(), "{name:?}: {value:?}");
        }
        assert!(header("x-a", &"a".repeat(HEADER_VALUE_BYTES_MAX + 1)).is_err());
        let (name, value) = header("Authorization", "Bearer abc").unwrap();
        assert_eq!(name, "authorization");
        assert!(value.is_sensitive());
    }
}
