//! What answers mean, one by one.

use heddle_sdk::crud::{Purpose, Vendor as _, Written};
use heddle_sdk::testing::{FakeHost, json_response};
use heddle_sdk::{Effect, Fault, FaultExt, Response, fault};
use serde_json::{Value, json};

use crate::Vendor;

fn vendor() -> Vendor {
    Vendor::of(&FakeHost::new(|_, _| Err(fault::generic("is not asked"))))
}

/// A refusal as releases since 8.4 write it.
fn refusal(status: u16, message: &str) -> Response {
    json_response(status, &json!({ "data": null, "message": format!("{message}\n") }))
}

/// A refusal as older ones write it: the reason stands in the status line alone.
fn older(status: u16, reason: &str) -> Response {
    Response { reason: Some(reason.to_owned()), ..json_response(status, &json!({ "data": null })) }
}

fn read(response: &Response) -> Fault {
    vendor().content(response).unwrap_err()
}

fn written(purpose: Purpose, response: &Response) -> Fault {
    vendor().written(purpose, response).unwrap_err()
}

#[test]
fn session_is_the_one_that_the_settings_name() {
    let mut host = FakeHost::new(|_, _| Err(fault::generic("is not asked")));
    assert_eq!(Vendor::of(&host).session(), "token");
    host.settings = json!({ "login": "ticket" });
    assert_eq!(Vendor::of(&host).session(), "ticket");
}

#[test]
fn statuses_are_told_apart() {
    assert!(matches!(read(&refusal(401, "No ticket")), Fault::Authentication(_)));
    assert!(matches!(
        read(&refusal(403, "Permission check failed (/vms/100, VM.PowerMgmt)")),
        Fault::Denied(_)
    ));
    assert!(matches!(read(&refusal(404, "no such endpoint")), Fault::NotFound(_)));
    assert!(matches!(read(&refusal(501, "Method 'GET /x' not implemented")), Fault::Unsupported(_)));
    assert!(matches!(read(&refusal(506, "upload Content-Type 'x' not implemented")), Fault::Unsupported(_)));
    assert!(matches!(read(&refusal(595, "No route to host")), Fault::NotReady(_)));
    assert!(matches!(read(&refusal(503, "")), Fault::NotReady(_)));
}

#[test]
fn reasons_are_told_apart_in_the_body_and_in_the_status_line() {
    type Is = fn(&Fault) -> bool;
    let cases: [(&str, Is); 16] = [
        ("Configuration file 'nodes/x/qemu-server/100.conf' does not exist", |f| {
            matches!(f, Fault::NotFound(_))
        }),
        ("no such user ('x@pve')", |f| matches!(f, Fault::NotFound(_))),
        ("unable to find configuration file for VM 100", |f| matches!(f, Fault::NotFound(_))),
        ("unable to create VM 100 - VM 100 already exists on node 'pve1'", |f| {
            matches!(f, Fault::Conflict(_))
        }),
        ("storage ID 'x' already defined", |f| matches!(f, Fault::Conflict(_))),
        ("VM is locked (backup)", |f| matches!(f, Fault::Busy(_))),
        ("can't lock file '/var/lock/x' - got timeout", |f| matches!(f, Fault::Busy(_))),
        ("detected modified configuration - file changed by other user? Try again.", |f| {
            matches!(f, Fault::StateMoved(_))
        }),
        ("checksum mismatch (file change by other user?)", |f| matches!(f, Fault::StateMoved(_))),
        ("cluster not ready - no quorum?", |f| matches!(f, Fault::NotReady(_))),
        ("binary not installed: /usr/bin/ceph-mon", |f| matches!(f, Fault::Unsupported(_))),
        ("VM 100 not running", |f| matches!(f, Fault::Conflict(_))),
        ("VM 100 is running - destroy failed", |f| matches!(f, Fault::Conflict(_))),
        ("IPSet 'x' is not empty", |f| matches!(f, Fault::Conflict(_))),
        ("got timeout", |f| matches!(f, Fault::Timeout(_))),
        ("something else", |f| matches!(f, Fault::Generic(_))),
    ];
    for (text, is_right) in cases {
        for response in [refusal(500, text), older(500, text)] {
            let fault = read(&response);
            assert!(is_right(&fault) && fault.info().message.contains(text), "{text}: {fault:?}");
            assert_eq!(fault.info().upstream_status, Some(500));
        }
    }
}

#[test]
fn parameters_that_did_not_pass_are_fields_of_a_fault() {
    let body = json!({ "data": null, "message": "Parameter verification failed.\n",
        "errors": { "tag": "missing vlan tag", "mtu": "value must have a minimum value of 576\n" } });
    let fault = written(Purpose::Update, &json_response(400, &body));
    assert!(matches!(&fault, Fault::Invalid(info) if matches!(info.effect, Effect::None)));
    let fields: Vec<(&str, &str)> =
        fault.info().fields.iter().map(|field| (field.pointer.as_str(), field.message.as_str())).collect();
    assert_eq!(fields, [("/tag", "missing vlan tag"), ("/mtu", "value must have a minimum value of 576")]);
    let taken = json!({ "errors": { "name": "alias 'x' already exists" } });
    assert!(matches!(written(Purpose::Create, &json_response(400, &taken)), Fault::Conflict(_)));
    let absent = json!({ "errors": { "iface": "interface does not exist" } });
    assert!(matches!(read(&json_response(400, &absent)), Fault::NotFound(_)));
}

#[test]
fn only_a_rule_of_the_vendor_promises_that_nothing_changed() {
    let effect = |status, text| written(Purpose::Update, &refusal(status, text)).info().effect;
    assert!(matches!(effect(500, "VM is locked (backup)"), Effect::None));
    assert!(matches!(effect(403, "Permission check failed"), Effect::None));
    assert!(matches!(effect(500, "no quorum"), Effect::None));
    assert!(matches!(effect(500, "command 'x' failed: exit code 1"), Effect::Possible));
    assert!(matches!(effect(500, "command 'tar' failed: exit code 2, 'x' does not exist"), Effect::Possible));
    assert!(matches!(effect(500, "got timeout"), Effect::Possible));
    assert!(matches!(effect(596, "broken pipe"), Effect::Possible));
    let page = Response { body: b"<html>".to_vec(), ..json_response(200, &json!({})) };
    assert!(matches!(written(Purpose::Update, &page).info().effect, Effect::Possible));
}

#[test]
fn good_answers_are_done_or_a_task() {
    let good =
        |data: Value| vendor().written(Purpose::Act, &json_response(200, &json!({ "data": data }))).unwrap();
    assert!(matches!(good(Value::Null), Written::Done));
    assert!(matches!(good(json!("local:101/vm-101-disk-1.raw")), Written::Done));
    assert!(matches!(good(json!({ "pid": 7 })), Written::Done));
    let Written::Task(task) =
        good(json!("UPID:pve1:0017C594:0ADB2769:665F1A20:srvreload:networking:root@pam:"))
    else {
        panic!("it is a task")
    };
    assert!(task.unreachable_for_ms.is_some());
    let Written::Task(task) = good(json!("UPID:pve1:0017C594:0ADB2769:665F1A20:qmstart:101:root@pam!a:"))
    else {
        panic!("it is a task")
    };
    assert!(task.unreachable_for_ms.is_none());
}

#[test]
fn what_is_gone_is_deleted_and_not_updated() {
    let gone = refusal(500, "pool 'x' does not exist");
    assert!(matches!(vendor().written(Purpose::Delete, &gone).unwrap(), Written::Done));
    assert!(matches!(written(Purpose::Update, &gone), Fault::NotFound(_)));
}

#[test]
fn answers_are_read_in_the_form_in_which_they_are_written() {
    let options =
        json!({ "data": { "registered-tags": ["a", "b"], "ha": { "shutdown_policy": "migrate" } } });
    let found = vendor().content(&json_response(200, &options)).unwrap();
    assert_eq!(
        (&found["registered-tags"], &found["ha"]["shutdown_policy"]),
        (&json!("a;b"), &json!("migrate"))
    );
    let snapshots = json!({ "data": [
        { "name": "first", "snaptime": 1, "description": "" },
        { "name": "current", "running": 1, "digest": "x", "description": "You are here!" },
    ] });
    let found = vendor().content(&json_response(200, &snapshots)).unwrap();
    assert_eq!(found.as_array().map(Vec::len), Some(1));
    let pending = json!({ "data": [{ "key": "env", "value": "A=secret" }, { "key": "cores", "value": 2 }] });
    let found = vendor().content(&json_response(200, &pending)).unwrap();
    assert_eq!((&found[0]["value"], &found[1]["value"]), (&json!("(secret)"), &json!(2)));
}

#[test]
fn an_answer_of_a_proxy_promises_nothing_of_a_write() {
    for status in [201, 202, 204, 206, 408, 502, 503, 504] {
        let found = written(Purpose::Update, &older(status, "x"));
        assert!(matches!(found.info().effect, Effect::Possible), "{status}: {found:?}");
    }
}

#[test]
fn what_is_no_envelope_is_no_success_and_no_empty_list() {
    for body in [json!({}), json!([]), json!("x"), json!({ "error": "x" })] {
        let answer = json_response(200, &body);
        assert!(matches!(read(&answer), Fault::NotReady(_)), "{body}");
        let found = written(Purpose::Create, &answer);
        assert!(matches!(found.info().effect, Effect::Possible), "{body}: {found:?}");
    }
}

#[test]
fn absence_is_told_by_the_node_and_about_the_object() {
    let page = Response { body: b"<html>".to_vec(), ..json_response(404, &json!({})) };
    assert!(!matches!(written(Purpose::Delete, &page), Fault::NotFound(_)));
    for reason in ["open '/etc/x' failed - No such file or directory", "no such cluster node 'pve9'"] {
        assert!(matches!(read(&refusal(500, reason)), Fault::Generic(_)), "{reason}");
    }
}
