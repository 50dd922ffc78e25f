//! Sends the reviewed calls, and finds out their outcome.

use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_core::adapter::Standing;
use heddle_core::change::{ApplyStep, OutcomeState, Stage};
use heddle_core::fault::Effect;
use heddle_kernel::http::error::Error;
use heddle_runtime::CallError;
use heddle_store::Set;
use heddle_store::changes::Advance;

use super::calls::{Sent, StageFailure};
use super::window::held_message;
use super::{Drive, RETRY_FIRST, is_without_effect};
use crate::declarations::ChangesSettings;
use crate::job::may_be_inactive;
use crate::plan::specs_of;

/// Time between two reads that must both show an unchanged device after an answer was lost.
const SETTLE: Duration = Duration::from_millis(700);
/// The same for a device that acts seconds after it answered, and cannot be asked to take the change back.
const SETTLE_DELAYED: Duration = Duration::from_mins(1);

impl Drive<'_> {
    /// Sends the reviewed calls. Done at most once per claim.
    pub(super) async fn send(&mut self) -> Result<(), Error> {
        if !self.has_calls(Stage::Apply) {
            return self.to(ApplyStep::ReadingBack, Advance::default()).await;
        }
        if !self.is_of_this_adapter() {
            // Packages were replaced meanwhile: another adapter would number the calls in its own way.
            return self.to(ApplyStep::Resolving, Advance::default()).await;
        }
        match self.run(Stage::Apply).await? {
            Sent::Done => self.to(ApplyStep::ReadingBack, Advance::default()).await,
            Sent::Pending(task) => self.keep_task(&task).await,
            Sent::Failed(failure) if failure.wrote => {
                let is_answered = is_without_effect(&failure.error);
                self.apply_failed(failure.error, is_answered).await
            }
            Sent::Failed(StageFailure { error, .. }) => {
                // The host itself knows that it sent no write.
                let message = error.to_string();
                if let CallError::Fault(fault) = &error {
                    self.detail.moved_by(fault);
                }
                self.error = Some(error);
                self.finish(OutcomeState::Failed, Some(message)).await
            }
        }
    }

    /// Goes on after a restart. With a call on its way the device shows what came of it; between two calls the next one
    /// follows, if the component can go on there.
    pub(super) async fn go_on_sending(&mut self) -> Result<(), Error> {
        let sent = self.row.sent(Stage::Apply);
        let is_recorded = self.row.sent.is_some();
        if is_recorded && sent.left == 0 {
            return self
                .finish(OutcomeState::Failed, Some("interrupted before anything was sent".to_owned()))
                .await;
        }
        if is_recorded && !sent.is_in_doubt() {
            return self.send().await;
        }
        self.to(ApplyStep::Resolving, Advance::default()).await
    }

    pub(super) fn is_of_this_adapter(&self) -> bool {
        self.row.plan.as_ref().is_some_and(|plan| plan.made_by == self.adapter.identity())
    }

    /// The device shows what remains of the calls. When it has answered, no call is in flight to it.
    pub(super) async fn apply_failed(&mut self, error: CallError, is_answered: bool) -> Result<(), Error> {
        let message = error.to_string();
        self.error = Some(error);
        self.is_answered = is_answered;
        self.record_step(ApplyStep::Resolving, message).await
    }

    /// Reads the device until it shows the outcome of the calls.
    pub(super) async fn resolve(&mut self) -> Result<(), Error> {
        let Some(standing) = self.read_until_answered().await? else { return Ok(()) };
        match standing {
            Standing::Before if self.is_answered => self.fail_unchanged().await,
            Standing::Before => {
                // A call that was in flight when the answer was lost may still arrive.
                let holds = self.row.plan.as_ref().is_none_or(|plan| plan.holds);
                if !self.pause(if holds { SETTLE } else { SETTLE_DELAYED }).await {
                    return Ok(());
                }
                match self.read_until_answered().await? {
                    Some(Standing::Before) => self.fail_unchanged().await,
                    _ => Ok(()),
                }
            }
            // What the device shows may be stored without being in effect.
            Standing::After | Standing::Adjusted(_) | Standing::Stored(_) if may_be_inactive(&self.row) => {
                self.take_back_part().await
            }
            Standing::After | Standing::Adjusted(_) | Standing::Stored(_) => {
                let window_is_over =
                    self.row.confirm_deadline.is_some_and(|deadline| self.app.clock.now() >= deadline);
                if window_is_over {
                    self.record_step(ApplyStep::Restoring, "not confirmed in time".to_owned()).await
                } else {
                    self.to(ApplyStep::ReadingBack, Advance::default()).await
                }
            }
            Standing::MovedOn(_) => self.finish_moved_on().await,
            Standing::Unseen => self.resolve_unseen().await,
            Standing::Other(_) => self.take_back_part().await,
        }
    }

    pub(super) async fn take_back_part(&mut self) -> Result<(), Error> {
        let message = match &self.error {
            Some(error) => format!("the device took only a part of the change: {error}"),
            None => "the device took only a part of the change".to_owned(),
        };
        self.record_step(ApplyStep::Restoring, message).await
    }

    /// Ends an apply of which nothing can be read and of which not every answer is known to be a success. It failed where
    /// its first call was answered with a promise that nothing was changed, and is unknown otherwise: nothing can find out.
    pub(super) async fn resolve_unseen(&mut self) -> Result<(), Error> {
        if self.is_answered && self.row.sent(Stage::Apply).judged == 0 {
            return self.fail_unchanged().await;
        }
        let reason = self.row.outcome_message.clone().filter(|reason| !reason.is_empty());
        let reason = reason.unwrap_or_else(|| "interrupted while a call was on its way".to_owned());
        let message = format!(
            "{reason}; whether the device did it cannot be read: look at the device, then discard the change"
        );
        self.finish(OutcomeState::Unknown, Some(message)).await
    }

    /// Whether every call of the apply was answered with a success.
    fn is_answered_well(&self) -> bool {
        self.row.sent.is_some() && self.has_calls(Stage::Apply) && !self.has_more(Stage::Apply)
    }

    async fn fail_unchanged(&mut self) -> Result<(), Error> {
        let message = self.row.outcome_message.clone();
        let message = message.unwrap_or_else(|| "interrupted before the device took the change".to_owned());
        let message = if self.is_answered { message } else { self.with_own_timer(message) };
        self.finish(OutcomeState::Failed, Some(message)).await
    }

    /// Adds to the message what may have happened at a device that could have taken the change back unseen.
    fn with_own_timer(&self, message: String) -> String {
        let started = self.row.apply_started_at.unwrap_or(self.row.updated_at);
        let timer_ends = started + TimeDelta::seconds(i64::from(self.hold_secs()));
        if !self.takes_all() || !self.is_held_by_device() || self.app.clock.now() < timer_ends {
            return message;
        }
        format!(
            "{message}; if the device did take it, its own timer has taken it back since, and what others saved \
             meanwhile may have gone with it"
        )
    }

    /// The device accepted the calls. Only a reading through the real path counts now.
    ///
    /// A device answers before it has carried the change out, and an open connection may survive where a new one fails.
    /// So the device gets time first, and is then read over a new connection.
    pub(super) async fn read_back(&mut self) -> Result<(), Error> {
        if !self.settle().await {
            return Ok(());
        }
        self.app.runtime.reconnect(self.row.controller_id);
        let Some(standing) = self.read_in_time().await? else { return Ok(()) };
        // The device answers, so the earlier error is over.
        self.error = None;
        match standing {
            Standing::Unseen if !self.is_answered_well() => self.resolve_unseen().await,
            Standing::Unseen if self.detail.failures().next().is_some() => self.finish_as_answered().await,
            Standing::After | Standing::Adjusted(_) | Standing::Stored(_) | Standing::Unseen
                if self.row.confirm_deadline.is_some() =>
            {
                let advance = Advance {
                    outcome_state: Some(OutcomeState::AwaitingConfirm),
                    outcome_message: Set::To(held_message(&self.row)),
                    ..Advance::default()
                };
                self.to(ApplyStep::Holding, advance).await
            }
            Standing::After | Standing::Adjusted(_) | Standing::Stored(_) | Standing::Unseen => {
                self.to(ApplyStep::Confirming, Advance::default()).await
            }
            Standing::Before => {
                let message = "the device took the calls but not the change".to_owned();
                let message = self.with_own_timer(message);
                self.finish(OutcomeState::Failed, Some(message)).await
            }
            Standing::MovedOn(_) => self.finish_moved_on().await,
            Standing::Other(_) => {
                let differs = || "the device reads back differently from the plan".to_owned();
                let message = self.not_done().unwrap_or_else(differs);
                self.record_step(ApplyStep::Restoring, message).await
            }
        }
    }

    /// Ends an apply of which nothing can be read, and of which the device said that not every change was done.
    async fn finish_as_answered(&mut self) -> Result<(), Error> {
        let is_unchanged = self.detail.failures().count() == specs_of(&self.row).len()
            && self.detail.failures().all(|failed| failed.effect == Effect::None);
        let state = if is_unchanged { OutcomeState::Failed } else { OutcomeState::Partial };
        let message = self.not_done();
        self.finish(state, message).await
    }

    /// Says which changes the device did not carry out, where its answers tell.
    fn not_done(&self) -> Option<String> {
        let first = self.detail.failures().next()?;
        let (count, all) = (self.detail.failures().count(), specs_of(&self.row).len());
        Some(format!("the device did not carry out {count} of {all} changes: {}", first.message))
    }

    /// Ends an apply whose objects others have changed since: taking it back would take their change along.
    pub(super) async fn finish_moved_on(&mut self) -> Result<(), Error> {
        let reason = self.row.outcome_message.take().filter(|reason| !reason.is_empty());
        let reason = reason.map(|reason| format!("{reason}; ")).unwrap_or_default();
        let timer = if self.is_held_by_device() {
            "; the device may take back what it holds when its own time is over"
        } else {
            ""
        };
        let message =
            format!("{reason}others changed what this change wrote, so nothing is written over it{timer}");
        self.finish(OutcomeState::Partial, Some(message)).await
    }

    /// Reads the device until it answers. When it does not answer in time, the change is taken back. Then, or when the
    /// service stops, there is no standing.
    async fn read_in_time(&mut self) -> Result<Option<Standing>, Error> {
        let deadline = self.read_deadline();
        let mut delay = RETRY_FIRST;
        loop {
            match self.compare().await {
                Ok(found) => return Ok(Some(found.standing)),
                Err(error) if self.app.clock.now() < deadline => {
                    tracing::debug!(change.id = %self.row.id, error = %error, "not readable yet");
                    self.error = Some(error);
                    if !self.pause(delay).await {
                        return Ok(None);
                    }
                    delay = (delay * 2).min(Duration::from_secs(2));
                }
                Err(error) => {
                    let message = format!("the controller could not be read after the change: {error}");
                    self.error = Some(error);
                    self.record_step(ApplyStep::Restoring, message).await?;
                    return Ok(None);
                }
            }
        }
    }

    /// Time by which the change must have been seen at the device; after it, the change is taken back.
    fn read_deadline(&self) -> Timestamp {
        let hold = TimeDelta::seconds(i64::from(self.app.config.of::<ChangesSettings>().apply_hold_secs));
        // A task at the device may have used up its time before this step began.
        self.row.confirm_deadline.unwrap_or(self.row.updated_at + hold)
    }
}
