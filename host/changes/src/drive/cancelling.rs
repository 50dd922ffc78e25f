//! Ends the job that runs at the device, when a person asked for it.
//!
//! The calls for that are sent at most once. What they are answered with decides nothing: the job is polled on, and its
//! end decides how the apply goes on.

use chrono::TimeDelta;
use heddle_core::change::{ApplyStep, Stage};
use heddle_core::fault::{Effect, Fault, FaultKind};
use heddle_kernel::http::error::Error;
use heddle_store::changes::Advance;

use super::calls::{Sent, StageFailure};
use super::{Drive, get, is_unreachable};
use crate::detail::Detail;
use crate::job::{has_left, is_cancelled};

/// How long the host tries to reach the device with a request to cancel.
const TRIED_FOR: TimeDelta = TimeDelta::minutes(1);
/// Code of the fault of an apply that ended because a person cancelled it.
const CANCELLED: &str = "cancelled";

impl Drive<'_> {
    /// Sends the calls that end the running job, and goes back to polling it.
    pub(super) async fn cancel(&mut self) -> Result<(), Error> {
        if self.row.sent(Stage::Abort).is_in_doubt() {
            return self.poll_on("it is not known whether the device got the request to cancel").await;
        }
        if !self.is_of_this_adapter() {
            return self.poll_on("the adapter was replaced, so the request to cancel was not sent").await;
        }
        match self.run(Stage::Abort).await? {
            Sent::Done | Sent::Pending(_) => self.to(ApplyStep::Polling, Advance::default()).await,
            Sent::Failed(failure)
                if !failure.wrote && is_unreachable(&failure.error) && self.may_be_cancelled_later() =>
            {
                tracing::warn!(change.id = %self.row.id, error = %failure.error, "request to cancel not sent; trying again");
                self.pause(self.backoff()).await;
                Ok(())
            }
            Sent::Failed(StageFailure { error, wrote }) => {
                let what = if wrote {
                    "the device did not take the request to cancel"
                } else {
                    "the request to cancel was not sent and may be repeated"
                };
                self.poll_on(&format!("{what}: {error}")).await
            }
        }
    }

    /// Whether a call that did not leave is tried again. Meanwhile nothing asks how the job is.
    fn may_be_cancelled_later(&self) -> bool {
        let asked = self.row.attempts.last().and_then(|last| last.cancellations.last());
        asked.is_some_and(|asked| self.app.clock.now() < asked.requested_at + TRIED_FOR)
            && self.is_task_in_time()
    }

    /// Goes back to polling the job, with a warning.
    async fn poll_on(&mut self, warning: &str) -> Result<(), Error> {
        self.detail.add_warnings([warning.to_owned()]);
        self.detail.bound();
        self.to(ApplyStep::Polling, Advance::default()).await
    }

    /// Reads the change again, because another task moved it.
    pub(super) async fn look_again(&mut self) -> Result<(), Error> {
        let mut tx = self.app.db.single().await?;
        self.row = get(&mut tx, self.row.id).await?;
        self.detail = Detail::of(&self.row);
        Ok(())
    }

    /// Whether a person cancelled the job that is being polled.
    pub(super) fn is_cancelled(&self) -> bool {
        is_cancelled(&self.row)
    }

    /// Whether the device was asked to end the job that is being polled.
    pub(super) fn is_told_to_cancel(&self) -> bool {
        self.is_cancelled() && has_left(&self.row, Stage::Abort)
    }
}

/// The fault of a job that ended badly after it was cancelled.
pub(super) fn as_cancelled(fault: Fault) -> Fault {
    Fault { message: format!("cancelled: {}", fault.message), ..fault }
}

/// The fault of a stage that is not sent to its end, because a person cancelled it.
pub(super) fn cut_short() -> Fault {
    Fault::new(FaultKind::Generic, "cancelled: the calls behind the job that was running were not sent")
        .with_code(CANCELLED)
        .with_effect(Effect::Certain)
}
