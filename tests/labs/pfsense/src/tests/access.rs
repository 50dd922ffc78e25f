//! Methods of authentication, privileges and gates.

use super::*;

async fn status(request: RequestBuilder) -> u16 {
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn wrong_password_gets_401_with_a_challenge() {
    let mut peer = Peer::new().await;
    peer.user.1 = "wrong".to_owned();
    let response = peer.request("GET", "/system/version").send().await.unwrap();
    assert_eq!(response.status(), 401);
    assert!(response.headers().contains_key("www-authenticate"));
    assert_eq!(response.json::<Value>().await.unwrap()["response_id"], "AUTH_AUTHENTICATION_FAILED");
}

#[tokio::test]
async fn key_works_only_where_the_method_is_switched_on() {
    for (methods, expected) in [(vec!["BasicAuth"], 401), (vec!["BasicAuth", "KeyAuth"], 200)] {
        let auth_methods = methods.into_iter().map(str::to_owned).collect();
        let peer = Peer::of(Settings { auth_methods, ..Settings::default() }).await;
        let request = peer.bare("GET", "/system/version").header("x-api-key", "lab-api-key");
        assert_eq!(status(request).await, expected);
    }
}

#[tokio::test]
async fn new_key_is_shown_once_and_belongs_to_its_user() {
    let mut peer = Peer::new().await;
    peer.patch("/system/restapi/settings", json!({ "auth_methods": ["BasicAuth", "KeyAuth"] })).await;
    let made = peer.post("/auth/key", json!({ "descr": "second", "length_bytes": 16 })).await;
    let key = made["key"].as_str().unwrap().to_owned();
    assert_eq!((key.len(), &made["username"]), (32, &json!("admin")));
    assert_eq!(status(peer.bare("GET", "/system/version").header("x-api-key", &key)).await, 200);
    let listed = peer.get("/auth/keys").await;
    assert!(listed[1]["key"].is_null() && listed[1].get("hash").is_none(), "{listed}");
    // The method is asked for by the request, and a wrong key is not mended by a right password.
    peer.user.1 = "pfsense".to_owned();
    let both = peer.request("POST", "/auth/key").header("x-api-key", "wrong").json(&json!({ "descr": "x" }));
    assert_eq!(status(both).await, 200);
}

#[tokio::test]
async fn token_ends_after_its_time() {
    let auth_methods = vec!["BasicAuth".to_owned(), "JWTAuth".to_owned()];
    let peer = Peer::of(Settings { auth_methods, ..Settings::default() }).await;
    let token = peer.post("/auth/jwt", json!({})).await["token"].as_str().unwrap().to_owned();
    let call = || peer.bare("GET", "/system/version").bearer_auth(&token);
    assert_eq!(status(call()).await, 200);
    peer.lab.advance(Duration::from_mins(59));
    assert_eq!(status(call()).await, 200);
    peer.lab.advance(Duration::from_mins(2));
    assert_eq!(status(call()).await, 401);
    let fresh = peer.post("/auth/jwt", json!({})).await["token"].as_str().unwrap().to_owned();
    peer.lab.end_sessions();
    assert_eq!(status(peer.bare("GET", "/system/version").bearer_auth(&fresh)).await, 401);
}

#[tokio::test]
async fn privilege_opens_one_route_and_method() {
    let mut peer = Peer::new().await;
    let privileges = ["api-v2-firewall-alias-get", "api-v2-firewall-aliases-get"];
    peer.post("/user", json!({ "name": "alias-reader", "password": "x", "priv": privileges })).await;
    peer.user = ("alias-reader".to_owned(), "x".to_owned());
    peer.get("/firewall/aliases").await;
    assert_eq!(
        peer.refusal("DELETE", "/firewall/alias?id=0", Value::Null).await,
        refused(403, "AUTH_AUTHORIZATION_FAILED")
    );
    assert_eq!(
        peer.refusal("GET", "/firewall/rules", Value::Null).await,
        refused(403, "AUTH_AUTHORIZATION_FAILED")
    );
}

#[tokio::test]
async fn reader_reads_and_writes_nothing() {
    let mut peer = Peer::new().await;
    peer.user = Settings::default().reader;
    assert_eq!(peer.get("/firewall/rules").await.as_array().unwrap().len(), 4);
    assert_eq!(peer.refusal("POST", "/firewall/rule", rule("no")).await.0, 403);
}

#[tokio::test]
async fn disabled_user_and_unknown_privilege_are_refused() {
    let mut peer = Peer::new().await;
    let user = json!({ "name": "gone", "password": "x", "disabled": true, "priv": ["page-all"] });
    peer.post("/user", user).await;
    let user = json!({ "name": "odd", "password": "x", "priv": ["api-v2-nothing-get"] });
    assert_eq!(peer.refusal("POST", "/user", user).await, refused(404, "USER_PRIV_NOT_FOUND"));
    peer.user = ("gone".to_owned(), "x".to_owned());
    assert_eq!(peer.refusal("GET", "/system/version", Value::Null).await.0, 401);
}

#[tokio::test]
async fn read_only_mode_lets_only_get_through_and_cannot_be_left() {
    let peer = Peer::new().await;
    peer.patch("/system/restapi/settings", json!({ "read_only": true })).await;
    peer.get("/firewall/rules").await;
    let back = json!({ "read_only": false });
    assert_eq!(
        peer.refusal("PATCH", "/system/restapi/settings", back).await,
        refused(405, "ENDPOINT_METHOD_NOT_ALLOWED_IN_READ_ONLY_MODE")
    );
}

#[tokio::test]
async fn disabled_api_answers_503_before_it_looks_at_the_client() {
    let peer = Peer::new().await;
    peer.patch("/system/restapi/settings", json!({ "enabled": false })).await;
    let response = peer.bare("GET", "/firewall/rules").send().await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "5");
    assert_eq!(response.json::<Value>().await.unwrap()["response_id"], "ENDPOINT_REST_API_IS_NOT_ENABLED");
}

#[tokio::test]
async fn access_list_and_interfaces_are_gates() {
    let peer = Peer::new().await;
    let deny = json!({ "network": "192.168.1.0/24", "type": "deny", "weight": 0, "descr": "own network" });
    let made = peer.post("/system/restapi/access_list/entry", deny).await;
    // The list is sorted by weight, so the new entry is the first one.
    assert_eq!(made["id"], 0);
    assert_eq!(
        peer.refusal("GET", "/system/version", Value::Null).await,
        refused(403, "ENDPOINT_CLIENT_NOT_ALLOWED_BY_ACL")
    );
    let peer = Peer::new().await;
    peer.patch("/system/restapi/settings", json!({ "allowed_interfaces": ["GUEST"] })).await;
    assert_eq!(
        peer.refusal("GET", "/system/version", Value::Null).await,
        refused(403, "ENDPOINT_INTERFACE_NOT_ALLOWED")
    );
}

#[tokio::test]
async fn many_failed_logins_drop_the_packets_of_the_client() {
    let mut peer = Peer::of(Settings { login_failures_max: Some(3), ..Settings::default() }).await;
    peer.http = Client::builder().timeout(Duration::from_millis(300)).build().unwrap();
    let wrong = |peer: &Peer| peer.bare("GET", "/system/version").basic_auth("admin", Some("wrong")).send();
    for _ in 0..2 {
        assert_eq!(wrong(&peer).await.unwrap().status(), 401);
    }
    assert!(wrong(&peer).await.is_err());
    assert!(peer.request("GET", "/system/version").send().await.is_err());
    peer.lab.advance(Duration::from_mins(2));
    assert_eq!(status(peer.request("GET", "/system/version")).await, 200);
}

#[tokio::test]
async fn own_user_can_be_deleted_and_the_system_user_cannot() {
    let peer = Peer::new().await;
    assert_eq!(
        peer.refusal("DELETE", "/user?id=0", Value::Null).await,
        refused(400, "USER_WITH_SYSTEM_SCOPE_CANNOT_BE_DELETED")
    );
    assert_eq!(
        peer.refusal("DELETE", "/user/group?id=0", Value::Null).await,
        refused(403, "MODEL_CANNOT_DELETE_PROTECTED_OBJECT")
    );
    assert_eq!(peer.delete("/user?id=1").await["name"], "reader");
}
