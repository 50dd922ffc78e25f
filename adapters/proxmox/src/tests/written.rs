//! Changes in the words of the model: what was asked for is what the model shows afterwards.

use heddle_sdk::testing::conformance::{ModelCase, every_model_write};
use heddle_sdk::{Adapter as _, FaultExt as _, ModelChange};
use serde_json::{Value, json};

use super::device::{Device, package};
use super::model::cluster;
use crate::Proxmox;

fn case(kind: &'static str, create: Value, updates: Vec<Value>) -> ModelCase {
    ModelCase { kind, create, updates, deletes: true, ..ModelCase::default() }
}

fn existing(kind: &'static str, key: &str) -> ModelCase {
    ModelCase { kind, key: Some(key.to_owned()), ..ModelCase::default() }
}

/// A rule in one of the lists.
fn rule(scope: &str) -> ModelCase {
    let scope = json!({ "kind": "table", "key": scope });
    case(
        "firewall-rule",
        json!({
            "scope": scope, "name": "from the model", "action": "accept", "direction": "in", "enabled": true,
            "protocol": "tcp", "source": { "addresses": ["192.0.2.0/24"] }, "destination": { "any": true },
            "source_ports": ["1024-65535"], "destination_ports": ["443", "8443"], "log": true,
        }),
        vec![
            json!({ "enabled": false, "action": "drop", "log": false, "scope": scope }),
            json!({ "protocol": "udp", "source": { "any": true }, "destination": { "groups": ["management"] },
                    "source_ports": [], "destination_ports": ["53"], "direction": "in" }),
        ],
    )
}

fn new_device(_: &ModelCase) -> Device {
    cluster()
}

#[test]
fn what_is_written_in_the_words_of_the_model_is_read_back() {
    let cases = [
        case(
            "vlan",
            json!({ "vlan_id": 77, "name": "Guests" }),
            vec![json!({ "name": "Visitors" }), json!({ "vlan_id": 78, "interface": "vlan77" })],
        ),
        case("vlan", json!({ "vlan_id": 79, "interface": "office" }), vec![]),
        ModelCase {
            updates: vec![json!({
                "ranges": [{ "from": "10.50.0.10", "to": "10.50.0.20" }, { "from": "10.50.0.30", "to": "10.50.0.40" }],
                "gateway": "10.50.0.2", "dns_servers": ["10.50.0.53"],
            })],
            deletes: true,
            ..existing("dhcp-pool", "visitors:10.50.0.0/24")
        },
        case(
            "dhcp-reservation",
            json!({ "scope": "servers", "mac": "bc:24:11:00:09:09", "address": "10.40.0.19" }),
            vec![],
        ),
        rule("cluster"),
        rule("node/pve1"),
        rule("qemu/101"),
        rule("lxc/200"),
        case(
            "firewall-rule",
            json!({ "scope": { "kind": "table", "key": "node/pve1" }, "name": "by a card", "action": "reject",
                    "direction": "out", "to": ["vmbr0"] }),
            vec![json!({ "direction": "in", "from": ["vmbr0"], "to": [] })],
        ),
        case(
            "firewall-rule",
            json!({ "scope": { "kind": "table", "key": "qemu/101" }, "name": "in by a card", "action": "drop",
                    "from": ["net0"] }),
            vec![],
        ),
        case(
            "address-group",
            json!({ "name": "offices", "type": "addresses", "members": ["192.0.2.0/24"] }),
            vec![json!({ "members": ["198.51.100.7"], "type": "addresses" })],
        ),
        ModelCase {
            updates: vec![
                json!({ "members": ["10.20.0.0/24", "192.0.2.0/24", "!192.0.2.9"], "type": "addresses" }),
                json!({ "members": ["192.0.2.0/24"] }),
            ],
            deletes: true,
            ..existing("address-group", "+management")
        },
        ModelCase { actions: &["restart"], ..existing("service", "pve1:pveproxy") },
        ModelCase { actions: &["stop", "start"], ..existing("service", "pve1:postfix") },
        ModelCase { actions: &["stop", "start", "reboot", "shutdown"], ..existing("guest", "101") },
        ModelCase { actions: &["stop", "start", "reboot", "shutdown"], ..existing("guest", "200") },
        ModelCase { actions: &["stop"], deletes: true, ..existing("guest", "200") },
        ModelCase {
            actions: &["roll-back"],
            ..case("snapshot", json!({ "of": { "kind": "guest", "key": "101" }, "name": "kept" }), vec![])
        },
        ModelCase {
            actions: &["roll-back"],
            ..case("snapshot", json!({ "of": { "kind": "guest", "key": "200" }, "name": "kept" }), vec![])
        },
        ModelCase { actions: &["reboot"], ..existing("system", "pve2") },
        ModelCase { actions: &["shutdown"], ..existing("system", "pve2") },
    ];
    every_model_write(package(), new_device, &cases);
}

#[test]
fn what_the_cluster_has_no_word_for_names_the_field() {
    let device = cluster();
    let scope = json!({ "kind": "table", "key": "cluster" });
    for (kind, payload, field) in [
        ("vlan", json!({ "vlan_id": 5, "interface": "much-too-long" }), "/interface"),
        ("vlan", json!({ "vlan_id": 5, "dhcp": "server" }), "/dhcp"),
        (
            "dhcp-reservation",
            json!({ "scope": "nowhere", "mac": "bc:24:11:00:09:09", "address": "10.0.0.1" }),
            "/scope",
        ),
        (
            "firewall-rule",
            json!({ "action": "drop", "scope": { "kind": "interface", "key": "lan" } }),
            "/scope/kind",
        ),
        ("firewall-rule", json!({ "action": "drop", "scope": scope, "position": 3 }), "/position"),
        ("firewall-rule", json!({ "action": "drop", "scope": scope, "direction": "in", "to": ["a"] }), "/to"),
        (
            "firewall-rule",
            json!({ "action": "drop", "scope": scope, "source": { "addresses": ["10.0.0.1"], "negated": true } }),
            "/source/negated",
        ),
        (
            "firewall-rule",
            json!({ "action": "drop", "scope": { "kind": "table", "key": "qemu/x" } }),
            "/scope/key",
        ),
        ("address-group", json!({ "name": "a", "type": "ports", "members": ["80"] }), "/type"),
        ("address-group", json!({ "name": "a", "members": ["192.0.2.1", "192.0.2.2"] }), "/members"),
        ("snapshot", json!({ "of": { "kind": "guest", "key": "x" }, "name": "a" }), "/of/key"),
        ("snapshot", json!({ "of": { "kind": "system", "key": "pve1" }, "name": "a" }), "/of/kind"),
    ] {
        let change = ModelChange {
            kind: kind.to_owned(),
            verb: "create".to_owned(),
            site: None,
            payload: payload.to_string(),
        };
        let fault = Proxmox::express(&device.host(), &[change]).unwrap_err();
        let fields: Vec<&str> = fault.info().fields.iter().map(|one| one.pointer.as_str()).collect();
        assert!(fields.contains(&field), "{kind} {payload}: {} {fields:?}", fault.info().message);
    }
}
