//! What was sent equals what the plan said, call for call, for every feature of the adapter.

use std::collections::{BTreeMap, BTreeSet};

use heddle_lab_openwrt::Call;
use serde_json::{Value, json};

use super::Lab;
use crate::support::on_both;

const FIRMWARE_URL: &str = "http://192.0.2.10/firmware.bin";
const FIRMWARE: &[u8] = b"a firmware image that the router believes in";

/// A payload for every feature and operation, in an order in which each can work.
#[expect(clippy::too_many_lines, reason = "a table")]
fn payloads() -> Vec<(&'static str, &'static str, &'static str, Value)> {
    let firewall = |feature, operation, payload| ("firewall", feature, operation, payload);
    let dhcp = |feature, operation, payload| ("dhcp", feature, operation, payload);
    let base = |feature, operation, payload| ("base", feature, operation, payload);
    vec![
        firewall(
            "openwrt.firewall.zone",
            "create",
            json!({ "name": "guest", "network": ["guest"], "input": "REJECT", "output": "ACCEPT", "forward": "REJECT" }),
        ),
        firewall(
            "openwrt.firewall.zone",
            "update",
            json!({ "name": "guest", "masq": true, "network": null }),
        ),
        firewall("openwrt.firewall.forwarding", "create", json!({ "src": "guest", "dest": "wan" })),
        firewall(
            "openwrt.firewall.forwarding",
            "update",
            json!({ "src": "guest", "dest": "wan", "enabled": false }),
        ),
        firewall("openwrt.firewall.forwarding", "delete", json!({ "src": "guest", "dest": "wan" })),
        firewall("openwrt.firewall.zone", "delete", json!({ "name": "guest" })),
        firewall(
            "openwrt.firewall.rule",
            "create",
            json!({ "name": "Allow-SSH-mgmt", "src": "wan", "proto": ["tcp"], "dest_port": "22", "src_ip": ["203.0.113.0/24"], "target": "ACCEPT" }),
        ),
        firewall(
            "openwrt.firewall.rule",
            "update",
            json!({ "name": "Allow-SSH-mgmt", "enabled": false, "src_ip": null }),
        ),
        // A stock rule: anonymous at the device, in the middle of the file.
        firewall("openwrt.firewall.rule", "update", json!({ "name": "Allow-Ping", "log": true })),
        firewall(
            "openwrt.firewall.rule-order",
            "update",
            json!({ "order": ["Allow-SSH-mgmt", "Allow-Ping"] }),
        ),
        firewall("openwrt.firewall.rule", "delete", json!({ "name": "Allow-Ping" })),
        firewall(
            "openwrt.firewall.redirect",
            "create",
            json!({ "name": "Web", "src": "wan", "proto": ["tcp"], "src_dport": "8080", "dest": "lan", "dest_ip": "192.168.1.20", "dest_port": "80" }),
        ),
        firewall("openwrt.firewall.redirect", "update", json!({ "name": "Web", "dest_port": "8080" })),
        firewall("openwrt.firewall.redirect-order", "update", json!({ "order": ["Web", "Web-to-NAS"] })),
        firewall("openwrt.firewall.redirect", "delete", json!({ "name": "Web" })),
        firewall("openwrt.firewall.defaults", "update", json!({ "drop_invalid": true })),
        dhcp(
            "openwrt.dhcp.pool",
            "create",
            json!({ "interface": "guest", "start": 100, "limit": 50, "leasetime": "2h" }),
        ),
        dhcp("openwrt.dhcp.pool", "update", json!({ "interface": "guest", "limit": 60 })),
        dhcp("openwrt.dhcp.pool", "delete", json!({ "interface": "guest" })),
        dhcp(
            "openwrt.dhcp.host",
            "create",
            json!({ "mac": "02:00:00:00:00:99", "name": "printer", "ip": "192.168.1.99" }),
        ),
        dhcp("openwrt.dhcp.host", "update", json!({ "mac": "02:00:00:00:00:99", "ip": "192.168.1.98" })),
        dhcp("openwrt.dhcp.host", "delete", json!({ "mac": "02:00:00:00:00:99" })),
        base(
            "openwrt.network.device",
            "create",
            json!({ "name": "br-guest", "type": "bridge", "ports": ["eth7"] }),
        ),
        base("openwrt.network.device", "update", json!({ "name": "br-guest", "mtu": 1400 })),
        base(
            "openwrt.network.vlan",
            "create",
            json!({ "device": "br-guest", "vlan": 20, "ports": ["eth7:t"] }),
        ),
        base(
            "openwrt.network.vlan",
            "update",
            json!({ "device": "br-guest", "vlan": 20, "ports": ["eth7:u*"] }),
        ),
        base("openwrt.network.vlan", "delete", json!({ "device": "br-guest", "vlan": 20 })),
        base(
            "openwrt.network.interface",
            "create",
            json!({ "name": "guest", "proto": "static", "device": "br-guest", "ipaddr": ["10.20.0.1"], "netmask": "255.255.255.0" }),
        ),
        base(
            "openwrt.network.interface",
            "update",
            json!({ "name": "guest", "mtu": 1400, "disabled": true }),
        ),
        base("openwrt.network.interface", "delete", json!({ "name": "guest" })),
        base("openwrt.network.device", "delete", json!({ "name": "br-guest" })),
        base("openwrt.system.settings", "update", json!({ "hostname": "edge-1", "notes": "rack 4" })),
        base("openwrt.system.reboot", "update", json!({})),
        base(
            "openwrt.system.firmware-upgrade",
            "update",
            json!({ "url": FIRMWARE_URL, "sha256": sha256(FIRMWARE), "keep_settings": true }),
        ),
        base("openwrt.system.factory-reset", "update", json!({})),
    ]
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    hex::encode(sha2::Sha256::digest(bytes))
}

/// Every feature and operation of the adapter's own. Those in the words of the model become these, which tests of the
/// adapter try.
async fn described(lab: &Lab) -> BTreeSet<(String, String)> {
    let mut described = BTreeSet::new();
    for area in ["base", "firewall", "dhcp"] {
        let features = lab.api.get(&lab.area(area)).await.expect_status(200).body;
        let all = features["features"].as_array().expect("an area has features");
        for feature in all.iter().filter(|feature| feature.get("model").is_none()) {
            for operation in feature["operations"].as_array().expect("a feature has operations") {
                let text = |value: &Value| value.as_str().expect("a word").to_owned();
                described.insert((text(&feature["id"]), text(&operation["operation"])));
            }
        }
    }
    described
}

/// Calls that are not of the plan: logging in and out is the host's own.
fn written(calls: &[Call]) -> Vec<Value> {
    calls
        .iter()
        .filter(|call| call.is_write && call.object != "session")
        .map(|call| json!([call.object, call.method, call.args]))
        .collect()
}

/// A plan's calls of these stages as the router would record them.
fn announced(change: &Value, stages: &[&str], hold_secs: u64) -> Vec<Value> {
    change["plan"]["native"]
        .as_array()
        .expect("a plan has calls")
        .iter()
        .filter(|call| stages.contains(&call["stage"].as_str().unwrap_or_default()))
        .map(|call| {
            let params = &call["body"]["params"];
            let mut args = params[3].clone();
            if args["timeout"] == "{{host.hold_secs}}" {
                args["timeout"] = json!(hold_secs);
            }
            json!([params[1], params[2], args])
        })
        .collect()
}

/// Sections in their order within each configuration and type, without their
/// names: a section that comes back may not have its name again, and the order
/// across types, like a list of one against a text, means nothing.
fn options(configs: &Value) -> BTreeMap<(String, String), Vec<Value>> {
    let mut grouped: BTreeMap<(String, String), Vec<(u64, Value)>> = BTreeMap::new();
    for (name, config) in configs.as_object().expect("a router has configs") {
        for section in config.as_object().expect("a config has sections").values() {
            let kind = section[".type"].as_str().expect("a section has a type").to_owned();
            let at = section[".index"].as_u64().expect("a section has a place");
            let mut options = section.as_object().expect("a section has options").clone();
            options.retain(|name, _| !name.starts_with('.'));
            for value in options.values_mut().filter(|value| value.is_string()) {
                *value = json!([value.clone()]);
            }
            grouped.entry((name.clone(), kind)).or_default().push((at, options.into()));
        }
    }
    grouped
        .into_iter()
        .map(|(group, mut sections)| {
            sections.sort_by_key(|(at, _)| *at);
            (group, sections.into_iter().map(|(_, section)| section).collect())
        })
        .collect()
}

on_both! {
    async fn every_feature_sends_what_its_plan_says(database: Database) {
        let lab = Lab::start(database).await;
        lab.router.put_download(FIRMWARE_URL, FIRMWARE);
        let mut untested = described(&lab).await;
        for (area, feature, operation, payload) in payloads() {
            let change = lab.stage(area, feature, operation, &payload).await;
            assert!(change["plan"].is_object(), "{feature} {operation}: {change}");
            lab.router.forget_calls();
            let applied = lab.api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await;
            assert_eq!(applied.status, 200, "{feature} {operation}: {}", applied.text);
            let ended = lab.wait_for(&change, &["applied", "failed", "partial", "unknown", "reverted"]).await;
            assert_eq!(ended["outcome"]["state"], "applied", "{feature} {operation}: {ended}");
            let announced = announced(&change, &["apply", "confirm"], 45);
            assert!(!announced.is_empty(), "{feature} {operation} does something");
            assert_eq!(written(&lab.router.calls()), announced, "{feature} {operation}");
            untested.remove(&(feature.to_owned(), operation.to_owned()));
        }
        assert!(untested.is_empty(), "these are never applied: {untested:?}");
    }
}

on_both! {
    async fn every_revert_that_a_plan_promises_brings_the_router_back(database: Database) {
        let lab = Lab::start(database).await;
        for (area, feature, operation, payload) in payloads() {
            if feature.starts_with("openwrt.system.") && feature != "openwrt.system.settings" {
                continue;
            }
            let before = lab.router.state()["configs"].clone();
            let change = lab.stage(area, feature, operation, &payload).await;
            lab.api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await.expect_status(200);
            if change["plan"]["invertible"] != true {
                continue;
            }
            let inverse = lab.api.post(&Lab::path(&change, "revert"), &json!({})).await.expect_status(201).body;
            let answer = lab.api.post(&Lab::path(&inverse, "apply"), &json!({ "force": true })).await;
            assert_eq!(answer.status, 200, "{feature} {operation}: {}", answer.text);
            assert_eq!(lab.get(&change).await["outcome"]["state"], "reverted", "{feature} {operation}");
            let after = lab.router.state()["configs"].clone();
            assert_eq!(options(&after), options(&before), "{feature} {operation}");
            // Again, so that the next payload finds what it builds on.
            let again = lab.stage(area, feature, operation, &payload).await;
            lab.api.post(&Lab::path(&again, "apply"), &json!({ "force": true })).await.expect_status(200);
        }
    }
}
