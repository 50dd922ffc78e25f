//! `fuzz`: coverage-guided fuzzing of the readers that take bytes from strangers, with libFuzzer and the stable compiler.
//!
//! The targets are in `marketplace/fuzz`. Build, inputs and findings lie below the target folder; what was found to be of use
//! in one run is where the next one begins.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, ensure};

use crate::apt;
use crate::phase::phase;
use crate::process::{self, Stop, say};
use crate::tools::find;
use crate::workspace::Workspace;

/// The crate of the targets, below the root of the checkout.
const CRATE: &str = "marketplace/fuzz";
const TARGETS: [&str; 4] = ["archive", "manifest", "catalog", "rules"];

/// How code is compiled so that libFuzzer sees which way it goes and what it compares. The checks are in the profile.
const FLAGS: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
    "-Ccodegen-units=1",
];

const COMPILER_MISSING: &str =
    "'c++' is missing, and libFuzzer is written in C++; install a compiler, on Debian 'apt-get install g++'";

/// What one input may take: more is a finding. The targets themselves count what is allocated, which libFuzzer does with
/// sanitizers alone, and the time of the processor: libFuzzer's seconds pass on a busy machine, too, and only end what hangs.
const LIMITS: [&str; 3] = ["-timeout=30", "-rss_limit_mb=1024", "-max_len=65536"];

/// Runs the targets, or these of them, one after the other for so long.
pub(crate) fn fuzz(
    workspace: &Workspace,
    stop: &Stop,
    targets: &[String],
    minutes: u64,
) -> anyhow::Result<ExitCode> {
    let targets = chosen(targets)?;
    if find("c++").is_none() {
        apt::install(&["g++"], COMPILER_MISSING, stop)?;
        ensure!(find("c++").is_some(), COMPILER_MISSING);
    }
    let fuzzing = Fuzzing { home: workspace.target.join("fuzz"), host: host()? };
    phase("fuzz targets", || fuzzing.build(workspace, stop))?;
    phase("seeds", || fuzzing.seed(stop))?;
    let mut findings = Vec::new();
    for target in targets {
        let outcome = phase(target, || fuzzing.run(target, minutes, stop))?;
        say(&format!("{target}: {}", outcome.figures.in_words()));
        findings.extend(outcome.finding.map(|input| (target, input)));
    }
    for (target, input) in &findings {
        let (program, input) = (fuzzing.program(target), input.display());
        say(&format!("'{target}' fails with {input}; again with: {} {input}", program.display()));
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The targets of these names; all where there are none.
fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static str>> {
    if names.is_empty() {
        return Ok(TARGETS.to_vec());
    }
    let known = |name: &String| {
        let target = TARGETS.into_iter().find(|target| target == name);
        target.with_context(|| format!("there is no target '{name}'; there are {}", TARGETS.join(", ")))
    };
    names.iter().map(known).collect()
}

/// The target of the compiler's own machine. It is named to cargo, so that build scripts are compiled without the flags.
fn host() -> anyhow::Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("'rustc' cannot be started")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("'rustc -vV' names no host")
}

struct Fuzzing {
    /// Below the target folder.
    home: PathBuf,
    host: String,
}

/// What came of a run.
struct Outcome {
    figures: Figures,
    /// The input that failed.
    finding: Option<PathBuf>,
}

impl Fuzzing {
    fn build(&self, workspace: &Workspace, stop: &Stop) -> anyhow::Result<()> {
        let folder = workspace.root.join(CRATE);
        // The libraries of the product, in the same versions. Cargo adds those of the targets.
        fs::copy(workspace.root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
        let mut cargo = workspace.cargo();
        cargo
            .args(["build", "--release", "--bins", "--target", &self.host])
            .current_dir(folder)
            .env("CARGO_TARGET_DIR", self.home.join("build"))
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env("RUSTFLAGS", FLAGS.join(" "));
        process::run("cargo build", &mut cargo, stop)
    }

    fn program(&self, name: &str) -> PathBuf {
        self.home.join("build").join(&self.host).join("release").join(name)
    }

    /// Writes the inputs that are known to be of use, anew: those of an older checkout may mean nothing now.
    fn seed(&self, stop: &Stop) -> anyhow::Result<()> {
        let seeds = self.home.join("seeds");
        if seeds.is_dir() {
            fs::remove_dir_all(&seeds)?;
        }
        let mut command = Command::new(self.program("seeds"));
        process::run("seeds", command.arg(&seeds).stdin(Stdio::null()), stop)
    }

    fn run(&self, target: &'static str, minutes: u64, stop: &Stop) -> anyhow::Result<Outcome> {
        let [corpus, findings] = ["corpus", "findings"].map(|name| self.home.join(name).join(target));
        fs::create_dir_all(&corpus)?;
        fs::create_dir_all(&findings)?;
        let log = self.home.join(format!("{target}.log"));
        let seeds = self.home.join("seeds");
        let mut command = Command::new(self.program(target));
        command
            .args(LIMITS)
            .arg(format!("-max_total_time={}", minutes * 60))
            .arg("-print_final_stats=1")
            .arg(format!("-dict={}", seeds.join(format!("{target}.dict")).display()))
            // Without the slash at its end it would be the beginning of a name.
            .arg(format!("-artifact_prefix={}/", findings.display()))
            .args([corpus, seeds.join(target)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?);
        say(&format!("see {}", log.display()));
        // Each input has its time, so that this comes to an end.
        let status = process::status(target, &mut command, stop)?;
        let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
        let figures = Figures::of(&text);
        if status.success() {
            return Ok(Outcome { figures, finding: None });
        }
        let finding = finding(&text).with_context(|| {
            format!("'{target}' failed without an input ({status}); see {}", log.display())
        })?;
        Ok(Outcome { figures, finding: Some(finding) })
    }
}

/// What libFuzzer prints at the end; 0 where it says nothing.
#[derive(Debug, Default, PartialEq, Eq)]
struct Figures {
    runs: u64,
    runs_per_second: u64,
    /// Branches that were taken.
    coverage: u64,
    peak_mib: u64,
}

impl Figures {
    fn of(log: &str) -> Self {
        let stat = |name: &str| {
            let line = log.lines().rev().find_map(|line| line.strip_prefix("stat::")?.strip_prefix(name));
            line.and_then(|rest| rest.trim_start_matches(':').trim().parse().ok()).unwrap_or_default()
        };
        let covered = log.lines().rev().find_map(|line| line.split(" cov: ").nth(1)?.split(' ').next());
        Self {
            runs: stat("number_of_executed_units"),
            runs_per_second: stat("average_exec_per_sec"),
            coverage: covered.and_then(|number| number.parse().ok()).unwrap_or_default(),
            peak_mib: stat("peak_rss_mb"),
        }
    }

    fn in_words(&self) -> String {
        let Self { runs, runs_per_second, coverage, peak_mib } = self;
        format!(
            "{runs} runs, {runs_per_second} a second, {coverage} branches covered, {peak_mib} MiB at most"
        )
    }
}

/// The input that libFuzzer kept of a failure.
fn finding(log: &str) -> Option<PathBuf> {
    let path = log.lines().rev().find_map(|line| line.split("Test unit written to ").nth(1))?;
    Some(Path::new(path.trim()).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "#2\tINITED cov: 12 ft: 13 corp: 1/1b exec/s: 0 rss: 41Mb\n\
        #8765\tDONE   cov: 3210 ft: 9000 corp: 700/31Kb lim: 4096 exec/s: 812 rss: 99Mb\n\
        Done 8765 runs in 11 second(s)\n\
        stat::number_of_executed_units: 8765\n\
        stat::average_exec_per_sec:     812\n\
        stat::peak_rss_mb:              104\n";

    #[test]
    fn figures_are_those_of_the_end() {
        let expected = Figures { runs: 8765, runs_per_second: 812, coverage: 3210, peak_mib: 104 };
        assert_eq!(Figures::of(LOG), expected);
        assert_eq!(Figures::of("no figures"), Figures::default());
        assert_eq!(expected.in_words(), "8765 runs, 812 a second, 3210 branches covered, 104 MiB at most");
    }

    #[test]
    fn the_input_of_a_failure_is_found() {
        let log = format!("{LOG}artifact_prefix='/t/'; Test unit written to /t/crash-0a1b\nBase64: AA==\n");
        assert_eq!(finding(&log), Some(PathBuf::from("/t/crash-0a1b")));
        assert_eq!(finding(LOG), None);
    }

    #[test]
    fn all_targets_run_where_none_is_named() {
        assert_eq!(chosen(&[]).unwrap(), TARGETS);
        assert_eq!(chosen(&["rules".to_owned()]).unwrap(), ["rules"]);
        let refused = chosen(&["rule".to_owned()]).unwrap_err().to_string();
        assert_eq!(refused, "there is no target 'rule'; there are archive, manifest, catalog, rules");
    }
}
