//! What answers mean, one by one: a status of 200 says nothing, and there are two layers of errors below it.

use heddle_sdk::testing::{json_response, send_stage};
use heddle_sdk::{Adapter, Change, Effect, Fault, FaultExt, Operation, Outcome, Response, Sent, Stage};
use serde_json::{Value, json};

use super::device::router;
use super::{change, plan};
use crate::OpenWrt;
use crate::rpc;

fn rule() -> Change {
    let payload =
        json!({"name": "SSH", "src": "wan", "proto": ["tcp"], "dest_port": "22", "target": "ACCEPT"});
    change("firewall.rule", Operation::Create, &payload)
}

/// The fault of a read that the device answers so.
pub(super) fn read(answer: Value) -> Fault {
    let device = router();
    device.answers.borrow_mut().insert("uci.get".to_owned(), answer);
    rpc::call(&device.host(), "uci", "get", &json!({"config": "firewall"})).unwrap_err().into_fault("uci.get")
}

/// What a call of the stage of a plan that was answered so is taken for.
pub(super) fn judged(stage: Stage, method: &str, answer: Response) -> Result<Outcome, Fault> {
    let device = router();
    let plan = plan(&device, &rule()).unwrap();
    let calls = plan.native.iter().filter(|call| call.stage == stage);
    let mut methods = calls.map(|call| call.json().unwrap()["params"][2].clone());
    let index = methods.position(|found| found == method).unwrap();
    OpenWrt::judge(&device.host(), Sent { stage, index }, Ok(answer), &[], &plan.token)
}

pub(super) fn page(status: u16) -> Response {
    Response { body: b"<html>".to_vec(), ..json_response(status, &Value::Null) }
}

#[test]
fn every_status_in_a_good_answer_is_a_fault_of_its_kind() {
    let kinds: [(u64, fn(&Fault) -> bool); 12] = [
        (1, |fault| matches!(fault, Fault::Invalid(_))),
        (2, |fault| matches!(fault, Fault::Invalid(_))),
        (3, |fault| matches!(fault, Fault::Unsupported(_))),
        (4, |fault| matches!(fault, Fault::NotFound(_))),
        (5, |fault| matches!(fault, Fault::Generic(_))),
        (6, |fault| matches!(fault, Fault::Denied(_))),
        (7, |fault| matches!(fault, Fault::Timeout(_))),
        (8, |fault| matches!(fault, Fault::Unsupported(_))),
        (9, |fault| matches!(fault, Fault::Generic(_))),
        (10, |fault| matches!(fault, Fault::NotReady(_))),
        (12, |fault| matches!(fault, Fault::Generic(_))),
        (99, |fault| matches!(fault, Fault::Generic(_))),
    ];
    for (status, is_right) in kinds {
        let fault = read(json!([status]));
        assert!(is_right(&fault), "{status}: {fault:?}");
        assert_eq!(fault.info().code, Some(format!("vendor:{status}")));
    }
}

#[test]
fn every_error_of_the_envelope_is_a_fault_of_its_kind() {
    let kinds: [(i64, fn(&Fault) -> bool); 6] = [
        (-32700, |fault| matches!(fault, Fault::Invalid(_))),
        (-32602, |fault| matches!(fault, Fault::Invalid(_))),
        (-32603, |fault| matches!(fault, Fault::Generic(_))),
        (-32000, |fault| matches!(fault, Fault::Unsupported(_))),
        (-32002, |fault| matches!(fault, Fault::Denied(_))),
        (-32003, |fault| matches!(fault, Fault::Timeout(_))),
    ];
    for (code, is_right) in kinds {
        let fault = read(json!({"error": {"code": code}}));
        assert!(is_right(&fault), "{code}: {fault:?}");
    }
    for rubbish in
        [json!({"error": {}}), json!({"error": {"code": "x"}}), json!([]), json!(["0"]), json!([null])]
    {
        assert!(matches!(read(rubbish.clone()), Fault::Generic(_)), "{rubbish}");
    }
}

#[test]
fn what_is_not_in_a_file_is_an_answer_without_data() {
    let device = router();
    device.answers.borrow_mut().insert("uci.get".to_owned(), json!([0]));
    assert_eq!(rpc::call(&device.host(), "uci", "get", &json!({})).unwrap(), json!({}));
    let absent = OpenWrt::get_object(&router().host(), "firewall.rule", None, "Nope").unwrap_err();
    assert!(matches!(absent, Fault::NotFound(_)));
}

/// The web server, or a proxy in front of it, may answer so behind an apply that was carried out.
#[test]
fn an_apply_that_no_answer_of_the_device_denies_may_have_changed_something() {
    let cut = Response { body: b"{\"result\":[".to_vec(), ..json_response(200, &Value::Null) };
    for answer in [page(200), page(500), page(502), page(503), page(504), page(408), cut] {
        let told = format!("{answer:?}");
        let fault = judged(Stage::Apply, "apply", answer).unwrap_err();
        assert!(matches!(fault.info().effect, Effect::Possible), "{told}: {fault:?}");
    }
    for status in [401, 403, 404, 429] {
        let fault = judged(Stage::Apply, "apply", page(status)).unwrap_err();
        assert!(matches!(fault.info().effect, Effect::None), "{status}: {fault:?}");
    }
}

#[test]
fn a_status_of_the_web_server_is_a_fault_of_its_kind() {
    let of = |status| judged(Stage::Apply, "apply", page(status)).unwrap_err();
    assert!(matches!(of(401), Fault::Authentication(_)));
    assert!(matches!(of(403), Fault::Denied(_)));
    assert!(matches!(of(404), Fault::Unsupported(_)), "there is no ubus behind the web server");
    assert!(matches!(of(429), Fault::RateLimit(_)));
    assert!(matches!(of(503), Fault::NotReady(_)));
}

#[test]
fn a_batch_with_another_number_of_answers_is_refused() {
    let device = router();
    let host = heddle_sdk::testing::FakeHost::new(|_, _| Ok(json_response(200, &json!([{"result": [0]}]))));
    let reads = [("uci", "get", json!({})), ("uci", "changes", json!({}))];
    assert!(matches!(rpc::batch(&host, &reads), Err(Fault::Generic(_))));
    assert_eq!(rpc::batch(&device.host(), &[]).unwrap().len(), 0);
}

#[test]
fn a_confirmation_of_another_session_is_busy_and_one_that_comes_too_late_is_told() {
    let of = |status| judged(Stage::Confirm, "confirm", json_response(200, &json!({"result": [status]})));
    assert!(matches!(of(6).unwrap_err(), Fault::Busy(_)));
    match of(5).unwrap() {
        Outcome::Done(done) => assert_eq!(done.warnings.len(), 1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_rollback_is_asked_for_by_a_truth_value_and_every_option_is_text() {
    let device = router();
    let plan = plan(&device, &rule()).unwrap();
    let bodies: Vec<Value> = plan.native.iter().map(|call| call.json().unwrap()).collect();
    let apply = bodies.iter().find(|body| body["params"][2] == "apply").unwrap();
    assert_eq!(apply["params"][3]["rollback"], json!(true));
    let is_text = |value: &Value| {
        value.is_string()
            || value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(Value::is_string))
    };
    for body in &bodies {
        assert_eq!(
            body["params"].as_array().map(Vec::len),
            Some(4),
            "the device takes no other number: {body}"
        );
        let values = body["params"][3]["values"].as_object().into_iter().flatten();
        for (name, value) in values {
            assert!(is_text(value), "{name}: {value}");
        }
    }
    send_stage::<OpenWrt>(&device.host(), Stage::Apply, &[], &plan).unwrap();
}
