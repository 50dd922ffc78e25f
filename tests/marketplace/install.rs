//! Installing from the catalogue, and updates.

use std::time::Duration;

use heddle_marketplace::PublisherKey;
use serde_json::{Value, json};

use super::{Lab, offered, syncs};
use crate::plugins::{agree, change, entry, is_offered, plugin, send};
use crate::support::{Answer, on_both, until};

async fn install(lab: &Lab, body: &Value) -> Answer {
    lab.api.post("/marketplace/plugins/scripted/install", body).await
}

async fn update(lab: &Lab) -> Answer {
    lab.api.post("/marketplace/plugins/scripted/update", &json!({})).await
}

async fn shown(lab: &Lab) -> Value {
    lab.api.get("/marketplace/plugins/scripted").await.expect_status(200).body
}

on_both! {
    async fn a_plugin_of_the_catalogue_serves_under_the_rules_of_one_that_was_sent(database: Database) {
        let mut lab = Lab::start(database).await;
        syncs(&lab.api, "updated").await;
        let before = shown(&lab).await;
        assert_eq!((&before["installed_version"], &before["version"], &before["has_update"]), (&Value::Null, &json!("1.0.0"), &json!(false)));
        assert_eq!(before["publisher"], json!({ "id": "acme", "name": "ACME" }));
        let asked = before["asks_for"].as_array().unwrap();
        assert!(asked[0]["risk"] == "high" && before["asks_for"].to_string().contains("puts the secret 'key'"), "{before}");
        assert_eq!(before["versions"][0]["is_installable"], true, "{before}");

        // What the catalogue lists opens nothing that is sent.
        let sent = send(&lab.api, &lab.package("1.0.0")).await.expect_status(400);
        assert_eq!(sent.error_type(), "package_refused", "{}", sent.text);
        let installed = install(&lab, &json!({})).await.expect_status(201);
        assert_eq!(installed.header("location"), "/api/v1/plugins/scripted");
        assert_eq!((&installed.body["version"], &installed.body["state"]), (&json!("1.0.0"), &json!("awaiting_consent")));
        assert_eq!(install(&lab, &json!({})).await.expect_status(200).body["state"], "awaiting_consent", "again");
        agree(&lab.api).await;
        let body = json!({ "enabled": true, "settings": { "team": "night" } });
        lab.api.put("/plugins/scripted/organization", &body).await.expect_status(200);
        assert!(is_offered(&lab.api).await);
        assert_eq!(entry(&lab.api, "plugin.awaiting_consent").await["detail"]["origin"], "catalog");
        lab.restart().await;
        assert!(is_offered(&lab.api).await, "its key is known although no person trusts it: {}", plugin(&lab.api).await);
        assert_eq!(shown(&lab).await["installed_version"], "1.0.0");
    }
}

on_both! {
    async fn an_update_that_may_do_nothing_new_serves_at_once(database: Database) {
        let lab = Lab::start(database).await;
        let early = update(&lab).await.expect_status(409);
        assert_eq!(early.error_type(), "no_catalog", "{}", early.text);
        syncs(&lab.api, "updated").await;
        let early = update(&lab).await.expect_status(409);
        assert_eq!(early.error_type(), "not_installed", "{}", early.text);
        lab.in_use_after_sync().await;
        let current = update(&lab).await.expect_status(409);
        assert_eq!(current.error_type(), "no_update", "{}", current.text);
        lab.registry.add(&lab.package("1.1.0"));
        syncs(&lab.api, "updated").await;
        assert_eq!(shown(&lab).await["has_update"], true);
        assert_eq!(update(&lab).await.expect_status(201).body["state"], "active");
        assert_eq!(plugin(&lab.api).await["version"], "1.1.0");
        // One that may do more waits, and what serves goes on.
        let wider = lab.package_of("1.2.0", &lab.registry.acme, |manifest| {
            manifest["capabilities"]["kv"]["bytes"] = json!(4_000);
        });
        lab.registry.add(&wider);
        syncs(&lab.api, "updated").await;
        assert_eq!(update(&lab).await.expect_status(201).body["state"], "awaiting_consent");
        let waiting = plugin(&lab.api).await;
        assert_eq!((&waiting["version"], &waiting["is_update_waiting"]), (&json!("1.1.0"), &json!(true)));
        // An old version comes back by a rollback alone.
        let replay = install(&lab, &json!({ "version": "1.0.0" })).await.expect_status(409);
        assert!(replay.text.contains("older than"), "{}", replay.text);
        change(&lab.api, "rollback").await.expect_status(200);
        assert_eq!(plugin(&lab.api).await["version"], "1.0.0");

    }
}

on_both! {
    async fn what_is_newer_is_installed_by_itself_where_the_operator_wants_it(database: Database) {
        let lab = Lab::start_with(database, |options| {
            options.with("MARKETPLACE_SYNC_MINUTES", "60").with("MARKETPLACE_AUTO_UPDATE", "true")
        }).await;
        until("it is synced", async || !offered(&lab.api, "").await.is_empty()).await;
        install(&lab, &json!({})).await.expect_status(201);
        agree(&lab.api).await;
        lab.registry.add(&lab.package("1.1.0"));
        let later = || lab.server.running().app.clock.advance(chrono::TimeDelta::minutes(61));
        later();
        let api = lab.server.log_in("ada").await;
        until("it is updated", async || plugin(&api).await["version"] == "1.1.0").await;
        // What may do more is fetched, and waits.
        let wider = lab.package_of("1.2.0", &lab.registry.acme, |manifest| {
            manifest["capabilities"]["kv"]["bytes"] = json!(4_000);
        });
        lab.registry.add(&wider);
        later();
        let lab = Lab { api: lab.server.log_in("ada").await, ..lab };
        until("it waits", async || plugin(&lab.api).await["is_update_waiting"] == true).await;
        assert_eq!(plugin(&lab.api).await["version"], "1.1.0");
        let activated = entry(&lab.api, "plugin.activated").await;
        assert_eq!((&activated["actor_name"], &activated["detail"]["version"]), (&json!("heddle"), &json!("1.1.0")));
    }
}

on_both! {
    async fn what_does_not_fit_is_refused_with_its_reason(database: Database) {
        let lab = Lab::start(database).await;
        let newer = |manifest: &mut Value| manifest["min-host"] = json!("999.0.0");
        lab.registry.add(&lab.package_of("2.0.0", &lab.registry.acme, newer));
        lab.registry.add(&lab.package("1.1.0"));
        crate::marketplace::registry::does(&["yank", &lab.registry.home(), "scripted", "1.1.0"]);
        lab.registry.publish();
        syncs(&lab.api, "updated").await;
        for (version, kind, words) in [
            ("2.0.0", "package_misfit", "needs version 999.0.0"),
            ("1.1.0", "package_yanked", "no longer offered"),
            ("3.0.0", "no_such_version", "no version 3.0.0"),
        ] {
            let refused = install(&lab, &json!({ "version": version })).await.expect_status(409);
            assert_eq!(refused.error_type(), kind, "{}", refused.text);
            assert!(refused.text.contains(words), "{}", refused.text);
        }
        let versions = shown(&lab).await["versions"].clone();
        let reasons: Vec<&Value> = versions.as_array().unwrap().iter().map(|version| &version["reason"]).collect();
        assert_eq!(reasons[1..], [&json!("no longer offered"), &Value::Null], "{versions}");
        install(&lab, &json!({ "version": "1" })).await.expect_status(422);
        install(&lab, &json!({ "override_reason": " " })).await.expect_status(422);
        lab.api.post("/marketplace/plugins/nobody/install", &json!({})).await.expect_status(404);
        lab.api.get("/marketplace/plugins/nobody").await.expect_status(404);
        assert_eq!(install(&lab, &json!({})).await.expect_status(201).body["version"], "1.0.0");
    }
}

on_both! {
    async fn another_package_than_the_listed_one_is_not_installed(database: Database) {
        let lab = Lab::start(database).await;
        syncs(&lab.api, "updated").await;
        let files = lab.registry.files();
        let (path, archive) = files.iter().find(|(path, _)| path.extension().is_some_and(|end| end == "zip")).unwrap();
        let stranger = PublisherKey::generate("acme").unwrap();
        let others = [
            ("another signer", lab.package_of("1.0.0", &stranger, |_| ()), 400, "is not the package that the catalogue lists"),
            ("cut off", archive[..archive.len() / 2].to_vec(), 400, "is not the package that the catalogue lists"),
            ("longer", [&archive[..], b" "].concat(), 400, "is not the package that the catalogue lists"),
        ];
        for (what, bytes, status, words) in others {
            std::fs::write(path, bytes).unwrap();
            let refused = install(&lab, &json!({})).await.expect_status(status);
            assert!(refused.text.contains(words), "{what}: {}", refused.text);
        }
        std::fs::remove_file(path).unwrap();
        let missing = install(&lab, &json!({})).await.expect_status(503);
        assert!(missing.text.contains("packages/"), "{}", missing.text);
        lab.api.get("/plugins/scripted").await.expect_status(404);
        lab.registry.put_back(&files);
        install(&lab, &json!({})).await.expect_status(201);
    }
}

on_both! {
    async fn a_catalogue_that_has_expired_is_good_for_nothing_new_unless_a_person_answers_for_it(database: Database) {
        let lab = Lab::start(database).await;
        lab.registry.stamp(10, Duration::from_mins(5), "timestamp");
        syncs(&lab.api, "updated").await;
        lab.server.running().app.clock.advance(chrono::TimeDelta::minutes(6));
        let refused = install(&lab, &json!({})).await.expect_status(409);
        assert_eq!(refused.error_type(), "catalog_unfit", "{}", refused.text);
        assert!(refused.text.contains("'timestamp.json' expired"), "{}", refused.text);
        let status = lab.api.get("/marketplace/plugins/sync").await.expect_status(200).body;
        assert!(status["unfit"].as_str().unwrap().contains("expired"), "{status}");
        let failed = syncs(&lab.api, "failed").await;
        assert_eq!(failed["step"], "timestamp", "{failed}");
        let answered = json!({ "override_reason": "the site is offline until Monday" });
        install(&lab, &answered).await.expect_status(201);
        let noted = entry(&lab.api, "marketplace.overridden").await;
        assert_eq!(noted["detail"]["reason"], "the site is offline until Monday");
        agree(&lab.api).await;
    }
}

impl Lab {
    async fn in_use_after_sync(&self) {
        install(self, &json!({})).await.expect_status(201);
        agree(&self.api).await;
        let body = json!({ "enabled": true, "settings": { "team": "night" } });
        self.api.put("/plugins/scripted/organization", &body).await.expect_status(200);
    }
}
