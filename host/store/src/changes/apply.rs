//! Applying: claiming a change, and moving it from step to step.
//!
//! One apply at a time per controller. The claim asks for it, and a unique index holds it.

use heddle_core::adapter::Task;
use heddle_core::change::{ApplyStep, Attempt, ChangeStatus, OutcomeState};
use heddle_core::{ChangeId, Timestamp, UserId};
use serde_json::Value;
use sqlx::types::Json;

use super::{ChangeRow, FROM, SELECT, find};
use crate::select::{Select, Set, affected};
use crate::{Error, Result, Scope, Tx};

/// How an attempt to begin an apply ended.
#[derive(Debug, Clone)]
pub enum Claim {
    /// The change is the caller's to apply.
    Claimed(Box<ChangeRow>),
    NotFound,
    /// It was applied or discarded.
    NotPending(ChangeStatus),
    /// Another change is being applied to the controller. Roll the transaction back.
    Busy,
    /// This change is being applied already.
    UnderWay,
}

/// What a step changes beside the step itself. By default nothing.
#[derive(Debug, Clone, Default)]
pub struct Advance {
    pub outcome_state: Option<OutcomeState>,
    pub outcome_message: Set<String>,
    pub outcome_detail: Set<Value>,
    pub task: Set<Task>,
    pub confirm_deadline: Set<Timestamp>,
    pub attempts: Option<Vec<Attempt>>,
    pub status: Option<ChangeStatus>,
    pub applied_by: Option<UserId>,
    pub applied_at: Option<Timestamp>,
}

/// Begins an apply, unless the change is not pending or the controller is taken.
///
/// The attempt is added to the change's, with the next number.
pub async fn claim_apply(
    tx: &mut Tx,
    id: ChangeId,
    attempt: &Attempt,
    confirm_within_secs: Option<i64>,
    now: Timestamp,
) -> Result<Claim> {
    // Claims of one controller wait for each other at its row, and then see what the others did.
    affected!(
        tx,
        sqlx::query(
            "
        UPDATE controller SET updated_at = updated_at
        WHERE id = (SELECT controller_id FROM change WHERE id = $1)"
        )
        .bind(id)
    );
    let Some(row) = find(tx, &Scope::everything(), id).await? else { return Ok(Claim::NotFound) };
    if row.status != ChangeStatus::Pending {
        return Ok(Claim::NotPending(row.status));
    }
    if row.apply_step != ApplyStep::Idle {
        return Ok(Claim::UnderWay);
    }
    let mut attempts = row.attempts;
    let number = u32::try_from(attempts.len()).unwrap_or(u32::MAX).saturating_add(1);
    attempts.push(Attempt { number, ..attempt.clone() });
    let claimed = on!(tx, conn => sqlx::query_as("
        UPDATE change
        SET apply_step = $2, apply_started_at = $3, updated_at = $3, outcome_state = $4,
            outcome_message = NULL, outcome_detail = NULL, task = NULL, confirm_deadline = NULL,
            confirm_within_secs = $5, attempts = $6
        WHERE id = $1 AND status = $7 AND apply_step = $8
            AND NOT EXISTS (
                SELECT 1 FROM change other
                WHERE other.controller_id = change.controller_id AND other.apply_step <> $8)
        RETURNING *")
        .bind(id).bind(ApplyStep::Sending).bind(now).bind(OutcomeState::Applying)
        .bind(confirm_within_secs).bind(Json(&attempts)).bind(ChangeStatus::Pending).bind(ApplyStep::Idle)
        .fetch_optional(conn)
        .await);
    match claimed.map_err(Error::from) {
        Ok(Some(row)) => Ok(Claim::Claimed(Box::new(row))),
        Ok(None) => Ok(Claim::Busy),
        Err(error) if error.is_unique("change_one_apply") => Ok(Claim::Busy),
        Err(error) => Err(error),
    }
}

/// Moves a change from one step to another; `None` when it is not at `from`, and then nothing is written.
pub async fn advance(
    tx: &mut Tx,
    id: ChangeId,
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
            applied_at = COALESCE($17, applied_at)
        WHERE id = $1 AND apply_step = $2
        RETURNING *")
        .bind(id).bind(from).bind(to).bind(now).bind(advance.outcome_state)
        .bind(advance.outcome_message.is_set()).bind(advance.outcome_message.value())
        .bind(advance.outcome_detail.is_set()).bind(advance.outcome_detail.value())
        .bind(advance.task.is_set()).bind(advance.task.value().map(Json))
        .bind(advance.confirm_deadline.is_set()).bind(advance.confirm_deadline.value())
        .bind(advance.attempts.as_ref().map(Json)).bind(advance.status)
        .bind(advance.applied_by).bind(advance.applied_at)
        .fetch_optional(conn)
        .await)?)
}

/// Changes whose apply has begun and not ended: where a restart goes on.
pub async fn under_way(tx: &mut Tx) -> Result<Vec<ChangeRow>> {
    Select::new(SELECT, FROM).and("c.apply_step <> 'idle'").all(tx, "c.apply_started_at, c.id", 10_000).await
}

/// How many changes are pending, by what became of their last attempt.
pub async fn count_pending(tx: &mut Tx) -> Result<Vec<(OutcomeState, i64)>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT outcome_state, COUNT(*) FROM change WHERE status = 'pending' GROUP BY outcome_state
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
