//! Before a stage: whether it can begin. After each of its calls: what the answer means.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::binding::KindBinding;
use super::model::WithField;
use super::part::{Found, Part};
use super::state::{self, State};
use super::token::{Role, Token};
use super::{Purpose, Vendor, Written, holes};
use crate::{
    Completion, Effect, Fault, FaultExt, FoundValue, Host, Locator, ObjectRef, Outcome, Readiness, Response,
    Sent, Stability, Stage, Start, fault,
};

/// How many moved objects a fault names.
const MOVED_MAX: usize = 20;

/// Whether a stage can be sent, and from which call on.
pub fn ready(
    vendor: &dyn Vendor,
    host: &dyn Host,
    stage: Stage,
    token: &[u8],
    left: u32,
) -> Result<Readiness, Fault> {
    let token = Token::read(token)?;
    match stage {
        Stage::Apply if left > 0 => {
            let behind = token.calls(stage).iter().skip(left as usize);
            let open: BTreeSet<usize> = behind.flat_map(|role| role.ids.iter().copied()).collect();
            let found = found_of(&token, stage, &state::ids(vendor, host, &token, &open)?);
            Ok(Readiness::Send(Start { from: left, found }))
        }
        Stage::Apply => {
            let now = state::read(vendor, host, &token)?;
            let moved: Vec<usize> =
                (0..token.parts.len()).filter(|at| !now.is_unmoved(&token, *at)).collect();
            if !moved.is_empty() {
                return Err(state_moved(&token, &moved));
            }
            Ok(Readiness::Send(Start { from: 0, found: found_of(&token, stage, &now.ids(&token)) }))
        }
        Stage::Restore => {
            let now = state::read(vendor, host, &token)?;
            restorable(&token, &now, left)
        }
        // Nothing is provisional on such a device.
        Stage::Confirm | Stage::Undo => Ok(Readiness::Nothing(Completion::default())),
        // Whether the job still runs, its end tells.
        Stage::Abort => Ok(Readiness::send(left)),
    }
}

/// What is known of the ids of objects, as the host takes it. A restore says also which of them are not there.
fn found_of(token: &Token, stage: Stage, ids: &BTreeMap<usize, Option<String>>) -> Vec<FoundValue> {
    let is_gone = |at: &usize| stage == Stage::Restore && !token.parts[*at].is_there.0;
    let id = |(at, id): (&usize, &Option<String>)| {
        let id = id.as_deref().or(is_gone(at).then_some(holes::ABSENT))?;
        let number = id.parse::<i64>().ok().filter(|_| token.parts[*at].is_number);
        let id = number.map_or_else(|| Value::from(id), Value::from);
        Some(FoundValue::new(holes::id_name(*at), &id))
    };
    ids.iter().filter_map(id).collect()
}

fn restorable(token: &Token, now: &State, left: u32) -> Result<Readiness, Fault> {
    // Once calls of the restore have left, a difference may be their own.
    if left == 0 {
        let found: Vec<Found> = (0..token.parts.len()).map(|at| now.stands(token, at)).collect();
        let all = found.iter().enumerate();
        let moved: Vec<usize> =
            all.filter(|(_, found)| matches!(found, Found::Other(_))).map(|(at, _)| at).collect();
        if !moved.is_empty() {
            return Err(state_moved(token, &moved));
        }
        if found.iter().all(|found| matches!(found, Found::Before | Found::Both)) {
            return Ok(Readiness::Nothing(Completion::default()));
        }
    }
    let found = found_of(token, Stage::Restore, &now.ids(token));
    Ok(Readiness::Send(Start { from: left, found }))
}

fn state_moved(token: &Token, moved: &[usize]) -> Fault {
    let path = |at: &usize| {
        let part = &token.parts[*at];
        part.path(token.kind_of(part))
    };
    let names: Vec<String> = moved.iter().take(3).map(|at| format!("'{}'", path(at))).collect();
    let fault =
        fault::state_moved(format!("{} changed since the plan was reviewed; plan again", names.join(", ")))
            .with_code("state-moved");
    moved
        .iter()
        .take(MOVED_MAX)
        .fold(fault, |fault, at| fault.with_field(format!("/{}", path(at)), "is not as it was reviewed"))
}

/// What came of a call.
pub fn judge(
    vendor: &dyn Vendor,
    host: &dyn Host,
    sent: Sent,
    answer: Result<Response, Fault>,
    token: &[u8],
) -> Result<Outcome, Fault> {
    let token = Token::read(token)?;
    let role = token
        .calls(sent.stage)
        .get(sent.index)
        .ok_or_else(|| fault::invalid("the plan has no such call; plan again"))?;
    let part = role.part.and_then(|at| token.parts.get(at));
    let written = answer.and_then(|response| vendor.written(role.purpose(), &response));
    let written = match written {
        // Whatever the answer says: where the state before is back, there is nothing left to take back.
        Err(_) if sent.stage == Stage::Restore && is_before(vendor, host, &token, role) => Written::Done,
        other => other.map_err(|fault| explained(host, (&token, sent), part, fault))?,
    };
    let mut completion = Completion::default();
    match written {
        Written::Task(task) => return Ok(Outcome::Pending(task)),
        Written::Warned(warnings) => completion.warnings = warnings,
        Written::Done => {}
    }
    if let Some(part) = part.filter(|_| role.purpose() == Purpose::Create && sent.stage == Stage::Apply) {
        let locator =
            Locator { surface: "id".to_owned(), value: part.id.clone(), stability: Stability::UntilRecreate };
        let locators = if part.is_open() { Vec::new() } else { vec![locator] };
        let (kind, key) = (token.kind_of(part).to_owned(), part.name.clone());
        completion.created.push(ObjectRef { kind, site: None, key, locators });
    }
    completion.found = found_for_next(vendor, host, sent, &token)?;
    Ok(Outcome::Done(completion))
}

/// Whether the object of a call is seen to be as before the plan.
fn is_before(vendor: &dyn Vendor, host: &dyn Host, token: &Token, role: &Role) -> bool {
    let now = role.part.and_then(|at| Some((at, state::read(vendor, host, token).ok()?)));
    now.is_some_and(|(at, now)| at < token.parts.len() && now.is_back(token, at))
}

/// A fault of a call in the words of the payload.
fn explained(host: &dyn Host, (token, sent): (&Token, Sent), part: Option<&Part>, fault: Fault) -> Fault {
    let fault = match part.map(|part| KindBinding::of(host, token.kind_of(part))) {
        Some(Ok(binding)) => in_words_of_payload(fault, &binding),
        _ => fault,
    };
    // What went before it was done.
    if sent.index > 0 { fault.with_effect(Effect::Certain) } else { fault }
}

/// Where the next call is about objects whose ids no answer gives, or that move with each write: the ids as they are now.
fn found_for_next(
    vendor: &dyn Vendor,
    host: &dyn Host,
    sent: Sent,
    token: &Token,
) -> Result<Vec<FoundValue>, Fault> {
    let behind = token.calls(sent.stage).iter().skip(sent.index + 1);
    // Of a restore, the next call may be left out.
    let next = behind.take(if sent.stage == Stage::Restore { usize::MAX } else { 1 });
    let is_open = |at: &usize| token.parts.get(*at).is_some_and(|part| !part.is_answered);
    let open: BTreeSet<usize> = next.flat_map(|role| role.ids.iter().copied()).filter(is_open).collect();
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let ids = state::ids(vendor, host, token, &open).map_err(|fault| fault.with_effect(Effect::Certain))?;
    // A known id must not be used where the object is gone. A call in between may bring it back.
    let next = token.calls(sent.stage).get(sent.index + 1);
    let is_lost = |at: &usize| {
        let is_known = sent.stage == Stage::Apply || token.parts[*at].is_there == (true, true);
        is_known && ids.get(at).is_none_or(Option::is_none) && next.is_some_and(|role| role.ids.contains(at))
    };
    let lost: Vec<usize> = open.iter().copied().filter(is_lost).collect();
    if !lost.is_empty() {
        return Err(state_moved(token, &lost).with_effect(Effect::Certain));
    }
    Ok(found_of(token, sent.stage, &ids))
}

/// The fault with the payload's names of the vendor's fields.
fn in_words_of_payload(mut fault: Fault, binding: &KindBinding) -> Fault {
    let fields = std::mem::take(&mut fault.info_mut().fields);
    fields.into_iter().fold(fault, |fault, field| {
        let place = field.pointer.trim_start_matches('/').replace('/', ".");
        fault.with(binding.name_at(&place), field.message)
    })
}
