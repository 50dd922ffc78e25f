//! The way back at the router itself. A change that may cut the path to the router begins with an entry of its scheduler,
//! which writes the state before when its time is over; a confirmation takes the entry away.
//!
//! There is such an entry where every call of the way back can be said as a command of the console: without secrets, which
//! only the host knows, and with rows that the router already has or that their own key finds. Other plans have the host's own
//! timer alone.

use std::collections::BTreeMap;

use heddle_sdk::crud::{self, KindBinding, Purpose, Vendor as _, Written};
use heddle_sdk::{
    Change, ChangePlan, Comparison, Completion, Effect, Fault, FaultExt as _, Hole, Host, Method, NativeCall,
    Outcome, Readiness, Response, Sent, Stage, Standing, Start, json as sdk_json,
};
use serde_json::{Value, json};

use crate::VENDOR;
use crate::answer::{BASE, SESSION, read};

/// How a token begins that has more than that of the strategies.
const MARK: &[u8] = b"hold\n";
const MENU: &str = "system/scheduler";
/// How the names of entries begin.
const NAME: &str = "heddle-way-back";
/// The call that makes the entry, and the hole for its id.
const HOLD: &str = "hold";
const ID: &str = "[*][0-9A-Fa-f]{1,16}";
const SECS: &str = "{{host.hold_secs}}";
const SCRIPT_CHARS_MAX: usize = 20_000;
/// How references of secrets begin.
const SECRET: &str = "hdl-secret:";
/// Keys that a new row is found by, where its kind has one of them. The router writes others in a form of its own.
const FOUND_BY: [&str; 2] = ["name", "comment"];

/// Gives a plan that may cut the path its entry.
pub(crate) fn complete(host: &dyn Host, changes: &[Change], mut plan: ChangePlan) -> ChangePlan {
    if !plan.lockout_risk {
        return plan;
    }
    let Some(script) = script(&plan, &keys(host, changes)) else { return plan };
    let name = format!("{NAME}-{}", hex(&sdk_json::digest(&json!(script))[..4]));
    let source = format!("{script}/{MENU} remove [find name=\"{name}\"]\n");
    if source.len() > SCRIPT_CHARS_MAX {
        return plan;
    }
    let call = |stage, path: String| NativeCall::new(stage, Method::Post, path).in_session(SESSION);
    let entry =
        json!({ "name": name, "interval": SECS, "on-event": source, "policy": "read,write,policy,test" });
    let hold = NativeCall::new(Stage::Apply, Method::Put, format!("{BASE}{MENU}")).in_session(SESSION);
    let id = Hole::of_answer(HOLD, HOLD, "/.id", ID);
    let own = json!({ ".id": id.reference() });
    let ends = |stage| call(stage, format!("{BASE}{MENU}/remove")).with_json(&own).repeatable();
    let of = |stage: Stage| plan.native.iter().filter(move |call| call.stage == stage).cloned();
    let undo = of(Stage::Restore).map(|call| NativeCall { stage: Stage::Undo, ..call });
    let native: Vec<NativeCall> = [hold.with_json(&entry).called(HOLD)]
        .into_iter()
        .chain(of(Stage::Apply))
        .chain([ends(Stage::Confirm), ends(Stage::Undo).only_after(HOLD)])
        .chain(undo)
        .chain([ends(Stage::Restore).only_after(HOLD)])
        .chain(of(Stage::Restore))
        .chain(of(Stage::Abort))
        .collect();
    plan.native = native;
    plan.holes.push(id);
    plan.holds = true;
    plan.also.push(format!(
        "until it is confirmed, the scheduler of the router has an entry '{name}' that writes the state before"
    ));
    let inner = String::from_utf8_lossy(&plan.token).into_owned();
    plan.token = [MARK, json!({ "inner": inner, "entry": name }).to_string().as_bytes()].concat();
    plan
}

/// The fields by which rows of the changes' kinds are known, by where they are listed.
fn keys(host: &dyn Host, changes: &[Change]) -> BTreeMap<String, String> {
    let kinds = changes.iter().filter_map(|change| change.feature.strip_prefix("mikrotik."));
    let bound = kinds.filter_map(|kind| KindBinding::of(host, kind).ok());
    let known = bound.filter_map(|kind| match &kind.key[..] {
        [key] if FOUND_BY.contains(&key.as_str()) => Some((kind.list?.path, key.clone())),
        _ => None,
    });
    known.collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The calls of the way back as commands; none where one of them cannot be said so. Each is tried, whatever came of those
/// before.
fn script(plan: &ChangePlan, keys: &BTreeMap<String, String>) -> Option<String> {
    let back = plan.native.iter().filter(|call| call.stage == Stage::Restore);
    let lines: Vec<String> = back.map(|call| line(plan, keys, call)).collect::<Option<_>>()?;
    (!lines.is_empty())
        .then(|| lines.iter().map(|line| format!(":do {{ {line} }} on-error={{}}\n")).collect())
}

fn line(plan: &ChangePlan, keys: &BTreeMap<String, String>, call: &NativeCall) -> Option<String> {
    let (menu, command) = call.path.strip_prefix(BASE)?.rsplit_once('/')?;
    let Value::Object(mut fields) = call.json().filter(|body| !body.to_string().contains(SECRET))? else {
        return None;
    };
    if !["set", "remove", "move"].contains(&command) {
        return None;
    }
    let named = fields.remove(".id").or_else(|| fields.remove("numbers"));
    let target = match named.as_ref().map(|id| id.as_str().unwrap_or_default()) {
        None => String::new(),
        Some(id) if id.starts_with('*') => format!(" numbers={id}"),
        // A row that the plan makes.
        Some(_) => format!(" numbers=[find {}]", found_by(plan, keys, call)?),
    };
    let said = fields.iter().map(|(name, value)| match name.strip_prefix('!') {
        Some(_) => Some(format!(" {name}")),
        None => Some(format!(" {name}={}", quoted(value.as_str()?))),
    });
    let said: Vec<String> = said.collect::<Option<_>>()?;
    let line = format!("/{menu} {command}{target}{}", said.concat());
    (!line.contains("{{")).then_some(line)
}

/// What finds the row that a call of the apply makes: the key of its kind, which no other row has. Any other field may be that
/// of a row which the change did not make.
fn found_by(plan: &ChangePlan, keys: &BTreeMap<String, String>, call: &NativeCall) -> Option<String> {
    let made = plan.native.iter().find(|made| made.id.is_some() && made.id == call.only_after)?;
    let key = keys.get(&made.path).filter(|_| made.method == Method::Put)?;
    Some(format!("{key}={}", quoted(made.json()?.get(key)?.as_str()?)))
}

/// A text of the console.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' | '$' | '?' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other => out.push(other),
        }
    }
    out + "\""
}

/// The token of the strategies, and the name of the plan's entry, if it has one.
fn opened(token: &[u8]) -> (Vec<u8>, Option<String>) {
    let whole = token.strip_prefix(MARK).and_then(|rest| serde_json::from_slice::<Value>(rest).ok());
    let text = |name: &str| whole.as_ref().and_then(|whole| whole[name].as_str());
    match (text("inner"), text("entry")) {
        (Some(inner), Some(entry)) => (inner.as_bytes().to_vec(), Some(entry.to_owned())),
        _ => (token.to_vec(), None),
    }
}

/// Whether a stage can be sent. The call of the entry is the first of each.
pub(crate) fn ready(host: &dyn Host, stage: Stage, token: &[u8], left: u32) -> Result<Readiness, Fault> {
    let (inner, entry) = opened(token);
    let has_entry = entry.is_some();
    let of_plan = match stage {
        Stage::Confirm if has_entry => return Ok(Readiness::send(left)),
        Stage::Undo if has_entry => Stage::Restore,
        other => other,
    };
    if !has_entry || stage == Stage::Abort {
        return crud::ready(&VENDOR, host, of_plan, &inner, left);
    }
    Ok(match crud::ready(&VENDOR, host, of_plan, &inner, left.saturating_sub(1))? {
        Readiness::Send(start) if left > 0 => Readiness::Send(Start { from: start.from + 1, ..start }),
        // The entry has to go in any case, and the other calls lead to where the router is.
        Readiness::Nothing(_) if stage != Stage::Apply => Readiness::send(left.min(1)),
        other => other,
    })
}

/// What came of a call.
pub(crate) fn judge(
    host: &dyn Host,
    call: Sent,
    answer: Result<Response, Fault>,
    token: &[u8],
) -> Result<Outcome, Fault> {
    let (inner, entry) = opened(token);
    let has_entry = entry.is_some();
    if !has_entry || call.stage == Stage::Abort {
        return crud::judge(&VENDOR, host, call, answer, &inner);
    }
    if call.index == 0 {
        let purpose = if call.stage == Stage::Apply { Purpose::Create } else { Purpose::Delete };
        return match answer.and_then(|response| VENDOR.written(purpose, &response))? {
            Written::Done | Written::Warned(_) => Ok(Outcome::Done(Completion::default())),
            Written::Task(task) => Ok(Outcome::Pending(task)),
        };
    }
    let stage = if call.stage == Stage::Undo { Stage::Restore } else { call.stage };
    let judged = crud::judge(&VENDOR, host, Sent { stage, index: call.index - 1 }, answer, &inner);
    // The entry was made before it.
    judged.map_err(|fault| fault.with_effect(Effect::Certain))
}

/// Compares the router with a plan. Where the router is as before but for the entry, a later call was refused: the entry has to
/// go, or it would write the state before once more when others have gone on.
pub(crate) fn compare(host: &dyn Host, token: &[u8]) -> Result<Comparison, Fault> {
    let (inner, entry) = opened(token);
    let mut compared = crud::compare(&VENDOR, host, &inner)?;
    let Some(entry) = entry.filter(|_| matches!(compared.standing, Standing::Before)) else {
        return Ok(compared);
    };
    let rows = read(host, MENU)?;
    if rows.as_array().is_some_and(|rows| rows.iter().any(|row| row["name"] == entry.as_str())) {
        compared.standing = Standing::Other(json!({ "entry": entry }).to_string());
    }
    Ok(compared)
}
