//! Changes in the words of the model: what was asked for is what the model shows afterwards.

use heddle_lab_openwrt::Router;
use heddle_sdk::testing::conformance::{ModelCase, every_model_write};
use heddle_sdk::testing::{FakeHost, Package, Practice};
use heddle_sdk::{Adapter as _, FaultExt as _, ModelChange};
use serde_json::{Value, json};

use super::model::Bench;
use crate::OpenWrt;

impl Practice for Bench {
    type Adapter = OpenWrt;

    fn host(&self) -> FakeHost<'_> {
        Bench::host(self).with_package(package())
    }

    fn state(&self) -> Value {
        Value::Null
    }

    fn wait_ms(&self, ms: u64) {
        std::thread::sleep(std::time::Duration::from_millis(ms.min(50)));
    }
}

/// The checked-in manifest and description.
fn package() -> &'static Package {
    heddle_sdk::package_of!("../../manifest.json", "../../description.json")
}

fn case(kind: &'static str, create: Value, updates: Vec<Value>) -> ModelCase {
    ModelCase { kind, create, updates, deletes: true, ..ModelCase::default() }
}

#[test]
fn what_is_written_in_the_words_of_the_model_is_read_back() {
    let cases = [
        case(
            "vlan",
            json!({ "vlan_id": 77, "members": [{ "port": "lan1", "tagged": true }, { "port": "lan2", "tagged": false }] }),
            vec![json!({ "members": [{ "port": "lan1", "tagged": true }], "vlan_id": 77 })],
        ),
        case(
            "dhcp-pool",
            json!({ "interface": "iot", "enabled": true, "lease_seconds": 1800, "gateway": "192.168.3.1",
                    "dns_servers": ["192.168.3.1", "9.9.9.9"], "options": [{ "code": 42, "value": "192.168.3.1" }] }),
            vec![
                json!({ "enabled": false, "lease_seconds": 3600, "interface": "iot" }),
                json!({ "gateway": "192.168.3.2", "dns_servers": [], "options": [{ "code": 43, "value": "x" }] }),
            ],
        ),
        case(
            "dhcp-reservation",
            json!({ "mac": "aa:bb:cc:00:00:77", "address": "192.168.1.77", "hostname": "desk" }),
            vec![json!({ "address": "192.168.1.78", "hostname": "table", "mac": "aa:bb:cc:00:00:77" })],
        ),
        case(
            "firewall-rule",
            json!({
                "name": "from the model", "action": "drop", "enabled": true, "ip_version": "4", "from": ["wan"],
                "to": ["lan"], "source": { "addresses": ["192.0.2.0/24"], "negated": true }, "destination": { "any": true },
                "protocol": "tcp udp", "source_ports": ["1024-65535"], "destination_ports": ["443", "8443"], "log": true,
            }),
            vec![
                json!({ "action": "reject", "enabled": false, "log": false, "to": [], "ip_version": "both" }),
                json!({ "name": "from the model", "from": ["lan"], "source": { "any": true }, "source_ports": [],
                        "destination": { "addresses": ["198.51.100.7"] }, "protocol": "udp", "destination_ports": ["53"] }),
            ],
        ),
        case(
            "nat-rule",
            json!({
                "type": "port-forward", "name": "to the web", "interface": "wan", "protocol": "tcp", "enabled": true,
                "passes": true, "source": ["198.51.100.0/24"], "external": { "ports": ["8443"] },
                "internal": { "addresses": ["192.168.1.20"], "ports": ["443"] },
            }),
            vec![
                json!({ "enabled": false, "interface": "wan", "protocol": "udp", "source": [], "name": "to the web",
                         "external": { "ports": ["53"] }, "internal": { "addresses": ["192.168.1.21"], "ports": ["53"] },
                         "type": "port-forward", "passes": true }),
            ],
        ),
        ModelCase {
            kind: "system",
            key: Some("router".to_owned()),
            actions: &["reboot"],
            ..ModelCase::default()
        },
    ];
    every_model_write(package(), |_| Bench::filled(), &cases);
}

#[test]
fn what_the_router_has_no_word_for_names_the_field() {
    let bench = Bench::of(Router::builder());
    for (kind, payload, field) in [
        ("vlan", json!({ "vlan_id": 5, "name": "x" }), "/name"),
        ("dhcp-pool", json!({ "interface": "lan", "ranges": [] }), "/ranges"),
        (
            "dhcp-reservation",
            json!({ "mac": "aa:bb:cc:00:00:77", "address": "192.168.1.7", "scope": "lan" }),
            "/scope",
        ),
        ("firewall-rule", json!({ "name": "x", "action": "drop", "position": 1 }), "/position"),
        ("firewall-rule", json!({ "action": "drop" }), "/name"),
        ("firewall-rule", json!({ "name": "x", "action": "drop", "from": ["lan", "wan"] }), "/from"),
        (
            "firewall-rule",
            json!({ "name": "x", "action": "drop", "source": { "groups": ["a"] } }),
            "/source/groups",
        ),
        ("nat-rule", json!({ "name": "x", "type": "outbound" }), "/type"),
        ("nat-rule", json!({ "name": "x", "type": "port-forward", "passes": false }), "/passes"),
        ("nat-rule", json!({ "name": "x", "type": "port-forward", "source": ["a", "b"] }), "/source"),
    ] {
        let change = ModelChange {
            kind: kind.to_owned(),
            verb: "create".to_owned(),
            site: None,
            payload: payload.to_string(),
        };
        let fault = OpenWrt::express(&bench.host(), &[change]).unwrap_err();
        let fields: Vec<&str> = fault.info().fields.iter().map(|one| one.pointer.as_str()).collect();
        assert_eq!(fields, [field], "{kind} {payload}: {}", fault.info().message);
    }
}
