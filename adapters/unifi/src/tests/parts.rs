//! Ports and radios: elements of lists that are written as a whole.

use heddle_sdk::testing::{FakeHost, send_stage};
use heddle_sdk::{Adapter as _, FaultExt as _, Method, Operation, Stage};
use serde_json::{Value, json};

use super::device::{Device, package};
use super::samples::mac_of;
use super::{applied, change, plan, run, standing};
use crate::Unifi;

/// The settings of the ports of the switch.
fn overrides(device: &Device) -> Vec<Value> {
    let mac = mac_of(device, "switch").unwrap();
    let row = device.row("device", "mac", mac.as_str().unwrap());
    row["port_overrides"].as_array().cloned().unwrap_or_default()
}

fn port(device: &Device, number: u64, more: &Value) -> Value {
    let mut payload = json!({ "mac": mac_of(device, "switch").unwrap(), "port_idx": number });
    for (name, value) in more.as_object().unwrap() {
        payload[name.as_str()] = value.clone();
    }
    payload
}

#[test]
fn other_ports_stay_as_they_are() {
    let device = Device::new();
    applied(&device, "ports.port", Operation::Update, &port(&device, 2, &json!({ "name": "desk" })));
    let before = overrides(&device);
    applied(&device, "ports.port", Operation::Update, &port(&device, 12, &json!({ "name": "printer" })));
    let after = overrides(&device);
    for known in &before {
        assert!(after.contains(known), "{known}");
    }
    assert!(after.iter().any(|one| one["port_idx"] == 12 && one["name"] == "printer"));
    assert_eq!(after.len(), before.len() + 1);
    // Of a port that has settings, what is not asked for stays.
    applied(&device, "ports.port", Operation::Update, &port(&device, 4, &json!({ "name": "plotter" })));
    let of = |all: &[Value]| all.iter().find(|one| one["port_idx"] == 4).cloned().unwrap();
    let mut wanted = of(&before);
    wanted["name"] = json!("plotter");
    assert_eq!(of(&overrides(&device)), wanted);
}

#[test]
fn port_is_shown_and_taken_back_by_itself() {
    let device = Device::new();
    let before = overrides(&device);
    let payload = port(&device, 5, &json!({ "name": "camera", "poe_mode": "off" }));
    let planned = plan(&device, &change("ports.port", Operation::Update, &payload)).unwrap();
    let step: Value = serde_json::from_str(planned.steps[0].after.as_ref().unwrap()).unwrap();
    assert_eq!(
        (&step["name"], &step["port_idx"]),
        (&json!("camera"), &json!(5)),
        "the element, and not the list"
    );
    assert!(planned.lockout_risk);
    let inverse = planned.inverse.clone().unwrap();
    let back: Value = serde_json::from_str(&inverse[0].payload).unwrap();
    assert_eq!(
        (inverse.len(), &inverse[0].feature, &back["port_idx"]),
        (1, &"unifi.ports.port".to_owned(), &json!(5))
    );
    run(&device, Stage::Apply, &planned).unwrap();
    device.rest();
    assert_eq!(standing(&device, &planned), "after");
    let taken = Unifi::plan(&device.host(), &inverse).unwrap();
    run(&device, Stage::Apply, &taken).unwrap();
    device.rest();
    assert_eq!(overrides(&device), before);
}

#[test]
fn what_an_element_gains_is_taken_back() {
    let device = Device::new();
    let mac = mac_of(&device, "gateway").unwrap();
    let payload = json!({ "mac": mac, "ifname": "eth9", "disabled": true });
    let of_port =
        |device: &Device| device.row("device", "mac", mac.as_str().unwrap())["ethernet_overrides"].clone();
    let before = of_port(&device);
    let planned = applied(&device, "devices.gateway-port", Operation::Update, &payload);
    assert_eq!(
        (of_port(&device)[1]["disabled"].clone(), standing(&device, &planned).as_str()),
        (json!(true), "after")
    );
    run(&device, Stage::Restore, &planned).unwrap();
    device.rest();
    assert_eq!((of_port(&device), standing(&device, &planned).as_str()), (before, "before"));
}

#[test]
fn several_ports_of_one_plan_build_on_each_other() {
    let device = Device::new();
    let changes = [
        change("ports.port", Operation::Update, &port(&device, 2, &json!({ "name": "one" }))),
        change("ports.port", Operation::Update, &port(&device, 3, &json!({ "name": "two" }))),
    ];
    let planned = Unifi::plan(&device.host(), &changes).unwrap();
    send_stage::<Unifi>(&device.host(), Stage::Apply, &changes, &planned).unwrap();
    device.rest();
    let names: Vec<Value> = overrides(&device).iter().map(|one| one["name"].clone()).collect();
    assert!(names.contains(&json!("one")) && names.contains(&json!("two")), "{names:?}");
}

#[test]
fn port_that_another_person_changed_is_not_written_over() {
    let device = Device::new();
    let reviewed = plan(
        &device,
        &change("ports.port", Operation::Update, &port(&device, 2, &json!({ "name": "mine" }))),
    )
    .unwrap();
    applied(&device, "ports.port", Operation::Update, &port(&device, 3, &json!({ "name": "theirs" })));
    let writes = device.writes.get();
    assert!(run(&device, Stage::Apply, &reviewed).is_err());
    assert_eq!(device.writes.get(), writes, "the whole list would have been written over theirs");
}

/// Writes the settings of all ports as a person at the web pages does.
fn by_person(device: &Device, edit: impl FnOnce(&mut Vec<Value>)) {
    let mac = mac_of(device, "switch").unwrap();
    let id = device.row("device", "mac", mac.as_str().unwrap())["_id"].clone();
    let mut all = overrides(device);
    edit(&mut all);
    let path = format!("/api/s/default/rest/device/{}", id.as_str().unwrap());
    device.person(Method::Put, &path, &json!({ "port_overrides": all }));
    device.rest();
}

#[test]
fn port_that_another_person_changed_is_not_lost_with_the_way_back() {
    let device = Device::new();
    let ours =
        applied(&device, "ports.port", Operation::Update, &port(&device, 2, &json!({ "name": "mine" })));
    by_person(&device, |all| all.push(json!({ "port_idx": 3, "name": "theirs" })));
    let found = standing(&device, &ours);
    assert!(found.starts_with("other"), "{found}");
    let writes = device.writes.get();
    let fault = run(&device, Stage::Restore, &ours).unwrap_err();
    assert_eq!(fault.info().code.as_deref(), Some("state-moved"));
    assert_eq!(device.writes.get(), writes, "the old list has no settings of theirs");
    assert!(overrides(&device).iter().any(|one| one["name"] == "theirs"));
}

#[test]
fn port_that_the_controller_wrote_in_its_own_way_is_adjusted_and_taken_back() {
    let device = Device::new();
    let before = overrides(&device);
    let ours =
        applied(&device, "ports.port", Operation::Update, &port(&device, 2, &json!({ "name": "mine" })));
    by_person(&device, |all| {
        let own = all.iter_mut().find(|one| one["port_idx"] == 2).unwrap();
        own["setting_preference"] = json!("manual");
    });
    let found = standing(&device, &ours);
    assert!(found.starts_with("adjusted"), "{found}");
    run(&device, Stage::Restore, &ours).unwrap();
    device.rest();
    assert_eq!(overrides(&device), before);
}

#[test]
fn part_that_the_device_does_not_have_or_has_twice_is_refused() {
    let device_row = json!({
        "_id": "6751", "mac": "02:00:00:00:00:01", "adopted": true, "port_table": [{ "port_idx": 1 }],
        "radio_table": [{ "radio": "ng" }, { "radio": "na", "name": "a" }, { "radio": "na", "name": "b" }],
    });
    let host = FakeHost::new(|_, _| {
        Ok(heddle_sdk::testing::json_response(200, &json!({ "meta": { "rc": "ok" }, "data": [device_row] })))
    })
    .with_package(package());
    let of = |feature: &str, by: &str, name: Value| {
        let payload = json!({ "mac": "02:00:00:00:00:01", by: name, "name": "new" });
        Unifi::plan(&host, &[change(feature, Operation::Update, &payload)])
    };
    for (feature, by, name) in [
        ("ports.port", "port_idx", json!(9)),
        ("wifi.radio", "radio", json!("6e")),
        ("wifi.radio", "radio", json!("na")),
    ] {
        let fault = of(feature, by, name.clone()).unwrap_err();
        let fields: Vec<&str> = fault.info().fields.iter().map(|one| one.pointer.as_str()).collect();
        assert_eq!(fields, [format!("/{by}")], "{feature} {name}");
    }
    assert!(of("ports.port", "port_idx", json!(1)).is_ok());
    assert!(of("wifi.radio", "radio", json!("ng")).is_ok());
}

#[test]
fn entry_without_a_number_is_kept() {
    let device_row = json!({
        "_id": "6751", "mac": "02:00:00:00:00:01", "adopted": true,
        "port_overrides": [{ "setting_preference": "auto" }, { "port_idx": "7", "name": "old" }],
    });
    let host = FakeHost::new(|_, _| {
        Ok(heddle_sdk::testing::json_response(200, &json!({ "meta": { "rc": "ok" }, "data": [device_row] })))
    })
    .with_package(package());
    let payload = json!({ "mac": "02:00:00:00:00:01", "port_idx": 7, "name": "new" });
    let planned = Unifi::plan(&host, &[change("ports.port", Operation::Update, &payload)]).unwrap();
    let body = planned.native[0].json().unwrap();
    assert_eq!(
        body["port_overrides"],
        json!([{ "setting_preference": "auto" }, { "port_idx": 7, "name": "new" }])
    );
}
