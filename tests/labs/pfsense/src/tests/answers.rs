//! The envelope, content types, and which fields an answer has.

use super::*;

#[tokio::test]
async fn create_answers_200_with_the_object_and_delete_with_what_was_deleted() {
    let peer = Peer::new().await;
    let response = peer.send("POST", "/firewall/rule", &rule("new")).await;
    assert_eq!(response.status(), 200);
    let answer: Value = response.json().await.unwrap();
    assert_eq!((&answer["status"], &answer["message"]), (&json!("ok"), &json!("")));
    assert!(answer.get("_links").is_none());
    assert_eq!(answer["data"]["id"], 4);
    assert_eq!(peer.delete("/firewall/rule?id=4").await["descr"], "new");
}

#[tokio::test]
async fn refusal_names_only_the_first_field_between_backticks() {
    let peer = Peer::new().await;
    let response = peer.send("POST", "/firewall/rule", &json!({ "descr": "nothing else" })).await;
    let answer: Value = response.json().await.unwrap();
    assert_eq!(
        answer,
        json!({ "code": 400, "status": "bad request", "response_id": "FIELD_IS_REQUIRED",
        "message": "Field `type` is required.", "data": [] })
    );
}

#[tokio::test]
async fn quotes_in_messages_are_backticks() {
    let peer = Peer::new().await;
    let answer: Value = peer.send("GET", "/firewall/rule?id=99", &Value::Null).await.json().await.unwrap();
    assert_eq!(answer["message"], "Object with ID `99` does not exist.");
}

#[tokio::test]
async fn object_without_fields_is_an_empty_list() {
    let peer = Peer::new().await;
    assert_eq!(peer.post("/diagnostics/reboot", json!({})).await, json!([]));
}

#[tokio::test]
async fn wrong_verb_accept_and_content_type_have_their_codes() {
    let peer = Peer::new().await;
    assert_eq!(
        peer.refusal("PUT", "/firewall/rule", json!([])).await,
        refused(405, "ENDPOINT_METHOD_NOT_ALLOWED")
    );
    let accept = |kind: &str| peer.request("GET", "/firewall/rules").header("accept", kind.to_owned()).send();
    for (kind, code) in [
        ("application/json", 200),
        ("*/*", 200),
        ("application/json; charset=utf-8", 200),
        ("application/json, text/plain", 406),
        ("text/html", 406),
    ] {
        assert_eq!(accept(kind).await.unwrap().status(), code, "{kind}");
    }
    let odd = peer.request("POST", "/firewall/rule").header("content-type", "text/xml").body("<rule/>");
    let odd = odd.send().await.unwrap();
    assert_eq!(odd.status(), 415);
    assert_eq!(odd.json::<Value>().await.unwrap()["response_id"], "CONTENT_HANDLER_DECODE_NOT_FOUND");
    let broken = peer.request("POST", "/firewall/rule").header("content-type", "application/json").body("{");
    let broken: Value = broken.send().await.unwrap().json().await.unwrap();
    assert_eq!(broken["response_id"], "JSON_CONTENT_HANDLER_COULD_NOT_DECODE_JSON");
}

#[tokio::test]
async fn file_that_is_none_is_refused_after_the_write() {
    let peer = Peer::new().await;
    let request = peer.request("POST", "/firewall/rule").header("accept", "application/octet-stream");
    let response = request.json(&rule("stored all the same")).send().await.unwrap();
    assert_eq!(response.status(), 406);
    assert!(peer.column("/firewall/rules", "descr").await.contains(&json!("stored all the same")));
}

#[tokio::test]
async fn json_content_type_on_get_hides_the_query() {
    let peer = Peer::new().await;
    let get = |path: &str| peer.request("GET", path).header("content-type", "application/json").send();
    let one: Value = get("/firewall/rule?id=1").await.unwrap().json().await.unwrap();
    assert_eq!(one["response_id"], "MODEL_REQUIRES_ID");
    let filtered: Value =
        get("/firewall/rules?descr=guests%20stay%20out").await.unwrap().json().await.unwrap();
    assert_eq!(filtered["data"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn secrets_are_absent_until_the_firewall_is_told_to_show_them() {
    let peer = Peer::new().await;
    assert!(peer.get("/user?id=0").await.get("password").is_none());
    assert!(peer.get("/vpn/ipsec/phase1?id=0").await.get("pre_shared_key").is_none());
    let settings = json!({ "override_sensitive_fields": ["IPsecPhase1:pre_shared_key"] });
    peer.patch("/system/restapi/settings", settings).await;
    assert_eq!(peer.get("/vpn/ipsec/phase1?id=0").await["pre_shared_key"], "shared-with-the-branch");
    assert!(peer.get("/user?id=0").await.get("password").is_none());
    peer.patch("/system/restapi/settings", json!({ "expose_sensitive_fields": true })).await;
    assert!(peer.get("/user?id=0").await["password"].is_string());
}

#[tokio::test]
async fn links_are_told_where_they_are_switched_on() {
    let peer = Peer::new().await;
    peer.patch("/system/restapi/settings", json!({ "hateoas": true })).await;
    let answer: Value =
        peer.send("GET", "/firewall/rules?limit=2&offset=2", &Value::Null).await.json().await.unwrap();
    assert_eq!(answer["_links"]["next"]["href"], "/api/v2/firewall/rules?offset=4&limit=2");
    assert_eq!(answer["_links"]["prev"]["href"], "/api/v2/firewall/rules?offset=0&limit=2");
    assert_eq!(answer["data"][0]["_links"]["self"]["href"], "/api/v2/firewall/rule?id=2");
}

#[tokio::test]
async fn options_tells_the_methods() {
    let peer = Peer::new().await;
    let response = peer.bare("OPTIONS", "/firewall/aliases").send().await.unwrap();
    assert_eq!(response.headers()["allow"], "GET, PUT, DELETE");
}

#[tokio::test]
async fn what_is_no_route_is_a_page() {
    let peer = Peer::new().await;
    let missing = peer.request("GET", "/firewall/nothing").send().await.unwrap();
    assert_eq!(
        (missing.status().as_u16(), missing.headers()["content-type"].to_str().unwrap()),
        (404, "text/html")
    );
    let root = peer.http.get(peer.lab.url()).send().await.unwrap();
    assert_eq!(root.status(), 200);
    assert!(root.text().await.unwrap().contains("usernamefld"));
}

#[tokio::test]
async fn graphql_answers_200_with_errors() {
    let peer = Peer::new().await;
    let response = peer.send("POST", "/graphql", &json!({ "query": "{ queryNothing { id } }" })).await;
    assert_eq!(response.status(), 200);
    let answer: Value = response.json().await.unwrap();
    assert!(answer["errors"][0]["message"].as_str().unwrap().contains("queryNothing"));
}
