//! Sends the calls of a stage, one by one.
//!
//! Each call is recorded before it leaves, on condition that this process still owns the change. The component says
//! whether the stage can begin, and what each answer means. After a task, a lost answer or a restart the stage goes on
//! behind the last call whose answer was good, or earlier if the component asks for it. A call that has left is sent
//! again only if the plan calls it repeatable, and never one that makes the change or ends a job.

use std::collections::BTreeSet;
use std::sync::Arc;

use heddle_core::adapter::{CallOutcome, Readiness, Task};
use heddle_core::change::{ChangeSpec, Hole, HoleSource, NativeCall, Stage, StageSent};
use heddle_core::fault::{Effect, Fault, FaultKind};
use heddle_files::named;
use heddle_kernel::http::error::Error;
use heddle_runtime::{
    Answer, Call, CallError, FileBook, Filling, SecretBook, SentCall, Urgency, fits_hole, holes_of,
};
use heddle_store::changes;
use serde_json::Value;

use super::{Drive, lost};
use crate::job::{is_any_sent, left_out};
use crate::plan::{secrets_of, specs_of};

/// Code of the fault where a call that has left would have to be sent again.
pub(super) const NOT_REPEATABLE: &str = "not-repeatable";

/// How the sending of a stage ended.
pub(super) enum Sent {
    /// Every call was sent, and every answer was good.
    Done,
    /// The device works on a call; the rest of the stage follows when its task is done.
    Pending(Task),
    Failed(StageFailure),
}

/// Why a stage was not sent to its end.
pub(super) struct StageFailure {
    pub(super) error: CallError,
    /// A call of the stage was handed to the connection, now or before. When false, the host itself saw that none left.
    pub(super) wrote: bool,
}

/// What every call of a stage needs.
struct StageOf {
    stage: Stage,
    calls: Vec<NativeCall>,
    call: Call,
    specs: Vec<ChangeSpec>,
    token: Vec<u8>,
    secrets: Arc<SecretBook>,
    files: Arc<FileBook>,
    holes: Arc<[Hole]>,
    /// Of each call, whether there is nothing to do for it, so that it is not sent.
    left_out: Vec<bool>,
    hold_secs: u32,
}

impl StageOf {
    /// The failure of the stage, of whose calls so many are behind it.
    fn failed(&self, error: CallError, left: u32) -> Sent {
        Sent::Failed(StageFailure { error, wrote: is_any_sent(&self.left_out, left) })
    }
}

impl Drive<'_> {
    /// Sends the calls of a stage. The result says nothing about the device's state: that is read.
    pub(super) async fn run(&mut self, stage: Stage) -> Result<Sent, Error> {
        self.is_fresh = false;
        let mut sent = self.row.sent(stage);
        // Calls for a change that is already at the device must finish, whatever the load; an apply can be refused
        // before its first call.
        let is_refusable = stage == Stage::Apply && sent.left == 0;
        let urgency = if is_refusable { Urgency::Ordinary } else { Urgency::UnderWay };
        let calls: Vec<NativeCall> =
            self.native().iter().filter(|call| call.stage == stage).cloned().collect();
        let mut of = StageOf {
            stage,
            left_out: left_out(&self.row, stage),
            calls,
            call: Call { deadline: self.time_limit(), urgency, ..self.call.clone() },
            specs: specs_of(&self.row),
            token: self.row.plan_token.clone().unwrap_or_default(),
            secrets: Arc::new(secrets_of(self.app, &self.row)?),
            files: Arc::default(),
            holes: self.holes().into(),
            hold_secs: self.hold_secs(),
        };
        of.files = Arc::new(named::book(self.app, self.row.org_id, &of.calls).await?);
        let ready = self.adapter.ready(&of.call, stage, &of.specs, &of.token, sent.left);
        let from = match self.while_ours(ready).await? {
            Ok(Readiness::Send { from, found }) => {
                self.keep_found(found);
                from
            }
            Ok(Readiness::Nothing(completion)) => {
                self.keep_completion(&completion, stage);
                if stage == Stage::Restore {
                    // What left before was enough: the rest is not missing.
                    sent.judged = u32::try_from(of.calls.len()).unwrap_or(u32::MAX);
                    self.row.note_sent(sent);
                    self.record_sent().await?;
                }
                return Ok(Sent::Done);
            }
            Err(error) => return Ok(of.failed(error, sent.left)),
        };
        let from = match next_call(&of.calls, &of.left_out, from, sent) {
            Ok(from) => from,
            Err(fault) => {
                return Ok(of.failed(CallError::Fault(fault), sent.left));
            }
        };
        of.call.urgency = Urgency::UnderWay;
        sent.judged = from;
        for index in from..u32::try_from(of.calls.len()).unwrap_or(u32::MAX) {
            match self.send_one(&of, index, &mut sent).await? {
                Sent::Done => {}
                ended => return Ok(ended),
            }
        }
        Ok(Sent::Done)
    }

    /// Whether calls of a stage are still to be sent. Of an apply that an earlier version began, nothing is known.
    pub(super) fn has_more(&self, stage: Stage) -> bool {
        if self.row.sent.is_none() {
            return false;
        }
        let calls = self.native().iter().filter(|call| call.stage == stage).count();
        usize::try_from(self.row.sent(stage).judged).unwrap_or(usize::MAX) < calls
    }

    /// Keeps what the component found for the holes of the plan. An answer of the device goes before it, and what is read
    /// fresh is not for the component to say.
    pub(super) fn keep_found(&mut self, found: Vec<(String, Value)>) {
        for (name, value) in found {
            let is_known = self.row.hole_values.iter().any(|values| values.contains_key(&name));
            let hole = self.holes().iter().find(|hole| hole.name == name);
            let fit = match hole.map(|hole| (&hole.source, hole)) {
                None => Err("the plan has no such hole".to_owned()),
                Some((HoleSource::Fresh { .. }, _)) => Err("it is read fresh".to_owned()),
                Some((HoleSource::Answer { .. }, _)) if is_known => Err("an answer gave it".to_owned()),
                Some((_, hole)) => fits_hole(hole, value),
            };
            match fit {
                Ok(value) => drop(self.row.hole_values.get_or_insert_default().insert(name, value)),
                Err(why) => {
                    tracing::warn!(change.id = %self.row.id, hole = name, "a value that the adapter found is not used: {why}");
                }
            }
        }
    }

    /// Keeps what an answer has for holes of the plan before anything else happens: a judgement may trap, and what the
    /// call did has to be taken back nevertheless.
    async fn keep_answer(&mut self, of: &StageOf, call: &NativeCall, answer: &Answer) -> Result<(), Error> {
        let Some(id) = &call.id else { return Ok(()) };
        let given = answer.values(id, &of.holes);
        if given.is_empty() {
            return Ok(());
        }
        let values = self.row.hole_values.get_or_insert_default();
        for (hole, value) in given {
            // A value of an earlier attempt of the call is no longer true.
            values.remove(&hole.name);
            match value {
                Ok(value) => drop(values.insert(hole.name.clone(), value)),
                Err(why) => {
                    tracing::warn!(change.id = %self.row.id, hole = hole.name, "not known from an answer: {why}");
                }
            }
        }
        self.record_sent().await
    }

    /// Warns of values that the answer to a call should have given and nothing has given.
    fn warn_of_open_holes(&mut self, of: &StageOf, call: &NativeCall) {
        let is_known =
            |hole: &Hole| self.row.hole_values.iter().any(|values| values.contains_key(&hole.name));
        // A call that was done at once started no job, and has no id of one.
        let others = self.native().iter().filter(|call| call.stage != Stage::Abort);
        let needed: BTreeSet<String> = others.flat_map(holes_of).collect();
        let open = of.holes.iter().filter(|hole| {
            matches!(&hole.source, HoleSource::Answer { call: id, .. } if Some(id) == call.id.as_ref())
                && !is_known(hole)
                && needed.contains(&hole.name)
        });
        let warning = |hole: &Hole| {
            format!(
                "'{}' is not known from the answer to '{}'",
                hole.name,
                call.id.as_deref().unwrap_or_default()
            )
        };
        let warnings: Vec<String> = open.map(warning).collect();
        self.detail.add_warnings(warnings);
    }

    async fn send_one(&mut self, of: &StageOf, index: u32, sent: &mut StageSent) -> Result<Sent, Error> {
        let native = &of.calls[index as usize];
        if of.left_out[index as usize] {
            sent.left = sent.left.max(index + 1);
            sent.judged = index + 1;
            self.row.note_sent(*sent);
            return Ok(Sent::Done);
        }
        let before = sent.left;
        sent.left = before.max(index + 1);
        self.row.note_sent(*sent);
        self.record_sent().await?;
        let filling = Filling {
            hold_secs: of.hold_secs,
            secrets: Arc::clone(&of.secrets),
            files: Arc::clone(&of.files),
            holes: Arc::clone(&of.holes),
            values: self.row.hole_values.clone().unwrap_or_default(),
        };
        let SentCall { answer, left } =
            self.while_ours(self.adapter.send(&of.call, native, filling, index > 0)).await?;
        let lost = answer.as_ref().err().cloned();
        if let Ok(answer) = &answer {
            self.keep_answer(of, native, answer).await?;
        }
        let judged = self.adapter.judge(&of.call, (of.stage, index), answer, &of.specs, &of.token);
        let judged = self.while_ours(judged).await?;
        let good = |this: &mut Self, sent: &mut StageSent| {
            sent.judged = index + 1;
            this.row.note_sent(*sent);
        };
        let error = match (judged, lost) {
            // A call that did not leave is not done, whatever the component says.
            (Ok(CallOutcome::Done(_) | CallOutcome::Pending(_)), Some(fault)) if !left => {
                CallError::Fault(fault)
            }
            (Ok(CallOutcome::Done(completion)), _) => {
                good(self, sent);
                self.keep_completion(&completion, of.stage);
                self.warn_of_open_holes(of, native);
                return Ok(Sent::Done);
            }
            (Ok(CallOutcome::Pending(task)), _) => {
                good(self, sent);
                return Ok(Sent::Pending(task));
            }
            (Ok(CallOutcome::Failed(fault)), lost) => {
                CallError::Fault(corrected(fault, lost.is_some() && left))
            }
            // A fault in place of an outcome is the same.
            (Err(CallError::Fault(fault)), lost) => {
                CallError::Fault(corrected(fault, lost.is_some() && left))
            }
            (Err(error), _) => error,
        };
        tracing::warn!(change.id = %self.row.id, stage = %of.stage, call = index, left, error = %error, "call failed");
        if !left {
            sent.left = before;
            self.row.note_sent(*sent);
        }
        Ok(of.failed(error, sent.left))
    }

    /// Records how far the stage was sent, if this process still owns the change.
    pub(super) async fn record_sent(&self) -> Result<(), Error> {
        let (step, owner) = (self.row.apply_step, self.term.id);
        let sent = self.row.sent.as_deref().unwrap_or_default();
        let mut tx = self.app.db.write().await?;
        let known = (sent, self.row.hole_values.as_ref());
        let is_ours =
            changes::record_sent(&mut tx, self.row.id, owner, step, known, &self.detail.to_set()).await?;
        tx.commit().await?;
        if is_ours && !self.term.is_over() { Ok(()) } else { Err(lost()) }
    }

    /// What the call gives; an error when this process loses its term meanwhile. Dropping the call ends it.
    async fn while_ours<T>(&self, call: impl Future<Output = T>) -> Result<T, Error> {
        tokio::select! {
            biased;
            () = self.term.over().cancelled() => Err(lost()),
            given = call => Ok(given),
        }
    }
}

/// A call that got no answer may have arrived, whatever the component says.
fn corrected(mut fault: Fault, is_in_doubt: bool) -> Fault {
    if is_in_doubt && fault.effect == Effect::None {
        fault.effect = Effect::Possible;
    }
    fault
}

/// The call to go on with, where the component asks for `from`: behind the last one whose answer was good, or earlier.
/// What was left out was never sent.
fn next_call(calls: &[NativeCall], left_out: &[bool], from: u32, sent: StageSent) -> Result<u32, Fault> {
    let refused = |message: String, code: &str| {
        Err(Fault::new(FaultKind::Generic, message).with_code(code).with_effect(Effect::Possible))
    };
    if from > sent.left {
        let (asked, left) = (from + 1, sent.left);
        return refused(format!("the adapter asked for call {asked}, and {left} have left"), "not-next");
    }
    let from = from.min(sent.judged);
    let again = calls.iter().zip(left_out).skip(from as usize).take((sent.left - from) as usize);
    let mut again = again.filter(|(_, is_left_out)| !**is_left_out).map(|(call, _)| call);
    match again.find(|call| matches!(call.stage, Stage::Apply | Stage::Abort) || !call.repeatable) {
        None => Ok(from),
        Some(call) => {
            let call = format!("{} {}", call.method, call.path);
            refused(format!("'{call}' has left before and may not be sent twice"), NOT_REPEATABLE)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(stage: Stage, repeatable: bool) -> NativeCall {
        NativeCall { repeatable, ..NativeCall::new(stage, "POST", "/x") }
    }

    fn sent(left: u32, judged: u32) -> StageSent {
        StageSent { stage: Stage::Restore, left, judged }
    }

    #[test]
    fn a_stage_goes_on_behind_the_last_good_answer_and_nowhere_later() {
        let restore = [call(Stage::Restore, true), call(Stage::Restore, true)];
        assert_eq!(next_call(&restore, &[false; 3], 0, sent(0, 0)), Ok(0));
        assert_eq!(next_call(&restore, &[false; 3], 1, sent(1, 1)), Ok(1));
        assert_eq!(
            next_call(&restore, &[false; 3], 1, sent(1, 0)),
            Ok(0),
            "the call in doubt is not passed over"
        );
        assert_eq!(next_call(&restore, &[false; 3], 0, sent(2, 2)), Ok(0));
        assert_eq!(
            next_call(&restore, &[false; 3], 1, sent(0, 0)).unwrap_err().code.as_deref(),
            Some("not-next")
        );
    }

    #[test]
    fn only_repeatable_calls_that_do_not_make_the_change_are_sent_again() {
        let restore = [call(Stage::Restore, true), call(Stage::Restore, false)];
        assert_eq!(next_call(&restore, &[false; 3], 1, sent(1, 0)), Ok(0));
        for (from, left, judged) in [(2, 2, 1), (1, 2, 1), (0, 2, 2)] {
            let fault = next_call(&restore, &[false; 3], from, sent(left, judged)).unwrap_err();
            assert_eq!(fault.code.as_deref(), Some(NOT_REPEATABLE));
        }
        assert_eq!(next_call(&restore, &[false; 3], 2, sent(2, 2)), Ok(2));
        let apply = [call(Stage::Apply, true), call(Stage::Apply, true)];
        assert_eq!(next_call(&apply, &[false; 3], 1, sent(1, 1)), Ok(1));
        assert!(next_call(&apply, &[false; 3], 0, sent(1, 1)).is_err());
        assert!(next_call(&apply, &[false; 3], 1, sent(1, 0)).is_err());
    }
}
