//! Brings an apply forward, step by step, from wherever it stands.
//!
//! Every step is recorded before it begins, and every step can be done again:
//! after a crash the recorded step is simply taken up. Only [`send`] is never
//! repeated; a restart in the middle of it reads the device to learn what
//! became of it. What the change becomes follows from what the device shows,
//! never from what was hoped for.

use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::adapter::{RunOutcome, Standing, Task};
use heddle_core::change::{ApplyStep, NativeCall, OutcomeState, Stage};
use heddle_core::fault::FaultKind;
use heddle_core::{ChangeId, Timestamp};
use heddle_runtime::{Adapter, Approval, Call, CallError};
use heddle_store::changes::{self, Advance, ChangeRow};
use heddle_store::{Scope, Set, controllers};
use serde_json::json;

use super::apply::{finish, get};
use super::plan::{secrets_of, specs_of};
use crate::adapters::call_for;
use crate::app::SharedApp;
use crate::http::error::Error;

/// The device's own timer runs this much longer than ours, so that ours acts first.
const DEVICE_MARGIN_SECS: u32 = 15;
/// Between two reads that must agree that the device is unchanged after an answer was lost.
const SETTLE: Duration = Duration::from_millis(700);
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(15);

/// How driving came to rest.
#[derive(Debug)]
pub(super) struct Rest {
    pub(super) row: ChangeRow,
    /// Why the last call failed, when one did.
    pub(super) error: Option<CallError>,
}

/// How a driver begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// The change was just claimed; nothing was sent yet.
    Fresh,
    /// What was sent before is not known.
    Again,
}

/// Takes up every apply that was under way when the process ended.
pub(crate) async fn recover(app: &SharedApp) -> Result<(), Error> {
    let mut tx = app.db.read().await?;
    let under_way = changes::under_way(&mut tx).await?;
    drop(tx);
    for row in under_way {
        tracing::warn!(change.id = %row.id, step = %row.apply_step, "taking up change {} at step {}", row.id, row.apply_step);
        spawn(app, row.id, Start::Again);
    }
    Ok(())
}

/// Drives in the background; the handle answers when the change rests.
pub(super) fn spawn(
    app: &SharedApp,
    id: ChangeId,
    start: Start,
) -> tokio::task::JoinHandle<Result<Option<Rest>, Error>> {
    let app2 = app.clone();
    app.tasks.spawn("staging.drive", async move {
        let result = drive(&app2, id, start).await;
        if let Err(error) = &result {
            tracing::error!(change.id = %id, error = %error, "apply of change {id} stopped; it is taken up at the next start or by verify");
        }
        result
    })
}

/// One change being brought forward.
struct Drive<'a> {
    app: &'a SharedApp,
    adapter: Adapter,
    call: Call,
    row: ChangeRow,
    error: Option<CallError>,
}

/// Until the change rests; `None` when another task is driving it.
async fn drive(app: &SharedApp, id: ChangeId, start: Start) -> Result<Option<Rest>, Error> {
    let Some(_claim) = app.drivers.claim(id) else { return Ok(None) };
    let mut tx = app.db.read().await?;
    let row = get(&mut tx, id).await?;
    let target = controllers::find_target(&mut tx, &Scope::everything(), row.controller_id).await?;
    drop(tx);
    let target = target.ok_or(Error::NotFound("controller"))?;
    let adapter = app.adapter(&target.vendor)?;
    let call = call_for(&target, &format!("change-{id}"))?;
    let mut drive = Drive { app, adapter, call, row, error: None };
    let mut start = start;
    loop {
        match drive.row.apply_step {
            ApplyStep::Idle => break,
            ApplyStep::Holding => {
                hold(app, &drive.row);
                break;
            }
            ApplyStep::Sending if start == Start::Fresh => drive.send().await?,
            ApplyStep::Sending => drive.to(ApplyStep::Resolving, Advance::default()).await?,
            ApplyStep::Polling => drive.poll().await?,
            ApplyStep::Resolving => drive.resolve().await?,
            ApplyStep::ReadingBack => drive.read_back().await?,
            ApplyStep::Confirming => drive.confirm().await?,
            ApplyStep::Restoring => drive.restore().await?,
        }
        start = Start::Again;
        if app.tasks.stopping().is_cancelled() {
            break;
        }
    }
    Ok(Some(Rest { row: drive.row, error: drive.error }))
}

/// Waits for the confirm window to end; the change is taken back unless someone was faster.
fn hold(app: &SharedApp, row: &ChangeRow) {
    let (app2, id, deadline) = (app.clone(), row.id, row.confirm_deadline);
    app.tasks.spawn("staging.hold", async move {
        let stop = app2.tasks.stopping();
        loop {
            let left = deadline.map_or(TimeDelta::zero(), |deadline| deadline - app2.clock.now());
            let Ok(left) = left.to_std() else { break };
            if left.is_zero() {
                break;
            }
            tokio::select! {
                () = stop.cancelled() => return,
                // Short naps: tests move the clock, and machines sleep.
                () = tokio::time::sleep(left.min(Duration::from_millis(500))) => {}
            }
        }
        let message = "not confirmed in time".to_owned();
        let advance = Advance { outcome_message: Set::To(message), ..Advance::default() };
        let moved = async {
            let mut tx = app2.db.write().await?;
            let row = changes::advance(&mut tx, id, ApplyStep::Holding, ApplyStep::Restoring, &advance, app2.clock.now()).await?;
            tx.commit().await?;
            Ok::<_, Error>(row)
        };
        match moved.await {
            Ok(Some(_)) => {
                spawn(&app2, id, Start::Again);
            }
            Ok(None) => {}
            Err(error) => tracing::error!(change.id = %id, error = %error, "confirm window of change {id} could not be closed"),
        }
    });
}

impl Drive<'_> {
    /// Records the next step. Someone else having moved the change is no error: the loop looks again.
    async fn to(&mut self, step: ApplyStep, advance: Advance) -> Result<(), Error> {
        let mut tx = self.app.db.write().await?;
        let now = self.app.clock.now();
        let moved = changes::advance(&mut tx, self.row.id, self.row.apply_step, step, &advance, now).await?;
        self.row = match moved {
            Some(row) => row,
            None => get(&mut tx, self.row.id).await?,
        };
        tx.commit().await?;
        Ok(())
    }

    async fn finish(&mut self, state: OutcomeState, message: Option<String>) -> Result<(), Error> {
        self.row = finish(self.app, &self.row, state, message).await?;
        Ok(())
    }

    /// Seconds a device shall hold the change by itself.
    fn hold_secs(&self) -> u32 {
        let window = self.row.confirm_within_secs.and_then(|secs| u32::try_from(secs).ok());
        window.unwrap_or(self.app.config.apply_hold_secs) + DEVICE_MARGIN_SECS
    }

    /// Until then the change must have been seen at the device, else it is taken back.
    fn read_deadline(&self) -> Timestamp {
        let started = self.row.apply_started_at.unwrap_or(self.row.updated_at);
        self.row
            .confirm_deadline
            .unwrap_or(started + TimeDelta::seconds(i64::from(self.app.config.apply_hold_secs)))
    }

    /// Lets the device carry the change out; false when the service stops meanwhile.
    async fn settle(&self) -> bool {
        let Some(plan) = self.row.plan.as_ref().filter(|plan| !plan.native.is_empty()) else { return true };
        let times = if plan.lockout_risk { 3 } else { 1 };
        let until =
            self.row.updated_at + TimeDelta::milliseconds(i64::from(self.app.config.apply_settle_ms) * times);
        match (until - self.app.clock.now()).to_std() {
            Ok(left) => self.pause(left).await,
            Err(_) => true,
        }
    }

    fn has_calls(&self, stage: Stage) -> bool {
        self.native().iter().any(|call| call.stage == stage)
    }

    fn native(&self) -> &[NativeCall] {
        self.row.plan.as_ref().map_or(&[], |plan| &plan.native)
    }

    async fn run(&self, stage: Stage) -> Result<Result<RunOutcome, heddle_runtime::RunFailure>, Error> {
        let secrets = secrets_of(self.app, &self.row)?;
        let token = self.row.plan_token.as_deref().unwrap_or_default();
        let approval =
            Approval { stage, native: self.native(), hold_secs: self.hold_secs(), secrets: &secrets };
        Ok(self.adapter.run(&self.call, approval, &specs_of(&self.row), token).await)
    }

    async fn compare(&self) -> Result<Standing, CallError> {
        let token = self.row.plan_token.as_deref().unwrap_or_default();
        self.adapter.compare(&self.call, &specs_of(&self.row), token).await
    }

    /// Sends the reviewed calls. Done at most once per claim.
    async fn send(&mut self) -> Result<(), Error> {
        if !self.has_calls(Stage::Apply) {
            return self.to(ApplyStep::ReadingBack, Advance::default()).await;
        }
        match self.run(Stage::Apply).await? {
            Ok(RunOutcome::Done(completion)) => {
                let detail = json!({ "warnings": completion.warnings, "needs": completion.needs });
                let advance = Advance { outcome_detail: Set::To(detail), ..Advance::default() };
                self.to(ApplyStep::ReadingBack, advance).await
            }
            Ok(RunOutcome::Pending(task)) => self.keep_task(&task).await,
            Err(failure) => {
                let message = failure.error.to_string();
                tracing::warn!(change.id = %self.row.id, wrote = failure.wrote, error = %message, "apply failed");
                self.error = Some(failure.error);
                if failure.wrote {
                    let advance = Advance { outcome_message: Set::To(message), ..Advance::default() };
                    self.to(ApplyStep::Resolving, advance).await
                } else {
                    // The host itself saw that no write left it.
                    self.finish(OutcomeState::Failed, Some(message)).await
                }
            }
        }
    }

    async fn keep_task(&mut self, task: &Task) -> Result<(), Error> {
        let advance = Advance {
            task: Set::To(task.clone()),
            outcome_message: task.message.clone().map_or(Set::Keep, Set::To),
            ..Advance::default()
        };
        self.to(ApplyStep::Polling, advance).await
    }

    /// Asks the device how its task goes, until it is done or given up.
    async fn poll(&mut self) -> Result<(), Error> {
        let Some(task) = self.row.task.clone() else {
            return self.to(ApplyStep::Resolving, Advance::default()).await;
        };
        let started = self.row.apply_started_at.unwrap_or(self.row.updated_at);
        let give_up_at = started + TimeDelta::milliseconds(i64::from(task.give_up_after_ms));
        if !self.pause(Duration::from_millis(u64::from(task.poll_after_ms))).await {
            return Ok(());
        }
        match self.adapter.poll(&self.call, &task.token).await {
            Ok(RunOutcome::Done(completion)) => {
                let detail = json!({ "warnings": completion.warnings, "needs": completion.needs });
                let advance = Advance { outcome_detail: Set::To(detail), ..Advance::default() };
                self.to(ApplyStep::ReadingBack, advance).await
            }
            Ok(RunOutcome::Pending(task)) if self.app.clock.now() < give_up_at => self.keep_task(&task).await,
            Err(error) if self.app.clock.now() < give_up_at => {
                tracing::debug!(change.id = %self.row.id, error = %error, "task gives no answer yet");
                Ok(())
            }
            Ok(RunOutcome::Pending(_)) => {
                self.finish(OutcomeState::Unknown, Some("the device did not finish in time".to_owned())).await
            }
            Err(error) => {
                let message = format!("the device did not come back in time: {error}");
                self.error = Some(error);
                self.finish(OutcomeState::Unknown, Some(message)).await
            }
        }
    }

    /// Reads the device until it shows what became of the calls.
    async fn resolve(&mut self) -> Result<(), Error> {
        let Some(standing) = self.read_until_answered().await? else { return Ok(()) };
        match standing {
            Standing::Before => {
                // What was in flight when the answer was lost may still arrive.
                if !self.pause(SETTLE).await {
                    return Ok(());
                }
                match self.read_until_answered().await? {
                    Some(Standing::Before) => {
                        let message = self.row.outcome_message.clone();
                        let message = message
                            .unwrap_or_else(|| "interrupted before the device took the change".to_owned());
                        self.finish(OutcomeState::Failed, Some(message)).await
                    }
                    _ => Ok(()),
                }
            }
            Standing::After | Standing::Stored(_) => {
                let window_is_over =
                    self.row.confirm_deadline.is_some_and(|deadline| self.app.clock.now() >= deadline);
                if window_is_over {
                    let message = "not confirmed in time".to_owned();
                    let advance = Advance { outcome_message: Set::To(message), ..Advance::default() };
                    self.to(ApplyStep::Restoring, advance).await
                } else {
                    self.to(ApplyStep::ReadingBack, Advance::default()).await
                }
            }
            Standing::Other(difference) => {
                let advance = Advance {
                    outcome_message: Set::To("the device took only a part of the change".to_owned()),
                    outcome_detail: Set::To(json!({ "difference": difference })),
                    ..Advance::default()
                };
                self.to(ApplyStep::Restoring, advance).await
            }
        }
    }

    /// The calls were taken; only what is read back through the real path counts.
    ///
    /// A device answers before it has carried the change out, and an open
    /// connection may live on where a new one finds no way: so it gets time
    /// first, and is then read over a new connection.
    async fn read_back(&mut self) -> Result<(), Error> {
        if !self.settle().await {
            return Ok(());
        }
        self.app.runtime.reconnect(self.row.controller_id);
        let deadline = self.read_deadline();
        let mut delay = RETRY_FIRST;
        let standing = loop {
            match self.compare().await {
                Ok(standing) => break standing,
                Err(error) if self.app.clock.now() < deadline => {
                    tracing::debug!(change.id = %self.row.id, error = %error, "not readable yet");
                    self.error = Some(error);
                    if !self.pause(delay).await {
                        return Ok(());
                    }
                    delay = (delay * 2).min(Duration::from_secs(2));
                }
                Err(error) => {
                    let message = format!("the controller could not be read after the change: {error}");
                    self.error = Some(error);
                    let advance = Advance { outcome_message: Set::To(message), ..Advance::default() };
                    return self.to(ApplyStep::Restoring, advance).await;
                }
            }
        };
        match standing {
            Standing::After | Standing::Stored(_) if self.row.confirm_deadline.is_some() => {
                self.error = None;
                let advance = Advance {
                    outcome_state: Some(OutcomeState::AwaitingConfirm),
                    outcome_message: Set::To(
                        "in effect; confirm it in time, else it is taken back".to_owned(),
                    ),
                    ..Advance::default()
                };
                self.to(ApplyStep::Holding, advance).await
            }
            Standing::After | Standing::Stored(_) => {
                self.error = None;
                self.to(ApplyStep::Confirming, Advance::default()).await
            }
            Standing::Before => {
                self.finish(
                    OutcomeState::Failed,
                    Some("the device took the calls but not the change".to_owned()),
                )
                .await
            }
            Standing::Other(difference) => {
                let advance = Advance {
                    outcome_message: Set::To("the device reads back differently from the plan".to_owned()),
                    outcome_detail: Set::To(json!({ "difference": difference })),
                    ..Advance::default()
                };
                self.to(ApplyStep::Restoring, advance).await
            }
        }
    }

    /// Makes the change permanent, and believes it only when the device says so and shows it.
    async fn confirm(&mut self) -> Result<(), Error> {
        if self.has_calls(Stage::Confirm)
            && let Err(failure) = self.run(Stage::Confirm).await?
        {
            if is_unreachable(&failure.error) {
                return self.try_again_later(failure.error).await;
            }
            let message = format!("the device refused to make the change permanent: {}", failure.error);
            self.error = Some(failure.error);
            let advance = Advance { outcome_message: Set::To(message), ..Advance::default() };
            return self.to(ApplyStep::Restoring, advance).await;
        }
        match self.compare().await {
            Ok(Standing::After | Standing::Stored(_)) => self.finish(OutcomeState::Applied, None).await,
            Ok(Standing::Before) => {
                let message = "the device took the change back before it was confirmed".to_owned();
                self.finish(OutcomeState::Reverted, Some(message)).await
            }
            Ok(Standing::Other(difference)) => {
                let advance = Advance {
                    outcome_message: Set::To("the device changed while it was being confirmed".to_owned()),
                    outcome_detail: Set::To(json!({ "difference": difference })),
                    ..Advance::default()
                };
                self.to(ApplyStep::Restoring, advance).await
            }
            Err(error) => self.try_again_later(error).await,
        }
    }

    /// Brings the state before back: the device's own way first, then by writing.
    async fn restore(&mut self) -> Result<(), Error> {
        if self.has_calls(Stage::Undo)
            && let Err(failure) = self.run(Stage::Undo).await?
            && is_unreachable(&failure.error)
        {
            return self.try_again_later(failure.error).await;
        }
        let reason = self.row.outcome_message.clone().unwrap_or_default();
        match self.compare().await {
            Ok(Standing::Before) => self.finish(OutcomeState::Reverted, Some(reason)).await,
            Ok(Standing::After | Standing::Stored(_)) if self.has_calls(Stage::Restore) => {
                if let Err(failure) = self.run(Stage::Restore).await? {
                    if is_unreachable(&failure.error) {
                        return self.try_again_later(failure.error).await;
                    }
                    let message =
                        format!("{reason}; bringing the state before back was refused: {}", failure.error);
                    self.error = Some(failure.error);
                    return self.finish(OutcomeState::Partial, Some(message)).await;
                }
                match self.compare().await {
                    Ok(Standing::Before) => self.finish(OutcomeState::Reverted, Some(reason)).await,
                    Ok(_) => {
                        let message = format!("{reason}; the state before could not be brought back");
                        self.finish(OutcomeState::Partial, Some(message)).await
                    }
                    Err(error) => self.try_again_later(error).await,
                }
            }
            Ok(_) => {
                let message = format!("{reason}; the state before could not be brought back");
                self.finish(OutcomeState::Partial, Some(message)).await
            }
            Err(error) => self.try_again_later(error).await,
        }
    }

    /// Keeps the step and says that the device gives no answer; never gives up by itself.
    async fn try_again_later(&mut self, error: CallError) -> Result<(), Error> {
        tracing::warn!(change.id = %self.row.id, step = %self.row.apply_step, error = %error, "no answer; trying again");
        self.error = Some(error);
        self.show_unknown().await?;
        self.pause(self.backoff()).await;
        Ok(())
    }

    /// The longer it lasts, the rarer the tries.
    fn backoff(&self) -> Duration {
        let since = self.app.clock.now() - self.row.apply_started_at.unwrap_or(self.row.updated_at);
        let tenth = since.to_std().unwrap_or_default() / 10;
        tenth.clamp(RETRY_FIRST, RETRY_MAX)
    }

    async fn show_unknown(&mut self) -> Result<(), Error> {
        if self.row.outcome_state == OutcomeState::Unknown {
            return Ok(());
        }
        let advance = Advance { outcome_state: Some(OutcomeState::Unknown), ..Advance::default() };
        self.to(self.row.apply_step, advance).await
    }

    /// `None` when the service stops meanwhile; the step stays as it is.
    async fn read_until_answered(&mut self) -> Result<Option<Standing>, Error> {
        loop {
            match self.compare().await {
                Ok(standing) => return Ok(Some(standing)),
                Err(error) => {
                    self.error = Some(error);
                    let started = self.row.apply_started_at.unwrap_or(self.row.updated_at);
                    if self.app.clock.now() > started + TimeDelta::seconds(5) {
                        self.show_unknown().await?;
                    }
                    if !self.pause(self.backoff()).await {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Sleeps; false when the service stops meanwhile.
    async fn pause(&self, time: Duration) -> bool {
        let stop = self.app.tasks.stopping();
        tokio::select! {
            () = stop.cancelled() => false,
            () = tokio::time::sleep(time) => true,
        }
    }
}

/// Whether the device gave no answer at all.
fn is_unreachable(error: &CallError) -> bool {
    match error {
        CallError::Fault(fault) => {
            matches!(fault.kind, FaultKind::Connection | FaultKind::Timeout | FaultKind::NotReady)
        }
        CallError::Trap { .. } | CallError::Suspended { .. } | CallError::Overload | CallError::Host(_) => {
            true
        }
    }
}
