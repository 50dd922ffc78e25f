//! What others change between a plan and its stages, and answers that lie or get lost.

use heddle_sdk::{Adapter as _, Effect, Fault, FaultExt, Operation, Stage};
use serde_json::{Value, json};

use super::device::Device;
use super::{applied, change, plan, run, standing};
use crate::Omada;

fn forward(name: &str, port: &str) -> Value {
    json!({
        "name": name, "status": true, "from": 0, "interfaceWanPortId": ["1_0c41f6b8d2e94a7f8f5f7a3b1c2d4e6f"],
        "externalPort": port, "forwardIp": "10.4.20.10", "forwardPort": "80", "protocol": 1, "dMZ": false,
    })
}

#[test]
fn object_that_somebody_else_made_meanwhile_is_not_made_twice() {
    let device = Device::new();
    let reviewed =
        plan(&device, &change("routing.port-forward", Operation::Create, &forward("mail", "25"))).unwrap();
    applied(&device, "routing.port-forward", Operation::Create, &forward("mail", "26"));
    device.forget_calls();
    let writes = device.writes.get();
    let fault = run(&device, Stage::Apply, &reviewed).unwrap_err();
    assert_eq!(fault.info().code.as_deref(), Some("state-moved"));
    assert_eq!(device.writes.get(), writes, "nothing was sent");
}

#[test]
fn edit_of_another_field_after_the_apply_is_told_and_not_taken_back() {
    let device = Device::new();
    let made = applied(
        &device,
        "routing.port-forward",
        Operation::Update,
        &json!({ "name": "web", "status": false }),
    );
    assert_eq!(standing(&device, &made), "after");
    let other = json!({ "name": "web", "forwardIp": "10.4.20.99" });
    applied(&device, "routing.port-forward", Operation::Update, &other);
    let comparison = Omada::compare(&device.host(), &[], &made.token).unwrap();
    assert!(comparison.foreign.iter().any(|text| text.contains("web")), "{:?}", comparison.foreign);
    run(&device, Stage::Restore, &made).unwrap();
    let stored = device.stored()["routing.port-forward"].to_string();
    assert!(stored.contains("\"status\":true"), "{stored}");
}

#[test]
fn write_that_is_accepted_and_dropped_is_seen() {
    let device = Device::new();
    let payload = json!({ "name": "web", "status": false });
    let made = plan(&device, &change("routing.port-forward", Operation::Update, &payload)).unwrap();
    device.lab().fault(heddle_lab::Fault::vendor("dropped_write", Value::Null));
    run(&device, Stage::Apply, &made).unwrap();
    assert_eq!(standing(&device, &made), "before");
}

#[test]
fn create_that_answers_a_failure_may_have_stored_the_object() {
    let device = Device::new();
    let made =
        plan(&device, &change("routing.port-forward", Operation::Create, &forward("mail", "25"))).unwrap();
    device.lab().fault(heddle_lab::Fault::vendor("lying_create", Value::Null));
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(matches!(fault.info().effect, Effect::Possible));
    assert_eq!(standing(&device, &made), "after");
    device.lab().clear_faults();
    device.left.borrow_mut().insert(made.native[0].id.clone().unwrap());
    run(&device, Stage::Restore, &made).unwrap();
    assert_eq!(standing(&device, &made), "before");
}

#[test]
fn site_that_is_busy_is_tried_again_later() {
    let device = Device::new();
    let payload = json!({ "name": "web", "status": false });
    let made = plan(&device, &change("routing.port-forward", Operation::Update, &payload)).unwrap();
    device.lab().fault(heddle_lab::Fault::vendor("site_busy", Value::Null));
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(matches!(&fault, Fault::Busy(info) if info.retry_after_ms.is_some()));
    assert!(matches!(fault.info().effect, Effect::None));
    assert_eq!(standing(&device, &made), "before");
}

#[test]
fn rule_whose_sides_overlap_vanishes_and_is_missed() {
    let device = Device::new();
    let rule = json!({
        "description": "loop", "status": true, "policy": 0, "protocols": [256], "sourceType": 0,
        "sourceIds": ["a"], "destinationType": 0, "destinationIds": ["a"],
        "direction": { "lanToWan": false, "lanToLan": true, "wanInIds": [], "vpnInIds": [] },
        "stateMode": 0, "syslog": false,
    });
    let made = plan(&device, &change("firewall.gateway-acl", Operation::Create, &rule)).unwrap();
    assert!(made.lockout_risk);
    run(&device, Stage::Apply, &made).unwrap();
    assert_eq!(standing(&device, &made), "before", "the controller said that it worked");
}

#[test]
fn taken_name_and_object_in_use_are_conflicts() {
    let device = Device::new();
    let made = plan(&device, &change("device.tag", Operation::Create, &json!({ "name": "floor" }))).unwrap();
    assert!(made.native[0].path.ends_with("/devices/tag"));
    let default = json!({ "name": "Default" });
    let deletion = plan(&device, &change("switch.network", Operation::Delete, &default)).unwrap();
    let refused = run(&device, Stage::Apply, &deletion).unwrap_err();
    // A code that no table has: the device is read.
    assert!(matches!(refused.info().effect, Effect::Possible), "{}", refused.info().message);
    assert_eq!(standing(&device, &deletion), "before");
}

#[test]
fn dangers_of_a_plan_are_those_of_its_calls() {
    let device = Device::new();
    let reboot = json!({ "mac": "3C-6A-D2-00-01-30" });
    let made = plan(&device, &change("device.reboot", Operation::Create, &reboot)).unwrap();
    assert!(matches!(made.danger, heddle_sdk::Danger::Destructive));
    let forget = plan(&device, &change("device.forget", Operation::Create, &reboot)).unwrap();
    assert!(matches!(forget.danger, heddle_sdk::Danger::Catastrophic) && forget.lockout_risk);
}

#[test]
fn network_with_an_interface_is_changed_in_one_field_and_keeps_the_others() {
    let device = Device::new();
    let before = device.stored();
    let update = json!({ "name": "Staff", "domain": "staff.example" });
    let made = applied(&device, "switch.network", Operation::Update, &update);
    assert_eq!(standing(&device, &made), "after");
    assert!(
        device.stored()["switch.network"].to_string().contains("10.4.20.50"),
        "the range of addresses stays"
    );
    run(&device, Stage::Restore, &made).unwrap();
    device.settle();
    assert_eq!(device.stored(), before);
}

#[test]
fn ssid_keeps_its_key_and_its_network_when_it_is_hidden() {
    let device = Device::new();
    let before = device.stored();
    let update = json!({ "wlan": "Default", "name": "Office", "hidePwd": true });
    let made = applied(&device, "wifi.ssid", Operation::Update, &update);
    assert_eq!(standing(&device, &made), "after");
    assert!(made.lockout_risk);
    let stored =
        device.stored().into_iter().find(|(name, _)| name.starts_with("wifi.ssid|")).unwrap().1.to_string();
    assert!(
        stored.contains("correct-horse-battery") && stored.contains("\"vlanPoolIds\":\"20\""),
        "{stored}"
    );
    run(&device, Stage::Restore, &made).unwrap();
    device.settle();
    // The older of two fields for the VLAN is never sent: the controller takes only one of them.
    let without = |stored: &std::collections::BTreeMap<String, Value>| {
        json!(stored).to_string().replace("\"vlanId\":20,", "").replace("\"vlanId\":40,", "")
    };
    assert_eq!(without(&device.stored()), without(&before));
}

#[test]
fn new_ssid_and_its_rate_limit_are_one_plan_each() {
    let device = Device::new();
    let ssid = json!({
        "wlan": "Default", "name": "Lab", "deviceType": 1, "band": 3, "guestNetEnable": false, "security": 3,
        "broadcast": true, "vlanEnable": false, "mloEnable": false, "pmfMode": 3, "enable11r": false,
        "hidePwd": false,
        "pskSetting": { "securityKey": "a-long-enough-key", "versionPsk": 2, "encryptionPsk": 3, "gikRekeyPskEnable": false },
    });
    let made = applied(&device, "wifi.ssid", Operation::Create, &ssid);
    assert_eq!(standing(&device, &made), "after");
    let limit = json!({
        "wlan": "Default", "name": "Lab",
        "clientRateLimit": { "profileId": "", "customSetting": { "downLimitEnable": true, "downLimit": 5, "downLimitType": 1, "upLimitEnable": false } },
    });
    let limited = applied(&device, "wifi.ssid-rate-limit", Operation::Update, &limit);
    assert_eq!(standing(&device, &limited), "after");
    let schedule = json!({ "wlan": "Default", "ssid": "Lab", "wlanScheduleEnable": true, "action": 1, "scheduleId": "x" });
    let planned = applied(&device, "wifi.ssid-schedule", Operation::Update, &schedule);
    assert_eq!(standing(&device, &planned), "after");
    assert_eq!(standing(&device, &made), "after", "blocks beside do not count");
}

#[test]
fn port_of_a_switch_is_named_and_switched_off_below_its_switch() {
    let device = Device::new();
    let port = |more: Value| {
        let mut payload = json!({ "switchMac": "3C-6A-D2-00-01-20", "port": 7 });
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        payload
    };
    let named = applied(&device, "switch.port-name", Operation::Update, &port(json!({ "name": "printer" })));
    assert_eq!(standing(&device, &named), "after");
    assert!(
        named.native[0].path.ends_with("/switches/3C-6A-D2-00-01-20/ports/7/name"),
        "{}",
        named.native[0].path
    );
    let off = applied(&device, "switch.port-state", Operation::Update, &port(json!({ "status": 0 })));
    run(&device, Stage::Restore, &off).unwrap();
    assert_eq!(standing(&device, &off), "before");
    let wide = port(json!({ "disable": true, "duplex": 2 }));
    let set = applied(&device, "switch.port-setting", Operation::Update, &wide);
    assert_eq!(standing(&device, &set), "after");
    let nowhere = json!({ "switchMac": "3C-6A-D2-00-01-99", "port": 7, "name": "x" });
    assert!(matches!(
        plan(&device, &change("switch.port-name", Operation::Update, &nowhere)),
        Err(Fault::NotFound(_))
    ));
}
