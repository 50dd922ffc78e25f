//! Who may ask for what, and which requests are understood.

use super::*;

/// Makes a user whose group has these policies.
async fn user_with(peer: &Peer, policies: &str) {
    peer.add("user/group", json!({ "name": "own", "policy": policies })).await;
    peer.add("user", json!({ "name": "own", "group": "own", "password": "own secret" })).await;
}

/// What that user gets.
async fn get_as_own(peer: &Peer, path: &str) -> (u16, Value) {
    let url = format!("{}/rest/{path}", peer.lab.url());
    told(peer.http.get(url).basic_auth("own", Some("own secret")).send().await.unwrap()).await
}

#[tokio::test]
async fn request_without_a_user_is_401_and_asks_for_basic() {
    let peer = Peer::new().await;
    let response = peer.http.get(format!("{}/rest/system/identity", peer.lab.url())).send().await.unwrap();
    assert!(response.headers()["www-authenticate"].to_str().unwrap().starts_with("Basic"));
    assert_eq!(told(response).await, (401, json!({ "error": 401, "message": "Unauthorized" })));
}

#[tokio::test]
async fn wrong_password_is_401_and_leaves_a_line_in_the_log() {
    let mut peer = Peer::new().await;
    let right = std::mem::replace(&mut peer.user.1, "wrong".to_owned());
    assert_eq!(told(peer.request("GET", "system/identity").send().await.unwrap()).await.0, 401);
    peer.user.1 = right;
    let line = peer.row("log", "topics", "system,error,critical").await;
    assert!(line["message"].as_str().unwrap().starts_with("login failure for user admin"));
}

#[tokio::test]
async fn group_without_rest_api_is_401_and_without_api_500() {
    let peer = Peer::new().await;
    user_with(&peer, "read,api").await;
    assert_eq!(get_as_own(&peer, "system/identity").await.0, 401);
    let group = peer.row("user/group", "name", "own").await;
    peer.change("user/group", id(&group), json!({ "policy": "!api,rest-api" })).await;
    let (status, body) = get_as_own(&peer, "system/identity").await;
    assert_eq!((status, &body["detail"]), (500, &json!("std failure: not allowed (9)")));
}

#[tokio::test]
async fn reader_writes_nothing() {
    let mut peer = Peer::new().await;
    peer.user = Settings::default().reader;
    let (status, body) =
        peer.ask("PUT", "ip/firewall/address-list", json!({ "list": "a", "address": "10.0.0.1" })).await;
    assert_eq!((status, &body["detail"]), (500, &json!("not enough permissions (9)")));
    let rows = peer.rows("ip/firewall/address-list").await;
    // PATCH and DELETE hide the reason; the command behind them tells it.
    let path = format!("ip/firewall/address-list/{}", id(&rows[0]));
    let detail = peer.refused("PATCH", &path, json!({ "comment": "x" })).await;
    assert_eq!(detail, "missing or invalid resource identifier");
    let set = json!({ ".id": id(&rows[0]), "comment": "x" });
    assert_eq!(peer.ask("POST", "ip/firewall/address-list/set", set).await.0, 500);
    let ping = peer.ask("POST", "ping", json!({ "address": "192.168.88.10", "count": "1" })).await;
    assert_eq!(ping.0, 500);
}

#[tokio::test]
async fn secrets_are_not_shown_without_the_policy() {
    let mut peer = Peer::new().await;
    assert_eq!(peer.row("ppp/secret", "name", "staff").await["password"], "staff secret");
    assert!(peer.row("interface/wireguard", "name", "wireguard1").await["private-key"].is_string());
    peer.user = Settings::default().reader;
    assert!(peer.row("ppp/secret", "name", "staff").await.get("password").is_none());
    let wireguard = peer.row("interface/wireguard", "name", "wireguard1").await;
    assert!(wireguard.get("private-key").is_none() && wireguard["public-key"].is_string());
}

#[tokio::test]
async fn password_of_a_user_is_never_read() {
    let peer = Peer::new().await;
    let user = peer.row("user", "name", "admin").await;
    assert!(user.get("password").is_none());
    let limited = peer.get("user?name=admin&.proplist=password").await;
    assert_eq!(limited, json!([{ ".id": user[".id"] }]));
}

#[tokio::test]
async fn new_password_of_the_own_account_counts_from_the_next_request() {
    let mut peer = Peer::new().await;
    let user = peer.row("user", "name", "admin").await;
    peer.change("user", id(&user), json!({ "password": "another" })).await;
    assert_eq!(told(peer.request("GET", "system/identity").send().await.unwrap()).await.0, 401);
    peer.user.1 = "another".to_owned();
    peer.get("system/identity").await;
}

#[tokio::test]
async fn address_of_a_user_limits_where_requests_come_from() {
    let peer = Peer::new().await;
    user_with(&peer, "read,api,rest-api").await;
    assert_eq!(get_as_own(&peer, "system/identity").await.0, 200);
    let user = peer.row("user", "name", "own").await;
    peer.change("user", id(&user), json!({ "address": "10.0.0.0/8" })).await;
    assert_eq!(get_as_own(&peer, "system/identity").await.0, 401);
}

#[tokio::test]
async fn last_user_with_full_rights_stays() {
    let peer = Peer::new().await;
    let user = peer.row("user", "name", "admin").await;
    let detail = peer.refused("POST", "user/remove", json!({ ".id": id(&user) })).await;
    assert!(detail.starts_with("failure:"), "{detail}");
    peer.refused("PATCH", &format!("user/{}", id(&user)), json!({ "group": "read" })).await;
    assert_eq!(peer.row("user", "name", "admin").await["group"], "full");
}

#[tokio::test]
async fn group_shows_every_policy_and_a_mark_takes_one_away() {
    let peer = Peer::new().await;
    let group = peer.add("user/group", json!({ "name": "ops", "policy": "read,write,api,rest-api" })).await;
    let policy = group["policy"].as_str().unwrap();
    assert!(policy.starts_with("read,write,api,rest-api,!local"), "{policy}");
    let changed = peer.change("user/group", id(&group), json!({ "policy": "!write" })).await;
    let policy = changed["policy"].as_str().unwrap();
    assert!(policy.starts_with("read,api,rest-api,") && policy.contains("!write"), "{policy}");
    let built_in = peer.row("user/group", "name", "full").await;
    peer.refused("POST", "user/group/set", json!({ ".id": id(&built_in), "policy": "read" })).await;
}

#[tokio::test]
async fn each_login_stands_twice_and_cannot_be_removed() {
    let peer = Peer::new().await;
    let rows = peer.rows("user/active").await;
    let ways: Vec<&str> = rows.iter().filter_map(|row| row["via"].as_str()).collect();
    assert_eq!(ways, ["rest-api", "api"]);
    let detail = peer.refused("POST", "user/active/remove", json!({ ".id": id(&rows[0]) })).await;
    assert_eq!(detail, "action failed (6)");
}

#[tokio::test]
async fn body_needs_the_content_type_of_json() {
    let peer = Peer::new().await;
    let text = json!({ "name": "x" }).to_string();
    let request = peer.request("POST", "system/identity/set").header("content-type", "text/plain").body(text);
    assert_eq!(request.send().await.unwrap().status(), 415);
    assert_eq!(peer.get("system/identity").await["name"], "lab-router");
}

#[tokio::test]
async fn head_is_501_and_options_503() {
    let peer = Peer::new().await;
    assert_eq!(peer.request("HEAD", "ip/address").send().await.unwrap().status(), 501);
    assert_eq!(peer.request("OPTIONS", "ip/address").send().await.unwrap().status(), 503);
}

#[tokio::test]
async fn rest_that_is_switched_off_is_a_page() {
    let peer = Peer::new().await;
    peer.post("ip/service/webserver/set", json!({ "rest-plain": "no" })).await;
    let response = peer.request("GET", "system/identity").send().await.unwrap();
    assert_eq!(response.status(), 403);
    assert_eq!(response.headers()["content-type"], "text/html");
}
