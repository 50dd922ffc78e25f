//! A change of one firewall rule, or a set of such changes, and what the router holds of it.

use std::collections::BTreeSet;
use std::time::Duration;

use heddle_core::Timestamp;
use heddle_lab_openwrt::Router;
use serde_json::{Value, json};

use crate::support::{Answer, Api};

/// What is staged, applied and ended as one.
pub(super) struct Subject {
    /// Where its actions are.
    base: String,
    /// The rule of each change.
    pub(super) rules: Vec<String>,
    /// As it was staged.
    pub(super) staged: Value,
}

impl Subject {
    /// Stages a change for the only rule, or a set for several.
    pub(super) async fn stage(api: &Api, controller: &str, rules: &[String]) -> Self {
        let mut changes = Vec::new();
        for rule in rules {
            changes.push(stage_rule(api, controller, rule).await);
        }
        let (staged, kind) = if changes.len() == 1 {
            (changes.remove(0), "")
        } else {
            let ids: Vec<&Value> = changes.iter().map(|change| &change["id"]).collect();
            let body = json!({ "change_ids": ids });
            (api.post("/gateway-vpn/changes/sets", &body).await.expect_status(201).body, "sets/")
        };
        assert!(staged["plan"].is_object(), "{staged}");
        let id = staged["id"].as_str().expect("what is staged has an id");
        Self { base: format!("/gateway-vpn/changes/{kind}{id}"), rules: rules.to_vec(), staged }
    }

    pub(super) fn path(&self, verb: &str) -> String {
        format!("{}/{verb}", self.base)
    }

    pub(super) async fn act(&self, api: &Api, verb: &str, body: &Value) -> Answer {
        api.post(&self.path(verb), body).await
    }

    pub(super) async fn get(&self, api: &Api) -> Value {
        api.get(&self.base).await.expect_status(200).body
    }

    /// Whether the plan says that what others save may be taken back with it.
    pub(super) fn warns(&self) -> bool {
        let warnings = self.staged["plan"]["warnings"].as_array();
        let says = |warning: &Value| warning.as_str().unwrap_or_default().contains("taken back with it");
        warnings.is_some_and(|warnings| warnings.iter().any(says))
    }

    /// Applies it with this window, which is open then.
    pub(super) async fn hold(&self, api: &Api, window: &Value) -> Value {
        let mut body = window.clone();
        body["force"] = json!(true);
        let held = self.act(api, "apply", &body).await.expect_status(200).body;
        assert_eq!(held["outcome"]["state"], "awaiting_confirm", "{held}");
        held
    }

    /// Waits until its apply has ended.
    pub(super) async fn ended(&self, api: &Api) -> Value {
        self.at(api, &["idle"]).await
    }

    /// Confirms it or takes it back, and waits until its apply has ended.
    pub(super) async fn end(&self, api: &Api, verb: &str) -> Value {
        self.act(api, verb, &json!({})).await.expect_status(200);
        self.ended(api).await
    }

    /// Waits until its apply has ended, or waits for a confirmation.
    pub(super) async fn at_rest(&self, api: &Api) -> Value {
        self.at(api, &["idle", "holding"]).await
    }

    async fn at(&self, api: &Api, steps: &[&str]) -> Value {
        for _ in 0..900 {
            let seen = self.get(api).await;
            if steps.iter().any(|step| seen["outcome"]["step"] == *step) {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{:?} does not come to {steps:?}: {}", self.rules, self.get(api).await);
    }

    /// Compares what the service says with the router, and returns the state: what is in effect is there once, all else
    /// is not there, and each change of a set says the same.
    pub(super) fn check_truth(&self, router: &Router, seen: &Value, told: &str) -> String {
        let state = seen["outcome"]["state"].as_str().unwrap_or_default().to_owned();
        assert_eq!(seen["status"] == "applied", state == "applied", "{told}: {seen}");
        let none = Vec::new();
        let changes = seen["changes"].as_array().unwrap_or(&none);
        for (at, rule) in self.rules.iter().enumerate() {
            let change = changes.get(at);
            if let Some(change) = change.filter(|_| state != "partial") {
                assert_eq!(change["outcome"]["state"], state, "{rule}, {told}: {seen}");
                assert_eq!(change["status"], seen["status"], "{rule}, {told}: {seen}");
            }
            let own = change
                .map_or(state.as_str(), |change| change["outcome"]["state"].as_str().unwrap_or_default());
            let expected = match own {
                "applied" | "awaiting_confirm" => 1,
                "none" | "failed" | "reverted" => 0,
                // The record says that it is neither.
                "partial" => continue,
                other => panic!("{rule} is {other}, {told}: {seen}"),
            };
            assert_eq!(times(router, rule), expected, "{rule}, {told}: {seen}");
        }
        state
    }

    /// Takes the way out of what has ended: what is in doubt can be compared and planned again, and what is pending
    /// can be given up. At the end each change is applied or discarded.
    pub(super) async fn leave(&self, api: &Api, told: &str) {
        let mut seen = self.get(api).await;
        if seen["outcome"]["state"] == "partial" || seen["outcome"]["state"] == "unknown" {
            for verb in ["verify", "plan"] {
                let answer = self.act(api, verb, &json!({})).await;
                // Comparing may settle it; then there is nothing to plan.
                assert!(answer.status == 200 || verb == "plan", "{verb}, {told}: {}", answer.text);
            }
            seen = self.get(api).await;
        }
        if seen["status"] == "pending" {
            let answer = self.act(api, "discard", &json!({})).await;
            assert_eq!(answer.status, 200, "discard, {told}: {}", answer.text);
            seen = answer.body;
        }
        let changes = seen["changes"].as_array().cloned().unwrap_or_else(|| vec![seen.clone()]);
        let is_final = |change: &Value| change["status"] == "applied" || change["status"] == "discarded";
        assert!(changes.iter().all(is_final), "{told}: {seen}");
    }
}

async fn stage_rule(api: &Api, controller: &str, rule: &str) -> Value {
    let path =
        format!("/gateway-openwrt-firewall/{controller}/changes/openwrt.firewall.rule?operation=create");
    let payload = json!({ "payload": {
        "name": rule, "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT",
    } });
    api.post(&path, &payload).await.expect_status(201).body
}

/// Until when a change is held.
pub(super) fn deadline(held: &Value) -> Timestamp {
    let text = held["outcome"]["confirm_deadline"].as_str().expect("a held change has a deadline");
    text.parse().expect("a deadline is a time")
}

/// How often the router's firewall has a rule.
pub(super) fn times(router: &Router, rule: &str) -> usize {
    let config = router.config_text("firewall").expect("the router has a firewall");
    config.matches(&format!("'{rule}'")).count()
}

/// The sections of the firewall that these rules are in.
pub(super) fn sections(router: &Router, rules: &[String]) -> BTreeSet<String> {
    let state = router.state();
    let sections = state["configs"]["firewall"].as_object().expect("the router has a firewall");
    let is_one = |section: &Value| rules.iter().any(|rule| section["name"] == **rule);
    sections.iter().filter(|(_, section)| is_one(section)).map(|(name, _)| name.clone()).collect()
}
