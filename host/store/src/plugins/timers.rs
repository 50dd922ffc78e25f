//! Timers that plugins set, each for one of their triggers.

use heddle_core::{OrgId, ProcessId, Timestamp};
use serde_json::Value;
use sqlx::{FromRow, QueryBuilder};

use super::PluginUid;
use super::triggers::OF_ORG_MAX;
use super::values::Keeper;
use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Select, affected, push_list};

/// More than an organization can have of a plugin.
const ROWS_MAX: i64 = 1_000;

/// A timer of a plugin in an organization.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct TimerRow {
    pub org_id: OrgId,
    pub plugin_uid: PluginUid,
    pub name: String,
    /// The trigger that it calls, by its id in the manifest.
    pub trigger_id: String,
    /// When it comes, as who sets it writes that.
    pub times: Value,
    /// The time that it comes at.
    pub scheduled_at: Timestamp,
    /// When its trigger is called next.
    pub due_at: Timestamp,
    /// How often the call at this time failed.
    pub attempts: i64,
    pub problem: Option<String>,
}

fn of(keeper: Keeper) -> Select {
    Select::new("SELECT t.*", "FROM plugin_timer t")
        .and_bind("t.org_id = ?", Bind::Id(keeper.org.0))
        .and_bind("t.plugin_uid = ?", Bind::Id(keeper.plugin.0))
}

/// The timers of a plugin in an organization, by name.
pub async fn list(tx: &mut Tx, keeper: Keeper) -> Result<Vec<TimerRow>> {
    of(keeper).all(tx, "t.name", ROWS_MAX).await
}

/// Timers whose time has come: by turns among the plugins, of each plugin by turns among the organizations, and then the
/// longest waiting first; a few of each organization. So no plugin hides another one's.
pub async fn due(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<Vec<TimerRow>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT q.* FROM (
            SELECT o.*,
                ROW_NUMBER() OVER (PARTITION BY o.org_id ORDER BY o.own, o.due_at, o.plugin_uid, o.name) AS place,
                ROW_NUMBER() OVER (PARTITION BY o.plugin_uid ORDER BY o.own, o.due_at, o.org_id, o.name) AS turn
            FROM (
                SELECT t.*, ROW_NUMBER() OVER (PARTITION BY t.org_id, t.plugin_uid ORDER BY t.due_at, t.name) AS own
                FROM plugin_timer t WHERE t.due_at <= $1) o) q
        WHERE q.place <= $2 ORDER BY q.turn, q.due_at, q.org_id, q.place LIMIT CAST($3 AS BIGINT)")
        .bind(now)
        .bind(OF_ORG_MAX)
        .bind(i64::from(limit))
        .fetch_all(conn)
        .await)?)
}

/// Writes timers in the place of any of their names. There are few: one statement takes all.
pub async fn put(tx: &mut Tx, keeper: Keeper, timers: &[TimerRow]) -> Result<()> {
    if timers.is_empty() {
        return Ok(());
    }
    on!(tx, conn => {
        let mut insert = QueryBuilder::new(
            "INSERT INTO plugin_timer (org_id, plugin_uid, name, trigger_id, times, scheduled_at, due_at, attempts) ",
        );
        insert.push_values(timers, |mut row, timer| {
            row.push_bind(keeper.org)
                .push_bind(keeper.plugin)
                .push_bind(&timer.name)
                .push_bind(&timer.trigger_id)
                .push_bind(&timer.times)
                .push_bind(timer.scheduled_at)
                .push_bind(timer.due_at)
                .push_bind(timer.attempts);
        });
        insert.push(
            " ON CONFLICT (org_id, plugin_uid, name) DO UPDATE
            SET trigger_id = excluded.trigger_id, times = excluded.times, scheduled_at = excluded.scheduled_at,
                due_at = excluded.due_at, owner = NULL, attempts = excluded.attempts, problem = NULL",
        );
        insert.build().execute(conn).await.map(drop)
    })?;
    Ok(())
}

/// Removes the timers of these names, where there are any.
pub async fn remove(tx: &mut Tx, keeper: Keeper, names: &[&str]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    on!(tx, conn => {
        let mut delete = QueryBuilder::new("DELETE FROM plugin_timer WHERE org_id = ");
        delete.push_bind(keeper.org).push(" AND plugin_uid = ").push_bind(keeper.plugin).push(" AND name IN (");
        push_list!(delete, names);
        delete.push(")");
        delete.build().execute(conn).await.map(drop)
    })?;
    Ok(())
}

/// Takes a timer that is due until a time; false when another process did, or when it was set anew.
pub async fn claim(tx: &mut Tx, row: &TimerRow, owner: ProcessId, until: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE plugin_timer SET due_at = $5, owner = $6
        WHERE org_id = $1 AND plugin_uid = $2 AND name = $3 AND due_at = $4"
        )
        .bind(row.org_id)
        .bind(row.plugin_uid)
        .bind(&row.name)
        .bind(row.due_at)
        .bind(until)
        .bind(owner)
    );
    Ok(rows == 1)
}

/// Moves a timer on; false when another process did, or when it was set anew.
pub async fn moved(
    tx: &mut Tx,
    row: &TimerRow,
    (scheduled_at, due_at): (Timestamp, Timestamp),
    (attempts, problem): (i64, Option<&str>),
) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE plugin_timer SET scheduled_at = $5, due_at = $6, owner = NULL, attempts = $7, problem = $8
        WHERE org_id = $1 AND plugin_uid = $2 AND name = $3 AND due_at = $4"
        )
        .bind(row.org_id)
        .bind(row.plugin_uid)
        .bind(&row.name)
        .bind(row.due_at)
        .bind(scheduled_at)
        .bind(due_at)
        .bind(attempts)
        .bind(problem)
    );
    Ok(rows == 1)
}

/// Removes a timer that has come for the last time, unless it was set anew.
pub async fn end(tx: &mut Tx, row: &TimerRow) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "DELETE FROM plugin_timer WHERE org_id = $1 AND plugin_uid = $2 AND name = $3 AND due_at = $4"
        )
        .bind(row.org_id)
        .bind(row.plugin_uid)
        .bind(&row.name)
        .bind(row.due_at)
    );
    Ok(rows == 1)
}

/// Has what waits in an organization for a plugin come at once: what kept it may be mended.
pub async fn hasten(tx: &mut Tx, keeper: Keeper, now: Timestamp) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "UPDATE plugin_timer SET due_at = $3, attempts = 0
            WHERE org_id = $1 AND plugin_uid = $2 AND scheduled_at <= $3 AND due_at > $3 AND owner IS NULL"
        )
        .bind(keeper.org)
        .bind(keeper.plugin)
        .bind(now)
    );
    Ok(())
}

/// Forgets the timers of a plugin: in one organization, or in all.
pub async fn forget(tx: &mut Tx, plugin: PluginUid, org: Option<OrgId>) -> Result<()> {
    affected!(
        tx,
        sqlx::query("DELETE FROM plugin_timer WHERE plugin_uid = $1 AND ($2 IS NULL OR org_id = $2)")
            .bind(plugin)
            .bind(org)
    );
    Ok(())
}
