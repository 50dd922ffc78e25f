//! Staged changes: their rows, plans and lists. Applying them is in [`apply`].
//!
//! A row is written by compare-and-set on its status and step, so that of two
//! requests at once one wins. Which step may follow which is the caller's rule.

mod apply;
mod list;
mod rekey;
mod row;
mod sets;

use std::collections::HashMap;

pub use apply::{
    Advance, Claim, UnderWay, Window, advance, begin_cancel, claim_apply, count_pending, extend_window,
    give_up_unknown, hold, is_any_under_way, lock, mark_reverted, orphaned, owned, record_sent, release,
    take_back_applied, take_back_held, take_back_unsettled, take_held, take_over, unmark_reverted,
};
use heddle_core::change::{ApplyStep, ChangeStatus, Danger, Operation, OutcomeState, Plan, StagedVia};
use heddle_core::{ChangeId, ControllerId, OrgId, RunId, SiteId, Timestamp, UserId};
pub use list::{ChangeCount, ChangeFilter, counts, list};
pub use rekey::{Rekeyed, rekey};
pub use row::ChangeRow;
use serde_json::Value;
pub use sets::{Followed, SetStanding, follow, free_members, join, members, standings};
use sqlx::FromRow;
use sqlx::types::Json;

use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Scope, Select};

/// What planning a change gave.
#[derive(Clone)]
pub struct Planned {
    pub plan: Option<Plan>,
    /// Why there is no plan.
    pub error: Option<Value>,
    pub token: Option<Vec<u8>>,
    pub inverse: Option<Vec<heddle_core::change::ChangeSpec>>,
    /// The payload's secrets, sealed; `None` keeps the stored ones.
    pub secret: Option<Vec<u8>>,
    pub danger: Danger,
    /// What a change in the words of the model is in the vendor's own.
    pub expressed_as: Option<Vec<heddle_core::change::ChangeSpec>>,
}

/// A row of `change` about to be written. It begins as pending, without an outcome, and is not being applied.
/// Secrets of the payload are not in `payload`, but sealed in `planned`.
#[derive(Clone)]
pub struct NewChange {
    pub id: ChangeId,
    pub org_id: OrgId,
    pub site_id: SiteId,
    /// The vendor's id of the site that it is for.
    pub site_ref: Option<String>,
    pub controller_id: ControllerId,
    pub vendor: String,
    pub area: String,
    pub feature: String,
    pub operation: Operation,
    pub payload: Value,
    /// Further changes that are planned and applied together with this one.
    pub also: Vec<heddle_core::change::ChangeSpec>,
    pub notes: Option<String>,
    pub staged_by: UserId,
    pub expires_at: Timestamp,
    /// The change that this one takes back.
    pub reverts: Option<ChangeId>,
    pub planned: Planned,
    /// The step of a run that asks for it.
    pub run: Option<RunStep>,
    /// It is the row of a set, whose first change gives the feature and the payload.
    pub is_set: bool,
    pub now: Timestamp,
}

/// A step of a run: it stages one change, however often it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStep {
    pub run_id: RunId,
    pub key: String,
    /// What the change shows of it.
    pub via: StagedVia,
}

const SELECT: &str = "SELECT c.*";
const FROM: &str = "FROM change c";

/// Most changes that one round of expiry takes.
const EXPIRE_MAX: i64 = 100;
/// Most ids in an answer about other changes.
const RELATED_MAX: i64 = 1_000;
const RELATED_SHOWN: usize = 1_000;

/// # Errors
/// [`crate::error::Error::Unique`] with `change_run_key` when the step of the run has staged one.
pub async fn insert(tx: &mut Tx, new: &NewChange) -> Result<ChangeRow> {
    let planned = &new.planned;
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO change (id, org_id, site_id, controller_id, vendor, area, feature, operation, payload, notes,
            status, danger, staged_by, staged_at, expires_at, plan, plan_token, plan_inverse, plan_error, secret,
            outcome_state, apply_step, attempts, reverts, updated_at, also, run_id, run_key,
            is_set, staged_via, site_ref, expressed_as)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
            $21, $22, $23, $24, $14, $25, $26, $27, $28, $29, $30, $31)
        RETURNING *")
        .bind(new.id).bind(new.org_id).bind(new.site_id).bind(new.controller_id)
        .bind(&new.vendor).bind(&new.area).bind(&new.feature).bind(new.operation)
        .bind(&new.payload).bind(new.notes.as_ref())
        .bind(ChangeStatus::Pending).bind(planned.danger).bind(new.staged_by).bind(new.now).bind(new.expires_at)
        .bind(planned.plan.as_ref().map(Json)).bind(planned.token.as_ref())
        .bind(planned.inverse.as_ref().map(Json)).bind(planned.error.as_ref()).bind(planned.secret.as_ref())
        .bind(OutcomeState::None).bind(ApplyStep::Idle).bind(Json(Vec::<Value>::new())).bind(new.reverts)
        .bind(Json(&new.also))
        .bind(new.run.as_ref().map(|run| run.run_id)).bind(new.run.as_ref().map(|run| &run.key))
        .bind(new.is_set)
        .bind(new.run.as_ref().map(|run| Json(&run.via)))
        .bind(new.site_ref.as_ref())
        .bind(planned.expressed_as.as_ref().map(Json))
        .fetch_one(conn)
        .await)?)
}

/// Returns the change in whatever status, without a lock; the row of a set is found, too.
/// `None` means that the scope has no such change.
pub async fn find(tx: &mut Tx, scope: &Scope, id: ChangeId) -> Result<Option<ChangeRow>> {
    within(scope).and_bind("c.id = ?", Bind::Id(id.0)).one(tx).await
}

/// Those of these changes that are in the scope.
pub async fn find_many(tx: &mut Tx, scope: &Scope, ids: &[ChangeId]) -> Result<Vec<ChangeRow>> {
    let most = i64::try_from(ids.len()).unwrap_or(i64::MAX);
    within(scope).and_in("c.id", ids.iter().map(|id| Bind::Id(id.0))).all(tx, "c.staged_at, c.id", most).await
}

/// The change that this step of a run has staged.
pub async fn find_by_run_key(tx: &mut Tx, scope: &Scope, key: &str) -> Result<Option<ChangeRow>> {
    within(scope).and_bind("c.run_key = ?", Bind::Text(key.to_owned())).one(tx).await
}

/// Replaces the plan of a change that is pending and not being applied; its outcome is `none` again.
///
/// A change whose last attempt ended in doubt must have been compared since. `saga` is the set over several controllers on
/// whose behalf it is planned: a part of one is planned only with it.
pub async fn set_plan(
    tx: &mut Tx,
    id: ChangeId,
    saga: Option<ChangeId>,
    planned: &Planned,
    now: Timestamp,
) -> Result<Option<ChangeRow>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE change
        SET plan = $2, plan_token = $3, plan_inverse = $4, plan_error = $5, secret = COALESCE($6, secret),
            danger = $7, outcome_state = $8, outcome_message = NULL, outcome_detail = NULL, updated_at = $9,
            verified_at = NULL, sent = '[]', hole_values = NULL, expressed_as = $12
        WHERE id = $1 AND status = $10 AND apply_step = $11 AND set_id IS NULL
            AND saga_id IS NOT DISTINCT FROM $13
            AND (outcome_state NOT IN ('partial', 'unknown') OR verified_at IS NOT NULL)
        RETURNING *")
        .bind(id).bind(planned.plan.as_ref().map(Json)).bind(planned.token.as_ref())
        .bind(planned.inverse.as_ref().map(Json)).bind(planned.error.as_ref()).bind(planned.secret.as_ref())
        .bind(planned.danger).bind(OutcomeState::None).bind(now)
        .bind(ChangeStatus::Pending).bind(ApplyStep::Idle)
        .bind(planned.expressed_as.as_ref().map(Json)).bind(saga)
        .fetch_optional(conn)
        .await)?)
}

/// Discards a change that is pending and not being applied, and forgets its secrets. A message replaces that of
/// its outcome. A part of a set over several controllers is discarded with it: [`discard_part`].
pub async fn discard(
    tx: &mut Tx,
    scope: &Scope,
    id: ChangeId,
    message: Option<&str>,
    now: Timestamp,
) -> Result<Option<ChangeRow>> {
    match find(tx, scope, id).await? {
        Some(row) if row.saga_id.is_none() => discard_part(tx, id, None, message, now).await,
        _ => Ok(None),
    }
}

/// [`discard`] on behalf of this set over several controllers.
pub async fn discard_part(
    tx: &mut Tx,
    id: ChangeId,
    saga: Option<ChangeId>,
    message: Option<&str>,
    now: Timestamp,
) -> Result<Option<ChangeRow>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE change SET status = $2, secret = NULL, plan_token = NULL, updated_at = $3,
            outcome_message = COALESCE($6, outcome_message)
        WHERE id = $1 AND status = $4 AND apply_step = $5 AND set_id IS NULL
            AND saga_id IS NOT DISTINCT FROM $7
        RETURNING *")
        .bind(id).bind(ChangeStatus::Discarded).bind(now).bind(ChangeStatus::Pending).bind(ApplyStep::Idle)
        .bind(message).bind(saga)
        .fetch_optional(conn)
        .await)?)
}

/// Discards up to a hundred changes whose time has run out; gives them.
///
/// A change whose device is in an unknown state stays until a person has looked. A set over several controllers expires as
/// a whole.
pub async fn expire_due(tx: &mut Tx, now: Timestamp) -> Result<Vec<ChangeRow>> {
    let mut rows: Vec<ChangeRow> = on!(tx, conn => sqlx::query_as("
        UPDATE change SET status = $2, secret = NULL, plan_token = NULL, updated_at = $1, outcome_state = $7,
            outcome_message = 'not applied before it expired'
        WHERE status = 'pending' AND apply_step = $3 AND set_id IS NULL AND saga_id IS NULL AND id IN (
            SELECT id FROM change
            WHERE status = 'pending' AND apply_step = $3 AND expires_at <= $1 AND outcome_state NOT IN ($4, $5)
                AND set_id IS NULL AND saga_id IS NULL
            ORDER BY expires_at, id
            LIMIT CAST($6 AS BIGINT))
        RETURNING *")
        .bind(now).bind(ChangeStatus::Discarded).bind(ApplyStep::Idle)
        .bind(OutcomeState::Partial).bind(OutcomeState::Unknown).bind(EXPIRE_MAX).bind(OutcomeState::Expired)
        .fetch_all(conn)
        .await)?;
    rows.sort_by_key(|row| (row.expires_at, row.id));
    Ok(rows)
}

/// Other pending changes of the controller whose plans name something that this one's names too, in the order
/// they were staged. Members of one set are not in conflict.
pub async fn conflicts(tx: &mut Tx, row: &ChangeRow) -> Result<Vec<ChangeId>> {
    let mut found = conflicts_among(tx, std::slice::from_ref(row)).await?;
    Ok(found.remove(&row.id).unwrap_or_default())
}

/// What a pending change's plan touches.
#[derive(FromRow)]
struct Touching {
    id: ChangeId,
    controller_id: ControllerId,
    site_ref: Option<String>,
    area: String,
    set_id: Option<ChangeId>,
    touches: Option<String>,
}

/// A name that plans have in common. Where a plan says nothing of what it touches, that is its whole area.
fn names(plan: Option<&Vec<String>>, area: &str) -> Vec<String> {
    match plan.filter(|touches| !touches.is_empty()) {
        Some(touches) => touches.clone(),
        None => vec![format!("area {area}")],
    }
}

/// [`conflicts`] of every pending change of a list, in one statement.
pub async fn conflicts_among(tx: &mut Tx, rows: &[ChangeRow]) -> Result<HashMap<ChangeId, Vec<ChangeId>>> {
    let is_pending = |row: &&ChangeRow| row.status == ChangeStatus::Pending && !row.is_set;
    let mut controllers: Vec<ControllerId> =
        rows.iter().filter(is_pending).map(|row| row.controller_id).collect();
    controllers.sort_unstable();
    controllers.dedup();
    if controllers.is_empty() {
        return Ok(HashMap::new());
    }
    let pending: Vec<Touching> = Select::new(
        "SELECT c.id, c.controller_id, c.site_ref, c.area, c.set_id, c.plan ->> 'touches' AS touches",
        FROM,
    )
    .and("NOT c.is_set")
    .and("c.status = 'pending'")
    .and_in("c.controller_id", controllers.iter().map(|id| Bind::Id(id.0)))
    .all(tx, "c.staged_at, c.id", RELATED_MAX * 10)
    .await?;
    // Names are those of one site: another site has other objects of the same names.
    let mut by_name: HashMap<(ControllerId, Option<&str>, String), Vec<usize>> = HashMap::new();
    for (at, change) in pending.iter().enumerate() {
        let touches = change.touches.as_deref().and_then(|text| serde_json::from_str(text).ok());
        for name in names(touches.as_ref(), &change.area) {
            by_name.entry((change.controller_id, change.site_ref.as_deref(), name)).or_default().push(at);
        }
    }
    let others = |row: &ChangeRow| {
        let mut found: Vec<usize> = names(row.plan.as_ref().map(|plan| &plan.touches), &row.area)
            .into_iter()
            .filter_map(|name| by_name.get(&(row.controller_id, row.site_ref.as_deref(), name)))
            .flatten()
            .copied()
            .collect();
        found.sort_unstable();
        found.dedup();
        let is_rival =
            |other: &&Touching| other.id != row.id && (row.set_id.is_none() || other.set_id != row.set_id);
        let ids = found.into_iter().map(|at| &pending[at]).filter(is_rival).map(|other| other.id);
        (row.id, ids.take(RELATED_SHOWN).collect())
    };
    Ok(rows.iter().filter(is_pending).map(others).collect())
}

/// Changes of the same area and vendor's site of the controller that were applied later and still hold.
pub async fn later_dependents(tx: &mut Tx, row: &ChangeRow) -> Result<Vec<ChangeId>> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        SELECT id FROM change
        WHERE controller_id = $1 AND site_ref IS NOT DISTINCT FROM $7 AND area = $2 AND id <> $3 AND status = $4
            AND applied_at > $5 AND reverted_by IS NULL AND NOT is_set
            AND (set_id IS NULL OR set_id <> $3)
        ORDER BY applied_at, id
        LIMIT CAST($6 AS BIGINT)")
        .bind(row.controller_id).bind(&row.area).bind(row.id).bind(ChangeStatus::Applied)
        .bind(row.applied_at).bind(RELATED_MAX).bind(row.site_ref.as_ref())
        .fetch_all(conn)
        .await)?)
}

fn within(scope: &Scope) -> Select {
    Select::new(SELECT, FROM).within(scope, "c.org_id", Some("c.site_id"))
}

#[cfg(test)]
mod tests;
