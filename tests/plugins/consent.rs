//! What a person agrees to, and what an update asks for.

use heddle_marketplace::{PublisherKey, TrustedKey};
use serde_json::{Value, json};

use super::{Lab, agree, archive_of, change, entry, guest, manifest, pairs, plugin, send, told, works};
use crate::support::on_both;

fn texts(items: &Value) -> Vec<(&str, &str)> {
    let items = items.as_array().unwrap().iter();
    items.map(|item| (item["risk"].as_str().unwrap(), item["text"].as_str().unwrap())).collect()
}

on_both! {
    async fn consent_says_in_words_what_a_plugin_may_do_high_risks_first(database: Database) {
        let lab = Lab::start(database).await;
        send(&lab.api, &lab.archive(|_| ())).await.expect_status(201);
        let asked = lab.api.get("/plugins/scripted/consent").await.expect_status(200).body;
        assert_eq!((&asked["version"], &asked["is_needed"]), (&json!("1.0.0"), &json!(true)));
        assert_eq!(asked["grant_hash"].as_str().unwrap().len(), 64);
        assert_eq!((&asked["added"], &asked["removed"]), (&asked["items"], &json!([])));
        let items = texts(&asked["items"]);
        let is_high = |word: &str| items.iter().any(|(risk, text)| *risk == "high" && text.contains(word));
        assert!(is_high("private networks") && is_high("POST") && is_high("'key'"), "{items:?}");
        assert!(is_high("openwrt.firewall.rule.create"), "what stages is a high risk: {items:?}");
        assert!(items.contains(&("low", "calls the operation 'sites.list', which reads")), "{items:?}");
        let risks: Vec<&str> = items.iter().map(|(risk, _)| *risk).collect();
        assert!(risks.is_sorted(), "high stands before low: {risks:?}");

        let wrong = json!({ "grant_hash": "0".repeat(64) });
        let refused = lab.api.post("/plugins/scripted/consent", &wrong).await.expect_status(409);
        assert_eq!(refused.error_type(), "grant_changed", "{}", refused.text);
        assert_eq!(plugin(&lab.api).await["state"], "awaiting_consent");
        agree(&lab.api).await;
        let granted = entry(&lab.api, "plugin.granted").await;
        assert_eq!(granted["detail"]["grant_hash"], asked["grant_hash"], "{granted}");
        let twice = lab.api.post("/plugins/scripted/consent", &json!({ "grant_hash": asked["grant_hash"] })).await;
        assert_eq!(twice.expect_status(409).error_type(), "nothing_to_consent");
        let after = lab.api.get("/plugins/scripted/consent").await.expect_status(200).body;
        assert_eq!((&after["is_needed"], &after["added"]), (&json!(false), &json!([])));
    }
}

on_both! {
    async fn an_update_that_may_do_no_more_serves_at_once(database: Database) {
        let lab = Lab::in_use(database).await;
        let less = lab.archive(|manifest| {
            manifest["version"] = json!("1.1.0");
            manifest["capabilities"]["fabric"]["call"] = json!(["sites.list"]);
        });
        let sent = send(&lab.api, &less).await.expect_status(201).body;
        assert_eq!((&sent["state"], &sent.get("reason")), (&json!("active"), &None), "{sent}");
        assert_eq!(plugin(&lab.api).await["version"], "1.1.0");
        let all = told(&lab.api).await;
        let steps = ["received", "verified", "compiled", "linked", "checked", "active"];
        assert_eq!(all[all.len() - 6..], pairs(&steps.map(|state| ("1.1.0", state))));
        assert_eq!(entry(&lab.api, "plugin.granted").await["detail"]["version"], "1.1.0");
    }
}

on_both! {
    async fn an_update_that_may_do_more_waits_and_the_version_before_goes_on(database: Database) {
        let lab = Lab::in_use(database).await;
        let more = lab.archive(|manifest| {
            manifest["version"] = json!("1.1.0");
            manifest["capabilities"]["fabric"]["call"] = json!(["sites.list", "sites.get", "fabric.log"]);
        });
        let sent = send(&lab.api, &more).await.expect_status(201).body;
        assert_eq!(sent["state"], "awaiting_consent", "{sent}");
        let shown = plugin(&lab.api).await;
        assert_eq!((&shown["state"], &shown["version"], &shown["is_update_waiting"]), (&json!("active"), &json!("1.0.0"), &json!(true)));
        works(&lab.api, "look", json!({ "do": "echo", "value": 1 })).await;
        let asked = lab.api.get("/plugins/scripted/consent").await.expect_status(200).body;
        assert_eq!((&asked["version"], &asked["is_needed"]), (&json!("1.1.0"), &json!(true)));
        assert_eq!(texts(&asked["added"]), [("low", "calls the operation 'sites.get', which reads")]);
        let removed = texts(&asked["removed"]);
        assert!(removed.len() == 1 && removed[0].1.contains("openwrt.firewall.rule.create"), "{removed:?}");
        assert_eq!(agree(&lab.api).await["version"], "1.1.0");
        let shown = plugin(&lab.api).await;
        assert_eq!((&shown["version"], &shown["is_update_waiting"]), (&json!("1.1.0"), &json!(false)));
        works(&lab.api, "look", json!({ "do": "echo", "value": 1 })).await;
    }
}

on_both! {
    async fn a_new_major_version_and_higher_limits_wait_for_consent(database: Database) {
        let lab = Lab::in_use(database).await;
        let sent = send(&lab.api, &lab.version("2.0.0")).await.expect_status(201).body;
        assert_eq!(sent["state"], "awaiting_consent");
        assert!(sent["reason"].as_str().unwrap().contains("major"), "{sent}");
        agree(&lab.api).await;
        // An older version than one that served is a replay.
        let replayed = send(&lab.api, &lab.version("1.2.0")).await.expect_status(409);
        assert!(replayed.message().contains("older"), "{}", replayed.text);
        let limits = lab.archive(|manifest| {
            manifest["version"] = json!("2.1.0");
            manifest["limits"]["requests"] = json!(32);
        });
        let sent = send(&lab.api, &limits).await.expect_status(201).body;
        assert!(sent["reason"].as_str().unwrap().contains("more than was agreed to"), "{sent}");
        agree(&lab.api).await;
        // The same version with other contents says nothing of which one serves.
        let other = lab.archive(|manifest| {
            manifest["version"] = json!("2.1.0");
            manifest["name"] = json!("Other");
        });
        let refused = send(&lab.api, &other).await.expect_status(409);
        assert!(refused.message().contains("other contents"), "{}", refused.text);
    }
}

on_both! {
    async fn another_key_waits_for_consent_however_often_it_is_sent(database: Database) {
        let mut lab = Lab::in_use(database).await;
        let new = PublisherKey::generate("acme").unwrap();
        let named = TrustedKey { ids: vec!["scripted".to_owned()], ..new.trusted() };
        lab.keys.trust(&[lab.keys.acme.trusted(), named]);
        lab.restart().await;
        let package = |version: &str| {
            let mut manifest = manifest(&lab.device.url());
            manifest["version"] = json!(version);
            archive_of(&manifest, guest(), &new)
        };
        for version in ["1.1.0", "1.2.0"] {
            let sent = send(&lab.api, &package(version)).await.expect_status(201).body;
            assert_eq!(sent["state"], "awaiting_consent", "{sent}");
            let asked = lab.api.get("/plugins/scripted/consent").await.expect_status(200).body;
            assert_eq!((&asked["reason"], &asked["added"]), (&json!("another key has signed it"), &json!([])));
        }
        // The version before goes on, also after a restart.
        lab.restart().await;
        let shown = plugin(&lab.api).await;
        assert_eq!((&shown["version"], &shown["behind"]), (&json!("1.0.0"), &Value::Null), "{shown}");
        works(&lab.api, "look", json!({ "do": "echo", "value": 1 })).await;
        agree(&lab.api).await;
        assert_eq!(plugin(&lab.api).await["version"], "1.2.0");
    }
}

on_both! {
    async fn who_read_of_one_package_does_not_agree_to_another(database: Database) {
        let lab = Lab::start(database).await;
        send(&lab.api, &lab.version("1.0.0")).await.expect_status(201);
        let read = lab.api.get("/plugins/scripted/consent").await.expect_status(200).body;
        send(&lab.api, &lab.version("1.0.1")).await.expect_status(201);
        let body = json!({ "grant_hash": read["grant_hash"] });
        let refused = lab.api.post("/plugins/scripted/consent", &body).await.expect_status(409);
        assert_eq!(refused.error_type(), "grant_changed", "{}", refused.text);
    }
}

on_both! {
    async fn what_waits_gives_way_to_what_serves_after_it(database: Database) {
        let lab = Lab::in_use(database).await;
        let more = lab.archive(|manifest| {
            manifest["version"] = json!("1.1.0");
            manifest["limits"]["requests"] = json!(32);
        });
        assert_eq!(send(&lab.api, &more).await.expect_status(201).body["state"], "awaiting_consent");
        assert_eq!(send(&lab.api, &lab.version("1.2.0")).await.expect_status(201).body["state"], "active");
        let nothing = json!({ "grant_hash": "0".repeat(64) });
        let refused = lab.api.post("/plugins/scripted/consent", &nothing).await.expect_status(409);
        assert_eq!(refused.error_type(), "nothing_to_consent", "{}", refused.text);
    }
}

on_both! {
    async fn an_update_of_a_plugin_that_is_off_leaves_it_off(database: Database) {
        let lab = Lab::in_use(database).await;
        change(&lab.api, "disable").await.expect_status(200);
        let sent = send(&lab.api, &lab.version("1.1.0")).await.expect_status(201).body;
        assert_eq!((&sent["version"], &sent["state"]), (&json!("1.1.0"), &json!("disabled")), "{sent}");
        let why = "it was switched off before this version was installed; enable it to use it";
        assert_eq!((&sent["reason"], &plugin(&lab.api).await["reason"]), (&json!(why), &json!(why)));
        let back = change(&lab.api, "rollback").await.expect_status(200).body;
        assert_eq!((&back["version"], &back["state"]), (&json!("1.0.0"), &json!("disabled")), "{back}");
        let why = "it was switched off before this version was put back; enable it to use it";
        assert_eq!((&back["reason"], &plugin(&lab.api).await["reason"]), (&json!(why), &json!(why)));
        // So does one that a person agrees to.
        send(&lab.api, &lab.version("2.0.0")).await.expect_status(201);
        let agreed = agree(&lab.api).await;
        assert!(agreed["state"] == "disabled" && agreed["reason"].as_str().unwrap().contains("installed"), "{agreed}");
        assert_eq!(change(&lab.api, "enable").await.expect_status(200).body["version"], "2.0.0");
        assert_eq!(plugin(&lab.api).await["reason"], Value::Null);
    }
}
