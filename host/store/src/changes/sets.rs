//! Sets of changes: one row holds the plan and the apply, its members follow it.

use heddle_core::change::{ApplyStep, Attempt, ChangeStatus, OutcomeState};
use heddle_core::{ChangeId, Timestamp, UserId};
use sqlx::FromRow;
use sqlx::types::Json;

use super::apply::hold_controller;
use super::{ChangeRow, FROM, SELECT};
use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Select, affected};

/// Most members of a set, and so of any list of them.
const MEMBERS_MAX: i64 = 50;

/// What the members of a set learn of its apply.
#[derive(Debug, Clone)]
pub struct Followed {
    pub ids: Vec<ChangeId>,
    pub status: ChangeStatus,
    pub state: OutcomeState,
    pub message: Option<String>,
    pub applied_by: Option<UserId>,
    pub applied_at: Option<Timestamp>,
    /// The change that took the set back.
    pub reverted_by: Option<ChangeId>,
}

/// Where the apply of a set stands.
#[derive(Debug, Clone, FromRow)]
pub struct SetStanding {
    pub id: ChangeId,
    pub apply_step: ApplyStep,
    pub confirm_deadline: Option<Timestamp>,
    #[sqlx(json)]
    pub attempts: Vec<Attempt>,
}

/// Makes changes members of a set, in this order; false when one is not pending, is being applied, is a member of a set
/// already or was written since it was read, and then the transaction must be rolled back. Each change comes with its
/// `updated_at`, as it was read: the plan of the set is made of what it was then.
pub async fn join(
    tx: &mut Tx,
    set: ChangeId,
    members: &[(ChangeId, Timestamp)],
    now: Timestamp,
) -> Result<bool> {
    // An apply of a member begins with the same lock.
    hold_controller(tx, set).await?;
    for (position, (member, read)) in (0_i64..).zip(members) {
        let rows = affected!(
            tx,
            sqlx::query(
                "
            UPDATE change SET set_id = $2, set_position = $3, updated_at = $4
            WHERE id = $1 AND set_id IS NULL AND saga_id IS NULL AND NOT is_set AND status = 'pending' AND apply_step = 'idle'
                AND outcome_state NOT IN ('partial', 'unknown') AND updated_at = $5"
            )
            .bind(member)
            .bind(set)
            .bind(position)
            .bind(now)
            .bind(read)
        );
        if rows != 1 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A set's members in their order.
pub async fn members(tx: &mut Tx, set: ChangeId) -> Result<Vec<ChangeRow>> {
    Select::new(SELECT, FROM)
        .and_bind("c.set_id = ?", Bind::Id(set.0))
        .all(tx, "c.set_position, c.id", MEMBERS_MAX)
        .await
}

/// Where the applies of these sets stand.
pub async fn standings(tx: &mut Tx, sets: &[ChangeId]) -> Result<Vec<SetStanding>> {
    if sets.is_empty() {
        return Ok(Vec::new());
    }
    let head = "SELECT c.id, c.apply_step, c.confirm_deadline, c.attempts";
    let most = i64::try_from(sets.len()).unwrap_or(i64::MAX);
    Select::new(head, FROM).and_in("c.id", sets.iter().map(|id| Bind::Id(id.0))).all(tx, "c.id", most).await
}

/// Gives members of a set its status and an outcome. A discarded change forgets its secrets.
pub async fn follow(tx: &mut Tx, set: ChangeId, told: &Followed, now: Timestamp) -> Result<()> {
    for member in &told.ids {
        affected!(
            tx,
            sqlx::query(
                "
            UPDATE change
            SET status = $3, outcome_state = $4, outcome_message = $5, updated_at = $6,
                applied_by = $7, applied_at = $8,
                reverted_by = $9,
                secret = CASE WHEN $3 = 'discarded' THEN NULL ELSE secret END,
                plan_token = CASE WHEN $3 = 'discarded' THEN NULL ELSE plan_token END
            WHERE id = $1 AND set_id = $2"
            )
            .bind(member)
            .bind(set)
            .bind(told.status)
            .bind(told.state)
            .bind(told.message.as_ref())
            .bind(now)
            .bind(told.applied_by)
            .bind(told.applied_at)
            .bind(told.reverted_by)
        );
    }
    Ok(())
}

/// Makes a set's members, or those of this status, changes of their own again; they keep the attempts of the set.
pub async fn free_members(
    tx: &mut Tx,
    set: &ChangeRow,
    only: Option<ChangeStatus>,
    now: Timestamp,
) -> Result<()> {
    let members = members(tx, set.id).await?;
    for member in members.into_iter().filter(|member| only.is_none_or(|status| member.status == status)) {
        let mut attempts: Vec<Attempt> = member.attempts.iter().chain(&set.attempts).cloned().collect();
        for (number, attempt) in (1..).zip(&mut attempts) {
            attempt.number = number;
        }
        affected!(
            tx,
            sqlx::query(
                "
            UPDATE change SET set_id = NULL, set_position = NULL, attempts = $2, updated_at = $3
            WHERE id = $1"
            )
            .bind(member.id)
            .bind(Json(&attempts))
            .bind(now)
        );
    }
    Ok(())
}
