//! Changes in the words of the model: what was asked for is what the model shows afterwards.

use heddle_sdk::testing::conformance::{ModelCase, every_model_write};
use heddle_sdk::{Adapter as _, FaultExt as _, ModelChange};
use serde_json::{Value, json};

use super::device::{Device, package};
use super::model::{filled, of};
use crate::Opnsense;

fn case(kind: &'static str, create: Value, updates: Vec<Value>) -> ModelCase {
    ModelCase { kind, create, updates, deletes: true, ..ModelCase::default() }
}

/// Something that is there, by its label.
fn existing(device: &Device, kind: &'static str, label: &str) -> ModelCase {
    let key = super::model::key_of(device, kind, label);
    ModelCase { kind, key: Some(key), ..ModelCase::default() }
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn what_is_written_in_the_words_of_the_model_is_read_back() {
    let known = filled();
    let cases = [
        case(
            "vlan",
            json!({ "vlan_id": 77, "name": "guests", "members": [{ "port": "lan", "tagged": true }] }),
            vec![
                json!({ "name": "visitors" }),
                json!({ "members": [{ "port": "lan", "tagged": true }], "name": null }),
            ],
        ),
        case(
            "route",
            json!({ "destination": "10.77.0.0/16", "next_hop": "198.51.100.1", "type": "unicast", "name": "lab", "enabled": true }),
            vec![json!({ "enabled": false, "name": "off", "type": "unicast", "next_hop": "198.51.100.1" })],
        ),
        case("route", json!({ "destination": "10.78.0.0/16", "type": "blackhole" }), vec![]),
        case(
            "dhcp-pool",
            json!({ "interface": "lan", "ranges": [{ "from": "192.168.1.70", "to": "192.168.1.79" }], "domain": "x.example", "lease_seconds": 900 }),
            vec![
                json!({ "ranges": [{ "from": "192.168.1.70", "to": "192.168.1.75" }], "lease_seconds": 1200, "domain": "y.example" }),
            ],
        ),
        ModelCase {
            updates: vec![json!({
                "ranges": [{ "from": "192.168.1.100", "to": "192.168.1.120" }, { "from": "192.168.1.130", "to": "192.168.1.140" }],
                "lease_seconds": 7200, "gateway": "192.168.1.1", "dns_servers": ["192.168.1.1", "9.9.9.9"], "domain": "z.example",
            })],
            ..existing(&known, "dhcp-pool", "192.168.1.0/24")
        },
        case(
            "dhcp-reservation",
            json!({ "scope": "192.168.1.0/24", "mac": "aa:bb:cc:00:00:99", "address": "192.168.1.99", "hostname": "desk" }),
            vec![json!({ "address": "192.168.1.98", "hostname": "table" })],
        ),
        case(
            "dns-record",
            json!({ "name": "www.x.example", "type": "A", "value": "192.0.2.9", "ttl_seconds": 120, "enabled": true }),
            vec![
                json!({ "ttl_seconds": 300, "enabled": false, "name": "www.x.example", "value": "192.0.2.9" }),
            ],
        ),
        case(
            "dns-record",
            json!({ "name": "x.example", "type": "TXT", "value": "v=1" }),
            vec![json!({ "value": "v=2" })],
        ),
        case(
            "firewall-rule",
            json!({
                "name": "from the model", "action": "drop", "direction": "in", "ip_version": "4", "enabled": true,
                "scope": { "kind": "interface", "key": "lan" }, "from": ["lan"], "protocol": "tcp",
                "source": { "addresses": ["192.0.2.0/24"], "negated": true }, "destination": { "any": true },
                "source_ports": ["1024-65535"], "destination_ports": ["443"], "log": true, "final": true,
            }),
            vec![
                json!({ "enabled": false, "action": "reject", "log": false, "final": false, "ip_version": "both" }),
                json!({ "scope": { "kind": "floating" }, "from": ["lan", "opt1"], "source": { "any": true } }),
                json!({ "protocol": "udp", "destination": { "groups": ["web_servers"] }, "direction": "in",
                        "source_ports": ["53"], "destination_ports": ["1000-2000"] }),
            ],
        ),
        case(
            "firewall-rule",
            json!({ "name": "goes out", "action": "accept", "direction": "out", "to": ["wan"] }),
            vec![json!({ "to": ["opt1"] })],
        ),
        case(
            "nat-rule",
            json!({
                "type": "port-forward", "name": "to the web", "interface": "wan", "protocol": "tcp", "enabled": true,
                "source": ["198.51.100.0/24"], "external": { "addresses": ["wanip"], "ports": ["8443"] },
                "internal": { "addresses": ["192.168.1.20"], "ports": ["443"] }, "passes": true,
            }),
            vec![
                json!({ "type": "port-forward", "enabled": false, "interface": "wan", "protocol": "udp", "passes": false, "source": ["198.51.100.7"],
                         "external": { "addresses": ["wanip"], "ports": ["53"] },
                         "internal": { "addresses": ["192.168.1.21"], "ports": ["53"] } }),
            ],
        ),
        case(
            "address-group",
            json!({ "name": "offices", "type": "addresses", "members": ["192.0.2.0/24", "198.51.100.7"] }),
            vec![json!({ "members": ["192.0.2.0/25"], "type": "addresses" })],
        ),
        case("address-group", json!({ "name": "high", "type": "ports", "members": ["8080"] }), vec![]),
        case(
            "vpn-peer",
            json!({ "tunnel": super::model::fields_of(&known, "vpn-peer", 0)["tunnel"], "name": "tablet",
                    "public_key": "aGVkZGxlaGVkZGxlaGVkZGxlaGVkZGxlaGVkZGxlaGU=", "allowed": ["10.9.0.9/32"], "endpoint": "192.0.2.7:51820" }),
            vec![],
        ),
        case(
            "radius-user",
            json!({ "name": "erin", "password": "secret-of-erin", "vlan_id": 20, "enabled": true }),
            vec![json!({ "vlan_id": 30, "enabled": false, "password": "another-secret" })],
        ),
        case("snapshot", json!({ "of": { "kind": "system", "key": "firewall" }, "name": "kept" }), vec![]),
        ModelCase { actions: &["roll-back"], ..existing(&known, "snapshot", "before") },
        ModelCase {
            updates: vec![json!({ "enabled": false }), json!({ "enabled": true })],
            ..existing(&known, "vpn-tunnel", "road")
        },
        ModelCase { actions: &["stop", "start", "restart"], ..existing(&known, "service", "unbound") },
        ModelCase {
            kind: "system",
            key: Some("firewall".to_owned()),
            actions: &["reboot"],
            ..ModelCase::default()
        },
        ModelCase {
            kind: "system",
            key: Some("firewall".to_owned()),
            actions: &["shutdown"],
            ..ModelCase::default()
        },
    ];
    every_model_write(package(), |_| filled(), &cases);
}

#[test]
fn what_the_firewall_has_no_word_for_names_the_field() {
    let device = filled();
    let _ = of(&device, "firewall-rule", "odd");
    for (kind, payload, field) in [
        ("route", json!({ "destination": "10.0.0.0/8", "next_hop": "192.0.2.250" }), "/next_hop"),
        ("route", json!({ "destination": "10.0.0.0/8", "metric": 5, "next_hop": "198.51.100.1" }), "/metric"),
        ("vlan", json!({ "vlan_id": 5, "members": [{ "port": "igb0" }, { "port": "igb1" }] }), "/members"),
        (
            "vlan",
            json!({ "vlan_id": 5, "members": [{ "port": "igb0", "tagged": false }] }),
            "/members/0/tagged",
        ),
        ("firewall-rule", json!({ "action": "drop", "direction": "in", "to": ["wan"] }), "/to"),
        (
            "firewall-rule",
            json!({ "action": "drop", "scope": { "kind": "zone", "key": "a" } }),
            "/scope/kind",
        ),
        ("nat-rule", json!({ "type": "one-to-one" }), "/type"),
        ("dns-record", json!({ "name": "bare", "type": "A", "value": "192.0.2.1" }), "/name"),
        ("dns-record", json!({ "name": "a.example", "type": "CNAME", "value": "b.example" }), "/type"),
        ("vpn-peer", json!({ "tunnel": "wg0", "public_key": "x", "endpoint": "nowhere" }), "/endpoint"),
        ("snapshot", json!({ "of": { "kind": "system", "key": "other" }, "name": "x" }), "/of/key"),
    ] {
        let change = ModelChange {
            kind: kind.to_owned(),
            verb: "create".to_owned(),
            site: None,
            payload: payload.to_string(),
        };
        let fault = Opnsense::express(&device.host(), &[change]).unwrap_err();
        let fields: Vec<&str> = fault.info().fields.iter().map(|one| one.pointer.as_str()).collect();
        assert_eq!(fields, [field], "{kind} {payload}: {}", fault.info().message);
    }
}
