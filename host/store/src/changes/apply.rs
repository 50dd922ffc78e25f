//! Applying: claiming a change, and moving it from step to step.
//!
//! One apply at a time per controller. The claim asks for it, and a unique index holds it.
//! One process at a time brings an apply forward: what another one writes has no effect.

use heddle_core::adapter::Task;
use heddle_core::change::{ApplyStep, Attempt, ChangeStatus, HoleValues, OutcomeState, StageSent};
use heddle_core::{ChangeId, ControllerId, ProcessId, Timestamp, UserId};
use serde_json::Value;
use sqlx::FromRow;
use sqlx::types::Json;

use super::{ChangeRow, FROM, find};
use crate::db::Tx;
use crate::error::{Error, Result};
use crate::processes::gone_among;
use crate::select::{Bind, Scope, Select, Set, affected};

/// The controllers that sets over several of them keep for themselves.
const LOCKED: &str = "FROM change_saga_part part JOIN change_saga saga ON saga.id = part.saga_id";

/// How an attempt to begin an apply ended.
#[derive(Debug, Clone)]
pub enum Claim {
    /// The change is the caller's to apply.
    Claimed(Box<ChangeRow>),
    /// It was applied or discarded.
    NotPending(ChangeStatus),
    /// Another change is being applied to the controller. Roll the transaction back.
    Busy,
    /// This change is being applied already.
    UnderWay,
}

/// What a step changes besides the step itself. By default nothing.
#[derive(Debug, Clone, Default)]
pub struct Advance {
    pub outcome_state: Option<OutcomeState>,
    pub outcome_message: Set<String>,
    pub outcome_detail: Set<Value>,
    pub task: Set<Task>,
    /// The step that the task belongs to.
    pub task_step: Option<ApplyStep>,
    pub sent: Option<Vec<StageSent>>,
    pub hole_values: Option<HoleValues>,
    pub verified_at: Option<Timestamp>,
    pub confirm_deadline: Set<Timestamp>,
    pub attempts: Option<Vec<Attempt>>,
    pub status: Option<ChangeStatus>,
    pub applied_by: Option<UserId>,
    pub applied_at: Option<Timestamp>,
}

/// The confirm window that an apply is begun with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    pub confirm_within_secs: Option<i64>,
    /// How far it may be extended; `None` when nothing was said of that.
    pub extendable_to_secs: Option<i64>,
}

/// An apply that a process brings forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
pub struct UnderWay {
    pub id: ChangeId,
    pub controller_id: ControllerId,
    pub apply_step: ApplyStep,
}

/// Begins an apply, unless the change is not pending or the controller is taken.
///
/// The attempt is added to the change's, with the next number. The change is `owner`'s. The caller has it from [`hold`]:
/// claims of one controller wait for each other there, and then see what the others did.
pub async fn claim_apply(
    tx: &mut Tx,
    row: &ChangeRow,
    owner: ProcessId,
    attempt: &Attempt,
    window: Window,
    now: Timestamp,
) -> Result<Claim> {
    if row.status != ChangeStatus::Pending {
        return Ok(Claim::NotPending(row.status));
    }
    if row.apply_step != ApplyStep::Idle {
        return Ok(Claim::UnderWay);
    }
    if row.set_id.is_some() {
        return Ok(Claim::Busy);
    }
    let mut attempts = row.attempts.clone();
    let number = u32::try_from(attempts.len()).unwrap_or(u32::MAX).saturating_add(1);
    attempts.push(Attempt { number, ..attempt.clone() });
    let claimed = on!(tx, conn => sqlx::query_as("
        UPDATE change
        SET apply_step = $2, apply_started_at = $3, updated_at = $3, outcome_state = $4,
            outcome_message = NULL, outcome_detail = NULL, task = NULL, confirm_deadline = NULL,
            confirm_within_secs = $5, attempts = $6, apply_owner = $9, extendable_to_secs = $10,
            task_step = NULL, verified_at = NULL, sent = '[]', hole_values = NULL
        WHERE id = $1 AND status = $7 AND apply_step = $8 AND set_id IS NULL
            AND NOT EXISTS (
                SELECT 1 FROM change other
                WHERE other.controller_id = change.controller_id AND other.apply_step <> $8)
            AND NOT EXISTS (
                SELECT 1 FROM change_saga_part part
                WHERE part.controller_id = change.controller_id AND part.is_locked AND part.change_id <> change.id)
        RETURNING *")
        .bind(row.id).bind(ApplyStep::Sending).bind(now).bind(OutcomeState::Applying)
        .bind(window.confirm_within_secs).bind(Json(&attempts)).bind(ChangeStatus::Pending).bind(ApplyStep::Idle)
        .bind(owner).bind(window.extendable_to_secs)
        .fetch_optional(conn)
        .await);
    match claimed.map_err(Error::from) {
        Ok(Some(row)) => Ok(Claim::Claimed(Box::new(row))),
        Ok(None) => Ok(Claim::Busy),
        Err(error) if error.is_unique("change_one_apply") => Ok(Claim::Busy),
        Err(error) => Err(error),
    }
}

/// Moves a change from one step to another; `None` when it is not at `from` or not owned by `owner`, and then nothing
/// is written. At the end it has no owner.
pub async fn advance(
    tx: &mut Tx,
    id: ChangeId,
    owner: Option<ProcessId>,
    from: ApplyStep,
    to: ApplyStep,
    advance: &Advance,
    now: Timestamp,
) -> Result<Option<ChangeRow>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE change
        SET apply_step = $3, updated_at = $4,
            outcome_state = COALESCE($5, outcome_state),
            outcome_message = CASE WHEN $6 THEN $7 ELSE outcome_message END,
            outcome_detail = CASE WHEN $8 THEN $9 ELSE outcome_detail END,
            task = CASE WHEN $10 THEN $11 ELSE task END,
            confirm_deadline = CASE WHEN $12 THEN $13 ELSE confirm_deadline END,
            attempts = COALESCE($14, attempts),
            status = COALESCE($15, status),
            applied_by = COALESCE($16, applied_by),
            applied_at = COALESCE($17, applied_at),
            task_step = COALESCE($19, task_step),
            verified_at = COALESCE($20, verified_at),
            sent = COALESCE($21, sent),
            hole_values = COALESCE($22, hole_values),
            apply_owner = CASE WHEN $3 = 'idle' THEN NULL ELSE apply_owner END
        WHERE id = $1 AND apply_step = $2 AND apply_owner IS NOT DISTINCT FROM $18
        RETURNING *")
        .bind(id).bind(from).bind(to).bind(now).bind(advance.outcome_state)
        .bind(advance.outcome_message.is_set()).bind(advance.outcome_message.value())
        .bind(advance.outcome_detail.is_set()).bind(advance.outcome_detail.value())
        .bind(advance.task.is_set()).bind(advance.task.value().map(Json))
        .bind(advance.confirm_deadline.is_set()).bind(advance.confirm_deadline.value())
        .bind(advance.attempts.as_ref().map(Json)).bind(advance.status)
        .bind(advance.applied_by).bind(advance.applied_at).bind(owner)
        .bind(advance.task_step).bind(advance.verified_at).bind(advance.sent.as_ref().map(Json))
        .bind(advance.hole_values.as_ref().map(Json))
        .fetch_optional(conn)
        .await)?)
}

/// Records how far the calls of the stages were sent, with what is known besides; false when the change is not at `step`
/// or not owned by `owner`, and then nothing is written. It reads nothing back: a plan can be large, and have many calls.
pub async fn record_sent(
    tx: &mut Tx,
    id: ChangeId,
    owner: ProcessId,
    step: ApplyStep,
    (sent, values): (&[StageSent], Option<&HoleValues>),
    detail: &Set<Value>,
) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE change SET sent = $4, outcome_detail = CASE WHEN $5 THEN $6 ELSE outcome_detail END,
            hole_values = COALESCE($7, hole_values)
        WHERE id = $1 AND apply_owner = $2 AND apply_step = $3"
        )
        .bind(id)
        .bind(owner)
        .bind(step)
        .bind(Json(sent))
        .bind(detail.is_set())
        .bind(detail.value())
        .bind(values.map(Json))
    );
    Ok(rows == 1)
}

/// Confirms a change that waits for its confirmation, and takes it from its owner, which only waits: any process may be
/// the owner. `None` when it no longer waits.
pub async fn take_held(
    tx: &mut Tx,
    id: ChangeId,
    owner: ProcessId,
    detail: &Set<Value>,
    now: Timestamp,
) -> Result<Option<ChangeRow>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE change SET apply_step = $3, apply_owner = $2, outcome_message = NULL, updated_at = $4,
            outcome_detail = CASE WHEN $6 THEN $7 ELSE outcome_detail END
        WHERE id = $1 AND apply_step = $5
        RETURNING *")
        .bind(id).bind(owner).bind(ApplyStep::Confirming).bind(now).bind(ApplyStep::Holding)
        .bind(detail.is_set()).bind(detail.value())
        .fetch_optional(conn)
        .await)?)
}

/// Takes back a change that waits for its confirmation: any process may be its owner. `None` when it no longer waits.
pub async fn take_back_held(
    tx: &mut Tx,
    id: ChangeId,
    owner: ProcessId,
    message: &str,
    now: Timestamp,
) -> Result<Option<ChangeRow>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE change SET apply_step = $3, apply_owner = $2, outcome_message = $6, updated_at = $4
        WHERE id = $1 AND apply_step = $5
        RETURNING *")
        .bind(id).bind(owner).bind(ApplyStep::Restoring).bind(now).bind(ApplyStep::Holding).bind(message)
        .fetch_optional(conn)
        .await)?)
}

/// Begins to take back what an attempt with an end in doubt left at the device; `sent` is what counts as sent from now
/// on. `None` when the change is no longer in doubt, or another one is being applied to its controller.
pub async fn take_back_unsettled(
    tx: &mut Tx,
    id: ChangeId,
    owner: ProcessId,
    message: &str,
    sent: &[StageSent],
    now: Timestamp,
) -> Result<Option<ChangeRow>> {
    hold_controller(tx, id).await?;
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE change
        SET apply_step = $3, apply_owner = $2, outcome_message = $6, updated_at = $4, apply_started_at = $4,
            task = NULL, task_step = NULL, confirm_deadline = NULL, confirm_within_secs = NULL,
            extendable_to_secs = NULL, verified_at = NULL, sent = $7
        WHERE id = $1 AND apply_step = $5 AND status = 'pending' AND outcome_state IN ('partial', 'unknown')
            AND set_id IS NULL
            AND NOT EXISTS (
                SELECT 1 FROM change other
                WHERE other.controller_id = change.controller_id AND other.apply_step <> $5)
            AND NOT EXISTS (
                SELECT 1 FROM change_saga_part part
                WHERE part.controller_id = change.controller_id AND part.is_locked AND part.change_id <> change.id)
        RETURNING *")
        .bind(id).bind(owner).bind(ApplyStep::Restoring).bind(now).bind(ApplyStep::Idle).bind(message)
        .bind(Json(sent))
        .fetch_optional(conn)
        .await)?)
}

/// Begins to take back a change that is in effect and permanent, by the calls of its own plan that write the state before;
/// it is pending again. `sent` is what counts as sent from now on. `None` when it is not applied, was taken back, or another
/// change is being applied to its controller.
pub async fn take_back_applied(
    tx: &mut Tx,
    id: ChangeId,
    owner: ProcessId,
    message: &str,
    sent: &[StageSent],
    now: Timestamp,
) -> Result<Option<ChangeRow>> {
    hold_controller(tx, id).await?;
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE change
        SET apply_step = $3, apply_owner = $2, status = 'pending', outcome_state = $8, outcome_message = $6,
            updated_at = $4, apply_started_at = $4, applied_by = NULL, applied_at = NULL, task = NULL, task_step = NULL,
            confirm_deadline = NULL, confirm_within_secs = NULL, extendable_to_secs = NULL, verified_at = NULL, sent = $7
        WHERE id = $1 AND apply_step = $5 AND status = 'applied' AND outcome_state = 'applied' AND reverted_by IS NULL
            AND set_id IS NULL
            AND NOT EXISTS (
                SELECT 1 FROM change other
                WHERE other.controller_id = change.controller_id AND other.apply_step <> $5)
            AND NOT EXISTS (
                SELECT 1 FROM change_saga_part part
                WHERE part.controller_id = change.controller_id AND part.is_locked AND part.change_id <> change.id)
        RETURNING *")
        .bind(id).bind(owner).bind(ApplyStep::WritingBack).bind(now).bind(ApplyStep::Idle).bind(message)
        .bind(Json(sent)).bind(OutcomeState::Applying)
        .fetch_optional(conn)
        .await)?)
}

/// Holds the controller of a change and then the change until the transaction ends, and returns the change as it is then.
/// Whatever holds both takes them in this order. `None` when the change is unknown.
pub async fn hold(tx: &mut Tx, id: ChangeId) -> Result<Option<ChangeRow>> {
    hold_controller(tx, id).await?;
    lock(tx, id).await?;
    find(tx, &Scope::everything(), id).await
}

pub(super) async fn hold_controller(tx: &mut Tx, id: ChangeId) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        UPDATE controller SET updated_at = updated_at
        WHERE id = (SELECT controller_id FROM change WHERE id = $1)"
        )
        .bind(id)
    );
    Ok(())
}

/// Waits for every other transaction that writes the change, and keeps others waiting.
pub async fn lock(tx: &mut Tx, id: ChangeId) -> Result<()> {
    affected!(tx, sqlx::query("UPDATE change SET updated_at = updated_at WHERE id = $1").bind(id));
    Ok(())
}

/// Has the job ended that a change waits for: any process may be its owner, and `owner` is from now on. `attempts` have
/// the request, and `sent` is what counts as sent. `None` when no job runs any more.
pub async fn begin_cancel(
    tx: &mut Tx,
    id: ChangeId,
    owner: ProcessId,
    (attempts, sent): (&[Attempt], &[StageSent]),
    now: Timestamp,
) -> Result<Option<ChangeRow>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE change SET apply_step = $3, apply_owner = $2, attempts = $6, sent = $7, updated_at = $4
        WHERE id = $1 AND apply_step = $5
        RETURNING *")
        .bind(id).bind(owner).bind(ApplyStep::Cancelling).bind(now).bind(ApplyStep::Polling)
        .bind(Json(attempts)).bind(Json(sent))
        .fetch_optional(conn)
        .await)?)
}

/// Moves the end of the confirm window of a change that waits in it; `None` when it waits no more, or not until
/// `from`.
pub async fn extend_window(
    tx: &mut Tx,
    id: ChangeId,
    from: Timestamp,
    to: Timestamp,
    message: &str,
    now: Timestamp,
) -> Result<Option<ChangeRow>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE change SET confirm_deadline = $3, outcome_message = $4, updated_at = $5
        WHERE id = $1 AND apply_step = $6 AND confirm_deadline = $2
        RETURNING *")
        .bind(id).bind(from).bind(to).bind(message).bind(now).bind(ApplyStep::Holding)
        .fetch_optional(conn)
        .await)?)
}

/// Ends an apply that gets no answer: any process may be its owner. What the device holds stays unknown. `None` when it
/// is at rest, or has an answer.
pub async fn give_up_unknown(
    tx: &mut Tx,
    row: &ChangeRow,
    message: &str,
    now: Timestamp,
) -> Result<Option<ChangeRow>> {
    let mut attempts = row.attempts.clone();
    if let Some(last) = attempts.last_mut() {
        last.end(OutcomeState::Unknown, Some(message), now);
    }
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE change SET apply_step = $2, apply_owner = NULL, outcome_message = $3, updated_at = $4, attempts = $6
        WHERE id = $1 AND apply_step <> $2 AND outcome_state = $5
        RETURNING *")
        .bind(row.id).bind(ApplyStep::Idle).bind(message).bind(now).bind(OutcomeState::Unknown).bind(Json(&attempts))
        .fetch_optional(conn)
        .await)?)
}

/// Returns the applies that this process owns, the longest in flight first.
pub async fn owned(tx: &mut Tx, owner: ProcessId) -> Result<Vec<UnderWay>> {
    Select::new("SELECT c.id, c.controller_id, c.apply_step", FROM)
        .and("c.apply_step <> 'idle'")
        .and_bind("c.apply_owner = ?", Bind::Id(owner.0))
        .all(tx, "c.apply_started_at, c.id", 10_000)
        .await
}

/// Returns the processes that own applies and are no longer alive; `None` when no apply is orphaned.
pub async fn orphaned(tx: &mut Tx, me: ProcessId) -> Result<Option<Vec<ProcessId>>> {
    let owners: Vec<Option<ProcessId>> = on!(tx, conn => sqlx::query_scalar("
        SELECT DISTINCT apply_owner FROM change WHERE apply_step <> 'idle'")
        .fetch_all(conn)
        .await)?;
    let is_some_free = owners.contains(&None);
    let gone = gone_among(tx, me, owners.into_iter().flatten().collect()).await?;
    Ok((is_some_free || !gone.is_empty()).then_some(gone))
}

/// Takes over the applies of these processes, which are gone, and those without an owner; returns those that it got.
pub async fn take_over(tx: &mut Tx, me: ProcessId, gone: &[ProcessId]) -> Result<Vec<UnderWay>> {
    let mut taken: Vec<UnderWay> = on!(tx, conn => sqlx::query_as("
        UPDATE change SET apply_owner = $1 WHERE apply_step <> 'idle' AND apply_owner IS NULL
        RETURNING id, controller_id, apply_step")
        .bind(me)
        .fetch_all(conn)
        .await)?;
    for owner in gone {
        let of_owner: Vec<UnderWay> = on!(tx, conn => sqlx::query_as("
            UPDATE change SET apply_owner = $1 WHERE apply_step <> 'idle' AND apply_owner = $2
            RETURNING id, controller_id, apply_step")
            .bind(me).bind(owner)
            .fetch_all(conn)
            .await)?;
        taken.extend(of_owner);
    }
    Ok(taken)
}

/// Gives an apply up as it stands, for another process to take; false when it is not this process's.
pub async fn release(tx: &mut Tx, id: ChangeId, owner: ProcessId) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE change SET apply_owner = NULL WHERE id = $1 AND apply_owner = $2 AND apply_step <> 'idle'"
        )
        .bind(id)
        .bind(owner)
    );
    Ok(rows == 1)
}

/// Whether a change within the scope is being applied, at this controller where one is given; or a set over several
/// controllers keeps the controller for itself.
pub async fn is_any_under_way(tx: &mut Tx, scope: &Scope, controller: Option<ControllerId>) -> Result<bool> {
    let under_way = Select::new("SELECT c.id", FROM)
        .within(scope, "c.org_id", None)
        .and("c.apply_step <> 'idle'")
        .and_some("c.controller_id = ?", controller.map(|id| Bind::Id(id.0)));
    if under_way.count(tx).await? > 0 {
        return Ok(true);
    }
    let locked = Select::new("SELECT part.change_id", LOCKED)
        .within(scope, "saga.org_id", None)
        .and("part.is_locked")
        .and_some("part.controller_id = ?", controller.map(|id| Bind::Id(id.0)));
    Ok(locked.count(tx).await? > 0)
}

/// Counts the pending changes by the outcome of their last attempt.
pub async fn count_pending(tx: &mut Tx) -> Result<Vec<(OutcomeState, i64)>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT outcome_state, COUNT(*) FROM change WHERE status = 'pending' AND NOT is_set GROUP BY outcome_state
        ORDER BY outcome_state")
        .fetch_all(conn)
        .await)?)
}

/// Records that `original` was taken back by the change `by`; false when it already was.
pub async fn mark_reverted(tx: &mut Tx, original: ChangeId, by: ChangeId, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE change SET reverted_by = $2, outcome_state = $3, updated_at = $4
        WHERE id = $1 AND reverted_by IS NULL"
        )
        .bind(original)
        .bind(by)
        .bind(OutcomeState::Reverted)
        .bind(now)
    );
    Ok(rows == 1)
}

/// Takes back that `original` was taken back by the change `by`, which is no longer in effect itself. Returns whether it was.
pub async fn unmark_reverted(tx: &mut Tx, original: ChangeId, by: ChangeId, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE change SET reverted_by = NULL, outcome_state = $3, updated_at = $4
        WHERE id = $1 AND reverted_by = $2"
        )
        .bind(original)
        .bind(by)
        .bind(OutcomeState::Applied)
        .bind(now)
    );
    Ok(rows == 1)
}
