//! Applying: the gates, the recorded intent, and the answer.

use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::change::{ApplyStep, Attempt, OutcomeState, Plan};
use heddle_core::fault::{Fault, FaultKind};
use heddle_core::{ChangeId, ProcessId, UserId};
use heddle_files::named;
use heddle_inventory::controllers::releases;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;
use heddle_store::changes::{self, Advance, ChangeRow, Claim, Window};
use heddle_store::{ControllerTarget, Scope, Set, Tx, organizations};
use serde_json::{Value, json};

use super::drive::{self, Driving, Rest, Start, held_message};
use super::drivers::Drivers;
use super::outcome::{Actor, Step, record};
use super::place;
use super::{gates, new_key, set};
use crate::declarations::ChangesSettings;

/// How long a request waits for the end, in addition to the time in which the device must have been read.
const ANSWER_MARGIN: Duration = Duration::from_secs(10);
pub const CONFIRM_SECS: std::ops::RangeInclusive<u32> = 10..=600;

/// The parameters of a client's request to apply.
#[derive(Debug, Clone)]
pub struct ApplyRequest {
    pub force: Option<bool>,
    pub plan_hash: Option<String>,
    pub confirm_within_secs: Option<u32>,
    pub extendable_to_secs: Option<u32>,
}

/// Returns the change, if the caller may see it. A set is not a change.
pub(super) async fn find(app: &App, caller: &Caller, id: ChangeId) -> Result<ChangeRow, Error> {
    find_row(app, caller, id).await?.filter(|row| !row.is_set).ok_or(Error::NotFound("change"))
}

/// Returns a change or a set of changes, if the caller may see it.
pub async fn find_row(app: &App, caller: &Caller, id: ChangeId) -> Result<Option<ChangeRow>, Error> {
    let mut tx = app.db.single().await?;
    Ok(changes::find(&mut tx, &caller.scope(), id).await?)
}

/// Returns the change without a check of the caller: for the service's own steps.
pub(super) async fn get(tx: &mut Tx, id: ChangeId) -> Result<ChangeRow, Error> {
    changes::find(tx, &Scope::everything(), id).await?.ok_or(Error::NotFound("change"))
}

/// Applies a change, or a set of them, through both gates. The answer is the state that the device shows.
pub async fn apply(
    app: &SharedApp,
    caller: &Caller,
    origin: &Origin,
    row: ChangeRow,
    request: ApplyRequest,
) -> Result<ChangeRow, Error> {
    let id = row.id;
    let controller = {
        let mut tx = app.db.read().await?;
        let controller = may_be_applied(app, caller, &mut tx, &row, &request).await?.controller;
        controller_is_free(&mut tx, &row).await?;
        controller
    };
    // The device is asked last, because that takes a call. The answer is stored, and judged when the change is claimed.
    releases::learn(app, &origin.request_id, &controller).await?;
    // Everything that could keep the drive from starting is checked before the intent is recorded.
    let term = app.membership.term()?;
    let driver = Drivers::of(app).claim(id).ok_or_else(|| under_way(&row))?;
    drive::prepare(app, &row).await?;
    let row = claim(app, caller, origin, row, &request, term.id).await?;
    tracing::info!(change.id = %row.id, controller.id = %row.controller_id, user.id = %caller.user_id, "applying change {id}");
    // In its own task: a client that disconnects must not leave a device half configured.
    let driving = drive::spawn_claimed(app, driver, term, Start::Fresh);
    let limit = Duration::from_secs(u64::from(app.config.of::<ChangesSettings>().apply_hold_secs) + 60)
        + ANSWER_MARGIN;
    answer(rest_within(app, caller, id, driving, limit).await?)
}

/// Waits until a drive ends; after `limit` returns the change as it stands.
pub(super) async fn rest_within(
    app: &App,
    caller: &Caller,
    id: ChangeId,
    driving: Driving,
    limit: Duration,
) -> Result<Rest, Error> {
    let rest = match tokio::time::timeout(limit, driving).await {
        Ok(joined) => joined.map_err(Error::internal)??,
        Err(_) => None,
    };
    if let Some(rest) = rest {
        return Ok(rest);
    }
    let row = find_row(app, caller, id).await?.ok_or(Error::NotFound("change"))?;
    Ok(Rest { row, error: None })
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
    let mut tx = app.db.write().await?;
    // It may have been planned, applied or mapped elsewhere meanwhile. What is judged from here on is what will be sent.
    let row = changes::hold(&mut tx, row.id).await?.ok_or(Error::NotFound("change"))?;
    let ToSend { plan, controller } = may_be_applied(app, caller, &mut tx, &row, request).await?;
    gates::release_is_tested_or_allowed(app, &controller)?;
    gates::change_is_offered(app, &row, &controller)?;
    let plan_hash = plan.hash.clone();
    let begins = Begins {
        actor: Actor::caller(caller, origin),
        started_by: caller.user_id,
        via: caller.credential.via(),
        window: Window {
            confirm_within_secs: request.confirm_within_secs.map(i64::from),
            extendable_to_secs: request.extendable_to_secs.map(i64::from),
        },
        owner,
    };
    let row = begin(&mut tx, app, &row, plan_hash, begins).await?;
    tx.commit().await?;
    Ok(row)
}

/// The user that begins an apply, its window, and the process that drives it.
pub(super) struct Begins {
    pub(super) actor: Actor,
    pub(super) started_by: UserId,
    pub(super) via: Option<Value>,
    pub(super) window: Window,
    pub(super) owner: ProcessId,
}

/// Writes the intent to apply a change that [`changes::hold`] gave and all gates let pass.
pub(super) async fn begin(
    tx: &mut Tx,
    app: &App,
    row: &ChangeRow,
    plan_hash: String,
    begins: Begins,
) -> Result<ChangeRow, Error> {
    let Begins { actor, started_by, via, window, owner } = begins;
    let now = app.clock.now();
    let attempt = Attempt {
        number: 0,
        plan_hash,
        started_at: now,
        started_by,
        via,
        ended_at: None,
        state: OutcomeState::Applying,
        message: None,
        cancellations: Vec::new(),
    };
    let claim = changes::claim_apply(tx, row, owner, &attempt, window, now).await?;
    let row = match claim {
        Claim::Claimed(row) => *row,
        Claim::NotPending(status) => {
            return Err(gates::change_is_pending(status).err().unwrap_or_else(|| under_way(row)));
        }
        Claim::Busy => return Err(controller_busy()),
        Claim::UnderWay => return Err(under_way(row)),
    };
    let row = match window.confirm_within_secs {
        Some(secs) => {
            let deadline = now + TimeDelta::seconds(secs);
            let advance = Advance { confirm_deadline: Set::To(deadline), ..Advance::default() };
            let (step, owner) = (ApplyStep::Sending, Some(owner));
            let held = changes::advance(tx, row.id, owner, step, step, &advance, now).await?;
            held.ok_or_else(|| under_way(&row))?
        }
        None => row,
    };
    set::follow(tx, &row, now).await?;
    let mut step = Step::new("change.apply_started", actor);
    step.detail = json!({ "confirm_within_secs": window.confirm_within_secs });
    record(tx, app, &row, &step).await?;
    Ok(row)
}

/// What an apply sends, and where.
pub(super) struct ToSend<'r> {
    plan: &'r Plan,
    pub(super) controller: ControllerTarget,
}

/// Checks all gates but those of the release, which the device is asked for.
pub(super) async fn may_be_applied<'r>(
    app: &App,
    caller: &Caller,
    tx: &mut Tx,
    row: &'r ChangeRow,
    request: &ApplyRequest,
) -> Result<ToSend<'r>, Error> {
    gates::change_is_permitted(caller, row)?;
    gates::catastrophe_needs_site_admin(caller, row.danger)?;
    gates::change_is_pending(row.status)?;
    gates::platform_is_writable(app)?;
    gates::force_is_given(request.force)?;
    // The controller may have been moved to a site where the caller may not write since the change was staged.
    let controller = place::used_place_in(tx, app, caller, row).await?.controller;
    window_is_valid(request)?;
    let settings = organizations::settings_of(tx, row.org_id).await?;
    gates::second_person_applies(caller, &set::stagers(tx, row).await?, &settings)?;
    let plan = plan_may_be_sent(app, row, request)?;
    named::require(tx, row.org_id, plan).await?;
    Ok(ToSend { plan, controller })
}

/// Refuses at once what a claim would refuse because a change is being applied: the device may not answer meanwhile.
async fn controller_is_free(tx: &mut Tx, row: &ChangeRow) -> Result<(), Error> {
    if row.apply_step != ApplyStep::Idle {
        return Err(under_way(row));
    }
    if changes::is_any_under_way(tx, &Scope::everything(), Some(row.controller_id)).await? {
        return Err(controller_busy());
    }
    Ok(())
}

/// Checks the window that a client asks for.
fn window_is_valid(request: &ApplyRequest) -> Result<(), Error> {
    if let Some(secs) = request.confirm_within_secs
        && !CONFIRM_SECS.contains(&secs)
    {
        return Err(Error::field("confirm_within_secs", "confirm_within_secs must be from 10 to 600"));
    }
    if let Some(secs) = request.extendable_to_secs
        && !(request.confirm_within_secs.unwrap_or(u32::MAX)..=*CONFIRM_SECS.end()).contains(&secs)
    {
        let message = "extendable_to_secs must be from confirm_within_secs, which it needs, to 600";
        return Err(Error::field("extendable_to_secs", message));
    }
    Ok(())
}

/// Checks the gates that depend on the change alone. Returns the plan that will be sent.
fn plan_may_be_sent<'a>(app: &App, row: &'a ChangeRow, request: &ApplyRequest) -> Result<&'a Plan, Error> {
    gates::change_is_its_own(row)?;
    gates::change_has_not_expired(row, app.clock.now())?;
    let plan = plan_of(row)?;
    if request.plan_hash.as_ref().is_some_and(|hash| *hash != plan.hash) {
        return Err(Error::Conflict {
            kind: "plan_changed",
            message: "change was planned again since it was reviewed; review the plan and send its hash"
                .to_owned(),
        });
    }
    plan_is_still_good(app, row, plan)?;
    if let Some(secs) = request.confirm_within_secs {
        gates::window_fits(app, plan, secs)?;
    }
    Ok(plan)
}

fn plan_of(row: &ChangeRow) -> Result<&Plan, Error> {
    row.plan.as_ref().ok_or_else(|| Error::Conflict {
        kind: "not_planned",
        message: "change has no plan because the controller could not be read; plan it again first"
            .to_owned(),
    })
}

/// Checks that the outcome of an earlier attempt is settled, and that key and adapter are those that the plan was made with.
fn plan_is_still_good(app: &App, row: &ChangeRow, plan: &Plan) -> Result<(), Error> {
    gates::outcome_is_settled(row)?;
    new_key::plan_is_under_current_key(app, row)?;
    gates::plan_is_of_this_adapter(app, row, plan)
}

/// Returns the plan of a change that [`changes::hold`] gave, where it can be sent as it is, for the service's own steps: the
/// gates that depend on a caller were passed before.
pub(super) async fn plan_to_send<'r>(app: &App, tx: &mut Tx, row: &'r ChangeRow) -> Result<&'r Plan, Error> {
    gates::platform_is_writable(app)?;
    gates::change_is_pending(row.status)?;
    let controller = place::still_used(tx, row).await?;
    let plan = plan_of(row)?;
    plan_is_still_good(app, row, plan)?;
    named::require(tx, row.org_id, plan).await?;
    gates::release_is_tested_or_allowed(app, &controller)?;
    gates::change_is_offered(app, row, &controller)?;
    Ok(plan)
}

/// The refusal of any other operation on a change that is being applied.
pub(super) fn under_way(row: &ChangeRow) -> Error {
    let message = match row.apply_step {
        ApplyStep::Idle => "change was moved on meanwhile; read it again".to_owned(),
        ApplyStep::Holding => format!("{}; 'revert' takes it back now", held_message(row)),
        step => format!("change is being applied, at step '{step}'; wait until it has ended"),
    };
    Error::Conflict { kind: "under_way", message }
}

pub(super) fn controller_busy() -> Error {
    Error::Conflict {
        kind: "controller_busy",
        message: "another change is being applied to this controller; try again when it has ended".to_owned(),
    }
}

/// Returns the answer for the client after a drive has ended.
pub(super) fn answer(rest: Rest) -> Result<ChangeRow, Error> {
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
