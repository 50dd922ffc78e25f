//! What was sent equals what the plan said, call for call, for every feature of the adapter.

use heddle_openwrt_router::Call;
use serde_json::{Value, json};

use super::Lab;
use crate::support::on_both;

/// A payload for every feature and operation, in an order in which each can work.
fn payloads() -> Vec<(&'static str, &'static str, &'static str, Value)> {
    vec![
        ("firewall", "openwrt.firewall.zone", "create", json!({ "name": "guest", "input": "REJECT", "output": "ACCEPT", "forward": "REJECT" })),
    ]
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

on_both! {
    async fn every_feature_sends_what_its_plan_says(database: Database) {
        let lab = Lab::start(database).await;
        for (area, feature, operation, payload) in payloads() {
            let change = lab.stage(area, feature, operation, &payload).await;
            assert!(change["plan"].is_object(), "{feature} {operation}: {change}");
            lab.router.forget_calls();
            let applied = lab.api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await;
            assert_eq!(applied.status, 200, "{feature} {operation}: {}", applied.text);
            assert_eq!(
                written(&lab.router.calls()),
                announced(&change, &["apply", "confirm"], 45),
                "{feature} {operation}"
            );
        }
    }
}
