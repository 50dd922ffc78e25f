//! The stream as a client in another language sees it: every frame and every close, against a real process.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{Options, PASSWORD, Process, on_both, tool};

/// What the service says when it closes, apart from what takes a minute, a fault or thousands of connections.
const REASONS: &[&str] = &[
    "API keys are not accepted here: authenticate with an access token",
    "a frame has at most 65536 bytes",
    "authentication took longer than 10 s",
    "first frame must be auth with a token",
    "more than 200 parts of messages per second",
    "more than 5 frames per second",
    "more than 50 pings and pongs per second",
    "not a frame of RFC 6455",
    "origin not allowed",
    "service is stopping",
    "session is revoked",
    "text is not UTF-8",
    "the svc_access cookie is not valid, and no auth frame came within 10 s",
    "token is not valid",
    "too many connections",
];

on_both! {
    async fn a_python_client_finds_every_frame_and_every_close_as_specified(database: Database) {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::default().with("SYNC_INTERVAL_SECS", "3600").with("CORS_ORIGINS", "https://ui.example");
        let process = Process::start(folder.path(), &database, &options).await;
        let token = crate::processes::set_up(&process).await;
        let process = process.with_token(&token);
        let key = process.api.post("/api-keys", &json!({ "name": "k" })).await.expect_status(201).body;
        let site = process.api.get("/sites").await.expect_status(200).body["items"][0]["id"].clone();
        let mut command = Command::new(tool("TEST_PYTHON", "Python with the packages of tests/surface/client/requirements.txt"));
        command
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("events/conformance.py"))
            .args([process.api.base(), &token, key["api_key"].as_str().unwrap(), site.as_str().unwrap()])
            .arg(process.id().to_string())
            .env("PASSWORD", PASSWORD)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = tokio::time::timeout(Duration::from_mins(2), command.output()).await.expect("it ends in time");
        let output = output.expect("the program starts");
        let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{said}\n{errors}");
        let outcome: Value = serde_json::from_str(&said).expect("the script prints JSON");
        let codes = json!([1000, 1001, 1002, 1007, 1008, 1009, 1013]);
        assert_eq!(outcome["close_codes"], codes, "{outcome}");
        let frames = json!([
            "connected", "error", "event", "filters_set", "pong", "resumed", "session_revoked", "subscribed",
            "subscription_denied", "unsubscribed",
        ]);
        assert_eq!(outcome["frames"], frames, "{outcome}");
        let said = json!(["auth", "ping", "resume", "set_filters", "subscribe", "unsubscribe"]);
        assert_eq!(outcome["said"], said, "{outcome}");
        assert_eq!(outcome["reasons"], json!(REASONS), "{outcome}");
    }
}
