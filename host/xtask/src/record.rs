//! Records cassettes of an adapter, by the tests that compare them (`tests/vendors/record.rs`).

use crate::package;
use crate::phase::phase;
use crate::process::{self, Stop};
use crate::vendor::ensure_adapter;
use crate::workspace::Workspace;

/// A controller that is recorded instead of the practice device, and the name of its cassette.
pub(crate) struct Named {
    pub(crate) url: Option<String>,
    pub(crate) settings: Option<String>,
    pub(crate) name: Option<String>,
}

/// Writes a cassette of a vendor's practice device, or of the controller that is named.
pub(crate) fn record(workspace: &Workspace, stop: &Stop, vendor: &str, named: &Named) -> anyhow::Result<()> {
    ensure_adapter(workspace, vendor)?;
    phase("components", || package::components(workspace, stop))?;
    let build = ["build", "--workspace", "--bin", "heddle", "--test", "it"];
    phase("programs and tests", || process::run("cargo build", workspace.cargo().args(build), stop))?;
    let mut cargo = workspace.cargo();
    cargo
        .args(["test", "--workspace", "--test", "it", "--", "--exact", "--nocapture"])
        .arg(format!("vendors::record::{vendor}"))
        .env("RECORD_CASSETTES", "1")
        .env("HEDDLE_BIN", workspace.bin("heddle"))
        .env("HEDDLE_PACKAGES", workspace.packages());
    let variables =
        [("RECORD_URL", &named.url), ("RECORD_SETTINGS", &named.settings), ("RECORD_NAME", &named.name)];
    for (name, value) in variables {
        if let Some(value) = value {
            cargo.env(name, value);
        }
    }
    phase("recording", || process::run("cargo test", &mut cargo, stop))
}
