//! A version takes over what another one stored: on a copy, all of it or nothing, and back again.

use std::time::Duration;

use heddle_core::Role;
use heddle_marketplace::PublisherKey;
use serde_json::{Value, json};

use super::watcher::{
    Watch, guest, ingest, install, log, manifest, names, switch, trigger_until, triggers, until,
};
use super::{Keys, archive_of, entry, send};
use crate::fixtures::member;
use crate::support::{Api, Database, Process, on_both};

/// A package of the guest in this version.
fn version(device: &str, key: &PublisherKey, version: &str) -> Vec<u8> {
    let mut manifest = manifest(device);
    manifest["version"] = json!(version);
    archive_of(&manifest, guest(), key)
}

async fn update(watch: &Watch, to: &str) {
    let archive = version(&watch.device.url(), &watch.keys.acme, to);
    let sent = send(&watch.api, &archive).await.expect_status(201).body;
    assert_eq!(sent["state"], "active", "{sent}");
}

async fn roll_back(api: &Api) {
    api.post("/plugins/watcher/rollback", &json!({})).await.expect_status(200);
}

async fn storage(api: &Api) -> Value {
    api.get("/plugins/watcher/organization").await.expect_status(200).body["storage"].clone()
}

/// What is stored, once it is in the form of this version.
async fn storage_at(api: &Api, version: &str) -> Value {
    let mut last = Value::Null;
    for _ in 0..2_400 {
        last = storage(api).await;
        if last["version"] == version {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it was not brought to {version}: {last}, {}", triggers(api).await)
}

/// The lines that migrations wrote.
fn migrated(log: &[String]) -> Vec<&str> {
    log.iter().filter(|line| line.starts_with("migrated")).map(String::as_str).collect()
}

on_both! {
    async fn an_update_takes_over_what_each_organization_has_and_a_return_puts_it_back(database: Database) {
        let watch = Watch::start(database, json!({ "name": "ours" })).await;
        let api = &watch.api;
        let other = api.post("/organizations", &json!({ "name": "Umbrella" })).await.expect_status(201).body;
        let (_, stranger) = member(&watch.server, other["id"].as_str().unwrap(), Role::OrgAdmin, "uma").await;
        // It stores nothing there: it does not take these settings.
        switch(&stranger, true, json!({ "refuse": "not these" })).await;
        ingest(api, "one", "note").await;
        until(api, |log| names(log, "seen") == ["one"]).await;
        assert_eq!(storage(api).await, json!({ "version": "1.0.0", "kept_version": null, "kept_until": null }));

        update(&watch, "1.1.0").await;
        // Who asks at once waits for it.
        assert_eq!(migrated(&log(api).await), ["migrated from 1.0.0"]);
        let stored = storage_at(api, "1.1.0").await;
        assert!(stored["kept_version"] == "1.0.0" && stored["kept_until"].is_string(), "{stored}");
        let noted = entry(api, "plugin.storage_migrated").await;
        assert_eq!((&noted["detail"]["before"]["version"], &noted["detail"]["after"]["version"]), (&json!("1.0.0"), &json!("1.1.0")), "{noted}");
        storage_at(&stranger, "1.1.0").await;
        switch(&stranger, true, json!({ "name": "theirs" })).await;
        let found = until(&stranger, |log| !log.is_empty()).await;
        assert_eq!(found, ["configured theirs"], "where nothing was stored it is not called");
        ingest(api, "two", "note").await;
        let found = until(api, |log| names(log, "seen") == ["one", "two"]).await;
        assert_eq!(found[1..4], ["seen: one", "migrated from 1.0.0", "configured ours"], "it comes before all else");

        roll_back(api).await;
        let found = until(api, |log| migrated(log).is_empty()).await;
        assert_eq!(names(&found, "seen"), ["one"], "what the newer version stored is gone with it");
        assert_eq!(storage_at(api, "1.0.0").await["kept_version"], Value::Null);
        assert_eq!(entry(api, "plugin.storage_put_back").await["detail"]["after"]["version"], "1.0.0");
        storage_at(&stranger, "1.0.0").await;
        until(&stranger, |log| log == ["configured theirs"]).await;
        update(&watch, "1.2.0").await;
        let found = until(api, |log| !migrated(log).is_empty()).await;
        assert_eq!((migrated(&found), names(&found, "seen")), (vec!["migrated from 1.0.0"], vec!["one".to_owned()]));
    }
}

/// Has a migration fail that finds this word in what is stored.
async fn fails(database: Database, word: &str, reason: &str) {
    let watch = Watch::start(database, json!({})).await;
    let api = &watch.api;
    ingest(api, word, "note").await;
    until(api, |log| names(log, "seen").len() == 1).await;
    update(&watch, "1.1.0").await;
    ingest(api, "meanwhile", "note").await;
    let waits = "waits for what version 1.0.0 stored";
    trigger_until(api, "seen", |seen| {
        seen["problem"].as_str().is_some_and(|problem| problem.contains(waits))
    })
    .await;
    let stands = triggers(api).await;
    let problem = stands["problem"].as_str().unwrap();
    let begin = "version 1.1.0 could not take over what version 1.0.0 stored: ";
    assert!(problem.starts_with(begin) && problem.contains(reason), "{stands}");
    let ask = json!({ "operation_id": "plugin.watcher.ask", "params": {} });
    let run = api.post("/actions", &ask).await.expect_status(201).body;
    assert!(run["success"] == false && run.to_string().contains("/plugins/watcher/triggers says"), "{run}");
    let notices = api.get("/notifications").await.expect_status(200).body;
    assert!(notices.to_string().contains("could not take over what it stored"), "{notices}");
    assert_eq!(storage(api).await, json!({ "version": "1.0.0", "kept_version": null, "kept_until": null }));

    roll_back(api).await;
    let found = until(api, |log| names(log, "seen").len() == 2).await;
    assert_eq!(
        (names(&found, "seen"), migrated(&found)),
        (vec![word.to_owned(), "meanwhile".to_owned()], vec![])
    );
    let mut stands = Value::Null;
    for _ in 0..600 {
        stands = triggers(api).await;
        if stands["problem"].is_null() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(stands["problem"], Value::Null, "{stands}");
}

on_both! {
    async fn a_migration_that_fails_changes_nothing_and_calls_wait_for_people(database: Database) {
        fails(database, "refuse-migration", "as it was told").await;
    }
}

on_both! {
    async fn a_migration_that_traps_changes_nothing_and_calls_wait(database: Database) {
        fails(database, "trap-migration", "").await;
    }
}

on_both! {
    async fn an_older_version_is_asked_to_take_over_what_a_newer_one_stored_where_nothing_older_is_kept(database: Database) {
        let watch = Watch::start(database, json!({})).await;
        let api = &watch.api;
        update(&watch, "1.1.0").await;
        storage_at(api, "1.1.0").await;
        let app = watch.server.running().app.clone();
        let mut tx = app.db.write().await.unwrap();
        let later = app.clock.now() + chrono::TimeDelta::days(8);
        assert!(heddle_store::plugins::storage::forget_kept(&mut tx, later, 100).await.unwrap() > 0);
        tx.commit().await.unwrap();
        assert_eq!(storage(api).await, json!({ "version": "1.1.0", "kept_version": null, "kept_until": null }));
        roll_back(api).await;
        let found = until(api, |log| migrated(log).len() == 2).await;
        assert_eq!(migrated(&found), ["migrated from 1.0.0", "migrated from 1.1.0"]);
    }
}

on_both! {
    async fn what_was_stored_before_is_taken_over_when_the_plugin_is_back(database: Database) {
        let watch = Watch::start(database, json!({})).await;
        let api = &watch.api;
        // Switched off over two versions.
        switch(api, false, json!({})).await;
        update(&watch, "1.1.0").await;
        update(&watch, "1.2.0").await;
        assert_eq!(storage(api).await["version"], "1.0.0");
        switch(api, true, json!({})).await;
        storage_at(api, "1.2.0").await;
        assert_eq!(migrated(&log(api).await), ["migrated from 1.0.0"]);
        // Removed, and installed again in another version.
        api.delete("/plugins/watcher").await.expect_status(204);
        install(api, &version(&watch.device.url(), &watch.keys.acme, "1.3.0")).await;
        switch(api, true, json!({})).await;
        storage_at(api, "1.3.0").await;
        assert_eq!(migrated(&log(api).await), ["migrated from 1.0.0", "migrated from 1.2.0"]);
    }
}

on_both! {
    async fn a_call_of_the_version_before_writes_nothing_to_the_storage_that_was_taken_over(database: Database) {
        let watch = Watch::start(database, json!({})).await;
        let api = &watch.api;
        // The call waits for its device for a second, and writes down what it did only then.
        ingest(api, "slow", "send-slowly").await;
        for _ in 0..1_500 {
            if !watch.device.seen().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(watch.device.seen().len(), 1);
        update(&watch, "1.1.0").await;
        let found = until(api, |log| !names(log, "seen").is_empty()).await;
        assert_eq!(migrated(&found), ["migrated from 1.0.0"]);
        assert_eq!(found.iter().filter(|line| *line == "seen: slow").count(), 1, "{found:?}");
        // Where it began before the migration, it came again.
        let at = |line: &str| found.iter().position(|one| one == line);
        let is_again = at("seen: slow") > at("migrated from 1.0.0");
        assert_eq!(watch.device.seen().len(), if is_again { 2 } else { 1 }, "{found:?}");
    }
}

on_both! {
    async fn a_kill_in_a_migration_leaves_the_storage_as_it_was_and_it_is_done_again(database: Database) {
        let keys = Keys::new();
        let (folder, options) = (tempfile::tempdir().unwrap(), keys.options());
        let (mut process, token) = Process::start(folder.path(), &database, &options).await.set_up().await;
        let device = "http://127.0.0.1:9";
        install(&process.api, &version(device, &keys.acme, "1.0.0")).await;
        switch(&process.api, true, json!({})).await;
        ingest(&process.api, "slow-migration", "note").await;
        until(&process.api, |log| names(log, "seen").len() == 1).await;
        let archive = version(device, &keys.acme, "1.1.0");
        send(&process.api, &archive).await.expect_status(201);
        for delay_ms in [50, 400, 1_200] {
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
            process.kill();
            process = Process::start(folder.path(), &database, &options).await.with_token(&token);
        }
        let stored = storage_at(&process.api, "1.1.0").await;
        assert_eq!(stored["kept_version"], "1.0.0", "{stored}");
        let found = log(&process.api).await;
        assert_eq!((migrated(&found), names(&found, "seen").len()), (vec!["migrated from 1.0.0"], 1), "{found:?}");
    }
}
