//! The forms of success and of failure, which have one status in common.

use heddle_sdk::crud::{Purpose, Vendor, Written};
use heddle_sdk::testing::{FakeHost, json_response};
use heddle_sdk::{Adapter as _, Effect, Fault, FaultExt, Response};
use serde_json::{Value, json};

use super::device::package;
use crate::{Opnsense, Vendor as Firewall};

const STORING: [Purpose; 3] = [Purpose::Create, Purpose::Update, Purpose::Delete];

fn written(purpose: Purpose, status: u16, body: &Value) -> Result<Written, Fault> {
    Firewall.written(purpose, &json_response(status, body))
}

fn is_open(fault: &Fault) -> bool {
    matches!(fault.info().effect, Effect::Possible)
}

fn page(status: u16) -> Response {
    Response { body: b"<!doctype html>".to_vec(), ..json_response(status, &Value::Null) }
}

#[test]
fn every_success_of_the_vendor_is_one() {
    let id = "5f000000-0000-4000-8000-000000000001";
    for (purpose, body) in [
        (Purpose::Create, json!({ "result": "saved", "uuid": id })),
        (Purpose::Update, json!({ "result": "saved" })),
        (Purpose::Delete, json!({ "result": "deleted" })),
        (Purpose::Delete, json!({ "result": "not found" })),
        (Purpose::Activate, json!({ "status": "ok" })),
        (Purpose::Activate, json!({ "status": "OK\n\n" })),
        (Purpose::Activate, json!({ "status": " Ok " })),
        (Purpose::Activate, json!({ "result": "ok" })),
        (Purpose::Act, json!({ "response": "OK" })),
        (Purpose::Act, json!({ "response": "OK\n\n" })),
        (Purpose::Act, json!({ "result": "ok" })),
    ] {
        assert!(matches!(written(purpose, 200, &body), Ok(Written::Done)), "{purpose:?} {body}");
    }
}

/// What a wrong verb, a missing root or an unusable body is answered with, by the controller.
#[test]
fn every_failure_that_is_a_200_is_a_fault() {
    for body in [
        json!({ "result": "failed" }),
        json!({ "result": "failed", "validations": { "alias.name": "is taken" } }),
        json!({ "status": "failed" }),
        json!({ "status": "error" }),
        json!({ "status": "failure" }),
        json!({ "message": "error" }),
        json!({ "response": [] }),
        json!([]),
        json!({ "status": "error reloading shaper (1)" }),
    ] {
        for purpose in STORING.into_iter().chain([Purpose::Activate, Purpose::Act]) {
            assert!(written(purpose, 200, &body).is_err(), "{purpose:?} {body}");
        }
    }
    let one =
        json!({ "result": "failed", "validations": { "alias.name": "is taken", "alias.type": ["a", "b"] } });
    let fault = written(Purpose::Create, 200, &one).unwrap_err();
    assert!(matches!(&fault, Fault::Invalid(_)) && !is_open(&fault), "{fault:?}");
    let fields: Vec<(&str, &str)> =
        fault.info().fields.iter().map(|field| (field.pointer.as_str(), field.message.as_str())).collect();
    assert_eq!(fields, [("/name", "is taken"), ("/type", "a; b")]);
}

#[test]
fn success_is_a_status_a_word_and_no_message() {
    let saved = json!({ "result": "saved" });
    for status in [201, 202, 204, 206] {
        let fault = written(Purpose::Update, status, &saved).unwrap_err();
        assert!(is_open(&fault), "{status}: {fault:?}");
    }
    let both = json!({ "result": "saved", "errorMessage": "no", "errorTitle": "Alias" });
    for purpose in STORING.into_iter().chain([Purpose::Activate, Purpose::Act]) {
        written(purpose, 200, &both).unwrap_err();
    }
    for none in [json!({ "uuid": "x" }), json!({ "result": null }), json!({ "result": 1 }), json!("saved")] {
        assert!(is_open(&written(Purpose::Update, 200, &none).unwrap_err()), "{none}");
    }
}

/// The newer release answers 200 to what the older one answered 500 to.
#[test]
fn refusal_of_any_level_and_status_changed_nothing() {
    for (status, level) in [
        (500, None),
        (500, Some("error")),
        (500, Some("warning")),
        (200, Some("warning")),
        (200, Some("info")),
    ] {
        let mut body = json!({ "errorMessage": "rule of another group", "errorTitle": "Move" });
        if let Some(level) = level {
            body["errorLevel"] = json!(level);
        }
        for purpose in STORING {
            let fault = written(purpose, status, &body).unwrap_err();
            assert!(matches!(fault, Fault::Invalid(_)) && !is_open(&fault), "{status} {level:?}: {fault:?}");
        }
        // A reload may have come halfway before it gave up.
        assert!(is_open(&written(Purpose::Activate, status, &body).unwrap_err()), "{status} {level:?}");
        Firewall.content(&json_response(status, &body)).unwrap_err();
    }
}

/// Messages are in the language of the box: what tells a rule from a failure is the title.
#[test]
fn error_without_a_title_promises_nothing_in_any_language() {
    for text in ["Unexpected error, check log for details", "Unerwarteter Fehler, siehe Protokoll"] {
        let body = json!({ "errorMessage": text });
        for status in [200, 500] {
            for purpose in STORING {
                let fault = written(purpose, status, &body).unwrap_err();
                assert!(matches!(fault, Fault::Generic(_)) && is_open(&fault), "{status} {text}: {fault:?}");
            }
        }
    }
    let rule = json!({ "errorMessage": "Wird von einer Regel verwendet", "errorTitle": "Alias in Gebrauch" });
    let fault = written(Purpose::Delete, 500, &rule).unwrap_err();
    assert!(matches!(fault, Fault::Invalid(_)) && !is_open(&fault), "{fault:?}");
}

#[test]
fn status_of_a_write_tells_whether_it_was_carried_out() {
    type Is = fn(&Fault) -> bool;
    let refusals: [(u16, Value, Is); 4] = [
        (400, json!({ "status": 400, "message": "Invalid JSON syntax" }), |fault| {
            matches!(fault, Fault::Invalid(_))
        }),
        (401, json!({ "status": 401, "message": "Authentication Failed" }), |fault| {
            matches!(fault, Fault::Authentication(_))
        }),
        (403, json!({ "status": 403, "message": "Forbidden" }), |fault| matches!(fault, Fault::Denied(_))),
        (404, json!({ "errorMessage": "Endpoint not found" }), |fault| {
            matches!(fault, Fault::Unsupported(_))
        }),
    ];
    for purpose in STORING.into_iter().chain([Purpose::Activate, Purpose::Act]) {
        for (status, body, is_right) in &refusals {
            let fault = written(purpose, *status, body).unwrap_err();
            assert!(is_right(&fault) && !is_open(&fault), "{purpose:?} {status}: {fault:?}");
        }
        for status in [408, 500, 502, 503, 504] {
            assert!(is_open(&Firewall.written(purpose, &page(status)).unwrap_err()), "{purpose:?} {status}");
        }
    }
}

#[test]
fn message_is_unescaped_once() {
    let text = "&lt;lan&gt; &quot;a&quot; &#039;b&#039; R&amp;D &amp;lt;";
    let body = json!({ "errorMessage": text, "errorTitle": "In use", "errorLevel": "error" });
    let fault = written(Purpose::Delete, 500, &body).unwrap_err();
    assert_eq!(fault.info().message, "the firewall refuses: In use: <lan> \"a\" 'b' R&D &lt;");
}

/// The list still has it, and a moment later the object is gone.
#[test]
fn unknown_object_is_an_empty_list() {
    let row = json!({ "uuid": "5f000000-0000-4000-8000-000000000001", "name": "gone", "type": "host" });
    let host = FakeHost::new(|request, _| {
        let is_list = request.path.contains("search");
        let body = if is_list {
            json!({ "rows": [row], "total": 1, "rowCount": 1, "current": 1 })
        } else {
            json!([])
        };
        Ok(json_response(200, &body))
    })
    .with_package(package());
    let fault = Opnsense::get_object(&host, "firewall.alias", None, "gone").unwrap_err();
    assert!(matches!(fault, Fault::NotFound(_)), "{fault:?}");
}
