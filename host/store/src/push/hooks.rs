//! Requests of controllers to the service: the secret that proves them, and when the last one came.

use heddle_core::{ControllerId, ProcessId, Timestamp};
use sqlx::{AssertSqlSafe, FromRow};

use crate::controllers::{ControllerTarget, FROM_TARGET, select_target};
use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Select, affected, lock};

const SELECT: &str = concat!(select_target!(), ", c.push_enabled, c.push_secret");
/// More rows than the controllers of one process have hooks.
const HEARD_MAX: i64 = 400_000;

/// A controller that a request says it comes from.
#[derive(Clone, FromRow)]
pub struct Hooked {
    #[sqlx(flatten)]
    pub target: ControllerTarget,
    /// What a person wants.
    pub push_enabled: bool,
    /// Sealed; `None` where none was made.
    pub push_secret: Option<Vec<u8>>,
}

/// When the last request with a good proof came to a hook.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct HeardAt {
    pub controller_id: ControllerId,
    pub channel: String,
    pub heard_at: Timestamp,
}

/// The controller; `None` where it was removed, or its organization was.
pub async fn find(tx: &mut Tx, id: ControllerId) -> Result<Option<Hooked>> {
    Select::new(SELECT, FROM_TARGET)
        .and_bind("c.id = ?", Bind::Id(id.0))
        .and("c.deleted_at IS NULL")
        .one(tx)
        .await
}

/// Notes that a request with a good proof came. Returns false where the secret that proved it was replaced meanwhile.
///
/// It waits for a transaction that replaces the secret, and one that comes later waits for it, and forgets the request.
pub async fn note(
    tx: &mut Tx,
    id: ControllerId,
    channel: &str,
    secret: &[u8],
    now: Timestamp,
) -> Result<bool> {
    // Requests that come at once do not wait for each other.
    let shared = if matches!(tx, Tx::Postgres(_)) { " FOR SHARE" } else { "" };
    let sql = format!(
        "INSERT INTO push_heard (controller_id, channel, heard_at)
        SELECT id, $2, $3 FROM controller WHERE id = $1 AND push_secret = $4 AND deleted_at IS NULL{shared}
        ON CONFLICT (controller_id, channel) DO UPDATE SET heard_at = excluded.heard_at"
    );
    let rows = affected!(tx, sqlx::query(AssertSqlSafe(sql)).bind(id).bind(channel).bind(now).bind(secret));
    Ok(rows == 1)
}

/// When requests came from the controllers whose channels a process holds.
pub async fn heard(tx: &mut Tx, owner: ProcessId) -> Result<Vec<HeardAt>> {
    Select::new(
        "SELECT h.controller_id, h.channel, h.heard_at",
        "FROM push_heard h JOIN controller c ON c.id = h.controller_id AND c.deleted_at IS NULL",
    )
    .and_bind("c.push_owner = ?", Bind::Id(owner.0))
    .all(tx, "h.controller_id, h.channel", HEARD_MAX)
    .await
}

/// Gives a controller another secret, sealed, or none. What the one before proved is forgotten. Returns false where there was
/// none to take away.
pub async fn set_secret(tx: &mut Tx, id: ControllerId, secret: Option<&[u8]>) -> Result<bool> {
    let sql = match secret {
        Some(_) => "UPDATE controller SET push_secret = $2 WHERE id = $1",
        None => "UPDATE controller SET push_secret = $2 WHERE id = $1 AND push_secret IS NOT NULL",
    };
    let rows = affected!(tx, sqlx::query(sql).bind(id).bind(secret));
    affected!(tx, sqlx::query("DELETE FROM push_heard WHERE controller_id = $1").bind(id));
    Ok(rows == 1)
}

/// Forgets up to so many times of requests of controllers that were removed before this time, or whose organization was;
/// tells how many. One that is restored later has to be heard again before its hooks are live.
pub async fn trim_heard(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM push_heard WHERE (controller_id, channel) IN (
            SELECT h.controller_id, h.channel FROM push_heard h JOIN controller c ON c.id = h.controller_id
                JOIN organization o ON o.id = c.org_id
            WHERE c.deleted_at < $1 OR o.deleted_at < $1
            ORDER BY h.controller_id, h.channel LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    ))
}

/// Takes up to so many secrets away from such controllers; tells how many.
pub async fn trim_secrets(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    let sql = format!(
        "UPDATE controller SET push_secret = NULL WHERE id IN (
            SELECT id FROM controller WHERE push_secret IS NOT NULL AND (deleted_at < $1
                OR org_id IN (SELECT id FROM organization WHERE deleted_at < $1))
            ORDER BY id LIMIT CAST($2 AS BIGINT){})",
        lock(tx)
    );
    Ok(affected!(tx, sqlx::query(AssertSqlSafe(sql)).bind(before).bind(i64::from(limit))))
}

#[cfg(test)]
mod tests;
