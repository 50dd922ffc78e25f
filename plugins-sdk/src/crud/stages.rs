//! Before a stage: whether it can begin. After each of its calls: what the answer means.

use super::binding::KindBinding;
use super::compare::{State, state};
use super::model::WithField;
use super::part::Found;
use super::token::Token;
use super::{Purpose, Vendor};
use crate::{
    Completion, Effect, Fault, FaultExt, Host, Locator, ObjectRef, Outcome, Readiness, Response, Sent,
    Stability, Stage, fault,
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
        Stage::Apply if left > 0 => Ok(Readiness::send(left)),
        Stage::Apply => {
            let now = state(vendor, host, &token)?;
            let moved: Vec<usize> =
                (0..token.parts.len()).filter(|at| !now.is_unmoved(&token, *at)).collect();
            if moved.is_empty() { Ok(Readiness::send(0)) } else { Err(state_moved(&token, &moved)) }
        }
        Stage::Restore => {
            let now = state(vendor, host, &token)?;
            restorable(&token, &now, left)
        }
        // Nothing is provisional on such a device.
        Stage::Confirm | Stage::Undo => Ok(Readiness::Nothing(Completion::default())),
    }
}

fn restorable(token: &Token, now: &State, left: u32) -> Result<Readiness, Fault> {
    let found: Vec<Found> = (0..token.parts.len()).map(|at| now.stands(token, at)).collect();
    let moved: Vec<usize> = found
        .iter()
        .enumerate()
        .filter(|(_, found)| matches!(found, Found::Other(_)))
        .map(|(at, _)| at)
        .collect();
    if !moved.is_empty() {
        return Err(state_moved(token, &moved));
    }
    // What is stored is as before; whether it is active is not seen where a call of this stage has left already.
    let is_before = found.iter().all(|found| matches!(found, Found::Before | Found::Both));
    if is_before && left == 0 {
        return Ok(Readiness::Nothing(Completion::default()));
    }
    Ok(Readiness::send(0))
}

fn state_moved(token: &Token, moved: &[usize]) -> Fault {
    let names: Vec<String> =
        moved.iter().take(3).map(|at| format!("'{}'", token.parts[*at].path())).collect();
    let fault =
        fault::state_moved(format!("{} changed since the plan was reviewed; plan again", names.join(", ")))
            .with_code("state-moved");
    let paths = moved.iter().take(MOVED_MAX).map(|at| token.parts[*at].path());
    paths.fold(fault, |fault, path| fault.with_field(format!("/{path}"), "is not as it was reviewed"))
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
    let judged = answer.and_then(|response| vendor.written(role.purpose(), &response));
    let part = role.part.and_then(|at| token.parts.get(at));
    if let Err(fault) = judged {
        let fault = match part.map(|part| KindBinding::of(host, &part.kind)) {
            Some(Ok(binding)) => in_words_of_payload(fault, &binding),
            _ => fault,
        };
        // What went before it was done.
        return Err(if sent.index > 0 { fault.with_effect(Effect::Certain) } else { fault });
    }
    let mut completion = Completion::default();
    if let Some(part) = part.filter(|_| role.purpose() == Purpose::Create && sent.stage == Stage::Apply) {
        let locator =
            Locator { surface: "id".to_owned(), value: part.id.clone(), stability: Stability::UntilRecreate };
        let (kind, key) = (part.kind.clone(), part.name.clone());
        completion.created.push(ObjectRef { kind, site: None, key, locators: vec![locator] });
    }
    Ok(Outcome::Done(completion))
}

/// The fault with the payload's names of the vendor's fields.
fn in_words_of_payload(mut fault: Fault, binding: &KindBinding) -> Fault {
    let fields = std::mem::take(&mut fault.info_mut().fields);
    fields.into_iter().fold(fault, |fault, field| {
        let place = field.pointer.trim_start_matches('/').replace('/', ".");
        fault.with(binding.name_at(&place), field.message)
    })
}
