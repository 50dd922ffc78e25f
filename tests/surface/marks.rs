//! What routes say of themselves (`Mark`) holds together, and nothing that needs a protection goes without.

use std::collections::BTreeSet;

use heddle_kernel::http::access::{Access, Unscoped};
use heddle_kernel::http::routes::{Mark, Route};

use crate::support::{Database, Server};

/// Writes that need no caller and have no limit of their own, with the reason.
const UNLIMITED_PUBLIC_WRITES: &[(&str, &str)] = &[
    ("/auth/refresh", "a refresh token has 256 random bits"),
    ("/auth/password/reset", "a link has 256 random bits, and hashes are bounded"),
    ("/auth/sso/oidc/authorize", "only begins a sign-in; attempts are bounded"),
    ("/auth/sso/oidc/callback", "takes a state that only the browser that began has"),
    ("/auth/sso/saml/callback", "always 501"),
    (
        "/controllers/{controller_id}/push/{channel}",
        "is proved by a secret with 256 random bits, and has a limit within",
    ),
    ("/oauth2/authorize", "needs a session of the service's own pages"),
    ("/oauth2/token", "takes secrets and codes with 256 random bits"),
    ("/oauth2/revoke", "takes secrets and tokens with 256 random bits"),
    ("/oauth2/introspect", "takes secrets and tokens with 256 random bits"),
    ("/plugins/{plugin}/hooks/{hook}/{organization_id}", "is proved by a signature, and has a limit within"),
    ("/setup/complete", "is done once, and has a limit within"),
];
/// Writes below the paths about users and their access that change no caller, with the reason.
const CHANGE_NO_CALLER: &[(&str, &str)] = &[
    ("/auth/login", "opens a session that nothing knows yet"),
    ("/auth/login/mfa", "opens a session that nothing knows yet"),
    ("/auth/token", "opens a session that nothing knows yet"),
    ("/auth/refresh", "goes on with a session; a spent token is handled where it is found"),
    ("/auth/password/reset-request", "only mails a link"),
    ("/auth/sso/oidc/authorize", "only begins a sign-in"),
    ("/oauth2/authorize", "gives a code"),
    ("/oauth2/login", "opens a session that nothing knows yet"),
    ("/oauth2/login/mfa", "opens a session that nothing knows yet"),
    ("/oauth2/token", "gives tokens that nothing knows yet"),
    ("/oauth2/revoke", "forgets by itself: anyone may try it"),
    ("/oauth2/introspect", "changes nothing"),
];

fn word(route: &Route) -> &str {
    route.path.split('/').nth(1).unwrap_or_default()
}

fn writes(route: &Route) -> bool {
    !route.method.is_safe()
}

fn is_listed(list: &[(&str, &str)], route: &Route) -> bool {
    list.iter().any(|(path, _)| *path == route.path)
}

/// Each rule with what it asks of a route.
const RULES: &[(&str, fn(&Route) -> bool)] = &[
    ("only a route without a caller needs no CSRF token", |route| {
        !route.doc.has(Mark::OwnProof) || route.access == Access::Public && writes(route)
    }),
    ("a write without a caller has the limit of logins, or a reason", |route| {
        let is_open = route.access == Access::Public && writes(route);
        !is_open || route.doc.has(Mark::LimitedAsLogin) != is_listed(UNLIMITED_PUBLIC_WRITES, route)
    }),
    ("a write about who is who changes callers, or has a reason", |route| {
        let words = ["auth", "users", "organizations", "api-keys", "oauth2", "setup"];
        let is_about = words.contains(&word(route)) && writes(route);
        !is_about || route.doc.has(Mark::ChangesCallers) != is_listed(CHANGE_NO_CALLER, route)
    }),
    ("a route about how its user signs in is personal", |route| {
        let is_about = ["auth", "api-keys", "oauth2"].contains(&word(route)) && route.path != "/auth/me";
        !is_about || route.access == Access::Public || route.doc.has(Mark::Personal)
    }),
    ("a route that no scope opens says why", |route| match route.access {
        Access::Authenticated(Unscoped(why)) | Access::Role(_, Unscoped(why)) => why.len() > 20,
        _ => true,
    }),
    ("only what is read without a caller or by probes is not counted", |route| {
        !route.doc.has(Mark::Unlimited) || !writes(route) && !route.doc.has(Mark::LimitedAsLogin)
    }),
];

#[tokio::test]
async fn every_route_keeps_the_rules_of_marks() {
    let server = Server::start_with(Database::sqlite(), super::described()).await;
    let routes = heddle_kernel::http::routes(&server.running().app);
    let mut broken = Vec::new();
    for (rule, holds) in RULES {
        let all = routes.iter().filter(|route| !holds(route));
        broken.extend(all.map(|route| format!("{rule}: {} {}", route.method, route.path)));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    let paths: BTreeSet<&str> = routes.iter().map(|route| route.path.as_str()).collect();
    for (path, _) in UNLIMITED_PUBLIC_WRITES.iter().chain(CHANGE_NO_CALLER) {
        assert!(paths.contains(path), "{path} is no route: take it off the list");
    }
}

#[tokio::test]
async fn no_route_writes_for_a_browser_without_its_token() {
    let server = Server::start_with(Database::sqlite(), super::described()).await;
    let admin = server.set_up().await;
    let routes = heddle_kernel::http::routes(&server.running().app);
    let page = server.nobody().with("cookie", &format!("svc_access={}", admin.token()));
    let id = uuid::Uuid::nil().to_string();
    let mut refused = 0;
    for route in routes.iter().filter(|route| writes(route)) {
        let filled: Vec<&str> = route
            .path
            .split('/')
            .map(|part| if part.starts_with('{') { id.as_str() } else { part })
            .collect();
        let answer = page.send(route.method.as_str(), &filled.join("/"), Some(b"{}".to_vec())).await;
        let is_forged = answer.error_type() == "csrf_failed";
        let place = format!("{} {}: {} {}", route.method, route.path, answer.status, answer.text);
        assert_eq!(is_forged, !route.doc.has(Mark::OwnProof), "{place}");
        refused += usize::from(is_forged);
    }
    assert!(refused > 80, "{refused} routes refused");
}
