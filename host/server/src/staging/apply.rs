//! Applying, confirming, verifying, discarding, reverting: the rules around the drive.

use std::time::Duration;

use axum::response::Response;
use chrono::TimeDelta;
use heddle_core::adapter::Standing;
use heddle_core::change::{ApplyStep, Attempt, ChangeStatus, OutcomeState};
use heddle_core::event::EventType;
use heddle_core::fault::{Fault, FaultKind};
use heddle_core::{ChangeId, ProcessId};
use heddle_runtime::{Call, Urgency};
use heddle_store::changes::{self, Advance, ChangeRow, Claim};
use heddle_store::{Scope, Set, Tx};
use serde_json::{Value, json};

use super::drive::{self, Rest, Start};
use super::outcome::{Actor, Step, record};
use super::plan::{self, Inverse, Request, controller_on_path, secrets_of, settings_of, specs_of};
use super::{gates, new_key};
use crate::adapters::call_for;
use crate::app::{App, SharedApp};
use crate::auth::Caller;
use crate::http::creation::Creation;
use crate::http::error::Error;
use crate::http::extract::Origin;

/// Beyond the time in which the device must have been read, how long a request waits for the end.
const ANSWER_MARGIN: Duration = Duration::from_secs(10);
pub(super) const CONFIRM_SECS: std::ops::RangeInclusive<u32> = 10..=600;

/// What a client sends to apply.
#[derive(Debug)]
pub(super) struct ApplyRequest {
    pub(super) force: Option<bool>,
    pub(super) plan_hash: Option<String>,
    pub(super) confirm_within_secs: Option<u32>,
}

/// The change, if the caller sees it.
pub(super) async fn find(app: &App, caller: &Caller, id: ChangeId) -> Result<ChangeRow, Error> {
    let mut tx = app.db.read().await?;
    changes::find(&mut tx, &caller.scope(), id).await?.ok_or(Error::NotFound("change"))
}

/// The change, whoever asks: for the service's own steps.
pub(super) async fn get(tx: &mut Tx, id: ChangeId) -> Result<ChangeRow, Error> {
    changes::find(tx, &Scope::everything(), id).await?.ok_or(Error::NotFound("change"))
}

/// Applies a change through both gates; the answer is what the device shows.
pub(super) async fn apply(
    app: &SharedApp,
    caller: &Caller,
    origin: &Origin,
    id: ChangeId,
    request: ApplyRequest,
) -> Result<ChangeRow, Error> {
    let row = find(app, caller, id).await?;
    gates::change_is_permitted(caller, &row)?;
    gates::catastrophe_needs_site_admin(caller, row.danger)?;
    gates::change_is_pending(row.status)?;
    gates::platform_is_writable(app)?;
    gates::force_is_given(request.force)?;
    // The controller may have moved out of the caller's sight since it was staged.
    controller_on_path(app, caller, row.controller_id, None, None).await?;
    // All that could keep the drive from starting is found out before the intent is recorded.
    let term = app.membership.term()?;
    let driver = app.drivers.claim(id).ok_or_else(under_way)?;
    drive::prepare(app, &row).await?;
    let row = claim(app, caller, origin, row, &request, term.id).await?;
    tracing::info!(change.id = %row.id, controller.id = %row.controller_id, user.id = %caller.user_id, "applying change {id}");
    // In a task of its own: a client that goes away does not leave a device half way.
    let driving = drive::spawn_claimed(app, driver, term, Start::Fresh);
    let limit = Duration::from_secs(u64::from(app.config.apply_hold_secs) + 60) + ANSWER_MARGIN;
    let rest = match tokio::time::timeout(limit, driving).await {
        Ok(joined) => joined.map_err(Error::internal)??,
        Err(_) => None,
    };
    match rest {
        Some(rest) => answer(rest),
        None => answer(Rest { row: find(app, caller, id).await?, error: None }),
    }
}

/// Records the intent, before anything is sent. Exactly one of two racing claims wins.
async fn claim(
    app: &App,
    caller: &Caller,
    origin: &Origin,
    row: ChangeRow,
    request: &ApplyRequest,
    owner: ProcessId,
) -> Result<ChangeRow, Error> {
    if let Some(secs) = request.confirm_within_secs
        && !CONFIRM_SECS.contains(&secs)
    {
        return Err(Error::field("confirm_within_secs", "confirm_within_secs must be from 10 to 600"));
    }
    let mut tx = app.db.write().await?;
    let settings = settings_of(&mut tx, row.org_id).await?;
    gates::second_person_applies(caller, row.staged_by, &settings)?;
    // Read again under the write lock: it may have been planned or applied meanwhile.
    let row = get(&mut tx, row.id).await?;
    let plan_hash = may_be_applied(app, &row, request)?;
    let now = app.clock.now();
    let attempt = Attempt {
        number: 0,
        plan_hash,
        started_at: now,
        started_by: caller.user_id,
        via: caller.credential.via(),
        ended_at: None,
        state: OutcomeState::Applying,
        message: None,
    };
    let deadline = request.confirm_within_secs.map(|secs| now + TimeDelta::seconds(i64::from(secs)));
    let claim = changes::claim_apply(
        &mut tx,
        row.id,
        owner,
        &attempt,
        request.confirm_within_secs.map(i64::from),
        now,
    )
    .await?;
    let row = match claim {
        Claim::Claimed(row) => *row,
        Claim::NotFound => return Err(Error::NotFound("change")),
        Claim::NotPending(status) => {
            return Err(gates::change_is_pending(status).err().unwrap_or_else(under_way));
        }
        Claim::Busy => {
            return Err(Error::Conflict {
                kind: "controller_busy",
                message: "another change is being applied to this controller; try again when it has ended"
                    .to_owned(),
            });
        }
        Claim::UnderWay => return Err(under_way()),
    };
    let row = match deadline {
        Some(deadline) => {
            let advance = Advance { confirm_deadline: Set::To(deadline), ..Advance::default() };
            let (step, owner) = (ApplyStep::Sending, Some(owner));
            let set = changes::advance(&mut tx, row.id, owner, step, step, &advance, now).await?;
            set.ok_or_else(under_way)?
        }
        None => row,
    };
    let mut step = Step::new("change.apply_started", Actor::caller(caller, origin));
    step.detail = json!({ "confirm_within_secs": request.confirm_within_secs });
    record(&mut tx, app, &row, &step).await?;
    tx.commit().await?;
    Ok(row)
}

/// The gates that depend on the change as it is now; answers the hash of what will be sent.
fn may_be_applied(app: &App, row: &ChangeRow, request: &ApplyRequest) -> Result<String, Error> {
    gates::change_is_pending(row.status)?;
    gates::change_has_not_expired(row, app.clock.now())?;
    let plan = row.plan.as_ref().ok_or_else(|| Error::Conflict {
        kind: "not_planned",
        message: "change has no plan because the controller could not be read; plan it again first"
            .to_owned(),
    })?;
    if request.plan_hash.as_ref().is_some_and(|hash| *hash != plan.hash) {
        return Err(Error::Conflict {
            kind: "plan_changed",
            message: "change was planned again since it was reviewed; review the plan and send its hash"
                .to_owned(),
        });
    }
    gates::outcome_is_settled(row)?;
    new_key::plan_is_under_current_key(app, row)?;
    if let Some(secs) = request.confirm_within_secs {
        gates::window_fits(app, plan, secs)?;
    }
    Ok(plan.hash.clone())
}

fn under_way() -> Error {
    Error::Conflict { kind: "under_way", message: "change is being applied already".to_owned() }
}

/// What a client is told when the drive came to rest.
fn answer(rest: Rest) -> Result<ChangeRow, Error> {
    let Rest { row, error } = rest;
    match row.outcome_state {
        OutcomeState::Applied | OutcomeState::AwaitingConfirm | OutcomeState::Applying => Ok(row),
        _ => Err(if let Some(error) = error {
            Error::Adapter(error)
        } else {
            let message = row.outcome_message.clone().unwrap_or_else(|| row.outcome_state.to_string());
            Fault::new(FaultKind::Generic, message).into()
        }),
    }
}

/// Ends an attempt: outcome, event and audit entry in one transaction.
pub(super) async fn finish(
    app: &App,
    row: &ChangeRow,
    state: OutcomeState,
    message: Option<String>,
) -> Result<ChangeRow, Error> {
    finish_in(app.db.write().await?, app, row, state, message).await
}

/// The same in a transaction that is open already; commits it.
async fn finish_in(
    mut tx: Tx,
    app: &App,
    row: &ChangeRow,
    state: OutcomeState,
    message: Option<String>,
) -> Result<ChangeRow, Error> {
    let now = app.clock.now();
    let mut attempts = row.attempts.clone();
    if let Some(last) = attempts.last_mut() {
        last.ended_at = Some(now);
        last.state = state;
        last.message.clone_from(&message);
    }
    let applied_by = attempts.last().map(|attempt| attempt.started_by);
    let is_applied = state == OutcomeState::Applied;
    let advance = Advance {
        outcome_state: Some(state),
        outcome_message: message.clone().map_or(Set::Clear, Set::To),
        attempts: Some(attempts),
        status: is_applied.then_some(ChangeStatus::Applied),
        applied_by: if is_applied { applied_by } else { None },
        applied_at: is_applied.then_some(now),
        ..Advance::default()
    };
    let Some(ended) =
        changes::advance(&mut tx, row.id, row.apply_owner, row.apply_step, ApplyStep::Idle, &advance, now)
            .await?
    else {
        return get(&mut tx, row.id).await;
    };
    record(&mut tx, app, &ended, &ending(&ended, state, message)).await?;
    if is_applied && let Some(original) = ended.reverts {
        mark_reverted(&mut tx, app, original, &ended).await?;
    }
    tx.commit().await?;
    app.metrics.apply_ended(&ended.vendor, state);
    app.hub.wake();
    app.sync_wake.notify_one();
    tracing::info!(change.id = %ended.id, outcome = %state, "apply of change {} ended: {state}", ended.id);
    Ok(ended)
}

fn ending(row: &ChangeRow, state: OutcomeState, message: Option<String>) -> Step {
    let attempt = row.attempts.last();
    let actor = Actor {
        user: attempt.map(|attempt| attempt.started_by),
        via: attempt.and_then(|attempt| attempt.via.clone()),
        ..Actor::service()
    };
    let (action, event) = match state {
        OutcomeState::Applied => ("change.applied", EventType::ChangeApplied),
        OutcomeState::Reverted => ("change.reverted", EventType::ChangeReverted),
        _ => ("change.failed", EventType::ChangeFailed),
    };
    let mut step = Step::new(action, actor).event(event).message(message.unwrap_or_default());
    step.detail = json!({ "state": state });
    step
}

/// The inverse of a change is in effect: the change itself is not any more.
async fn mark_reverted(tx: &mut Tx, app: &App, original: ChangeId, by: &ChangeRow) -> Result<(), Error> {
    if !changes::mark_reverted(tx, original, by.id, app.clock.now()).await? {
        return Ok(());
    }
    let original = get(tx, original).await?;
    let message = format!("taken back by change {}", by.id);
    record(tx, app, &original, &ending(&original, OutcomeState::Reverted, Some(message))).await
}

/// A person confirms in time; the device is asked first.
///
/// Whichever process is asked takes the change: the one that had it only waited.
pub(super) async fn confirm(
    app: &SharedApp,
    caller: &Caller,
    origin: &Origin,
    id: ChangeId,
) -> Result<ChangeRow, Error> {
    let row = find(app, caller, id).await?;
    gates::change_is_permitted(caller, &row)?;
    gates::catastrophe_needs_site_admin(caller, row.danger)?;
    let not_waiting = || Error::Conflict {
        kind: "not_awaiting_confirm",
        message: "change is not waiting for a confirmation".to_owned(),
    };
    if row.apply_step != ApplyStep::Holding {
        return Err(not_waiting());
    }
    let held_by = row.apply_owner;
    // Confirmed is only what can be read through the real path, over a new connection.
    app.runtime.reconnect(row.controller_id);
    compare_now(app, caller, &row).await?;
    let now = app.clock.now();
    if row.confirm_deadline.is_some_and(|deadline| now >= deadline) {
        return Err(not_waiting());
    }
    let term = app.membership.term()?;
    // Before others of this process see that it is to be driven: who confirms waits for the end.
    let driver = app.drivers.claim(id);
    let mut tx = app.db.write().await?;
    let row = changes::take_held(&mut tx, id, term.id, now).await?.ok_or_else(not_waiting)?;
    record(&mut tx, app, &row, &Step::new("change.confirmed", Actor::caller(caller, origin))).await?;
    tx.commit().await?;
    if held_by != Some(term.id) {
        // What the device holds belongs to the session of the process that wrote it.
        app.runtime.forget_write_session(row.controller_id);
    }
    let driving = match driver {
        Some(driver) => drive::spawn_claimed(app, driver, term, Start::Again),
        None => drive::spawn(app, id, Start::Again),
    };
    match tokio::time::timeout(Duration::from_mins(1), driving).await {
        Ok(joined) => match joined.map_err(Error::internal)?? {
            Some(rest) => answer(rest),
            None => find(app, caller, id).await,
        },
        Err(_) => find(app, caller, id).await,
    }
}

async fn compare_now(app: &App, caller: &Caller, row: &ChangeRow) -> Result<Standing, Error> {
    let controller = controller_on_path(app, caller, row.controller_id, None, None).await?;
    let adapter = app.adapter(&controller.vendor)?;
    let is_under_way = row.apply_step != ApplyStep::Idle || gates::must_be_verified(row);
    let urgency = if is_under_way { Urgency::UnderWay } else { Urgency::Ordinary };
    let call = Call { urgency, ..call_for(&controller, &format!("change-{}", row.id))? };
    let token = row.plan_token.as_deref().ok_or_else(|| Error::Conflict {
        kind: "not_planned",
        message: "change has no plan to compare with; plan it again first".to_owned(),
    })?;
    Ok(adapter.compare(&call, &specs_of(row), token).await?)
}

/// Reads the device and says how it stands; settles an outcome that was unknown or partial.
pub(super) async fn verify(
    app: &SharedApp,
    caller: &Caller,
    origin: &Origin,
    id: ChangeId,
) -> Result<(ChangeRow, Value), Error> {
    let row = find(app, caller, id).await?;
    gates::change_is_permitted(caller, &row)?;
    let standing = compare_now(app, caller, &row).await?;
    let shown = match &standing {
        Standing::Before => json!({ "state": "before" }),
        Standing::After => json!({ "state": "after" }),
        Standing::Stored(needs) => json!({ "state": "stored", "needs": needs }),
        Standing::Other(difference) => json!({ "state": "other", "difference": difference }),
    };
    if row.apply_step != ApplyStep::Idle {
        // It is being settled already, by whichever process; a drive that stopped is started again.
        drive::recover(app).await?;
        drive::spawn(app, id, Start::Again);
        return Ok((row, shown));
    }
    let seen = row.updated_at;
    let mut tx = app.db.write().await?;
    let row = get(&mut tx, id).await?;
    let step = Step {
        detail: json!({ "standing": shown }),
        ..Step::new("change.verified", Actor::caller(caller, origin))
    };
    record(&mut tx, app, &row, &step).await?;
    // What was read settles only what has not moved on meanwhile.
    if row.updated_at != seen || row.apply_step != ApplyStep::Idle || !gates::must_be_verified(&row) {
        tx.commit().await?;
        return Ok((row, shown));
    }
    let (state, message) = match standing {
        Standing::After | Standing::Stored(_) => {
            (OutcomeState::Applied, "verified: the device is as planned")
        }
        Standing::Before => (OutcomeState::Failed, "verified: the device is as it was before"),
        Standing::Other(_) => {
            (OutcomeState::Partial, "verified: the device is neither as before nor as planned")
        }
    };
    Ok((finish_in(tx, app, &row, state, Some(message.to_owned())).await?, shown))
}

/// Gives a pending change up. Nothing is sent.
pub(super) async fn discard(
    app: &App,
    caller: &Caller,
    origin: &Origin,
    id: ChangeId,
) -> Result<ChangeRow, Error> {
    let row = find(app, caller, id).await?;
    gates::change_is_permitted(caller, &row)?;
    gates::change_is_pending(row.status)?;
    let mut tx = app.db.write().await?;
    let row = changes::discard(&mut tx, &caller.scope(), id, app.clock.now()).await?.ok_or_else(under_way)?;
    let step = Step::new("change.discarded", Actor::caller(caller, origin)).event(EventType::ChangeDiscarded);
    record(&mut tx, app, &row, &step).await?;
    tx.commit().await?;
    app.hub.wake();
    Ok(row)
}

/// Stages the change that takes this one back.
pub(super) async fn revert(
    app: &App,
    caller: &Caller,
    origin: &Origin,
    creation: Creation,
    id: ChangeId,
) -> Result<Response, Error> {
    let row = find(app, caller, id).await?;
    gates::change_is_permitted(caller, &row)?;
    if row.status != ChangeStatus::Applied || row.outcome_state == OutcomeState::Reverted {
        return Err(Error::Conflict {
            kind: "not_applied",
            message: "only a change that is applied and not yet taken back can be reverted".to_owned(),
        });
    }
    let row = new_key::current(app, row).await?;
    let mut inverse = row.plan_inverse.clone().unwrap_or_default().into_iter();
    let first = inverse.next().ok_or_else(|| Error::Conflict {
        kind: "not_invertible",
        message: "change cannot be taken back by another change; its plan said so".to_owned(),
    })?;
    let controller = controller_on_path(app, caller, row.controller_id, None, None).await?;
    let later = {
        let mut tx = app.db.read().await?;
        changes::later_dependents(&mut tx, &row).await?
    };
    let warnings = later
        .iter()
        .map(|id| format!("change {id} was applied later in the same area and may depend on this one"));
    let inverse_of = Inverse { of: row.id, secrets: secrets_of(app, &row)?, warnings: warnings.collect() };
    let request = Request {
        controller_id: row.controller_id,
        site_id: None,
        vendor: None,
        area: row.area.clone(),
        feature: first.feature,
        operation: first.operation,
        payload: first.payload,
        also: inverse.collect(),
        notes: Some(format!("takes back change {}", row.id)),
    };
    plan::stage_inverse(app, caller, origin, creation, &controller, request, inverse_of).await
}
