//! Readings that a user requested: one row each, so that clients can see their progress.
//!
//! A request joins the one that waits already. The reading that is claimed next carries all that wait then; one that a
//! process lost goes on under the same row, for the process that claims the controller after it.

use heddle_core::sync::SyncState;
use heddle_core::{ControllerId, OrgId, Timestamp, UserId};
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::{AssertSqlSafe, FromRow};

use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, affected, bind_all};

heddle_core::ids! {
    pub SyncId,
}

/// Ended syncs that are kept of a controller.
const KEPT: i64 = 50;

/// A reading of a controller that a user requested.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct SyncRow {
    pub id: SyncId,
    pub controller_id: ControllerId,
    pub state: SyncState,
    pub requested_by: Option<UserId>,
    pub devices_seen: i64,
    pub devices_known: i64,
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
}

/// How a sync ended.
#[derive(Debug, Clone)]
pub struct SyncEnd<'a> {
    pub devices_seen: i64,
    pub is_read: bool,
    /// Why the controller was not read, or what of it could not be.
    pub error: Option<&'a str>,
    pub now: Timestamp,
}

/// A sync as it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct NewSync {
    pub id: SyncId,
    pub org_id: OrgId,
    pub controller_id: ControllerId,
    pub requested_by: UserId,
    pub now: Timestamp,
}

/// What clients see of a sync.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "ControllerSync")]
pub struct SyncView {
    pub id: SyncId,
    pub controller_id: ControllerId,
    pub state: SyncState,
    /// User who asked for it.
    pub requested_by: Option<UserId>,
    /// Percent of the devices that the controller had before; 100 when it ended.
    #[schemars(range(min = 0, max = 100))]
    pub progress: i64,
    /// Devices that were listed so far.
    #[schemars(range(min = 0))]
    pub devices_seen: i64,
    /// Why it failed, or what could not be read although it succeeded; null where nothing was wrong.
    pub error: Option<String>,
    pub created_at: Timestamp,
    /// When the reading began; null before that.
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
}

impl From<SyncRow> for SyncView {
    fn from(sync: SyncRow) -> Self {
        let known = sync.devices_known.max(1);
        let progress = match sync.state {
            SyncState::Queued => 0,
            // There may be more devices than before: it is not done until it ends.
            SyncState::Running => (sync.devices_seen.saturating_mul(100) / known).min(99),
            SyncState::Succeeded | SyncState::Failed => 100,
        };
        Self {
            id: sync.id,
            controller_id: sync.controller_id,
            state: sync.state,
            requested_by: sync.requested_by,
            progress,
            devices_seen: sync.devices_seen,
            error: sync.error,
            created_at: sync.created_at,
            started_at: sync.started_at,
            ended_at: sync.ended_at,
        }
    }
}

/// The sync that waits for this controller, or a new one. The caller has made the controller due in this transaction,
/// which holds its row, so that two requests do not make two.
pub async fn request(tx: &mut Tx, new: &NewSync) -> Result<SyncRow> {
    let waiting: Option<SyncRow> = on!(tx, conn => sqlx::query_as("
        SELECT id, controller_id, state, requested_by, devices_seen, devices_known, error, created_at, started_at, ended_at
        FROM controller_sync
        WHERE controller_id = $1 AND state = $2 AND ended_at IS NULL
        ORDER BY created_at, id LIMIT 1")
        .bind(new.controller_id).bind(SyncState::Queued)
        .fetch_optional(conn)
        .await)?;
    if let Some(waiting) = waiting {
        return Ok(waiting);
    }
    affected!(
        tx,
        sqlx::query(
            "DELETE FROM controller_sync
            WHERE controller_id = $1 AND ended_at IS NOT NULL AND id NOT IN (
                SELECT id FROM controller_sync WHERE controller_id = $1 AND ended_at IS NOT NULL
                ORDER BY created_at DESC, id DESC LIMIT CAST($2 AS BIGINT))"
        )
        .bind(new.controller_id)
        .bind(KEPT - 1)
    );
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO controller_sync
            (id, org_id, controller_id, state, requested_by, devices_seen, devices_known, created_at)
        VALUES ($1, $2, $3, $4, $5, 0, 0, $6)
        RETURNING id, controller_id, state, requested_by, devices_seen, devices_known, error, created_at, started_at, ended_at")
        .bind(new.id).bind(new.org_id).bind(new.controller_id).bind(SyncState::Queued).bind(new.requested_by)
        .bind(new.now)
        .fetch_one(conn)
        .await)?)
}

/// A sync of this controller. The caller has asked whether the controller may be seen.
pub async fn find(tx: &mut Tx, controller: ControllerId, id: SyncId) -> Result<Option<SyncRow>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT id, controller_id, state, requested_by, devices_seen, devices_known, error, created_at, started_at, ended_at
        FROM controller_sync WHERE controller_id = $1 AND id = $2")
        .bind(controller).bind(id)
        .fetch_optional(conn)
        .await)?)
}

/// The reading of these controllers begins, in the transaction that claims them.
pub async fn begin(tx: &mut Tx, controllers: &[ControllerId], now: Timestamp) -> Result<()> {
    if controllers.is_empty() {
        return Ok(());
    }
    let places: Vec<String> = (2..controllers.len() + 2).map(|at| format!("${at}")).collect();
    let sql = format!(
        "UPDATE controller_sync SET state = 'running', started_at = $1, devices_seen = 0, devices_known = (
            SELECT COUNT(*) FROM device
            WHERE device.controller_id = controller_sync.controller_id AND device.deleted_at IS NULL)
        WHERE ended_at IS NULL AND controller_id IN ({})",
        places.join(", ")
    );
    let mut values = vec![Bind::Time(now)];
    values.extend(controllers.iter().map(|id| Bind::Id(id.0)));
    affected!(tx, bind_all!(sqlx::query(AssertSqlSafe(sql)), &values));
    Ok(())
}

/// How far the reading of this controller is.
pub async fn advance(tx: &mut Tx, controller: ControllerId, devices_seen: i64) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "UPDATE controller_sync SET devices_seen = $2 WHERE controller_id = $1 AND state = $3 AND ended_at IS NULL"
        )
        .bind(controller)
        .bind(devices_seen)
        .bind(SyncState::Running)
    );
    Ok(())
}

/// The reading of this controller ended. What was asked for after it began waits for the next one.
pub async fn end(tx: &mut Tx, controller: ControllerId, end: &SyncEnd<'_>) -> Result<()> {
    let state = if end.is_read { SyncState::Succeeded } else { SyncState::Failed };
    affected!(
        tx,
        sqlx::query(
            "UPDATE controller_sync SET state = $2, devices_seen = $3, error = $4, ended_at = $5
            WHERE controller_id = $1 AND state = $6 AND ended_at IS NULL"
        )
        .bind(controller)
        .bind(state)
        .bind(end.devices_seen)
        .bind(end.error)
        .bind(end.now)
        .bind(SyncState::Running)
    );
    Ok(())
}
