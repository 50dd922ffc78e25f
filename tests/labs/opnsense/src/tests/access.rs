//! Who may call, and which requests are understood.

use super::*;

#[tokio::test]
async fn wrong_secret_gets_401() {
    let mut peer = Peer::new().await;
    peer.user.1 = "wrong".to_owned();
    let response = peer.request("GET", "core/system/status").send().await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(
        response.json::<Value>().await.unwrap(),
        json!({ "status": 401, "message": "Authentication Failed" })
    );
}

#[tokio::test]
async fn key_of_a_user_opens_only_the_pages_of_its_privileges() {
    let mut peer = Peer::new().await;
    let user =
        json!({ "user": { "name": "alias-editor", "priv": "page-firewall-alias-edit", "password": "x" } });
    peer.add("auth/user/add", user).await;
    let key = peer.post("auth/user/add_api_key/alias-editor", json!({})).await;
    peer.user = (key["key"].as_str().unwrap().to_owned(), key["secret"].as_str().unwrap().to_owned());
    assert_eq!(peer.rows("firewall/alias/search_item").await.len(), 6);
    let response = peer.send("firewall/filter/search_rule", &json!({})).await;
    assert_eq!(response.status(), 403);
    assert_eq!(response.json::<Value>().await.unwrap(), json!({ "status": 403, "message": "Forbidden" }));
}

#[tokio::test]
async fn reader_reads_and_every_save_is_an_error() {
    let mut peer = Peer::new().await;
    peer.user = Settings::default().reader;
    assert!(!peer.rows("firewall/filter/search_rule").await.is_empty());
    let response = peer.send("firewall/filter/add_rule", &rule("refused")).await;
    assert_eq!(response.status(), 500);
    assert_eq!(response.json::<Value>().await.unwrap()["errorLevel"], "error");
}

#[tokio::test]
async fn unknown_route_and_missing_path_value_are_404() {
    let peer = Peer::new().await;
    for path in
        ["firewall/filter_base/search_rule", "firewall/filter/nothing", "firewall/filter/move_rule_before/x"]
    {
        let response = peer.send(path, &json!({})).await;
        assert_eq!(response.status(), 404, "{path}");
        assert_eq!(response.json::<Value>().await.unwrap(), json!({ "errorMessage": "Endpoint not found" }));
    }
}

#[tokio::test]
async fn empty_json_body_is_refused_also_on_get() {
    let peer = Peer::new().await;
    for method in ["GET", "POST"] {
        let request =
            peer.request(method, "firewall/alias/get_item").header("content-type", "application/json");
        assert_eq!(request.send().await.unwrap().status(), 400, "{method}");
    }
}

#[tokio::test]
async fn body_of_another_type_is_no_fields() {
    let peer = Peer::new().await;
    let request = peer.request("POST", "firewall/filter/add_rule").header("content-type", "text/json");
    let response = request.body(rule("lost").to_string()).send().await.unwrap();
    assert_eq!(response.json::<Value>().await.unwrap(), json!({ "result": "failed" }));
}

#[tokio::test]
async fn camel_case_and_snake_case_are_the_same_route() {
    let peer = Peer::new().await;
    let snake = peer.get("firewall/alias/get_alias_u_u_i_d/web_servers").await;
    assert_eq!(peer.get("firewall/alias/getAliasUUID/web_servers").await, snake);
    assert!(snake["uuid"].is_string());
}

#[tokio::test]
async fn write_with_get_answers_200_and_does_nothing() {
    let peer = Peer::new().await;
    let before = peer.lab.lock().stored.clone();
    assert_eq!(peer.get("firewall/filter/add_rule").await, json!({ "result": "failed" }));
    assert_eq!(peer.get("firewall/filter/apply").await, json!({ "status": "failed" }));
    assert!(peer.lab.lock().stored == before);
}

#[tokio::test]
async fn form_body_nests_by_brackets() {
    let peer = Peer::new().await;
    let fields = [("rule[interface]", "lan"), ("rule[description]", "by form")];
    let response = peer.request("POST", "firewall/filter/add_rule").form(&fields).send().await.unwrap();
    assert_eq!(response.json::<Value>().await.unwrap()["result"], "saved");
}
