//! The releases of practice devices: which of them are tested, what is held back at others, and who lets it through.

mod upgrades;

use std::time::Duration;

use serde_json::{Value, json};

use super::{Lab, practice};
use crate::support::{Database, Socket, on_both};

impl Lab {
    fn at(&self, below: &str) -> String {
        format!("/controllers/{}{below}", self.controller)
    }

    /// Reads the controller now, and answers it as it is known then.
    async fn synced(&self) -> Value {
        let sync = self.api.post(&self.at("/sync"), &json!({})).await.expect_status(202).body;
        let path = self.at(&format!("/syncs/{}", sync["id"].as_str().expect("a sync has an id")));
        for _ in 0..1_500 {
            let sync = self.api.get(&path).await.expect_status(200).body;
            if !sync["ended_at"].is_null() {
                assert!(sync["error"].is_null(), "{sync}");
                return self.api.get(&self.at("")).await.expect_status(200).body;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{}: the sync does not end", self.vendor.id());
    }

    /// Waits until a reading has failed, and answers the controller as it is known then.
    async fn failed(&self) -> Value {
        for _ in 0..600 {
            let controller = self.api.get(&self.at("")).await.expect_status(200).body;
            if !controller["last_error"].is_null() {
                return controller;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{}: the reading does not fail", self.vendor.id());
    }

    /// How many controllers a list with this state has.
    async fn listed(&self, state: &str) -> Value {
        let list = self.api.get(&format!("/controllers?release_state={state}")).await.expect_status(200).body;
        list["total"].clone()
    }

    async fn allow(&self, version: &str) -> crate::support::Answer {
        self.api.post(&self.at("/untested-release"), &json!({ "version": version })).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_release_that_a_practice_device_can_be_is_tested_and_is_written_to() {
    for vendor in practice::all() {
        for release in vendor.releases() {
            let lab = lab_of(Database::sqlite(), vendor.id(), release).await;
            let controller = lab.synced().await;
            let version = controller["firmware"].as_str().unwrap();
            assert!(version.starts_with(release), "{}: {version}", lab.vendor.id());
            assert_eq!(controller["release_state"], "tested", "{} {version}", lab.vendor.id());
            let change = lab.stage().await;
            let applied = lab.act(&change, "apply", &json!({ "force": true })).await.expect_status(200).body;
            assert_eq!(applied["outcome"]["state"], "applied", "{} {version}: {applied}", lab.vendor.id());
            assert!(lab.live().await.iter().any(|key| key == lab.case.key), "{} {version}", lab.vendor.id());
        }
    }
}

on_both! {
    async fn an_untested_release_is_read_and_planned_and_written_to_once_a_person_allows_it(database: Database) {
        for vendor in practice::all() {
            let device = vendor.start().await;
            let version = vendor.untested();
            device.tell(version);
            let lab = Lab::start_with(database.another().await, vendor, device).await;
            held_back(&lab, version).await;
            allowed(&lab, version).await;
            asks_again(&lab, version).await;
        }
    }
}

/// Reading and staging work; applying is refused, and says what would work.
async fn held_back(lab: &Lab, version: &str) {
    let controller = lab.synced().await;
    let known = (&controller["firmware"], &controller["release_state"], &controller["allowed_release"]);
    assert_eq!(known, (&json!(version), &json!("untested"), &Value::Null), "{}", lab.vendor.id());
    assert_eq!((lab.listed("untested").await, lab.listed("tested").await), (json!(1), json!(0)));
    let before = lab.device.configuration();
    assert!(!lab.live().await.iter().any(|key| key == lab.case.key));
    let change = lab.stage().await;
    let refused = lab.act(&change, "apply", &json!({ "force": true })).await.expect_status(409).body;
    let error = &refused["error"];
    assert_eq!(error["type"], "untested_release", "{refused}");
    let message = error["message"].as_str().unwrap();
    for part in [version, lab.vendor.usual(), &lab.at("/untested-release")] {
        assert!(message.contains(part), "'{part}' is not in: {message}");
    }
    assert_eq!(lab.device.configuration(), before, "{}: nothing is written", lab.vendor.id());
    let seen = lab.get(&change).await;
    assert_eq!((&seen["status"], &seen["attempts"]), (&json!("pending"), &json!([])), "{seen}");
    lab.act(&change, "discard", &json!({})).await.expect_status(200);
}

/// Exactly the version that runs is allowed, with an event and an entry of the audit log.
async fn allowed(lab: &Lab, version: &str) {
    let refused = lab.allow("0.1").await.expect_status(422);
    assert!(refused.text.contains(&format!("runs '{version}'")), "{}", refused.text);
    let mut stream = Socket::subscribe(&lab.api, &["controller.release.changed"]).await;
    let controller = lab.allow(version).await.expect_status(200).body;
    let known = (&controller["release_state"], &controller["allowed_release"]);
    assert_eq!(known, (&json!("allowed"), &json!(version)));
    let event = stream.next().await;
    let payload = &event["event"]["payload"];
    assert_eq!(
        (&payload["version"], &payload["release_state"]),
        (&json!(version), &json!("allowed")),
        "{event}"
    );
    assert_eq!(lab.listed("allowed").await, json!(1));
    let log = lab.api.get("/audit?action=controller.release_allowed").await.expect_status(200).body;
    let detail = &log["items"][0]["detail"];
    assert_eq!(detail["before"], json!({ "allowed_release": null, "release_state": "untested" }), "{log}");
    assert_eq!(detail["after"], json!({ "allowed_release": version, "release_state": "allowed" }), "{log}");
    // Another reading finds the same.
    assert_eq!(lab.synced().await["release_state"], "allowed");
    let change = lab.stage().await;
    let applied = lab.act(&change, "apply", &json!({ "force": true })).await.expect_status(200).body;
    assert_eq!(applied["outcome"]["state"], "applied", "{}: {applied}", lab.vendor.id());
}

/// A later version needs a permission of its own; a permission is taken back.
async fn asks_again(lab: &Lab, version: &str) {
    let later = format!("{version}.7");
    lab.device.tell(&later);
    let controller = lab.synced().await;
    let known = (&controller["release_state"], &controller["allowed_release"]);
    assert_eq!(known, (&json!("untested"), &json!(version)), "{}", lab.vendor.id());
    lab.allow(&later).await.expect_status(200);
    lab.api.delete(&lab.at("/untested-release")).await.expect_status(204);
    lab.api.delete(&lab.at("/untested-release")).await.expect_status(404);
    assert_eq!(lab.listed("untested").await, json!(1));
    lab.device.tell(lab.vendor.usual());
    assert_eq!(lab.synced().await["release_state"], "tested");
    let refused = lab.allow(lab.vendor.usual()).await.expect_status(409);
    assert!(refused.text.contains("is tested"), "{}", refused.text);
}

/// The case of one vendor, on its practice device of this release.
async fn lab_of(database: Database, vendor: &str, release: &str) -> Lab {
    let vendor = practice::of(vendor);
    let device = vendor.start_as(release).await;
    Lab::start_with(database, vendor, device).await
}

on_both! {
    async fn an_upgrade_in_the_window_of_a_change_closes_no_way_back(database: Database) {
        for verb in ["confirm", "revert"] {
            let lab = lab_of(database.another().await, "opnsense", "26.7").await;
            lab.synced().await;
            let before = lab.device.configuration();
            let change = lab.stage().await;
            let body = json!({ "force": true, "confirm_within_secs": 300 });
            let held = lab.act(&change, "apply", &body).await.expect_status(200).body;
            assert_eq!(held["outcome"]["state"], "awaiting_confirm", "{held}");
            lab.device.tell(lab.vendor.untested());
            assert_eq!(lab.synced().await["release_state"], "untested");
            lab.act(&change, verb, &json!({})).await.expect_status(200);
            let is_kept = verb == "confirm";
            let ended = lab.ended(&change, &[if is_kept { "applied" } else { "reverted" }]).await;
            assert_eq!(lab.device.configuration() != before, is_kept, "{verb}: {ended}");
        }
    }
}

on_both! {
    async fn a_permission_survives_a_restart(database: Database) {
        let mut lab = lab_of(database, "openwrt", "24.10").await;
        let version = lab.vendor.untested();
        lab.device.tell(version);
        lab.synced().await;
        lab.allow(version).await.expect_status(200);
        lab.server.restart().await;
        lab.api = lab.server.log_in("ada").await;
        assert_eq!(lab.listed("allowed").await, json!(1));
        let change = lab.stage().await;
        lab.act(&change, "apply", &json!({ "force": true })).await.expect_status(200);
    }
}

on_both! {
    async fn a_controller_that_was_never_read_is_asked_before_anything_is_applied(database: Database) {
        let vendor = practice::of("proxmox");
        let device = vendor.start().await;
        device.tell(vendor.untested());
        device.cut();
        let lab = Lab::start_with(database, vendor, device).await;
        let known = lab.failed().await;
        assert_eq!((&known["firmware"], &known["release_state"]), (&Value::Null, &json!("unknown")));
        // The next reading comes in a minute.
        lab.device.mend();
        let change = lab.stage().await;
        let refused = lab.act(&change, "apply", &json!({ "force": true })).await.expect_status(409).body;
        assert_eq!(refused["error"]["type"], "untested_release", "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_release_lacks_is_neither_shown_nor_staged_nor_read() {
    let group = json!({ "payload": { "name": "both", "item": ["WAN_GW"] } });
    for (release, is_there) in [("26.1", false), ("26.7", true)] {
        let lab = lab_of(Database::sqlite(), "opnsense", release).await;
        lab.synced().await;
        let area = format!("/gateway-opnsense-routing/{}", lab.controller);
        let shown = lab.api.get(&area).await.expect_status(200).body;
        let has = |list: &str, id: &str| shown[list].as_array().unwrap().iter().any(|one| one["id"] == id);
        assert_eq!(has("features", "opnsense.routing.gateway-group"), is_there, "{release}");
        assert_eq!(has("resources", "routing.gateway-group"), is_there, "{release}");
        assert!(has("features", "opnsense.routing.gateway") && has("resources", "routing.gateway"));
        let path = format!("{area}/changes/opnsense.routing.gateway-group?operation=create");
        let staged = lab.api.post(&path, &group).await;
        let read = lab.api.get(&format!("{area}/routing.gateway-group")).await;
        if is_there {
            read.expect_status(200);
            assert!(!staged.text.contains("needs release"), "{}", staged.text);
            continue;
        }
        let (staged, read) = (staged.expect_status(422), read.expect_status(404));
        for said in [&staged.text, &read.text] {
            assert!(said.contains("needs release 26.7 and later") && said.contains("runs 26.1.6"), "{said}");
        }
    }
}
