//! What answers mean, one by one.

use heddle_sdk::crud::{Purpose, Vendor, Written};
use heddle_sdk::testing::json_response;
use heddle_sdk::{Effect, Fault, FaultExt, Response};
use serde_json::{Value, json};

use crate::Vendor as RouterOs;

const WRITES: [Purpose; 4] = [Purpose::Create, Purpose::Update, Purpose::Delete, Purpose::Act];

fn refusal(status: u16, detail: &str) -> Response {
    json_response(status, &json!({ "error": status, "message": "Bad Request", "detail": detail }))
}

fn body(status: u16, text: &str) -> Response {
    Response { body: text.as_bytes().to_vec(), ..json_response(status, &Value::Null) }
}

fn is_open(fault: &Fault) -> bool {
    matches!(fault.info().effect, Effect::Possible)
}

#[test]
fn every_success_is_one() {
    let written = |purpose, response: &Response| RouterOs.written(purpose, response);
    for (purpose, response) in [
        (Purpose::Create, json_response(201, &json!({ ".id": "*1C", "name": "x" }))),
        (Purpose::Create, json_response(200, &json!({ ".id": "*0" }))),
        (Purpose::Update, json_response(200, &json!([]))),
        (Purpose::Delete, json_response(200, &json!([]))),
        (Purpose::Delete, body(204, "")),
        (Purpose::Delete, json_response(404, &json!({ "error": 404, "message": "Not Found" }))),
        (Purpose::Act, json_response(200, &json!({ "ret": "*126" }))),
        (
            Purpose::Act,
            json_response(200, &json!([{ ".section": "1", "status": "New version is available" }])),
        ),
    ] {
        assert!(matches!(written(purpose, &response), Ok(Written::Done)), "{purpose:?} {response:?}");
    }
}

#[test]
fn answer_without_a_proof_leaves_the_effect_open() {
    for (purpose, response) in [
        (Purpose::Create, json_response(201, &json!({ "name": "x" }))),
        (Purpose::Create, json_response(201, &json!({ ".id": "7" }))),
        (Purpose::Create, json_response(200, &json!([]))),
        (Purpose::Update, json_response(200, &json!([{ "status": "x" }]))),
        (Purpose::Act, json_response(200, &json!([{ "status": "failed" }]))),
        (
            Purpose::Act,
            json_response(200, &json!([{ "status": "finding" }, { "status": "ERROR: no network" }])),
        ),
        (Purpose::Update, body(200, "<html>")),
        (Purpose::Create, body(200, "")),
    ] {
        let fault = RouterOs.written(purpose, &response).unwrap_err();
        assert!(is_open(&fault), "{purpose:?} {response:?}: {fault:?}");
    }
}

#[test]
fn reasons_are_told_apart() {
    let fault =
        |status, detail: &str| RouterOs.written(Purpose::Update, &refusal(status, detail)).unwrap_err();
    let kind = |fault: &Fault| format!("{fault:?}").split(['(', ':']).nth(2).unwrap_or_default().to_owned();
    for (status, detail, is, open) in [
        (401, "", "Authentication", false),
        (404, "", "NotFound", false),
        (415, "", "Invalid", false),
        (500, "std failure: not allowed (9)", "Denied", false),
        (500, "not enough permissions (9)", "Denied", false),
        (400, "no such command or directory (wifi)", "Unsupported", false),
        (400, "no such command", "Unsupported", false),
        (400, "failure: already have such entry", "Conflict", false),
        (400, "failure: entry already exists", "Conflict", false),
        (400, "failure: already have static lease for this client", "Conflict", false),
        (400, "unknown parameter wifi", "Invalid", false),
        (400, "input does not match any value of interface", "Invalid", false),
        (400, "value of vlan-id out of range (1..4094)", "Invalid", false),
        (400, "missing =interface=", "Invalid", false),
        (400, "failure: can not remove interface", "Invalid", true),
        (400, "missing or invalid resource identifier", "Invalid", true),
        (400, "Session closed", "Timeout", true),
        (500, "", "Generic", true),
        (503, "", "NotReady", true),
    ] {
        let found = fault(status, detail);
        assert_eq!((kind(&found).as_str(), is_open(&found)), (is, open), "{status} {detail}: {found:?}");
    }
}

#[test]
fn refused_value_names_its_field() {
    for (detail, pointer) in [
        ("unknown parameter wifi", "/wifi"),
        ("unknown parameter !wifi", "/wifi"),
        ("input does not match any value of interface", "/interface"),
        ("invalid value for argument address", "/address"),
        ("value of vlan-id out of range (1..4094)", "/vlan-id"),
        ("missing =list=", "/list"),
    ] {
        let fault = RouterOs.written(Purpose::Create, &refusal(400, detail)).unwrap_err();
        assert_eq!(fault.info().fields[0].pointer, pointer, "{detail}");
    }
}

#[test]
fn page_says_that_rest_is_off_or_the_router_is_starting() {
    let off = RouterOs.content(&body(403, "<html><body>Error 403: Forbidden</body></html>")).unwrap_err();
    assert!(matches!(&off, Fault::Denied(info) if info.message.contains("ip/service/webserver")), "{off:?}");
    assert!(matches!(RouterOs.content(&body(200, "<html>")), Err(Fault::NotReady(_))));
}

#[test]
fn control_characters_in_texts_are_read() {
    let raw = "[{\".id\":\"*1\",\"source\":\"line one\r\nline\ttwo\u{1}\"}]";
    let rows = RouterOs.content(&body(200, raw)).unwrap();
    assert_eq!(rows[0]["source"], "line one  line two ");
}

#[test]
fn what_is_denied_to_a_write_changed_nothing() {
    for purpose in WRITES {
        let fault = RouterOs.written(purpose, &refusal(500, "not enough permissions (9)")).unwrap_err();
        assert!(matches!(fault.info().effect, Effect::None), "{purpose:?}");
    }
}
