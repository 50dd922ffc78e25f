//! Connections: what an event or the clock starts. Parameters of steps are sealed bytes here.

use std::collections::{BTreeMap, BTreeSet};

use heddle_core::condition::Conditions;
use heddle_core::operation::{ConnectionKind, ConnectionState, MissedPolicy, StepOutline};
use heddle_core::{ConnectionId, OrgId, Timestamp, UserId};
use sqlx::types::Json;
use sqlx::{Database, Encode, FromRow, QueryBuilder, Type};

use crate::db::Tx;
use crate::error::Result;
use crate::object::revised;
use crate::select::{Bind, Scope, Select, affected, push_list};
use crate::sort::{InOrder, Key, Sorted};

/// A Connection with all that firing it needs. It does not serialize: its parameters are for its author.
#[derive(Clone, FromRow)]
pub struct ConnectionRow {
    pub id: ConnectionId,
    pub org_id: OrgId,
    pub kind: ConnectionKind,
    pub name: String,
    pub description: Option<String>,
    /// A pattern; empty where the clock starts it.
    pub source_event: String,
    #[sqlx(json)]
    pub conditions: Conditions,
    #[sqlx(json)]
    pub steps: Vec<StepOutline>,
    /// The parameters of the steps, sealed for `connection:{id}`.
    pub secret: Vec<u8>,
    pub cooldown_secs: i64,
    /// A text with references: firings with different values of it have pauses of their own.
    pub cooldown_key: Option<String>,
    pub state: ConnectionState,
    pub state_reason: Option<String>,
    /// The owner of an operation that it is broken without; it is enabled again when that one offers the operation again.
    pub waits_for: Option<String>,
    pub author_id: UserId,
    /// Counts edits.
    pub revision: i64,
    pub after_seq: i64,
    pub last_fired_at: Option<Timestamp>,
    pub cron: Option<String>,
    pub time_zone: Option<String>,
    pub missed: Option<MissedPolicy>,
    pub next_due_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

revised!(ConnectionRow);

impl ConnectionRow {
    /// An enabled one that is not written yet, with nothing yet of what starts it and what it does.
    pub fn draft(
        id: ConnectionId,
        kind: ConnectionKind,
        org_id: OrgId,
        author_id: UserId,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            org_id,
            kind,
            name: String::new(),
            description: None,
            source_event: String::new(),
            conditions: Conditions::default(),
            steps: Vec::new(),
            secret: Vec::new(),
            cooldown_secs: 0,
            cooldown_key: None,
            state: ConnectionState::Enabled,
            state_reason: None,
            waits_for: None,
            author_id,
            revision: 1,
            after_seq: 0,
            last_fired_at: None,
            cron: None,
            time_zone: None,
            missed: None,
            next_due_at: None,
            created_at: now,
            updated_at: now,
            deleted_at: None,
        }
    }
}

impl Sorted for ConnectionRow {
    const KEYS: &'static [Key] = &[
        Key::of("name", "LOWER(c.name)"),
        Key::of("state", "c.state"),
        Key::of("created_at", "c.created_at"),
        Key::of("updated_at", "c.updated_at"),
        Key::nullable("last_fired_at", "c.last_fired_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["c.id"];
}

impl std::fmt::Debug for ConnectionRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionRow")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// The values that decide whether an event starts a Connection.
#[derive(Debug, Clone, FromRow)]
pub struct Matching {
    pub id: ConnectionId,
    pub org_id: OrgId,
    pub source_event: String,
    #[sqlx(json)]
    pub conditions: Conditions,
    pub cooldown_secs: i64,
    pub cooldown_key: Option<String>,
    pub author_id: UserId,
    pub after_seq: i64,
    pub last_fired_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

/// Which Connections a list has.
#[derive(Debug, Clone)]
pub struct ConnectionFilter {
    pub kind: ConnectionKind,
    pub state: Option<ConnectionState>,
    /// Part of the name.
    pub search: Option<String>,
}

const SELECT: &str = "SELECT c.*";
const FROM: &str = "FROM connection c";

/// Far below both databases' limit of parameters.
const IDS_PER_STATEMENT: usize = 500;

/// Most enabled Connections and rules of an organization with one pattern: all of them are started by one event.
pub const OF_PATTERN_MAX: i64 = 200;

/// Most Connections of an organization, of all kinds.
pub const CONNECTIONS_MAX: i64 = 20_000;

/// Writes the row as it is given, but with `created_at` as `updated_at`, never fired and not removed.
/// The caller checks [`CONNECTIONS_MAX`] and [`OF_PATTERN_MAX`].
pub async fn insert(tx: &mut Tx, new: &ConnectionRow) -> Result<ConnectionRow> {
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO connection (id, org_id, kind, name, description, source_event, conditions, steps, secret,
            cooldown_secs, state, state_reason, author_id, revision, after_seq, cron, time_zone, missed,
            next_due_at, created_at, updated_at, cooldown_key)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $20, $21)
        RETURNING *")
        .bind(new.id).bind(new.org_id).bind(new.kind).bind(&new.name).bind(new.description.as_ref())
        .bind(&new.source_event).bind(Json(&new.conditions)).bind(Json(&new.steps)).bind(&new.secret)
        .bind(new.cooldown_secs).bind(new.state).bind(new.state_reason.as_ref()).bind(new.author_id)
        .bind(new.revision).bind(new.after_seq).bind(new.cron.as_ref()).bind(new.time_zone.as_ref())
        .bind(new.missed).bind(new.next_due_at).bind(new.created_at).bind(new.cooldown_key.as_ref())
        .fetch_one(conn)
        .await)?)
}

/// Returns the Connection in whatever state, without a lock.
/// `None` means that it is of another kind or organization, is removed, or never existed.
pub async fn find(
    tx: &mut Tx,
    scope: &Scope,
    kind: ConnectionKind,
    id: ConnectionId,
) -> Result<Option<ConnectionRow>> {
    live(scope, kind).and_bind("c.id = ?", Bind::Id(id.0)).one(tx).await
}

/// Returns the Connection, locked until the transaction ends.
pub async fn lock(
    tx: &mut Tx,
    scope: &Scope,
    kind: ConnectionKind,
    id: ConnectionId,
) -> Result<Option<ConnectionRow>> {
    live(scope, kind).and_bind("c.id = ?", Bind::Id(id.0)).one_locked(tx, "c").await
}

/// Of whatever kind, removed or not: for its runs.
pub async fn find_any(tx: &mut Tx, scope: &Scope, id: ConnectionId) -> Result<Option<ConnectionRow>> {
    Select::new(SELECT, FROM)
        .within(scope, "c.org_id", None)
        .and_bind("c.id = ?", Bind::Id(id.0))
        .one(tx)
        .await
}

/// Returns a page of the Connections of one kind that are not removed, and how many there are on all pages.
/// The oldest come first unless the page names another order.
pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    filter: &ConnectionFilter,
    page: impl Into<InOrder<ConnectionRow>>,
) -> Result<(Vec<ConnectionRow>, i64)> {
    live(scope, filter.kind)
        .and_some("c.state = ?", filter.state.map(|state| Bind::Text(state.to_string())))
        .search(&["c.name"], filter.search.as_deref())
        .page(tx, page)
        .await
}

/// Connections of an organization, of all kinds.
pub async fn count(tx: &mut Tx, org: OrgId) -> Result<i64> {
    Select::new(SELECT, FROM)
        .and_bind("c.org_id = ?", Bind::Id(org.0))
        .and("c.deleted_at IS NULL")
        .count(tx)
        .await
}

/// Writes all that people edit, and where it stands then.
pub async fn update(tx: &mut Tx, row: &ConnectionRow, now: Timestamp) -> Result<Option<ConnectionRow>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE connection
        SET name = $2, description = $3, source_event = $4, conditions = $5, steps = $6, secret = $7,
            cooldown_secs = $8, state = $9, state_reason = $10, author_id = $11, revision = revision + 1,
            after_seq = $12, cron = $13, time_zone = $14, missed = $15, next_due_at = $16, updated_at = $17,
            cooldown_key = $18, waits_for = CASE WHEN $9 = 'broken' THEN waits_for END
        WHERE id = $1 AND deleted_at IS NULL
        RETURNING *")
        .bind(row.id).bind(&row.name).bind(row.description.as_ref()).bind(&row.source_event)
        .bind(Json(&row.conditions)).bind(Json(&row.steps)).bind(&row.secret).bind(row.cooldown_secs)
        .bind(row.state).bind(row.state_reason.as_ref()).bind(row.author_id).bind(row.after_seq)
        .bind(row.cron.as_ref()).bind(row.time_zone.as_ref()).bind(row.missed).bind(row.next_due_at).bind(now)
        .bind(row.cooldown_key.as_ref())
        .fetch_optional(conn)
        .await)?)
}

/// Hides the Connection; its waiting runs are no longer carried out.
pub async fn remove(tx: &mut Tx, id: ConnectionId, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE connection SET deleted_at = $2, updated_at = $2, next_due_at = NULL
        WHERE id = $1 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(now)
    );
    Ok(rows == 1)
}

/// The removed Connection as it is until the transaction ends.
pub async fn lock_removed(
    tx: &mut Tx,
    scope: &Scope,
    kind: ConnectionKind,
    id: ConnectionId,
) -> Result<Option<ConnectionRow>> {
    of_kind(scope, kind)
        .and("c.deleted_at IS NOT NULL")
        .and_bind("c.id = ?", Bind::Id(id.0))
        .one_locked(tx, "c")
        .await
}

/// Brings a removed Connection back, standing as the row says; `None` when there is nothing to bring back.
pub async fn restore(tx: &mut Tx, row: &ConnectionRow, now: Timestamp) -> Result<Option<ConnectionRow>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE connection
        SET deleted_at = NULL, state = $2, state_reason = $3, after_seq = $4, next_due_at = $5,
            revision = revision + 1, updated_at = $6
        WHERE id = $1 AND deleted_at IS NOT NULL
        RETURNING *")
        .bind(row.id).bind(row.state).bind(row.state_reason.as_ref()).bind(row.after_seq)
        .bind(row.next_due_at).bind(now)
        .fetch_optional(conn)
        .await)?)
}

/// Ends the runs of a Connection that have not begun, or that wait; how many there were.
pub async fn skip_waiting(tx: &mut Tx, id: ConnectionId, reason: &str, now: Timestamp) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        UPDATE connection_run SET state = 'skipped', reason = $2, ended_at = $3
        WHERE connection_id = $1 AND state IN ('queued', 'waiting')"
        )
        .bind(id)
        .bind(reason)
        .bind(now)
    ))
}

/// Stops an enabled Connection that was not edited since; `None` when there is nothing to stop.
pub async fn break_off(
    tx: &mut Tx,
    id: ConnectionId,
    revision: i64,
    reason: &str,
    now: Timestamp,
) -> Result<Option<ConnectionRow>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE connection
        SET state = 'broken', state_reason = $3, revision = revision + 1, next_due_at = NULL, updated_at = $4
        WHERE id = $1 AND revision = $2 AND state = 'enabled' AND deleted_at IS NULL
        RETURNING *")
        .bind(id).bind(revision).bind(reason).bind(now)
        .fetch_optional(conn)
        .await)?)
}

/// The same for one whose operation is gone; the owner of that one is who it waits for.
pub async fn break_off_until(
    tx: &mut Tx,
    (id, revision): (ConnectionId, i64),
    waits_for: &str,
    reason: &str,
    now: Timestamp,
) -> Result<Option<ConnectionRow>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE connection
        SET state = 'broken', state_reason = $3, waits_for = $5, revision = revision + 1, next_due_at = NULL,
            updated_at = $4
        WHERE id = $1 AND revision = $2 AND state = 'enabled' AND deleted_at IS NULL
        RETURNING *")
        .bind(id).bind(revision).bind(reason).bind(now).bind(waits_for)
        .fetch_optional(conn)
        .await)?)
}

/// Enables a broken Connection again that waited for an operation and was not edited since. Of the row, `after_seq` and
/// `next_due_at` say where it begins. `None` when there is nothing to mend.
pub async fn mend(tx: &mut Tx, row: &ConnectionRow, now: Timestamp) -> Result<Option<ConnectionRow>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE connection
        SET state = 'enabled', state_reason = NULL, waits_for = NULL, revision = revision + 1, after_seq = $3,
            next_due_at = $4, updated_at = $5
        WHERE id = $1 AND revision = $2 AND state = 'broken' AND waits_for IS NOT NULL AND deleted_at IS NULL
        RETURNING *")
        .bind(row.id).bind(row.revision).bind(row.after_seq).bind(row.next_due_at).bind(now)
        .fetch_optional(conn)
        .await)?)
}

/// Has a broken Connection that waited for an operation wait for that of another owner, or for none where something else
/// keeps it broken. Nothing happens when it was edited since.
pub async fn wait_for(
    tx: &mut Tx,
    (id, revision): (ConnectionId, i64),
    waits_for: Option<&str>,
    reason: &str,
    now: Timestamp,
) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "UPDATE connection SET state_reason = $3, waits_for = $4, revision = revision + 1, updated_at = $5
            WHERE id = $1 AND revision = $2 AND state = 'broken' AND waits_for IS NOT NULL AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(revision)
        .bind(reason)
        .bind(waits_for)
        .bind(now)
    );
    Ok(())
}

/// Enabled Connections of all kinds behind this one that have a step of an operation whose id begins so: those of an
/// organization, or of all.
pub async fn enabled_with(
    tx: &mut Tx,
    org: Option<OrgId>,
    prefix: &str,
    after: Option<ConnectionId>,
    limit: u32,
) -> Result<Vec<ConnectionRow>> {
    Select::new(SELECT, FROM)
        .and("c.state = 'enabled' AND c.deleted_at IS NULL")
        .and_some("c.org_id = ?", org.map(|org| Bind::Id(org.0)))
        .and_bind("CAST(c.steps AS TEXT) LIKE CAST(? AS TEXT)", Bind::Text(format!("%\"{prefix}%")))
        .and_some("c.id > ?", after.map(|id| Bind::Id(id.0)))
        .all(tx, "c.id", i64::from(limit))
        .await
}

/// Broken Connections of all kinds behind this one that wait for operations of this owner: those of an organization, or of
/// all.
pub async fn waiting_for(
    tx: &mut Tx,
    org: Option<OrgId>,
    owner: &str,
    after: Option<ConnectionId>,
    limit: u32,
) -> Result<Vec<ConnectionRow>> {
    Select::new(SELECT, FROM)
        .and("c.state = 'broken' AND c.deleted_at IS NULL")
        .and_bind("c.waits_for = ?", Bind::Text(owner.to_owned()))
        .and_some("c.org_id = ?", org.map(|org| Bind::Id(org.0)))
        .and_some("c.id > ?", after.map(|id| Bind::Id(id.0)))
        .all(tx, "c.id", i64::from(limit))
        .await
}

/// Returns the authors of enabled Connections whose rights may have changed since then, with the organization.
///
/// The cost depends on how many changed, not on how many there are.
pub async fn authors_changed(tx: &mut Tx, since: Timestamp) -> Result<Vec<(UserId, OrgId)>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT DISTINCT c.author_id, c.org_id FROM connection c
        WHERE c.state = 'enabled' AND c.deleted_at IS NULL AND c.author_id IN (
            SELECT u.id FROM app_user u WHERE u.updated_at >= $1
            UNION SELECT g.user_id FROM site_grant g WHERE g.created_at >= $1)
        ORDER BY c.author_id, c.org_id
        LIMIT 10000")
        .bind(since)
        .fetch_all(conn)
        .await)?)
}

/// All authors of enabled Connections behind this one, up to a number.
pub async fn authors(
    tx: &mut Tx,
    after: Option<(UserId, OrgId)>,
    limit: u32,
) -> Result<Vec<(UserId, OrgId)>> {
    let (author, org) = after.unzip();
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT DISTINCT c.author_id, c.org_id FROM connection c
        WHERE c.state = 'enabled' AND c.deleted_at IS NULL
            AND ($1 IS NULL OR (c.author_id, c.org_id) > ($1, $2))
        ORDER BY c.author_id, c.org_id
        LIMIT CAST($3 AS BIGINT)")
        .bind(author).bind(org).bind(i64::from(limit))
        .fetch_all(conn)
        .await)?)
}

/// Enabled Connections of an author in an organization behind this one, up to a number.
pub async fn enabled_of(
    tx: &mut Tx,
    org: OrgId,
    author: UserId,
    after: Option<ConnectionId>,
    limit: i64,
) -> Result<Vec<ConnectionRow>> {
    Select::new(SELECT, FROM)
        .and_bind("c.org_id = ?", Bind::Id(org.0))
        .and_bind("c.author_id = ?", Bind::Id(author.0))
        .and("c.state = 'enabled' AND c.deleted_at IS NULL")
        .and_some("c.id > ?", after.map(|id| Bind::Id(id.0)))
        .all(tx, "c.id", limit)
        .await
}

/// Whether an enabled Connection has one of these patterns.
pub async fn is_any_matching(tx: &mut Tx, org: OrgId, patterns: &[String]) -> Result<bool> {
    if patterns.is_empty() {
        return Ok(false);
    }
    let found: Option<ConnectionId> = on!(tx, conn => {
        let mut find = matches("c.id", org, patterns);
        find.push(" LIMIT 1");
        find.build_query_scalar().fetch_optional(conn).await
    })?;
    Ok(found.is_some())
}

/// The enabled Connections with one of these patterns, in the order in which they were made.
pub async fn matching(tx: &mut Tx, org: OrgId, patterns: &[String]) -> Result<Vec<Matching>> {
    if patterns.is_empty() {
        return Ok(Vec::new());
    }
    let columns =
        "c.id, c.org_id, c.source_event, c.conditions, c.cooldown_secs, c.cooldown_key, c.author_id, c.after_seq,
        c.last_fired_at, c.created_at";
    let mut found: Vec<Matching> =
        on!(tx, conn => matches(columns, org, patterns).build_query_as().fetch_all(conn).await)?;
    found.sort_by_key(|row| (row.created_at, row.id));
    Ok(found)
}

/// Live Connections of all kinds that have a step of this operation, by id, behind one.
pub async fn with_operation(
    tx: &mut Tx,
    org: OrgId,
    operation: &str,
    after: Option<ConnectionId>,
    limit: u32,
) -> Result<Vec<ConnectionRow>> {
    Select::new(SELECT, FROM)
        .and_bind("c.org_id = ?", Bind::Id(org.0))
        .and("c.deleted_at IS NULL")
        // Ids of operations have no character that a pattern knows but the underscore, which finds too much at worst.
        .and_bind("CAST(c.steps AS TEXT) LIKE CAST(? AS TEXT)", Bind::Text(format!("%\"{operation}\"%")))
        .and_some("c.id > ?", after.map(|id| Bind::Id(id.0)))
        .all(tx, "c.id", i64::from(limit))
        .await
}

/// How many enabled Connections have this pattern.
pub async fn count_enabled(tx: &mut Tx, org: OrgId, pattern: &str) -> Result<i64> {
    Select::new(SELECT, FROM)
        .and_bind("c.org_id = ?", Bind::Id(org.0))
        .and("c.state = 'enabled' AND c.deleted_at IS NULL")
        .and_bind("c.source_event = ?", Bind::Text(pattern.to_owned()))
        .count(tx)
        .await
}

/// A lookup for each pattern. With one `IN` for all of them, a database that has no statistics yet reads every
/// Connection of the organization instead.
fn matches<'a, DB: Database>(columns: &str, org: OrgId, patterns: &'a [String]) -> QueryBuilder<DB>
where
    OrgId: Encode<'a, DB> + Type<DB>,
    &'a String: Encode<'a, DB> + Type<DB>,
{
    let mut find = QueryBuilder::new("");
    let patterns: BTreeSet<&String> = patterns.iter().collect();
    for (at, pattern) in patterns.into_iter().enumerate() {
        find.push(if at > 0 { " UNION ALL SELECT " } else { "SELECT " }).push(columns);
        find.push(" FROM connection c WHERE c.state = 'enabled' AND c.deleted_at IS NULL AND c.org_id = ");
        find.push_bind(org).push(" AND c.source_event = ").push_bind(pattern);
    }
    find
}

/// Events of these times started these.
///
/// In one order, so that no two wait for each other.
pub async fn fired(tx: &mut Tx, fired: &BTreeMap<ConnectionId, Timestamp>) -> Result<()> {
    let fired: Vec<(ConnectionId, Timestamp)> = fired.iter().map(|(id, at)| (*id, *at)).collect();
    for some in fired.chunks(IDS_PER_STATEMENT) {
        on!(tx, conn => {
            let mut update = QueryBuilder::new("UPDATE connection SET last_fired_at = CASE id");
            for (id, at) in some {
                update.push(" WHEN ").push_bind(*id).push(" THEN ").push_bind(*at);
            }
            update.push(" END WHERE id IN (");
            push_list!(update, some.iter().map(|(id, _)| id));
            update.push(")");
            update.build().execute(conn).await.map(drop)
        })?;
    }
    Ok(())
}

fn live(scope: &Scope, kind: ConnectionKind) -> Select {
    of_kind(scope, kind).and("c.deleted_at IS NULL")
}

fn of_kind(scope: &Scope, kind: ConnectionKind) -> Select {
    Select::new(SELECT, FROM)
        .within(scope, "c.org_id", None)
        .and_bind("c.kind = ?", Bind::Text(kind.to_string()))
}

#[cfg(test)]
pub(crate) mod tests;
