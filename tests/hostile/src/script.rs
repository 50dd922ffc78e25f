//! Writes as a device tells them: what is planned, how each stage ends and where the device stands is what the
//! device answers, so that a test plays every kind of adapter.

use heddle_sdk::{
    Auth, ChangePlan, Comparison, Completion, Danger, Effect, Fault, FaultExt, FoundValue, Hole, Host,
    ItemResult, Method, NativeCall, Outcome, PlanStep, Readiness, Request, Response, Sent, Stage, Standing,
    Start, Task, fault,
};
use serde_json::{Value, json};

fn ask(host: &dyn Host, path: &str) -> Result<Value, Fault> {
    host.send(Request::get(path), Auth::None)?.json()
}

fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

const STAGES: [(Stage, &str); 5] = [
    (Stage::Apply, "apply"),
    (Stage::Confirm, "confirm"),
    (Stage::Undo, "undo"),
    (Stage::Restore, "restore"),
    (Stage::Abort, "abort"),
];

pub(crate) fn plan(host: &dyn Host) -> Result<ChangePlan, Fault> {
    let told = ask(host, "/plan")?;
    let stages = texts(&told["stages"]);
    let native = STAGES.iter().filter(|(_, name)| stages.iter().any(|stage| stage == name));
    let native = native.flat_map(|(stage, name)| {
        let calls = told["calls"][name].as_u64().unwrap_or(1);
        let once = told["once"] == true;
        let (named, only_after) = (told["named"].clone(), told["only_after"].clone());
        (0..calls).map(move |n| {
            let mut body = json!({ "stage": name, "n": n });
            let id = format!("{name}-{n}");
            if let Some(text) = named[&id].as_str() {
                body["named"] = text.into();
            }
            let mut call = NativeCall::new(*stage, Method::Post, "/write").with_json(&body);
            call.only_after = only_after[&id].as_str().map(str::to_owned);
            let call = call.called(id);
            if once || matches!(stage, Stage::Apply) { call } else { call.repeatable() }
        })
    });
    Ok(ChangePlan {
        steps: vec![PlanStep { summary: "do as the device says".into(), before: None, after: None }],
        native: native.collect(),
        holes: told["holes"].as_array().map(Vec::as_slice).unwrap_or_default().iter().map(hole).collect(),
        danger: Danger::Normal,
        lockout_risk: false,
        warnings: vec![],
        also: texts(&told["also"]),
        base_digest: vec![7; 32],
        inverse: None,
        holds: told["holds"] == true,
        undo_takes_all: told["undo_takes_all"] == true,
        touches: texts(&told["touches"]),
        token: b"scripted".to_vec(),
    })
}

/// `{"name", "answer": id, "pointer"}`, `{"name", "fresh": path, "pointer"}` or `{"name"}`, each with `pattern` if it is
/// not a word.
fn hole(told: &Value) -> Hole {
    let text = |key: &str| told[key].as_str().unwrap_or_default().to_owned();
    let pattern = told["pattern"].as_str().unwrap_or("[a-z0-9-]+");
    if told.get("answer").is_some() {
        return Hole::of_answer(text("name"), text("answer"), text("pointer"), pattern);
    }
    if told.get("fresh").is_some() {
        return Hole::fresh(text("name"), text("fresh"), text("pointer"), pattern);
    }
    Hole::found(text("name"), pattern)
}

fn found(told: &Value) -> Vec<FoundValue> {
    let values = told["found"].as_object().into_iter().flatten();
    values.map(|(hole, value)| FoundValue::new(hole, value)).collect()
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
    Ok(Readiness::Send(Start { from: from.unwrap_or(left), found: found(&told) }))
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
    Ok(Outcome::Done(Completion {
        needs: texts(&told["needs"]),
        found: found(told),
        items: items(told),
        ..Completion::default()
    }))
}

/// `{"items": [null, {fault}]}`: what came of each change, in their order.
fn items(told: &Value) -> Vec<ItemResult> {
    let told = told["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let result = |(index, told): (u32, &Value)| match told {
        Value::Null => ItemResult::done(index),
        told => ItemResult::failed(index, fault_of(told)),
    };
    (0..).zip(told).map(result).collect()
}

fn fault_of(told: &Value) -> Fault {
    let message = told["message"].as_str().unwrap_or("refused").to_owned();
    let fault = match told["kind"].as_str() {
        Some("busy") => fault::busy(message),
        Some("conflict") => fault::conflict(message),
        _ => fault::invalid(message),
    };
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

/// `"before"`, `"after"`, `"unseen"`, `{"stored": […]}`, `{"adjusted": …}`, `{"moved_on": …}`, anything else is another state.
fn standing(told: &Value) -> Standing {
    match told.as_str() {
        Some("before") => Standing::Before,
        Some("after") => Standing::After,
        Some("unseen") => Standing::Unseen,
        _ if told.get("stored").is_some() => Standing::Stored(texts(&told["stored"])),
        _ if told.get("adjusted").is_some() => Standing::Adjusted(told["adjusted"].to_string()),
        _ if told.get("moved_on").is_some() => Standing::MovedOn(told["moved_on"].to_string()),
        _ => Standing::Other(told.to_string()),
    }
}
