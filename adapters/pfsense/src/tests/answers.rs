//! What answers mean.

use heddle_sdk::crud::{Purpose, Vendor as _, Written};
use heddle_sdk::testing::{FakeHost, json_response, response};
use heddle_sdk::{Adapter as _, Effect, Fault, FaultExt, Listing, Operation, Response, Stage};
use serde_json::{Value, json};

use super::device::Device;
use super::{change, plan, run};
use crate::{Pfsense, Vendor};

fn vendor() -> Vendor {
    let host = FakeHost::new(|_, _| Ok(json_response(200, &json!({}))));
    Vendor::of(&host)
}

fn envelope(code: u16, id: &str, message: &str, data: Value) -> Response {
    let status = if code == 200 { "ok" } else { "refused" };
    json_response(
        code,
        &json!({ "code": code, "status": status, "response_id": id, "message": message, "data": data }),
    )
}

#[track_caller]
fn fault(answer: &Response) -> Fault {
    vendor().content(answer).unwrap_err()
}

#[test]
fn codes_and_ids_of_refusals_are_told_apart() {
    type Is = fn(&Fault) -> bool;
    let cases: [(u16, &str, Is); 16] = [
        (400, "FIELD_IS_REQUIRED", |fault| matches!(fault, Fault::Invalid(_))),
        (400, "FIELD_MUST_BE_UNIQUE", |fault| matches!(fault, Fault::Conflict(_))),
        (401, "AUTH_AUTHENTICATION_FAILED", |fault| matches!(fault, Fault::Authentication(_))),
        (403, "AUTH_AUTHORIZATION_FAILED", |fault| matches!(fault, Fault::Denied(_))),
        (403, "MODEL_CANNOT_DELETE_PROTECTED_OBJECT", |fault| matches!(fault, Fault::Invalid(_))),
        (403, "MODEL_MANY_MINIMUM_REACHED", |fault| matches!(fault, Fault::Invalid(_))),
        (404, "MODEL_OBJECT_NOT_FOUND", |fault| matches!(fault, Fault::NotFound(_))),
        (404, "MODEL_MISSING_REQUIRED_PACKAGE", |fault| matches!(fault, Fault::Unsupported(_))),
        (405, "ENDPOINT_METHOD_NOT_ALLOWED", |fault| matches!(fault, Fault::Unsupported(_))),
        (409, "MODEL_CANNOT_BE_DELETED_WHILE_REFERENCED", |fault| matches!(fault, Fault::Conflict(_))),
        (424, "MODEL_MISSING_REQUIRED_PACKAGE", |fault| matches!(fault, Fault::Unsupported(_))),
        (500, "ENDPOINT_RECEIVED_UNEXPECTED_ERROR", |fault| matches!(fault, Fault::Generic(_))),
        (503, "ENDPOINT_REST_API_IS_NOT_ENABLED", |fault| matches!(fault, Fault::Unsupported(_))),
        (503, "MODEL_WRITE_CONFIG_LOCKED", |fault| matches!(fault, Fault::Busy(_))),
        (503, "DISPATCHER_TOO_MANY_QUEUED_PROCESSES", |fault| matches!(fault, Fault::Busy(_))),
        (503, "ENDPOINT_UNAVAILABLE", |fault| matches!(fault, Fault::NotReady(_))),
    ];
    for (code, id, is) in cases {
        let found = fault(&envelope(code, id, "no", json!([])));
        assert!(is(&found), "{code} {id}: {found:?}");
        assert_eq!(found.info().code, Some(format!("vendor:{id}")));
    }
}

#[test]
fn page_of_a_browser_is_a_firewall_that_is_not_ready() {
    for status in [200, 301, 302] {
        let found = fault(&response(status, Vec::new(), b"<html></html>".to_vec()));
        assert!(matches!(found, Fault::NotReady(_)), "{status}: {found:?}");
    }
    let found = fault(&response(404, Vec::new(), b"<html></html>".to_vec()));
    assert!(matches!(found, Fault::Unsupported(_)), "{found:?}");
}

#[test]
fn success_is_a_status_a_code_and_a_word() {
    let good =
        json!({ "code": 200, "status": "ok", "response_id": "SUCCESS", "message": "", "data": { "a": 1 } });
    assert_eq!(vendor().content(&json_response(200, &good)).unwrap(), json!({ "a": 1 }));
    for (name, value) in [
        ("code", json!(500)),
        ("code", json!("200")),
        ("status", json!("bad request")),
        ("status", Value::Null),
    ] {
        let mut bad = good.clone();
        bad[name] = value;
        assert!(vendor().content(&json_response(200, &bad)).is_err(), "{bad}");
        assert!(vendor().written(Purpose::Create, &json_response(200, &bad)).is_err(), "{bad}");
    }
    let mut bad = good;
    bad.as_object_mut().unwrap().remove("data");
    assert!(vendor().content(&json_response(200, &bad)).is_err());
}

#[test]
fn refusal_changed_nothing_and_a_failure_leaves_the_effect_open() {
    for (code, effect) in [
        (400, Effect::None),
        (403, Effect::None),
        (409, Effect::None),
        (500, Effect::Possible),
        (503, Effect::Possible),
    ] {
        let found = vendor().written(Purpose::Update, &envelope(code, "X", "no", json!([]))).unwrap_err();
        assert_eq!(found.info().effect, effect, "{code}");
    }
    let gone = envelope(404, "MODEL_OBJECT_NOT_FOUND", "no", json!([]));
    assert!(matches!(vendor().written(Purpose::Delete, &gone), Ok(Written::Done)));
    assert!(vendor().written(Purpose::Update, &gone).is_err());
    // A trace of the program is not shown to people.
    let trace =
        envelope(500, "ENDPOINT_RECEIVED_UNEXPECTED_ERROR", "failed\n#0 /usr/local/pkg/x.inc(1)", json!([]));
    assert!(!fault(&trace).info().message.contains("/usr/local"), "{:?}", fault(&trace));
}

#[test]
fn what_waits_after_an_apply_is_a_warning() {
    let answer = |is_applied: bool| envelope(200, "SUCCESS", "", json!({ "applied": is_applied }));
    assert!(matches!(vendor().written(Purpose::Activate, &answer(true)), Ok(Written::Done)));
    assert!(matches!(vendor().written(Purpose::Activate, &answer(false)), Ok(Written::Warned(_))));
}

#[test]
fn refused_value_names_the_field_of_the_payload() {
    let device = Device::new();
    let payload =
        json!({ "name": "sample", "type": "host", "address": ["no address at all!"], "detail": ["x"] });
    let planned = plan(&device, &change("firewall.alias", Operation::Create, &payload)).unwrap();
    let fault = run(&device, Stage::Apply, &planned).unwrap_err();
    let info = fault.info();
    assert!(matches!(fault, Fault::Invalid(_)), "{fault:?}");
    assert_eq!((info.effect, info.upstream_status), (Effect::None, Some(400)));
    assert!(info.fields.iter().all(|field| field.pointer.starts_with('/')), "{info:?}");
}

#[test]
fn wrong_password_is_an_authentication_fault_and_is_not_tried_again() {
    let device = Device::new().with_password("wrong");
    let fault = Pfsense::check(&device.host()).unwrap_err();
    assert!(matches!(fault, Fault::Authentication(_)), "{fault:?}");
    assert_eq!(device.asked(), 1);
}

#[test]
fn reader_is_denied_and_nothing_is_changed() {
    let device = Device::new().for_reader();
    let payload = json!({ "name": "sample", "type": "host", "address": ["192.0.2.7"], "detail": ["x"] });
    let planned = plan(&device, &change("firewall.alias", Operation::Create, &payload)).unwrap();
    let before = device.list("FirewallAlias");
    let fault = run(&device, Stage::Apply, &planned).unwrap_err();
    assert!(matches!(fault, Fault::Denied(_)), "{fault:?}");
    assert_eq!(device.list("FirewallAlias"), before);
}

#[test]
fn places_of_children_are_not_told() {
    let data = json!([{ "id": 3, "list": [{ "id": 0, "parent_id": 3, "value": "a" }] }]);
    let told = vendor().content(&envelope(200, "SUCCESS", "", data)).unwrap();
    assert_eq!(told, json!([{ "id": 3, "list": [{ "value": "a" }] }]));
}

#[test]
fn no_data_is_an_empty_list_and_no_object() {
    let device = Device::new();
    let page = Pfsense::list_objects(&device.host(), &Listing::of("vpn.openvpn.client", 10)).unwrap();
    assert!(page.items.is_empty());
    let host = FakeHost::new(|_, _| Ok(envelope(200, "SUCCESS", "", json!([]))))
        .with_package(super::device::package());
    let page = Pfsense::list_objects(&host, &Listing::of("system.hostname", 10)).unwrap();
    assert!(page.items.is_empty());
}
