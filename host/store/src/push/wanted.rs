//! What messages of controllers ask to be read again: a row for the devices, or for one kind of the model, of a controller or
//! of one of the vendor's sites.
//!
//! A row is written before the reading, and removed in the transaction that ends it. Each message raises its number, and a
//! reading removes it only under the number that it began with: what is told during a reading is read once more. A reading
//! marks the rows that it takes, so that what is told meanwhile becomes due at its own time.
//!
//! Rows that another transaction has locked are left as they are: a message is raising their numbers, and waiting for it
//! could make two transactions wait for each other.

use std::collections::{BTreeMap, HashSet};

use heddle_core::{ControllerId, ProcessId, Timestamp};
use sqlx::{AssertSqlSafe, FromRow, QueryBuilder};

use crate::controllers::{ControllerTarget, Except, FROM_TARGET, SELECT_TARGET, claim_by};
use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Select, affected, bind_all, lock_free};

/// The word for a controller's devices, beside the kinds of the model.
pub const DEVICES: &str = "device";
/// Rows of one statement.
const ROWS_PER_STATEMENT: usize = 500;
/// Sites of which a kind is wanted, each by a row of its own. What is wanted of more is wanted of all of them: that many
/// lists are read nearly as fast, and rows stay few.
const SITES_MAX: usize = 32;
/// More rows than one controller has: each kind has some twice [`SITES_MAX`] of them.
const ROWS_MAX: i64 = 10_000;

const SELECT: &str =
    "SELECT w.controller_id, w.kind, w.site_ref, w.number, w.told_at, w.taken_at, w.taken_by";

/// Something to read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Want {
    /// [`DEVICES`], or a kind of the model.
    pub kind: String,
    /// The vendor's id of the site; empty for the controller and all of its sites.
    pub site_ref: String,
    /// When it is read at the earliest.
    pub due_at: Timestamp,
    /// When the controller told it.
    pub told_at: Timestamp,
    /// When it is read once more, for controllers whose lists come later than their messages.
    pub again_at: Option<Timestamp>,
}

impl Want {
    /// Takes along what is wanted of the same besides.
    pub fn take(&mut self, other: &Self) {
        self.due_at = self.due_at.min(other.due_at);
        self.told_at = self.told_at.min(other.told_at);
        self.again_at = self.again_at.max(other.again_at);
    }
}

/// A row as it was when a reading of it began.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Row {
    pub controller_id: ControllerId,
    pub kind: String,
    pub site_ref: String,
    pub number: i64,
    pub told_at: Timestamp,
    /// When a reading first took it under this number: lists that were read since then need not be read for it again, and what
    /// is told while that one goes on does not hasten the next one.
    pub taken_at: Option<Timestamp>,
    /// The process whose time that is. No other process compares its clock with it.
    pub taken_by: Option<ProcessId>,
}

impl Row {
    /// Whether it asks for devices.
    pub fn is_of_devices(&self) -> bool {
        self.kind == DEVICES
    }
}

/// Which of the controllers are asked about that wait to be read for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Those whose devices are among what is wanted.
    Devices,
    /// Those of which nothing but objects of the model is wanted.
    Model,
}

/// Writes what is to be read again: each kind and site once. What was wanted already becomes due no later than it was, except
/// where a reading has taken it: the pace of rules counts from that one. The mark of a process that does not read the controller now
/// has no effect. One that reads it again may still be marked by its reading before: the row is due when its rule says, at the latest.
///
/// The rows are written in their order: two that write do not wait for each other.
pub async fn want(tx: &mut Tx, controller: ControllerId, wants: &[Want]) -> Result<()> {
    let folded = folded(wants, &crowded(tx, controller).await?);
    let in_order: Vec<&Want> = folded.values().collect();
    for rows in in_order.chunks(ROWS_PER_STATEMENT) {
        on!(tx, conn => {
            let mut insert = QueryBuilder::new(
                "INSERT INTO push_wanted (controller_id, kind, site_ref, number, due_at, told_at, again_at) ",
            );
            insert.push_values(rows, |mut row, want| {
                row.push_bind(controller)
                    .push_bind(&want.kind)
                    .push_bind(&want.site_ref)
                    .push_bind(1_i64)
                    .push_bind(want.due_at)
                    .push_bind(want.told_at)
                    .push_bind(want.again_at);
            });
            insert.push(
                " ON CONFLICT (controller_id, kind, site_ref) DO UPDATE SET number = push_wanted.number + 1,
                    taken_at = NULL, taken_by = NULL,
                    due_at = CASE WHEN excluded.due_at < push_wanted.due_at OR push_wanted.taken_by =
                            (SELECT c.sync_owner FROM controller c WHERE c.id = push_wanted.controller_id)
                        THEN excluded.due_at ELSE push_wanted.due_at END,
                    told_at = CASE WHEN excluded.told_at < push_wanted.told_at
                        THEN excluded.told_at ELSE push_wanted.told_at END,
                    again_at = CASE WHEN push_wanted.again_at IS NULL OR excluded.again_at > push_wanted.again_at
                        THEN excluded.again_at ELSE push_wanted.again_at END",
            );
            insert.build().execute(conn).await.map(|_| ())
        })?;
    }
    Ok(())
}

/// Kinds that are wanted of as many sites already as have a row of their own.
async fn crowded(tx: &mut Tx, controller: ControllerId) -> Result<HashSet<String>> {
    let most = i64::try_from(SITES_MAX).unwrap_or(i64::MAX);
    let kinds: Vec<String> = on!(tx, conn => sqlx::query_scalar("
        SELECT kind FROM push_wanted WHERE controller_id = $1 AND site_ref <> ''
        GROUP BY kind HAVING COUNT(*) >= CAST($2 AS BIGINT)")
        .bind(controller).bind(most)
        .fetch_all(conn)
        .await)?;
    Ok(kinds.into_iter().collect())
}

/// What is wanted, each once and in order. A kind that is wanted of many sites is wanted of all of them.
fn folded(wants: &[Want], crowded: &HashSet<String>) -> BTreeMap<(String, String), Want> {
    let mut sites: BTreeMap<&str, HashSet<&str>> = BTreeMap::new();
    for want in wants.iter().filter(|want| !want.site_ref.is_empty()) {
        sites.entry(&want.kind).or_default().insert(&want.site_ref);
    }
    let is_of_all =
        |kind: &str| crowded.contains(kind) || sites.get(kind).is_some_and(|sites| sites.len() > SITES_MAX);
    let mut folded: BTreeMap<(String, String), Want> = BTreeMap::new();
    for want in wants {
        let site_ref = if is_of_all(&want.kind) { String::new() } else { want.site_ref.clone() };
        let want = Want { site_ref, ..want.clone() };
        let key = (want.kind.clone(), want.site_ref.clone());
        folded.entry(key).and_modify(|other| other.take(&want)).or_insert(want);
    }
    folded
}

/// Controllers of which something is wanted now, that no other process reads, and whose own time to be read has not come:
/// that reading takes all of it along. The one that waits longest comes first.
pub async fn due(
    tx: &mut Tx,
    owner: ProcessId,
    now: Timestamp,
    except: &Except,
    (of, limit): (Of, u32),
) -> Result<Vec<ControllerTarget>> {
    let select = Select::new(SELECT_TARGET, FROM_TARGET)
        .and_bind("(c.sync_owner IS NULL OR c.sync_owner = ?)", Bind::Id(owner.0))
        .and("c.deleted_at IS NULL")
        .and_bind("(c.next_sync_at IS NULL OR c.next_sync_at > ?)", Bind::Time(now))
        .and_bind("(c.push_rest_until IS NULL OR c.push_rest_until <= ?)", Bind::Time(now));
    let devices =
        "c.id IN (SELECT w.controller_id FROM push_wanted w WHERE w.due_at <= ? AND w.kind = 'device')";
    let select = match of {
        Of::Devices => select.and_bind(devices, Bind::Time(now)),
        Of::Model => select
            .and_bind(
                "c.id IN (SELECT w.controller_id FROM push_wanted w WHERE w.due_at <= ?)",
                Bind::Time(now),
            )
            .and_bind(
                "c.id NOT IN (SELECT w.controller_id FROM push_wanted w WHERE w.due_at <= ? AND w.kind = 'device')",
                Bind::Time(now),
            ),
    };
    let order = "(SELECT MIN(w.due_at) FROM push_wanted w WHERE w.controller_id = c.id), c.id";
    except.of(select).all(tx, order, i64::from(limit)).await
}

/// Takes the readings of controllers of which something is wanted; gives those that no other process has. As
/// [`crate::controllers::claim`] does, it takes one's own claim again.
pub async fn claim(
    tx: &mut Tx,
    ids: &[ControllerId],
    owner: ProcessId,
    now: Timestamp,
) -> Result<HashSet<ControllerId>> {
    let free = "deleted_at IS NULL AND (sync_owner IS NULL OR sync_owner = $1)
        AND (next_sync_at IS NULL OR next_sync_at > $2) AND (push_rest_until IS NULL OR push_rest_until <= $2)
        AND EXISTS (SELECT 1 FROM push_wanted w WHERE w.controller_id = controller.id AND w.due_at <= $2)";
    let update = "UPDATE controller SET sync_owner = $1";
    claim_by(tx, (update, free), vec![Bind::Id(owner.0), Bind::Time(now)], ids).await
}

/// When the next of what is wanted becomes due that was not yet at this time.
pub async fn next_due(tx: &mut Tx, after: Timestamp) -> Result<Option<Timestamp>> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        SELECT due_at FROM push_wanted WHERE due_at > $1 ORDER BY due_at LIMIT 1")
        .bind(after)
        .fetch_optional(conn)
        .await)?)
}

/// What is wanted of a controller now, as a reading that begins takes it.
pub async fn of(tx: &mut Tx, controller: ControllerId, now: Timestamp) -> Result<Vec<Row>> {
    due_rows(controller, now).all(tx, "w.kind, w.site_ref", ROWS_MAX).await
}

/// What is wanted of a controller now that is being read; nothing while its readings for messages rest.
pub async fn during(tx: &mut Tx, controller: ControllerId, now: Timestamp) -> Result<Vec<Row>> {
    due_rows(controller, now)
        .and_bind(
            "NOT EXISTS (SELECT 1 FROM controller c WHERE c.id = w.controller_id AND c.push_rest_until > ?)",
            Bind::Time(now),
        )
        .all(tx, "w.kind, w.site_ref", ROWS_MAX)
        .await
}

fn due_rows(controller: ControllerId, now: Timestamp) -> Select {
    Select::new(SELECT, "FROM push_wanted w")
        .and_bind("w.controller_id = ?", Bind::Id(controller.0))
        .and_bind("w.due_at <= ?", Bind::Time(now))
}

/// Notes that a reading begins that takes these rows. One that takes them under the same numbers reads the lists that were not
/// read since then.
pub async fn take(tx: &mut Tx, rows: &[Row], owner: ProcessId, now: Timestamp) -> Result<()> {
    for rows in rows.chunks(ROWS_PER_STATEMENT) {
        let values = vec![Bind::Time(now), Bind::Id(owner.0)];
        let start = "UPDATE push_wanted SET taken_at = $1, taken_by = $2 WHERE";
        let (sql, values) = of_rows(tx, start, values, rows);
        affected!(tx, bind_all!(sqlx::query(AssertSqlSafe(sql)), &values));
    }
    Ok(())
}

/// Removes what a reading read that began then, and keeps what was told meanwhile. What is to be read once more after that
/// time becomes due at its own. Returns when each of the rows that went was told.
///
/// The caller holds the controller's row.
pub async fn settle(tx: &mut Tx, read: &[Row], began: Timestamp) -> Result<Vec<Timestamp>> {
    let mut told = Vec::new();
    for rows in read.chunks(ROWS_PER_STATEMENT) {
        put_off(tx, rows, began).await?;
        told.extend(remove(tx, rows, began).await?);
    }
    Ok(told)
}

/// Rows that are to be read once more: their numbers rise, so that nothing that began before removes them.
async fn put_off(tx: &mut Tx, rows: &[Row], began: Timestamp) -> Result<()> {
    let start =
        "UPDATE push_wanted SET number = number + 1, due_at = again_at, told_at = again_at, again_at = NULL,
            taken_at = NULL, taken_by = NULL
        WHERE again_at > $1 AND";
    let (sql, values) = of_rows(tx, start, vec![Bind::Time(began)], rows);
    affected!(tx, bind_all!(sqlx::query(AssertSqlSafe(sql)), &values));
    Ok(())
}

async fn remove(tx: &mut Tx, rows: &[Row], began: Timestamp) -> Result<Vec<Timestamp>> {
    let start = "DELETE FROM push_wanted WHERE (again_at IS NULL OR again_at <= $1) AND";
    let (mut sql, values) = of_rows(tx, start, vec![Bind::Time(began)], rows);
    sql.push_str(" RETURNING told_at");
    Ok(on!(tx, conn => bind_all!(sqlx::query_scalar(AssertSqlSafe(sql)), &values).fetch_all(conn).await)?)
}

/// The statement for rows of a controller under the numbers with which a reading took them, except those that another
/// transaction has locked.
fn of_rows(tx: &Tx, start: &str, mut values: Vec<Bind>, rows: &[Row]) -> (String, Vec<Bind>) {
    values.extend(rows.first().map(|row| Bind::Id(row.controller_id.0)));
    let controller = values.len();
    let mut places = Vec::with_capacity(rows.len());
    for row in rows {
        let at = values.len();
        places.push(format!("(${}, ${}, ${})", at + 1, at + 2, at + 3));
        values.extend([
            Bind::Text(row.kind.clone()),
            Bind::Text(row.site_ref.clone()),
            Bind::Number(row.number),
        ]);
    }
    let sql = format!(
        "{start} controller_id = ${controller} AND (kind, site_ref) IN (
            SELECT kind, site_ref FROM push_wanted
            WHERE controller_id = ${controller} AND (kind, site_ref, number) IN (VALUES {})
            ORDER BY kind, site_ref{})",
        places.join(", "),
        lock_free(tx)
    );
    (sql, values)
}

/// Lets what is wanted of a controller wait, because it can take no calls now.
pub async fn postpone(tx: &mut Tx, controller: ControllerId, until: Timestamp) -> Result<()> {
    let sql = format!(
        "UPDATE push_wanted SET due_at = $2 WHERE controller_id = $1 AND (kind, site_ref) IN (
            SELECT kind, site_ref FROM push_wanted WHERE controller_id = $1 AND due_at < $2
            ORDER BY kind, site_ref{})",
        lock_free(tx)
    );
    affected!(tx, sqlx::query(AssertSqlSafe(sql)).bind(controller).bind(until));
    Ok(())
}

/// Forgets up to so many rows of controllers that were removed before this time, or whose organization was; tells how many.
pub async fn trim(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM push_wanted WHERE (controller_id, kind, site_ref) IN (
            SELECT w.controller_id, w.kind, w.site_ref FROM push_wanted w JOIN controller c ON c.id = w.controller_id
                JOIN organization o ON o.id = c.org_id
            WHERE c.deleted_at < $1 OR o.deleted_at < $1
            ORDER BY w.controller_id, w.kind, w.site_ref LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    ))
}

/// Keeps readings for messages from beginning at a controller before this time; false where another process reads it by now.
pub async fn rest(tx: &mut Tx, controller: ControllerId, owner: ProcessId, until: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query("UPDATE controller SET push_rest_until = $3 WHERE id = $1 AND sync_owner = $2")
            .bind(controller)
            .bind(owner)
            .bind(until)
    );
    Ok(rows == 1)
}

#[cfg(test)]
mod tests;
