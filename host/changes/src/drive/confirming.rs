//! Makes a change permanent. After this point nothing is undone automatically: the device is read, and the record says
//! what it shows.

use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_core::adapter::Standing;
use heddle_core::change::{ApplyStep, OutcomeState, Stage};
use heddle_kernel::http::error::Error;
use heddle_runtime::CallError;
use heddle_store::Set;
use heddle_store::changes::Advance;

use super::calls::{NOT_REPEATABLE, Sent};
use super::{DEVICE_MARGIN_SECS, Drive, is_unreachable};
use crate::detail::named;

/// Why a change of which nothing can be read counts as applied.
const ANSWERED: &str = "the device answered every call with a success; nothing of the change can be read";
/// Beginning of the message when the device refused a confirmation.
const CONFIRM_REFUSED: &str = "the device refused to make";
/// The same where the answer was lost, and the confirmation may not be sent twice.
const CONFIRM_UNKNOWN: &str = "it is not known whether the device made";

impl Drive<'_> {
    /// Asks the device to make the change permanent. Repeating it is safe: the device then has nothing to confirm, and
    /// the comparison that follows shows the result.
    pub(super) async fn confirm(&mut self) -> Result<(), Error> {
        if !self.has_calls(Stage::Confirm) {
            return self.to(ApplyStep::Confirmed, Advance::default()).await;
        }
        match self.run(Stage::Confirm).await? {
            Sent::Done => {
                let advance = Advance { outcome_message: Set::Clear, ..Advance::default() };
                self.to(ApplyStep::Confirmed, advance).await
            }
            Sent::Pending(task) => self.keep_task(&task).await,
            Sent::Failed(failure) if is_unreachable(&failure.error) => {
                self.try_again_later(failure.error).await
            }
            Sent::Failed(failure) => self.confirm_refused(failure.error).await,
        }
    }

    /// A device that still holds the change takes it back by its own timer. Until then the confirmation is tried again.
    pub(super) async fn confirm_refused(&mut self, error: CallError) -> Result<(), Error> {
        let what = if is_not_repeatable(&error) { CONFIRM_UNKNOWN } else { CONFIRM_REFUSED };
        let message = format!("{what} the change permanent: {error}");
        tracing::warn!(change.id = %self.row.id, error = %error, "confirmation refused");
        self.error = Some(error);
        let is_back = self.compare().await.is_ok_and(|found| found.standing == Standing::Before);
        if is_back || !self.is_held_by_device() || self.app.clock.now() >= self.device_timer_ends() {
            return self.record_step(ApplyStep::Confirmed, message).await;
        }
        self.record_step(ApplyStep::Confirming, message).await?;
        self.pause(self.backoff()).await;
        Ok(())
    }

    /// Time at which the device's own timer has run out, whenever the device took the change.
    fn device_timer_ends(&self) -> Timestamp {
        let secs = i64::from(self.hold_secs()) + 2 * i64::from(DEVICE_MARGIN_SECS);
        self.row.apply_started_at.unwrap_or(self.row.updated_at) + TimeDelta::seconds(secs)
    }

    /// Ends the apply with the state that the device shows after a confirmation was sent.
    pub(super) async fn read_confirmed(&mut self) -> Result<(), Error> {
        let seen_before = self.detail.foreign.clone();
        let standing = match self.compare().await {
            Ok(found) => found.standing,
            Err(error) => return self.try_again_later(error).await,
        };
        // Recorded with the step, so that it survives a restart.
        let refusal =
            self.row.outcome_message.clone().filter(|message| {
                message.starts_with(CONFIRM_REFUSED) || message.starts_with(CONFIRM_UNKNOWN)
            });
        match standing {
            Standing::After | Standing::Adjusted(_) => self.finish_applied(refusal).await,
            Standing::Unseen if refusal.is_some() => self.finish(OutcomeState::Unknown, refusal).await,
            Standing::Unseen => self.finish_applied(Some(ANSWERED.to_owned())).await,
            Standing::Stored(needs) => {
                let message = format!("stored at the device; in effect only after: {}", needs.join(", "));
                self.finish_applied(Some(message)).await
            }
            Standing::Before => {
                let reason = self.row.outcome_message.clone().unwrap_or_else(|| {
                    "the device had taken the change back before it was confirmed".to_owned()
                });
                self.note_lost(&seen_before);
                self.finish_taken_back_by_device(reason).await
            }
            // The whole change was in effect before it was confirmed, so a difference was made since.
            Standing::MovedOn(_) | Standing::Other(_)
                if self.detail.items.iter().any(|word| word == "before") =>
            {
                let message = "a part of the change is not in effect any more, although it was confirmed";
                self.finish(OutcomeState::Partial, Some(message.to_owned())).await
            }
            Standing::MovedOn(_) | Standing::Other(_) if refusal.is_some() => {
                self.finish(OutcomeState::Partial, refusal).await
            }
            Standing::MovedOn(_) | Standing::Other(_) => {
                let warning = "what this change wrote was changed by others before it was confirmed";
                self.detail.add_warnings([warning.to_owned()]);
                self.finish_applied(Some(format!("{warning}; the difference is in the detail"))).await
            }
        }
    }

    async fn finish_applied(&mut self, message: Option<String>) -> Result<(), Error> {
        self.error = None;
        self.detail.warn_of_foreign();
        let foreign = named(&self.detail.foreign);
        let message = match (message, foreign.is_empty()) {
            (Some(message), true) => Some(message),
            (Some(message), false) => Some(format!("{message}; others changed meanwhile: {foreign}")),
            (None, true) => None,
            (None, false) => Some(format!("others changed meanwhile: {foreign}")),
        };
        self.finish(OutcomeState::Applied, message).await
    }
}

fn is_not_repeatable(error: &CallError) -> bool {
    matches!(error, CallError::Fault(fault) if fault.code.as_deref() == Some(NOT_REPEATABLE))
}
