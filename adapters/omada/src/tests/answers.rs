//! What answers mean, one by one.

use heddle_sdk::crud::{Purpose, Vendor, Written};
use heddle_sdk::testing::json_response;
use heddle_sdk::{Effect, Fault, FaultExt, Response};
use serde_json::{Value, json};

use crate::Vendor as Omada;

fn page(status: u16) -> Response {
    Response { status, reason: None, headers: Vec::new(), body: b"<!doctype html>".to_vec(), elapsed_ms: 1 }
}

fn code(code: i64) -> Response {
    json_response(200, &json!({ "errorCode": code, "msg": "What it says." }))
}

fn word(fault: &Fault) -> &'static str {
    match fault {
        Fault::Connection(_) => "connection",
        Fault::Authentication(_) => "authentication",
        Fault::Denied(_) => "denied",
        Fault::Timeout(_) => "timeout",
        Fault::NotFound(_) => "not-found",
        Fault::RateLimit(_) => "rate-limit",
        Fault::Busy(_) => "busy",
        Fault::NotReady(_) => "not-ready",
        Fault::Invalid(_) => "invalid",
        Fault::StateMoved(_) => "state-moved",
        Fault::Conflict(_) => "conflict",
        Fault::Unsupported(_) => "unsupported",
        Fault::Generic(_) => "generic",
    }
}

#[test]
fn envelope_decides_and_not_the_status() {
    let good = json!({ "errorCode": 0, "msg": "Success.", "result": { "id": "1" } });
    for status in [200, 401, 500] {
        assert_eq!(Omada.content(&json_response(status, &good)).unwrap(), json!({ "id": "1" }));
    }
    for result in [json!({}), json!(""), Value::Null, json!("66a0")] {
        let answer = json_response(200, &json!({ "errorCode": 0, "result": result }));
        assert!(matches!(Omada.written(Purpose::Update, &answer), Ok(Written::Done)));
    }
    let none = json_response(200, &json!({ "errorCode": 0, "msg": "Success." }));
    assert_eq!(Omada.content(&none).unwrap(), Value::Null);
}

#[test]
fn every_code_is_a_fault_of_its_kind() {
    let table = [
        ("invalid", &[-1001, -33000, -1300, -31337][..]),
        ("unsupported", &[-1004, -1600, -44118, -44119, -39742]),
        ("denied", &[-1005, -1505]),
        ("authentication", &[-1200, -30109, -44106, -44111, -44112, -44113, -44114, -44116]),
        ("rate-limit", &[-7132, -30028]),
        ("busy", &[-30301, -30304, -33004, -33011, -39051]),
        ("conflict", &[-33006, -33506, -34511, -33560, -33566, -7131]),
        ("not-found", &[-39050, -39303, -39501, -39700, -39701, -40200, -41011]),
        ("not-ready", &[-39000]),
        ("generic", &[-1]),
    ];
    for (wanted, codes) in table {
        for one in codes {
            let fault = Omada.content(&code(*one)).unwrap_err();
            assert_eq!(word(&fault), wanted, "{one}");
            assert_eq!(fault.info().code.as_deref(), Some(format!("vendor:{one}").as_str()));
            let is_later = ["busy", "rate-limit", "not-ready"].contains(&wanted);
            assert_eq!(fault.info().retry_after_ms.is_some(), is_later, "{one}");
        }
    }
}

#[test]
fn object_that_the_controller_misses_is_absent_and_its_site_is_not() {
    let answer =
        |code: i64| json_response(200, &json!({ "errorCode": code, "msg": "This rule does not exist." }));
    for one in [-1001, -34210] {
        assert_eq!(word(&Omada.content(&answer(one)).unwrap_err()), "not-found", "{one}");
    }
    // What a code means does not hang on its words: a delete would take the absence for a success.
    let known = [
        (-33000, "invalid"),
        (-1300, "invalid"),
        (-7131, "conflict"),
        (-44106, "authentication"),
        (-33560, "conflict"),
        (-1005, "denied"),
        (-1, "generic"),
    ];
    for (one, wanted) in known {
        assert_eq!(word(&Omada.written(Purpose::Delete, &answer(one)).unwrap_err()), wanted, "{one}");
    }
}

#[test]
fn refusal_changed_nothing_and_what_is_no_answer_may_have() {
    let effect = |response: &Response| Omada.written(Purpose::Create, response).unwrap_err().info().effect;
    for refusal in [-1001, -1600, -33006, -44112, -7132] {
        assert!(matches!(effect(&code(refusal)), Effect::None), "{refusal}");
    }
    // A create that stored its object was seen to answer -1; a device may take a command that it did not confirm.
    // An unknown code does not say what was done before it.
    for open in [-1, -39051, -31337, -1619] {
        assert!(matches!(effect(&code(open)), Effect::Possible), "{open}");
    }
    for status in [200, 302, 500, 502] {
        assert!(matches!(effect(&page(status)), Effect::Possible), "{status}");
    }
    assert!(matches!(effect(&page(429)), Effect::None));
}

#[test]
fn delete_of_what_is_gone_is_done() {
    assert!(matches!(Omada.written(Purpose::Delete, &code(-39050)), Ok(Written::Done)));
    assert!(Omada.written(Purpose::Delete, &code(-33000)).is_err());
    assert!(Omada.written(Purpose::Act, &code(-39050)).is_err());
}

#[test]
fn status_counts_where_there_is_no_envelope() {
    let spring = json!({ "timestamp": 0, "status": 400, "error": "Bad Request", "path": "/x" });
    assert_eq!(word(&Omada.content(&json_response(400, &spring)).unwrap_err()), "invalid");
    let words = [(401, "authentication"), (403, "denied"), (404, "unsupported"), (417, "invalid")];
    for (status, wanted) in
        words.into_iter().chain([(429, "rate-limit"), (503, "not-ready"), (500, "generic")])
    {
        assert_eq!(word(&Omada.content(&page(status)).unwrap_err()), wanted, "{status}");
    }
    assert_eq!(word(&Omada.content(&page(200)).unwrap_err()), "not-ready");
}

#[test]
fn second_envelope_of_an_olt_is_opened() {
    let answer = |code: i64| {
        json_response(
            200,
            &json!({ "errorCode": 0, "result": { "errcode": code, "message": "ONU offline" } }),
        )
    };
    assert!(matches!(Omada.written(Purpose::Update, &answer(0)), Ok(Written::Done)));
    let fault = Omada.written(Purpose::Update, &answer(5)).unwrap_err();
    assert!(fault.info().message.contains("ONU offline"));
    assert!(matches!(fault.info().effect, Effect::Possible));
    assert!(Omada.content(&answer(5)).is_err());
}

fn result(result: &Value) -> Response {
    json_response(200, &json!({ "errorCode": 0, "msg": "Success.", "result": result }))
}

#[test]
fn part_that_failed_is_a_fault_that_names_it() {
    let failed = [
        (json!({ "tryPinResult": false, "tryPinLimit": 2 }), "tryPinResult"),
        (json!({ "tryPukResult": false }), "tryPukResult"),
        (json!({ "errorCode": -39701, "msg": "No port." }), "-39701 (No port.)"),
        (json!({ "deviceResult": [{ "mac": "AA-01", "failPorts": { "3": "off" } }] }), "AA-01: failPorts"),
        (json!({ "failPorts": [4] }), "failPorts [4]"),
        (json!({ "errorMap": { "AA-02": -1 } }), "AA-02"),
        (
            json!({ "finished": true, "moveSiteResult": [{ "mac": "AA-03", "errorCode": -33011 }] }),
            "AA-03: errorCode -33011",
        ),
        (
            json!({ "locateStackPortsResultList": [
                { "stackId": "s1", "errorCode": 0 },
                { "stackId": "s2", "errorCode": 7, "errorMsg": "Away." },
            ] }),
            "s2: errorCode 7 (Away.)",
        ),
        (json!([{ "mac": "AA-04", "errorCode": { "errorCode": 9, "msg": "Busy." } }]), "AA-04: errorCode 9"),
        (json!({ "data": { "errcode": 5 } }), "errcode 5"),
    ];
    for (failed, name) in failed {
        let fault = Omada.written(Purpose::Act, &result(&failed)).unwrap_err();
        assert!(fault.info().message.contains(name), "{failed}: {}", fault.info().message);
        assert!(matches!(fault.info().effect, Effect::Possible), "{failed}");
    }
}

#[test]
fn parts_that_worked_are_done_and_what_goes_on_is_warned_of() {
    for good in [
        json!({ "tryPinResult": true, "tryPinLimit": 3 }),
        json!({ "errorCode": 0 }),
        json!({ "mac": "AA-01", "failPorts": {}, "successPorts": ["1"] }),
        json!({ "errorMap": {} }),
        json!({ "errorMap": null, "failPorts": null }),
        json!({ "finished": true, "moveSiteResult": [{ "mac": "AA-03", "errorCode": 0 }] }),
        json!({ "enable": false }),
    ] {
        assert!(matches!(Omada.written(Purpose::Act, &result(&good)), Ok(Written::Done)), "{good}");
    }
    let moving = json!({ "moveSiteId": "1", "finished": false, "moveSiteResult": [] });
    assert!(matches!(Omada.written(Purpose::Act, &result(&moving)), Ok(Written::Warned(_))));
}

#[test]
fn failures_are_named_up_to_a_limit() {
    let rows: Vec<Value> = (0..100).map(|row| json!({ "mac": format!("m{row}"), "errorCode": 1 })).collect();
    let fault = Omada.written(Purpose::Act, &result(&json!(rows))).unwrap_err();
    assert!(fault.info().message.contains("m7:") && !fault.info().message.contains("m8:"));
}
