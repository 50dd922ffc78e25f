//! Writes of several people at the same time, what the controller rewrites, and answers that lie or get lost.

use heddle_sdk::testing::{FakeHost, send_stage};
use heddle_sdk::{Effect, Fault, FaultExt, Method, Operation, Stage, fault};
use serde_json::{Value, json};

use super::device::{Device, description, package};
use super::{applied, change, plan, run, standing};
use crate::Unifi;

fn group(name: &str, member: &str) -> Value {
    json!({ "name": name, "group_type": "address-group", "group_members": [member] })
}

#[test]
fn same_name_that_another_person_made_meanwhile_is_not_doubled() {
    let device = Device::new();
    let planned =
        plan(&device, &change("firewall.group", Operation::Create, &group("sample", "192.0.2.7"))).unwrap();
    applied(&device, "firewall.group", Operation::Create, &group("sample", "192.0.2.8"));
    let writes = device.writes.get();
    let fault = run(&device, Stage::Apply, &planned).unwrap_err();
    assert_eq!(fault.info().code.as_deref(), Some("state-moved"));
    assert_eq!(device.writes.get(), writes);
}

#[test]
fn edit_of_another_field_after_the_apply_is_told_and_not_taken_back() {
    let device = Device::new();
    let made = json!({ "name": "sample", "qos_rate_max_up": 1000, "qos_rate_max_down": 1000 });
    applied(&device, "profiles.client-group", Operation::Create, &made);
    let ours = applied(
        &device,
        "profiles.client-group",
        Operation::Update,
        &json!({ "name": "sample", "qos_rate_max_up": 2000 }),
    );
    applied(
        &device,
        "profiles.client-group",
        Operation::Update,
        &json!({ "name": "sample", "qos_rate_max_down": 3000 }),
    );
    run(&device, Stage::Restore, &ours).unwrap();
    let row = device.row("usergroup", "name", "sample");
    assert_eq!((&row["qos_rate_max_up"], &row["qos_rate_max_down"]), (&json!(1000), &json!(3000)));
}

#[test]
fn value_that_the_controller_rewrites_is_adjusted_and_no_failure() {
    let device = Device::new();
    let wlan = device.table("wlanconf").remove(0);
    let path = format!("/api/s/default/rest/wlanconf/{}", wlan["_id"].as_str().unwrap());
    device.person(Method::Put, &path, &json!({ "setting_preference": "manual", "group_rekey": 3600 }));
    let payload = json!({ "name": wlan["name"], "setting_preference": "auto", "group_rekey": 1800 });
    let planned = applied(&device, "wifi.wlan", Operation::Update, &payload);
    let found = standing(&device, &planned);
    assert!(found.starts_with("adjusted"), "{found}");
    assert!(found.contains("group_rekey"), "{found}");
}

#[test]
fn write_that_is_accepted_and_dropped_is_seen() {
    let device = Device::new();
    let payload = json!({ "name": "sample", "group_type": "address-group", "group_members": ["192.0.2.7"] });
    applied(&device, "firewall.group", Operation::Create, &payload);
    let update = json!({ "name": "sample", "group_members": ["192.0.2.9"] });
    let planned = plan(&device, &change("firewall.group", Operation::Update, &update)).unwrap();
    device.lab().fault(heddle_lab::Fault::vendor("dropped_write", Value::Null));
    run(&device, Stage::Apply, &planned).unwrap();
    assert_eq!(standing(&device, &planned), "before");
}

#[test]
fn create_that_answers_a_failure_may_have_stored_the_object() {
    let device = Device::new();
    let payload = json!({ "name": "sample", "network_ids": [] });
    let planned = plan(&device, &change("firewall.zone-legacy", Operation::Create, &payload)).unwrap();
    device.lab().fault(heddle_lab::Fault::vendor("stored_with_error", Value::Null));
    let fault = run(&device, Stage::Apply, &planned).unwrap_err();
    assert_eq!(fault.info().effect, Effect::Possible, "{fault:?}");
    assert_eq!(standing(&device, &planned), "after");
}

#[test]
fn lost_answer_leaves_an_object_that_is_found_and_taken_back() {
    let device = Device::new();
    let planned =
        plan(&device, &change("firewall.group", Operation::Create, &group("sample", "192.0.2.7"))).unwrap();
    let host = FakeHost::new(|request, auth| {
        let answer = device.exchange(request, auth);
        let is_create = request.path.ends_with("/rest/firewallgroup") && !package().is_read(request);
        if is_create { Err(fault::timeout("no answer")) } else { Ok(answer) }
    })
    .with_package(package());
    let lost = send_stage::<Unifi>(&host, Stage::Apply, &[], &planned).unwrap_err();
    assert!(matches!(lost, Fault::Timeout(_)), "{lost:?}");
    assert_eq!(standing(&device, &planned), "after");
}

#[test]
fn network_in_use_is_a_conflict() {
    let device = Device::new();
    let used: Vec<Value> =
        device.table("wlanconf").iter().map(|wlan| wlan["networkconf_id"].clone()).collect();
    let network = device
        .table("networkconf")
        .into_iter()
        .find(|network| used.contains(&network["_id"]) && network["attr_no_delete"] != true)
        .expect("a wireless network has a network of its own");
    let payload = json!({ "name": network["name"] });
    let planned = plan(&device, &change("networks.lan", Operation::Delete, &payload)).unwrap();
    let fault = run(&device, Stage::Apply, &planned).unwrap_err();
    assert!(matches!(fault, Fault::Conflict(_)), "{fault:?}");
}

#[test]
fn update_sends_what_changes_and_no_more() {
    let device = Device::new();
    applied(
        &device,
        "profiles.client-group",
        Operation::Create,
        &json!({ "name": "sample", "qos_rate_max_up": 1000 }),
    );
    let payload = json!({ "name": "sample", "qos_rate_max_up": 2000 });
    let planned = plan(&device, &change("profiles.client-group", Operation::Update, &payload)).unwrap();
    let body = planned.native[0].json().unwrap();
    let mut names: Vec<&String> = body.as_object().unwrap().keys().collect();
    names.sort();
    assert_eq!(names, ["_id", "qos_rate_max_up"], "{body}");
}

#[test]
fn setting_without_a_value_is_told_to_keep_the_new_one() {
    let device = Device::new();
    let payload = json!({ "netconsole_port": 514 });
    let planned = plan(&device, &change("setting.rsyslogd", Operation::Update, &payload)).unwrap();
    let is_told = planned.warnings.iter().any(|warning| warning.ends_with(": netconsole_port"));
    assert!(is_told && planned.inverse.is_none(), "{:?}", planned.warnings);
    let body = planned.native[0].json().unwrap();
    let mut names: Vec<&String> = body.as_object().unwrap().keys().collect();
    names.sort();
    assert_eq!(names, ["key", "netconsole_port"], "only what changes: {body}");
    let payload = json!({ "enabled": true });
    let planned = plan(&device, &change("setting.rsyslogd", Operation::Update, &payload)).unwrap();
    assert!(planned.warnings.is_empty() && planned.inverse.is_some(), "{planned:?}");
}

#[test]
fn field_that_an_update_cannot_empty_is_refused_by_name() {
    let device = Device::new();
    applied(
        &device,
        "radius.account",
        Operation::Create,
        &json!({ "name": "bob", "x_password": "a-password", "vlan": 20 }),
    );
    for (feature, payload, field) in [
        ("radius.account", json!({ "name": "bob", "vlan": null }), "vlan"),
        ("setting.rsyslogd", json!({ "port": null }), "port"),
    ] {
        let fault = plan(&device, &change(feature, Operation::Update, &payload)).unwrap_err();
        assert!(matches!(fault, Fault::Invalid(_)), "{fault:?}");
        let fields: Vec<&str> = fault.info().fields.iter().map(|one| one.pointer.as_str()).collect();
        assert_eq!(fields, [format!("/{field}")], "{feature}");
        let feature = package().feature(&format!("unifi.{feature}")).unwrap();
        let operations = feature["operations"].as_array().unwrap();
        let update = operations.iter().find(|one| one["operation"] == "update").unwrap();
        assert!(update["payload-schema"]["properties"][field]["type"].is_string(), "it offers no null");
    }
}

#[test]
fn what_is_absent_is_taken_back_only_where_its_meaning_is_known() {
    let device = Device::new();
    let mac = super::samples::mac_of(&device, "switch").unwrap();
    let of = |feature: &str, field: &str, value: Value| {
        let payload = json!({ "mac": mac, field: value });
        plan(&device, &change(feature, Operation::Update, &payload)).unwrap()
    };
    // A text that may not be empty, and a truth value that may be either where nothing is said.
    for (feature, field, value) in [
        ("devices.address", "hostname", json!("desk")),
        ("devices.spanning-tree", "switch_vlan_enabled", json!(true)),
    ] {
        let planned = of(feature, field, value);
        let is_told = planned.warnings.iter().any(|warning| warning.ends_with(&format!(": {field}")));
        assert!(is_told && planned.inverse.is_none(), "{field}: {planned:?}");
    }
    let planned = of("devices.spanning-tree", "jumboframe_enabled", json!(true));
    let is_told = planned.warnings.iter().any(|warning| warning.contains("keeps the new one"));
    assert!(!is_told && planned.inverse.is_some(), "{planned:?}");
}

#[test]
fn profile_says_which_ports_it_reaches() {
    let device = Device::new();
    applied(
        &device,
        "ports.profile",
        Operation::Create,
        &json!({ "name": "sample", "setting_preference": "manual" }),
    );
    let id = device.row("portconf", "name", "sample")["_id"].clone();
    let mac = super::samples::mac_of(&device, "switch").unwrap();
    for number in [2, 3] {
        let payload = json!({ "mac": mac, "port_idx": number, "portconf_id": id });
        applied(&device, "ports.port", Operation::Update, &payload);
    }
    let payload = json!({ "name": "sample", "isolation": true });
    let planned = plan(&device, &change("ports.profile", Operation::Update, &payload)).unwrap();
    assert!(planned.also.iter().any(|also| also.contains("2, 3")), "{:?}", planned.also);
    assert!(planned.lockout_risk);
}

#[test]
fn deleted_policy_comes_back_at_the_end_of_its_pair() {
    let device = Device::new();
    let zones = device.table("firewall_zone");
    let side = json!({ "zone_id": zones[0]["_id"], "matching_target": "ANY", "port_matching_type": "ANY" });
    let payload = json!({
        "name": "sample", "enabled": true, "action": "BLOCK", "protocol": "all", "ip_version": "BOTH",
        "create_allow_respond": false, "schedule": { "mode": "ALWAYS" }, "source": side, "destination": side,
    });
    let made = applied(&device, "firewall.zone-policy", Operation::Create, &payload);
    let is_of_zone = |also: &String| also.contains("of the zone");
    assert!(!made.also.iter().any(is_of_zone), "a policy is no zone: {:?}", made.also);
    let is_told = |warning: &String| warning.contains("at the end of its pair");
    assert!(!made.warnings.iter().any(is_told), "{:?}", made.warnings);
    let planned =
        plan(&device, &change("firewall.zone-policy", Operation::Delete, &json!({ "name": "sample" })))
            .unwrap();
    assert!(planned.warnings.iter().any(is_told), "{:?}", planned.warnings);
    let payload = json!({ "name": "sample", "network_ids": [] });
    let planned = plan(&device, &change("firewall.zone-legacy", Operation::Create, &payload)).unwrap();
    assert!(planned.also.iter().any(is_of_zone), "{:?}", planned.also);
}

#[test]
fn dangers_are_those_of_what_is_lost() {
    let danger = |feature: &str, word: &str| {
        let feature = package().feature(&format!("unifi.{feature}")).unwrap();
        let operations = feature["operations"].as_array().unwrap();
        operations.iter().find(|one| one["operation"] == word).unwrap()["danger"].clone()
    };
    for feature in [
        "devices.forget",
        "firmware.device-upgrade",
        "system.reboot-console",
        "backup.restore",
        "devices.migrate",
        "admins.grant-super",
        "admins.revoke-super",
    ] {
        assert_eq!(danger(feature, "create"), "catastrophic", "{feature}");
    }
    for (feature, word) in [
        ("clients.block", "create"),
        ("devices.restart", "create"),
        ("wan.connection", "update"),
        ("devices.address", "update"),
        ("setting.country", "update"),
        ("wifi.wlan", "delete"),
        ("wifi.wlan-override", "create"),
    ] {
        assert_eq!(danger(feature, word), "destructive", "{feature}");
    }
    assert_eq!(danger("system.site", "delete"), "catastrophic");
    let access = package().feature("unifi.clients.access").unwrap();
    let wanted = json!([{ "field": "action", "is": "UNAUTHORIZE_GUEST_ACCESS", "danger": "destructive" }]);
    assert_eq!(
        (danger("clients.access", "create"), &access["binding"]["danger-if"]),
        (json!("normal"), &wanted)
    );
    assert!(description()["features"].as_array().unwrap().len() > 150);
}

#[test]
fn address_of_the_controller_for_devices_is_catastrophic() {
    let device = Device::new();
    for (feature, payload) in [
        ("setting.super-mgmt", json!({ "override_inform_host": true })),
        ("setting.super-mgmt", json!({ "override_inform_host_location": "192.0.2.7" })),
        ("setting.super-identity", json!({ "hostname": "elsewhere.example" })),
    ] {
        let planned = plan(&device, &change(feature, Operation::Update, &payload)).unwrap();
        let is_told = planned.danger == heddle_sdk::Danger::Catastrophic && planned.lockout_risk;
        assert!(is_told, "{payload}: {planned:?}");
    }
    // Where it is on, devices lose the address when it is switched off.
    let on = json!({ "override_inform_host": true, "key": "super_mgmt" });
    device.person(Method::Put, "/api/s/default/set/setting/super_mgmt", &on);
    let payload = json!({ "override_inform_host": false });
    let planned = plan(&device, &change("setting.super-mgmt", Operation::Update, &payload)).unwrap();
    assert!(planned.danger == heddle_sdk::Danger::Catastrophic && planned.lockout_risk, "{planned:?}");
    let payload = json!({ "name": "another name" });
    let planned = plan(&device, &change("setting.super-identity", Operation::Update, &payload)).unwrap();
    assert!(planned.danger != heddle_sdk::Danger::Catastrophic, "{planned:?}");
}
