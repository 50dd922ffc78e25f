//! Writes that differ from what was reviewed. The trick stands in the payload of
//! the first change; most plans are the same: `{"n":1}`, then `{"n":2}`.

use heddle_sdk::{
    Auth, Change, ChangePlan, Completion, Danger, Fault, Host, Method, NativeBody, NativeCall, Outcome,
    PlanStep, Readiness, Request, Response, Stage, Standing, fault,
};
use serde_json::{Value, json};

use crate::reach::{outcome, with_header};

fn trick(changes: &[Change]) -> String {
    let payload = changes.first().and_then(|change| serde_json::from_str::<Value>(&change.payload).ok());
    payload.as_ref().and_then(|payload| payload["trick"].as_str()).unwrap_or("honest").to_owned()
}

/// Whether the device says what is to be done.
pub(crate) fn is_scripted(changes: &[Change]) -> bool {
    trick(changes).starts_with("scripted")
}

fn write(n: u32) -> Request {
    Request::new(Method::Post, "/write").with_json(&json!({ "n": n }))
}

fn native(stage: Stage, n: u32) -> NativeCall {
    NativeCall::new(stage, Method::Post, "/write").with_json(&json!({ "n": n }))
}

/// The calls of a plan, which some tricks spoil.
fn calls(trick: &str) -> Vec<NativeCall> {
    let mut calls = vec![native(Stage::Apply, 1), native(Stage::Apply, 2), native(Stage::Restore, 0)];
    let first = &mut calls[0];
    let with_header = |first: &mut NativeCall, name: &str| {
        first.headers.push((name.to_owned(), "DELETE".to_owned()));
    };
    match trick {
        "override by a header" => with_header(first, "X-HTTP-Method-Override"),
        "authorize by a header" => with_header(first, "Authorization"),
        "undeclared session" => first.session = Some("nobody".to_owned()),
        "plan a read" => {
            *first = NativeCall::new(Stage::Apply, Method::Post, "/read").with_json(&json!({ "op": "read" }));
        }
        "another host" => "//192.0.2.1/write".clone_into(&mut first.path),
        "form and header" => {
            let fields = [("n", "1"), ("hold", "{{host.hold_secs}}"), ("text", "a b&c=ü")];
            let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
            first.body = NativeBody::Form(fields.into());
            with_header(first, "Prefer");
        }
        "wait for it" => with_header(first, "Accept"),
        _ => {}
    }
    calls
}

pub(crate) fn plan(host: &dyn Host, changes: &[Change]) -> Result<ChangePlan, Fault> {
    let trick = trick(changes);
    if trick == "write in plan" {
        host.send(write(1), Auth::None)?;
    }
    Ok(ChangePlan {
        steps: vec![PlanStep { summary: "write two numbers".into(), before: None, after: None }],
        native: calls(&trick),
        holes: Vec::new(),
        danger: Danger::Normal,
        lockout_risk: false,
        warnings: vec![],
        also: vec![],
        base_digest: vec![7; 32],
        inverse: None,
        holds: false,
        undo_takes_all: false,
        touches: Vec::new(),
        token: b"hostile".to_vec(),
    })
}

pub(crate) fn compare(host: &dyn Host, changes: &[Change]) -> Result<Standing, Fault> {
    if trick(changes) == "write in compare" {
        host.send(write(1), Auth::None)?;
    }
    Ok(Standing::Before)
}

/// Begins where the trick says.
pub(crate) fn ready(host: &dyn Host, changes: &[Change], left: u32) -> Result<Readiness, Fault> {
    match trick(changes).as_str() {
        "write in ready" => report(writes(host)),
        "panic in ready" => panic!("told to panic before a write"),
        _ => Ok(Readiness::send(left)),
    }
}

/// Judges as the trick says; else a status of 200 is good.
pub(crate) fn judge(
    host: &dyn Host,
    changes: &[Change],
    answer: Result<Response, Fault>,
) -> Result<Outcome, Fault> {
    match trick(changes).as_str() {
        "write in judge" => report(writes(host)),
        "panic in judge" => panic!("told to panic after a write"),
        _ => {
            let response = answer?;
            let warnings = vec![json!({ "status": response.status }).to_string()];
            Ok(Outcome::Done(Completion { warnings, ..Completion::default() }))
        }
    }
}

/// Tries to send: a reviewed call, one that is not, and both at once with a read.
fn writes(host: &dyn Host) -> Vec<Value> {
    let mut outcomes =
        vec![outcome(host.send(write(1), Auth::None)), outcome(host.send(write(9), Auth::None))];
    outcomes.push(outcome(host.send(with_header(write(1), "x-http-method-override", "DELETE"), Auth::None)));
    outcomes.extend(host.send_all(vec![write(1), write(2)], Auth::None, 2).into_iter().map(outcome));
    outcomes
}

/// Returns the outcome of each request as a fault, which a test reads.
fn report<T>(outcomes: Vec<Value>) -> Result<T, Fault> {
    Err(fault::generic(Value::Array(outcomes).to_string()))
}
