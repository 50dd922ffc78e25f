//! `autobahn`: the fuzzing client of the Autobahn test suite against the library that the event stream is spoken with.
//!
//! A command of its own, because the suite runs on Python 2.7 alone, which few machines still have.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

use crate::process::{self, Guarded, Stop, say};
use crate::tools::find;
use crate::workspace::Workspace;

/// The suite's packages, pinned, below the root of the checkout.
const REQUIREMENTS: &str = "tests/events/autobahn.txt";
/// All but compression, which is not offered.
const CASES: [&str; 9] = ["1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "9.*", "10.*"];
/// As many as there are cases, so that none is left out unnoticed.
const CASES_COUNT: usize = 301;
const START_LIMIT: Duration = Duration::from_secs(20);
const PYTHON_MISSING: &str = "Python 2.7 is missing, and the test suite runs on nothing newer; install it where the \
                              search path leads, or with pyenv: 'pyenv install 2.7.18'";

/// Runs all cases; fails when the answer to one is wrong, or its connection ends otherwise than it must.
pub(crate) fn run(workspace: &Workspace, stop: &Stop) -> anyhow::Result<ExitCode> {
    let python = python().context(PYTHON_MISSING)?;
    let packages = packages(workspace, &python, stop)?;
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--workspace", "--examples"]);
    process::run("cargo build", &mut cargo, stop)?;
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let (_echo, address) = start_echo(workspace, folder.path(), stop)?;
    let report = workspace.target.join("autobahn");
    let spec = json!({
        "outdir": report,
        "servers": [{ "agent": "heddle", "url": format!("ws://{address}/") }],
        "cases": CASES,
        "exclude-cases": [],
        "exclude-agent-cases": {},
    });
    let spec_file = folder.path().join("spec.json");
    std::fs::write(&spec_file, spec.to_string())?;
    if report.is_dir() {
        // So the report that is read afterwards is of this run.
        std::fs::remove_dir_all(&report)?;
    }
    let mut client = Command::new(&python);
    client
        .args(["-c", "from autobahntestsuite.wstest import run; run()", "-m", "fuzzingclient", "-s"])
        .arg(&spec_file)
        .current_dir(folder.path())
        .env("PYTHONPATH", &packages)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    process::run("the fuzzing client", &mut client, stop)?;
    judge(&report)
}

/// Python 2.7 on the search path, or among the versions of pyenv.
fn python() -> Option<PathBuf> {
    find("python2.7").filter(|python| works(python)).or_else(|| {
        #[expect(clippy::disallowed_methods, reason = "where pyenv keeps its versions")]
        let home = std::env::var_os("HOME")?;
        let versions = std::fs::read_dir(Path::new(&home).join(".pyenv/versions")).ok()?;
        let mut found: Vec<PathBuf> =
            versions.filter_map(|entry| Some(entry.ok()?.path().join("bin/python2.7"))).collect();
        found.sort();
        found.into_iter().rev().find(|python| works(python))
    })
}

fn works(python: &Path) -> bool {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "--version"])
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success())
}

/// The folder with the pinned packages.
fn packages(workspace: &Workspace, python: &Path, stop: &Stop) -> anyhow::Result<PathBuf> {
    let requirements = workspace.root.join(REQUIREMENTS);
    let wanted =
        std::fs::read_to_string(&requirements).with_context(|| format!("'{REQUIREMENTS}' cannot be read"))?;
    let folder = workspace.target.join("tools").join("autobahn");
    let stamp = folder.join("installed");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    say("installing the Autobahn test suite, once");
    if folder.is_dir() {
        std::fs::remove_dir_all(&folder)?;
    }
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"])
        .arg("--target")
        .arg(&folder)
        .arg("--requirement")
        .arg(&requirements)
        .stdin(Stdio::null());
    process::run("pip install", &mut pip, stop)?;
    // A package that is spread over several distributions, which an installation into a folder does not join.
    std::fs::write(folder.join("zope").join("__init__.py"), "")?;
    // Last: an installation that was cut short begins anew.
    std::fs::write(&stamp, wanted)?;
    Ok(folder)
}

fn start_echo(workspace: &Workspace, folder: &Path, stop: &Stop) -> anyhow::Result<(Guarded, SocketAddr)> {
    let said = folder.join("address");
    let mut command = Command::new(workspace.bin("examples/echo"));
    command.stdin(Stdio::null()).stdout(File::create(&said)?);
    let mut echo = Guarded::start("echo", &mut command)?;
    let end = Instant::now() + START_LIMIT;
    loop {
        let text = std::fs::read_to_string(&said)?;
        if let Some(address) = text.strip_suffix('\n') {
            return Ok((echo, address.parse().context("echo says no address")?));
        }
        echo.expect_running()?;
        ensure!(Instant::now() < end, "echo does not say where it listens");
        stop.sleep(Duration::from_millis(50))?;
    }
}

/// Counts the verdicts, and names the cases that are not all right.
fn judge(report: &Path) -> anyhow::Result<ExitCode> {
    let text = std::fs::read_to_string(report.join("index.json")).context("the suite left no report")?;
    let index: Value = serde_json::from_str(&text).context("the suite's report is not JSON")?;
    let cases = index["heddle"].as_object().context("the suite's report has no cases")?;
    ensure!(cases.len() == CASES_COUNT, "{} cases were run of {CASES_COUNT}", cases.len());
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut failed = Vec::new();
    for (name, case) in cases {
        let (answer, close) = (verdict(case, "behavior"), verdict(case, "behaviorClose"));
        *counts.entry(answer).or_default() += 1;
        let is_fine = matches!(answer, "OK" | "NON-STRICT" | "INFORMATIONAL")
            && matches!(close, "OK" | "INFORMATIONAL");
        if !is_fine {
            failed.push(format!("{name} ({answer}, its close {close})"));
        }
    }
    let counts: Vec<String> = counts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
    say(&format!(
        "{} cases: {}; see {}",
        cases.len(),
        counts.join(", "),
        report.join("index.html").display()
    ));
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}

fn verdict<'a>(case: &'a Value, of: &str) -> &'a str {
    case[of].as_str().unwrap_or("missing")
}
