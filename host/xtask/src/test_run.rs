//! Runs the test programs of the workspace: two at a time, and tells how long each test took.
//!
//! `cargo test` runs one program after the other, and most of them leave a processor idle. It also hands on its environment,
//! and some tests run cargo themselves.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use crate::process::{self, Stop, say};

/// How many of the tests that took longest are told.
const SLOWEST: usize = 30;
/// Most tests that the first program runs at once. Most of its tests wait for a device or a clock: more of them at once than
/// there are processors.
pub(crate) const WAITING_TESTS: usize = 6;

/// A test program that cargo has built.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Program {
    /// Package, target and kind, for people.
    name: String,
    /// The folder of its package, where it runs.
    folder: PathBuf,
    executable: PathBuf,
    is_integration: bool,
}

/// How the tests of a program went.
#[derive(Debug, Default)]
struct Ran {
    is_good: bool,
    passed: u64,
    failed: u64,
    /// Seconds and name.
    times: Vec<(f64, String)>,
}

/// Has cargo build the test programs by this command, and runs them in this environment. Answers whether all tests passed.
pub(crate) fn run(
    build: &mut Command,
    environment: &[(&str, OsString)],
    stop: &Stop,
) -> anyhow::Result<bool> {
    let programs = built(build, stop)?;
    let first = programs.first().cloned().context("no test program was built")?;
    let (queue, ran) = (Mutex::new(VecDeque::from(programs)), Mutex::new(Vec::new()));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let lane = || -> anyhow::Result<()> {
        while let Some(program) = next() {
            let is_first = program == first;
            let result = program.run(environment, is_first, stop)?;
            ran.lock().unwrap_or_else(PoisonError::into_inner).push((program, result));
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(lane);
        let own = lane();
        let other = other.join().unwrap_or_else(|_| bail!("the thread of a test program ended early"));
        own.and(other)
    })?;
    Ok(told(ran.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

/// The test programs, in the order in which they are begun: tests of the whole before those of parts, and the largest first.
fn built(build: &mut Command, stop: &Stop) -> anyhow::Result<Vec<Program>> {
    let mut programs = Vec::new();
    let status =
        process::lines("cargo test", build.arg("--message-format=json-render-diagnostics"), stop, |line| {
            programs.extend(Program::of_message(&line));
        })?;
    ensure!(status.success(), "cargo test --no-run failed ({status})");
    let size = |program: &Program| program.executable.metadata().map_or(0, |data| data.len());
    programs.sort_by_key(|program| std::cmp::Reverse((program.is_integration, size(program))));
    Ok(programs)
}

impl Program {
    /// The program that a line of cargo tells of.
    fn of_message(line: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
        let executable = message["executable"].as_str().filter(|_| is_test)?;
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        let (target, kind) = (&message["target"]["name"], &message["target"]["kind"][0]);
        let (target, kind) = (target.as_str()?, kind.as_str()?);
        Some(Self {
            name: format!("{target} ({kind} of {})", folder.file_name()?.to_string_lossy()),
            folder: folder.to_owned(),
            executable: executable.into(),
            is_integration: kind == "test",
        })
    }

    /// Runs its tests. Each line is printed when it comes, or all of them at the end.
    fn run(
        &self,
        environment: &[(&str, OsString)],
        is_told_at_once: bool,
        stop: &Stop,
    ) -> anyhow::Result<Ran> {
        let processors = available_parallelism().map_or(2, usize::from);
        let at_once = if is_told_at_once { WAITING_TESTS } else { processors };
        let mut command = Command::new(&self.executable);
        command
            .current_dir(&self.folder)
            .args(["-Zunstable-options", "--report-time"])
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("RUST_TEST_THREADS", at_once.to_string())
            // The harness of a stable compiler tells times to those that set this variable. With this value it says to
            // compilers that they are stable, which they are.
            .env("RUSTC_BOOTSTRAP", "-1");
        let (mut ran, mut kept) = (Ran::default(), vec![format!("\n== tests of {}", self.name)]);
        if is_told_at_once {
            print(&std::mem::take(&mut kept));
        }
        let status = process::lines(&self.name, &mut command, stop, |line| {
            ran.learn(&line);
            kept.push(line);
            if is_told_at_once {
                print(&std::mem::take(&mut kept));
            }
        })?;
        ran.is_good = status.success();
        if !ran.is_good {
            kept.push(format!("== tests of {} FAILED ({status})", self.name));
        }
        print(&kept);
        Ok(ran)
    }
}

impl Ran {
    /// Takes what a line of the harness says: `test a::b ... ok <1.204s>`, or the sums at the end.
    fn learn(&mut self, line: &str) {
        if let Some(sums) = line.strip_prefix("test result: ") {
            let number = |what: &str| {
                let before = sums.split_once(what)?.0.trim_end();
                before.rsplit([' ', '.']).next()?.parse::<u64>().ok()
            };
            self.passed += number("passed").unwrap_or_default();
            self.failed += number("failed").unwrap_or_default();
        } else if let Some(test) = line.strip_prefix("test ")
            && let Some((name, verdict)) = test.rsplit_once(" ... ")
            && let Some((_, time)) = verdict.split_once('<')
            && let Some(secs) = time.strip_suffix("s>").and_then(|secs| secs.parse().ok())
        {
            self.times.push((secs, name.to_owned()));
        }
    }
}

/// Tells the sums and which tests took longest. Answers whether all passed.
fn told(ran: Vec<(Program, Ran)>) -> bool {
    let sum = |of: fn(&Ran) -> u64| ran.iter().map(|(_, ran)| of(ran)).sum::<u64>();
    let mut lines = vec![
        String::new(),
        format!("{} tests passed, {} failed", sum(|ran| ran.passed), sum(|ran| ran.failed)),
    ];
    let bad: Vec<&str> =
        ran.iter().filter(|(_, ran)| !ran.is_good).map(|(program, _)| program.name.as_str()).collect();
    if !bad.is_empty() {
        lines.push(format!("failed: {}", bad.join(", ")));
    }
    let is_good = bad.is_empty();
    let mut times: Vec<(f64, String)> = ran.into_iter().flat_map(|(_, ran)| ran.times).collect();
    times.sort_by(|one, other| other.0.total_cmp(&one.0));
    lines.push(format!(
        "the slowest tests, of {:.0} s that all of them took:",
        times.iter().map(|(secs, _)| secs).sum::<f64>()
    ));
    lines.extend(times.iter().take(SLOWEST).map(|(secs, name)| format!("{secs:8.1} s  {name}")));
    lines.iter().for_each(|line| say(line));
    is_good
}

fn print(lines: &[String]) {
    let mut text = lines.join("\n");
    text.push('\n');
    // When standard output is closed, there is no place left to report to.
    if !lines.is_empty() {
        let _ = std::io::stdout().lock().write_all(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_test_program_is_found_in_what_cargo_tells() {
        let message = |test: bool, executable: Option<&str>| {
            json!({
                "reason": "compiler-artifact",
                "manifest_path": "/project/tests/Cargo.toml",
                "target": { "kind": ["test"], "name": "it" },
                "profile": { "test": test },
                "executable": executable,
            })
            .to_string()
        };
        let found = Program::of_message(&message(true, Some("/target/it-1"))).unwrap();
        assert_eq!((found.name.as_str(), found.is_integration), ("it (test of tests)", true));
        assert_eq!((found.folder, found.executable), ("/project/tests".into(), "/target/it-1".into()));
        for other in [message(false, Some("/target/heddle")), message(true, None), "warning: x".to_owned()] {
            assert_eq!(Program::of_message(&other), None, "{other}");
        }
    }

    #[test]
    fn times_and_sums_are_read_from_what_the_harness_prints() {
        let mut ran = Ran::default();
        for line in [
            "running 3 tests",
            "test a::b ... ok <1.250s>",
            "test c - should panic ... ok <0.001s>",
            "test d ... FAILED <61.000s>",
            "test e ... ignored",
            "test f has been running for over 60 seconds",
            "test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 61.01s",
        ] {
            ran.learn(line);
        }
        let expected = [(1.25, "a::b"), (0.001, "c - should panic"), (61.0, "d")];
        assert_eq!(ran.times, expected.map(|(secs, name)| (secs, name.to_owned())));
        assert_eq!((ran.passed, ran.failed), (2, 1));
    }

    #[test]
    fn one_program_that_fails_makes_the_whole_fail() {
        let program = |name: &str| Program {
            name: name.to_owned(),
            folder: PathBuf::new(),
            executable: PathBuf::new(),
            is_integration: false,
        };
        let good = || Ran { is_good: true, ..Ran::default() };
        assert!(told(vec![(program("a"), good()), (program("b"), good())]));
        assert!(!told(vec![(program("a"), good()), (program("b"), Ran::default())]));
    }
}
