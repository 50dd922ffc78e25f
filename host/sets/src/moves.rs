//! What people do with a set over several controllers: plan again, apply, confirm, extend, cancel, take back, verify. Each
//! writes the intent in one transaction and leaves the rest to the work on the set.

use std::time::Duration;

use chrono::TimeDelta;
use futures::future::join_all;
use heddle_changes::apply::{ApplyRequest, CONFIRM_SECS};
use heddle_changes::declarations::ChangesSettings;
use heddle_changes::{Cause, cancel, parts, revert};
use heddle_core::change::{ApplyStep, ChangeStatus};
use heddle_core::fault::{Fault, FaultKind};
use heddle_core::saga::{PartPhase, SagaAttempt, SagaState, SagaStep};
use heddle_core::{ControllerId, Timestamp};
use heddle_inventory::controllers::releases;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_kernel::resource::By;
use heddle_store::sagas::{self, Transition};
use heddle_store::{ControllerTarget, Set, Tx};

use crate::decide::{Next, Standing, verdict};
use crate::declarations::{SET_APPLY_STARTED, SET_CONFIRMED};
use crate::record::{Actor, record};
use crate::saga::{Part, Saga, get, load, lock};
use crate::{form, work};

/// Longest time that a request waits for the end of what it began.
const REST_MAX: Duration = Duration::from_mins(10);

fn refused(kind: &'static str, message: impl Into<String>) -> Error {
    Error::Conflict { kind, message: message.into() }
}

/// The refusal of any other operation on a set that is being worked on.
pub(crate) fn under_way(saga: &Saga) -> Error {
    let message = match saga.row.step {
        SagaStep::Idle => "set was moved on meanwhile; read it again".to_owned(),
        SagaStep::Holding => {
            "set is in its confirm window; confirm it in time, else it is taken back; 'revert' takes \
                              it back now"
                .to_owned()
        }
        step => format!("set is being worked on, at step '{step}'; wait until that has ended"),
    };
    refused("under_way", message)
}

fn is_pending(saga: &Saga) -> Result<(), Error> {
    if saga.row.status == ChangeStatus::Pending {
        return Ok(());
    }
    Err(refused("not_pending", format!("set is already {}", saga.row.status)))
}

/// Checks that the caller may move every part.
pub(crate) async fn may_be_moved_on(tx: &mut Tx, by: &By, saga: &Saga) -> Result<(), Error> {
    for part in &saga.parts {
        parts::may_be_moved_on(tx, &by.caller, &part.row).await?;
    }
    Ok(())
}

/// Returns the set, locked, where the caller may move every part of it.
pub(crate) async fn locked(tx: &mut Tx, by: &By, saga: &Saga) -> Result<Saga, Error> {
    let saga = lock(tx, saga.row.id).await?;
    may_be_moved_on(tx, by, &saga).await?;
    Ok(saga)
}

/// Plans what is not in effect again, and puts the parts into their order anew.
pub(crate) async fn plan(by: &By, saga: Saga) -> Result<Saga, Error> {
    let By { app, caller, origin } = by;
    {
        let mut tx = app.db.read().await?;
        may_be_moved_on(&mut tx, by, &saga).await?;
    }
    is_pending(&saga)?;
    if !saga.is_idle() {
        return Err(under_way(&saga));
    }
    let now = app.clock.now();
    no_part_is_in_doubt(&saga, now)?;
    let open = saga.parts.iter().filter(|part| part.standing(now) != Standing::InEffect);
    let cause = Cause::Request(origin);
    let again = open.map(|part| parts::plan_again(app, caller, cause, part.row.clone()));
    let planned = join_all(again).await;
    for row in planned {
        row?;
    }
    let places = form::places_of(saga.parts.iter().map(|part| &part.row));
    let hops = heddle_topology::distances(app, &places).await?;
    let mut tx = app.db.write().await?;
    let mut saga = lock(&mut tx, saga.row.id).await?;
    if !saga.is_idle() || is_pending(&saga).is_err() {
        return Err(under_way(&saga));
    }
    no_part_is_in_doubt(&saga, app.clock.now())?;
    let rows: Vec<_> = saga.parts.iter().map(|part| part.row.clone()).collect();
    sagas::set_order(&mut tx, saga.row.id, &form::order_of(&rows, &hops)).await?;
    let is_stuck = saga.row.state == SagaState::Stuck;
    let to = Transition {
        state: (!is_stuck).then_some(SagaState::None),
        message: if is_stuck { Set::Keep } else { Set::Clear },
        ..Transition::default()
    };
    let row = sagas::advance(&mut tx, saga.row.id, SagaStep::Idle, &to, app.clock.now()).await?;
    saga = load(&mut tx, row).await?;
    record(&mut tx, app, &saga, ("change_set.planned", None), &Actor::caller(by)).await?;
    tx.commit().await?;
    Ok(saga)
}

/// Refuses where a device may hold a part: another plan would forget what the last one sent.
fn no_part_is_in_doubt(saga: &Saga, now: Timestamp) -> Result<(), Error> {
    if saga.parts.iter().any(|part| part.standing(now) == Standing::InDoubt) {
        let message = "a device may hold a part of the set: verify the set, revert it or discard it";
        return Err(refused("outcome_unknown", message));
    }
    Ok(())
}

/// Applies a set through both gates: what is not in effect yet, one controller after the other.
pub(crate) async fn apply(by: &By, saga: Saga, request: ApplyRequest) -> Result<Saga, Error> {
    let By { app, origin, .. } = by;
    let id = saga.row.id;
    let controllers = {
        let mut tx = app.db.read().await?;
        may_be_applied(&mut tx, by, &saga, &request).await?
    };
    // The devices are asked last, because that takes calls. The answers are stored, and judged when each part is begun.
    let learned = controllers.iter().map(|one| releases::learn(app, &origin.request_id, one));
    join_all(learned).await.into_iter().collect::<Result<(), _>>()?;
    let mut tx = app.db.write().await?;
    // It may have been planned again or applied meanwhile. What is judged from here on is what will be sent.
    let mut saga = lock(&mut tx, id).await?;
    may_be_applied(&mut tx, by, &saga, &request).await?;
    let plan_hash =
        saga.plan_hash().ok_or_else(|| refused("not_planned", "set has no plan; plan it again first"))?;
    if let Some(busy) = sagas::lock_controllers(&mut tx, id).await? {
        return Err(busy_at(busy));
    }
    let now = app.clock.now();
    for part in &saga.parts {
        // What is in effect already is taken back as well when another part fails.
        let is_in_effect = part.standing(now) == Standing::InEffect;
        let phase = if is_in_effect { PartPhase::Begun } else { PartPhase::Waiting };
        sagas::set_phase(&mut tx, id, part.row.id, phase).await?;
    }
    let mut attempts = saga.row.attempts.clone();
    attempts.push(SagaAttempt {
        number: u32::try_from(attempts.len()).unwrap_or(u32::MAX).saturating_add(1),
        plan_hash,
        started_at: now,
        started_by: by.caller.user_id,
        via: by.caller.credential.via(),
        ended_at: None,
        state: SagaState::Applying,
        message: None,
    });
    let secs = |secs: Option<u32>| secs.map_or(Set::Clear, |secs| Set::To(i64::from(secs)));
    let deadline = request.confirm_within_secs.map(|secs| now + TimeDelta::seconds(i64::from(secs)));
    let to = Transition {
        state: Some(SagaState::Applying),
        message: Set::Clear,
        attempts: Some(attempts),
        started_at: Some(now),
        confirm_within_secs: secs(request.confirm_within_secs),
        extendable_to_secs: secs(request.extendable_to_secs),
        confirm_deadline: deadline.map_or(Set::Clear, Set::To),
        ..Transition::default()
    };
    let row = sagas::advance(&mut tx, id, SagaStep::Applying, &to, now).await?;
    saga = load(&mut tx, row).await?;
    let step = ("change_set.apply_started", Some(SET_APPLY_STARTED));
    record(&mut tx, app, &saga, step, &Actor::caller(by)).await?;
    tx.commit().await?;
    tracing::info!(set.id = %id, user.id = %by.caller.user_id, "applying set {id}");
    let limit = limit_of(app, &saga);
    answer(work::rested(app, id, limit).await?)
}

/// Checks all gates of every part that is not in effect; returns the controllers of those.
async fn may_be_applied(
    tx: &mut Tx,
    by: &By,
    saga: &Saga,
    request: &ApplyRequest,
) -> Result<Vec<ControllerTarget>, Error> {
    may_be_moved_on(tx, by, saga).await?;
    is_pending(saga)?;
    if !saga.is_idle() {
        return Err(under_way(saga));
    }
    let now = by.app.clock.now();
    let of_part = ApplyRequest { plan_hash: None, ..request.clone() };
    let mut controllers = Vec::with_capacity(saga.parts.len());
    for part in &saga.parts {
        if part.standing(now) == Standing::InEffect {
            continue;
        }
        controllers.push(parts::may_be_applied(&by.app, &by.caller, tx, &part.row, &of_part).await?);
    }
    if request.plan_hash.is_some() && request.plan_hash != saga.plan_hash() {
        let message = "set was planned again since it was reviewed; review the plan and send its hash";
        return Err(refused("plan_changed", message));
    }
    Ok(controllers)
}

fn busy_at(controller: ControllerId) -> Error {
    refused(
        "controller_busy",
        format!("another change is being applied to controller {controller}; try again when it has ended"),
    )
}

/// How long a request waits for the end of an apply: as long as those of the parts may take.
fn limit_of(app: &SharedApp, saga: &Saga) -> Duration {
    let each = u64::from(app.config.of::<ChangesSettings>().apply_hold_secs) + 60;
    let parts = u32::try_from(saga.parts.len()).unwrap_or(u32::MAX);
    Duration::from_secs(each).saturating_mul(parts).min(REST_MAX)
}

/// Returns the answer for the client after the work on a set has rested.
fn answer(saga: Saga) -> Result<Saga, Error> {
    match saga.row.state {
        SagaState::Compensated | SagaState::Stuck => {
            let message = saga.row.message.clone().unwrap_or_default();
            Err(Fault::new(FaultKind::Generic, format!("{}: {message}", saga.row.state)).into())
        }
        _ => Ok(saga),
    }
}

/// Confirms a set in time: its parts are confirmed in their order.
pub(crate) async fn confirm(by: &By, saga: Saga) -> Result<Saga, Error> {
    let By { app, .. } = by;
    let mut tx = app.db.write().await?;
    let mut saga = locked(&mut tx, by, &saga).await?;
    let now = app.clock.now();
    let is_open = saga.row.confirm_deadline.is_some_and(|deadline| now < deadline);
    if saga.row.step != SagaStep::Holding || !is_open {
        return Err(not_waiting());
    }
    // Each part is read before it is confirmed. Where the window is the service's own, the later ones are given time for that.
    let reads = i32::try_from(saga.parts.len()).unwrap_or(i32::MAX).saturating_add(1);
    let until = now + TimeDelta::seconds(work::PART_MARGIN_SECS) * reads;
    for part in &saga.parts {
        let row = &part.row;
        let is_open = row.apply_step == ApplyStep::Holding;
        let is_short = is_open && row.confirm_deadline.is_some_and(|end| end < until);
        if is_short && !part.has_timer() && !parts::extend(&mut tx, app, row, until).await? {
            return Err(not_waiting());
        }
    }
    let to = Transition {
        state: Some(SagaState::Applying),
        confirm_deadline: Set::Clear,
        ..Transition::default()
    };
    let row = sagas::advance(&mut tx, saga.row.id, SagaStep::Confirming, &to, now).await?;
    saga = load(&mut tx, row).await?;
    let step = ("change_set.confirmed", Some(SET_CONFIRMED));
    record(&mut tx, app, &saga, step, &Actor::caller(by)).await?;
    tx.commit().await?;
    let limit = limit_of(app, &saga);
    answer(work::rested(app, saga.row.id, limit).await?)
}

fn not_waiting() -> Error {
    refused("not_awaiting_confirm", "set is not waiting for a confirmation")
}

/// Gives the window of a set, and those of its parts, so many seconds more.
pub(crate) async fn extend(by: &By, saga: Saga, secs: u32) -> Result<Saga, Error> {
    let By { app, .. } = by;
    let mut tx = app.db.write().await?;
    let mut saga = locked(&mut tx, by, &saga).await?;
    let now = app.clock.now();
    let (Some(deadline), Some(started)) = (saga.row.confirm_deadline, saga.row.started_at) else {
        return Err(not_waiting());
    };
    if saga.row.step != SagaStep::Holding || now >= deadline {
        return Err(not_waiting());
    }
    if !(1..=*CONFIRM_SECS.end()).contains(&secs) {
        return Err(Error::field("secs", "secs must be from 1 to 600"));
    }
    let more = TimeDelta::seconds(i64::from(secs));
    let (extended, longest) = (deadline + more, longest_window_secs(&saga));
    if extended > started + TimeDelta::seconds(longest) {
        let message = format!(
            "the window can be {longest} s long in all, because a device takes its part back by itself then; apply with \
             extendable_to_secs, up to 600, to have the devices hold the change longer"
        );
        return Err(refused("not_extendable", message));
    }
    let to = extended + TimeDelta::seconds(work::PART_MARGIN_SECS);
    for part in &saga.parts {
        let is_held = part.row.apply_step == ApplyStep::Holding;
        if is_held && !parts::extend(&mut tx, app, &part.row, to).await? {
            return Err(not_waiting());
        }
    }
    let to = Transition { confirm_deadline: Set::To(extended), ..Transition::default() };
    let row = sagas::advance(&mut tx, saga.row.id, SagaStep::Holding, &to, now).await?;
    saga = load(&mut tx, row).await?;
    record(&mut tx, app, &saga, ("change_set.window_extended", None), &Actor::caller(by)).await?;
    tx.commit().await?;
    Ok(saga)
}

/// Returns how long a set may wait for its confirmation in total.
fn longest_window_secs(saga: &Saga) -> i64 {
    if saga.parts.iter().any(Part::has_timer) {
        saga.row.extendable_to_secs.max(saga.row.confirm_within_secs).unwrap_or_default()
    } else {
        i64::from(*CONFIRM_SECS.end())
    }
}

/// Ends the job that runs at the device of a part.
pub(crate) async fn cancel(by: &By, saga: Saga) -> Result<Saga, Error> {
    let has_job = |part: &&Part| matches!(part.row.apply_step, ApplyStep::Polling | ApplyStep::Cancelling);
    let part = saga.parts.iter().find(has_job);
    let part =
        part.ok_or_else(|| refused("nothing_runs", "no job of the set runs that could be cancelled"))?;
    cancel::cancel(by, parts::as_its_own(part.row.clone())).await?;
    get(&by.app, saga.row.id).await
}

/// What came of the request to take a set back.
pub(crate) enum Reverted {
    TakenBack(Box<Saga>),
    /// A set was staged that takes it back, in an open transaction.
    Staged(Box<(Tx, Saga)>),
}

/// Takes a set back: at once while it is being applied, waits for its confirmation or is stuck; by another set once it is in
/// effect everywhere.
pub(crate) async fn revert(by: &By, saga: Saga) -> Result<Reverted, Error> {
    if saga.row.state == SagaState::Committed && saga.is_idle() {
        return Box::pin(stage_inverse(by, saga)).await.map(|staged| Reverted::Staged(Box::new(staged)));
    }
    let By { app, .. } = by;
    let mut tx = app.db.write().await?;
    let mut saga = locked(&mut tx, by, &saga).await?;
    parts::platform_is_writable(app)?;
    match saga.row.step {
        SagaStep::Applying | SagaStep::Holding | SagaStep::Confirming => {}
        SagaStep::Compensating => return Err(under_way(&saga)),
        SagaStep::Idle if saga.row.state == SagaState::Stuck && is_pending(&saga).is_ok() => {
            begin_again(&mut tx, &saga).await?;
        }
        SagaStep::Idle => {
            let message = "only a set that is in effect, or at some controllers, can be taken back";
            return Err(refused("not_applied", message));
        }
    }
    let message = format!("taken back by {}", by.caller.username);
    work::turn(&mut tx, app, &mut saga, message, Some(&Actor::caller(by))).await?;
    tx.commit().await?;
    let limit = limit_of(app, &saga);
    let saga = work::rested(app, saga.row.id, limit).await?;
    match saga.row.state {
        SagaState::Compensated => Ok(Reverted::TakenBack(Box::new(saga))),
        _ => answer(saga).map(|saga| Reverted::TakenBack(Box::new(saga))),
    }
}

/// Has the parts of a stuck set be taken back once more, and keeps their controllers.
async fn begin_again(tx: &mut Tx, saga: &Saga) -> Result<(), Error> {
    if let Some(busy) = sagas::lock_controllers(tx, saga.row.id).await? {
        return Err(busy_at(busy));
    }
    for part in &saga.parts {
        if part.of.phase == PartPhase::TakenBack {
            sagas::set_phase(tx, saga.row.id, part.row.id, PartPhase::Begun).await?;
        }
    }
    Ok(())
}

/// Plans the changes that take back the parts, and makes a set of them: all are written in one transaction, or none.
async fn stage_inverse(by: &By, saga: Saga) -> Result<(Tx, Saga), Error> {
    if saga.row.reverted_by.is_some() {
        return Err(refused("not_applied", "set was taken back already"));
    }
    {
        let mut tx = by.app.db.read().await?;
        may_be_moved_on(&mut tx, by, &saga).await?;
    }
    let places = form::places_of(saga.parts.iter().map(|part| &part.row));
    // Their controllers are locked by their ids, as everywhere.
    let mut parts = saga.parts;
    parts.sort_by_key(|part| part.of.controller_id);
    let prepared = parts.into_iter().map(|part| revert::prepare_inverse(by, part.row));
    let prepared = join_all(prepared).await.into_iter().collect::<Result<_, _>>()?;
    form::inverse(by, prepared, &places, saga.row.id).await
}

/// Reads the devices of parts in doubt, and settles a set that is stuck.
pub(crate) async fn verify(by: &By, saga: Saga) -> Result<Saga, Error> {
    let By { app, .. } = by;
    let now = app.clock.now();
    {
        let mut tx = app.db.read().await?;
        may_be_moved_on(&mut tx, by, &saga).await?;
    }
    let doubtful = [Standing::InDoubt, Standing::Silent];
    for part in &saga.parts {
        if doubtful.contains(&part.standing(now)) {
            parts::verify(by, part.row.clone()).await?;
        }
    }
    let mut tx = app.db.write().await?;
    let mut saga = lock(&mut tx, saga.row.id).await?;
    if !saga.is_idle() {
        drop(tx);
        work::spawn(app, saga.row.id);
        return Ok(saga);
    }
    // Sets are locked before the head of the audit log, as everywhere.
    if let Some(original) = saga.row.reverts {
        sagas::lock(&mut tx, original).await?;
    }
    let is_open = saga.row.state == SagaState::Stuck && is_pending(&saga).is_ok();
    let verdict = verdict(&saga.seen(app.clock.now()));
    if is_open {
        work::tell_standings(&mut tx, app, &mut saga).await?;
    }
    record(&mut tx, app, &saga, ("change_set.verified", None), &Actor::caller(by)).await?;
    if is_open && verdict != Next::Stuck {
        work::end(&mut tx, app, &mut saga, verdict).await?;
    }
    tx.commit().await?;
    Ok(saga)
}
