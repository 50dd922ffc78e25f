//! What the bench of plugins needs of Extism: its runtime, a program that calls it, and one plugin for each side.
//!
//! Nothing here is part of the product.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::process::{self, Stop, say};
use crate::workspace::Workspace;
use crate::{apt, guest, tools};

/// The name of the bench.
const BENCH: &str = "extism";
/// Where the sources are, below the root of the checkout.
const SOURCES: &str = "tests/benches/extism";
/// The sources of the plugins, which are built in a copy.
const FILES: [&str; 8] = [
    "extism/Cargo.lock",
    "extism/Cargo.toml",
    "extism/src/lib.rs",
    "heddle/Cargo.lock",
    "heddle/Cargo.toml",
    "heddle/manifest.json",
    "heddle/src/lib.rs",
    "heddle/src/work.rs",
];
/// The Python package that has Extism's runtime as a library for C.
const PACKAGE: &str = "extism-sys==1.41.0";
/// What `heddle plugin build` gives the compiler: both plugins are built alike.
const FLAGS: &str = "-Clink-arg=-zstack-size=131072";
const NO_PYTHON: &str = "Python 3.10 or later with its module 'venv' is missing; install it, on Debian \
                         'apt-get install python3 python3-venv'";

/// Whether these arguments of the benches choose the one that needs Extism.
pub(crate) fn is_wanted(args: &[String]) -> bool {
    let mut words = args.iter().filter(|arg| !arg.starts_with("--")).peekable();
    words.peek().is_none() || words.any(|word| BENCH.contains(word.as_str()))
}

/// Installs and builds what is missing or changed, and returns the folder that has it: the program `caller`, and the plugins
/// `extism.wasm` and `heddle.wasm`. The program `heddle` of the release profile is there already.
pub(crate) fn prepare(workspace: &Workspace, stop: &Stop) -> anyhow::Result<PathBuf> {
    let folder = workspace.target.join("tools").join("extism");
    let library = library(&folder, stop)?;
    let sources = workspace.root.join(SOURCES);
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-D_POSIX_C_SOURCE=199309L", "-O2", "-Wall", "-Wextra", "-Werror", "-o"]);
    compiler.arg(folder.join("caller")).arg(sources.join("caller.c")).arg(library);
    process::run("cc", &mut compiler, stop)?;
    let copy = folder.join("plugins");
    for name in FILES {
        copy_changed(&sources.join(name), &copy.join(name))?;
    }
    guest::ensure_target(stop)?;
    let built = build_for_extism(workspace, &copy.join("extism"), stop)?;
    copy_changed(&built, &folder.join("extism.wasm"))?;
    let built = build_for_heddle(workspace, &copy.join("heddle"), stop)?;
    copy_changed(&built, &folder.join("heddle.wasm"))?;
    Ok(folder)
}

/// The library with the runtime, from its Python package.
fn library(folder: &Path, stop: &Stop) -> anyhow::Result<PathBuf> {
    let (packages, stamp) = (folder.join("packages"), folder.join("installed"));
    let library = packages.join("extism_sys").join("libextism_sys.so");
    if library.is_file() && std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == PACKAGE) {
        return Ok(library);
    }
    say("installing the runtime of Extism, once");
    if !tools::has_venv() {
        apt::install(&["python3", "python3-venv"], NO_PYTHON, stop)?;
        ensure!(tools::has_venv(), NO_PYTHON);
    }
    let environment = folder.join("environment");
    let mut python = Command::new("python3");
    python.args(["-m", "venv", "--clear"]).arg(&environment).stdin(Stdio::null()).stdout(Stdio::null());
    process::run("python3 -m venv", &mut python, stop)?;
    let mut pip = Command::new(environment.join("bin").join("python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        // What it depends on is for callers in Python.
        .args(["--no-deps", "--upgrade", PACKAGE, "--target"])
        .arg(&packages)
        .stdin(Stdio::null());
    process::run("pip install", &mut pip, stop)?;
    ensure!(library.is_file(), "the package {PACKAGE} has no 'libextism_sys.so'");
    // Last: an installation that was cut short begins anew.
    std::fs::write(&stamp, PACKAGE)?;
    Ok(library)
}

fn build_for_extism(workspace: &Workspace, project: &Path, stop: &Stop) -> anyhow::Result<PathBuf> {
    let target = project.join("target");
    let mut cargo = workspace.cargo();
    cargo
        .current_dir(project)
        .args(["build", "--quiet", "--locked", "--release", "--lib", "--target", guest::TARGET])
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", FLAGS);
    process::run("building the plugin of Extism", &mut cargo, stop)?;
    Ok(target.join(guest::TARGET).join("release").join("compared.wasm"))
}

fn build_for_heddle(workspace: &Workspace, project: &Path, stop: &Stop) -> anyhow::Result<PathBuf> {
    let mut tool = Command::new(workspace.release_bin("heddle"));
    tool.args(["plugin", "build", "--project"]).arg(project).stdin(Stdio::null());
    process::run("heddle plugin build", &mut tool, stop)?;
    Ok(project.join(".heddle").join("component.wasm"))
}

/// Leaves a file that is the same as it is: what was built from it stays current.
fn copy_changed(from: &Path, to: &Path) -> anyhow::Result<()> {
    let bytes = std::fs::read(from).with_context(|| format!("'{}' cannot be read", from.display()))?;
    if std::fs::read(to).is_ok_and(|found| found == bytes) {
        return Ok(());
    }
    std::fs::create_dir_all(to.parent().context("a file has a folder")?)?;
    std::fs::write(to, bytes).with_context(|| format!("'{}' cannot be written", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(args: &[&str], expected: bool) {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        assert_eq!(is_wanted(&args), expected, "{args:?}");
    }

    #[test]
    fn it_is_prepared_for_its_bench_only() {
        check(&[], true);
        check(&["extism"], true);
        check(&["start", "ext"], true);
        check(&["--nocapture"], true);
        check(&["start"], false);
    }
}
