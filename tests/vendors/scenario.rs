//! Register, sync, stage, read the plan, apply with a window, lose the path, restore, revert, audit.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Lab, practice};
use crate::support::{Database, adapters, on_both};

#[test]
fn every_adapter_that_is_built_has_a_case() {
    let known: BTreeSet<String> = practice::all().iter().map(|vendor| vendor.id().to_owned()).collect();
    assert_eq!(known, adapters().into_iter().collect());
}

/// Runs a test body with every vendor, one after the other on the same kind of database.
async fn with_every_vendor<F: AsyncFn(Lab)>(database: Database, body: F) {
    for vendor in practice::all() {
        eprintln!("vendor {}", vendor.id());
        body(Lab::start(database.another().await, vendor).await).await;
    }
}

on_both! {
    async fn a_reviewed_change_reaches_the_device_and_is_taken_back(database: Database) {
        with_every_vendor(database, async |lab| {
            let (api, case, vendor) = (&lab.api, &lab.case, lab.vendor.id());
            api.post(&format!("/controllers/{}/test", lab.controller), &json!({})).await.expect_status(200);
            api.post(&format!("/controllers/{}/sync", lab.controller), &json!({})).await.expect_status(202);
            found(&lab).await;
            let before = lab.device.configuration();
            assert!(!lab.live().await.iter().any(|key| key == case.key));

            // Staged: nothing is written, and every call is shown.
            let change = lab.stage().await;
            assert_eq!(lab.device.configuration(), before, "{vendor}: staging writes nothing");
            let native = change["plan"]["native"].as_array().unwrap();
            assert!(native.iter().any(|call| call["stage"] == "apply"), "{change}");

            // Applied with a window, and confirmed in it.
            let body = json!({ "force": true, "plan_hash": change["plan"]["hash"], "confirm_within_secs": 60 });
            let held = lab.act(&change, "apply", &body).await.expect_status(200).body;
            assert_eq!(held["outcome"]["state"], "awaiting_confirm", "{held}");
            let confirmed = lab.act(&change, "confirm", &json!({})).await.expect_status(200).body;
            assert_eq!(confirmed["outcome"]["state"], "applied", "{confirmed}");
            assert_ne!(lab.device.configuration(), before);
            assert!(lab.live().await.iter().any(|key| key == case.key), "{vendor}: {:?}", lab.live().await);

            // What is there as asked is not written again.
            let again = lab.try_stage().await;
            if again.status == 201 {
                assert_eq!(again.body["plan"]["native"], json!([]), "{}", again.text);
                lab.act(&again.body, "discard", &json!({})).await.expect_status(200);
            } else {
                assert!(again.status == 422 && again.text.contains("exists"), "{}", again.text);
            }

            // Reverted by a change of its own.
            let inverse = lab.act(&change, "revert", &json!({})).await.expect_status(201).body;
            let body = json!({ "force": true, "plan_hash": inverse["plan"]["hash"] });
            let reverted = lab.act(&inverse, "apply", &body).await.expect_status(200).body;
            assert_eq!(reverted["outcome"]["state"], "applied", "{reverted}");
            assert_eq!(lab.device.configuration(), before, "{vendor}: as it was");

            let valid = api.get("/audit/validate").await.expect_status(200).body;
            assert_eq!(valid["valid"], true, "{valid}");
        })
        .await;
    }
}

on_both! {
    async fn a_change_whose_path_is_lost_in_its_window_is_taken_back_when_the_path_is_there_again(database: Database) {
        with_every_vendor(database, async |lab| {
            let before = lab.device.configuration();
            let change = lab.stage().await;
            let body = json!({ "force": true, "plan_hash": change["plan"]["hash"], "confirm_within_secs": 300 });
            let held = lab.act(&change, "apply", &body).await.expect_status(200).body;
            assert_eq!(held["outcome"]["state"], "awaiting_confirm", "{held}");
            assert_ne!(lab.device.configuration(), before);
            lab.device.cut();
            let taking_back = lab.act(&change, "revert", &Value::Null);
            let mending = async {
                tokio::time::sleep(std::time::Duration::from_millis(700)).await;
                lab.device.mend();
            };
            tokio::join!(taking_back, mending);
            let ended = lab.ended(&change, &["reverted"]).await;
            assert_eq!(ended["status"], "pending", "{ended}");
            assert_eq!(lab.device.configuration(), before, "{}: as it was", lab.vendor.id());
        })
        .await;
    }
}

on_both! {
    async fn a_device_that_others_changed_since_the_review_gets_nothing(database: Database) {
        with_every_vendor(database, async |lab| {
            let (first, second) = (lab.stage().await, lab.stage().await);
            let force = json!({ "force": true });
            lab.act(&first, "apply", &force).await.expect_status(200);
            let theirs = lab.device.configuration();
            let refused = lab.act(&second, "apply", &force).await;
            assert_eq!(refused.status, 409, "{}", refused.text);
            let seen = lab.get(&second).await;
            assert_eq!(seen["status"], "pending", "{seen}");
            assert_eq!(lab.device.configuration(), theirs, "{}: nothing is written over it", lab.vendor.id());
        })
        .await;
    }
}

/// Waits until a sync has found a device of the kind that the vendor's controller has.
async fn found(lab: &Lab) {
    for _ in 0..300 {
        let devices = lab.api.get("/devices?per_page=100").await.expect_status(200).body;
        let kinds = devices["items"].as_array().unwrap().iter().map(|device| &device["kind"]);
        if kinds.into_iter().any(|kind| kind == lab.case.finds) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let devices = lab.api.get("/devices?per_page=100").await.body;
    panic!("{}: no '{}' was found: {devices}", lab.vendor.id(), lab.case.finds);
}
