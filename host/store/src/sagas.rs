//! Sets of changes over several controllers, and their parts. The change row of a part records its progress.
//!
//! Whatever writes a set or its parts has locked the row of the set first, then controllers by their ids, then changes.

use heddle_core::change::ChangeStatus;
use heddle_core::saga::{PartPhase, SagaAttempt, SagaState, SagaStep};
use heddle_core::{ChangeId, ControllerId, OrgId, Timestamp, UserId};
use sqlx::FromRow;
use sqlx::types::Json;

use crate::changes::ChangeRow;
use crate::db::Tx;
use crate::error::{Error, Result};
use crate::select::{Bind, Scope, Select, Set, affected};

/// Most changes of a set.
const MEMBERS_MAX: i64 = 200;
/// Most sets that one round of work takes.
const ROUND_MAX: i64 = 1_000;

const SELECT: &str = "SELECT saga.*";
const FROM: &str = "FROM change_saga saga";

/// A set over several controllers as it is stored.
#[derive(Debug, Clone, FromRow)]
pub struct SagaRow {
    pub id: ChangeId,
    pub org_id: OrgId,
    pub status: ChangeStatus,
    pub state: SagaState,
    pub step: SagaStep,
    pub message: Option<String>,
    pub created_by: UserId,
    pub created_at: Timestamp,
    /// When the first of its changes expires.
    pub expires_at: Timestamp,
    pub applied_by: Option<UserId>,
    pub applied_at: Option<Timestamp>,
    /// When its last attempt began.
    pub started_at: Option<Timestamp>,
    pub confirm_within_secs: Option<i64>,
    /// How far the window may be extended; `None` when nothing was said of that.
    pub extendable_to_secs: Option<i64>,
    /// The end of the window that spans the whole set.
    pub confirm_deadline: Option<Timestamp>,
    #[sqlx(json)]
    pub attempts: Vec<SagaAttempt>,
    /// Why a person gave it up.
    pub reason: Option<String>,
    /// The set that this one takes back.
    pub reverts: Option<ChangeId>,
    pub reverted_by: Option<ChangeId>,
    pub updated_at: Timestamp,
}

/// One part of a set: all of its changes at one controller.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct PartRow {
    pub saga_id: ChangeId,
    /// Counts from 0, in the order in which the parts are applied.
    pub position: i64,
    /// The change, or the set of one controller.
    pub change_id: ChangeId,
    pub controller_id: ControllerId,
    /// How far the controller is from the service, where that is known.
    pub hops: Option<i64>,
    pub phase: PartPhase,
    /// No other change is applied to the controller meanwhile.
    pub is_locked: bool,
}

/// A row of `change_saga` about to be written. It begins as pending and without an attempt.
#[derive(Debug, Clone)]
pub struct NewSaga {
    pub id: ChangeId,
    pub org_id: OrgId,
    pub created_by: UserId,
    pub expires_at: Timestamp,
    pub reverts: Option<ChangeId>,
    pub now: Timestamp,
}

/// A part about to be written, in the order of the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewPart {
    pub change_id: ChangeId,
    pub controller_id: ControllerId,
    pub hops: Option<u32>,
}

/// What a transition changes besides the step. By default nothing.
#[derive(Debug, Clone, Default)]
pub struct Transition {
    pub state: Option<SagaState>,
    pub status: Option<ChangeStatus>,
    pub message: Set<String>,
    pub attempts: Option<Vec<SagaAttempt>>,
    pub started_at: Option<Timestamp>,
    pub confirm_within_secs: Set<i64>,
    pub extendable_to_secs: Set<i64>,
    pub confirm_deadline: Set<Timestamp>,
    pub applied_by: Set<UserId>,
    pub applied_at: Set<Timestamp>,
    pub expires_at: Option<Timestamp>,
    pub reason: Option<String>,
    pub reverted_by: Set<ChangeId>,
}

/// Writes a set with its parts, in the order in which they are applied. Its changes [`join`] it.
pub async fn insert(tx: &mut Tx, new: &NewSaga, parts: &[NewPart]) -> Result<SagaRow> {
    let row = on!(tx, conn => sqlx::query_as("
        INSERT INTO change_saga (id, org_id, status, state, step, created_by, created_at, expires_at, attempts, reverts,
            updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $7)
        RETURNING *")
        .bind(new.id).bind(new.org_id).bind(ChangeStatus::Pending).bind(SagaState::None).bind(SagaStep::Idle)
        .bind(new.created_by).bind(new.now).bind(new.expires_at).bind(Json(Vec::<SagaAttempt>::new()))
        .bind(new.reverts)
        .fetch_one(conn)
        .await)?;
    for (position, part) in (0_i64..).zip(parts) {
        affected!(
            tx,
            sqlx::query(
                "
            INSERT INTO change_saga_part (saga_id, position, change_id, controller_id, hops, phase, is_locked)
            VALUES ($1, $2, $3, $4, $5, $6, $7)"
            )
            .bind(new.id)
            .bind(position)
            .bind(part.change_id)
            .bind(part.controller_id)
            .bind(part.hops.map(i64::from))
            .bind(PartPhase::Waiting)
            .bind(false)
        );
    }
    Ok(row)
}

/// Adds changes to a set; false when one is not pending, is being applied, belongs to another set or was written since
/// it was read, and then the transaction must be rolled back. Each change comes with its `updated_at`, as it was read.
pub async fn join(
    tx: &mut Tx,
    saga: ChangeId,
    changes: &[(ChangeId, Timestamp)],
    now: Timestamp,
) -> Result<bool> {
    for (change, read) in changes {
        let rows = affected!(
            tx,
            sqlx::query(
                "
            UPDATE change SET saga_id = $2, updated_at = $3
            WHERE id = $1 AND set_id IS NULL AND saga_id IS NULL AND status = 'pending' AND apply_step = 'idle'
                AND outcome_state NOT IN ('partial', 'unknown') AND updated_at = $4"
            )
            .bind(change)
            .bind(saga)
            .bind(now)
            .bind(read)
        );
        if rows != 1 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Adds the members of a set of one controller that is a part of this one.
pub async fn join_members(tx: &mut Tx, saga: ChangeId, part: ChangeId) -> Result<()> {
    affected!(tx, sqlx::query("UPDATE change SET saga_id = $1 WHERE set_id = $2").bind(saga).bind(part));
    Ok(())
}

/// Makes the changes of a set, or those of this status, separate changes again; a set of one controller among them becomes a
/// set of its own.
pub async fn free(tx: &mut Tx, saga: ChangeId, only: Option<ChangeStatus>, now: Timestamp) -> Result<()> {
    let statuses = only.map_or_else(|| ChangeStatus::ALL.to_vec(), |status| vec![status]);
    for status in statuses {
        affected!(
            tx,
            sqlx::query(
                "UPDATE change SET saga_id = NULL, updated_at = $3 WHERE saga_id = $1 AND status = $2"
            )
            .bind(saga)
            .bind(status)
            .bind(now)
        );
    }
    Ok(())
}

/// Returns the set, in whatever status. Which of its changes the caller may see is the caller's rule.
pub async fn find(tx: &mut Tx, scope: &Scope, id: ChangeId) -> Result<Option<SagaRow>> {
    Select::new(SELECT, FROM)
        .within(scope, "saga.org_id", None)
        .and_bind("saga.id = ?", Bind::Id(id.0))
        .one(tx)
        .await
}

/// Returns the set, locked until the transaction ends: every transition of it waits here.
pub async fn lock(tx: &mut Tx, id: ChangeId) -> Result<Option<SagaRow>> {
    Select::new(SELECT, FROM).and_bind("saga.id = ?", Bind::Id(id.0)).one_locked(tx, "saga").await
}

/// Returns the parts in their order.
pub async fn parts(tx: &mut Tx, saga: ChangeId) -> Result<Vec<PartRow>> {
    Select::new("SELECT part.*", "FROM change_saga_part part")
        .and_bind("part.saga_id = ?", Bind::Id(saga.0))
        .all(tx, "part.position, part.change_id", MEMBERS_MAX)
        .await
}

/// Returns the rows of the changes of a set, also of one that they have left: parts, and members of parts, those of one part in
/// their order.
pub async fn changes(tx: &mut Tx, saga: ChangeId) -> Result<Vec<ChangeRow>> {
    let from =
        "FROM change_saga_part part JOIN change c ON c.id = part.change_id OR c.set_id = part.change_id";
    Select::new("SELECT c.*", from)
        .and_bind("part.saga_id = ?", Bind::Id(saga.0))
        .all(tx, "c.set_position, c.id", MEMBERS_MAX)
        .await
}

/// Returns the sets on which work is under way, the oldest first.
pub async fn under_way(tx: &mut Tx) -> Result<Vec<ChangeId>> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        SELECT id FROM change_saga WHERE step <> 'idle' ORDER BY id LIMIT CAST($1 AS BIGINT)")
        .bind(ROUND_MAX)
        .fetch_all(conn)
        .await)?)
}

/// Returns sets whose time has run out. One that is stuck stays until a person has looked.
pub async fn expired(tx: &mut Tx, now: Timestamp) -> Result<Vec<ChangeId>> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        SELECT id FROM change_saga
        WHERE status = 'pending' AND step = 'idle' AND state <> 'stuck' AND expires_at <= $1
        ORDER BY expires_at, id LIMIT CAST($2 AS BIGINT)")
        .bind(now).bind(ROUND_MAX)
        .fetch_all(conn)
        .await)?)
}

/// Returns the sets that are stuck, the oldest first, and how many there are.
pub async fn stuck(tx: &mut Tx) -> Result<(Vec<ChangeId>, i64)> {
    let stuck =
        || Select::new("SELECT saga.id", FROM).and("saga.status = 'pending'").and("saga.state = 'stuck'");
    let count = stuck().count(tx).await?;
    let first: Vec<(ChangeId,)> = stuck().all(tx, "saga.created_at, saga.id", 10).await?;
    Ok((first.into_iter().map(|(id,)| id).collect(), count))
}

/// Moves a set that the caller has locked to a step.
pub async fn advance(
    tx: &mut Tx,
    id: ChangeId,
    step: SagaStep,
    to: &Transition,
    now: Timestamp,
) -> Result<SagaRow> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE change_saga
        SET step = $2, updated_at = $3,
            state = COALESCE($4, state),
            status = COALESCE($5, status),
            message = CASE WHEN $6 THEN $7 ELSE message END,
            attempts = COALESCE($8, attempts),
            started_at = COALESCE($9, started_at),
            confirm_within_secs = CASE WHEN $10 THEN $11 ELSE confirm_within_secs END,
            extendable_to_secs = CASE WHEN $12 THEN $13 ELSE extendable_to_secs END,
            confirm_deadline = CASE WHEN $14 THEN $15 ELSE confirm_deadline END,
            applied_by = CASE WHEN $16 THEN $17 ELSE applied_by END,
            applied_at = CASE WHEN $18 THEN $19 ELSE applied_at END,
            expires_at = COALESCE($20, expires_at),
            reason = COALESCE($21, reason),
            reverted_by = CASE WHEN $22 THEN $23 ELSE reverted_by END
        WHERE id = $1
        RETURNING *")
        .bind(id).bind(step).bind(now).bind(to.state).bind(to.status)
        .bind(to.message.is_set()).bind(to.message.value())
        .bind(to.attempts.as_ref().map(Json)).bind(to.started_at)
        .bind(to.confirm_within_secs.is_set()).bind(to.confirm_within_secs.value())
        .bind(to.extendable_to_secs.is_set()).bind(to.extendable_to_secs.value())
        .bind(to.confirm_deadline.is_set()).bind(to.confirm_deadline.value())
        .bind(to.applied_by.is_set()).bind(to.applied_by.value())
        .bind(to.applied_at.is_set()).bind(to.applied_at.value())
        .bind(to.expires_at).bind(to.reason.as_ref())
        .bind(to.reverted_by.is_set()).bind(to.reverted_by.value())
        .fetch_one(conn)
        .await)?)
}

/// Records what was decided on for a part.
pub async fn set_phase(tx: &mut Tx, saga: ChangeId, part: ChangeId, phase: PartPhase) -> Result<()> {
    affected!(
        tx,
        sqlx::query("UPDATE change_saga_part SET phase = $3 WHERE saga_id = $1 AND change_id = $2")
            .bind(saga)
            .bind(part)
            .bind(phase)
    );
    Ok(())
}

/// Puts the parts into this order.
pub async fn set_order(tx: &mut Tx, saga: ChangeId, parts: &[NewPart]) -> Result<()> {
    for (position, part) in (0_i64..).zip(parts) {
        affected!(
            tx,
            sqlx::query(
                "UPDATE change_saga_part SET position = $3, hops = $4 WHERE saga_id = $1 AND change_id = $2"
            )
            .bind(saga)
            .bind(part.change_id)
            .bind(position)
            .bind(part.hops.map(i64::from))
        );
    }
    Ok(())
}

/// Keeps the controllers of a set for it, in the order of their ids, so that two sets do not wait for each other. Returns
/// the first controller at which another change is being applied or which another set keeps; then the transaction must be
/// rolled back.
pub async fn lock_controllers(tx: &mut Tx, saga: ChangeId) -> Result<Option<ControllerId>> {
    let mut parts = parts(tx, saga).await?;
    parts.sort_by_key(|part| part.controller_id);
    for part in parts {
        let controller = part.controller_id;
        // An apply of another change begins with the same lock.
        affected!(
            tx,
            sqlx::query("UPDATE controller SET updated_at = updated_at WHERE id = $1").bind(controller)
        );
        let busy: i64 = on!(tx, conn => sqlx::query_scalar("
            SELECT (SELECT COUNT(*) FROM change WHERE controller_id = $1 AND apply_step <> 'idle')
                + (SELECT COUNT(*) FROM change_saga_part WHERE controller_id = $1 AND is_locked AND saga_id <> $2)")
            .bind(controller).bind(saga)
            .fetch_one(conn)
            .await)?;
        if busy > 0 {
            return Ok(Some(controller));
        }
        let locked = on!(tx, conn => sqlx::query("
            UPDATE change_saga_part SET is_locked = TRUE WHERE saga_id = $1 AND change_id = $2")
            .bind(saga).bind(part.change_id)
            .execute(conn)
            .await
            .map(|_| ()));
        match locked.map_err(Error::from) {
            Ok(()) => {}
            Err(error) if error.is_unique("change_saga_one_lock") => return Ok(Some(controller)),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Frees the controller of a part, or those of all parts.
pub async fn unlock(tx: &mut Tx, saga: ChangeId, part: Option<ChangeId>) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "UPDATE change_saga_part SET is_locked = FALSE
            WHERE saga_id = $1 AND is_locked AND ($2 IS NULL OR change_id = $2)"
        )
        .bind(saga)
        .bind(part)
    );
    Ok(())
}

#[cfg(test)]
mod tests;
