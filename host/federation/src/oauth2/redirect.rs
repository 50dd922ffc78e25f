//! The redirect URIs of apps: which ones can be registered, and how answers are put into them.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use heddle_core::oauth2::ClientType;
use heddle_kernel::http::error::Error;
use url::{Host, Url};

use super::page;

/// Most characters of an address, all of them ASCII.
pub(super) const URI_CHARS_MAX: usize = 2000;

/// Returns what is wrong with an address that is to be registered.
///
/// It is compared character for character later, so it must have exactly one meaning.
pub(super) fn check(text: &str, kind: ClientType) -> Result<(), &'static str> {
    if text.len() > URI_CHARS_MAX {
        return Err("must not have more than 2000 characters");
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'"' | b'<' | b'>')) {
        return Err("must hold no spaces and only ASCII characters: encode others with '%'");
    }
    if text.contains('#') {
        return Err("must have no fragment ('#…')");
    }
    if text.contains('*') {
        return Err("must have no wildcard ('*'): register each address");
    }
    let url =
        Url::parse(text).map_err(|_| "must be an absolute URI such as https://app.example.org/callback")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must have no user name or password");
    }
    let after = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    if url.scheme().starts_with("http") && after.is_none_or(|rest| rest.starts_with('/')) {
        return Err("must be complete, such as https://app.example.org/callback");
    }
    match url.scheme() {
        "https" if url.has_host() => Ok(()),
        "http" if is_loopback(&url) => Ok(()),
        "http" => Err("must be https; http only for 127.0.0.1, [::1] and localhost"),
        // RFC 8252 section 7.1: a domain name of the app's owner, reversed.
        scheme if scheme.contains('.') && kind == ClientType::Public => Ok(()),
        scheme if scheme.contains('.') => Err("must be https: only public apps have schemes of their own"),
        _ => Err(
            "must be https, http for loopback addresses, or a scheme such as 'org.example.app' of a public app",
        ),
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip == std::net::Ipv4Addr::LOCALHOST,
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// The scheme of a registered address.
pub(super) fn scheme(uri: &str) -> &str {
    uri.split(':').next().unwrap_or_default()
}

/// Appends these parameters to an address.
pub(super) fn with(uri: &str, parameters: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(parameters);
    let separator = match uri.split_once('?') {
        None => "?",
        Some((_, "")) => "",
        Some(_) => "&",
    };
    format!("{uri}{separator}{}", query.finish())
}

/// Redirects with 303, so that the browser does not send its form again.
pub(super) fn see_other(to: &str) -> Result<Response, Error> {
    let mut response = page::going_on(StatusCode::SEE_OTHER, to);
    let location = HeaderValue::from_str(to).map_err(Error::internal)?;
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(uri: &str, kind: ClientType, word: &str) {
        let message = check(uri, kind).expect_err(uri);
        assert!(message.contains(word), "{uri}: {message}");
    }

    #[test]
    fn an_address_says_one_place_and_nothing_else() {
        use ClientType::{Confidential, Public};
        for uri in [
            "https://a.example",
            "https://a.example:8443/cb?x=1",
            "http://127.0.0.1:9/cb",
            "http://[::1]/cb",
            "http://localhost:3000/",
        ] {
            assert_eq!(check(uri, Confidential), Ok(()), "{uri}");
            assert_eq!(check(uri, Public), Ok(()), "{uri}");
        }
        assert_eq!(check("org.example.app:/cb", Public), Ok(()));
        refused("org.example.app:/cb", Confidential, "public");
        for (uri, word) in [
            ("", "absolute"),
            ("/callback", "absolute"),
            ("http://a.example/cb", "https"),
            ("http://127.0.0.1.a.example/cb", "https"),
            ("http://localhost.a.example/cb", "https"),
            ("https://a.example/cb#x", "fragment"),
            ("https://*.a.example/cb", "wildcard"),
            ("https://a.example/*", "wildcard"),
            ("https://user@a.example/cb", "user name"),
            ("https://a.example/a b", "spaces"),
            ("https://a.example\\@b.example/", "spaces"),
            ("https:a.example/?x=://", "complete"),
            ("https:///a.example/", "complete"),
            ("https://ä.example/", "ASCII"),
            ("javascript:alert(1)", "scheme"),
            ("data:text/html,x", "scheme"),
            ("myapp:/cb", "scheme"),
        ] {
            refused(uri, Public, word);
        }
        refused(&format!("https://a.example/{}", "x".repeat(2000)), Public, "2000");
    }

    #[test]
    fn an_answer_is_put_behind_what_the_address_has() {
        for (uri, expected) in [
            ("https://a.example/cb", "https://a.example/cb?code=a%26b"),
            ("https://a.example/cb?x=1", "https://a.example/cb?x=1&code=a%26b"),
            ("https://a.example/cb?", "https://a.example/cb?code=a%26b"),
            ("org.example.app:/cb", "org.example.app:/cb?code=a%26b"),
        ] {
            assert_eq!(with(uri, &[("code", "a&b")]), expected);
        }
        assert_eq!(scheme("org.example.app:/cb"), "org.example.app");
    }
}
