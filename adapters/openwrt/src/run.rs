//! Sending the calls of one stage, and saying what a failure left behind.
//!
//! Calls before `uci.apply` only stage; ending the session drops them. From
//! `uci.apply` on, a missing answer may have changed something.

use heddle_sdk::{Completion, Effect, Fault, FaultExt, Host, Outcome, Stage, fault};
use serde_json::{Value, json};

use crate::plan::{digests, read_configs};
use crate::power;
use crate::rpc::{self, CallError, status};
use crate::token::{ConfigToken, Token};

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
    Outcome::Done(Completion { created: Vec::new(), warnings: Vec::new(), needs: Vec::new() })
}

/// Runs one stage of a plan.
pub(crate) fn run(host: &dyn Host, stage: Stage, token: &[u8]) -> Result<Outcome, Fault> {
    let token = match Token::read(token)? {
        Token::Config(token) => token,
        Token::Power(token) => return power::run(host, stage, &token),
    };
    let calls = token.calls(stage);
    if calls.is_empty() {
        if stage == Stage::Apply {
            host.reset_session(rpc::SESSION);
            refuse_moved(host, &token, false)?;
        }
        return Ok(done());
    }
    match stage {
        Stage::Apply => write(host, &token, &calls, false),
        Stage::Restore => write(host, &token, &calls, true),
        Stage::Confirm | Stage::Undo => settle(host, &calls[0]),
    }
}

/// Confirms or takes back. Nothing pending counts as done: the device's own
/// timer may have been faster, and the comparison afterwards tells.
fn settle(host: &dyn Host, call: &Value) -> Result<Outcome, Fault> {
    match rpc::send(host, call) {
        Ok(_) => Ok(done()),
        Err(error) if error.is_ubus(status::NO_DATA) => Ok(done()),
        Err(CallError::Host(fault)) => Err(fault),
        Err(error) => Err(error.into_fault(name_of(call))),
    }
}

/// "uci confirm" of a call.
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

/// Refuses when the files are not as they were reviewed.
fn refuse_moved(host: &dyn Host, token: &ConfigToken, is_restore: bool) -> Result<bool, Fault> {
    let wanted = if is_restore { &token.after } else { &token.before };
    let found = digests(&read_configs(host, token.before.keys().map(String::as_str))?);
    if is_restore && found == token.before {
        return Ok(false);
    }
    let moved: Vec<&str> = wanted
        .iter()
        .filter(|(name, digest)| found.get(*name) != Some(digest))
        .map(|(name, _)| name.as_str())
        .collect();
    if moved.is_empty() {
        return Ok(true);
    }
    Err(fault::state_moved(format!(
        "configuration '{}' is not as it was reviewed; plan again",
        moved.join("', '")
    ))
    .with_code("state-moved"))
}

fn write(host: &dyn Host, token: &ConfigToken, calls: &[Value], is_restore: bool) -> Result<Outcome, Fault> {
    host.reset_session(rpc::SESSION);
    if !refuse_moved(host, token, is_restore)? {
        return Ok(done());
    }
    let mut is_applied = false;
    for call in calls {
        let what = name_of(call);
        let is_apply = what == "uci.apply";
        match rpc::send(host, call) {
            Ok(_) => is_applied |= is_apply,
            Err(error) if is_applied && error.is_ubus(status::NO_DATA) => {}
            Err(error) => {
                // A session that may hold a provisional apply must live: only it can confirm or take back.
                let is_still_staged = !is_applied && (!is_apply || is_refused(&error));
                let fault = failed(error, what, is_applied);
                if is_still_staged {
                    host.reset_session(rpc::SESSION);
                }
                return Err(fault);
            }
        }
    }
    Ok(done())
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
    if what != "uci.apply" {
        return error.into_fault(what).with_effect(Effect::None);
    }
    if let CallError::Host(fault) = error {
        // The host knows whether the request left.
        return match fault {
            Fault::Connection(_) | Fault::Timeout(_) => fault.with_effect(Effect::Possible),
            other => other,
        };
    }
    if error.is_ubus(status::DENIED) {
        return fault::busy("another write waits for its confirmation at the device")
            .with_code("vendor:6")
            .with_retry_after_ms(60_000);
    }
    if error.is_ubus(status::NO_DATA) {
        return fault::generic("the device had nothing staged to apply").with_code("vendor:5");
    }
    if is_refused(&error) {
        return error.into_fault(what);
    }
    error.into_fault(what).with_effect(Effect::Possible)
}
