//! The signature, checked by a program that knows nothing but its description.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::{delivery, emit, start};
use crate::support::{on_both, tool};

on_both! {
    async fn a_receiver_in_another_language_accepts_what_is_ours_and_nothing_else(database: Database) {
        let (server, api, _receiver) = start(database).await;
        let secret = "whsec-of-the-python-receiver";
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/webhooks/receiver.py");
        let mut child = Command::new(tool("TEST_PYTHON", "Python"))
            .args([script, secret])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port: u16 = lines.next_line().await.unwrap().unwrap().parse().unwrap();
        let body = json!({
            "name": "Python", "url": format!("http://127.0.0.1:{port}/hook"), "events": ["device.*"], "signing_secret": secret,
        });
        let hook = api.post("/webhooks", &body).await.expect_status(201).body["id"].as_str().unwrap().to_owned();
        emit(&server, &api, None, "édge ✓").await;
        let verdict: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        assert_eq!((&verdict["genuine"], &verdict["altered"], &verdict["replayed"]), (&json!(true), &json!(false), &json!(false)), "{verdict}");
        assert_eq!(verdict["body"]["payload"]["name"], "édge ✓");
        let done = delivery(&api, &hook, |row| row["state"] == "delivered").await;
        assert_eq!((&done["id"], &done["last_status"]), (&verdict["delivery"], &json!(204)));

        // With another secret it is not genuine.
        api.post(&format!("/webhooks/{hook}/rotate-secret"), &json!({})).await.expect_status(200);
        emit(&server, &api, None, "edge").await;
        let verdict: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        assert_eq!(verdict["genuine"], false, "{verdict}");
    }
}
