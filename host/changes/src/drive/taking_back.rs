//! Takes a change back, and spares what others wrote where the device allows it.
//!
//! The device is read first. Its own rollback is exact, but may also take back everything that was saved since the
//! apply. When others did save something, the state that the device holds is made permanent, and then only the plan's
//! own part is written back. When the device refuses that before anything is written, it takes everything back. Each
//! step is recorded before it begins; a restart continues to the same end.

use heddle_core::adapter::{Comparison, Standing};
use heddle_core::change::{ApplyStep, OutcomeState, Stage};
use heddle_kernel::http::error::Error;
use heddle_runtime::CallError;
use heddle_store::changes::Advance;

use super::calls::Sent;
use super::{Drive, is_unreachable};
use crate::detail::named;
use crate::job::has_left;

impl Drive<'_> {
    /// Reads the device and chooses the rollback that takes back no change of others.
    pub(super) async fn choose_way_back(&mut self) -> Result<(), Error> {
        let seen_before = self.detail.foreign.clone();
        let takes_all = self.row.plan.as_ref().is_some_and(|plan| plan.undo_takes_all);
        let found = match self.compare().await {
            Ok(found) => found,
            Err(error) if takes_all && is_unreachable(&error) => return self.try_again_later(error).await,
            Err(error) => {
                tracing::warn!(change.id = %self.row.id, error = %error, "not readable; taken back unseen");
                return self.to(ApplyStep::Undoing, Advance::default()).await;
            }
        };
        let is_whole =
            matches!(found.standing, Standing::After | Standing::Adjusted(_) | Standing::Stored(_));
        let next = match found.standing {
            Standing::Before => {
                let reason = self.reason();
                self.note_lost(&seen_before);
                return self.finish_taken_back_by_device(reason).await;
            }
            Standing::MovedOn(_) => return self.finish_moved_on().await,
            Standing::Unseen if !self.has_calls(Stage::Undo) && !self.has_calls(Stage::Restore) => {
                return self.resolve_unseen().await;
            }
            // The restore first checks that it can continue from the present state, and then makes that state
            // permanent. A part that differs from the plan could not be written back after that.
            _ if takes_all && is_whole && !found.foreign.is_empty() && self.has_calls(Stage::Restore) => {
                ApplyStep::WritingBack
            }
            _ if self.has_calls(Stage::Undo) => ApplyStep::Undoing,
            _ => ApplyStep::WritingBack,
        };
        self.to(next, Advance::default()).await
    }

    /// Whether calls of the stage left, and others did not.
    fn is_broken_off(&self, stage: Stage) -> bool {
        has_left(&self.row, stage) && self.has_more(stage)
    }

    fn reason(&self) -> String {
        self.row.outcome_message.clone().unwrap_or_default()
    }

    /// Requests the device's own rollback. It has no effect when there is nothing to undo; the comparison shows the
    /// result.
    pub(super) async fn undo(&mut self) -> Result<(), Error> {
        self.has_undone = true;
        if self.has_calls(Stage::Undo) {
            match self.run(Stage::Undo).await? {
                Sent::Done => {}
                Sent::Pending(task) => return self.keep_task(&task).await,
                Sent::Failed(failure) if is_unreachable(&failure.error) => {
                    return self.try_again_later(failure.error).await;
                }
                Sent::Failed(failure) => return self.stage_failed(ApplyStep::Undoing, failure.error).await,
            }
        }
        self.to(ApplyStep::WritingBack, Advance::default()).await
    }

    /// Makes the state of the device permanent, so that only the plan's own part is taken back.
    pub(super) async fn keep(&mut self) -> Result<(), Error> {
        if self.has_calls(Stage::Confirm) {
            match self.run(Stage::Confirm).await? {
                Sent::Done => {}
                Sent::Pending(task) => return self.keep_task(&task).await,
                Sent::Failed(failure) if is_unreachable(&failure.error) => {
                    return self.try_again_later(failure.error).await;
                }
                Sent::Failed(failure) => return self.stage_failed(ApplyStep::Keeping, failure.error).await,
            }
        }
        self.to(ApplyStep::WritingBack, Advance::default()).await
    }

    /// Handles the final refusal of a stage after the apply.
    pub(super) async fn stage_failed(&mut self, step: ApplyStep, error: CallError) -> Result<(), Error> {
        tracing::warn!(change.id = %self.row.id, step = %step, error = %error, "refused by the device");
        match step {
            ApplyStep::Confirming => self.confirm_refused(error).await,
            // The device then rolls back as a whole.
            ApplyStep::Keeping => self.to(ApplyStep::Undoing, Advance::default()).await,
            ApplyStep::Undoing => self.to(ApplyStep::WritingBack, Advance::default()).await,
            _ => {
                let reason = self.reason();
                let message = format!("{reason}; bringing the state before back was refused: {error}");
                self.error = Some(error);
                self.record_step(ApplyStep::Restored, message).await
            }
        }
    }

    /// Writes the earlier state, unless the device shows it already.
    pub(super) async fn write_back(&mut self) -> Result<(), Error> {
        let seen_before = self.detail.foreign.clone();
        let reason = self.reason();
        let found = self.compare().await;
        self.note_lost(&seen_before);
        match found {
            // A restore that was broken off may have written everything and not activated it: it is sent to its end.
            Ok(found) if found.standing == Standing::Before && !self.is_broken_off(Stage::Restore) => {
                return self.finish_reverted(reason).await;
            }
            // Once calls of the restore left, the difference may be their own.
            Ok(Comparison { standing: Standing::MovedOn(_), .. }) if !has_left(&self.row, Stage::Restore) => {
                return self.finish_moved_on().await;
            }
            Ok(Comparison { standing: Standing::Unseen, .. }) if !self.has_calls(Stage::Restore) => {
                return self.resolve_unseen().await;
            }
            Ok(_) if !self.has_calls(Stage::Restore) => {
                let message = format!("{reason}; the state before could not be brought back");
                return self.finish(OutcomeState::Partial, Some(message)).await;
            }
            Ok(_) => {}
            Err(error) => return self.try_again_later(error).await,
        }
        match self.run(Stage::Restore).await? {
            Sent::Done => self.to(ApplyStep::Restored, Advance::default()).await,
            Sent::Pending(task) => self.keep_task(&task).await,
            Sent::Failed(failure) if is_unreachable(&failure.error) => {
                self.is_fresh = !failure.wrote;
                self.try_again_later(failure.error).await
            }
            // Refused before anything was written: the device still holds the change, and can roll back as a whole.
            Sent::Failed(failure)
                if !failure.wrote && self.takes_all() && self.has_calls(Stage::Undo) && !self.has_undone =>
            {
                tracing::warn!(change.id = %self.row.id, error = %failure.error, "not written back; undone as a whole");
                self.to(ApplyStep::Undoing, Advance::default()).await
            }
            Sent::Failed(failure) => self.stage_failed(ApplyStep::WritingBack, failure.error).await,
        }
    }

    /// Reads whether the device shows the earlier state again.
    pub(super) async fn read_restored(&mut self) -> Result<(), Error> {
        let reason = self.reason();
        match self.compare().await {
            // What was written back may be stored only, while a call that was to put it into effect was refused.
            Ok(found) if found.standing == Standing::Before && !self.is_broken_off(Stage::Restore) => {
                self.finish_reverted(reason).await
            }
            Ok(Comparison { standing: Standing::Unseen, .. }) => {
                let message = format!("{reason}; whether the state before is back cannot be read");
                self.finish(OutcomeState::Unknown, Some(message)).await
            }
            Ok(_) => {
                let message = if self.error.is_some() {
                    reason
                } else {
                    format!("{reason}; the state before could not be brought back")
                };
                self.finish(OutcomeState::Partial, Some(message)).await
            }
            Err(error) => self.try_again_later(error).await,
        }
    }

    /// Stores changes that others had saved and that are gone now.
    pub(super) fn note_lost(&mut self, seen_before: &[String]) {
        if !self.takes_all() {
            return;
        }
        let is_gone =
            |what: &&String| !self.detail.foreign.contains(what) && !self.detail.lost.contains(what);
        let lost: Vec<String> = seen_before.iter().filter(is_gone).cloned().collect();
        self.detail.lost.extend(lost);
        self.detail.bound();
    }

    pub(super) fn takes_all(&self) -> bool {
        self.row.plan.as_ref().is_some_and(|plan| plan.undo_takes_all)
    }

    /// Ends the apply when the earlier state is back although this drive did not restore it: the device's own timer
    /// did.
    pub(super) async fn finish_taken_back_by_device(&mut self, reason: String) -> Result<(), Error> {
        if !self.takes_all() || !self.is_held_by_device() {
            return self.finish_reverted(reason).await;
        }
        let message = format!(
            "{reason}; the device shows the state before, by its own timer or by somebody else; what others saved since \
             the apply may have gone with it"
        );
        self.finish_reverted(message).await
    }

    /// Ends the apply when the earlier state is back. Changes of others that are gone with the change are named.
    pub(super) async fn finish_reverted(&mut self, reason: String) -> Result<(), Error> {
        let message = if self.detail.lost.is_empty() {
            reason
        } else {
            format!("{reason}; taken back with it: {}", named(&self.detail.lost))
        };
        self.error = None;
        self.finish(OutcomeState::Reverted, Some(message)).await
    }
}
