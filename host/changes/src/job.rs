//! The job at a device that a change waits for, and the calls that end it; which calls of a stage are sent at all.

use std::collections::HashSet;

use heddle_core::change::{ApplyStep, NativeCall, Stage};
use heddle_store::changes::ChangeRow;

/// Returns the stage whose calls a step sends.
pub(crate) fn stage_of(step: ApplyStep) -> Stage {
    match step {
        ApplyStep::Confirming | ApplyStep::Keeping => Stage::Confirm,
        ApplyStep::Undoing => Stage::Undo,
        ApplyStep::WritingBack => Stage::Restore,
        _ => Stage::Apply,
    }
}

/// Returns the call of a stage that was answered last with a success: where the change waits for a job, it began that.
pub(crate) fn last_judged(row: &ChangeRow, stage: Stage) -> Option<&NativeCall> {
    let place = usize::try_from(row.sent(stage).judged).ok()?.checked_sub(1)?;
    calls_of(row, stage).nth(place)
}

/// Returns the call whose job at the device the change waits for, where it can have one that ends the job.
pub(crate) fn running_call(row: &ChangeRow) -> Option<&NativeCall> {
    let stage = stage_of(row.task_step.unwrap_or(ApplyStep::Sending));
    let call = last_judged(row, stage)?;
    (call.id.is_some() && matches!(stage, Stage::Apply | Stage::Restore)).then_some(call)
}

/// Returns the calls that end the job of the call of this id.
pub(crate) fn calls_that_end<'r>(row: &'r ChangeRow, id: &'r str) -> impl Iterator<Item = &'r NativeCall> {
    calls_of(row, Stage::Abort).filter(move |call| call.only_after.as_deref() == Some(id))
}

/// Whether a person asked to end the job that the change waits for.
pub(crate) fn is_cancelled(row: &ChangeRow) -> bool {
    let running = running_call(row).and_then(|call| call.id.as_deref());
    let asked = row.attempts.last().map_or(&[][..], |last| &last.cancellations);
    running.is_some_and(|id| asked.iter().any(|asked| asked.call == id))
}

/// Of each call of a stage, whether it takes back one of the apply that never left, or ends a job that does not run: then
/// there is nothing to do for it.
pub(crate) fn left_out(row: &ChangeRow, stage: Stage) -> Vec<bool> {
    if stage == Stage::Abort {
        let running = running_call(row).and_then(|call| call.id.as_ref());
        return calls_of(row, stage)
            .map(|call| running.is_none() || call.only_after.as_ref() != running)
            .collect();
    }
    if row.sent.is_none() {
        return calls_of(row, stage).map(|_| false).collect();
    }
    let left = calls_of(row, Stage::Apply).take(row.sent(Stage::Apply).left as usize);
    let left: HashSet<&str> = left.filter_map(|call| call.id.as_deref()).collect();
    let is_for_nothing = |call: &NativeCall| call.only_after.as_deref().is_some_and(|id| !left.contains(id));
    calls_of(row, stage).map(is_for_nothing).collect()
}

/// Whether a call of the stage left: one that is left out counts as passed, and never leaves.
pub(crate) fn has_left(row: &ChangeRow, stage: Stage) -> bool {
    is_any_sent(&left_out(row, stage), row.sent(stage).left)
}

/// Whether one of the first `count` calls is not left out.
pub(crate) fn is_any_sent(left_out: &[bool], count: u32) -> bool {
    left_out.iter().take(count as usize).any(|is_left_out| !is_left_out)
}

/// Whether the call puts into effect what other calls stored. That is assumed of a call that the restore sends in the same
/// form.
pub(crate) fn activates(row: &ChangeRow, call: &NativeCall) -> bool {
    calls_of(row, Stage::Restore).any(|other| asks_the_same(other, call))
}

/// Whether two calls are one request, whatever stage they belong to.
fn asks_the_same(one: &NativeCall, other: &NativeCall) -> bool {
    let NativeCall {
        stage: _,
        id: _,
        only_after: _,
        repeatable: _,
        method,
        path,
        headers,
        body,
        form,
        file,
        multipart,
        session,
    } = one;
    (method, path, headers, session) == (&other.method, &other.path, &other.headers, &other.session)
        && (body, form, file, multipart) == (&other.body, &other.form, &other.file, &other.multipart)
}

/// Whether what the apply stored may not be in effect: calls of it did not leave, or the one in doubt activates.
pub(crate) fn may_be_inactive(row: &ChangeRow) -> bool {
    let sent = row.sent(Stage::Apply);
    let left = usize::try_from(sent.left).unwrap_or(usize::MAX);
    let has_unsent = left_out(row, Stage::Apply).iter().skip(left).any(|is_left_out| !is_left_out);
    let last = left.checked_sub(1).filter(|_| sent.is_in_doubt());
    let in_doubt = last.and_then(|last| calls_of(row, Stage::Apply).nth(last));
    row.sent.is_some() && (has_unsent || in_doubt.is_some_and(|call| activates(row, call)))
}

fn calls_of(row: &ChangeRow, stage: Stage) -> impl Iterator<Item = &NativeCall> {
    let native = row.plan.as_ref().map_or(&[][..], |plan| &plan.native);
    native.iter().filter(move |call| call.stage == stage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_was_never_sent() {
        assert!(!is_any_sent(&[true, true, false], 2), "only calls without a task are behind it");
        assert!(is_any_sent(&[true, false], 2));
        assert!(!is_any_sent(&[false], 0));
    }
}
