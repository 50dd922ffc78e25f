//! How far the triggers of plugins have come with the events that they want.

use heddle_core::{OrgId, ProcessId, Timestamp};
use sqlx::{FromRow, QueryBuilder};

use super::PluginUid;
use super::values::Keeper;
use crate::db::Tx;
use crate::error::Result;
use crate::events;
use crate::processes::gone_among;
use crate::select::{Bind, Select, affected};

/// More than a manifest can declare.
const ROWS_MAX: i64 = 1_000;

/// A trigger of a plugin in an organization.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct TriggerRow {
    pub org_id: OrgId,
    pub plugin_uid: PluginUid,
    /// Its id in the manifest.
    pub trigger_id: String,
    /// Events up to this number are done.
    pub seq: i64,
    /// The last event that it wants.
    pub wanted_seq: i64,
    /// Events up to this number are handed over one by one: some of them failed together.
    pub single_seq: i64,
    /// When events are handed over next; `None` where all are done.
    pub due_at: Option<Timestamp>,
    /// How often handing over the next ones failed.
    pub attempts: i64,
    pub problem: Option<String>,
    /// When it was last called and nothing failed.
    pub called_at: Option<Timestamp>,
}

/// An event that a trigger wants, the last one of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub plugin: PluginUid,
    pub trigger: String,
    /// The number before the first of them.
    pub after_seq: i64,
    pub seq: i64,
}

/// Of one organization that are due at once.
pub(super) const OF_ORG_MAX: i64 = 8;

const SELECT: &str = "SELECT t.*";
const FROM: &str = "FROM plugin_trigger t";

/// Notes events that triggers of an organization want. A trigger that waits for nothing begins behind what it did not want.
/// One that still has events from before the plugin was inactive takes none behind these: [`pass_over`] looks for them.
pub async fn want(tx: &mut Tx, org: OrgId, wanted: &[Wanted], now: Timestamp) -> Result<()> {
    if wanted.is_empty() {
        return Ok(());
    }
    on!(tx, conn => {
        let mut insert = QueryBuilder::new(
            "INSERT INTO plugin_trigger (org_id, plugin_uid, trigger_id, seq, wanted_seq, due_at, attempts) ",
        );
        insert.push_values(wanted, |mut row, one| {
            row.push_bind(org)
                .push_bind(one.plugin)
                .push_bind(&one.trigger)
                .push_bind(one.after_seq)
                .push_bind(one.seq)
                .push_bind(now)
                .push_bind(0_i64);
        });
        insert.push(
            " ON CONFLICT (org_id, plugin_uid, trigger_id) DO UPDATE SET
                seq = CASE WHEN plugin_trigger.due_at IS NULL AND plugin_trigger.seq < excluded.seq
                    THEN excluded.seq ELSE plugin_trigger.seq END,
                wanted_seq = excluded.wanted_seq,
                due_at = COALESCE(plugin_trigger.due_at, excluded.due_at)
            WHERE plugin_trigger.wanted_seq < excluded.wanted_seq
                AND (plugin_trigger.due_at IS NULL OR plugin_trigger.wanted_seq > COALESCE((
                    SELECT o.after_seq FROM plugin_organization o
                    WHERE o.org_id = plugin_trigger.org_id AND o.plugin_uid = plugin_trigger.plugin_uid), 0))",
        );
        insert.build().execute(conn).await.map(drop)
    })?;
    Ok(())
}

/// Triggers with events to be handed over: by turns among the plugins, of each plugin by turns among the organizations, and
/// then the longest waiting first; a few of each organization. So no plugin hides another one's.
pub async fn due(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<Vec<TriggerRow>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT q.* FROM (
            SELECT o.*,
                ROW_NUMBER() OVER (PARTITION BY o.org_id ORDER BY o.own, o.due_at, o.plugin_uid, o.trigger_id) AS place,
                ROW_NUMBER() OVER (PARTITION BY o.plugin_uid ORDER BY o.own, o.due_at, o.org_id, o.trigger_id) AS turn
            FROM (
                SELECT t.*,
                    ROW_NUMBER() OVER (PARTITION BY t.org_id, t.plugin_uid ORDER BY t.due_at, t.trigger_id) AS own
                FROM plugin_trigger t WHERE t.due_at IS NOT NULL AND t.due_at <= $1) o) q
        WHERE q.place <= $2 ORDER BY q.turn, q.due_at, q.org_id, q.place LIMIT CAST($3 AS BIGINT)")
        .bind(now)
        .bind(OF_ORG_MAX)
        .bind(i64::from(limit))
        .fetch_all(conn)
        .await)?)
}

/// The triggers of a plugin in an organization that ever wanted an event.
pub async fn list(tx: &mut Tx, keeper: Keeper) -> Result<Vec<TriggerRow>> {
    Select::new(SELECT, FROM)
        .and_bind("t.org_id = ?", Bind::Id(keeper.org.0))
        .and_bind("t.plugin_uid = ?", Bind::Id(keeper.plugin.0))
        .all(tx, "t.trigger_id", ROWS_MAX)
        .await
}

/// A trigger of a plugin in an organization; `None` where it never wanted an event.
pub async fn find(tx: &mut Tx, keeper: Keeper, trigger_id: &str) -> Result<Option<TriggerRow>> {
    Select::new(SELECT, FROM)
        .and_bind("t.org_id = ?", Bind::Id(keeper.org.0))
        .and_bind("t.plugin_uid = ?", Bind::Id(keeper.plugin.0))
        .and_bind("t.trigger_id = ?", Bind::Text(trigger_id.to_owned()))
        .one(tx)
        .await
}

/// Takes a trigger that is due until a time; false when another process did.
pub async fn claim(tx: &mut Tx, row: &TriggerRow, owner: ProcessId, until: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE plugin_trigger SET due_at = $5, owner = $6
        WHERE org_id = $1 AND plugin_uid = $2 AND trigger_id = $3 AND due_at = $4"
        )
        .bind(row.org_id)
        .bind(row.plugin_uid)
        .bind(&row.trigger_id)
        .bind(row.due_at)
        .bind(until)
        .bind(owner)
    );
    Ok(rows == 1)
}

/// The processes that have taken triggers, timers or settings and are gone.
pub async fn gone(tx: &mut Tx, me: ProcessId) -> Result<Vec<ProcessId>> {
    let owners: Vec<ProcessId> = on!(tx, conn => sqlx::query_scalar("
        SELECT owner FROM plugin_trigger WHERE owner IS NOT NULL
        UNION SELECT owner FROM plugin_timer WHERE owner IS NOT NULL
        UNION SELECT configure_owner FROM plugin_organization WHERE configure_owner IS NOT NULL")
        .fetch_all(conn)
        .await)?;
    gone_among(tx, me, owners).await
}

/// Makes the triggers, timers and settings that these processes have taken due at once.
pub async fn take_back(tx: &mut Tx, gone: &[ProcessId], now: Timestamp) -> Result<()> {
    for process in gone {
        for taken in [
            "UPDATE plugin_trigger SET due_at = $2, owner = NULL WHERE owner = $1",
            "UPDATE plugin_timer SET due_at = $2, owner = NULL WHERE owner = $1",
            "UPDATE plugin_organization SET configure_at = $2, configure_owner = NULL WHERE configure_owner = $1",
        ] {
            affected!(tx, sqlx::query(taken).bind(process).bind(now));
        }
    }
    Ok(())
}

/// Writes that the next events of a trigger were not handed over, and when they are again; false when another process has
/// taken it meanwhile.
pub async fn failed(
    tx: &mut Tx,
    row: &TriggerRow,
    (due_at, single_seq): (Timestamp, i64),
    (attempts, problem): (i64, Option<&str>),
) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE plugin_trigger SET due_at = $5, owner = NULL, attempts = $6, problem = $7, single_seq = $8
        WHERE org_id = $1 AND plugin_uid = $2 AND trigger_id = $3 AND due_at = $4"
        )
        .bind(row.org_id)
        .bind(row.plugin_uid)
        .bind(&row.trigger_id)
        .bind(row.due_at)
        .bind(due_at)
        .bind(attempts)
        .bind(problem)
        .bind(single_seq)
    );
    Ok(rows == 1)
}

/// Writes that events up to a number are done, those of a problem without effect. It is due at once where it wants more, as
/// it may since a moment ago, and where the plugin was inactive after the last event that it wants: what came since is to be
/// looked for. False when another process has taken it meanwhile.
pub async fn done(
    tx: &mut Tx,
    row: &TriggerRow,
    seq: i64,
    (problem, called_at): (Option<&str>, Option<Timestamp>),
    now: Timestamp,
) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE plugin_trigger SET seq = $5,
            due_at = CASE WHEN wanted_seq > $5 OR wanted_seq <= (
                SELECT o.after_seq FROM plugin_organization o
                WHERE o.org_id = plugin_trigger.org_id AND o.plugin_uid = plugin_trigger.plugin_uid)
                THEN $6 ELSE NULL END,
            owner = NULL, attempts = 0, problem = $7, called_at = COALESCE($8, called_at)
        WHERE org_id = $1 AND plugin_uid = $2 AND trigger_id = $3 AND due_at = $4"
        )
        .bind(row.org_id)
        .bind(row.plugin_uid)
        .bind(&row.trigger_id)
        .bind(row.due_at)
        .bind(seq)
        .bind(now)
        .bind(problem)
        .bind(called_at)
    );
    Ok(rows == 1)
}

/// Has a trigger go on behind the events that came while its plugin was inactive, up to `after_seq`: those before are done. It
/// is due at once where anything came since. False when another process has taken it meanwhile.
pub async fn pass_over(tx: &mut Tx, row: &TriggerRow, after_seq: i64, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE plugin_trigger SET seq = $5, owner = NULL, attempts = 0
        WHERE org_id = $1 AND plugin_uid = $2 AND trigger_id = $3 AND due_at = $4"
        )
        .bind(row.org_id)
        .bind(row.plugin_uid)
        .bind(&row.trigger_id)
        .bind(row.due_at)
        .bind(after_seq)
    );
    if rows == 0 {
        return Ok(false);
    }
    // The row is held by now: an event that is noted later finds it behind `after_seq`, and one from before is counted here.
    let last = events::last_seq(tx, row.org_id).await?.max(after_seq);
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE plugin_trigger SET wanted_seq = $5, due_at = $6
        WHERE org_id = $1 AND plugin_uid = $2 AND trigger_id = $3 AND due_at = $4"
        )
        .bind(row.org_id)
        .bind(row.plugin_uid)
        .bind(&row.trigger_id)
        .bind(row.due_at)
        .bind(last)
        .bind((last > after_seq).then_some(now))
    );
    Ok(rows == 1)
}

/// Has triggers of a plugin that becomes active, and that still have events from before it was inactive the last time, wait on
/// with all that came since. Only one such time is known of each: without this, what came between two of them would be lost.
pub(super) async fn wait_on(tx: &mut Tx, plugin: PluginUid) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "UPDATE plugin_trigger SET wanted_seq = COALESCE(
                (SELECT h.seq FROM event_head h WHERE h.org_id = plugin_trigger.org_id), wanted_seq)
            WHERE plugin_uid = $1 AND due_at IS NOT NULL AND wanted_seq <= (
                SELECT o.after_seq FROM plugin_organization o
                WHERE o.org_id = plugin_trigger.org_id AND o.plugin_uid = plugin_trigger.plugin_uid)"
        )
        .bind(plugin)
    );
    Ok(())
}

/// Hands over at once what waits in an organization for a plugin: what kept it may be mended.
pub async fn hasten(tx: &mut Tx, keeper: Keeper, now: Timestamp) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "UPDATE plugin_trigger SET due_at = $3, attempts = 0
            WHERE org_id = $1 AND plugin_uid = $2 AND due_at > $3 AND owner IS NULL"
        )
        .bind(keeper.org)
        .bind(keeper.plugin)
        .bind(now)
    );
    Ok(())
}

/// Forgets how far a trigger has come, unless another process has taken it.
pub async fn drop_claimed(tx: &mut Tx, row: &TriggerRow) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "DELETE FROM plugin_trigger
            WHERE org_id = $1 AND plugin_uid = $2 AND trigger_id = $3 AND due_at = $4"
        )
        .bind(row.org_id)
        .bind(row.plugin_uid)
        .bind(&row.trigger_id)
        .bind(row.due_at)
    );
    Ok(())
}

/// Forgets how far the triggers of a plugin have come: in one organization, or in all.
pub async fn forget(tx: &mut Tx, plugin: PluginUid, org: Option<OrgId>) -> Result<()> {
    affected!(
        tx,
        sqlx::query("DELETE FROM plugin_trigger WHERE plugin_uid = $1 AND ($2 IS NULL OR org_id = $2)")
            .bind(plugin)
            .bind(org)
    );
    Ok(())
}
