//! Tasks: a write that takes long answers the id of a worker, whose end tells what came of it.

use heddle_sdk::{
    Completion, Effect, Fault, FaultExt, Host, Outcome, Task, crud::escaped, fault, json as sdk_json,
};
use serde_json::Value;

use crate::answer::{LOCKED, REFUSALS, TAKEN, TIMEOUT, number, read};

/// How the id of a task begins.
pub(crate) const PREFIX: &str = "UPID:";
const POLL_MS: u32 = 1_000;
/// Copies and backups run for hours.
const GIVE_UP_MS: u32 = 6 * 3_600_000;
/// How long the interface may be away while it is reloaded.
const AWAY_MS: u32 = 60_000;
const WARNINGS_MAX: usize = 20;
const WARNING_CHARS: usize = 300;

/// A task that was started just now.
pub(crate) fn started(upid: &str) -> Task {
    let (_, kind, _) = parts(upid);
    let goes_away = [
        "srvreload",
        "srvrestart",
        "reloadnetworkall",
        "acmenewcert",
        "acmerenew",
        "clusterjoin",
        "clustercreate",
    ];
    Task {
        token: upid.as_bytes().to_vec(),
        poll_after_ms: POLL_MS,
        unreachable_for_ms: goes_away.contains(&kind).then_some(AWAY_MS),
        give_up_after_ms: GIVE_UP_MS,
        progress_percent: None,
        message: Some(format!("task {kind}")),
    }
}

/// Node, type and object of a task.
fn parts(upid: &str) -> (&str, &str, &str) {
    let parts: Vec<&str> = upid.split(':').collect();
    let part = |at: usize| parts.get(at).copied().unwrap_or_default();
    (part(1), part(5), part(6))
}

/// Asks how a task stands.
pub(crate) fn poll(host: &dyn Host, token: &[u8]) -> Result<Outcome, Fault> {
    let upid = std::str::from_utf8(token)
        .ok()
        .filter(|text| text.starts_with(PREFIX))
        .ok_or_else(|| fault::invalid("this is no task of a node; plan again"))?;
    let node = parts(upid).0;
    let path = format!("/nodes/{}/tasks/{}", escaped(node), escaped(upid));
    let status = match read(host, &format!("{path}/status")) {
        // The node has forgotten it.
        Err(Fault::NotFound(_)) => return Ok(Outcome::Failed(lost("the node no longer knows the task"))),
        other => other?,
    };
    if sdk_json::text(&status, "/status") != Some("stopped") {
        return Ok(Outcome::Pending(started(upid)));
    }
    let end = sdk_json::text(&status, "/exitstatus").unwrap_or_default();
    if end == "OK" {
        return ended_well(host, upid, &path);
    }
    if let Some(number) = end.strip_prefix("WARNINGS") {
        let said = lines(host, &path, |line| line.to_uppercase().starts_with("WARN"));
        let unsaid = || {
            vec![format!(
                "the task ended with {} warnings; its log has them",
                number.trim_matches([':', ' '])
            )]
        };
        return Ok(done(if said.is_empty() { unsaid() } else { said }));
    }
    Ok(Outcome::Failed(failed(end)))
}

/// What became of the object is not known: the worker was killed, or its log has no last line.
fn lost(text: &str) -> Fault {
    fault::generic(format!("what came of the task is not known: {text}"))
        .with_code("vendor:task-lost")
        .with_effect(Effect::Possible)
}

fn failed(end: &str) -> Fault {
    if end.is_empty() || end == "unexpected status" || end.starts_with("unable to get last line") {
        return lost(if end.is_empty() { "it ended without a word" } else { end });
    }
    let text: String = end.chars().take(WARNING_CHARS).collect();
    let text = format!("the task failed: {text}");
    let fault = match REFUSALS.of_words(end).words {
        TAKEN => fault::conflict(text),
        LOCKED => fault::busy(text),
        TIMEOUT => fault::timeout(text),
        _ => fault::generic(text),
    };
    fault.with_code("vendor:task-failed").with_effect(Effect::Possible)
}

fn done(warnings: Vec<String>) -> Outcome {
    Outcome::Done(Completion { warnings, ..Completion::default() })
}

/// Lines of a task's log; none where it cannot be read.
fn lines(host: &dyn Host, path: &str, is_meant: fn(&str) -> bool) -> Vec<String> {
    let log = read(host, &format!("{path}/log?start=0&limit=500")).unwrap_or_default();
    let lines = sdk_json::items(&log, "").iter().filter_map(|line| sdk_json::text(line, "/t"));
    let found = lines.filter(|line| is_meant(line));
    found.map(|line| line.chars().take(WARNING_CHARS).collect()).take(WARNINGS_MAX).collect()
}

/// Some tasks end well though not all of what they started did.
fn ended_well(host: &dyn Host, upid: &str, path: &str) -> Result<Outcome, Fault> {
    match parts(upid).1 {
        // An interface that does not come up is a line of the log.
        "srvreload" => Ok(done(lines(host, path, |line| line.to_lowercase().contains("error")))),
        "reloadnetworkall" => Ok(done(zones_in_error(host))),
        _ => handed_over(host, upid),
    }
}

/// The reloads of the nodes are tasks of their own: what they led to is told by the zones.
fn zones_in_error(host: &dyn Host) -> Vec<String> {
    let resources = read(host, "/cluster/resources?type=sdn").unwrap_or_default();
    let is_wrong = |row: &&Value| sdk_json::text(row, "/status") == Some("error");
    let wrong = sdk_json::items(&resources, "").iter().filter(is_wrong);
    let name = |row: &Value| {
        let text = |field: &str| sdk_json::text(row, field).unwrap_or_default().to_owned();
        format!("the zone '{}' is in error on the node '{}'", text("/sdn"), text("/node"))
    };
    wrong.map(name).take(WARNINGS_MAX).collect()
}

/// For a guest under high availability a task only hands the wish over: it is done when the guest shows it.
fn handed_over(host: &dyn Host, upid: &str) -> Result<Outcome, Fault> {
    let (node, kind, vmid) = parts(upid);
    let wanted = match kind {
        "hastart" => Some("running"),
        "hastop" | "hashutdown" => Some("stopped"),
        "hamigrate" => None,
        _ => return Ok(done(Vec::new())),
    };
    let resources = read(host, "/cluster/resources?type=vm")?;
    let is_it = |row: &&Value| number(row, "/vmid").is_some_and(|own| own.to_string() == vmid);
    let Some(guest) = sdk_json::items(&resources, "").iter().find(is_it) else {
        // Without the right to see it nothing proves that the guest is where it should be.
        return Ok(Outcome::Failed(lost("the guest is not seen")));
    };
    let (now, folder) = (
        sdk_json::text(guest, "/node").unwrap_or_default(),
        sdk_json::text(guest, "/type").unwrap_or("qemu"),
    );
    let is_done = match wanted {
        None => now != node,
        Some(wanted) => {
            let state = read(host, &format!("/nodes/{}/{folder}/{vmid}/status/current", escaped(now)))?;
            sdk_json::text(&state, "/status") == Some(wanted)
        }
    };
    Ok(if is_done { done(Vec::new()) } else { Outcome::Pending(started(upid)) })
}
