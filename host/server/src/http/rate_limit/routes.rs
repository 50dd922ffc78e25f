//! Which routes have a limit of their own, and which have none.

use axum::extract::{MatchedPath, Request};
use axum::http::Method;

/// Routes that take a password, a code or an address to write to: each try costs an attacker one of five.
const AUTH: &[&str] = &[
    "/api/v1/auth/login",
    "/api/v1/auth/login/mfa",
    "/api/v1/auth/token",
    "/api/v1/auth/register",
    "/api/v1/auth/password/reset-request",
    "/api/v1/auth/sso/ldap/authenticate",
    "/api/v1/oauth2/login",
    "/api/v1/oauth2/login/mfa",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Probes ask often, and must get an answer when it is needed most.
    Exempt,
    Auth,
    General,
}

/// By the route that will answer, not by the text of the path: no other spelling evades it.
pub(super) fn class(request: &Request) -> Class {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    of(request.method(), path)
}

fn of(method: &Method, path: &str) -> Class {
    let is_health = path == "/health" || path == "/api/v1/health" || path.starts_with("/api/v1/health/");
    // A camera's page asks for one with each picture that it opens.
    if is_health || path.ends_with("/stream-token") {
        Class::Exempt
    } else if method == Method::POST && AUTH.contains(&path) {
        Class::Auth
    } else {
        Class::General
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &Method, path: &str, expected: Class) {
        assert_eq!(of(method, path), expected, "{method} {path}");
    }

    #[test]
    fn each_route_has_the_limit_that_the_interface_names() {
        for path in ["/health", "/api/v1/health", "/api/v1/health/ready", "/api/v1/health/detail"] {
            check(&Method::GET, path, Class::Exempt);
        }
        check(&Method::POST, "/api/v1/cameras/{camera_id}/stream-token", Class::Exempt);
        for path in
            ["token", "login", "register", "password/reset-request", "login/mfa", "sso/ldap/authenticate"]
        {
            check(&Method::POST, &format!("/api/v1/auth/{path}"), Class::Auth);
        }
        check(&Method::POST, "/api/v1/oauth2/login", Class::Auth);
        check(&Method::POST, "/api/v1/oauth2/login/mfa", Class::Auth);
        check(&Method::POST, "/api/v1/oauth2/token", Class::General);
        check(&Method::GET, "/api/v1/auth/login", Class::General);
        check(&Method::POST, "/api/v1/auth/refresh", Class::General);
        check(&Method::POST, "/api/v1/auth/password/change", Class::General);
        check(&Method::GET, "/api/v1/sites", Class::General);
        check(&Method::GET, "/api/v1/healthy", Class::General);
        check(&Method::GET, "/", Class::General);
        check(&Method::GET, "", Class::General);
    }
}
