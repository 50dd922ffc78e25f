//! Changes in the words of the model: what was asked for is what the model shows afterwards.

use heddle_sdk::testing::conformance::{ModelCase, every_model_write};
use heddle_sdk::{Adapter as _, FaultExt as _, ModelChange};
use serde_json::{Value, json};

use super::device::{Device, package};
use super::model::{filled, key_of};
use crate::Pfsense;

fn case(kind: &'static str, create: Value, updates: Vec<Value>) -> ModelCase {
    ModelCase { kind, create, updates, deletes: true, ..ModelCase::default() }
}

/// Something that is there, by its label.
fn existing(device: &Device, kind: &'static str, label: &str) -> ModelCase {
    ModelCase { kind, key: Some(key_of(device, kind, label)), ..ModelCase::default() }
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn what_is_written_in_the_words_of_the_model_is_read_back() {
    let known = filled();
    let switched = |label: &str| ModelCase {
        updates: vec![json!({ "enabled": false }), json!({ "enabled": true })],
        ..existing(&known, "vpn-tunnel", label)
    };
    let system = |actions: &'static [&'static str]| ModelCase {
        kind: "system",
        key: Some("firewall".to_owned()),
        actions,
        ..ModelCase::default()
    };
    let cases = [
        case(
            "vlan",
            json!({ "vlan_id": 77, "name": "guests of guests", "members": [{ "port": "lan", "tagged": true }] }),
            vec![json!({ "name": "visitors", "members": [{ "port": "lan", "tagged": true }] })],
        ),
        case(
            "route",
            json!({ "destination": "10.77.0.0/16", "next_hop": "192.168.1.254", "type": "unicast", "name": "lab", "enabled": true }),
            vec![json!({ "enabled": false, "name": "off", "type": "unicast", "next_hop": "198.51.100.1" })],
        ),
        ModelCase {
            updates: vec![json!({
                "interface": "lan", "ranges": [{ "from": "192.168.1.100", "to": "192.168.1.120" }], "enabled": true,
                "lease_seconds": 7200, "gateway": "192.168.1.1", "dns_servers": ["192.168.1.1", "9.9.9.9"], "domain": "z.example",
            })],
            ..existing(&known, "dhcp-pool", "LAN")
        },
        case(
            "dhcp-pool",
            json!({
                "interface": "opt2", "ranges": [{ "from": "192.0.2.100", "to": "192.0.2.120" }], "enabled": true,
                "lease_seconds": 3600, "gateway": "192.0.2.1", "dns_servers": ["192.0.2.53"], "domain": "y.example",
            }),
            vec![],
        ),
        case(
            "dhcp-reservation",
            json!({ "scope": "lan", "mac": "aa:bb:cc:00:00:99", "address": "192.168.1.40", "hostname": "desk" }),
            vec![json!({ "address": "192.168.1.41", "hostname": "table" })],
        ),
        case("dns-record", json!({ "name": "new.home.example", "type": "A", "value": "192.0.2.9" }), vec![]),
        case(
            "firewall-rule",
            json!({
                "scope": { "kind": "interface", "key": "lan" }, "name": "asked", "enabled": true, "action": "accept",
                "direction": "in", "ip_version": "4", "from": ["lan"], "source": { "networks": ["lan"] },
                "destination": { "addresses": ["192.0.2.0/24"], "negated": true }, "protocol": "tcp",
                "source_ports": ["1024-65535"], "destination_ports": ["443"], "log": true, "final": true,
            }),
            vec![json!({
                "scope": { "kind": "interface", "key": "opt1" }, "enabled": false, "action": "drop", "direction": "in",
                "from": ["opt1"], "source": { "any": true }, "destination": { "groups": ["web_servers"] }, "protocol": "udp",
                "source_ports": [], "destination_ports": ["53"], "log": false, "ip_version": "4", "final": true,
            })],
        ),
        case(
            "firewall-rule",
            json!({
                "scope": { "kind": "floating" }, "name": "everywhere", "action": "reject", "direction": "out", "ip_version": "6",
                "to": ["lan", "opt1"], "protocol": "tcp", "final": false,
            }),
            vec![json!({ "to": ["lan"], "direction": "out", "final": true })],
        ),
        case(
            "nat-rule",
            json!({
                "type": "port-forward", "name": "asked", "interface": "wan", "protocol": "tcp", "source": ["192.0.2.0/24"],
                "external": { "addresses": ["198.51.100.2"], "ports": ["8080"] },
                "internal": { "addresses": ["192.168.1.20"], "ports": ["80"] }, "passes": true, "enabled": true,
            }),
            vec![json!({
                "type": "port-forward", "interface": "wan", "protocol": "udp", "source": [], "enabled": false, "passes": true,
                "external": { "addresses": ["198.51.100.2"], "ports": ["8081-8082"] },
                "internal": { "addresses": ["192.168.1.21"], "ports": ["81"] },
            })],
        ),
        case(
            "address-group",
            json!({ "name": "asked", "type": "addresses", "members": ["192.0.2.0/24"] }),
            vec![json!({ "type": "addresses", "members": ["192.0.2.0/24", "198.51.100.0/24"] })],
        ),
        case(
            "vpn-peer",
            json!({
                "tunnel": "tun_wg0", "name": "phone", "public_key": "c2FtcGxlLXB1YmxpYy1rZXktb2YtMzItYnl0ZXMhIT0=",
                "allowed": ["10.9.0.7/32"], "endpoint": "192.0.2.7:51820",
            }),
            vec![],
        ),
        switched("road warriors"),
        switched("branch"),
        switched("remote access"),
        case(
            "radius-user",
            json!({ "name": "bob", "password": "password-of-bob", "vlan_id": 20 }),
            vec![json!({ "vlan_id": 30, "password": "another-password" })],
        ),
        ModelCase { actions: &["stop", "start", "restart"], ..existing(&known, "service", "DNS Resolver") },
        system(&["reboot"]),
        system(&["shutdown"]),
    ];
    every_model_write(package(), |_| filled(), &cases);
}

#[test]
fn what_the_firewall_has_no_word_for_names_the_field() {
    let device = filled();
    for (kind, payload, field) in [
        ("route", json!({ "destination": "10.0.0.0/8", "next_hop": "192.0.2.250" }), "/next_hop"),
        ("route", json!({ "destination": "10.0.0.0/8", "metric": 5, "next_hop": "198.51.100.1" }), "/metric"),
        ("route", json!({ "destination": "10.0.0.0/8", "type": "blackhole" }), "/type"),
        ("vlan", json!({ "vlan_id": 5, "members": [{ "port": "igb0" }, { "port": "igb1" }] }), "/members"),
        (
            "vlan",
            json!({ "vlan_id": 5, "members": [{ "port": "igb0", "tagged": false }] }),
            "/members/0/tagged",
        ),
        (
            "firewall-rule",
            json!({ "action": "drop", "scope": { "kind": "interface", "key": "lan" }, "to": ["wan"] }),
            "/to",
        ),
        (
            "firewall-rule",
            json!({ "action": "drop", "scope": { "kind": "interface", "key": "lan" }, "direction": "out" }),
            "/direction",
        ),
        ("firewall-rule", json!({ "action": "drop", "from": ["lan", "wan"] }), "/from"),
        (
            "firewall-rule",
            json!({ "action": "drop", "scope": { "kind": "table", "key": "a" } }),
            "/scope/kind",
        ),
        ("nat-rule", json!({ "type": "one-to-one" }), "/type"),
        ("dns-record", json!({ "name": "bare", "type": "A", "value": "192.0.2.1" }), "/name"),
        ("dns-record", json!({ "name": "a.example", "type": "AAAA", "value": "192.0.2.1" }), "/type"),
        ("vpn-peer", json!({ "tunnel": "tun_wg0", "public_key": "x", "endpoint": "nowhere" }), "/endpoint"),
    ] {
        let change = ModelChange {
            kind: kind.to_owned(),
            verb: "create".to_owned(),
            site: None,
            payload: payload.to_string(),
        };
        let fault = Pfsense::express(&device.host(), &[change]).unwrap_err();
        let fields: Vec<&str> = fault.info().fields.iter().map(|one| one.pointer.as_str()).collect();
        assert_eq!(fields, [field], "{kind} {payload}: {}", fault.info().message);
    }
}
