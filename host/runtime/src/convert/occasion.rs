//! What calls plugins besides people: events as they are handed over, and what hooks answer.

use super::unfit::Unfit;
use crate::api::{GivenEvent, HookAnswer};
use crate::bindings::plugin::exports::heddle::plugin::{inbound, triggers};
use crate::limits::HOOK_ANSWER_BYTES_MAX;

/// What a call answers that only ends.
#[expect(clippy::unnecessary_wraps, reason = "the type of every reader of answers")]
pub(crate) fn nothing((): ()) -> Result<(), Unfit> {
    Ok(())
}

/// What a hook of a plugin answers.
pub(crate) fn hook_answer(answer: inbound::Response) -> Result<HookAnswer, Unfit> {
    let inbound::Response { status, content_type, body } = answer;
    if !matches!(status, 200..=299 | 400..=499) {
        return Err(Unfit::Form(format!(
            "a hook answers with 200 to 299 or 400 to 499, and not with {status}"
        )));
    }
    if body.len() > HOOK_ANSWER_BYTES_MAX {
        return Err(Unfit::Size(format!(
            "the answer of a hook has {} bytes; {HOOK_ANSWER_BYTES_MAX} are the most",
            body.len()
        )));
    }
    let content_type = match content_type.as_deref() {
        None => None,
        Some("application/json") => Some("application/json"),
        Some("text/plain") => Some("text/plain; charset=utf-8"),
        Some(_) => {
            return Err(Unfit::Form("a hook answers with application/json or text/plain".to_owned()));
        }
    };
    if content_type.is_some() && std::str::from_utf8(&body).is_err() {
        return Err(Unfit::Form("the answer of a hook is not UTF-8".to_owned()));
    }
    if content_type.is_none() && !body.is_empty() {
        return Err(Unfit::Form("a body without a content type; answer with one".to_owned()));
    }
    Ok(HookAnswer { status, content_type, body })
}

/// An event as a trigger is told of it.
pub(crate) fn given_event(event: GivenEvent) -> triggers::Event {
    triggers::Event {
        id: event.id,
        seq: event.seq,
        event_type: event.event_type,
        occurred_at_ms: event.occurred_at_ms,
        payload: event.payload.to_string(),
    }
}
