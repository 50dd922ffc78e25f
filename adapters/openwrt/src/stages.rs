//! Before a stage: whether it can begin. After each of its calls: what the answer means, and what a failure left
//! behind.
//!
//! Calls before `uci.apply` only stage; forgetting the session drops them. From `uci.apply` on, a missing answer
//! may have changed something.

use heddle_sdk::{
    Completion, Effect, Fault, FaultExt, Host, Outcome, Readiness, Response, Sent, Stage, fault,
};
use serde_json::{Value, json};

use crate::compare::stand;
use crate::identity::{self, Finder};
use crate::power;
use crate::read;
use crate::rpc::{self, CallError, status};
use crate::token::{Calls, ConfigToken, Token};
use crate::touch::{Configs, Found};

/// How many moved objects a fault names.
const MOVED_MAX: usize = 20;

/// Writes what is staged; taken back after `hold_secs` unless it is confirmed.
/// `rollback` must be a boolean: anything else is taken for false, silently.
pub(crate) fn apply_call(hold_secs: &Value) -> Value {
    rpc::body("uci", "apply", &json!({"rollback": true, "timeout": hold_secs}))
}

pub(crate) fn confirm_call() -> Value {
    rpc::body("uci", "confirm", &json!({}))
}

pub(crate) fn rollback_call() -> Value {
    rpc::body("uci", "rollback", &json!({}))
}

pub(crate) fn done() -> Outcome {
    Outcome::Done(Completion::default())
}

/// Whether a stage can begin.
pub(crate) fn ready(host: &dyn Host, stage: Stage, token: &[u8], left: u32) -> Result<Readiness, Fault> {
    let token = match Token::read(token)? {
        Token::Config(token) => token,
        Token::Power(token) => return power::ready(host, &token, left),
    };
    match stage {
        // What was staged before is gone with the session that held it.
        Stage::Apply if left > 0 => Err(fault::busy(
            "the session that held the staged part of the change is gone, and the part with it",
        )
        .with_code("session-lost")),
        Stage::Apply => {
            // A session of its own: nothing that an earlier write left staged goes along.
            host.reset_session(rpc::SESSION);
            refuse_adopted(host)?;
            refuse_moved(host, &token, &token.apply, false).map(|_| Readiness::send(0))
        }
        Stage::Restore => {
            refuse_adopted(host)?;
            let is_needed = refuse_moved(host, &token, &token.restore, true)?;
            Ok(if is_needed { Readiness::send(0) } else { Readiness::Nothing(Completion::default()) })
        }
        // Only one apply can be pending: when it is another client's, none of ours is.
        Stage::Confirm | Stage::Undo if read::leave_adopted(host)? => Ok(Readiness::Nothing(over())),
        Stage::Confirm | Stage::Undo => Ok(Readiness::send(0)),
        // The device has no jobs that can be ended.
        Stage::Abort => Ok(Readiness::Nothing(Completion::default())),
    }
}

fn refuse_adopted(host: &dyn Host) -> Result<(), Fault> {
    if read::leave_adopted(host)? { Err(read::somebody_applies()) } else { Ok(()) }
}

/// What came of a call.
pub(crate) fn judge(
    host: &dyn Host,
    sent: Sent,
    answer: Result<Response, Fault>,
    token: &[u8],
) -> Result<Outcome, Fault> {
    let token = match Token::read(token)? {
        Token::Config(token) => token,
        Token::Power(token) => return power::judge(host, &token, sent.index, answer),
    };
    let calls = token.calls(sent.stage);
    let call =
        calls.get(sent.index).ok_or_else(|| fault::invalid("the plan has no such call; plan again"))?;
    let before = &calls[..sent.index];
    match rpc::answer(answer) {
        Ok(_) => Ok(done()),
        Err(error) => match sent.stage {
            Stage::Apply | Stage::Restore => write_failed(host, error, call, before),
            Stage::Confirm | Stage::Undo | Stage::Abort => settle_failed(error, call),
        },
    }
}

/// A confirmation or a rollback that was refused. Nothing pending counts as done: the device's own timer may have been
/// faster, and the comparison afterwards tells.
fn settle_failed(error: CallError, call: &Value) -> Result<Outcome, Fault> {
    if error.is_ubus(status::NO_DATA) {
        return Ok(Outcome::Done(over()));
    }
    if error.is_ubus(status::DENIED) {
        return Err(of_another_session(call));
    }
    Err(error.into_fault(name_of(call)))
}

fn write_failed(host: &dyn Host, error: CallError, call: &Value, before: &[Value]) -> Result<Outcome, Fault> {
    let what = name_of(call);
    let is_apply = what == "uci.apply";
    let is_applied = before.iter().any(|call| name_of(call) == "uci.apply");
    // Nothing was pending: a change that is restored may be permanent already.
    if what == "uci.confirm" && error.is_ubus(status::NO_DATA) {
        return Ok(done());
    }
    if what == "uci.confirm" && error.is_ubus(status::DENIED) {
        return Err(of_another_session(call));
    }
    // A session that may hold a provisional apply must live: only it can confirm or take back.
    let is_still_staged = !is_applied && (!is_apply || is_refused(&error));
    let fault = failed(error, what, is_applied);
    if is_still_staged {
        host.reset_session(rpc::SESSION);
    }
    Err(fault)
}

fn over() -> Completion {
    Completion {
        warnings: vec!["the device held no provisional change any more: its own time was over".to_owned()],
        ..Completion::default()
    }
}

/// The device lets only the session of an apply confirm it or take it back.
fn of_another_session(call: &Value) -> Fault {
    fault::busy(format!(
        "'{}': the change that the device holds belongs to a session that is not this one, because the session ended or another client's change is pending; the device takes it back by itself when its time is over",
        name_of(call)
    ))
    .with_code("apply-pending")
    .with_retry_after_ms(10_000)
}

/// "uci.confirm" of a call.
fn name_of(call: &Value) -> &'static str {
    match call.pointer("/params/2").and_then(Value::as_str) {
        Some("apply") => "uci.apply",
        Some("confirm") => "uci.confirm",
        Some("rollback") => "uci.rollback",
        Some("add") => "uci.add",
        Some("delete") => "uci.delete",
        Some("order") => "uci.order",
        _ => "uci.set",
    }
}

/// Refuses when what the plan touches is not as it was reviewed, or the numbers in the calls have come to stand for
/// other sections. False when there is nothing to restore.
fn refuse_moved(
    host: &dyn Host,
    token: &ConfigToken,
    calls: &Calls,
    is_restore: bool,
) -> Result<bool, Fault> {
    let names: Vec<&str> = token.files.keys().map(String::as_str).collect();
    let files = read::configs(host, &names)?;
    let found = stand(token, &files);
    let is_all = |wanted: fn(&Found) -> bool| found.iter().all(|(_, found)| wanted(found));
    if is_restore && is_all(|found| matches!(found, Found::Before | Found::Both)) {
        return Ok(false);
    }
    let is_there = if is_restore {
        is_all(|found| matches!(found, Found::After | Found::Both))
    } else {
        is_all(|found| matches!(found, Found::Before | Found::Both))
    };
    if !is_there {
        return Err(moved(token, &files, is_restore));
    }
    refuse_taken(calls, &files)?;
    refuse_renumbered(calls, &files)?;
    Ok(true)
}

/// Refuses where others gave the name of a new section to a section of another type: the device would merge the two.
fn refuse_taken(calls: &Calls, files: &Configs) -> Result<(), Fault> {
    let mut gone: Vec<&str> = Vec::new();
    for (method, arguments) in calls.calls.iter().map(|call| (&call["params"][2], &call["params"][3])) {
        let text = |name: &str| arguments[name].as_str().unwrap_or_default();
        if method == "delete" && arguments.get("option").is_none() {
            gone.push(text("section"));
        }
        let is_taken = files.get(text("config")).is_some_and(|file| file.by_id(text("name")).is_some());
        if method == "add" && is_taken && !gone.contains(&text("name")) {
            let why = format!("another section is called '{}' by now", text("name"));
            let fault = fault::state_moved(format!("'{}': {why}; plan again", text("config")));
            return Err(fault.with_code("state-moved").with_field(format!("/{}", text("config")), why));
        }
    }
    Ok(())
}

fn moved(token: &ConfigToken, files: &Configs, is_restore: bool) -> Fault {
    let mut said = Vec::new();
    let mut objects: Vec<&str> = Vec::new();
    for part in &token.parts {
        let Some(file) = files.get(&part.config) else { continue };
        let finder = Finder::new(file, &part.kind);
        let wrong = part.moved(part.section(&finder), is_restore);
        if !wrong.is_empty() {
            objects.push(&part.label);
        }
        said.extend(wrong);
    }
    for order in &token.orders {
        let Some(file) = files.get(&order.config) else { continue };
        let stands = order.stands(&Finder::new(file, &order.kind), file);
        let wanted = if is_restore { Found::After } else { Found::Before };
        if stands != wanted && stands != Found::Both {
            objects.push("the order of sections");
            said.push((
                format!("/{}/{}/order", order.config, order.kind),
                "the order is another one".to_owned(),
            ));
        }
    }
    objects.truncate(3);
    let what = if objects.is_empty() { "the device".to_owned() } else { objects.join(", ") };
    let first = said.first().map(|(_, message)| format!(": {message}")).unwrap_or_default();
    said.truncate(MOVED_MAX);
    let fault = fault::state_moved(format!("{what} changed since the plan was reviewed{first}; plan again"))
        .with_code("state-moved");
    said.into_iter().fold(fault, |fault, (pointer, message)| fault.with_field(pointer, message))
}

fn refuse_renumbered(calls: &Calls, files: &Configs) -> Result<(), Fault> {
    let renumbered = |config: &str, why: &str| {
        fault::state_moved(format!(
            "others added, removed or moved sections of '{config}', and the device numbered its unnamed sections anew: {why}; plan again"
        ))
        .with_code("state-moved")
        .with_field(format!("/{config}"), why)
    };
    for (config, id, mark) in &calls.marks {
        let found = files.get(config).and_then(|file| file.by_id(id));
        if found.is_none_or(|section| !section.is_anonymous || identity::mark(config, section) != *mark) {
            return Err(renumbered(config, &format!("'{id}' is not the section that was reviewed")));
        }
    }
    for (config, count) in &calls.counts {
        if files.get(config).is_some_and(|file| file.sections.len() != *count) {
            return Err(renumbered(config, "an unnamed section would get another number than was reviewed"));
        }
    }
    Ok(())
}

/// Whether the device itself said that it did not do it.
fn is_refused(error: &CallError) -> bool {
    error.is_ubus(status::DENIED) || error.is_ubus(status::NO_DATA) || error.is_absent() || error.is_denied()
}

/// The fault of a call that failed, with what it may have changed.
fn failed(error: CallError, what: &str, is_applied: bool) -> Fault {
    if is_applied {
        return error.into_fault(what).with_effect(Effect::Certain);
    }
    // What is staged is dropped with its session. A confirmation and a rollback act at once.
    if !["uci.apply", "uci.confirm", "uci.rollback"].contains(&what) {
        return error.into_fault(what).with_effect(Effect::None);
    }
    if let CallError::Host(fault) = error {
        // The host knows whether the request left.
        return fault;
    }
    if error.is_ubus(status::DENIED) {
        return read::somebody_applies().with_effect(Effect::None);
    }
    if error.is_ubus(status::NO_DATA) && what == "uci.apply" {
        return fault::generic("the device had nothing staged to apply")
            .with_code("vendor:5")
            .with_effect(Effect::None);
    }
    if is_refused(&error) {
        return error.into_fault(what).with_effect(Effect::None);
    }
    error.into_fault(what).with_effect(Effect::Possible)
}
