//! Waits for a task at the device, and goes on behind it.

use std::sync::Arc;
use std::time::Duration;

use heddle_core::adapter::{CallOutcome, Task};
use heddle_core::change::{ApplyStep, OutcomeState, Stage};
use heddle_core::fault::Fault;
use heddle_kernel::http::error::Error;
use heddle_runtime::CallError;
use heddle_store::Set;
use heddle_store::changes::Advance;

use super::cancelling::{as_cancelled, cut_short};
use super::{Drive, MESSAGE_CHARS_MAX};
use crate::job::{activates, last_judged, stage_of};

/// Longest wait for a task at a device.
const TASK_MAX_MS: u32 = 30 * 60 * 1000;
const POLL_MIN_MS: u32 = 1000;
const POLL_MAX_MS: u32 = 60_000;

impl Drive<'_> {
    /// Stores a task of the present step, or the state that a poll returned for the stored task.
    pub(super) async fn keep_task(&mut self, task: &Task) -> Result<(), Error> {
        let mut task = task.clone();
        let kept = self.row.task.as_ref().filter(|_| self.row.apply_step == ApplyStep::Polling);
        // Only the adapter's first limit counts, from the beginning of the apply.
        task.give_up_after_ms = match kept {
            Some(first) => first.give_up_after_ms,
            None => self.elapsed_ms().saturating_add(task.give_up_after_ms.min(TASK_MAX_MS)),
        };
        task.poll_after_ms = task.poll_after_ms.clamp(POLL_MIN_MS, POLL_MAX_MS);
        if let Some(message) = &mut task.message {
            heddle_core::redact::mask_text(message);
            *message = message.chars().take(MESSAGE_CHARS_MAX).collect();
        }
        // A later step has its own message: the reason for the step.
        let is_applying = self.task_step() == ApplyStep::Sending;
        let advance = Advance {
            outcome_message: task.message.clone().filter(|_| is_applying).map_or(Set::Keep, Set::To),
            task: Set::To(task),
            task_step: Some(self.task_step()),
            ..Advance::default()
        };
        self.to(ApplyStep::Polling, advance).await
    }

    /// Returns the step that follows a task that is done: the same one while calls of its stage are left to send.
    fn after_task(&self, step: ApplyStep) -> ApplyStep {
        if self.has_more(stage_of(step)) { step } else { next(step) }
    }

    fn elapsed_ms(&self) -> u32 {
        let started = self.row.apply_started_at.unwrap_or(self.row.updated_at);
        u32::try_from((self.app.clock.now() - started).num_milliseconds().max(0)).unwrap_or(u32::MAX)
    }

    /// Returns the step to which the present task belongs.
    fn task_step(&self) -> ApplyStep {
        match self.row.apply_step {
            ApplyStep::Polling => self.row.task_step.unwrap_or(ApplyStep::Sending),
            step => step,
        }
    }

    /// Polls the device's task until it is done or given up.
    pub(super) async fn poll(&mut self) -> Result<(), Error> {
        let step = self.task_step();
        let Some(task) = self.row.task.clone() else {
            return self.to(self.after_task(step), Advance::default()).await;
        };
        let woken = Arc::clone(&self.woken);
        tokio::select! {
            () = woken.notified() => return self.look_again().await,
            goes_on = self.pause(Duration::from_millis(u64::from(task.poll_after_ms))) => {
                if !goes_on {
                    return Ok(());
                }
            }
        }
        let is_in_time = self.is_task_in_time();
        match self.adapter.poll(&self.call, &task.token).await {
            Ok(CallOutcome::Done(completion)) => {
                self.keep_completion(&completion, stage_of(step));
                self.task_is_done(step).await
            }
            Ok(CallOutcome::Failed(fault)) => self.task_failed(step, fault).await,
            Ok(CallOutcome::Pending(task)) if is_in_time => self.keep_task(&task).await,
            Err(error) if is_in_time => {
                tracing::debug!(change.id = %self.row.id, error = %error, "task gives no answer yet");
                Ok(())
            }
            // Every later step is followed by a comparison, which shows the result.
            Ok(CallOutcome::Pending(_)) | Err(_) if step != ApplyStep::Sending => {
                if self.has_more(stage_of(step)) {
                    let warning =
                        "a job at the device did not end in time, and the calls behind it were not sent";
                    self.detail.add_warnings([warning.to_owned()]);
                }
                self.to(next(step), Advance::default()).await
            }
            Ok(CallOutcome::Pending(_)) => {
                self.finish(OutcomeState::Unknown, Some("the device did not finish in time".to_owned())).await
            }
            Err(error) => {
                let message = format!("the device did not come back in time: {error}");
                self.error = Some(error);
                self.finish(OutcomeState::Unknown, Some(message)).await
            }
        }
    }

    /// Whether the device still has time for its task.
    pub(super) fn is_task_in_time(&self) -> bool {
        self.row.task.as_ref().is_some_and(|task| self.elapsed_ms() < task.give_up_after_ms)
    }

    /// Goes on behind a task that is done. Where it was cancelled, nothing more is sent, and the device is read.
    async fn task_is_done(&mut self, step: ApplyStep) -> Result<(), Error> {
        if !self.is_cancelled() {
            return self.to(self.after_task(step), Advance::default()).await;
        }
        if !self.has_more(stage_of(step)) {
            self.detail.add_warnings(["the job was done before it could be cancelled".to_owned()]);
            return self.to(next(step), Advance::default()).await;
        }
        if step == ApplyStep::Sending {
            return self.apply_failed(CallError::Fault(cut_short()), true).await;
        }
        self.detail.add_warnings([cut_short().message]);
        self.to(next(step), Advance::default()).await
    }

    /// Ends the stage of a task that ended badly.
    async fn task_failed(&mut self, step: ApplyStep, fault: Fault) -> Result<(), Error> {
        let fault = if self.is_told_to_cancel() { as_cancelled(fault) } else { fault };
        if step != ApplyStep::Sending {
            // Its answer was good, and its end was not.
            let mut sent = self.row.sent(stage_of(step));
            sent.judged = sent.judged.saturating_sub(1);
            self.row.note_sent(sent);
            self.record_sent().await?;
            return self.stage_failed(step, CallError::Fault(fault)).await;
        }
        if last_judged(&self.row, Stage::Apply).is_some_and(|call| activates(&self.row, call)) {
            self.error = Some(CallError::Fault(fault));
            return self.take_back_part().await;
        }
        self.apply_failed(CallError::Fault(fault), true).await
    }
}

/// Returns the step that follows when everything of a step was sent, or its task was given up.
fn next(step: ApplyStep) -> ApplyStep {
    match step {
        ApplyStep::Confirming => ApplyStep::Confirmed,
        ApplyStep::Undoing | ApplyStep::Keeping => ApplyStep::WritingBack,
        ApplyStep::WritingBack => ApplyStep::Restored,
        _ => ApplyStep::ReadingBack,
    }
}
