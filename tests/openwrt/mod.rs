//! The OpenWrt adapter through HTTP, against a router that keeps state.

mod bodies;
mod refusals;
mod shared_router;

use serde_json::{Value, json};

use crate::staging::Lab;
use crate::support::Answer;

/// Area, live resource and feature of everything that can be edited.
const KINDS: [(&str, &str, &str); 11] = [
    ("firewall", "firewall.rule", "openwrt.firewall.rule"),
    ("firewall", "firewall.redirect", "openwrt.firewall.redirect"),
    ("firewall", "firewall.zone", "openwrt.firewall.zone"),
    ("firewall", "firewall.forwarding", "openwrt.firewall.forwarding"),
    ("firewall", "firewall.defaults", "openwrt.firewall.defaults"),
    ("dhcp", "dhcp.pool", "openwrt.dhcp.pool"),
    ("dhcp", "dhcp.host", "openwrt.dhcp.host"),
    ("base", "network.interface", "openwrt.network.interface"),
    ("base", "network.vlan", "openwrt.network.vlan"),
    ("base", "network.device", "openwrt.network.device"),
    ("base", "system", "openwrt.system.settings"),
];

impl Lab {
    async fn try_stage(&self, area: &str, feature: &str, operation: &str, payload: &Value) -> Answer {
        let path = format!("{}/changes/openwrt.{feature}?operation={operation}", self.area(area));
        self.api.post(&path, &json!({ "payload": payload })).await
    }

    async fn live(&self, area: &str, kind: &str) -> Vec<Value> {
        let page =
            self.api.get(&format!("{}/{kind}?limit=200", self.area(area))).await.expect_status(200).body;
        page["items"].as_array().expect("a page has items").clone()
    }

    async fn apply(&self, change: &Value) -> Value {
        self.api.post(&Self::path(change, "apply"), &json!({ "force": true })).await.expect_status(200).body
    }
}

/// Names of the router's firewall rules, in their order; empty where a rule has none.
fn rule_names(lab: &Lab) -> Vec<String> {
    let state = lab.router.state();
    let sections = state["configs"]["firewall"].as_object().expect("a router has a firewall");
    let mut rules: Vec<&Value> = sections.values().filter(|section| section[".type"] == "rule").collect();
    rules.sort_by_key(|rule| rule[".index"].as_u64());
    rules.iter().map(|rule| rule["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// An unnamed rule at the end of the file, as the web interface adds one.
fn unnamed_rule(port: &str) -> Vec<heddle_lab_openwrt::Change> {
    let set = |option: &str, value: &str| heddle_lab_openwrt::Change::set("@rule[-1]", option, value);
    vec![
        heddle_lab_openwrt::Change::Add { section: String::new(), kind: "rule".to_owned() },
        set("src", "wan"),
        set("proto", "tcp"),
        set("dest_port", port),
        set("target", "ACCEPT"),
    ]
}

fn warns(change: &Value, word: &str) -> bool {
    change["plan"]["warnings"]
        .as_array()
        .expect("a plan has warnings")
        .iter()
        .any(|warning| warning.as_str().is_some_and(|text| text.contains(word)))
}
