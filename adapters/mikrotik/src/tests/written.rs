//! Changes in the words of the model: what was asked for is what the model shows afterwards.

use heddle_sdk::testing::conformance::{ModelCase, every_model_write};
use heddle_sdk::{Adapter as _, FaultExt as _, ModelChange};
use serde_json::{Value, json};

use super::device::{Device, package};
use super::model::{filled, key_of};
use crate::Mikrotik;

fn case(kind: &'static str, create: Value, updates: Vec<Value>) -> ModelCase {
    ModelCase { kind, create, updates, deletes: true, ..ModelCase::default() }
}

/// Something that is there, by its label.
fn existing(device: &Device, kind: &'static str, label: &str, updates: Vec<Value>) -> ModelCase {
    let key = key_of(device, kind, label);
    ModelCase { kind, key: Some(key), updates, ..ModelCase::default() }
}

fn acts(device: &Device, kind: &'static str, label: &str, actions: &'static [&'static str]) -> ModelCase {
    ModelCase { actions, ..existing(device, kind, label, Vec::new()) }
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn what_is_written_in_the_words_of_the_model_is_read_back() {
    let known = filled();
    let cases = [
        case(
            "vlan",
            json!({
                "vlan_id": 77, "name": "guests", "members": [{ "port": "bridge", "tagged": true }],
                "subnets": ["10.77.0.0/24"], "gateway": "10.77.0.1",
            }),
            vec![
                json!({ "vlan_id": 78 }),
                json!({ "members": [{ "port": "ether4", "tagged": true }] }),
                json!({ "subnets": ["10.78.0.0/24"], "gateway": "10.78.0.1" }),
            ],
        ),
        existing(&known, "vlan", "cameras", vec![json!({ "name": "doors" })]),
        existing(
            &known,
            "port",
            "ether5",
            vec![
                json!({ "enabled": false }),
                json!({ "native_vlan": 7 }),
                json!({ "tagged_vlans": [40, 41] }),
                json!({ "poe": { "enabled": false } }),
            ],
        ),
        case(
            "route",
            json!({ "destination": "10.88.0.0/16", "next_hop": "10.30.0.7", "metric": 9, "name": "far", "enabled": true, "table": "main" }),
            vec![json!({ "metric": 11, "name": "farther", "type": "unicast" }), json!({ "enabled": false })],
        ),
        case("route", json!({ "destination": "10.89.0.0/16", "type": "blackhole" }), vec![]),
        case("route", json!({ "destination": "2001:db8:89::/48", "next_hop": "2001:db8:30::7" }), vec![]),
        case(
            "route",
            json!({ "destination": "10.90.0.0/16", "interface": "vlan30" }),
            vec![json!({ "interface": "vlan30" })],
        ),
        case(
            "dhcp-reservation",
            json!({ "scope": "defconf", "mac": "aa:bb:cc:00:00:99", "address": "192.168.88.99", "hostname": "desk" }),
            vec![json!({ "mac": "aa:bb:cc:00:00:98", "hostname": "table" })],
        ),
        case(
            "dns-record",
            json!({ "name": "new.lan", "type": "A", "value": "192.0.2.7", "ttl_seconds": 300, "enabled": true }),
            vec![json!({ "ttl_seconds": 600, "enabled": false, "value": "192.0.2.7" })],
        ),
        case("dns-record", json!({ "name": "text.lan", "type": "TXT", "value": "hello" }), vec![]),
        case(
            "firewall-rule",
            json!({
                "name": "mine", "action": "drop", "direction": "forward", "ip_version": "4", "from": ["vlan30"],
                "to": ["WAN"], "source": { "addresses": ["10.30.0.0/24"] }, "destination": { "groups": ["servers"] },
                "protocol": "tcp", "source_ports": ["1024-65535"], "destination_ports": ["80", "443"], "log": true,
                "enabled": true, "position": 2, "scope": { "kind": "chain", "key": "forward" },
            }),
            vec![
                json!({ "action": "accept", "log": false, "enabled": false, "destination_ports": ["8080"] }),
                json!({ "position": 1 }),
                json!({ "from": [], "to": ["ether1"], "source": { "any": true }, "protocol": "udp" }),
                json!({
                    "source_ports": ["1-1023"], "destination": { "addresses": ["10.30.0.9"] }, "direction": "forward",
                    "scope": { "kind": "chain", "key": "forward" }, "ip_version": "4",
                }),
            ],
        ),
        case("firewall-rule", json!({ "name": "mine six", "action": "drop", "ip_version": "6" }), vec![]),
        case(
            "nat-rule",
            json!({
                "name": "mine", "type": "port-forward", "interface": "WAN", "protocol": "tcp",
                "source": ["203.0.113.0/24"], "external": { "addresses": ["198.51.100.9"], "ports": ["8022"] },
                "internal": { "addresses": ["10.30.0.22"], "ports": ["22"] }, "enabled": true, "position": 0,
            }),
            vec![
                json!({ "enabled": false, "external": { "addresses": ["198.51.100.9"], "ports": ["8023"] } }),
                json!({
                    "protocol": "udp", "type": "port-forward", "interface": "ether1", "source": ["203.0.113.7"],
                    "internal": { "addresses": ["10.30.0.23"], "ports": ["23"] }, "position": 1,
                }),
            ],
        ),
        case(
            "address-group",
            json!({ "name": "offices", "type": "addresses", "members": ["192.0.2.0/24", "198.51.100.0/24"] }),
            vec![json!({ "members": ["198.51.100.0/24", "203.0.113.0/24"], "type": "addresses" })],
        ),
        existing(&known, "vpn-tunnel", "gre9", vec![json!({ "enabled": false })]),
        case(
            "radius-profile",
            json!({ "name": "second", "servers": [{ "address": "10.30.0.31", "port": 1812 }] }),
            vec![json!({ "name": "third", "servers": [{ "address": "10.30.0.31", "port": 1813 }] })],
        ),
        case(
            "radius-user",
            json!({ "name": "grace", "enabled": true, "password": "lab secret" }),
            vec![json!({ "enabled": false, "password": "another secret" })],
        ),
        acts(&known, "service", "telnet", &["start", "stop"]),
        acts(&known, "system", "router", &["reboot"]),
        acts(&known, "system", "router", &["shutdown"]),
        acts(&known, "client", "02:10:aa:00:10:02", &["reconnect"]),
        acts(&known, "vpn-session", "staff", &["disconnect"]),
        case(
            "ssid",
            json!({
                "name": "Guests", "security": "wpa2-psk", "passphrase": "guest secret", "vlan_id": 40,
                "bands": ["5"], "hidden": true, "isolation": true, "fast_roaming": true, "pmf": "optional",
                "enabled": true,
            }),
            vec![
                json!({ "name": "Visitors", "enabled": false, "hidden": false, "isolation": false, "vlan_id": 41, "bands": ["5"] }),
                json!({ "security": "wpa3-sae", "pmf": "required", "fast_roaming": false, "passphrase": "another one" }),
            ],
        ),
        existing(
            &known,
            "radio",
            "wifi1",
            vec![
                json!({ "channel": 36, "width_mhz": 40 }),
                json!({ "channel_auto": true, "tx_power_dbm": 15 }),
                json!({ "enabled": false }),
            ],
        ),
        case(
            "dhcp-pool",
            json!({
                "interface": "vlan31", "ranges": [{ "from": "10.31.0.10", "to": "10.31.0.99" }], "enabled": true,
                "lease_seconds": 900, "gateway": "10.31.0.1", "dns_servers": ["10.31.0.1", "9.9.9.9"],
                "domain": "x.example",
            }),
            vec![
                json!({ "lease_seconds": 1200, "enabled": false }),
                json!({ "ranges": [{ "from": "10.31.0.10", "to": "10.31.0.49" }], "domain": "y.example" }),
                json!({ "gateway": "10.31.0.2", "dns_servers": ["9.9.9.9"] }),
                json!({ "interface": "ether4" }),
            ],
        ),
        case(
            "vpn-peer",
            json!({
                "tunnel": "wireguard1", "name": "phone", "allowed": ["10.9.0.9/32"], "endpoint": "192.0.2.9:51820",
                "public_key": "hJQ0mR4vqX8rE4B1d7zv0w9dQm2m3xJmX4m5c6Ynq1A=",
            }),
            vec![],
        ),
    ];
    every_model_write(package(), |_| filled(), &cases);
}

fn refusal(device: &Device, kind: &str, verb: &str, payload: &Value) -> (String, String) {
    let change = ModelChange {
        kind: kind.to_owned(),
        verb: verb.to_owned(),
        site: None,
        payload: payload.to_string(),
    };
    let fault = Mikrotik::express(&device.host(), &[change]).unwrap_err();
    (fault.info().fields[0].pointer.clone(), fault.info().message.clone())
}

#[test]
fn what_the_router_cannot_have_is_refused_by_its_field() {
    let device = filled();
    let rule = |more: Value| {
        let mut all = json!({ "name": "x", "action": "drop" });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    for (kind, payload, pointer) in [
        ("firewall-rule", rule(json!({ "from": ["a", "b"] })), "/from"),
        ("firewall-rule", rule(json!({ "source": { "addresses": ["192.0.2.7", "192.0.2.8"] } })), "/source"),
        ("firewall-rule", rule(json!({ "source": { "networks": ["lan"] } })), "/source/networks"),
        ("firewall-rule", rule(json!({ "direction": "any" })), "/direction"),
        ("firewall-rule", rule(json!({ "scope": { "kind": "interface", "key": "lan" } })), "/scope/kind"),
        ("firewall-rule", json!({ "action": "drop" }), "/name"),
        ("vlan", json!({ "vlan_id": 9, "name": "x" }), "/members"),
        ("address-group", json!({ "name": "x", "members": [] }), "/members"),
        ("address-group", json!({ "name": "servers", "members": ["192.0.2.7"] }), "/name"),
        ("address-group", json!({ "name": "x", "members": ["192.0.2.7", "2001:db8::7"] }), "/members"),
        ("nat-rule", json!({ "type": "port-forward", "name": "x", "passes": true }), "/passes"),
    ] {
        assert_eq!(refusal(&device, kind, "create", &payload).0, pointer, "{kind} {payload}");
    }
}
