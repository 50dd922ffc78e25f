//! A fuzzer works through the document: no answer that is not documented, and success where no device is needed.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use super::examples::with_ids;
use super::tools::{python, run};
use super::world::World;
use crate::staging::Lab;
use crate::support::{Contract, Database, Operation};

/// Seconds that the fuzzer takes; after three times as many it counts as hanging.
const FUZZING_SECS: u64 = 90;
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_schema_conformance,response_headers_conformance";
/// What ends the fuzzer's own session has tests of its own; SAML providers and doors are 501, as specified.
const LEFT_OUT: &str =
    "/auth/(logout|sessions/|password/change|mfa/disable|sso/saml/callback)|/access_control";

/// What needs a device or the session of another user.
const OF_OTHERS: &str =
    r"/(gateway-[a-z-]+|unifi)/\{controller_id\}(?!.*/changes$)|/auth/mfa|/setup/complete";

/// Tells the fuzzer that an archive is bytes like others.
const HOOKS: &str =
    "import schemathesis\n\nschemathesis.serializer.alias('application/zip', 'application/octet-stream')\n";

fn fuzzer(folder: &Path, document: &str, token: &str) -> Command {
    std::fs::write(folder.join("hooks.py"), HOOKS).expect("a file can be written");
    let mut command = Command::new(python().with_file_name("schemathesis"));
    command
        .current_dir(folder)
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .args(["run", document])
        .args(["--header", &format!("Authorization: Bearer {token}")])
        .args(["--checks", CHECKS])
        // One: CPython 3.11 fails in `ast.parse` where two threads call it.
        .args(["--workers", "1", "--seed", "20261121", "--no-color", "--warnings", "off"])
        .args(["--request-timeout", "30", "--generation-database", "none"]);
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fuzzer_finds_no_answer_that_is_not_documented() {
    let lab = Lab::start_with(Database::sqlite(), super::unlimited()).await;
    // Something to come upon.
    lab.stage_rule("Allow-HTTPS-mgmt").await;
    let folder = tempfile::tempdir().unwrap();
    let document = format!("{}/api/v1/openapi.json", lab.api.base());
    let mut command = fuzzer(folder.path(), &document, lab.api.token());
    command.args(["--exclude-path-regex", LEFT_OUT]).args(["--phases", "examples,coverage,fuzzing"]).args([
        "--max-time",
        &FUZZING_SECS.to_string(),
        "--max-examples",
        "10",
    ]);
    let report = run(&mut command, Duration::from_secs(FUZZING_SECS * 3)).await;
    assert!(report.contains("passed"), "{report}");
    lab.api.get("/auth/me").await.expect_status(200);
}

/// Why an operation cannot succeed without a device, or without a sign-in that is under way elsewhere.
fn beyond_reach(operation: &Operation) -> bool {
    let path = operation.path.as_str();
    // A change is planned and applied by a device; lists and objects of changes are not.
    // The world's controller is of one vendor.
    let is_listed =
        path.ends_with("/changes") && (path.starts_with("/gateway-openwrt-") || path.contains("/sites/"));
    let is_read = operation.method == "GET" && (is_listed || path.starts_with("/gateway-vpn/changes"));
    // Only a device that runs an untested release can be allowed to.
    let is_of_device = (path.starts_with("/gateway-") || path.starts_with("/unifi/")) && !is_read
        || path.ends_with("/untested-release")
        || path.ends_with("/put-back")
        // A vendor whose controllers send requests is needed, and for each request its secret.
        || path.starts_with("/controllers/{controller_id}/push/")
        || path.starts_with("/network/canonical-vlans/") && operation.method == "POST"
        || path.ends_with("/test") && (path.starts_with("/controllers") || path.starts_with("/credentials"));
    // The session routes, and what others than the fuzzer sign in with.
    let is_of_session = path.starts_with("/auth/") && !path.starts_with("/auth/sso/providers");
    let is_of_app =
        path.starts_with("/oauth2/") && !path.starts_with("/oauth2/apps") && operation.method == "POST";
    let is_never =
        path.starts_with("/access_control") || path == "/setup/complete" || path == "/oauth2/authorize";
    // No fuzzer signs a package or a catalogue, and without one there is none to go back to.
    let is_of_publisher = path == "/adapters/packages"
        || path == "/adapters/{adapter_id}/rollback"
        || path.starts_with("/plugins/")
        || path.starts_with("/marketplace/");
    is_of_device || is_of_session || is_of_app || is_of_publisher || is_never
}

/// The document with the ids of the world's objects in its examples.
fn filled_in(world: &World, contract: &Contract) -> Value {
    let mut document = contract.document().clone();
    for (path, item) in document["paths"].as_object_mut().expect("the document has paths") {
        for definition in item.as_object_mut().expect("a path has methods").values_mut() {
            let is_restored = path.ends_with("/restore");
            let parameters = definition["parameters"].as_array_mut();
            for parameter in parameters.into_iter().flatten() {
                let name = match parameter["name"].as_str().unwrap_or_default() {
                    "object_id" => "model_object_id",
                    name => name,
                };
                let is_wanted = parameter["in"] == "path" || parameter["required"] == true;
                if !is_wanted {
                    continue;
                }
                let id = if is_restored { world.removed.get(name) } else { None };
                if let Some(id) = id.or_else(|| world.own.get(name)).cloned() {
                    parameter["example"] = json!(id);
                }
            }
            if let Some(example) = definition.pointer_mut("/requestBody/content/application~1json/example") {
                *example = with_ids(example, "", &world.own);
            }
        }
    }
    document
}

/// The operations that were answered with success, by what the fuzzer recorded.
fn succeeded(contract: &Contract, record: &Value) -> BTreeSet<String> {
    let entries = record["log"]["entries"].as_array().expect("a record has entries");
    let is_success = |entry: &&Value| matches!(entry["response"]["status"].as_u64(), Some(200..300));
    let operation = |entry: &Value| {
        let url = url::Url::parse(entry["request"]["url"].as_str()?).ok()?;
        let path = url.path().strip_prefix("/api/v1")?.to_owned();
        let parts: Vec<&str> = path.split('/').collect();
        let operation = contract.operation(entry["request"]["method"].as_str()?, &parts)?;
        Some(format!("{} {}", operation.method, operation.path))
    };
    entries.iter().filter(is_success).filter_map(operation).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fuzzer_succeeds_on_nine_of_ten_operations_that_need_no_device() {
    let world = World::start(Database::sqlite()).await;
    let contract = world.server.contract();
    let folder = tempfile::tempdir().unwrap();
    let document = folder.path().join("filled.json");
    std::fs::write(&document, filled_in(&world, &contract).to_string()).unwrap();
    let mut seen = BTreeSet::new();
    // Removals come last, because a removed object cannot be changed. They are run twice: some objects can be removed only
    // after others.
    for (round, methods) in
        ["--exclude-method", "--include-method", "--include-method"].into_iter().enumerate()
    {
        let record = folder.path().join(format!("{round}.har"));
        let mut command = fuzzer(folder.path(), &document.display().to_string(), world.admin.token());
        command
            .args(["--url", world.admin.base()])
            .args(["--exclude-path-regex", &format!("{LEFT_OUT}|{OF_OTHERS}"), methods, "DELETE"])
            .args([
                "--phases",
                "examples,fuzzing",
                "--mode",
                "positive",
                "--max-examples",
                "5",
                "--report",
                "har",
            ])
            .args(["--report-har-path", &record.display().to_string()]);
        run(&mut command, Duration::from_secs(FUZZING_SECS * 3)).await;
        let record = std::fs::read(&record).expect("the fuzzer recorded what it did");
        seen.extend(succeeded(&contract, &serde_json::from_slice(&record).expect("a record is JSON")));
    }
    let reachable: BTreeSet<String> = contract
        .operations()
        .iter()
        .filter(|operation| !beyond_reach(operation))
        .map(|operation| format!("{} {}", operation.method, operation.path))
        .collect();
    let missed: Vec<&String> = reachable.difference(&seen).collect();
    assert!(reachable.len() > 120, "{} operations need no device", reachable.len());
    assert!(missed.len() * 10 <= reachable.len(), "of {} without success: {missed:#?}", reachable.len());
}
