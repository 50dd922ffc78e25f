//! Building guests: from a crate of the workspace to a component.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use wit_component::ComponentEncoder;

use crate::process::{self, Guarded, Stop, say};
use crate::workspace::Workspace;

pub(crate) const TARGET: &str = "wasm32-unknown-unknown";
/// The default stack of 1 MiB lies at the start of the memory and would have to
/// be reset for every instance.
const FLAGS: &str = "-Clink-arg=-zstack-size=131072";
const INSTALL_LIMIT: Duration = Duration::from_mins(2);

/// Makes sure that the compiler has a standard library for guests.
pub(crate) fn ensure_target(stop: &Stop) -> anyhow::Result<()> {
    if has_target()? {
        return Ok(());
    }
    say(&format!("installing the compiler target {TARGET}"));
    if install(stop)? && has_target()? {
        return Ok(());
    }
    bail!(
        "the compiler has no standard library for {TARGET}; with rustup: 'rustup target add {TARGET}'; \
         with a distribution's compiler: its package, such as 'libstd-rust-dev-wasm32' or 'rust-std-static-{TARGET}'"
    )
}

fn has_target() -> anyhow::Result<bool> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .context("'rustc' cannot be started")?;
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(false) };
    Ok(entries.flatten().any(|entry| {
        let name = entry.file_name();
        let is_library = Path::new(&name).extension().is_some_and(|extension| extension == "rlib");
        is_library && name.to_string_lossy().starts_with("libstd-")
    }))
}

/// False when there is no rustup, it failed, or it took too long.
fn install(stop: &Stop) -> anyhow::Result<bool> {
    let mut command = Command::new("rustup");
    command.args(["target", "add", TARGET]).stdin(Stdio::null());
    let Ok(mut child) = Guarded::start("rustup", &mut command) else { return Ok(false) };
    let end = Instant::now() + INSTALL_LIMIT;
    while Instant::now() < end {
        if let Some(status) = child.finished()? {
            return Ok(status.success());
        }
        stop.sleep(Duration::from_millis(100))?;
    }
    say(&format!("rustup did not finish within {} s", INSTALL_LIMIT.as_secs()));
    Ok(false)
}

/// Builds these crates in one go; their core modules are at `module_path`.
pub(crate) fn build(workspace: &Workspace, crates: &[String], stop: &Stop) -> anyhow::Result<()> {
    let mut cargo = workspace.cargo();
    cargo
        .args(["build", "--lib", "--target", TARGET, "--profile", "guest"])
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", FLAGS);
    for name in crates {
        cargo.args(["-p", name]);
    }
    process::run("building the guests", &mut cargo, stop)
}

pub(crate) fn module_path(workspace: &Workspace, package: &str) -> PathBuf {
    let file = format!("{}.wasm", package.replace('-', "_"));
    workspace.target.join(TARGET).join("guest").join(file)
}

/// Encodes a core module as a component and validates it.
pub(crate) fn encode(name: &str, module: &[u8]) -> anyhow::Result<Vec<u8>> {
    let encoded = ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| format!("{error:#}"));
    match encoded {
        Ok(component) => Ok(component),
        Err(error) if error.contains("wasi_snapshot_preview1") => bail!(
            "'{name}' imports WASI, which the host does not give; build it for {TARGET} and use the SDK's \
             clock, random and log instead of the standard library's"
        ),
        Err(error) => bail!("'{name}' cannot be encoded as a component: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module that imports the function `f` of type `() -> ()` from `from`.
    fn importing(from: &str) -> Vec<u8> {
        let mut import = vec![1, u8::try_from(from.len()).unwrap()];
        import.extend_from_slice(from.as_bytes());
        import.extend_from_slice(&[1, b'f', 0, 0]);
        let mut module = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x02".to_vec();
        module.push(u8::try_from(import.len()).unwrap());
        module.extend(import);
        module
    }

    #[test]
    fn core_module_becomes_a_component() {
        let component = encode("empty", b"\0asm\x01\0\0\0").unwrap();
        assert!(component.starts_with(b"\0asm\x0d\0\x01\0"));
    }

    #[test]
    fn wasi_imports_are_refused_with_a_way_out() {
        let error = encode("acme", &importing("wasi_snapshot_preview1")).unwrap_err().to_string();
        assert!(error.contains("imports WASI"), "{error}");
        let error = encode("acme", &importing("env")).unwrap_err().to_string();
        assert!(error.contains("cannot be encoded"), "{error}");
    }
}
