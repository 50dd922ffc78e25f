//! Which clients may complete the setup where others can reach the service.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::{Database, Options, PASSWORD, Server, on_both};

fn setup(token: Option<&str>) -> Value {
    let mut body = json!({
        "organization": { "name": "Acme" },
        "admin": { "username": "ada", "email": "ada@acme.test", "password": PASSWORD },
    });
    if let Some(token) = token {
        body["setup_token"] = json!(token);
    }
    body
}

on_both! {
    async fn beyond_this_machine_the_setup_needs_the_token_of_the_start(database: Database) {
        let mut server = Server::start_with(database, Options::default().with("BIND_ADDR", "0.0.0.0:0")).await;
        let file = server.folder().join("data/setup-token");
        let token = std::fs::read_to_string(&file).unwrap().trim().to_owned();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let status = server.nobody().get("/setup/status").await.expect_status(200).body;
        assert_eq!((&status["completed"], &status["token_required"]), (&json!(false), &json!(true)));
        let without = server.nobody().post("/setup/complete", &setup(None)).await.expect_status(403);
        assert_eq!(without.error_type(), "setup_token_required");
        assert!(without.message().contains("setup-token") && !without.text.contains(&token), "{}", without.text);
        let wrong = server.nobody().post("/setup/complete", &setup(Some(&token[1..]))).await.expect_status(403);
        assert_eq!(wrong.error_type(), "setup_token_invalid");
        server.restart().await;
        assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), token, "it survives a restart");
        server.nobody().post("/setup/complete", &setup(Some(&token))).await.expect_status(201);
        assert!(!file.exists(), "it is of no use any more");
        let status = server.nobody().get("/setup/status").await.expect_status(200).body;
        assert_eq!((&status["completed"], &status["token_required"]), (&json!(true), &json!(false)));
        server.nobody().post("/setup/complete", &setup(Some(&token))).await.expect_status(409);
        // What a crash left is gone after a start.
        std::fs::write(&file, &token).unwrap();
        server.restart().await;
        assert!(!file.exists());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_loopback_no_token_is_needed_and_guesses_are_limited_elsewhere() {
    let local = Server::start(Database::sqlite()).await;
    assert_eq!(local.nobody().get("/setup/status").await.body["token_required"], false);
    local.nobody().post("/setup/complete", &setup(None)).await.expect_status(201);
    let open =
        Server::start_with(Database::sqlite(), Options::default().with("BIND_ADDR", "0.0.0.0:0")).await;
    for _ in 0..10 {
        open.nobody().post("/setup/complete", &setup(Some("guess"))).await.expect_status(403);
    }
    open.nobody().post("/setup/complete", &setup(Some("guess"))).await.expect_status(429);
    let token = std::fs::read_to_string(open.folder().join("data/setup-token")).unwrap();
    open.nobody().post("/setup/complete", &setup(Some(token.trim()))).await.expect_status(201);
}
