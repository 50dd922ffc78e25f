//! What the catalogue revokes: not installed, taken out of service, cut.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use heddle_core::Clock;
use heddle_core::plugin::PluginState;
use heddle_marketplace::catalog::{
    Action, CATALOG, Catalog, Document, Revocation, RevokedKind, TIMESTAMP, Timestamp, catalog_name,
    signature_name,
};
use heddle_store::plugins;
use serde_json::{Value, json};

use super::attacks::signed;
use super::{Lab, syncs};
use crate::plugins::{act, change, entry, is_offered, plugin, send, told};
use crate::support::on_both;

async fn revoke(lab: &Lab, kind: &str, value: &str, action: &str) {
    lab.registry.revoke(kind, value, action);
    syncs(&lab.api, "updated").await;
}

on_both! {
    async fn what_is_blocked_is_not_installed_and_goes_on_where_it_is(database: Database) {
        let mut lab = Lab::start(database).await;
        lab.in_use().await;
        revoke(&lab, "plugin", "scripted", "block").await;
        assert!(is_offered(&lab.api).await);
        assert_eq!(plugin(&lab.api).await["state"], "active");
        let shown = lab.api.get("/marketplace/plugins/scripted").await.expect_status(200).body;
        assert_eq!((&shown["version"], &shown["versions"][0]["reason"]), (&Value::Null, &json!("revoked: it steals")));
        lab.restart().await;
        assert!(is_offered(&lab.api).await, "{}", plugin(&lab.api).await);
        lab.api.delete("/plugins/scripted").await.expect_status(204);
        let version = json!({ "version": "1.0.0" });
        let refused = lab.api.post("/marketplace/plugins/scripted/install", &version).await.expect_status(409);
        assert_eq!(refused.error_type(), "package_revoked", "{}", refused.text);
        assert!(refused.text.contains("it steals"), "{}", refused.text);
        // Nor where a person sends it whose key is trusted.
        let key = lab.registry.acme.trusted();
        let trust = json!({
            "publisher": "acme", "public_key": hex::encode(key.key), "fingerprint": key.key_id(), "ids": ["scripted"],
        });
        lab.api.post("/plugins/trusted-keys", &trust).await.expect_status(201);
        let sent = send(&lab.api, &lab.package("1.0.0")).await.expect_status(409);
        assert_eq!(sent.error_type(), "package_revoked", "{}", sent.text);
    }
}

on_both! {
    async fn what_is_disabled_takes_no_calls_and_keeps_its_data(database: Database) {
        let mut lab = Lab::start(database).await;
        lab.in_use().await;
        let component = heddle_marketplace::Verified::open_archive(&lab.package("1.0.0"), &[lab.registry.acme.trusted()]);
        let component = component.unwrap().component_sha256().to_owned();
        revoke(&lab, "component", &component, "disable").await;
        let began = Instant::now();
        while is_offered(&lab.api).await {
            assert!(began.elapsed() < Duration::from_secs(20), "it serves still");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let standing = plugin(&lab.api).await;
        assert_eq!((&standing["state"], &standing["reason"]), (&json!("disabled"), &json!("revoked by the catalogue: it steals")));
        let noted = entry(&lab.api, "plugin.disabled").await;
        assert_eq!(noted["detail"]["revocation"]["action"], "disable", "{noted}");
        let refused = change(&lab.api, "enable").await.expect_status(409);
        assert!(refused.text.contains("revoked by the catalogue: it steals"), "{}", refused.text);
        lab.restart().await;
        assert!(!is_offered(&lab.api).await);
        assert_eq!(plugin(&lab.api).await["state"], "disabled");
    }
}

on_both! {
    async fn what_is_killed_is_cut_in_the_middle_of_a_call(database: Database) {
        let lab = Lab::start(database).await;
        lab.in_use().await;
        // Its target answers a byte at a time, without end.
        let step = json!({ "do": "http", "target": "api", "path": "/slow" });
        let began = Instant::now();
        let calling = act(&lab.api, "act", step);
        let killing = async {
            while !lab.device.seen().iter().any(|seen| seen.path == "/slow") {
                assert!(began.elapsed() < Duration::from_secs(20), "the call never began");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let key = lab.registry.acme.trusted().key_id();
            revoke(&lab, "key", &key, "kill").await;
        };
        let (run, ()) = tokio::join!(calling, killing);
        assert!(began.elapsed() < Duration::from_secs(40), "its own time is a minute");
        assert_eq!((&run["success"], &run["steps"][0]["error_code"]), (&json!(false), &json!("ADAPTER_ERROR")), "{run}");
        assert!(run["steps"][0]["message"].as_str().unwrap().contains("taken out of service at once"), "{run}");
        assert_eq!(plugin(&lab.api).await["state"], "quarantined");
        assert_eq!(told(&lab.api).await.last().unwrap().1, "quarantined");
        let refused = change(&lab.api, "release").await.expect_status(409);
        assert!(refused.text.contains("it steals"), "{}", refused.text);
        assert!(!is_offered(&lab.api).await);
    }
}

/// Revokes the versions of the plugin below this one.
async fn revoke_below(lab: &Lab, version: &str, action: &str) {
    lab.registry.revoke_versions(("plugin", "scripted"), Some(&format!("<{version}")), action);
    syncs(&lab.api, "updated").await;
}

on_both! {
    async fn a_mended_version_of_what_is_revoked_is_off_until_a_person_enables_it(database: Database) {
        let lab = Lab::start(database).await;
        lab.in_use().await;
        for (mended, action, stands) in [("1.1.0", "disable", "disabled"), ("1.2.0", "kill", "quarantined")] {
            revoke_below(&lab, mended, action).await;
            assert_eq!(plugin(&lab.api).await["state"], stands);
            lab.registry.add(&lab.package(mended));
            syncs(&lab.api, "updated").await;
            let update = lab.api.post("/marketplace/plugins/scripted/update", &json!({})).await;
            let update = update.expect_status(201).body;
            let shown = plugin(&lab.api).await;
            let why = "it was switched off before this version was installed; enable it to use it";
            for one in [&update, &shown] {
                let found = (&one["version"], &one["state"], &one["reason"]);
                assert_eq!(found, (&json!(mended), &json!("disabled"), &json!(why)), "{action}: {one}");
            }
            assert!(!is_offered(&lab.api).await, "{action}");
            assert_eq!(change(&lab.api, "enable").await.expect_status(200).body["version"], mended);
            assert!(is_offered(&lab.api).await, "{action}");
        }
    }
}

/// Writes what the server writes where a plugin failed too often.
async fn fails_too_often(lab: &Lab) {
    let app = &lab.server.running().app;
    let mut tx = app.db.write().await.unwrap();
    let mut row = plugins::lock(&mut tx, "scripted").await.unwrap().unwrap();
    (row.state, row.reason) = (PluginState::Quarantined, Some("it failed too often".to_owned()));
    plugins::update(&mut tx, &row, app.clock.now()).await.unwrap();
    tx.commit().await.unwrap();
}

on_both! {
    async fn a_revocation_counts_for_a_plugin_that_is_in_quarantine_already(database: Database) {
        let lab = Lab::start(database).await;
        lab.in_use().await;
        fails_too_often(&lab).await;
        revoke_below(&lab, "1.1.0", "disable").await;
        let shown = plugin(&lab.api).await;
        let why = json!("revoked by the catalogue: it steals");
        assert_eq!((&shown["state"], &shown["reason"]), (&json!("quarantined"), &why), "{shown}");
        lab.registry.add(&lab.package("1.1.0"));
        syncs(&lab.api, "updated").await;
        let update = lab.api.post("/marketplace/plugins/scripted/update", &json!({})).await;
        assert_eq!(update.expect_status(201).body["state"], "disabled", "until a person enables it");
    }
}

on_both! {
    async fn what_is_killed_is_cut_although_the_catalogue_cannot_be_fetched(database: Database) {
        let mut lab = Lab::start(database).await;
        lab.in_use().await;
        lab.registry.add(&lab.package("1.1.0"));
        lab.registry.revoke("plugin", "scripted", "kill");
        let good = lab.registry.files();
        for name in [catalog_name(2), CATALOG.to_owned()] {
            std::fs::remove_file(lab.registry.served().join(name)).unwrap();
        }
        let report = syncs(&lab.api, "failed").await;
        assert_eq!((&report["step"], &report["catalog_version"]), (&json!("catalog"), &json!(1)), "{report}");
        assert!(report["reason"].as_str().unwrap().contains("'catalog.json' is missing"), "{report}");
        assert_eq!(plugin(&lab.api).await["state"], "quarantined");
        assert!(!is_offered(&lab.api).await);
        assert_eq!(told(&lab.api).await.last().unwrap().1, "quarantined");
        let noted = entry(&lab.api, "marketplace.synced").await;
        assert_eq!((&noted["detail"]["outcome"], &noted["detail"]["revocations"]), (&json!("failed"), &json!(1)));
        lab.restart().await;
        assert!(!is_offered(&lab.api).await);
        // The timestamp is known by now, and brings its catalogue once that is there.
        lab.registry.put_back(&good);
        assert_eq!(syncs(&lab.api, "updated").await["catalog_version"], 2);
        let refused = change(&lab.api, "release").await.expect_status(409);
        assert!(refused.text.contains("it steals"), "{}", refused.text);
    }
}

on_both! {
    async fn an_adapter_is_revoked_although_the_catalogue_has_expired(database: Database) {
        let lab = Lab::start(database).await;
        let now = Clock::default().now();
        let now = now - TimeDelta::nanoseconds(i64::from(now.timestamp_subsec_nanos()));
        let mut late = Catalog::parse(&lab.registry.read(CATALOG)).unwrap();
        (late.version, late.expires) = (2, now + TimeDelta::minutes(5));
        for name in [catalog_name(2), CATALOG.to_owned()] {
            lab.registry.write(&signature_name(&name), &signed(&lab, Document::Catalog, &late.to_bytes(), &["catalog"]));
            lab.registry.write(&name, &late.to_bytes());
        }
        lab.registry.stamp(20, Duration::from_hours(24), "timestamp");
        syncs(&lab.api, "updated").await;
        lab.server.running().app.clock.advance(TimeDelta::minutes(6));
        let lab = Lab { api: lab.server.log_in("ada").await, ..lab };

        let mut next = Timestamp::parse(&lab.registry.read(TIMESTAMP)).unwrap();
        next.version = 21;
        next.revocations.push(Revocation {
            kind: RevokedKind::Plugin,
            value: "openwrt".to_owned(),
            versions: None,
            action: Action::Kill,
            reason: "it steals".to_owned(),
        });
        let bytes = next.to_bytes();
        lab.registry.write(&signature_name(TIMESTAMP), &signed(&lab, Document::Timestamp, &bytes, &["timestamp"]));
        lab.registry.write(TIMESTAMP, &bytes);
        let report = syncs(&lab.api, "failed").await;
        assert_eq!(report["step"], "catalog", "{report}");
        assert!(report["reason"].as_str().unwrap().contains("'catalog.json' expired at"), "{report}");
        let adapters = lab.api.get("/adapters").await.expect_status(200).body;
        assert_eq!(adapters["items"], json!([]), "{adapters}");
        let told = lab.api.get("/events?event_type=marketplace.adapter_revoked").await.expect_status(200).body;
        assert_eq!(told["total"], 1, "{told}");
        // Nothing is installed from it, as before.
        let refused = lab.api.post("/marketplace/plugins/scripted/install", &json!({})).await.expect_status(409);
        assert_eq!(refused.error_type(), "catalog_unfit", "{}", refused.text);
        // The same again is no news.
        syncs(&lab.api, "failed").await;
        let told = lab.api.get("/events?event_type=marketplace.adapter_revoked").await.expect_status(200).body;
        assert_eq!(told["total"], 1, "{told}");
    }
}

on_both! {
    async fn what_waits_for_consent_waits_no_longer_once_it_is_revoked(database: Database) {
        let lab = Lab::start(database).await;
        lab.in_use().await;
        let wider = lab.package_of("1.1.0", &lab.registry.acme, |manifest| {
            manifest["capabilities"]["kv"]["bytes"] = json!(4_000);
        });
        lab.registry.add(&wider);
        syncs(&lab.api, "updated").await;
        let sent = lab.api.post("/marketplace/plugins/scripted/update", &json!({})).await.expect_status(201).body;
        assert_eq!(sent["state"], "awaiting_consent");
        let archive: String = {
            use sha2::Digest as _;
            hex::encode(sha2::Sha256::digest(&wider))
        };
        revoke(&lab, "package", &archive, "block").await;
        let standing = plugin(&lab.api).await;
        assert_eq!((&standing["state"], &standing["is_update_waiting"], &standing["version"]), (&json!("active"), &json!(false), &json!("1.0.0")));
        assert_eq!(told(&lab.api).await.last().unwrap(), &("1.1.0".to_owned(), "rejected".to_owned()));
        let consent = lab.api.get("/plugins/scripted/consent").await.expect_status(200).body;
        assert_eq!((&consent["is_needed"], &consent["version"]), (&json!(false), &json!("1.0.0")));
    }
}

on_both! {
    async fn an_older_package_that_is_revoked_is_not_put_back(database: Database) {
        let lab = Lab::start(database).await;
        lab.in_use().await;
        lab.registry.add(&lab.package("1.1.0"));
        syncs(&lab.api, "updated").await;
        lab.api.post("/marketplace/plugins/scripted/update", &json!({})).await.expect_status(201);
        revoke_below(&lab, "1.1.0", "block").await;
        let refused = change(&lab.api, "rollback").await.expect_status(409);
        assert_eq!(refused.error_type(), "package_revoked", "{}", refused.text);
        assert_eq!(plugin(&lab.api).await["version"], "1.1.0");
    }
}

on_both! {
    async fn an_adapter_that_is_revoked_is_taken_out_of_service(database: Database) {
        let mut lab = Lab::start(database).await;
        let serves = async |api: &crate::support::Api| {
            let adapters = api.get("/adapters").await.expect_status(200).body;
            adapters["items"].as_array().unwrap().iter().any(|one| one["id"] == "openwrt")
        };
        assert!(serves(&lab.api).await);
        revoke(&lab, "plugin", "openwrt", "block").await;
        assert!(serves(&lab.api).await, "what is blocked goes on where it is");
        revoke(&lab, "plugin", "openwrt", "kill").await;
        assert!(!serves(&lab.api).await);
        let told = lab.api.get("/events?event_type=marketplace.adapter_revoked&sort=occurred_at").await.expect_status(200).body;
        let actions: Vec<&Value> = told["items"].as_array().unwrap().iter().map(|event| &event["payload"]["action"]).collect();
        assert_eq!(actions, ["block", "kill"]);
        assert_eq!(entry(&lab.api, "adapter.revoked").await["detail"]["revocation"]["action"], "kill");
        lab.restart().await;
        assert!(!serves(&lab.api).await);
    }
}
