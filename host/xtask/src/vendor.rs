//! Makes the description of an adapter, by the adapter's own example `describe-<vendor>`.

use std::path::Path;

use anyhow::{bail, ensure};

use crate::process::{Stop, run};
use crate::workspace::Workspace;

/// Writes the description of a vendor's adapter, and shows how much of the vendor's API it covers; or shows what differs
/// between the facts of another release and those beside the adapter.
pub(crate) fn describe(
    workspace: &Workspace,
    stop: &Stop,
    vendor: &str,
    before: Option<&Path>,
) -> anyhow::Result<()> {
    ensure_adapter(workspace, vendor)?;
    let adapters = workspace.root.join("adapters");
    // Each example has a name of its own: cargo puts all of them into one folder.
    let (package, example) = (format!("heddle-adapter-{vendor}"), format!("describe-{vendor}"));
    let mut command = workspace.cargo();
    command.args(["run", "--quiet", "-p", &package, "--example", &example]);
    if let Some(before) = before {
        ensure!(
            adapters.join(vendor).join("facts.json").is_file(),
            "the description of '{vendor}' is not made from facts, so there is nothing to compare"
        );
        // The example runs elsewhere.
        let before = std::path::absolute(before)?;
        command.args(["--", "--diff"]).arg(before);
    }
    run("cargo run", &mut command, stop)
}

/// Refuses a vendor without an adapter, and names those that have one.
pub(crate) fn ensure_adapter(workspace: &Workspace, vendor: &str) -> anyhow::Result<()> {
    let adapters = workspace.root.join("adapters");
    if !adapters.join(vendor).join("manifest.json").is_file() {
        let mut known = std::fs::read_dir(&adapters)?
            .filter_map(|entry| entry.ok().filter(|entry| entry.path().join("manifest.json").is_file()))
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect::<Vec<_>>();
        known.sort();
        bail!("there is no adapter for '{vendor}'; there are: {}", known.join(", "));
    }
    Ok(())
}
