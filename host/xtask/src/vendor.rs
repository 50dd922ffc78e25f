//! Makes the description of an adapter, by the adapter's own example `describe-<vendor>`.

use anyhow::bail;

use crate::process::{Stop, run};
use crate::workspace::Workspace;

/// Writes the description of a vendor's adapter, and shows how much of the vendor's API it covers.
pub(crate) fn describe(workspace: &Workspace, stop: &Stop, vendor: &str) -> anyhow::Result<()> {
    let adapters = workspace.root.join("adapters");
    if !adapters.join(vendor).join("manifest.json").is_file() {
        let mut known = std::fs::read_dir(adapters)?
            .filter_map(|entry| entry.ok().filter(|entry| entry.path().join("manifest.json").is_file()))
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect::<Vec<_>>();
        known.sort();
        bail!("there is no adapter for '{vendor}'; there are: {}", known.join(", "));
    }
    // Each example has a name of its own: cargo puts all of them into one folder.
    let (package, example) = (format!("heddle-adapter-{vendor}"), format!("describe-{vendor}"));
    let mut command = workspace.cargo();
    command.args(["run", "--quiet", "-p", &package, "--example", &example]);
    run("cargo run", &mut command, stop)
}
