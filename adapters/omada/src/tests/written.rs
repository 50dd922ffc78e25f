//! Changes in the words of the model: what was asked for is what the model shows afterwards.

use heddle_sdk::testing::conformance::{ModelCase, every_model_write};
use heddle_sdk::{Adapter as _, FaultExt as _, ModelChange};
use serde_json::{Value, json};

use super::device::{Device, package};
use super::model::{controller, key_of};
use crate::Omada;

fn case(kind: &'static str, create: Value, updates: Vec<Value>) -> ModelCase {
    ModelCase { kind, create, updates, deletes: true, ..ModelCase::default() }
}

/// Something that is there, by its label.
fn existing(device: &Device, kind: &'static str, label: &str) -> ModelCase {
    ModelCase { kind, key: Some(key_of(device, kind, label)), ..ModelCase::default() }
}

fn new_device(_: &ModelCase) -> Device {
    controller()
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn what_is_written_in_the_words_of_the_model_is_read_back() {
    let known = controller();
    let cases = [
        case("vlan", json!({ "vlan_id": 77, "name": "Cameras" }), vec![json!({ "vlan_id": 78 })]),
        case(
            "ssid",
            json!({ "name": "Lobby", "security": "wpa2-psk", "passphrase": "hunter2-hunter2", "bands": ["2.4", "5"],
                    "hidden": true, "fast_roaming": true, "pmf": "optional", "vlan_id": 20 }),
            vec![
                json!({ "security": "wpa3-sae", "passphrase": "another-passphrase", "pmf": "required", "bands": ["5"] }),
                json!({ "hidden": false, "fast_roaming": false, "vlan_id": null }),
                json!({ "passphrase": "a-third-passphrase" }),
            ],
        ),
        case("ssid", json!({ "name": "Open", "security": "open" }), vec![]),
        ModelCase {
            updates: vec![json!({ "enabled": false, "power_level": "low" }), json!({ "enabled": true })],
            ..existing(&known, "radio", "5 GHz")
        },
        ModelCase {
            updates: vec![
                json!({ "name": "To the roof", "enabled": false, "poe": { "enabled": false } }),
                json!({ "enabled": true, "poe": { "enabled": true } }),
                json!({ "name": "Roof" }),
            ],
            ..ModelCase {
                kind: "port",
                key: Some(format!("{}:3", super::model::SWITCH)),
                ..ModelCase::default()
            }
        },
        case(
            "route",
            json!({ "destination": "10.77.0.0/16", "next_hop": "192.168.0.9", "type": "unicast", "name": "far",
                    "metric": 3, "enabled": true }),
            vec![json!({ "next_hop": "192.168.0.8", "metric": 4, "enabled": false, "type": "unicast",
                         "destination": "10.77.0.0/16" })],
        ),
        case(
            "dhcp-reservation",
            json!({ "mac": "aa:bb:cc:00:00:77", "address": "192.168.20.77", "scope": "Staff" }),
            vec![json!({ "address": "192.168.20.78", "scope": "Staff", "mac": "aa:bb:cc:00:00:77" })],
        ),
        ModelCase {
            updates: vec![
                json!({ "enabled": false, "protocol": "udp", "external": { "ports": ["53"] }, "type": "port-forward",
                        "internal": { "addresses": ["192.168.0.21"], "ports": ["53"] } }),
                json!({ "enabled": true }),
            ],
            deletes: true,
            ..existing(&known, "nat-rule", "web")
        },
        case(
            "address-group",
            json!({ "name": "Offices", "type": "addresses", "members": ["192.0.2.0/24", "198.51.100.7/32"] }),
            vec![json!({ "members": ["192.0.2.0/25"], "type": "addresses" })],
        ),
        ModelCase { actions: &["block", "unblock"], ..first(&known, "client") },
        ModelCase { actions: &["reconnect"], ..wireless(&known) },
        ModelCase { actions: &["reboot"], ..first(&known, "system") },
    ];
    let rules = super::model::rules(&known).into_iter().map(|(key, is_of_gateway)| ModelCase {
        kind: "firewall-rule",
        key: Some(key),
        updates: vec![
            if is_of_gateway {
                json!({ "enabled": false, "action": "drop", "log": true })
            } else {
                json!({ "enabled": false, "action": "drop" })
            },
            json!({ "enabled": true, "action": "accept" }),
        ],
        deletes: !is_of_gateway,
        ..ModelCase::default()
    });
    let cases: Vec<ModelCase> = cases.into_iter().chain(rules).collect();
    every_model_write(package(), new_device, &cases);
}

fn first(device: &Device, kind: &'static str) -> ModelCase {
    ModelCase { kind, key: Some(super::model::first_key(device, kind, |_| true)), ..ModelCase::default() }
}

fn wireless(device: &Device) -> ModelCase {
    let key = super::model::first_key(device, "client", |fields| fields["connection"] == "wireless");
    ModelCase { kind: "client", key: Some(key), ..ModelCase::default() }
}

#[test]
fn what_the_controller_has_no_word_for_names_the_field() {
    let device = controller();
    for (kind, verb, payload, field) in [
        ("vlan", "create", json!({ "vlan_id": 5, "name": "x", "dhcp": "server" }), "/dhcp"),
        ("ssid", "create", json!({ "name": "x", "security": "wpa3-enterprise" }), "/security"),
        ("ssid", "create", json!({ "name": "x", "security": "open", "passphrase": "x" }), "/passphrase"),
        ("ssid", "create", json!({ "name": "x", "security": "open", "isolation": true }), "/isolation"),
        ("route", "create", json!({ "destination": "10.0.0.0/8", "type": "blackhole" }), "/type"),
        (
            "dhcp-reservation",
            "create",
            json!({ "mac": "aa:bb:cc:00:00:77", "address": "10.0.0.1", "scope": "x" }),
            "/scope",
        ),
        (
            "dhcp-reservation",
            "create",
            json!({ "mac": "aa:bb:cc:00:00:77", "address": "10.0.0.1", "hostname": "x" }),
            "/hostname",
        ),
        ("address-group", "create", json!({ "name": "x", "type": "ports", "members": ["80"] }), "/type"),
        ("address-group", "create", json!({ "name": "x", "members": ["2001:db8::/32"] }), "/members"),
        (
            "port",
            "update",
            json!({ "key": format!("{}:3", super::model::SWITCH), "native_vlan": 20 }),
            "/native_vlan",
        ),
    ] {
        let change = ModelChange {
            kind: kind.to_owned(),
            verb: verb.to_owned(),
            site: None,
            payload: payload.to_string(),
        };
        let fault = Omada::express(&device.host(), &[change]).unwrap_err();
        let fields: Vec<&str> = fault.info().fields.iter().map(|one| one.pointer.as_str()).collect();
        assert!(fields.contains(&field), "{kind} {payload}: {} {fields:?}", fault.info().message);
    }
}
