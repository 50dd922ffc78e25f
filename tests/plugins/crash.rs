//! A server that is killed while a plugin comes from one state into another: what the database says is what serves.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Keys, agree, archive_of, change, guest, manifest, send, told};
use crate::fixtures::created;
use crate::support::{Api, Database, Options, Process, on_both};

/// Starts it again after a kill.
async fn again(folder: &Path, database: &Database, options: &Options, token: &str) -> Process {
    Process::start(folder, database, options).await.with_token(token)
}

/// The state of the plugin, and whether all that depends on it is as this state says.
async fn consistent(api: &Api, connection: &str) -> Value {
    let found = api.get("/plugins/scripted").await;
    let state =
        if found.status == 404 { json!("absent") } else { found.expect_status(200).body["state"].clone() };
    let began = std::time::Instant::now();
    let is_active = state == "active";
    loop {
        let catalog = api.get("/fabric/catalog?owner=scripted").await.expect_status(200).body;
        let is_offered = !catalog["operations"].as_array().unwrap().is_empty();
        let stands = api.get(&format!("/fabric/connections/{connection}")).await.expect_status(200).body;
        if is_offered == is_active && (stands["state"] == "enabled") == is_active {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{state}: offered {is_offered}, {stands}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let told = api.get("/events?event_type=plugin.state_changed&per_page=1").await.expect_status(200).body;
    let last = told["items"][0]["payload"]["state"].clone();
    let expected = if state == "absent" { json!("removed") } else { state.clone() };
    assert_eq!(last, expected, "the last event is that of the state");
    let chain = api.get("/audit/validate").await.expect_status(200).body;
    assert_eq!(chain["valid"], true, "{chain}");
    state
}

on_both! {
    async fn a_kill_at_a_transition_leaves_a_true_state(database: Database) {
        let keys = Keys::new();
        let (folder, options) = (tempfile::tempdir().unwrap(), keys.options());
        let archive = archive_of(&manifest("http://127.0.0.1:9"), guest(), &keys.acme);
        let (mut process, token) = Process::start(folder.path(), &database, &options).await.set_up().await;

        // While it is installed: it is there with all that it came through, or not at all.
        for delay_ms in [0, 5, 30, 200] {
            let (api, sent) = (process.api.clone(), archive.clone());
            let sending = async move { api.with("content-type", "application/zip").try_send("POST", "/plugins/install", Some(sent)).await };
            let killing = tokio::time::sleep(Duration::from_millis(delay_ms));
            tokio::select! { _ = sending => {}, () = killing => {} }
            process.kill();
            process = again(folder.path(), &database, &options, &token).await;
            let found = process.api.get("/plugins/scripted").await;
            if found.status == 200 {
                assert_eq!(found.body["state"], "awaiting_consent", "{}", found.text);
                assert_eq!(told(&process.api).await.len(), 6);
            } else {
                found.expect_status(404);
                assert_eq!(told(&process.api).await.len(), 0);
            }
        }
        send(&process.api, &archive).await;
        agree(&process.api).await;
        let settings = json!({ "enabled": true, "settings": { "team": "night" } });
        process.api.put("/plugins/scripted/organization", &settings).await.expect_status(200);
        let steps = json!([{ "operation_id": "plugin.scripted.look", "params": { "do": "echo", "value": 1 } }]);
        let connection = json!({ "source_event": "ingest.external", "steps": steps });
        let connection = created(&process.api, "/fabric/connections", &connection).await;

        for (round, verb) in ["disable", "enable", "disable", "enable", "disable"].into_iter().enumerate() {
            for delay_ms in [0, 4, 12] {
                let api = process.api.clone();
                let path = format!("/plugins/scripted/{verb}");
                let asking = async move { api.try_send("POST", &path, Some(b"{}".to_vec())).await };
                tokio::select! { _ = asking => {}, () = tokio::time::sleep(Duration::from_millis(delay_ms)) => {} }
                process.kill();
                process = again(folder.path(), &database, &options, &token).await;
                let state = consistent(&process.api, &connection).await;
                assert!(state == "active" || state == "disabled", "{round}: {state}");
            }
            // Whether the last try was carried out or not, the next round begins where it should.
            let answer = change(&process.api, verb).await;
            assert!([200, 409].contains(&answer.status), "{}", answer.text);
        }
        let api = process.api.clone();
        let removing = async move { api.try_send("DELETE", "/plugins/scripted", None).await };
        tokio::select! { _ = removing => {}, () = tokio::time::sleep(Duration::from_millis(6)) => {} }
        process.kill();
        process = again(folder.path(), &database, &options, &token).await;
        consistent(&process.api, &connection).await;
    }
}
