//! A release that a person allows in one process is written to by the other.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Pair, quick};
use crate::support::Api;

async fn becomes(api: &Api, controller: &str, state: &str) {
    let mut seen = Value::Null;
    for _ in 0..300 {
        seen = api.get(&format!("/controllers/{controller}")).await.expect_status(200).body;
        if seen["release_state"] == state {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the controller did not become '{state}': {seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_allowed_in_one_process_is_applied_by_the_other() {
    let Some(pair) = Pair::start(quick()).await else { return };
    let (a, b, controller) = (&pair.a.api, &pair.b.api, &pair.controller);
    becomes(a, controller, "tested").await;
    pair.router.tell_release("25.12.0");
    a.post(&format!("/controllers/{controller}/sync"), &json!({})).await.expect_status(202);
    becomes(b, controller, "untested").await;
    let payload = json!({ "payload": { "name": "Allow-8443", "src": "wan", "proto": ["tcp"], "dest_port": "8443", "target": "ACCEPT" } });
    let path =
        format!("/gateway-openwrt-firewall/{controller}/changes/openwrt.firewall.rule?operation=create");
    let change = b.post(&path, &payload).await.expect_status(201).body;
    let apply = format!("/gateway-vpn/changes/{}/apply", change["id"].as_str().expect("a change has an id"));
    let refused = b.post(&apply, &json!({ "force": true })).await.expect_status(409).body;
    assert_eq!(refused["error"]["type"], "untested_release", "{refused}");
    let allow = format!("/controllers/{controller}/untested-release");
    a.post(&allow, &json!({ "version": "25.12.0" })).await.expect_status(200);
    b.post(&apply, &json!({ "force": true })).await.expect_status(200);
}
