//! `test`, `bench` and `ci`: what must pass, in the order in which failures are cheapest.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{bail, ensure};

use crate::phase::{judged, last_phase, phase};
use crate::postgres::Postgres;
use crate::process::{self, Stop, say};
use crate::tools::Tools;
use crate::workspace::Workspace;
use crate::{extism, guest, package, plugins, test_run};

/// What compiles the members of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compiler {
    Rustc,
    /// rustc with the lints of clippy, each warning an error. It leaves out some optimisations, which the development profile
    /// has few of; what it makes is tested, so that the members are compiled once. Neither what a second build could use
    /// again nor what a debugger needs is written.
    Clippy,
}

impl Compiler {
    /// Has a command of cargo use this compiler. Libraries are compiled by rustc itself, so that all builds share them.
    fn of(self, cargo: &mut Command) -> &mut Command {
        match self {
            Self::Rustc => cargo,
            Self::Clippy => cargo
                .env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver")
                .env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__")
                .env("CARGO_INCREMENTAL", "0")
                .env("CARGO_PROFILE_DEV_DEBUG", "0"),
        }
    }
}

/// All tests, or those that the arguments of `cargo test` choose.
pub(crate) fn test(workspace: &Workspace, stop: &Stop, args: &[String]) -> anyhow::Result<ExitCode> {
    // First: without it, all that is built here would be for nothing.
    let postgres = start_postgres(stop)?;
    let tools = prepare(workspace, stop)?;
    test_with(workspace, stop, args, Compiler::Rustc, &postgres, &tools)
}

/// No autovacuum: each test has a small database of its own, which is soon forgotten.
fn start_postgres(stop: &Stop) -> anyhow::Result<Postgres> {
    phase("postgresql", || Postgres::start(stop, &["autovacuum=off"]))
}

/// What tests need beside the programs of the workspace.
fn prepare(workspace: &Workspace, stop: &Stop) -> anyhow::Result<Tools> {
    let tools = phase("tools", || Tools::prepare(workspace, stop))?;
    phase("components", || package::components(workspace, stop))?;
    Ok(tools)
}

/// Builds and runs the tests, with all that they need in place.
fn test_with(
    workspace: &Workspace,
    stop: &Stop,
    args: &[String],
    compiler: Compiler,
    postgres: &Postgres,
    tools: &Tools,
) -> anyhow::Result<ExitCode> {
    phase("programs and tests", || build_all(workspace, stop, compiler))?;
    phase("plugins", || plugins::build_all(workspace, stop))?;
    let mut environment: Vec<(&str, OsString)> = vec![
        ("CARGO_TARGET_DIR", workspace.target.clone().into()),
        ("TEST_POSTGRES_URL", postgres.url().into()),
        ("HEDDLE_BIN", workspace.bin("heddle").into()),
        ("HEDDLE_PACKAGES", workspace.packages().into()),
        ("HEDDLE_GUESTS", workspace.guests().into()),
        ("HEDDLE_PLUGINS", workspace.plugins().into()),
    ];
    environment.extend(tools.variables().map(|(name, path)| (name, path.into())));
    let mut cargo = workspace.cargo();
    compiler.of(&mut cargo).args(["test", "--workspace"]);
    if !args.is_empty() {
        // A failure in one crate hides none in another: a second run costs as much as the first.
        cargo.arg("--no-fail-fast").args(args).envs(environment);
        cargo.env("RUST_TEST_THREADS", test_run::WAITING_TESTS.to_string());
        let status = last_phase("tests", || process::status("cargo test", &mut cargo, stop))?;
        return Ok(exit_code(status));
    }
    let passed =
        judged("tests", || test_run::run(cargo.arg("--no-run"), &environment, stop), |passed| *passed)?;
    let mut cargo = workspace.cargo();
    compiler.of(&mut cargo).args(["test", "--workspace", "--doc", "--no-fail-fast"]);
    let status =
        last_phase("examples in the documentation", || process::status("cargo test", &mut cargo, stop))?;
    Ok(if passed { exit_code(status) } else { ExitCode::FAILURE })
}

/// Programs and tests are chosen together: what tests depend on adds features to libraries, and a program that is built
/// apart would have half of them built twice.
fn build_all(workspace: &Workspace, stop: &Stop, compiler: Compiler) -> anyhow::Result<()> {
    let mut cargo = workspace.cargo();
    compiler.of(&mut cargo).args(["build", "--workspace", "--bins", "--tests"]);
    process::run("cargo build", &mut cargo, stop)
}

/// The benches, against an optimised server and with a PostgreSQL of their own.
pub(crate) fn bench(workspace: &Workspace, stop: &Stop, args: &[String]) -> anyhow::Result<ExitCode> {
    let postgres = phase("postgresql", || Postgres::start(stop, &[]))?;
    phase("components", || package::components(workspace, stop))?;
    // Program and benches are chosen together, so that both are built with one set of features.
    let both = ["--package", "heddle-server", "--package", "heddle-tests", "--bench", "main"];
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--release", "--bin", "heddle"]).args(both);
    phase("optimised build", || process::run("cargo build", &mut cargo, stop))?;
    let extism =
        extism::is_wanted(args).then(|| phase("extism", || extism::prepare(workspace, stop))).transpose()?;
    let mut cargo = workspace.cargo();
    cargo
        .arg("bench")
        .args(both)
        .arg("--")
        .args(args)
        .env("TEST_POSTGRES_URL", postgres.url())
        .env("HEDDLE_BIN", workspace.release_bin("heddle"))
        .env("HEDDLE_PACKAGES", workspace.packages())
        .envs(extism.map(|folder| ("BENCH_EXTISM", folder)));
    let status = last_phase("benches", || process::status("cargo bench", &mut cargo, stop))?;
    Ok(exit_code(status))
}

fn exit_code(status: ExitStatus) -> ExitCode {
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Everything, stopping at the first failure.
pub(crate) fn ci(workspace: &Workspace, stop: &Stop) -> anyhow::Result<ExitCode> {
    let cargo = |name: &'static str, args: &[&str]| {
        phase(name, || process::run(name, workspace.cargo().args(args), stop))
    };
    phase("toolchain", || toolchain(workspace, stop))?;
    cargo("format", &["fmt", "--all", "--check"])?;
    phase("dependencies", || dependencies(workspace, stop))?;
    let tools = std::thread::scope(|scope| {
        // What is installed, and components, whose last optimisation has one thread, leave processors idle. They share no
        // lock of cargo with the lints.
        let beside = scope.spawn(|| prepare(workspace, stop));
        let linted = phase("lints", || lints(workspace, stop));
        let prepared = beside.join().unwrap_or_else(|_| bail!("the thread of components ended early"));
        linted.and(prepared)
    })?;
    test_with(workspace, stop, &[], Compiler::Clippy, &start_postgres(stop)?, &tools)
}

/// Builds all targets, benches included, with every lint; each warning is an error.
///
/// `cargo clippy` is `cargo check` with this wrapper and these arguments. What it compiles no build can use, so that everything
/// would be compiled a second time: libraries for the tests, and the members of the workspace. [`test`] has rustc itself
/// compile them.
fn lints(workspace: &Workspace, stop: &Stop) -> anyhow::Result<()> {
    let mut cargo = workspace.cargo();
    Compiler::Clippy.of(&mut cargo).args(["build", "--workspace", "--all-targets"]);
    process::run("cargo build", &mut cargo, stop)
}

/// Installs or names every part of the Rust toolchain that is missing, before the first of them is needed.
fn toolchain(workspace: &Workspace, stop: &Stop) -> anyhow::Result<()> {
    let works =
        |tool: &str| workspace.cargo().args([tool, "--version"]).output().is_ok_and(|o| o.status.success());
    let mut missing = Vec::new();
    if !works("fmt") {
        missing.push("rustfmt ('rustup component add rustfmt')");
    }
    if !works("clippy") {
        missing.push("clippy ('rustup component add clippy')");
    }
    ensure!(missing.is_empty(), "the Rust toolchain lacks {}", missing.join(", "));
    guest::ensure_target(stop)
}

/// Licences, banned crates, sources and, where they can be had, advisories.
fn dependencies(workspace: &Workspace, stop: &Stop) -> anyhow::Result<()> {
    let program = cargo_deny(workspace, stop)?;
    let deny = || {
        let mut command = Command::new(&program);
        command.current_dir(&workspace.root);
        command
    };
    process::run(
        "cargo deny",
        deny().args(["check", "--hide-inclusion-graph", "licenses", "bans", "sources"]),
        stop,
    )?;
    let fetched =
        process::status("cargo deny fetch", deny().args(["fetch", "db"]).stderr(Stdio::null()), stop)?;
    if !fetched.success() {
        say("advisories are not checked: the advisory database cannot be fetched from here");
        return Ok(());
    }
    process::run(
        "cargo deny",
        deny().args(["--offline", "check", "--hide-inclusion-graph", "advisories"]),
        stop,
    )
}

/// The installed one, or one that is built once into the target folder.
fn cargo_deny(workspace: &Workspace, stop: &Stop) -> anyhow::Result<PathBuf> {
    let works = |program: &PathBuf| {
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let tools = workspace.target.join("tools");
    let own = tools.join("bin").join("cargo-deny");
    if let Some(found) = [PathBuf::from("cargo-deny"), own.clone()].into_iter().find(works) {
        return Ok(found);
    }
    say("building cargo-deny, once");
    let mut cargo = workspace.cargo();
    // Unoptimised: it builds in half the time and runs for a second.
    cargo
        .args(["install", "--locked", "--debug", "cargo-deny", "--root"])
        .arg(&tools)
        .env("CARGO_TARGET_DIR", tools.join("build"))
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    process::run("building cargo-deny", &mut cargo, stop)?;
    ensure!(works(&own), "cargo-deny was installed but does not run");
    Ok(own)
}
