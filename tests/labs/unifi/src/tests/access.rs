//! Who is let in, and how a refusal looks.

use super::*;
use crate::SessionEnd;

#[tokio::test]
async fn a_key_opens_all_three_interfaces() {
    let peer = Peer::new().await;
    assert_eq!(peer.get("~/self").await["meta"]["rc"], "ok");
    assert!(peer.get("~2/firewall/zone").await.is_array());
    assert_eq!(peer.get("/integration/v1/info").await["applicationVersion"], "10.4.57");
}

#[tokio::test]
async fn a_wrong_key_gets_the_answer_of_the_proxy() {
    let peer = Peer::new().await;
    let response =
        peer.bare("GET", "/proxy/network/integration/v1/info").header("x-api-key", "other").send().await;
    let (status, body) = told(response.unwrap()).await;
    assert_eq!((status, body), (401, json!({ "error": { "code": 401, "message": "Unauthorized" } })));
}

#[tokio::test]
async fn a_session_needs_the_csrf_token_to_write_and_gets_a_new_one() {
    let mut peer = Peer::of(Settings { csrf_writes: 2, ..Settings::default() }).await;
    peer.sign_in("admin", "heddle-lab").await;
    let (cookie, csrf) = peer.session.clone().unwrap();
    assert!(cookie.starts_with("TOKEN=") && cookie.split('.').count() == 3);
    let write = |token: &str| {
        let request =
            peer.bare("POST", "/proxy/network/api/s/default/rest/usergroup").header("cookie", &cookie);
        request.header("x-csrf-token", token)
    };
    assert_eq!(write("wrong").send().await.unwrap().status(), 403);
    let first = write(&csrf).json(&json!({ "name": "one" })).send().await.unwrap();
    assert_eq!(first.headers()["x-csrf-token"], csrf.as_str());
    let second = write(&csrf).json(&json!({ "name": "two" })).send().await.unwrap();
    let next = second.headers()["x-updated-csrf-token"].to_str().unwrap().to_owned();
    assert_ne!(next, csrf);
    assert_eq!(write(&next).json(&json!({ "name": "three" })).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_session_does_not_open_the_official_interface() {
    let mut peer = Peer::new().await;
    peer.sign_in("admin", "heddle-lab").await;
    assert_eq!(peer.ask("GET", "/integration/v1/info", Value::Null).await.0, 401);
}

#[tokio::test]
async fn a_session_ends_in_either_way() {
    for (end, status) in [(SessionEnd::Status, 401), (SessionEnd::Envelope, 200)] {
        let mut peer = Peer::of(Settings { session_end: end, ..Settings::default() }).await;
        peer.sign_in("admin", "heddle-lab").await;
        assert_eq!(peer.ask("GET", "~/self", Value::Null).await.0, 200);
        peer.lab.end_sessions();
        let (told, body) = peer.ask("GET", "~/self", Value::Null).await;
        assert_eq!(told, status);
        if end == SessionEnd::Envelope {
            assert_eq!(body["meta"]["msg"], "api.err.LoginRequired");
        }
        let (_, csrf) = peer.session.take().unwrap();
        assert!(!csrf.is_empty());
        peer.sign_in("admin", "heddle-lab").await;
        assert_eq!(peer.ask("GET", "~/self", Value::Null).await.0, 200);
    }
}

#[tokio::test]
async fn a_session_is_over_after_its_time() {
    let mut peer = Peer::new().await;
    peer.sign_in("admin", "heddle-lab").await;
    peer.lab.advance(Duration::from_hours(3));
    assert_eq!(peer.ask("GET", "~/self", Value::Null).await.0, 401);
}

#[tokio::test]
async fn logins_have_a_limit_that_counts_good_ones_too() {
    let peer = Peer::of(Settings { logins_max: 2, ..Settings::default() }).await;
    assert_eq!(peer.log_in("admin", "heddle-lab").await.status(), 200);
    assert_eq!(peer.log_in("admin", "wrong").await.status(), 403);
    let third = peer.log_in("admin", "heddle-lab").await;
    assert!(third.headers().get("retry-after").is_none());
    let (status, body) = told(third).await;
    assert_eq!((status, body["code"].as_str()), (429, Some("AUTHENTICATION_FAILED_LIMIT_REACHED")));
    peer.lab.advance(Duration::from_mins(3));
    assert_eq!(peer.log_in("admin", "heddle-lab").await.status(), 200);
}

#[tokio::test]
async fn a_stale_cookie_keeps_its_owner_from_logging_in() {
    let peer = Peer::new().await;
    let body = json!({ "username": "admin", "password": "heddle-lab" });
    let request = peer.bare("POST", "/api/auth/login").header("cookie", "TOKEN=old").json(&body);
    assert_eq!(request.send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn an_account_that_only_reads_may_not_write() {
    let mut peer = Peer::new().await;
    peer.sign_in("viewer", "heddle-view").await;
    assert_eq!(peer.ask("GET", "~/rest/networkconf", Value::Null).await.0, 200);
    assert_eq!(
        peer.refused("POST", "~/rest/usergroup", json!({ "name": "x" })).await,
        "api.err.NoPermission"
    );
    assert_eq!(peer.refused("POST", "~2/static-dns", json!({})).await, "api.err.NoPermission");
    assert_eq!(peer.ask("POST", "~2/system-log/all", json!({})).await.0, 200);
    assert_eq!(peer.command("backup", json!({ "cmd": "list-backups" })).await.as_array().unwrap().len(), 1);
    assert_eq!(
        peer.refused("POST", "~/cmd/backup", json!({ "cmd": "backup" })).await,
        "api.err.NoPermission"
    );
}

#[tokio::test]
async fn the_root_tells_the_kinds_apart() {
    let console = Peer::new().await;
    assert_eq!(console.bare("GET", "/").send().await.unwrap().status(), 200);
    let newer = Peer::of(Settings { root_redirects: true, ..Settings::default() }).await;
    assert_eq!(newer.bare("GET", "/").send().await.unwrap().status(), 302);
    let classic = Peer::of(Settings { kind: Kind::Classic, ..Settings::default() }).await;
    let root = classic.bare("GET", "/").send().await.unwrap();
    assert_eq!((root.status().as_u16(), root.headers()["location"].to_str().unwrap()), (302, "/manage"));
    let (status, body) = told(classic.bare("GET", "/status").send().await.unwrap()).await;
    assert_eq!((status, body["meta"]["server_version"].as_str()), (200, Some("10.4.57")));
    let (status, _) = told(console.bare("GET", "/proxy/network/status").send().await.unwrap()).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn the_self_hosted_application_has_sessions_only() {
    let peer = Peer::of(Settings { kind: Kind::Classic, ..Settings::default() }).await;
    assert!(peer.session.as_ref().unwrap().0.starts_with("unifises="));
    assert_eq!(peer.get("~/self").await["data"][0]["name"], "admin");
    assert_eq!(peer.ask("GET", "/integration/v1/info", Value::Null).await.0, 404);
    let with_key = peer.bare("GET", "/api/s/default/self").header("x-api-key", KEY).send().await.unwrap();
    assert_eq!(with_key.status(), 401);
    let (status, body) = told(peer.log_in("admin", "wrong").await).await;
    assert_eq!((status, body["meta"]["msg"].as_str()), (400, Some("api.err.Invalid")));
}

#[tokio::test]
async fn a_second_factor_is_asked_for() {
    let settings = Settings { second_factor: Some("123456".to_owned()), ..Settings::default() };
    let peer = Peer::of(settings).await;
    let (status, body) = told(peer.log_in("admin", "heddle-lab").await).await;
    assert_eq!(status, 499);
    assert!(body["data"]["mfaCookie"].is_string());
    let body = json!({ "username": "admin", "password": "heddle-lab", "token": "123456" });
    assert_eq!(peer.bare("POST", "/api/auth/login").json(&body).send().await.unwrap().status(), 200);
}
