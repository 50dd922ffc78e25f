//! What answers mean, one by one.

use heddle_sdk::crud::{Purpose, Vendor, Written};
use heddle_sdk::testing::json_response;
use heddle_sdk::{Effect, Fault, FaultExt, Header, Response};
use serde_json::json;

use crate::Vendor as Opnsense;

fn page(status: u16) -> Response {
    Response { status, reason: None, headers: Vec::new(), body: b"<!doctype html>".to_vec(), elapsed_ms: 1 }
}

#[test]
fn words_of_success_are_told_from_words_of_failure() {
    let judged = |purpose, body| Opnsense.written(purpose, &json_response(200, &body));
    judged(Purpose::Update, json!({ "status": "ok", "status_msg": "" })).unwrap();
    judged(Purpose::Create, json!({ "result": "saved", "uuid": "x" })).unwrap();
    judged(Purpose::Delete, json!({ "result": "deleted" })).unwrap();
    judged(Purpose::Delete, json!({ "result": "not found" })).unwrap();
    judged(Purpose::Activate, json!({ "status": "OK\n\n" })).unwrap();
    judged(Purpose::Activate, json!({ "result": "ok" })).unwrap();
    let unread = judged(Purpose::Update, json!({ "result": "failed" })).unwrap_err();
    assert!(matches!(unread.info().effect, Effect::None));
    let reload = judged(Purpose::Activate, json!({ "status": "error reloading shaper (1)" })).unwrap_err();
    assert!(matches!(reload.info().effect, Effect::Possible));
    judged(Purpose::Update, json!({ "message": "error" })).unwrap_err();
}

#[test]
fn words_of_actions_are_told_apart() {
    let acted = |body| Opnsense.written(Purpose::Act, &json_response(200, &body));
    for good in [
        json!({ "response": "OK\n\n" }),
        json!({ "status": "reverted" }),
        json!({ "message": "found" }),
        json!({ "sessionId": "x", "clientState": "AUTHORIZED" }),
        json!({ "terminateCause": "Admin-Reset", "sessionId": "x" }),
        json!({ "name": "pages" }),
        json!({ "results": [{ "mac": "x", "status": "OK" }] }),
        json!({ "status": "5f000000-0000-4000-8000-000000000001" }),
    ] {
        assert!(matches!(acted(good.clone()), Ok(Written::Done)), "{good}");
    }
    for bad in [
        json!({ "status": "failed" }),
        json!({ "message": "error" }),
        json!({ "name": "pages", "error": "no archive" }),
        json!({ "name": "pages", "details": "none" }),
        json!({ "results": [{ "mac": "x", "status": "error" }] }),
        json!({ "results": [], "status": "failed" }),
        json!({ "status": "ok", "msg_uuid": "" }),
        json!({ "status": "ok", "msg_uuid": null }),
        json!({ "status": "ok", "inserted": 0, "updated": 0, "validations": [{ "sequence": 1 }] }),
        json!("192.0.2.1 was not deleted"),
        json!([]),
    ] {
        let fault = acted(bad.clone()).unwrap_err();
        assert!(matches!(fault.info().effect, Effect::Possible), "{bad}");
    }
    let busy = acted(json!({ "status": "failure", "status_msg": "another job runs" })).unwrap_err();
    assert!(matches!(busy.info().effect, Effect::None));
    assert!(busy.info().message.contains("another job runs"));
}

#[test]
fn answer_without_a_proof_leaves_the_effect_open() {
    let html = Header { name: "content-type".to_owned(), value: b"text/html; charset=UTF-8".to_vec() };
    let empty = Response { body: Vec::new(), headers: vec![html], ..page(200) };
    let bare = Response { body: Vec::new(), ..page(200) };
    let mut answers = vec![empty, bare, page(201), page(204), page(408)];
    let unexpected = json!({ "errorMessage": "Unexpected error, check log for details" });
    let bodies = [json!({}), json!([]), json!(null), json!({ "result": "perhaps" }), unexpected];
    answers.extend(bodies.map(|body| json_response(200, &body)));
    for purpose in [Purpose::Create, Purpose::Update, Purpose::Delete, Purpose::Activate, Purpose::Act] {
        for answer in &answers {
            let fault = Opnsense.written(purpose, answer).unwrap_err();
            assert!(matches!(fault.info().effect, Effect::Possible), "{answer:?}: {fault:?}");
        }
    }
}

#[test]
fn rows_that_a_file_lost_are_a_warning() {
    let body = json!({ "status": "ok", "inserted": 1, "updated": 0, "validations": [
        { "sequence": 1, "field": "name", "message": "is needed" }
    ] });
    let written = Opnsense.written(Purpose::Act, &json_response(200, &body)).unwrap();
    let Written::Warned(warnings) = written else { panic!("{written:?}") };
    assert_eq!(warnings, ["row 1 was dropped: name: is needed"]);
}

#[test]
fn validations_are_fields_of_a_fault() {
    let body = json!({ "result": "failed", "validations": { "rule.source.network": ["bad", "worse"] } });
    let fault = Opnsense.written(Purpose::Update, &json_response(200, &body)).unwrap_err();
    assert!(matches!(fault, Fault::Invalid(_)));
    let field = &fault.info().fields[0];
    assert_eq!((field.pointer.as_str(), field.message.as_str()), ("/source.network", "bad; worse"));
}

#[test]
fn statuses_are_told_apart() {
    let read = |response: &Response| Opnsense.content(response).unwrap_err();
    assert!(matches!(read(&json_response(401, &json!({ "status": 401 }))), Fault::Authentication(_)));
    assert!(matches!(read(&json_response(403, &json!({ "status": 403 }))), Fault::Denied(_)));
    assert!(matches!(read(&json_response(404, &json!({}))), Fault::Unsupported(_)));
    let syntax = json!({ "status": 400, "message": "Invalid JSON syntax" });
    assert!(read(&json_response(400, &syntax)).info().message.contains("Invalid JSON syntax"));
    assert!(matches!(read(&page(200)), Fault::NotReady(_)));
    assert!(matches!(read(&page(503)), Fault::NotReady(_)));
    assert!(matches!(read(&page(500)), Fault::Generic(_)));
}

#[test]
fn refusal_of_a_rule_is_plain_text_and_changed_nothing() {
    let body =
        json!({ "errorMessage": "in use by &lt;lan&gt;", "errorTitle": "Alias", "errorLevel": "error" });
    let fault = Opnsense.written(Purpose::Delete, &json_response(500, &body)).unwrap_err();
    assert!(matches!(&fault, Fault::Invalid(info) if matches!(info.effect, Effect::None)));
    assert_eq!(fault.info().message, "the firewall refuses: Alias: in use by <lan>");
    let warned = json!({ "errorMessage": "no", "errorTitle": "Move", "errorLevel": "warning" });
    Opnsense.content(&json_response(200, &warned)).unwrap_err();
    let broken = Opnsense.written(Purpose::Update, &page(500)).unwrap_err();
    assert!(matches!(broken.info().effect, Effect::Possible));
}
