//! Writes that differ from what was reviewed. The trick stands in the payload of
//! the first change; the plan is the same for all: `{"n":1}`, then `{"n":2}`.

use heddle_sdk::{
    Auth, Change, ChangePlan, Completion, Danger, Fault, Host, Method, NativeCall, Outcome, PlanStep,
    Request, Stage, Standing,
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
    let body = Some(json!({ "n": n }).to_string());
    NativeCall { stage, method: Method::Post, path: "/write".into(), body }
}

pub(crate) fn plan(host: &dyn Host, changes: &[Change]) -> Result<ChangePlan, Fault> {
    if trick(changes) == "write in plan" {
        host.send(write(1), Auth::None)?;
    }
    Ok(ChangePlan {
        steps: vec![PlanStep { summary: "write two numbers".into(), before: None, after: None }],
        native: vec![native(Stage::Apply, 1), native(Stage::Apply, 2), native(Stage::Restore, 0)],
        danger: Danger::Normal,
        lockout_risk: false,
        warnings: vec![],
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

/// Sends what the trick says and reports each answer as a warning.
pub(crate) fn run(host: &dyn Host, _: Stage, changes: &[Change]) -> Result<Outcome, Fault> {
    let trick = trick(changes);
    if trick == "at once" {
        return Ok(report(host.send_all(vec![write(1), write(2)], Auth::None, 2).into_iter().map(outcome)));
    }
    if trick == "panic after a write" {
        host.send(write(1), Auth::None)?;
        panic!("told to panic after a write");
    }
    Ok(report(requests(&trick).into_iter().map(|request| outcome(host.send(request, Auth::None)))))
}

fn report(outcomes: impl Iterator<Item = Value>) -> Outcome {
    let warnings = outcomes.map(|outcome| outcome.to_string()).collect();
    Outcome::Done(Completion { created: vec![], warnings, needs: vec![] })
}

fn requests(trick: &str) -> Vec<Request> {
    let post = |path: &str, body: Value| Request::new(Method::Post, path).with_json(&body);
    match trick {
        "unplanned" => vec![write(9)],
        "wrong order" => vec![write(2)],
        "twice" => vec![write(1), write(1)],
        "more" => vec![write(1), write(2), write(2)],
        "changed body" => vec![post("/write", json!({ "n": 1, "more": true }))],
        "number as text" => vec![post("/write", json!({ "n": "1" }))],
        "number with a point" => vec![post("/write", json!({ "n": 1.0 }))],
        "no body" => vec![Request::new(Method::Post, "/write")],
        "in a batch" => vec![post("/write", json!([{ "n": 1 }]))],
        "other path" => vec![post("/write/", json!({ "n": 1 }))],
        "with a query" => vec![post("/write?force=1", json!({ "n": 1 }))],
        "other method" => vec![Request::new(Method::Put, "/write").with_json(&json!({ "n": 1 }))],
        "of another stage" => vec![write(0)],
        "with a header" => vec![with_override(write(1))],
        "skip by a header" => vec![with_override(write(1)), write(2)],
        "skip by a time limit" => {
            vec![with_header(write(1), "accept", "x-slow").with_timeout_ms(100), write(2)]
        }
        "reads between" => vec![Request::get("/read"), write(1), Request::get("/read"), write(2)],
        _ => vec![write(1), write(2)],
    }
}

fn with_override(request: Request) -> Request {
    with_header(request, "x-http-method-override", "DELETE")
}
