//! Brings an apply forward, step by step, from wherever it stands.
//!
//! Every step is recorded before it begins, and every step can be done again:
//! after a crash the recorded step is simply taken up. Only [`send`] is never
//! repeated; a restart in the middle of it reads the device to learn what
//! became of it. What the change becomes follows from what the device shows,
//! never from what was hoped for.
//!
//! Of the processes that serve a database one owns an apply and brings it
//! forward. It owns it for its [`Term`]: every step is written on condition
//! that the change is still its own, and a process that lost it, or lost its
//! place among the others, sends nothing more to the device.

use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::adapter::{RunOutcome, Standing, Task};
use heddle_core::change::{ApplyStep, NativeCall, OutcomeState, Stage};
use heddle_core::fault::FaultKind;
use heddle_core::{ChangeId, ProcessId, Timestamp};
use heddle_runtime::{Adapter, Approval, Call, CallError, Urgency};
use heddle_store::changes::{self, Advance, ChangeRow};
use heddle_store::{Scope, Set, controllers};
use serde_json::json;

use super::DriverClaim;
use super::apply::{finish, get};
use super::plan::{secrets_of, specs_of};
use crate::adapters::call_for;
use crate::app::SharedApp;
use crate::http::error::Error;
use crate::process::Term;

/// The device's own timer runs this much longer than ours, so that ours acts first.
const DEVICE_MARGIN_SECS: u32 = 15;
/// Between two reads that must agree that the device is unchanged after an answer was lost.
const SETTLE: Duration = Duration::from_millis(700);
/// The same where the device acts seconds after it answered, and cannot be asked to take it back.
const SETTLE_DELAYED: Duration = Duration::from_mins(1);
/// The longest that a task at a device is waited for.
const TASK_MAX_MS: u32 = 30 * 60 * 1000;
const POLL_MIN_MS: u32 = 1000;
const POLL_MAX_MS: u32 = 60_000;
const MESSAGE_CHARS_MAX: usize = 500;
/// How often the confirm window is looked at.
const HOLD_NAP: Duration = Duration::from_millis(500);
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

/// Takes every apply that no living process owns, and takes up those of this process that nobody drives.
pub(crate) async fn recover(app: &SharedApp) -> Result<(), Error> {
    if app.tasks.stopping().is_cancelled() {
        return Ok(());
    }
    let Ok(term) = app.membership.term() else { return Ok(()) };
    let mut tx = app.db.read().await?;
    let ours = changes::owned(&mut tx, term.id).await?;
    let orphaned = changes::orphaned(&mut tx, term.id).await?;
    drop(tx);
    if let Some(gone) = orphaned {
        let mut tx = app.db.write().await?;
        let taken = changes::take_over(&mut tx, term.id, &gone).await?;
        tx.commit().await?;
        for change in &taken {
            // What the device holds belongs to the session of who wrote it.
            app.runtime.forget_write_session(change.controller_id);
            tracing::warn!(change.id = %change.id, step = %change.apply_step, "taking up change {} at step {}", change.id, change.apply_step);
            spawn(app, change.id, Start::Again);
        }
    }
    for change in ours {
        if !app.drivers.has(change.id, change.apply_step) {
            spawn(app, change.id, Start::Again);
        }
    }
    Ok(())
}

/// What a drive answers when the change rests; `None` when another task drives it.
pub(super) type Driving = tokio::task::JoinHandle<Result<Option<Rest>, Error>>;

/// What a drive of this change needs: finds out whether it can start.
pub(super) async fn prepare(app: &SharedApp, row: &ChangeRow) -> Result<(Adapter, Call), Error> {
    let mut tx = app.db.read().await?;
    let target = controllers::find_target(&mut tx, &Scope::everything(), row.controller_id).await?;
    drop(tx);
    let target = target.ok_or(Error::NotFound("controller"))?;
    secrets_of(app, row)?;
    Ok((app.adapter(&target.vendor)?, call_for(&target, &format!("change-{}", row.id))?))
}

/// Drives in the background, what is this process's.
pub(super) fn spawn(app: &SharedApp, id: ChangeId, start: Start) -> Driving {
    match (app.membership.term(), app.drivers.claim(id)) {
        (Ok(term), Some(claim)) => spawn_claimed(app, claim, term, start),
        _ => app.tasks.spawn("staging.drive", async { Ok(None) }),
    }
}

/// The same for who has claimed the change already.
pub(super) fn spawn_claimed(app: &SharedApp, claim: DriverClaim, term: Term, start: Start) -> Driving {
    let app2 = app.clone();
    app.tasks.spawn("staging.drive", async move {
        let id = claim.change;
        let result = drive(&app2, &claim, &term, start).await;
        match &result {
            Err(error) if term.is_over() => {
                tracing::warn!(change.id = %id, error = %error, "apply of change {id} is left to another process");
            }
            Err(error) => {
                app2.drivers.rest(id);
                tracing::error!(change.id = %id, error = %error, "apply of change {id} stopped; it is taken up again");
            }
            Ok(_) => {}
        }
        if app2.tasks.stopping().is_cancelled() {
            give_up(&app2, id, &term).await;
        }
        result
    })
}

/// Leaves a change as it stands, for another process to take up at once.
async fn give_up(app: &SharedApp, id: ChangeId, term: &Term) {
    let given_up = async {
        let mut tx = app.db.write().await?;
        let is_given_up = changes::release(&mut tx, id, term.id).await?;
        tx.commit().await?;
        Ok::<bool, heddle_store::Error>(is_given_up)
    };
    match given_up.await {
        Ok(true) => {
            tracing::info!(change.id = %id, "change {id} is left to another process, or the next start");
        }
        Ok(false) => {}
        Err(error) => {
            tracing::warn!(change.id = %id, error = %error, "change {id} is not given up; others find it by this process's lock");
        }
    }
}

/// One change being brought forward.
struct Drive<'a> {
    app: &'a SharedApp,
    term: &'a Term,
    adapter: Adapter,
    call: Call,
    row: ChangeRow,
    error: Option<CallError>,
}

/// Until the change rests; `None` when there is nothing to bring forward.
async fn drive(
    app: &SharedApp,
    claim: &DriverClaim,
    term: &Term,
    start: Start,
) -> Result<Option<Rest>, Error> {
    let mut tx = app.db.read().await?;
    let row = get(&mut tx, claim.change).await?;
    drop(tx);
    if row.apply_step == ApplyStep::Idle || row.apply_owner != Some(term.id) {
        return Ok(None);
    }
    let (adapter, call) = match prepare(app, &row).await {
        Ok(ready) => ready,
        Err(error) if start == Start::Fresh => {
            let message = format!("nothing was sent: {error}");
            let row = finish(app, &row, OutcomeState::Failed, Some(message)).await?;
            return Ok(Some(Rest { row, error: None }));
        }
        Err(error) => return Err(error),
    };
    let call = Call { urgency: Urgency::UnderWay, ..call };
    let mut drive = Drive { app, term, adapter, call, row, error: None };
    let mut start = start;
    while drive.is_ours() {
        match drive.row.apply_step {
            ApplyStep::Idle => break,
            ApplyStep::Holding => {
                hold(app, &drive.row, term);
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
fn hold(app: &SharedApp, row: &ChangeRow, term: &Term) {
    let Some(claim) = app.drivers.claim_hold(row.id) else { return };
    let (app2, term, deadline) = (app.clone(), term.clone(), row.confirm_deadline);
    app.tasks.spawn("staging.hold", async move {
        let id = claim.change;
        if wait_for_window(&app2, id, &term, deadline).await {
            drop(claim);
            spawn(&app2, id, Start::Again);
        }
    });
}

/// Until the window is over and closed: then true. False when there is nothing to wait for any more.
async fn wait_for_window(app: &SharedApp, id: ChangeId, term: &Term, deadline: Option<Timestamp>) -> bool {
    let stop = app.tasks.stopping();
    loop {
        let left = deadline.map_or(TimeDelta::zero(), |deadline| deadline - app.clock.now());
        // Short naps: tests move the clock, and machines sleep.
        let nap = left.to_std().unwrap_or_default().min(HOLD_NAP);
        tokio::select! {
            () = stop.cancelled() => {
                give_up(app, id, term).await;
                return false;
            }
            () = term.over().cancelled() => return false,
            () = tokio::time::sleep(nap) => {}
        }
        let next = if deadline.is_none_or(|deadline| app.clock.now() >= deadline) {
            close_window(app, id, term.id).await.map(Some)
        } else {
            // Another process may have confirmed it.
            still_holds(app, id, term.id, deadline).await.map(|holds| (!holds).then_some(false))
        };
        match next {
            Ok(Some(is_closed)) => return is_closed,
            Ok(None) => {}
            Err(error) => {
                tracing::error!(change.id = %id, error = %error, "confirm window of change {id} cannot be looked at; trying again");
                tokio::time::sleep(HOLD_NAP).await;
            }
        }
    }
}

async fn still_holds(
    app: &SharedApp,
    id: ChangeId,
    owner: ProcessId,
    deadline: Option<Timestamp>,
) -> Result<bool, Error> {
    let mut tx = app.db.read().await?;
    let row = get(&mut tx, id).await?;
    Ok(row.apply_step == ApplyStep::Holding
        && row.apply_owner == Some(owner)
        && row.confirm_deadline == deadline)
}

/// Ends the window; false when someone confirmed in time.
async fn close_window(app: &SharedApp, id: ChangeId, owner: ProcessId) -> Result<bool, Error> {
    let message = Set::To("not confirmed in time".to_owned());
    let advance = Advance { outcome_message: message, ..Advance::default() };
    let mut tx = app.db.write().await?;
    let (from, to, now) = (ApplyStep::Holding, ApplyStep::Restoring, app.clock.now());
    let moved = changes::advance(&mut tx, id, Some(owner), from, to, &advance, now).await?;
    tx.commit().await?;
    Ok(moved.is_some())
}

/// The change is another process's by now.
fn lost() -> Error {
    Error::Unavailable("the change is brought forward by another process; look at it again".to_owned())
}

impl Drive<'_> {
    /// Whether the change is this process's to bring forward, as far as it was read.
    fn is_ours(&self) -> bool {
        !self.term.is_over() && self.row.apply_owner == Some(self.term.id)
    }

    /// Asks the database whether it still is: before anything is sent.
    async fn fence(&self) -> Result<(), Error> {
        let mut tx = self.app.db.read().await?;
        let is_ours = changes::is_owner(&mut tx, self.row.id, self.term.id).await?;
        if is_ours && !self.term.is_over() { Ok(()) } else { Err(lost()) }
    }

    /// Records the next step. Someone else having moved the change is no error: the loop looks again.
    async fn to(&mut self, step: ApplyStep, advance: Advance) -> Result<(), Error> {
        let mut tx = self.app.db.write().await?;
        let now = self.app.clock.now();
        let (id, owner, from) = (self.row.id, Some(self.term.id), self.row.apply_step);
        let moved = changes::advance(&mut tx, id, owner, from, step, &advance, now).await?;
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
        let hold = TimeDelta::seconds(i64::from(self.app.config.apply_hold_secs));
        // A task at the device may have taken its time before this step began.
        self.row.confirm_deadline.unwrap_or(self.row.updated_at + hold)
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

    /// The longest that the change's features ask for; the usual limit when none does.
    fn time_limit(&self) -> Option<Duration> {
        let features = &self.adapter.description().features;
        let limits = specs_of(&self.row).into_iter().filter_map(|spec| {
            let feature = features.iter().find(|feature| feature.id == spec.feature)?;
            feature.operation(spec.operation)?.time_limit_ms
        });
        limits.max().map(|ms| Duration::from_millis(u64::from(ms)))
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
        // What is already at the device is brought to an end whatever else goes on; sending can be refused.
        let urgency = if stage == Stage::Apply { Urgency::Ordinary } else { Urgency::UnderWay };
        let call = Call { deadline: self.time_limit(), urgency, ..self.call.clone() };
        let approval =
            Approval { stage, native: self.native(), hold_secs: self.hold_secs(), secrets: &secrets };
        self.fence().await?;
        let specs = specs_of(&self.row);
        tokio::select! {
            biased;
            // Dropping the call ends it before its next request.
            () = self.term.over().cancelled() => Err(lost()),
            outcome = self.adapter.run(&call, approval, &specs, token) => Ok(outcome),
        }
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
        let mut task = task.clone();
        // The adapter says how long once, not again and again.
        let first_limit = self.row.task.as_ref().map(|first| first.give_up_after_ms);
        task.give_up_after_ms = first_limit.unwrap_or(task.give_up_after_ms).min(TASK_MAX_MS);
        task.poll_after_ms = task.poll_after_ms.clamp(POLL_MIN_MS, POLL_MAX_MS);
        if let Some(message) = &mut task.message {
            heddle_core::redact::mask_text(message);
            *message = message.chars().take(MESSAGE_CHARS_MAX).collect();
        }
        let advance = Advance {
            outcome_message: task.message.clone().map_or(Set::Keep, Set::To),
            task: Set::To(task),
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
                let holds = self.row.plan.as_ref().is_none_or(|plan| plan.holds);
                if !self.pause(if holds { SETTLE } else { SETTLE_DELAYED }).await {
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
        // It answers: what was in the way before is over.
        self.error = None;
        match standing {
            Standing::After | Standing::Stored(_) if self.row.confirm_deadline.is_some() => {
                let advance = Advance {
                    outcome_state: Some(OutcomeState::AwaitingConfirm),
                    outcome_message: Set::To(
                        "in effect; confirm it in time, else it is taken back".to_owned(),
                    ),
                    ..Advance::default()
                };
                self.to(ApplyStep::Holding, advance).await
            }
            Standing::After | Standing::Stored(_) => self.to(ApplyStep::Confirming, Advance::default()).await,
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

    /// `None` when the service or the term ends meanwhile; the step stays as it is.
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

    /// Sleeps; false when the service or the term ends meanwhile.
    async fn pause(&self, time: Duration) -> bool {
        let stop = self.app.tasks.stopping();
        tokio::select! {
            () = stop.cancelled() => false,
            () = self.term.over().cancelled() => false,
            () = tokio::time::sleep(time) => true,
        }
    }
}

/// Whether the device may answer otherwise a little later.
fn is_unreachable(error: &CallError) -> bool {
    match error {
        CallError::Fault(fault) => {
            matches!(
                fault.kind,
                FaultKind::Connection
                    | FaultKind::Timeout
                    | FaultKind::NotReady
                    | FaultKind::Busy
                    | FaultKind::RateLimit
            )
        }
        CallError::Trap { .. } | CallError::Suspended { .. } | CallError::Overload | CallError::Host(_) => {
            true
        }
    }
}
