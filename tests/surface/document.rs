//! The document is complete, closed and true of itself.

use std::collections::BTreeSet;

use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use crate::support::{Answer, Contract, Server};

async fn start() -> (Server, std::sync::Arc<Contract>) {
    let server = Server::start(crate::support::Database::sqlite()).await;
    let contract = server.contract();
    (server, contract)
}

#[tokio::test]
async fn the_served_document_is_the_table_and_every_reference_in_it_is_defined() {
    let (server, contract) = start().await;
    let document = server.nobody().get("/openapi.json").await.expect_status(200).body;
    assert_eq!(&document, contract.document());
    assert_eq!(document["openapi"], "3.1.0");
    let mut references = Vec::new();
    collect_references(&document, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference.strip_prefix('#').expect("references are local");
        assert!(document.pointer(pointer).is_some(), "{reference} is defined");
    }
}

fn collect_references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                found.push(reference.clone());
            }
            fields.values().for_each(|value| collect_references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_references(value, found)),
        _ => {}
    }
}

#[tokio::test]
async fn every_operation_says_all_that_it_answers() {
    let (_server, contract) = start().await;
    let mut ids = BTreeSet::new();
    for operation in contract.operations() {
        let (name, definition) = (format!("{} {}", operation.method, operation.path), &operation.definition);
        let id = definition["operationId"].as_str().expect("an operation has an id");
        assert!(ids.insert(id.to_owned()), "{name}: operationId '{id}' is used twice");
        for field in ["summary", "description"] {
            assert!(definition[field].as_str().is_some_and(|text| !text.is_empty()), "{name} has a {field}");
        }
        let responses = definition["responses"].as_object().expect("an operation has responses");
        assert!(!responses.contains_key("default"), "{name} names its statuses");
        let has = |status: &str| responses.contains_key(status);
        assert!(has("429") && has("500") && has("503"), "{name}: {:?}", responses.keys());
        let proves_app =
            ["/oauth2/token", "/oauth2/revoke", "/oauth2/introspect"].contains(&operation.path.as_str());
        assert_eq!(has("401"), operation.access != "public" || has("423") || proves_app, "{name}");
        assert_eq!(has("403"), operation.access != "public" || operation.method != "GET", "{name}");
        assert!(has("413"), "{name}");
        assert!(!operation.parameters().iter().any(|_| !(has("404") && has("422"))), "{name}");
        assert_eq!(has("412"), definition["parameters"].to_string().contains("IfMatch"), "{name}");
        for (status, response) in responses {
            let response = contract.resolve(response);
            let content = response["content"].as_object();
            assert_eq!(content.is_none(), status == "204", "{name}: {status} has a body unless it is 204");
            for media in content.into_iter().flat_map(serde_json::Map::values) {
                let is_said = media["schema"] != json!({});
                assert!(is_said, "{name}: {status} says what it answers");
            }
        }
    }
}

#[tokio::test]
async fn request_bodies_are_closed() {
    let (_server, contract) = start().await;
    for operation in contract.operations() {
        let body = &operation.definition["requestBody"]["content"]["application/json"]["schema"];
        if body.is_null() {
            continue;
        }
        let schema = contract.resolve(body);
        assert_eq!(schema["additionalProperties"], false, "{} {}", operation.method, operation.path);
    }
}

/// An answer as the server could have given it.
fn answer(status: u16, body: &Value) -> Answer {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("x-xss-protection", "1; mode=block"),
        ("referrer-policy", "strict-origin-when-cross-origin"),
        ("cache-control", "no-store, no-cache, must-revalidate"),
        ("pragma", "no-cache"),
        ("content-security-policy", "default-src 'self'"),
        ("permissions-policy", "camera=()"),
        ("x-request-id", "r"),
        ("x-response-time", "1.000"),
        ("content-type", "application/json"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Answer { status, headers, text: body.to_string(), body: body.clone() }
}

#[tokio::test]
async fn an_answer_that_is_not_documented_is_noticed() {
    let (_server, contract) = start().await;
    let not_found =
        json!({ "error": { "code": 404, "message": "m", "request_id": "r", "type": "not_found" } });
    let site = answer(404, &not_found);
    let path = "/sites/01900000-0000-7000-8000-000000000000";
    contract.check("GET", path, &site);
    let complains = |method: &str, path: &str, answer: &Answer| {
        let check = std::panic::AssertUnwindSafe(|| contract.check(method, path, answer));
        std::panic::catch_unwind(check).is_err()
    };
    let is_wrong = |change: &dyn Fn(&mut Answer)| {
        let mut wrong = answer(404, &not_found);
        change(&mut wrong);
        complains("GET", path, &wrong)
    };
    assert!(is_wrong(&|answer| answer.status = 418), "a status");
    assert!(is_wrong(&|answer| answer.body["error"]["surprise"] = json!(1)), "a field");
    assert!(is_wrong(&|answer| answer.body["error"]["type"] = json!(1)), "a type");
    assert!(is_wrong(&|answer| answer.body["error"]["request_id"] = json!("other")), "another request");
    assert!(is_wrong(&|answer| drop(answer.headers.remove("x-request-id"))), "a missing header");
    assert!(
        is_wrong(&|answer| drop(
            answer.headers.insert("content-type", HeaderValue::from_static("text/html"))
        )),
        "a content type"
    );
    assert!(complains("GET", "/nowhere", &answer(200, &json!({}))), "an operation");
    let status = json!({ "status": "healthy", "degraded_subsystems": [] });
    contract.check("GET", "/health", &answer(200, &status));
    assert!(complains("GET", "/health", &answer(200, &json!({ "status": 1 }))), "a body");
}
