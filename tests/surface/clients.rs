//! Clients that the OpenAPI Generator makes from the served document, for TypeScript and Go: each is compiled and makes
//! its calls. The client for Python is in `tools.rs`.
//!
//! `cargo xtask test` installs the generator, the Go toolchain and the TypeScript compiler.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use super::tools::{document, python, run};
use crate::support::{Database, PASSWORD, Server, target_folder, tool};

/// Generating and compiling takes a minute; beyond this limit it hangs.
const LIMIT: Duration = Duration::from_mins(9);

/// A client for this language, in a folder `heddle` of this folder.
async fn generate(server: &Server, folder: &Path, generator: &str, properties: &str) -> PathBuf {
    let document = document(server, folder).await;
    let client = folder.join("heddle");
    let mut command = Command::new(python().with_file_name("openapi-generator-cli"));
    command
        .current_dir(folder)
        .args(["generate", "--generator-name", generator, "--additional-properties", properties])
        .args(["--global-property", "apiDocs=false,modelDocs=false,apiTests=false,modelTests=false"])
        .arg("--input-spec")
        .arg(document)
        .arg("--output")
        .arg(&client);
    run(&mut command, LIMIT).await;
    client
}

/// What a scenario prints.
async fn outcome(server: &Server, program: &mut Command) -> Value {
    let base = format!("http://{}", server.running().addr);
    let printed = run(program.env("BASE", base).env("PASSWORD", PASSWORD), LIMIT).await;
    serde_json::from_str(&printed).expect("the scenario prints JSON")
}

fn assert_calls_worked(outcome: &Value) {
    let expected = json!({
        "health": "healthy", "user": "ada", "site": "Renamed", "total": 1, "hasPassword": true, "devices": 0,
        "types": true, "actions": ["site.created", "site.removed", "site.updated"], "refused": 404,
    });
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(&outcome[name.as_str()], value, "{name} of {outcome}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_typescript_client_compiles_and_makes_its_calls() {
    let server = Server::start_with(Database::sqlite(), crate::surface::unlimited()).await;
    server.set_up().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    generate(&server, path, "typescript-fetch", "supportsES6=true").await;
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("surface/client/scenario.ts");
    std::fs::copy(scenario, path.join("scenario.ts")).unwrap();
    let node = tool("TEST_NODE", "nodejs");
    let modules = tool("TEST_NODE_MODULES", "the npm packages of tests/identity/sso/package.json");
    let mut compile = Command::new(&node);
    compile
        .current_dir(path)
        .arg(modules.join("typescript/bin/tsc"))
        .args(["--strict", "--target", "es2022", "--lib", "es2022,dom"])
        .args([
            "--module",
            "commonjs",
            "--moduleResolution",
            "node10",
            "--outDir",
            "compiled",
            "scenario.ts",
        ]);
    run(&mut compile, LIMIT).await;
    let mut program = Command::new(node);
    program.current_dir(path).arg("compiled/scenario.js");
    let outcome = outcome(&server, &mut program).await;
    assert_calls_worked(&outcome);
    assert_eq!((&outcome["read"], &outcome["createdAt"]), (&json!(true), &json!(true)), "{outcome}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_go_client_compiles_and_makes_its_calls() {
    let server = Server::start_with(Database::sqlite(), crate::surface::unlimited()).await;
    server.set_up().await;
    let folder = tempfile::tempdir().unwrap();
    let properties = "packageName=heddle,enumClassPrefix=true,withGoMod=false";
    let client = generate(&server, folder.path(), "go", properties).await;
    std::fs::write(client.join("go.mod"), "module example.net/heddle\n\ngo 1.23\n").unwrap();
    let scenario = client.join("scenario");
    std::fs::create_dir(&scenario).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("surface/client/scenario.go");
    std::fs::copy(source, scenario.join("main.go")).unwrap();
    let mut build = Command::new(python().with_file_name("go"));
    build
        .current_dir(&client)
        .args(["build", "-o", "calls", "./scenario"])
        // The client needs the standard library and nothing else, which is compiled once.
        .envs([("GOFLAGS", "-mod=mod"), ("GOPROXY", "off"), ("GOTOOLCHAIN", "local"), ("CGO_ENABLED", "0")])
        .env("GOCACHE", target_folder().join("tools/go-cache"))
        .env("GOPATH", folder.path().join("go"));
    run(&mut build, LIMIT).await;
    let outcome = outcome(&server, &mut Command::new(client.join("calls"))).await;
    assert_calls_worked(&outcome);
}
