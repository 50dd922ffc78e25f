//! Which headers a guest may set, and which of an answer it may see.

use heddle_core::fault::Fault;
use heddle_marketplace::headers::{belongs_to_host, is_connection, misleads};
use heddle_marketplace::manifest::{ApplyTo, CaptureFrom, Manifest, Session};
use heddle_marketplace::plugin::SecretPlace;
use http::{HeaderName, HeaderValue};

use super::request::{Auth, Place, denied};

const COUNT_MAX: usize = 64;
const BYTES_MAX: usize = 32 << 10;

/// Refuses headers that a guest may not set.
pub(super) fn check(headers: &[(String, Vec<u8>)], manifest: &Manifest, auth: &Auth) -> Result<(), Fault> {
    check_sizes(headers.iter().map(|(name, value)| name.len() + value.len()))?;
    let reserved = reserved(manifest, auth);
    for (name, value) in headers {
        let shown: String = name.chars().filter(char::is_ascii_graphic).take(60).collect();
        let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
            return Err(denied("header", format!("'{shown}' is not a header name")));
        };
        let lower = parsed.as_str();
        if is_connection(lower)
            || belongs_to_host(lower)
            || misleads(lower)
            || reserved.iter().any(|r| r == lower)
        {
            return Err(denied("header", format!("header '{shown}' is set by the host only")));
        }
        if !is_value(value) {
            return Err(denied("header", format!("the value of header '{shown}' has control characters")));
        }
    }
    Ok(())
}

/// Refuses too many headers, or such with too many bytes.
pub(super) fn check_sizes(bytes: impl Iterator<Item = usize>) -> Result<(), Fault> {
    let (count, bytes) =
        bytes.fold((0, 0_usize), |(count, sum), bytes| (count + 1, sum.saturating_add(bytes)));
    if count > COUNT_MAX {
        return Err(denied("header", format!("a request has at most {COUNT_MAX} headers")));
    }
    if bytes > BYTES_MAX {
        return Err(denied("header", "the headers of a request have at most 32 KiB"));
    }
    Ok(())
}

fn is_value(value: &[u8]) -> bool {
    HeaderValue::from_bytes(value).is_ok()
}

/// Headers that credentials of this component use.
fn reserved(manifest: &Manifest, auth: &Auth) -> Vec<String> {
    let applied =
        manifest.auth.values().flat_map(|session| &session.apply).filter_map(|apply| match &apply.to {
            ApplyTo::Header(name) => Some(name.to_ascii_lowercase()),
            _ => None,
        });
    let placed = match auth {
        Auth::Inject(places) => places.as_slice(),
        _ => &[],
    };
    let placed = placed.iter().filter_map(|(place, _)| match place {
        Place::Header(name, _) => Some(name.to_ascii_lowercase()),
        _ => None,
    });
    let of_plugin = manifest.capabilities.secrets.rules().iter().flat_map(|rule| &rule.places);
    let of_plugin = of_plugin.filter_map(|place| match place {
        SecretPlace::Header(name) => Some(name.clone()),
        _ => None,
    });
    applied.chain(placed).chain(of_plugin).collect()
}

/// Whether a guest sees this header of an answer. `session` is the session that the answer came in. A header that can replace
/// a value of the session is hidden, even when its value was not taken.
pub(super) fn reaches_guest(lower: &str, session: Option<&Session>) -> bool {
    let Some(session) = session else { return !is_connection(lower) };
    let mut replacing = session.refresh.iter().map(|refresh| &refresh.from);
    let owns_cookies =
        session.cookie_jar || replacing.clone().any(|from| matches!(from, CaptureFrom::Cookie(_)));
    let replaces =
        |from: &CaptureFrom| matches!(from, CaptureFrom::Header(name) if name.eq_ignore_ascii_case(lower));
    let is_cookie = matches!(lower, "set-cookie" | "set-cookie2");
    !(is_connection(lower) || owns_cookies && is_cookie || replacing.any(replaces))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::tests::manifest;

    #[track_caller]
    fn refused(name: &str, value: &[u8]) {
        let fault = check(&[(name.to_owned(), value.to_vec())], &manifest(), &Auth::None).expect_err(name);
        assert_eq!(fault.code.as_deref(), Some("header"), "{name}");
    }

    #[test]
    fn ordinary_headers_pass() {
        let headers = [("Accept".to_owned(), b"text/plain".to_vec()), ("X-Any".to_owned(), b"\xe4".to_vec())];
        assert!(check(&headers, &manifest(), &Auth::None).is_ok());
    }

    #[test]
    fn headers_of_the_host_and_tricks_are_refused() {
        for name in [
            "Host",
            "connection",
            "Keep-Alive",
            "Proxy-Authorization",
            "proxy-x",
            "TE",
            "Trailer",
            "Transfer-Encoding",
            "Upgrade",
            "Content-Length",
            "Expect",
            "Cookie",
            "Authorization",
            "Content-Type",
            "Range",
            "Accept-Encoding",
            "X-HTTP-Method-Override",
            "X_HTTP_Method_Override",
            "X-Original-URL",
            "x_rewrite_url",
            "X-Forwarded-For",
            "X-Forwarded-Host",
            "X-Forwarded-Prefix",
            "X_Forwarded_Proto",
            "Forwarded",
            "Via",
            "X-Real-IP",
            "X-Accel-Redirect",
            "True-Client-IP",
            "",
            "a b",
            "a:b",
            "a\r\nb",
            "\u{e4}",
            "x-token",
        ] {
            refused(name, b"1");
        }
        refused("X-Any", b"a\r\nHost: evil");
        refused("X-Any", b"a\nb");
        refused("X-Any", b"a\0b");
    }

    #[test]
    fn numbers_and_sizes_are_bounded() {
        let many: Vec<_> = (0..=COUNT_MAX).map(|n| (format!("x-{n}"), vec![b'a'])).collect();
        assert!(check(&many, &manifest(), &Auth::None).is_err());
        assert!(check(&[("x".to_owned(), vec![b'a'; BYTES_MAX])], &manifest(), &Auth::None).is_err());
    }

    #[test]
    fn a_header_that_carries_a_credential_is_taken() {
        let auth =
            Auth::Inject(vec![(Place::Header("X-Key".to_owned(), String::new()), "api-key".to_owned())]);
        assert!(check(&[("x-key".to_owned(), b"1".to_vec())], &manifest(), &auth).is_err());
    }

    #[test]
    fn cookies_of_a_jar_do_not_reach_the_guest() {
        let session = manifest().auth.remove("main").unwrap();
        assert!(reaches_guest("set-cookie", None));
        assert!(!reaches_guest("set-cookie", Some(&session)));
        assert!(!reaches_guest("connection", None));
    }
}
