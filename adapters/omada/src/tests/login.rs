//! How a token comes about, and which answers say that it is over.

use serde_json::{Value, json};

use crate::answer::SESSION;

fn session() -> Value {
    let manifest: Value = serde_json::from_str(include_str!("../../manifest.json")).unwrap();
    manifest["auth"][SESSION].clone()
}

/// A token for refreshing serves one client once; the application's own secret serves all of them at any time.
#[test]
fn token_is_asked_for_by_the_application_alone() {
    let session = session();
    let request = &session["login"][1]["request"];
    assert_eq!(request["path"], "/openapi/authorize/token?grant_type=client_credentials");
    let names: Vec<&String> = request["json"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["omadacId", "client_id", "client_secret"]);
    assert!(session.get("renew").is_none() && session.get("logout").is_none());
}

/// A call in place of a login: a wrong scheme and a token that is over look the same, so that it is tried once.
#[test]
fn token_that_is_over_is_told_from_an_application_that_is_refused() {
    let session = session();
    assert_eq!(session["expired"], json!([{ "json": { "/errorCode": [-44112, -44113, -44116] } }]));
    assert_eq!(session["expired-before-effect"], true);
    let denied = session["login"][1]["denied"]["json"]["/errorCode"].as_array().unwrap();
    for code in [-30109, -44106, -44116] {
        assert!(denied.contains(&json!(code)), "{code}");
    }
    assert_eq!(session["login"][1]["expect"], json!({ "json": { "/errorCode": [0] } }));
}

#[test]
fn life_of_a_token_is_what_its_answer_says() {
    let session = session();
    assert_eq!(session["ttl-from"], json!({ "from": { "json": "/result/expiresIn" }, "unit": "seconds" }));
    assert_eq!(session["ttl-s"], 7_200);
}
