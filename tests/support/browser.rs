//! A real browser, driven by a script of Node.js.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;

use super::tool;

/// Runs a script below `tests/`, which finds Chromium in `CHROMIUM` and `playwright-core` next to itself, and returns
/// the JSON that it prints.
pub(crate) async fn drive(script: &str, variables: &[(&str, &str)]) -> Value {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
    std::fs::copy(source, folder.path().join("browser.mjs")).expect("the script is there");
    let modules = tool("TEST_NODE_MODULES", "the npm packages of tests/identity/sso/package.json");
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).expect("a link can be made");
    let mut command = Command::new(tool("TEST_NODE", "nodejs"));
    command
        .current_dir(folder.path())
        .arg("browser.mjs")
        .envs(variables.iter().copied())
        .env("CHROMIUM", tool("TEST_CHROMIUM", "chromium"))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output =
        tokio::time::timeout(Duration::from_mins(3), command.output()).await.expect("it ends in time");
    let output = output.expect("the script starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("the script prints JSON")
}
