//! Writes as a device tells them: what is planned, how each stage ends and where the device stands is what the
//! device answers, so that a test plays every kind of adapter.

use heddle_sdk::{
    Auth, ChangePlan, Comparison, Completion, Danger, Effect, Fault, FaultExt, Host, Method, NativeCall,
    Outcome, PlanStep, Readiness, Request, Response, Sent, Stage, Standing, Task, fault,
};
use serde_json::{Value, json};

fn ask(host: &dyn Host, path: &str) -> Result<Value, Fault> {
    host.send(Request::get(path), Auth::None)?.json()
}

fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

const STAGES: [(Stage, &str); 4] = [
    (Stage::Apply, "apply"),
    (Stage::Confirm, "confirm"),
    (Stage::Undo, "undo"),
    (Stage::Restore, "restore"),
];

pub(crate) fn plan(host: &dyn Host) -> Result<ChangePlan, Fault> {
    let told = ask(host, "/plan")?;
    let stages = texts(&told["stages"]);
    let native = STAGES.iter().filter(|(_, name)| stages.iter().any(|stage| stage == name));
    let native = native.flat_map(|(stage, name)| {
        let calls = told["calls"][name].as_u64().unwrap_or(1);
        let once = told["once"] == true;
        (0..calls).map(move |n| {
            let body = json!({ "stage": name, "n": n });
            let call = NativeCall::new(*stage, Method::Post, "/write").with_json(&body);
            if once || matches!(stage, Stage::Apply) { call } else { call.repeatable() }
        })
    });
    Ok(ChangePlan {
        steps: vec![PlanStep { summary: "do as the device says".into(), before: None, after: None }],
        native: native.collect(),
        danger: Danger::Normal,
        lockout_risk: false,
        warnings: vec![],
        base_digest: vec![7; 32],
        inverse: None,
        holds: told["holds"] == true,
        undo_takes_all: told["undo_takes_all"] == true,
        touches: texts(&told["touches"]),
        token: b"scripted".to_vec(),
    })
}

fn name_of(stage: Stage) -> &'static str {
    STAGES.iter().find(|(known, _)| *known == stage).map_or("", |(_, name)| name)
}

/// Goes on behind the calls that left, or where `/ready/{stage}` says: `{"from": 0}`, or a fault.
pub(crate) fn ready(host: &dyn Host, stage: Stage, left: u32) -> Result<Readiness, Fault> {
    let told = ask(host, &format!("/ready/{}?left={left}", name_of(stage)))?;
    if let Some(told) = told.get("fault") {
        return Err(fault_of(told));
    }
    let from = told["from"].as_u64().and_then(|from| u32::try_from(from).ok());
    Ok(Readiness::Send(from.unwrap_or(left)))
}

/// The first call of a stage ends as `/said/{stage}` says, the next one as `/said/{stage}-1`.
pub(crate) fn judge(host: &dyn Host, call: Sent, answer: Result<Response, Fault>) -> Result<Outcome, Fault> {
    let response = answer?;
    if response.status != 200 {
        return Err(fault::generic("the write was not taken").with_effect(Effect::Possible));
    }
    let name = name_of(call.stage);
    let path = if call.index == 0 { format!("/said/{name}") } else { format!("/said/{name}-{}", call.index) };
    outcome(&ask(host, &path)?)
}

pub(crate) fn poll(host: &dyn Host) -> Result<Outcome, Fault> {
    outcome(&ask(host, "/task")?)
}

/// `{"fault": …}` is a fault, `{"failed": …}` a job that ended badly, `{"task": …}` one that runs on.
fn outcome(told: &Value) -> Result<Outcome, Fault> {
    if let Some(told) = told.get("fault") {
        return Err(fault_of(told));
    }
    if let Some(told) = told.get("failed") {
        return Ok(Outcome::Failed(fault_of(told)));
    }
    if told.get("task").is_some() {
        return Ok(Outcome::Pending(Task {
            token: b"task".to_vec(),
            poll_after_ms: 1000,
            unreachable_for_ms: None,
            give_up_after_ms: 60_000,
            progress_percent: None,
            message: None,
        }));
    }
    Ok(Outcome::Done(Completion { created: vec![], warnings: vec![], needs: texts(&told["needs"]) }))
}

fn fault_of(told: &Value) -> Fault {
    let message = told["message"].as_str().unwrap_or("refused").to_owned();
    let fault = if told["kind"] == "busy" { fault::busy(message) } else { fault::invalid(message) };
    match told["effect"].as_str() {
        Some("possible") => fault.with_effect(Effect::Possible),
        Some("certain") => fault.with_effect(Effect::Certain),
        _ => fault.with_effect(Effect::None),
    }
}

pub(crate) fn compare(host: &dyn Host) -> Result<Comparison, Fault> {
    let told = ask(host, "/compare")?;
    let items = told["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(Comparison {
        standing: standing(&told["standing"]),
        items: items.iter().map(standing).collect(),
        foreign: texts(&told["foreign"]),
    })
}

/// `"before"`, `"after"`, `{"stored": […]}`, anything else is another state.
fn standing(told: &Value) -> Standing {
    match told.as_str() {
        Some("before") => Standing::Before,
        Some("after") => Standing::After,
        _ if told.get("stored").is_some() => Standing::Stored(texts(&told["stored"])),
        _ => Standing::Other(told.to_string()),
    }
}
