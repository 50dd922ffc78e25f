//! A plugin in Rust: a module of cargo's, encoded as a component here, so that no other tool is needed.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use wit_component::ComponentEncoder;

use crate::project::Project;
use crate::sdk::write_sdk;
use crate::tool::{BUILD_LIMIT, INSTALL_LIMIT, TOKEN, read_bounded, run};

const TARGET: &str = "wasm32-unknown-unknown";
/// The default stack of 1 MiB lies at the start of the memory and would be reset for every call.
const FLAGS: &str = "-Clink-arg=-zstack-size=131072";
/// Most bytes of a `Cargo.toml`.
const CARGO_BYTES_MAX: u64 = 1 << 20;
/// Most bytes of a module, before it is a component.
const MODULE_BYTES_MAX: u64 = 64 << 20;
const NO_CARGO: &str = "Rust is missing; https://rustup.rs installs it";

pub(super) fn build(project: &Project) -> anyhow::Result<Vec<u8>> {
    let cache = project.cache()?;
    write_sdk(&cache)?;
    ensure_target()?;
    let features: Vec<String> =
        project.imports()?.iter().map(|import| format!("heddle-sdk/{}", import.feature)).collect();
    let target = cache.join("target");
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(&project.root)
        .args(["build", "--release", "--lib", "--target", TARGET, "--features", &features.join(",")])
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", FLAGS)
        // They would take the place of the flags above.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    run(&mut cargo, BUILD_LIMIT, NO_CARGO)?;
    let module = target.join(TARGET).join("release").join(format!("{}.wasm", library(project)?));
    encode(&read_bounded(&module, MODULE_BYTES_MAX)?)
}

/// The name of the crate's library, as its files have it.
fn library(project: &Project) -> anyhow::Result<String> {
    let text = read_bounded(&project.root.join("Cargo.toml"), CARGO_BYTES_MAX)?;
    let cargo: toml::Table = std::str::from_utf8(&text)?.parse().context("Cargo.toml")?;
    let name = |table: &str| cargo.get(table)?.get("name")?.as_str();
    let name = name("lib").or_else(|| name("package")).context("Cargo.toml names no package")?;
    Ok(name.replace('-', "_"))
}

/// Makes sure that the compiler has a standard library for components.
fn ensure_target() -> anyhow::Result<()> {
    if has_target()? {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    let added = run(rustup.args(["target", "add", TARGET]), INSTALL_LIMIT, "rustup is missing");
    if added.is_ok() && has_target()? {
        return Ok(());
    }
    bail!(
        "the compiler has no standard library for {TARGET}; with rustup: 'rustup target add {TARGET}'; with a \
         distribution's compiler: its package, such as 'libstd-rust-dev-wasm32' or 'rust-std-static-{TARGET}'"
    )
}

fn has_target() -> anyhow::Result<bool> {
    let asked = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .stdin(Stdio::null())
        .env_remove(TOKEN)
        .output()
        .context(NO_CARGO)?;
    let folder = PathBuf::from(String::from_utf8_lossy(&asked.stdout).trim());
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(false) };
    Ok(entries.flatten().any(|entry| {
        let path = entry.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libstd-") && path.extension().is_some_and(|ending| ending == "rlib")
    }))
}

/// Encodes a module as a component and validates it.
fn encode(module: &[u8]) -> anyhow::Result<Vec<u8>> {
    let encoded = ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| format!("{error:#}"));
    match encoded {
        Ok(component) => Ok(component),
        Err(error) if error.contains("wasi_snapshot_preview1") => bail!(
            "the plugin imports WASI: a library uses the standard library's clock, files or random numbers; use those \
             of 'heddle_sdk::plugin::Host'"
        ),
        Err(error) => bail!("the plugin cannot be encoded as a component: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_becomes_a_component_and_wasi_is_refused_with_a_way_out() {
        assert!(encode(b"\0asm\x01\0\0\0").unwrap().starts_with(b"\0asm\x0d\0\x01\0"));
        let from = "wasi_snapshot_preview1";
        let mut import = vec![1, u8::try_from(from.len()).unwrap()];
        import.extend_from_slice(from.as_bytes());
        import.extend_from_slice(&[1, b'f', 0, 0]);
        let mut module = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x02".to_vec();
        module.push(u8::try_from(import.len()).unwrap());
        module.extend(import);
        let refused = encode(&module).unwrap_err().to_string();
        assert!(refused.contains("imports WASI"), "{refused}");
    }
}
