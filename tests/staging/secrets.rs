//! No secret in guest memory, logs, events, audit, plans, errors or the database.

use std::sync::{Arc, Mutex};

use heddle_runtime::Tap;
use serde_json::json;

use super::{Lab, ROUTER_PASSWORD};
use crate::support::trace::Log;
use crate::support::{Options, PASSWORD, Socket, on_both};

/// What a device holds already, what a person types, what the service makes.
const PPPOE_PASSWORD: &str = "pppoe-canary-Zx81q";

fn assert_clean(place: &str, text: &[u8], canaries: &[&str]) {
    for canary in canaries {
        let found = text.windows(canary.len()).any(|window| window == canary.as_bytes());
        assert!(!found, "'{canary}' is in {place}");
    }
}

/// Everything that entered a component's memory while this test ran.
fn tap() -> (Tap, Arc<Mutex<Vec<u8>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    let tap: Tap =
        Arc::new(move |_direction: &str, bytes: &[u8]| sink.lock().unwrap().extend_from_slice(bytes));
    (tap, seen)
}

on_both! {
    async fn secrets_stay_where_they_belong(database: Database) {
        let log = Log::listen();
        let (tap, entered) = tap();
        let lab = Lab::start_with(database, Options::default().tapped(tap)).await;
        let api = &lab.api;
        let mut socket = Socket::subscribe(api, &["controller.*", "device.*"]).await;

        // A read of every kind, with secrets in the device's answers.
        for area in ["base", "firewall", "dhcp"] {
            let features = api.get(&lab.area(area)).await.expect_status(200).body;
            for resource in features["resources"].as_array().unwrap() {
                let id = resource["id"].as_str().unwrap();
                let page = api.get(&format!("{}/{id}", lab.area(area))).await;
                assert_clean(id, page.text.as_bytes(), &[ROUTER_PASSWORD]);
            }
        }
        // A change that carries a secret, through its whole life.
        let payload = json!({
            "name": "dsl", "proto": "pppoe", "device": "wan", "username": "user@isp", "password": PPPOE_PASSWORD,
        });
        let change = lab.stage("base", "openwrt.network.interface", "create", &payload).await;
        assert_eq!(change["payload"]["password"], "***", "{change}");
        assert!(change["plan"].to_string().contains("***"), "the plan shows that a secret is set: {change}");
        let applied = api.post(&Lab::path(&change, "apply"), &json!({ "force": true })).await.expect_status(200);
        assert_eq!(lab.router.option("network", "dsl", "password"), Some(json!(PPPOE_PASSWORD)), "the device has it");
        let inverse = api.post(&Lab::path(&change, "revert"), &json!({})).await.expect_status(201);
        let event = socket.event("controller.change.applied").await;
        // A wrong password, in an error.
        let test = format!("/controllers/{}/test", lab.controller);
        let credential = json!({ "name": "bad", "username": "root", "password": "wrong-canary-77" });
        let credential = api.post("/credentials", &credential).await.expect_status(201);
        let patch = json!({ "credential_id": credential.body["id"] });
        api.patch(&format!("/controllers/{}", lab.controller), &patch).await.expect_status(200);
        let refused = api.post(&test, &json!({})).await;

        let canaries = [ROUTER_PASSWORD, PPPOE_PASSWORD, "wrong-canary-77", PASSWORD];
        let audit = api.get("/audit?per_page=200").await;
        for (place, text) in [
            ("the change", change.to_string()),
            ("the applied change", applied.text),
            ("the inverse", inverse.text),
            ("an event", event.to_string()),
            ("an error", refused.text),
            ("a credential", credential.text),
            ("the audit log", audit.text),
        ] {
            assert_clean(place, text.as_bytes(), &canaries);
        }
        assert_clean("a component's memory", &entered.lock().unwrap(), &canaries);
        assert!(!entered.lock().unwrap().is_empty(), "the tap saw the calls");
        assert_clean("the log", &log.bytes(), &canaries);
        assert_clean("the log", &log.bytes(), &[api.token()]);
        assert!(!log.bytes().is_empty(), "something was logged");
        // What lies on the disk, the write-ahead log included.
        for entry in std::fs::read_dir(lab.server.folder().join("data")).unwrap().flatten() {
            if let Ok(bytes) = std::fs::read(entry.path()) {
                assert_clean(&entry.file_name().to_string_lossy(), &bytes, &canaries);
            }
        }
    }
}
