//! Firmware jobs: one runs at a time, its log tells how it ends, and some end with a restart.

use heddle_sdk::{Change, Completion, Effect, Fault, FaultExt, Host, Outcome, Task, fault};
use serde_json::Value;

use crate::answer::read;

const POLL_AFTER_MS: u32 = 5_000;
/// How long a box may be away that restarts with a new series.
const AWAY_MS: u32 = 900_000;
const GIVE_UP_AFTER_MS: u32 = 3_600_000;
const LOG_CHARS: usize = 300;
/// Features whose job is the end of the box, or its restart.
const GO_AWAY: [&str; 2] = ["opnsense.core.firmware-reboot", "opnsense.core.firmware-poweroff"];
const JOB: &[u8] = b"firmware";
/// What scripts print that go wrong and end as done all the same, in lower case.
const TROUBLE: [&str; 5] = ["failure detected", "was aborted", "out of date", "could not", "***error***"];

/// A job that was just begun.
pub(crate) fn started() -> Task {
    task(None, "the firewall works on it")
}

fn task(unreachable_for_ms: Option<u32>, message: &str) -> Task {
    Task {
        token: JOB.to_vec(),
        poll_after_ms: POLL_AFTER_MS,
        unreachable_for_ms,
        give_up_after_ms: GIVE_UP_AFTER_MS,
        progress_percent: None,
        message: Some(message.to_owned()),
    }
}

/// A box that is told to go away has nothing that could be asked after.
pub(crate) fn judged(outcome: Outcome, changes: &[Change]) -> Outcome {
    let goes_away = |change: &Change| GO_AWAY.contains(&change.feature.as_str());
    match outcome {
        Outcome::Pending(_) if changes.iter().any(goes_away) => Outcome::Done(Completion::default()),
        other => other,
    }
}

/// Asks after the job. A box that does not answer may restart.
pub(crate) fn poll(host: &dyn Host) -> Result<Outcome, Fault> {
    let states = read(host, "/api/core/firmware/running")
        .and_then(|running| Ok((running, read(host, "/api/core/firmware/upgradestatus")?)));
    let (running, job) = match states {
        Ok(states) => states,
        Err(Fault::Connection(_) | Fault::Timeout(_) | Fault::NotReady(_)) => {
            return Ok(Outcome::Pending(restarting()));
        }
        Err(other) => return Err(other),
    };
    let word = |answer: &Value| answer.get("status").and_then(Value::as_str).unwrap_or_default().to_owned();
    let log = job.get("log").and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    Ok(match (word(&running).as_str(), word(&job).as_str()) {
        ("busy", _) | (_, "running") => Outcome::Pending(started()),
        // A restart empties the log, and with it goes what tells how the job ended.
        (_, "error") if log.is_empty() => failed("job-lost", "the firewall no longer knows the firmware job"),
        (_, "reboot") if !has_trouble(&log) => Outcome::Pending(restarting()),
        (_, "done") if !has_trouble(&log) => Outcome::Done(Completion::default()),
        _ => failed("job-failed", &format!("the firmware job failed: {}", end_of(&log))),
    })
}

fn has_trouble(log: &str) -> bool {
    let log = log.to_lowercase();
    TROUBLE.iter().any(|trouble| log.contains(trouble))
}

fn failed(code: &str, text: &str) -> Outcome {
    let fault = fault::generic(text).with_code(format!("vendor:{code}"));
    Outcome::Failed(fault.with_effect(Effect::Possible))
}

fn restarting() -> Task {
    task(Some(AWAY_MS), "waiting for the firewall to come back")
}

/// The last lines of a log, on one line.
fn end_of(log: &str) -> String {
    let line = log.lines().filter(|line| !line.starts_with("***")).collect::<Vec<_>>().join("; ");
    let skipped = line.chars().count().saturating_sub(LOG_CHARS);
    line.chars().skip(skipped).collect()
}
