//! Commands with which the router goes away: it restarts, and comes back with a short uptime.

use heddle_sdk::{Change, Completion, Fault, Host, Outcome, Response, Task, crud, fault, json as sdk_json};

use crate::answer::read;

const POLL_AFTER_MS: u32 = 5_000;
const AWAY_MS: u32 = 600_000;
const GIVE_UP_AFTER_MS: u32 = 900_000;
/// A router that has been up no longer has just restarted.
const FRESH_SECS: f64 = 900.0;
/// Features after which it comes back.
const RESTARTS: [&str; 5] = [
    "mikrotik.system.machine.reboot",
    "mikrotik.system.machine.check-disk",
    "mikrotik.system.package-update.install",
    "mikrotik.system.package.downgrade",
    "mikrotik.system.package.apply-changes",
];
/// Features after which it does not answer as before: it is off, or has other users.
const LEAVES: [&str; 3] = [
    "mikrotik.system.machine.shutdown",
    "mikrotik.system.machine.reset-configuration",
    "mikrotik.system.backup.load",
];

/// Refuses such a command beside other changes: the answer to another call would be taken for its own.
pub(crate) fn alone(changes: &[Change]) -> Result<(), Fault> {
    let is_away = |change: &&Change| RESTARTS.iter().chain(&LEAVES).any(|feature| change.feature == *feature);
    match changes.iter().find(is_away).filter(|_| changes.len() > 1) {
        None => Ok(()),
        Some(change) => Err(fault::invalid(format!(
            "'{}' is a change of its own; stage it after the others",
            change.feature
        ))),
    }
}

/// What an answer to such a command means; none for any other, and where the router refuses. A connection that breaks is
/// how the command is carried out.
pub(crate) fn judged(answer: &Result<Response, Fault>, changes: &[Change]) -> Option<Outcome> {
    let is_gone = match answer {
        Ok(response) => (200..300).contains(&response.status) && !is_idle(response),
        Err(fault) => matches!(fault, Fault::Connection(_) | Fault::Timeout(_)),
    };
    let is_of = |features: &[&str]| changes.iter().any(|one| features.contains(&one.feature.as_str()));
    match () {
        () if !is_gone => None,
        () if is_of(&RESTARTS) => Some(Outcome::Pending(restarting())),
        () if is_of(&LEAVES) => Some(Outcome::Done(Completion::default())),
        () => None,
    }
}

/// There is no newer release to restart into.
fn is_idle(response: &Response) -> bool {
    String::from_utf8_lossy(&response.body).contains("already up to date")
}

fn restarting() -> Task {
    Task {
        token: b"restart".to_vec(),
        poll_after_ms: POLL_AFTER_MS,
        unreachable_for_ms: Some(AWAY_MS),
        give_up_after_ms: GIVE_UP_AFTER_MS,
        progress_percent: None,
        message: Some("waiting for the router to come back".to_owned()),
    }
}

/// Asks whether the router is back.
pub(crate) fn poll(host: &dyn Host) -> Result<Outcome, Fault> {
    let resource = match read(host, "system/resource") {
        Err(Fault::Connection(_) | Fault::Timeout(_) | Fault::NotReady(_)) => {
            return Ok(Outcome::Pending(restarting()));
        }
        other => other?,
    };
    let uptime = sdk_json::text(&resource, "/uptime").and_then(crud::seconds);
    Ok(if uptime.is_some_and(|uptime| uptime < FRESH_SECS) {
        Outcome::Done(Completion::default())
    } else {
        Outcome::Pending(restarting())
    })
}
