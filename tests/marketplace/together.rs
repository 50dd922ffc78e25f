//! Several processes of one database, and one that is killed.

use std::time::Duration;

use serde_json::json;

use super::registry::Registry;
use super::{offered, options, syncs};
use crate::plugins::{agree, archive_of, guest, is_offered, manifest, plugin};
use crate::support::{Database, Process, on_both, until};

fn archive(registry: &Registry, version: &str) -> Vec<u8> {
    let mut manifest = manifest("http://127.0.0.1:9");
    manifest["version"] = json!(version);
    archive_of(&manifest, guest(), &registry.acme)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_process_learns_the_others_follow() {
    let Some(database) = Database::postgres().await else { return };
    let registry = Registry::new();
    registry.add(&archive(&registry, "1.0.0"));
    let options = options(&registry, &registry.served().display().to_string());
    let folders = [0, 1].map(|_| tempfile::tempdir().unwrap());
    let (a, token) = Process::start(folders[0].path(), &database, &options).await.set_up().await;
    let b = Process::start(folders[1].path(), &database, &options).await.with_token(&token);
    syncs(&a.api, "updated").await;
    assert_eq!(offered(&b.api, "").await, ["scripted"]);
    b.api.post("/marketplace/plugins/scripted/install", &json!({})).await.expect_status(201);
    agree(&a.api).await;
    let settings = json!({ "enabled": true, "settings": { "team": "night" } });
    until("it can be set", async || {
        a.api.put("/plugins/scripted/organization", &settings).await.status == 200
    })
    .await;
    until("it is offered there", async || is_offered(&b.api).await).await;
    registry.revoke("plugin", "scripted", "disable");
    syncs(&b.api, "updated").await;
    until("it is gone at both", async || !is_offered(&a.api).await && !is_offered(&b.api).await).await;
    assert_eq!(plugin(&a.api).await["state"], "disabled");
    // An adapter is taken out of service at every process, too.
    registry.revoke("plugin", "openwrt", "kill");
    syncs(&a.api, "updated").await;
    let serves = async |api: &crate::support::Api| {
        let adapters = api.get("/adapters").await.expect_status(200).body;
        adapters["items"].as_array().unwrap().iter().any(|one| one["id"] == "openwrt")
    };
    until("the adapter is gone", async || !serves(&a.api).await && !serves(&b.api).await).await;
    // Both at once come to one result.
    registry.add(&archive(&registry, "1.1.0"));
    let (one, other) = tokio::join!(super::sync(&a.api), super::sync(&b.api));
    let states = [one.expect_status(200).body, other.expect_status(200).body];
    assert!(states.iter().any(|report| report["state"] == "updated"), "{states:?}");
    assert!(states.iter().all(|report| report["state"] != "failed"), "{states:?}");
}

on_both! {
    async fn a_kill_while_the_catalogue_is_updated_leaves_the_old_one_or_the_new_one(database: Database) {
        let registry = Registry::new();
        registry.add(&archive(&registry, "1.0.0"));
        let options = options(&registry, &registry.served().display().to_string());
        let folder = tempfile::tempdir().unwrap();
        let (mut process, token) = Process::start(folder.path(), &database, &options).await.set_up().await;
        let mut known = syncs(&process.api, "updated").await["catalog_version"].as_u64().unwrap();
        for (round, delay_ms) in [0, 3, 8, 15, 40].into_iter().enumerate() {
            let version = format!("1.{}.0", round + 1);
            registry.add(&archive(&registry, &version));
            let api = process.api.clone();
            let asking = async move { api.try_send("POST", "/marketplace/plugins/sync", Some(b"{}".to_vec())).await };
            tokio::select! { _ = asking => {}, () = tokio::time::sleep(Duration::from_millis(delay_ms)) => {} }
            process.kill();
            process = Process::start(folder.path(), &database, &options).await.with_token(&token);
            let status = process.api.get("/marketplace/plugins/sync").await.expect_status(200).body;
            let believed = status["catalog_version"].as_u64().unwrap();
            assert!(believed == known || believed == known + 1, "{known}: {status}");
            let shown = process.api.get("/marketplace/plugins/scripted").await.expect_status(200).body;
            let expected = if believed == known { format!("1.{round}.0") } else { version };
            assert_eq!(shown["version"], expected.as_str(), "what is listed is of the believed catalogue");
            let chain = process.api.get("/audit/validate").await.expect_status(200).body;
            assert_eq!(chain["valid"], true, "{chain}");
            let report = crate::marketplace::sync(&process.api).await.expect_status(200).body;
            assert_ne!(report["state"], "failed", "{report}");
            known += 1;
            assert_eq!(report["catalog_version"], known, "{report}");
        }
    }
}
