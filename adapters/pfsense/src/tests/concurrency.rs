//! Writes of several people at the same time, and what was stored and is not active.

use heddle_sdk::testing::{FakeHost, send_stage};
use heddle_sdk::{Effect, Fault, FaultExt, Operation, Stage, fault};
use serde_json::json;

use super::device::{Device, description, package};
use super::{change, plan, run, standing};
use crate::Pfsense;

fn alias(name: &str) -> heddle_sdk::Change {
    change(
        "firewall.alias",
        Operation::Create,
        &json!({ "name": name, "type": "host", "address": ["192.0.2.7"], "detail": ["own"] }),
    )
}

#[test]
fn manifest_paces_writes() {
    let manifest: serde_json::Value = serde_json::from_str(include_str!("../../manifest.json")).unwrap();
    assert!(manifest["pace"]["write-gap-ms"].as_u64().unwrap() >= 100);
    assert!(package().features().len() > 100);
}

#[test]
fn same_name_that_another_person_made_meanwhile_is_not_doubled() {
    let device = Device::new();
    let planned = plan(&device, &alias("sample")).unwrap();
    let theirs = json!({ "name": "sample", "type": "port", "address": ["22"], "detail": ["own"] });
    device
        .lab()
        .edit(&json!({ "do": "set", "model": "FirewallAlias", "fields": theirs, "apply": true }))
        .unwrap();
    let before = device.list("FirewallAlias");
    let fault = run(&device, Stage::Apply, &planned).unwrap_err();
    assert_eq!(fault.info().code.as_deref(), Some("state-moved"));
    assert_eq!(device.list("FirewallAlias"), before);
}

#[test]
fn apply_tells_that_it_acts_on_what_others_have_saved() {
    let device = Device::new();
    let planned = plan(&device, &alias("sample")).unwrap();
    assert!(planned.also.iter().any(|also| also.contains("rules, NAT, aliases")), "{:?}", planned.also);
    let theirs = json!({ "name": "theirs", "type": "host", "address": ["192.0.2.1"], "detail": ["own"] });
    device.lab().edit(&json!({ "do": "set", "model": "FirewallAlias", "fields": theirs })).unwrap();
    run(&device, Stage::Apply, &planned).unwrap();
    assert_eq!(device.lab().state()["pending"], json!([]), "theirs is active, too");
}

#[test]
fn lost_answer_leaves_an_object_that_is_found_and_taken_back() {
    let device = Device::new();
    let planned = plan(&device, &alias("sample")).unwrap();
    let host = FakeHost::new(|request, auth| {
        let answer = device.exchange(request, auth);
        let is_create = request.path.ends_with("/firewall/alias");
        if is_create { Err(fault::timeout("no answer")) } else { Ok(answer) }
    })
    .with_package(package());
    let fault = send_stage::<Pfsense>(&host, Stage::Apply, &[], &planned).unwrap_err();
    assert!(matches!(fault, Fault::Timeout(_)) && fault.info().effect == Effect::Possible, "{fault:?}");
    assert_eq!(standing(&device, &planned), "after");
    run(&device, Stage::Restore, &planned).unwrap();
    assert_eq!(standing(&device, &planned), "before");
}

#[test]
fn interrupted_stage_goes_on_behind_the_calls_that_left() {
    let device = Device::new();
    let planned = plan(&device, &alias("sample")).unwrap();
    run(&device, Stage::Apply, &planned).unwrap();
    let ready = <Pfsense as heddle_sdk::Adapter>::ready(&device.host(), Stage::Apply, &[], &planned.token, 1)
        .unwrap();
    assert!(matches!(ready, heddle_sdk::Readiness::Send(start) if start.from == 1));
}

#[test]
fn lock_that_another_write_holds_is_busy() {
    let device = Device::new();
    let planned = plan(&device, &alias("sample")).unwrap();
    let host = FakeHost::new(|request, auth| {
        let is_create = request.path.ends_with("/firewall/alias");
        if is_create {
            let body = json!({ "code": 503, "status": "service unavailable", "response_id": "MODEL_WRITE_CONFIG_LOCKED",
                "message": "Try again.", "data": [] });
            return Ok(heddle_sdk::testing::json_response(503, &body));
        }
        Ok(device.exchange(request, auth))
    })
    .with_package(package());
    let fault = send_stage::<Pfsense>(&host, Stage::Apply, &[], &planned).unwrap_err();
    assert!(matches!(fault, Fault::Busy(_)) && fault.info().retry_after_ms.is_some(), "{fault:?}");
}

#[test]
fn every_apply_is_waited_for() {
    let features = description()["features"].as_array().unwrap().iter();
    let activations =
        features.flat_map(|feature| feature["binding"]["activate"].as_array().into_iter().flatten());
    let mut count = 0;
    for activation in activations {
        assert_eq!(activation["with"], json!({ "async": false }), "{activation}");
        count += 1;
    }
    assert!(count > 30, "{count}");
}

#[test]
fn nothing_deletes_or_replaces_a_whole_list() {
    for feature in description()["features"].as_array().unwrap() {
        let binding = &feature["binding"];
        let paths = ["create", "update", "delete", "action"].map(|word| &binding[word]);
        for call in paths {
            let (method, path) =
                (call["method"].as_str().unwrap_or("POST"), call["path"].as_str().unwrap_or_default());
            assert_ne!(method, "PUT", "{path}");
            let one = ["id={", "ip={", "ip_address={", "all=true"];
            assert!(method != "DELETE" || one.iter().any(|name| path.contains(name)), "{path}");
        }
    }
}
