//! Who is let in, and how each surface turns others away.

use serde_json::{Value, json};

use super::Peer;
use crate::SessionEnd;

#[tokio::test]
async fn info_is_open_and_names_the_controller() {
    let peer = Peer::new().await;
    let answer: Value = peer.request("GET", "/api/info").send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["result"]["omadacId"], peer.id.as_str());
    assert_eq!(answer["result"]["controllerVer"], "6.2.10.15");
}

#[tokio::test]
async fn a_wrong_secret_gets_no_token() {
    let peer = Peer::new().await;
    assert_eq!(peer.grant("wrong").await["errorCode"], -44106);
}

#[tokio::test]
async fn the_scheme_bearer_looks_like_an_expired_token() {
    let peer = Peer::new().await;
    let request = peer.request("GET", &peer.path("v1 all sites?page=1&pageSize=10"));
    let answer: Value = request.bearer_auth(&peer.token).send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["errorCode"], -44112);
}

#[tokio::test]
async fn a_call_without_a_token_answers_401_with_the_envelope() {
    let peer = Peer::new().await;
    let response = peer.request("GET", &peer.path("v1 all sites?page=1&pageSize=10")).send().await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(response.json::<Value>().await.unwrap()["errorCode"], -44116);
}

#[tokio::test]
async fn the_open_api_refuses_a_web_session() {
    let peer = Peer::new().await;
    let request = peer.request("GET", &peer.path("v1 all sites?page=1&pageSize=10"));
    let request = request.header("cookie", &peer.cookie).header("csrf-token", &peer.csrf);
    assert_eq!(request.send().await.unwrap().json::<Value>().await.unwrap()["errorCode"], -44116);
}

#[tokio::test]
async fn a_token_ends_after_its_life_and_its_refresh_token_serves_once() {
    let peer = Peer::new().await;
    let refresh = peer.grant("lab-secret").await["result"]["refreshToken"].as_str().unwrap().to_owned();
    peer.lab.advance(std::time::Duration::from_hours(2));
    assert_eq!(peer.code("GET", "v1 all sites?page=1&pageSize=10", Value::Null).await, -44112);
    let client = "client_id=lab-client&client_secret=lab-secret";
    let path = format!("/openapi/authorize/token?grant_type=refresh_token&refresh_token={refresh}&{client}");
    let first: Value = peer.request("POST", &path).send().await.unwrap().json().await.unwrap();
    let second: Value = peer.request("POST", &path).send().await.unwrap().json().await.unwrap();
    assert_eq!((&first["errorCode"], &second["errorCode"]), (&json!(0), &json!(-44114)));
}

#[tokio::test]
async fn another_controllers_id_is_answered_without_a_content_type() {
    let peer = Peer::new().await;
    let request =
        peer.request("GET", "/openapi/v1/00000000000000000000000000000000/sites?page=1&pageSize=10");
    let response =
        request.header("authorization", format!("AccessToken={}", peer.token)).send().await.unwrap();
    assert!(response.headers().get("content-type").is_none());
    let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert_eq!(answer["errorCode"], -7131);
}

#[tokio::test]
async fn the_eleventh_call_within_a_second_is_refused() {
    let peer = Peer::with(|omada| omada.rate_limit = Some(10)).await;
    for _ in 0..10 {
        peer.get("v1 all sites?page=1&pageSize=10").await;
    }
    let refused = peer.send("GET", "v1 all sites?page=1&pageSize=10", &Value::Null).await;
    assert_eq!(refused.status(), 429);
    peer.lab.advance(std::time::Duration::from_secs(1));
    peer.get("v1 all sites?page=1&pageSize=10").await;
}

#[tokio::test]
async fn a_dead_web_session_gets_the_login_page_or_a_redirect() {
    let peer = Peer::new().await;
    peer.lab.end_sessions();
    let page = peer.send("GET", "web site devices", &Value::Null).await;
    assert_eq!(page.status(), 200);
    assert!(page.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
    peer.lab.lock().session_end = SessionEnd::Redirect;
    assert_eq!(peer.send("GET", "web site devices", &Value::Null).await.status(), 302);
    assert_eq!(peer.code("GET", "web all loginStatus", Value::Null).await, -1200);
}

#[tokio::test]
async fn a_wrong_password_is_told_in_the_envelope() {
    let peer = Peer::new().await;
    let request = peer.request("POST", &format!("/{}/api/v2/login", peer.id));
    let response = request.json(&json!({"username": "admin", "password": "no"})).send().await.unwrap();
    assert_eq!(response.json::<Value>().await.unwrap()["errorCode"], -30109);
}
