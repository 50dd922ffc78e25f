//! What one process of a database changes, the others follow.

use serde_json::json;

use super::{Keys, agree, archive_of, change, guest, is_offered, manifest, plugin, send, works};
use crate::support::{Api, Database, Process, until};

async fn version(api: &Api) -> String {
    plugin(api).await["version"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_process_follows_what_one_of_them_changes() {
    let Some(database) = Database::postgres().await else { return };
    let keys = Keys::new();
    let folders = [0, 1].map(|_| tempfile::tempdir().unwrap());
    let (a, token) = Process::start(folders[0].path(), &database, &keys.options()).await.set_up().await;
    let b = Process::start(folders[1].path(), &database, &keys.options()).await.with_token(&token);
    let archive = |version: &str| {
        let mut manifest = manifest("http://127.0.0.1:9");
        manifest["version"] = json!(version);
        archive_of(&manifest, guest(), &keys.acme)
    };
    send(&a.api, &archive("1.0.0")).await.expect_status(201);
    agree(&b.api).await;
    let settings = json!({ "enabled": true, "settings": { "team": "night" } });
    until("it can be set at the other process", async || {
        a.api.put("/plugins/scripted/organization", &settings).await.status == 200
    })
    .await;
    for api in [&a.api, &b.api] {
        until("it is offered", async || is_offered(api).await).await;
        works(api, "look", json!({ "do": "echo", "value": 1 })).await;
    }
    change(&a.api, "disable").await.expect_status(200);
    until("it is gone there", async || !is_offered(&b.api).await).await;
    change(&b.api, "enable").await.expect_status(200);
    until("it is back", async || is_offered(&a.api).await).await;
    send(&a.api, &archive("1.1.0")).await.expect_status(201);
    until("the other process serves the update", async || version(&b.api).await == "1.1.0").await;
    works(&b.api, "look", json!({ "do": "echo", "value": 1 })).await;
    b.api.delete("/plugins/scripted").await.expect_status(204);
    until("it is removed", async || !is_offered(&a.api).await).await;
}
