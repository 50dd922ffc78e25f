//! Releases that change between two readings, and devices that change behind one controller.

use serde_json::{Value, json};

use super::lab_of;
use crate::support::{Database, Socket, on_both};
use crate::vendors::{Lab, practice};

async fn apply(lab: &Lab, change: &Value) -> crate::support::Answer {
    lab.act(change, "apply", &json!({ "force": true })).await
}

on_both! {
    async fn an_upgrade_that_no_reading_told_of_is_noticed_before_anything_is_applied(database: Database) {
        for vendor in ["openwrt", "opnsense"] {
            let lab = Lab::start(database.another().await, practice::of(vendor)).await;
            assert_eq!(lab.synced().await["release_state"], "tested");
            let change = lab.stage().await;
            let before = lab.device.configuration();
            let mut stream = Socket::subscribe(&lab.api, &["controller.release.changed"]).await;
            let version = lab.vendor.untested();
            lab.device.tell(version);
            let refused = apply(&lab, &change).await.expect_status(409);
            assert_eq!(refused.error_type(), "untested_release", "{}", refused.text);
            let payload = stream.next().await["event"]["payload"].clone();
            let told = (&payload["version"], &payload["release_state"]);
            assert_eq!(told, (&json!(version), &json!("untested")), "{payload}");
            let controller = lab.api.get(&lab.at("")).await.expect_status(200).body;
            let known = (&controller["firmware"], &controller["release_state"]);
            assert_eq!(known, told, "{controller}");
            assert_eq!(lab.device.configuration(), before, "{vendor}: nothing is written");
            // Back on a release that is tested, nothing is in the way, and no reading was needed for that either.
            lab.device.tell(lab.vendor.usual());
            apply(&lab, &change).await.expect_status(200);
        }
    }
}

on_both! {
    async fn a_permission_does_not_go_over_to_another_device(database: Database) {
        let lab = lab_of(database, "openwrt", "24.10").await;
        let version = lab.vendor.untested();
        lab.device.tell(version);
        lab.synced().await;
        lab.allow(version).await.expect_status(200);
        let change = lab.stage().await;
        let renamed = lab.api.patch(&lab.at(""), &json!({ "name": "gate" })).await.expect_status(200).body;
        assert_eq!(renamed["allowed_release"], version, "it is the same device: {renamed}");
        let other = lab.vendor.start().await;
        other.tell(version);
        let moved = lab.api.patch(&lab.at(""), &json!({ "url": other.url() })).await.expect_status(200).body;
        let known = ["product", "firmware", "allowed_release", "release_state"].map(|field| moved[field].clone());
        assert_eq!(known, [Value::Null, Value::Null, Value::Null, json!("unknown")], "{moved}");
        let refused = apply(&lab, &change).await.expect_status(409);
        assert_eq!(refused.error_type(), "untested_release", "{}", refused.text);
        assert_eq!(lab.synced().await["release_state"], "untested");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_release_lacks_is_neither_planned_again_nor_applied() {
    let lab = lab_of(Database::sqlite(), "opnsense", "26.7").await;
    lab.synced().await;
    let mut changes = Vec::new();
    for (area, feature) in
        [("diagnostics", "opnsense.diagnostics.health-apply"), ("dns", "opnsense.unbound.query-reset")]
    {
        let path = format!("/gateway-opnsense-{area}/{}/changes/{feature}?operation=create", lab.controller);
        changes.push(lab.api.post(&path, &json!({ "payload": {} })).await.expect_status(201).body);
    }
    let before = lab.device.configuration();
    lab.device.tell("26.1.6");
    let applied = apply(&lab, &changes[0]).await.expect_status(409);
    assert_eq!(applied.error_type(), "feature_not_offered", "{}", applied.text);
    let planned = lab.act(&changes[0], "plan", &json!({})).await.expect_status(422);
    let ids: Vec<&Value> = changes.iter().map(|change| &change["id"]).collect();
    let joined = lab.api.post("/gateway-vpn/changes/sets", &json!({ "change_ids": ids })).await;
    for said in [&applied.text, &planned.text, &joined.expect_status(422).text] {
        assert!(said.contains("needs release 26.7 and later") && said.contains("runs 26.1.6"), "{said}");
    }
    assert_eq!(lab.device.configuration(), before, "nothing is written");
    let seen = lab.get(&changes[0]).await;
    assert_eq!((&seen["status"], &seen["attempts"]), (&json!("pending"), &json!([])), "{seen}");
}

on_both! {
    async fn a_version_that_is_not_stored_whole_is_not_allowed(database: Database) {
        let lab = lab_of(database, "opnsense", "26.7").await;
        lab.device.tell(&format!("27.1.{}", "1".repeat(250)));
        let controller = lab.synced().await;
        assert_eq!(controller["release_state"], "untested", "{controller}");
        let refused = lab.allow(controller["firmware"].as_str().unwrap()).await.expect_status(409);
        assert!(refused.text.contains("was shortened"), "{}", refused.text);
        let refused = lab.allow("").await.expect_status(422);
        assert!(refused.text.contains("must not be empty"), "{}", refused.text);
        let controller = lab.api.get(&lab.at("")).await.expect_status(200).body;
        assert_eq!(controller["allowed_release"], Value::Null);
    }
}
