//! Runs: what was started, which process carries it out, and how it ended.
//!
//! A run is claimed once. What a process writes of it counts only while the run is its own.

use std::collections::HashMap;

use chrono::TimeDelta;
use heddle_core::condition::Conditions;
use heddle_core::operation::{RunKind, RunState, StepRecord};
use heddle_core::page::{WalkRequest, Walked};
use heddle_core::{ConnectionId, EventId, OrgId, ProcessId, RunId, Timestamp, UserId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::types::Json;
use sqlx::{Database, Encode, FromRow, QueryBuilder, Type};

use crate::db::Tx;
use crate::error::Result;
use crate::processes::gone_among;
use crate::select::{Bind, Scope, Select, affected, push_list};
use crate::sort::{Key, Sorted};

/// Rows of one INSERT: twenty-two values each, far below both databases' limit of parameters.
const ROWS_PER_STATEMENT: usize = 500;

/// A run with all that carrying it out needs. It does not serialize: parameters are for their author.
#[derive(Clone, FromRow)]
pub struct RunRow {
    pub id: RunId,
    pub org_id: OrgId,
    pub kind: RunKind,
    pub connection_id: Option<ConnectionId>,
    pub event_id: Option<EventId>,
    pub event_type: Option<String>,
    /// 0 where no event started it.
    pub event_seq: i64,
    /// When the clock was to start it.
    pub due_at: Option<Timestamp>,
    pub author_id: UserId,
    /// The Connections that led to it, itself included.
    #[sqlx(json)]
    pub chain: Vec<ConnectionId>,
    pub payload: Value,
    pub state: RunState,
    pub reason: Option<String>,
    pub owner: Option<ProcessId>,
    #[sqlx(json)]
    pub steps: Vec<StepRecord>,
    /// The parameters of the steps so far, sealed for `connection_run:{id}`.
    pub secret: Option<Vec<u8>>,
    /// The same again is the same run.
    pub run_key: Option<String>,
    /// Where its Connection has pauses by a key: the value that it fired with.
    pub cooldown_key: Option<String>,
    /// The run that this one repeats.
    pub rerun_of: Option<RunId>,
    /// When a run that waits goes on; once it does, since when it is due.
    pub resume_at: Option<Timestamp>,
    #[sqlx(json(nullable))]
    pub wait: Option<Wait>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
}

impl RunRow {
    /// A run that waits to be taken up, with nothing yet of what started it.
    pub fn queued(id: RunId, kind: RunKind, org_id: OrgId, author_id: UserId, now: Timestamp) -> Self {
        Self {
            id,
            org_id,
            kind,
            connection_id: None,
            event_id: None,
            event_type: None,
            event_seq: 0,
            due_at: None,
            author_id,
            chain: Vec::new(),
            payload: Value::Object(Map::new()),
            state: RunState::Queued,
            reason: None,
            owner: None,
            steps: Vec::new(),
            secret: None,
            run_key: None,
            cooldown_key: None,
            rerun_of: None,
            resume_at: None,
            wait: None,
            created_at: now,
            started_at: None,
            ended_at: None,
        }
    }
}

impl Sorted for RunRow {
    const KEYS: &'static [Key] = &[Key::of("created_at", "r.created_at")];
    const DEFAULT: &'static str = "-created_at";
    const LAST: &'static [&'static str] = &["r.event_seq", "r.id"];
}

/// What a run waits for at its next step, and then what came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    pub since: Timestamp,
    /// Events up to this number came before.
    #[serde(default)]
    pub after_seq: i64,
    /// What must hold of an event for the run to go on by it.
    #[serde(default)]
    pub conditions: Conditions,
    /// The event that it went on by.
    #[serde(default)]
    pub event: Option<Value>,
}

/// A run that an event may let go on.
#[derive(Debug, Clone, FromRow)]
pub struct Awaiting {
    pub id: RunId,
    pub wait_event: String,
    #[sqlx(json)]
    pub wait: Wait,
    pub author_id: UserId,
}

impl std::fmt::Debug for RunRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunRow").field("id", &self.id).field("state", &self.state).finish_non_exhaustive()
    }
}

/// Which runs a list has.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    pub connection_id: Option<ConnectionId>,
    pub kind: Option<RunKind>,
    pub state: Option<RunState>,
    pub event_type: Option<String>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

/// Where a run stands after a step, or at its end.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    pub state: RunState,
    pub reason: Option<&'a str>,
    pub steps: &'a [StepRecord],
    pub secret: Option<&'a [u8]>,
    pub ended_at: Option<Timestamp>,
}

/// What waits to be carried out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromRow)]
pub struct Backlog {
    pub queued: i64,
    pub oldest: Option<Timestamp>,
}

impl Backlog {
    /// How long the first run has waited.
    pub fn age(self, now: Timestamp) -> TimeDelta {
        self.oldest.map_or(TimeDelta::zero(), |oldest| (now - oldest).max(TimeDelta::zero()))
    }
}

/// An organization that has runs waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
pub struct Waiting {
    pub org_id: OrgId,
    /// Since when the first of them waits.
    pub since: Timestamp,
}

const SELECT: &str = "SELECT r.*";
const FROM: &str = "FROM connection_run r";

/// Writes runs, save those that are there already: of one Connection by one event, or at one time.
pub async fn insert_all(tx: &mut Tx, new: &[RunRow]) -> Result<u64> {
    let mut written = 0;
    for rows in new.chunks(ROWS_PER_STATEMENT) {
        written += on!(tx, conn => {
            let mut insert = QueryBuilder::new(
                "INSERT INTO connection_run (id, org_id, kind, connection_id, event_id, event_type, event_seq,
                    due_at, author_id, chain, payload, state, reason, owner, steps, secret, run_key, rerun_of,
                    created_at, started_at, ended_at, cooldown_key) ",
            );
            insert.push_values(rows, |mut values, row| {
                values.push_bind(row.id)
                    .push_bind(row.org_id)
                    .push_bind(row.kind)
                    .push_bind(row.connection_id)
                    .push_bind(row.event_id)
                    .push_bind(row.event_type.as_ref())
                    .push_bind(row.event_seq)
                    .push_bind(row.due_at)
                    .push_bind(row.author_id)
                    .push_bind(Json(&row.chain))
                    .push_bind(&row.payload)
                    .push_bind(row.state)
                    .push_bind(row.reason.as_ref())
                    .push_bind(row.owner)
                    .push_bind(Json(&row.steps))
                    .push_bind(row.secret.as_ref())
                    .push_bind(row.run_key.as_ref())
                    .push_bind(row.rerun_of)
                    .push_bind(row.created_at)
                    .push_bind(row.started_at)
                    .push_bind(row.ended_at)
                    .push_bind(row.cooldown_key.as_ref());
            });
            insert.push(" ON CONFLICT DO NOTHING");
            insert.build().execute(conn).await.map(|done| done.rows_affected())
        })?;
    }
    Ok(written)
}

/// When the newest event was that fired each of these Connections with each of these keys, of runs written since then.
///
/// One statement for each few hundred keys, however many runs there are.
pub async fn fired_by_key(
    tx: &mut Tx,
    connections: &[ConnectionId],
    keys: &[String],
    since: Timestamp,
) -> Result<Vec<(ConnectionId, String, Timestamp)>> {
    let mut found = Vec::new();
    for ids in connections.chunks(ROWS_PER_STATEMENT) {
        for keys in keys.chunks(ROWS_PER_STATEMENT) {
            found.extend::<Vec<_>>(on!(tx, conn => {
                let mut select = QueryBuilder::new(
                    "SELECT r.connection_id, r.cooldown_key, MAX(e.occurred_at)
                    FROM connection_run r JOIN event e ON e.id = r.event_id
                    WHERE r.cooldown_key IS NOT NULL AND r.created_at >= ",
                );
                select.push_bind(since).push(" AND r.connection_id IN (");
                push_list!(select, ids);
                select.push(") AND r.cooldown_key IN (");
                let mut places = select.separated(", ");
                for key in keys {
                    places.push_bind(key);
                }
                select.push(") GROUP BY r.connection_id, r.cooldown_key");
                select.build_query_as().fetch_all(conn).await
            })?);
        }
    }
    Ok(found)
}

/// Returns the run in whatever state, without a lock.
/// `None` means that the scope's organization has no such run, or that it is forgotten.
pub async fn find(tx: &mut Tx, scope: &Scope, id: RunId) -> Result<Option<RunRow>> {
    within(scope).and_bind("r.id = ?", Bind::Id(id.0)).one(tx).await
}

/// Runs, the newest first.
pub async fn walk(
    tx: &mut Tx,
    scope: &Scope,
    filter: &RunFilter,
    request: WalkRequest,
) -> Result<Walked<RunRow>> {
    within(scope)
        .and_some("r.connection_id = ?", filter.connection_id.map(|id| Bind::Id(id.0)))
        .and_some("r.kind = ?", filter.kind.map(|kind| Bind::Text(kind.to_string())))
        .and_some("r.state = ?", filter.state.map(|state| Bind::Text(state.to_string())))
        .and_some("r.event_type = ?", filter.event_type.clone().map(Bind::Text))
        .and_some("r.created_at >= ?", filter.since.map(Bind::Time))
        .and_some("r.created_at < ?", filter.until.map(Bind::Time))
        .walk::<_, RunRow>(tx, request)
        .await
}

/// The organizations that have runs waiting: each costs a look into an index, whatever it has waiting.
pub async fn waiting(tx: &mut Tx) -> Result<Vec<Waiting>> {
    Ok(on!(tx, conn => sqlx::query_as("
        WITH RECURSIVE orgs (org_id) AS (
            SELECT (SELECT r.org_id FROM connection_run r WHERE r.state = 'queued' ORDER BY r.org_id LIMIT 1)
            UNION ALL
            SELECT (SELECT r.org_id FROM connection_run r WHERE r.state = 'queued' AND r.org_id > orgs.org_id
                ORDER BY r.org_id LIMIT 1)
            FROM orgs WHERE orgs.org_id IS NOT NULL)
        SELECT orgs.org_id AS org_id, (SELECT COALESCE(r.resume_at, r.created_at) FROM connection_run r
            WHERE r.state = 'queued' AND r.org_id = orgs.org_id ORDER BY r.created_at, r.id LIMIT 1) AS since
        FROM orgs WHERE orgs.org_id IS NOT NULL")
        .fetch_all(conn)
        .await)?)
}

/// Whether an organization has at least so many runs waiting.
pub async fn are_waiting(tx: &mut Tx, org: OrgId, count: u32) -> Result<bool> {
    let last: Option<RunId> = on!(tx, conn => sqlx::query_scalar("
        SELECT id FROM connection_run WHERE state = 'queued' AND org_id = $1
        ORDER BY created_at, id LIMIT 1 OFFSET CAST($2 AS BIGINT)")
        .bind(org).bind(i64::from(count.saturating_sub(1)))
        .fetch_optional(conn)
        .await)?;
    Ok(last.is_some())
}

/// Claims runs of an organization, those that have waited longest. No other process gets them.
pub async fn claim(
    tx: &mut Tx,
    owner: ProcessId,
    org: OrgId,
    count: u32,
    now: Timestamp,
) -> Result<Vec<RunRow>> {
    let mut claimed: Vec<RunRow> = on!(tx, conn => sqlx::query_as("
        UPDATE connection_run SET state = 'running', owner = $1, started_at = COALESCE(started_at, $2)
        WHERE state = 'queued' AND id IN (
            SELECT id FROM connection_run WHERE state = 'queued' AND org_id = $3
            ORDER BY created_at, id LIMIT CAST($4 AS BIGINT))
        RETURNING *")
        .bind(owner).bind(now).bind(org).bind(i64::from(count))
        .fetch_all(conn)
        .await)?;
    claimed.sort_by_key(|run| (run.created_at, run.id));
    Ok(claimed)
}

/// Writes where a run stands; false when this process no longer owns it.
pub async fn record(tx: &mut Tx, id: RunId, owner: ProcessId, progress: &Progress<'_>) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE connection_run SET state = $3, reason = $4, steps = $5, secret = COALESCE($6, secret), ended_at = $7
        WHERE id = $1 AND owner = $2 AND state = 'running'"
        )
        .bind(id)
        .bind(owner)
        .bind(progress.state)
        .bind(progress.reason)
        .bind(Json(progress.steps))
        .bind(progress.secret)
        .bind(progress.ended_at)
    );
    Ok(rows == 1)
}

/// The processes that are gone in the middle of a run.
pub async fn gone(tx: &mut Tx, me: ProcessId) -> Result<Vec<ProcessId>> {
    let owners: Vec<ProcessId> = on!(tx, conn => sqlx::query_scalar("
        SELECT DISTINCT owner FROM connection_run WHERE state = 'running' AND owner IS NOT NULL")
        .fetch_all(conn)
        .await)?;
    gone_among(tx, me, owners).await
}

/// Ends the orphaned runs of a process that is gone, and returns them. How far the step in flight came is unknown.
pub async fn interrupt(tx: &mut Tx, process: ProcessId, now: Timestamp) -> Result<Vec<RunRow>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE connection_run SET state = 'interrupted', ended_at = $2,
            reason = 'its process ended in the middle of a step; it is not run again'
        WHERE owner = $1 AND state = 'running'
        RETURNING *")
        .bind(process).bind(now)
        .fetch_all(conn)
        .await)?)
}

/// Makes a run of this process wait at its next step, as it stands; false when this process no longer owns it.
///
/// A run that waits has no owner and costs no process anything.
pub async fn rest(
    tx: &mut Tx,
    id: RunId,
    owner: ProcessId,
    progress: &Progress<'_>,
    (resume_at, event, wait): (Timestamp, Option<&str>, &Wait),
) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE connection_run SET state = 'waiting', owner = NULL, steps = $3, secret = COALESCE($4, secret),
            resume_at = $5, wait_event = $6, wait = $7, reason = $8
        WHERE id = $1 AND owner = $2 AND state = 'running'"
        )
        .bind(id)
        .bind(owner)
        .bind(Json(progress.steps))
        .bind(progress.secret)
        .bind(resume_at)
        .bind(event)
        .bind(Json(wait))
        .bind(progress.reason)
    );
    Ok(rows == 1)
}

/// How many runs of an organization wait for a time or an event.
pub async fn count_resting(tx: &mut Tx, org: OrgId) -> Result<i64> {
    Select::new(SELECT, FROM)
        .and_bind("r.org_id = ?", Bind::Id(org.0))
        .and("r.state = 'waiting'")
        .count(tx)
        .await
}

/// Queues the runs whose time to go on has come, up to a number; returns how many.
pub async fn resume_due(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        UPDATE connection_run SET state = 'queued' WHERE state = 'waiting' AND id IN (
            SELECT id FROM connection_run WHERE state = 'waiting' AND resume_at <= $1
            ORDER BY resume_at, id LIMIT CAST($2 AS BIGINT))"
        )
        .bind(now)
        .bind(i64::from(limit))
    ))
}

/// Whether a run's time to go on has come.
pub async fn is_any_due(tx: &mut Tx, now: Timestamp) -> Result<bool> {
    let found: Option<RunId> = on!(tx, conn => sqlx::query_scalar("
        SELECT id FROM connection_run WHERE state = 'waiting' AND resume_at <= $1
        ORDER BY resume_at, id LIMIT 1")
        .bind(now)
        .fetch_optional(conn)
        .await)?;
    Ok(found.is_some())
}

/// The runs of an organization that wait for an event of one of these patterns.
pub async fn awaiting(tx: &mut Tx, org: OrgId, patterns: &[String]) -> Result<Vec<Awaiting>> {
    if patterns.is_empty() {
        return Ok(Vec::new());
    }
    Select::new("SELECT r.id, r.wait_event, r.wait, r.author_id", FROM)
        .and_bind("r.org_id = ?", Bind::Id(org.0))
        .and("r.state = 'waiting'")
        .and_in("r.wait_event", patterns.iter().map(|pattern| Bind::Text(pattern.clone())))
        .all(tx, "r.resume_at, r.id", 10_000)
        .await
}

/// Whether a run of an organization waits for an event of one of these patterns.
pub async fn is_any_awaiting(tx: &mut Tx, org: OrgId, patterns: &[String]) -> Result<bool> {
    #[derive(FromRow)]
    struct Found {
        #[expect(dead_code, reason = "that there is a row is the answer")]
        id: RunId,
    }
    if patterns.is_empty() {
        return Ok(false);
    }
    let found: Vec<Found> = Select::new("SELECT r.id", FROM)
        .and_bind("r.org_id = ?", Bind::Id(org.0))
        .and("r.state = 'waiting'")
        .and_in("r.wait_event", patterns.iter().map(|pattern| Bind::Text(pattern.clone())))
        .all(tx, "r.id", 1)
        .await?;
    Ok(!found.is_empty())
}

/// Queues runs that go on by the events that their waits hold.
pub async fn resume_by(tx: &mut Tx, met: &[(RunId, Wait)], now: Timestamp) -> Result<()> {
    for some in met.chunks(ROWS_PER_STATEMENT) {
        on!(tx, conn => {
            let mut update = QueryBuilder::new("UPDATE connection_run SET state = 'queued', resume_at = ");
            update.push_bind(now).push(", wait = CASE id");
            for (id, wait) in some {
                update.push(" WHEN ").push_bind(*id).push(" THEN ").push_bind(Json(wait));
            }
            update.push(" END WHERE state = 'waiting' AND id IN (");
            push_list!(update, some.iter().map(|(id, _)| id));
            update.push(")");
            update.build().execute(conn).await.map(drop)
        })?;
    }
    Ok(())
}

/// The runs that this process carries out, as far as the database knows.
pub async fn running(tx: &mut Tx, owner: ProcessId) -> Result<Vec<RunId>> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        SELECT id FROM connection_run WHERE state = 'running' AND owner = $1 ORDER BY id LIMIT 10000")
        .bind(owner)
        .fetch_all(conn)
        .await)?)
}

/// Ends orphaned runs, which are assigned to this process but not executing, and returns them.
pub async fn interrupt_lost(
    tx: &mut Tx,
    ids: &[RunId],
    owner: ProcessId,
    now: Timestamp,
) -> Result<Vec<RunRow>> {
    let mut rows = Vec::new();
    for ids in ids.chunks(ROWS_PER_STATEMENT) {
        let ended: Vec<RunRow> = on!(tx, conn => {
            let mut end = QueryBuilder::new("UPDATE connection_run SET state = 'interrupted',
                reason = 'how its last step ended could not be written; it is not run again', ended_at = ");
            end.push_bind(now);
            of_owner(&mut end, ids, owner);
            end.push(" RETURNING *");
            end.build_query_as().fetch_all(conn).await
        })?;
        rows.extend(ended);
    }
    Ok(rows)
}

/// Has runs that this process claimed and never began wait again.
pub async fn give_back(tx: &mut Tx, ids: &[RunId], owner: ProcessId) -> Result<()> {
    for ids in ids.chunks(ROWS_PER_STATEMENT) {
        on!(tx, conn => {
            let mut give =
                QueryBuilder::new("UPDATE connection_run SET state = 'queued', owner = NULL, started_at = NULL");
            of_owner(&mut give, ids, owner);
            give.build().execute(conn).await.map(drop)
        })?;
    }
    Ok(())
}

fn of_owner<'a, DB: Database>(update: &mut QueryBuilder<DB>, ids: &'a [RunId], owner: ProcessId)
where
    RunId: Encode<'a, DB> + Type<DB>,
    ProcessId: Encode<'a, DB> + Type<DB>,
{
    update.push(" WHERE state = 'running' AND owner = ").push_bind(owner).push(" AND id IN (");
    push_list!(update, ids);
    update.push(")");
}

/// Gives the key of a run that was begun before this time free.
pub async fn forget_key(tx: &mut Tx, key: &str, before: Timestamp) -> Result<()> {
    affected!(
        tx,
        sqlx::query("UPDATE connection_run SET run_key = NULL WHERE run_key = $1 AND created_at < $2")
            .bind(key)
            .bind(before)
    );
    Ok(())
}

/// Has a run give its key up: the same again is another run.
pub async fn give_key_up(tx: &mut Tx, id: RunId) -> Result<()> {
    affected!(tx, sqlx::query("UPDATE connection_run SET run_key = NULL WHERE id = $1").bind(id));
    Ok(())
}

/// Gives the key of a run free that was interrupted: nothing is known of its end.
pub async fn forget_interrupted_key(tx: &mut Tx, key: &str) -> Result<()> {
    affected!(
        tx,
        sqlx::query("UPDATE connection_run SET run_key = NULL WHERE run_key = $1 AND state = 'interrupted'")
            .bind(key)
    );
    Ok(())
}

/// How the run with this key stands.
pub async fn state_by_key(tx: &mut Tx, key: &str) -> Result<Option<RunState>> {
    Ok(on!(tx, conn => sqlx::query_scalar("SELECT state FROM connection_run WHERE run_key = $1")
        .bind(key)
        .fetch_optional(conn)
        .await)?)
}

/// The chains of these runs.
pub async fn chains(tx: &mut Tx, ids: &[RunId]) -> Result<HashMap<RunId, Vec<ConnectionId>>> {
    #[derive(FromRow)]
    struct Chain {
        id: RunId,
        #[sqlx(json)]
        chain: Vec<ConnectionId>,
    }
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<Chain> = Select::new("SELECT r.id, r.chain", FROM)
        .and_in("r.id", ids.iter().map(|id| Bind::Id(id.0)))
        .all(tx, "r.id", i64::try_from(ids.len()).unwrap_or(i64::MAX))
        .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.chain)).collect())
}

/// How many runs wait, and since when the first.
pub async fn backlog(tx: &mut Tx) -> Result<Backlog> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT COUNT(*) AS queued, MIN(COALESCE(resume_at, created_at)) AS oldest FROM connection_run WHERE state = 'queued'")
        .fetch_one(conn)
        .await)?)
}

/// Forgets runs that ended before this time, up to a number; tells how many.
pub async fn trim(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM connection_run WHERE id IN (
            SELECT id FROM connection_run WHERE ended_at < $1 ORDER BY ended_at, id LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    ))
}

/// Keeps the newest of a Connection's firings that did not come to be.
pub async fn trim_skipped(tx: &mut Tx, connection: ConnectionId, keep: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM connection_run
        WHERE connection_id = $1 AND state = 'skipped' AND id <= (
            SELECT id FROM connection_run WHERE connection_id = $1 AND state = 'skipped'
            ORDER BY id DESC LIMIT 1 OFFSET CAST($2 AS BIGINT))"
        )
        .bind(connection)
        .bind(i64::from(keep))
    ))
}

fn within(scope: &Scope) -> Select {
    Select::new(SELECT, FROM).within(scope, "r.org_id", None)
}

#[cfg(test)]
mod tests;
