//! What an organization has, counted. Each function is one statement, however much there is.

use heddle_core::adapter::DeviceStatus;
use heddle_core::change::{ChangeStatus, OutcomeState};
use heddle_core::{OrgId, Role, Timestamp};
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;

/// What is limited by a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
pub struct Totals {
    pub sites: i64,
    pub controllers: i64,
    /// Active or not.
    pub users: i64,
}

/// The number of devices of one kind. A kind is the text that the adapter gave; removed devices do not count.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct KindCount {
    pub kind: String,
    pub count: i64,
}

/// The number of controllers or devices of one status. Removed ones do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
pub struct StatusCount {
    pub status: DeviceStatus,
    pub count: i64,
}

/// The number of users of one role that are active, or that are not. Removed ones do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
pub struct RoleCount {
    pub role: Role,
    pub is_active: bool,
    pub count: i64,
}

/// Changes of one outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
pub struct ChangeCount {
    pub outcome_state: OutcomeState,
    pub pending: i64,
    /// Pending ones that expire before [`Horizon::expiring_before`].
    pub expiring: i64,
    /// Applied since [`Horizon::day_ago`].
    pub applied_day: i64,
    /// Applied since [`Horizon::week_ago`].
    pub applied_week: i64,
}

/// The times that a count of changes looks at.
#[derive(Debug, Clone, Copy)]
pub struct Horizon {
    pub day_ago: Timestamp,
    pub week_ago: Timestamp,
    pub expiring_before: Timestamp,
}

/// How much there is that is not removed.
pub async fn totals(tx: &mut Tx, org: OrgId) -> Result<Totals> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT (SELECT COUNT(*) FROM site WHERE org_id = $1 AND deleted_at IS NULL) AS sites,
            (SELECT COUNT(*) FROM controller WHERE org_id = $1 AND deleted_at IS NULL) AS controllers,
            (SELECT COUNT(*) FROM app_user WHERE org_id = $1 AND deleted_at IS NULL) AS users")
        .bind(org)
        .fetch_one(conn)
        .await)?)
}

/// Counts what an organization has of a table and has not removed, by status.
macro_rules! count_by_status {
    ($table:literal) => {
        concat!(
            "SELECT status, COUNT(*) AS count FROM ",
            $table,
            " WHERE org_id = $1 AND deleted_at IS NULL GROUP BY status ORDER BY status"
        )
    };
}

/// Counts the organization's controllers that are not removed: one row for each status that occurs.
pub async fn controllers_by_status(tx: &mut Tx, org: OrgId) -> Result<Vec<StatusCount>> {
    Ok(on!(tx, conn => sqlx::query_as(count_by_status!("controller")).bind(org).fetch_all(conn).await)?)
}

/// Counts the organization's devices that are not removed: one row for each status that occurs.
pub async fn devices_by_status(tx: &mut Tx, org: OrgId) -> Result<Vec<StatusCount>> {
    Ok(on!(tx, conn => sqlx::query_as(count_by_status!("device")).bind(org).fetch_all(conn).await)?)
}

/// The kinds with the most devices, those with the most first.
pub async fn devices_by_kind(tx: &mut Tx, org: OrgId, limit: u32) -> Result<Vec<KindCount>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT kind, COUNT(*) AS count FROM device
        WHERE org_id = $1 AND deleted_at IS NULL
        GROUP BY kind
        ORDER BY count DESC, kind
        LIMIT CAST($2 AS BIGINT)")
        .bind(org).bind(i64::from(limit))
        .fetch_all(conn)
        .await)?)
}

/// Counts the organization's users that are not removed, active and disabled ones apart.
/// A pair of role and activity that no user has gives no row.
pub async fn users_by_role(tx: &mut Tx, org: OrgId) -> Result<Vec<RoleCount>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT role, is_active, COUNT(*) AS count FROM app_user
        WHERE org_id = $1 AND deleted_at IS NULL
        GROUP BY role, is_active
        ORDER BY role, is_active")
        .bind(org)
        .fetch_all(conn)
        .await)?)
}

/// Counts the changes that are pending or were applied within the week, by their outcome.
pub async fn changes_by_outcome(tx: &mut Tx, org: OrgId, horizon: &Horizon) -> Result<Vec<ChangeCount>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT outcome_state,
            COUNT(*) FILTER (WHERE status = $2) AS pending,
            COUNT(*) FILTER (WHERE status = $2 AND expires_at < $4) AS expiring,
            COUNT(*) FILTER (WHERE status = $3 AND applied_at >= $5) AS applied_day,
            COUNT(*) FILTER (WHERE status = $3 AND applied_at >= $6) AS applied_week
        FROM change
        WHERE org_id = $1 AND NOT is_set AND (status = 'pending' OR applied_at >= $6)
        GROUP BY outcome_state
        ORDER BY outcome_state")
        .bind(org).bind(ChangeStatus::Pending).bind(ChangeStatus::Applied)
        .bind(horizon.expiring_before).bind(horizon.day_ago).bind(horizon.week_ago)
        .fetch_all(conn)
        .await)?)
}

#[cfg(test)]
mod tests;
