//! Drives an apply, step by step, from its present step.
//!
//! Every step is recorded before it begins, and every step can be repeated: after a crash the recorded step is taken up
//! again. The exception is a call of the plan: it is recorded before it leaves. It is sent again only if the plan calls it
//! repeatable, and never if it makes the change. After a restart while one was on its way, the device is
//! read to learn the outcome. The outcome follows from what the device shows, never from what was expected;
//! only where nothing can be read do the answers decide.
//!
//! Of the processes that serve a database, one owns an apply for its [`Term`] and drives it. Every step is written on
//! condition that the process still owns the change. A process that lost the change, or its place among the processes,
//! sends nothing more to the device.
//!
//! The part that the plan touched is *ours*; everything else at the device is *theirs*. Our part decides how an apply
//! ends. Their part is named, and none of their edits is taken back where the device can avoid it.

mod calls;
mod cancelling;
mod confirming;
mod polling;
mod sending;
mod taking_back;
mod window;

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::ChangeId;
use heddle_core::adapter::{Comparison, Completion, Standing};
use heddle_core::change::{ApplyStep, Hole, NativeCall, OutcomeState, Stage};
use heddle_core::fault::{Effect, FaultKind};
use heddle_inventory::adapters::call_for;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_kernel::process::membership::Term;
use heddle_runtime::{Adapter, Call, CallError, Urgency};
use heddle_store::changes::{self, Advance, ChangeRow};
use heddle_store::{Scope, Set, controllers};
use tokio::sync::Notify;
pub(super) use window::held_message;

use super::apply::get;
use super::detail::Detail;
use super::drivers::DriverClaim;
use super::ending::finish;
use super::plan::{secrets_of, specs_of};
use super::set;
use crate::declarations::ChangesSettings;
use crate::drivers::Drivers;

/// The device's own timer runs this much longer than ours, so that ours acts first.
const DEVICE_MARGIN_SECS: u32 = 15;
const MESSAGE_CHARS_MAX: usize = 500;
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(15);

/// The end of a drive.
#[derive(Debug)]
pub(super) struct Rest {
    pub(super) row: ChangeRow,
    /// Why the last call failed, when one did.
    pub(super) error: Option<CallError>,
}

/// How a driver begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// The change was just claimed, and nothing was sent yet.
    Fresh,
    /// It is not known what was sent before.
    Again,
    /// The change was permanent, and it was just begun to write the state before: nothing of that was sent yet.
    Back,
}

/// Takes over every apply that no living process owns, and restarts orphaned applies of this process.
pub(super) async fn recover(app: &SharedApp) -> Result<(), Error> {
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
            // The state that the device holds belongs to the session of the process that wrote it.
            app.runtime.forget_write_session(change.controller_id);
            tracing::warn!(change.id = %change.id, step = %change.apply_step, "taking up change {} at step {}", change.id, change.apply_step);
            spawn(app, change.id, Start::Again);
        }
    }
    for change in ours {
        if !Drivers::of(app).has(change.id, change.apply_step) {
            spawn(app, change.id, Start::Again);
        }
    }
    Ok(())
}

/// The result of a drive; `None` when another task drives the change.
pub(super) type Driving = tokio::task::JoinHandle<Result<Option<Rest>, Error>>;

/// Returns the requirements of a drive, and so checks whether it can start.
pub(super) async fn prepare(app: &SharedApp, row: &ChangeRow) -> Result<(Adapter, Call), Error> {
    let mut tx = app.db.read().await?;
    let target = controllers::find_target(&mut tx, &Scope::everything(), row.controller_id).await?;
    drop(tx);
    let target = target.ok_or(Error::NotFound("controller"))?;
    secrets_of(app, row)?;
    let call = Call { urgency: Urgency::UnderWay, ..call_for(&target, &format!("change-{}", row.id))? };
    Ok((app.adapter(&target.vendor)?, call))
}

/// Drives a change of this process in the background.
pub(super) fn spawn(app: &SharedApp, id: ChangeId, start: Start) -> Driving {
    match (app.membership.term(), Drivers::of(app).claim(id)) {
        (Ok(term), Some(claim)) => spawn_claimed(app, claim, term, start),
        _ => app.tasks.spawn("staging.drive", async { Ok(None) }),
    }
}

/// The same, for a caller that has already claimed the change.
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
                Drivers::of(&app2).rest(id);
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

/// Releases a change as it stands, so that another process can take it over at once.
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

/// One change that is being driven.
struct Drive<'a> {
    app: &'a SharedApp,
    term: &'a Term,
    adapter: Adapter,
    call: Call,
    row: ChangeRow,
    error: Option<CallError>,
    /// Details in addition to the outcome's state; written with every step.
    detail: Detail,
    /// Nothing was sent in the present step, and no earlier drive was in it.
    is_fresh: bool,
    /// The device has answered every call and said that the calls changed nothing, or how its job ended.
    is_answered: bool,
    /// The device's own rollback was requested.
    has_undone: bool,
    /// Notified when another task has written the change, which is then read again.
    woken: Arc<Notify>,
}

/// Drives until the change rests; `None` when there is nothing to drive.
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
            let row = finish(app, &row, OutcomeState::Failed, Some(message), &Detail::default()).await?;
            return Ok(Some(Rest { row, error: None }));
        }
        Err(error) => return Err(error),
    };
    let detail = Detail::of(&row);
    let is_fresh = start != Start::Again;
    let mut drive = Drive {
        app,
        term,
        adapter,
        call,
        row,
        error: None,
        detail,
        is_fresh,
        is_answered: false,
        has_undone: false,
        woken: Arc::clone(&claim.woken),
    };
    while drive.is_ours() {
        match drive.row.apply_step {
            ApplyStep::Idle => break,
            ApplyStep::Holding => {
                window::hold(app, &drive.row, term);
                break;
            }
            ApplyStep::Sending if drive.is_fresh => drive.send().await?,
            ApplyStep::Sending => drive.go_on_sending().await?,
            ApplyStep::Polling => drive.poll().await?,
            ApplyStep::Cancelling => drive.cancel().await?,
            ApplyStep::Resolving => drive.resolve().await?,
            ApplyStep::ReadingBack => drive.read_back().await?,
            ApplyStep::Confirming => drive.confirm().await?,
            ApplyStep::Confirmed => drive.read_confirmed().await?,
            ApplyStep::Restoring => drive.choose_way_back().await?,
            ApplyStep::Undoing => drive.undo().await?,
            ApplyStep::Keeping => drive.keep().await?,
            ApplyStep::WritingBack if drive.is_fresh => drive.write_back().await?,
            // An earlier write of the old state may still be provisional at the device: it is made permanent first.
            ApplyStep::WritingBack => drive.to(ApplyStep::Keeping, Advance::default()).await?,
            ApplyStep::Restored => drive.read_restored().await?,
        }
        if app.tasks.stopping().is_cancelled() {
            break;
        }
    }
    Ok(Some(Rest { row: drive.row, error: drive.error }))
}

/// The error when another process has taken over the change.
fn lost() -> Error {
    Error::Unavailable("the change is brought forward by another process; look at it again".to_owned())
}

impl Drive<'_> {
    /// Whether this process owns the change, as of the last reading of the row.
    fn is_ours(&self) -> bool {
        !self.term.is_over() && self.row.apply_owner == Some(self.term.id)
    }

    /// Records the next step, with all details so far. When the change was moved by another process, this is no error:
    /// the loop reads it again.
    async fn to(&mut self, step: ApplyStep, mut advance: Advance) -> Result<(), Error> {
        let mut tx = self.app.db.write().await?;
        let now = self.app.clock.now();
        let (id, owner, from) = (self.row.id, Some(self.term.id), self.row.apply_step);
        advance.outcome_detail = self.detail.to_set();
        advance.sent.clone_from(&self.row.sent);
        advance.hole_values.clone_from(&self.row.hole_values);
        let moved = changes::advance(&mut tx, id, owner, from, step, &advance, now).await?;
        self.row = if let Some(row) = moved {
            set::follow(&mut tx, &row, now).await?;
            row
        } else {
            let row = get(&mut tx, self.row.id).await?;
            self.detail = Detail::of(&row);
            row
        };
        tx.commit().await?;
        if self.row.apply_step != from {
            self.is_fresh = true;
        }
        Ok(())
    }

    /// Calls [`Drive::to`] with a message for people.
    async fn record_step(&mut self, step: ApplyStep, message: String) -> Result<(), Error> {
        let advance = Advance { outcome_message: Set::To(bounded(message)), ..Advance::default() };
        self.to(step, advance).await
    }

    async fn finish(&mut self, state: OutcomeState, message: Option<String>) -> Result<(), Error> {
        let message = message.filter(|message| !message.is_empty()).map(bounded);
        self.row = finish(self.app, &self.row, state, message, &self.detail).await?;
        Ok(())
    }

    /// Returns how many seconds a device shall hold the change by itself.
    fn hold_secs(&self) -> u32 {
        let window = self.row.extendable_to_secs.max(self.row.confirm_within_secs);
        let window = window.and_then(|secs| u32::try_from(secs).ok());
        window.unwrap_or(self.app.config.of::<ChangesSettings>().apply_hold_secs) + DEVICE_MARGIN_SECS
    }

    /// Gives the device time to carry the change out; false when the service stops meanwhile.
    async fn settle(&self) -> bool {
        let Some(plan) = self.row.plan.as_ref().filter(|plan| !plan.native.is_empty()) else { return true };
        let times = if plan.lockout_risk { 3 } else { 1 };
        let until = self.row.updated_at
            + TimeDelta::milliseconds(
                i64::from(self.app.config.of::<ChangesSettings>().apply_settle_ms) * times,
            );
        match (until - self.app.clock.now()).to_std() {
            Ok(left) => self.pause(left).await,
            Err(_) => true,
        }
    }

    /// Returns the longest time limit of the change's features; `None`, the usual limit, when no feature has one.
    fn time_limit(&self) -> Option<Duration> {
        let limits = specs_of(&self.row).into_iter().filter_map(|spec| {
            let feature = self.adapter.description().feature(&spec.feature)?;
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

    fn holes(&self) -> &[Hole] {
        self.row.plan.as_ref().map_or(&[], |plan| &plan.holes)
    }

    /// Compares the device with the plan. Stores the changes of others, and the state of each change of a set.
    async fn compare(&mut self) -> Result<Comparison, CallError> {
        let token = self.row.plan_token.as_deref().unwrap_or_default();
        let found = self.adapter.compare(&self.call, &specs_of(&self.row), token).await?;
        self.detail.saw(&found);
        Ok(found)
    }

    /// Keeps what a call or a task that ended warns of, what is still needed, and what came of each change.
    fn keep_completion(&mut self, completion: &Completion, stage: Stage) {
        self.keep_found(completion.found.clone());
        if stage == Stage::Apply {
            self.detail.add_results(&completion.items, specs_of(&self.row).len());
        }
        self.detail.add_warnings(completion.warnings.iter().cloned());
        let needs = &mut self.detail.needs;
        let new: Vec<String> =
            completion.needs.iter().filter(|need| !needs.contains(need)).cloned().collect();
        needs.extend(new);
        self.detail.bound();
    }

    fn is_held_by_device(&self) -> bool {
        self.row.plan.as_ref().is_some_and(|plan| plan.holds) && self.has_calls(Stage::Apply)
    }

    /// Stays in the step and reports that the device gives no answer. The retries have no end.
    async fn try_again_later(&mut self, error: CallError) -> Result<(), Error> {
        tracing::warn!(change.id = %self.row.id, step = %self.row.apply_step, error = %error, "no answer; trying again");
        self.error = Some(error);
        self.show_unknown().await?;
        self.pause(self.backoff()).await;
        Ok(())
    }

    /// Returns the pause before the next attempt: it grows with the elapsed time.
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

    /// Reads the device until it answers. `None` when the service or the term ends meanwhile; the step stays as it is.
    async fn read_until_answered(&mut self) -> Result<Option<Standing>, Error> {
        loop {
            match self.compare().await {
                Ok(found) => return Ok(Some(found.standing)),
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

/// Whether the device may answer differently a little later.
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

/// Whether the device answered that nothing changed. A call without an answer never counts as that.
fn is_without_effect(error: &CallError) -> bool {
    matches!(error, CallError::Fault(fault) if fault.effect == Effect::None)
}

fn bounded(message: String) -> String {
    if message.chars().count() <= MESSAGE_CHARS_MAX {
        return message;
    }
    message.chars().take(MESSAGE_CHARS_MAX - 1).chain(['…']).collect()
}
