//! A sign-in in a real browser: the page of a user interface, the provider's pages, and cookies that no script reads.

use axum::response::Html;
use serde_json::json;

use super::{add, oidc_body, with};
use crate::support::oidc::{CLIENT_SECRET, ClaimsAt, OidcProvider};
use crate::support::{Database, Options, Server, browser};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_signs_in_from_the_page_of_an_allowed_origin() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let server =
        Server::start_with(Database::sqlite(), Options::default().with("CORS_ORIGINS", &origin)).await;
    let admin = server.set_up().await;
    let html = include_str!("page.html").replace("'API'", &format!("'{}/api/v1'", admin.base()));
    let router = axum::Router::new().fallback(async move || Html(html.clone()));
    #[expect(clippy::disallowed_methods, reason = "a test is the outside world")]
    let pages = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let provider = OidcProvider::start(&format!("{origin}/back"), ClaimsAt::UserInfo).await;
    let mut body = with(oidc_body(&provider.issuer(), "confidential", Some(CLIENT_SECRET)), json!({}));
    body["oidc"]["redirect_uris"] = json!([format!("{origin}/back")]);
    let id = add(&admin, &body).await;

    let page = format!("{origin}/?provider={id}");
    let outcome = browser::drive("identity/sso/browser.mjs", &[("PAGE", &page)]).await;
    assert_eq!(outcome["shown"]["me"]["email"], "alice@example.test", "{outcome}");
    assert_eq!(outcome["shown"]["answer"]["user"]["username"], "alice", "{outcome}");
    let readable = outcome["shown"]["readable"].as_str().unwrap();
    assert!(readable.contains("svc_csrf=") && !readable.contains("svc_access="), "{readable}");
    let cookies = outcome["cookies"].as_array().unwrap();
    let of =
        |name: &str| cookies.iter().find(|cookie| cookie["name"] == name).unwrap_or_else(|| panic!("{name}"));
    assert!(of("svc_access")["httpOnly"] == true && of("svc_refresh")["httpOnly"] == true);
    let left = cookies.iter().any(|cookie| cookie["name"].as_str().unwrap().starts_with("svc_sso_"));
    assert!(!left, "the cookie of the sign-in is gone: {outcome}");
    pages.abort();
}
