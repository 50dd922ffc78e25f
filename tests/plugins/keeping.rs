//! What a plugin keeps: apart for each organization, with a quota, all changes or none.

use heddle_kernel::app::App;
use serde_json::{Value, json};

use super::{Lab, agree, archive_of, change, fails, guest, manifest, send, works};
use crate::support::{Api, on_both};

const ORGANIZATION: &str = "/plugins/scripted/organization";

async fn get(api: &Api, key: &str) -> Value {
    works(api, "act", json!({ "do": "kv", "use": "get", "key": key })).await
}

async fn set(api: &Api, key: &str, text: &str) {
    works(api, "act", json!({ "do": "kv", "use": "set", "key": key, "text": text })).await;
}

async fn list(api: &Api, prefix: &str, cursor: Option<&str>) -> (Value, Value) {
    let page = works(
        api,
        "act",
        json!({ "do": "kv", "use": "list", "prefix": prefix, "cursor": cursor, "limit": 2 }),
    )
    .await;
    (page["keys"].clone(), page["next"].clone())
}

on_both! {
    async fn values_of_organizations_are_apart(database: Database) {
        let lab = Lab::in_use(database).await;
        let stranger = lab.stranger().await;
        lab.switch_on(&stranger).await;
        set(&lab.api, "a", "ours").await;
        assert_eq!(get(&stranger, "a").await, json!({}));
        assert_eq!(list(&stranger, "", None).await.0, json!([]));
        set(&stranger, "a", "theirs").await;
        assert_eq!(get(&lab.api, "a").await["text"], "ours");
        works(&stranger, "act", json!({ "do": "kv", "use": "delete", "key": "a" })).await;
        assert_eq!(get(&lab.api, "a").await["text"], "ours");
        assert_eq!(get(&stranger, "a").await, json!({}));
    }
}

on_both! {
    async fn changes_are_made_together_where_they_find_what_they_expect(database: Database) {
        let lab = Lab::in_use(database).await;
        let transact = async |keys: Value, version: &Value| {
            let step = json!({ "do": "kv", "use": "transact", "keys": keys, "version": version, "text": "new" });
            works(&lab.api, "act", step).await["done"].clone()
        };
        assert_eq!(transact(json!(["a", "b"]), &json!(0)).await, true);
        assert_eq!(transact(json!(["b", "c"]), &json!(0)).await, false, "one of them is there");
        assert_eq!(get(&lab.api, "c").await, json!({}), "none was changed");
        let version = get(&lab.api, "a").await["version"].clone();
        assert_eq!(transact(json!(["a"]), &version).await, true);
        assert_eq!(transact(json!(["a"]), &version).await, false, "its version is another now");
        // A key that was deleted in between does not get an old version again.
        let before = get(&lab.api, "b").await["version"].as_u64().unwrap();
        works(&lab.api, "act", json!({ "do": "kv", "use": "delete", "key": "b" })).await;
        set(&lab.api, "b", "x").await;
        assert!(get(&lab.api, "b").await["version"].as_u64().unwrap() > before);
        assert_eq!(list(&lab.api, "", None).await, (json!(["a", "b"]), Value::Null));
        set(&lab.api, "c", "x").await;
        let (keys, next) = list(&lab.api, "", None).await;
        assert_eq!((&keys, &next), (&json!(["a", "b"]), &json!("b")));
        assert_eq!(list(&lab.api, "", next.as_str()).await, (json!(["c"]), Value::Null));
    }
}

on_both! {
    async fn a_plugin_keeps_no_more_than_its_manifest_asks_for(database: Database) {
        let lab = Lab::in_use(database).await;
        set(&lab.api, "a", &"x".repeat(1_500)).await;
        let more = json!({ "do": "kv", "use": "set", "key": "b", "text": "x".repeat(600) });
        let (_, message) = fails(&lab.api, "act", more.clone()).await;
        assert!(message.contains("2000"), "{message}");
        assert_eq!(get(&lab.api, "b").await, json!({}));
        // The quota is that of one organization.
        let stranger = lab.stranger().await;
        lab.switch_on(&stranger).await;
        works(&stranger, "act", more.clone()).await;
        set(&lab.api, "a", "x").await;
        works(&lab.api, "act", more).await;
    }
}

on_both! {
    async fn a_value_with_an_end_is_gone_then_and_its_row_is_swept(database: Database) {
        let lab = Lab::in_use(database).await;
        let app = lab.server.running().app.clone();
        works(&lab.api, "act", json!({ "do": "kv", "use": "set", "key": "a", "text": "x", "ttl-s": 3_600 })).await;
        set(&lab.api, "b", "x").await;
        assert_eq!(get(&lab.api, "a").await["text"], "x");
        let later = app.clock.now() + chrono::TimeDelta::hours(2);
        let mut tx = app.db.write().await.unwrap();
        assert_eq!(heddle_store::plugins::values::forget_expired(&mut tx, later, 100).await.unwrap(), 1);
        tx.commit().await.unwrap();
        assert_eq!(get(&lab.api, "a").await, json!({}));
        assert_eq!(get(&lab.api, "b").await["text"], "x");
    }
}

/// Forgets values of removed plugins as on the day that is so many days from now, and returns how many.
async fn forget(app: &App, days: i64) -> u64 {
    let before = app.clock.now() + chrono::TimeDelta::days(days - 30);
    let mut tx = app.db.write().await.unwrap();
    let forgotten = heddle_store::plugins::values::forget_removed(&mut tx, before, 100).await.unwrap();
    tx.commit().await.unwrap();
    forgotten
}

on_both! {
    async fn what_a_removed_plugin_kept_is_forgotten_after_thirty_days(database: Database) {
        let lab = Lab::in_use(database).await;
        let app = lab.server.running().app.clone();
        set(&lab.api, "a", "x").await;
        lab.api.put("/plugins/scripted/secrets/key", &json!({ "value": "v" })).await.expect_status(204);
        lab.api.delete("/plugins/scripted").await.expect_status(204);
        assert_eq!(forget(&app, 29).await, 0);
        // Installed again in time, it finds what it kept, and neither settings nor secrets.
        send(&lab.api, &lab.version("1.0.1")).await.expect_status(201);
        agree(&lab.api).await;
        assert_eq!(forget(&app, 31).await, 0, "it is not removed any more");
        let own = lab.api.get(ORGANIZATION).await.expect_status(200).body;
        assert_eq!((&own["enabled"], &own["secrets_set"], &own["settings"]), (&json!(false), &json!([]), &json!({})));
        lab.switch_on(&lab.api).await;
        assert_eq!(get(&lab.api, "a").await["text"], "x");
        lab.api.delete("/plugins/scripted").await.expect_status(204);
        assert_eq!(forget(&app, 31).await, 1);
    }
}

on_both! {
    async fn a_package_that_is_only_sent_keeps_nothing_of_a_removed_plugin_longer(database: Database) {
        let lab = Lab::in_use(database).await;
        let app = lab.server.running().app.clone();
        set(&lab.api, "a", "x").await;
        set(&lab.api, "b", "x").await;
        lab.api.delete("/plugins/scripted").await.expect_status(204);
        let mut broken = manifest(&lab.device.url());
        broken["version"] = json!("1.0.1");
        let broken = archive_of(&broken, b"\0asm\x0d\0\x01\0".to_vec(), &lab.keys.acme);
        assert_eq!(send(&lab.api, &broken).await.expect_status(201).body["state"], "rejected");
        assert_eq!(send(&lab.api, &lab.version("1.0.2")).await.expect_status(201).body["state"], "awaiting_consent");
        assert_eq!(forget(&app, 29).await, 0);
        assert_eq!(forget(&app, 31).await, 2);
    }
}

impl Lab {
    /// Trusts another publisher than before with the plugin, and sends its package, which waits for consent.
    async fn hand_over(&self) {
        self.keys.trust(&[self.keys.globex.trusted_for(vec!["scripted".to_owned()])]);
        let mut manifest = manifest(&self.device.url());
        manifest["version"] = json!("2.0.0");
        let archive = archive_of(&manifest, guest(), &self.keys.globex);
        assert_eq!(send(&self.api, &archive).await.expect_status(201).body["state"], "awaiting_consent");
    }
}

on_both! {
    async fn another_publisher_finds_nothing_of_what_a_removed_plugin_kept(database: Database) {
        let lab = Lab::in_use(database).await;
        set(&lab.api, "token", "of acme").await;
        lab.api.delete("/plugins/scripted").await.expect_status(204);
        lab.hand_over().await;
        agree(&lab.api).await;
        lab.switch_on(&lab.api).await;
        assert_eq!(get(&lab.api, "token").await, json!({}));
        set(&lab.api, "token", "of globex").await;
        assert_eq!(get(&lab.api, "token").await["text"], "of globex");
    }
}

on_both! {
    async fn another_publisher_gets_nothing_that_organizations_gave_the_plugin_that_serves(database: Database) {
        let lab = Lab::in_use(database).await;
        set(&lab.api, "token", "of acme").await;
        lab.api.put("/plugins/scripted/secrets/key", &json!({ "value": "v" })).await.expect_status(204);
        lab.hand_over().await;
        assert_eq!(get(&lab.api, "token").await["text"], "of acme", "what serves goes on until then");
        let asked = lab.api.get("/plugins/scripted/consent").await.expect_status(200).body;
        assert!(asked["reason"].as_str().unwrap().contains("is forgotten"), "{asked}");
        agree(&lab.api).await;
        let own = lab.api.get(ORGANIZATION).await.expect_status(200).body;
        assert_eq!((&own["enabled"], &own["secrets_set"], &own["settings"]), (&json!(false), &json!([]), &json!({})));
        lab.switch_on(&lab.api).await;
        assert_eq!(get(&lab.api, "token").await, json!({}));
        let back = change(&lab.api, "rollback").await.expect_status(409);
        assert_eq!(back.error_type(), "no_earlier_package", "the package before is not its own: {}", back.text);
    }
}
