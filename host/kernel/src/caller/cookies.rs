//! The channel of browsers: what the cookies of a request prove, and the token that keeps other sites from using them.
//!
//! `svc_csrf` is readable by the page, which echoes it in `X-CSRF-Token`. It is
//! derived from the session, so a token that another site planted does not fit.

use axum::http::{HeaderMap, HeaderValue, Method, header};
use cookie::Cookie;
use heddle_core::secret::Secret;
use heddle_store::sessions::SessionId;
use subtle::ConstantTimeEq as _;

use crate::app::App;
use crate::config::Environment;
use crate::http::error::Error;
use crate::http::extract::Origin;
use crate::keys::keyed_hash;

/// Names the cookie that holds a browser's access token; scripts cannot read it. Its presence makes a request
/// that changes something subject to the CSRF check, whatever other credential the request has.
pub const ACCESS: &str = "svc_access";
/// Names the cookie that holds the CSRF token. Scripts of the page read it and send its value in
/// `X-CSRF-Token`, which a page of another site cannot do.
pub const CSRF: &str = "svc_csrf";
const CSRF_HEADER: &str = "x-csrf-token";

/// The access token of the cookie channel.
pub(crate) fn access_token(headers: &HeaderMap) -> Option<String> {
    value(headers, ACCESS)
}

/// Returns the value of the first cookie of this name; `None` where the request has none. The value comes
/// from the client: it is neither decoded nor verified.
pub fn value(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    lines.find_map(|line| {
        let mut cookies = Cookie::split_parse(line).filter_map(Result::ok);
        cookies.find(|cookie| cookie.name() == name).map(|cookie| cookie.value().to_owned())
    })
}

/// 403 when a browser's cookies would be used without the page's consent.
///
/// Checks only requests with the access cookie, also if they carry another
/// credential: the cookie shows that a browser is at work.
pub(crate) fn refuse_forged(app: &App, method: &Method, headers: &HeaderMap) -> Result<(), Error> {
    let is_safe = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    let Some(access) = (!is_safe).then(|| access_token(headers)).flatten() else { return Ok(()) };
    let echoed = headers.get(CSRF_HEADER).map(HeaderValue::as_bytes).unwrap_or_default();
    let own = value(headers, CSRF).unwrap_or_default();
    let is_echoed = !own.is_empty() && bool::from(own.as_bytes().ct_eq(echoed));
    // An invalid access token has no session, so only the echo is compared: such a request can only authenticate by another
    // credential.
    let belongs = super::identify(app, &access)
        .map_or(true, |identity| csrf_token(app, identity.session).as_bytes().ct_eq(echoed).into());
    if is_echoed && belongs {
        return Ok(());
    }
    Err(Error::Refused {
        kind: "csrf_failed",
        message:
            "CSRF token is missing or wrong: send the value of cookie 'svc_csrf' in header 'X-CSRF-Token'"
                .to_owned(),
    })
}

/// Derives the CSRF token of a session, for the cookie [`CSRF`]. It is not stored, and stays the same as long
/// as the session and the key of the service do.
pub fn csrf_token(app: &App, session: SessionId) -> String {
    keyed_hash(&app.keys.csrf_key(), &Secret::new(session.to_string()))
}

/// A development server on a plain loopback address could not set cookies otherwise.
pub fn is_secure(app: &App, origin: &Origin) -> bool {
    origin.is_https || app.config.environment != Environment::Development
}
