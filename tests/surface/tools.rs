//! What others make of the document: a validator and a generated client; the fuzzer is in `fuzz`.
//!
//! `cargo xtask test` installs them and says where they are.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::staging::{ROUTER_PASSWORD, start_router};
use crate::support::{Database, PASSWORD, Server, on_both, tool};

pub(super) fn python() -> PathBuf {
    tool("TEST_PYTHON", "Python with the packages of tests/surface/client/requirements.txt")
}

/// A program's output, when it succeeded.
pub(super) async fn run(command: &mut Command, limit: Duration) -> String {
    let child = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(limit, child).await.expect("the program ends in time");
    let output = output.expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {}\n{text}\n{errors}", command.as_std(), output.status);
    text.into_owned()
}

/// The served document as a file.
pub(super) async fn document(server: &Server, folder: &Path) -> PathBuf {
    let document = server.nobody().get("/openapi.json").await.expect_status(200);
    let path = folder.join("openapi.json");
    std::fs::write(&path, document.text).expect("a file can be written");
    path
}

#[tokio::test]
async fn the_document_is_valid() {
    let server = Server::start_with(Database::sqlite(), super::described()).await;
    let folder = tempfile::tempdir().unwrap();
    let path = document(&server, folder.path()).await;
    let mut command = Command::new(python());
    command.args(["-m", "openapi_spec_validator", "--schema", "3.1.0"]).arg(&path);
    run(&mut command, Duration::from_mins(2)).await;
    // And the validator finds what is wrong.
    let mut wrong: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    wrong["paths"]["/api/v1/health"]["get"]["responses"] = json!([]);
    std::fs::write(&path, wrong.to_string()).unwrap();
    let refused = command.output().await.expect("the validator starts");
    assert!(!refused.status.success(), "a wrong document is refused");
}

/// A client made from the document, as a package of this folder.
async fn generate_client(server: &Server, folder: &Path) {
    let path = document(server, folder).await;
    let settings = folder.join("generator.yaml");
    // An archive is bytes like others, and so is a document of intent.
    let overrides = ["zip", "yaml"].map(|media| format!("  application/{media}: application/octet-stream\n"));
    let overrides = overrides.concat();
    std::fs::write(&settings, format!("post_hooks: []\ncontent_type_overrides:\n{overrides}")).unwrap();
    let mut generator = Command::new(python().with_file_name("openapi-python-client"));
    generator
        .current_dir(folder)
        .args(["generate", "--meta", "none", "--fail-on-warning", "--output-path", "heddle_client"])
        .arg("--path")
        .arg(&path)
        .arg("--config")
        .arg(&settings);
    run(&mut generator, Duration::from_mins(3)).await;
    let mut compile = Command::new(python());
    compile.current_dir(folder).args(["-m", "compileall", "-q", "heddle_client"]);
    run(&mut compile, Duration::from_mins(2)).await;
}

on_both! {
    async fn a_generated_client_does_the_main_job(database: Database) {
        let router = start_router().await;
        let server = Server::start_with(database, crate::surface::unlimited()).await;
        let api = server.set_up().await;
        let folder = tempfile::tempdir().unwrap();
        generate_client(&server, folder.path()).await;
        let before = router.fingerprint();
        let mut scenario = Command::new(python());
        scenario
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("surface/client/scenario.py"))
            .args([api.base(), &router.url()])
            .env("PYTHONPATH", folder.path())
            .env("PASSWORD", PASSWORD)
            .env("ROUTER_PASSWORD", ROUTER_PASSWORD);
        let outcome = run(&mut scenario, Duration::from_mins(3)).await;
        let outcome: Value = serde_json::from_str(&outcome).expect("the scenario prints JSON");

        assert_eq!(outcome["applied"], "awaiting_confirm", "{outcome}");
        assert_eq!(outcome["confirmed"], "applied", "{outcome}");
        let steps = ["change.staged", "change.apply_started", "change.confirmed", "change.applied"];
        assert_eq!(outcome["actions"], json!(steps), "{outcome}");
        let kinds = outcome["device_kinds"].as_array().expect("devices have kinds");
        assert!(kinds.contains(&json!("router")), "{outcome}");
        assert!(outcome["modules"].as_u64().is_some_and(|modules| modules > 100), "{outcome}");
        // The router, not the answer, says that it was done.
        assert_eq!(router.counters().confirms, 1);
        assert_ne!(router.fingerprint(), before);
        let site = api.get(&format!("/sites/{}", outcome["site"].as_str().unwrap())).await.expect_status(200);
        assert_eq!(site.body["name"], "Generated");
    }
}
