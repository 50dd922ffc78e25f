//! Whose request it is, as far as limits are concerned.

use std::fmt;

use axum::http::{HeaderMap, header};
use heddle_core::UserId;

use crate::app::App;
use crate::http::client::{Client, Network};

/// Cookie with the access token.
const ACCESS_COOKIE: &str = "svc_access";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Principal {
    User(UserId),
    Address(Network),
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(user) => write!(f, "user:{user}"),
            Self::Address(network) => write!(f, "{network}"),
        }
    }
}

/// The user whom the access cookie was signed for, else the client's address. Asks no database: whether the session
/// is still good, the guard of the route finds out.
pub(super) fn principal(app: &App, client: &Client, headers: &HeaderMap) -> Principal {
    let identity = access_cookie(headers).and_then(|token| crate::auth::identify(app, token).ok());
    identity.map_or_else(|| Principal::Address(client.network()), |identity| Principal::User(identity.user()))
}

fn access_cookie(headers: &HeaderMap) -> Option<&str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut cookies = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    cookies.find(|(name, _)| *name == ACCESS_COOKIE).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[track_caller]
    fn check(lines: &[&'static str], expected: Option<&str>) {
        let headers: HeaderMap =
            lines.iter().map(|line| (header::COOKIE, HeaderValue::from_static(line))).collect();
        assert_eq!(access_cookie(&headers), expected, "{lines:?}");
    }

    #[test]
    fn the_access_cookie_is_found_among_others() {
        check(&[], None);
        check(&["svc_csrf=1"], None);
        check(&["svc_access=a.b.c"], Some("a.b.c"));
        check(&["theme=dark; svc_access=a.b.c;svc_csrf=x=y"], Some("a.b.c"));
        check(&["theme=dark", "svc_access=a.b.c"], Some("a.b.c"));
        check(&["xsvc_access=a", "svc_access2=b"], None);
    }
}
