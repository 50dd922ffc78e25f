//! The outbox: events are rows of the transaction that caused them.
//!
//! Publishing is not done here: every process follows the organizations'
//! sequences by itself and consumes nothing. A row whose type this version
//! does not know, written by a newer one, is passed over.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use heddle_core::event::{Event, EventTypes, NewEvent};
use heddle_core::page::{WalkRequest, Walked};
use heddle_core::{Clock, ControllerId, DeviceId, EventId, OrgId, RunId, SiteId, Timestamp};
use serde_json::Value;
use sqlx::{AssertSqlSafe, FromRow, QueryBuilder};

use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Scope, Select, SiteScope, affected, bind_all};
use crate::sort::{Key, Sorted};

/// Rows of one INSERT: twelve values each, far below both databases' limit of parameters.
const ROWS_PER_STATEMENT: usize = 500;
/// Version of the payload schemas in the catalogue.
const SCHEMA_VERSION: i64 = 1;

/// An event and what it is about, by which it is decided who may see it.
#[derive(Debug, Clone)]
pub struct StoredEvent {
    pub event: Event,
    pub site_id: Option<SiteId>,
    pub controller_id: Option<ControllerId>,
    pub device_id: Option<DeviceId>,
    /// The run of a Connection that caused it.
    pub run_id: Option<RunId>,
}

impl Sorted for StoredEvent {
    const KEYS: &'static [Key] = &[Key::of("occurred_at", "e.occurred_at")];
    const DEFAULT: &'static str = "-occurred_at";
    const LAST: &'static [&'static str] = &["e.seq", "e.id"];
}

#[derive(FromRow)]
struct EventRow {
    id: EventId,
    org_id: OrgId,
    seq: i64,
    event_type: String,
    site_id: Option<SiteId>,
    controller_id: Option<ControllerId>,
    device_id: Option<DeviceId>,
    causation_id: Option<EventId>,
    run_id: Option<RunId>,
    schema_version: i64,
    payload: Value,
    occurred_at: Timestamp,
}

impl EventRow {
    /// `None` where its type is none of these.
    fn known(self, types: &EventTypes) -> Option<StoredEvent> {
        let row = self;
        let Some(event_type) = types.find(&row.event_type) else {
            warn_once(&row.event_type);
            return None;
        };
        Some(StoredEvent {
            event: Event {
                id: row.id,
                seq: row.seq,
                event_type,
                category: event_type.category().to_owned(),
                priority: event_type.priority(),
                organization_id: row.org_id,
                occurred_at: row.occurred_at,
                causation_id: row.causation_id,
                schema_version: u32::try_from(row.schema_version).unwrap_or_default(),
                payload: row.payload,
            },
            site_id: row.site_id,
            controller_id: row.controller_id,
            device_id: row.device_id,
            run_id: row.run_id,
        })
    }
}

/// Says of each unknown type once that its events are passed over.
fn warn_once(event_type: &str) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if told.len() < UNKNOWN_MAX && told.insert(event_type.to_owned()) {
        tracing::warn!(event.type = %event_type, "events of type '{event_type}' are passed over: this version does not know it");
    }
}

/// Events behind a number of one organization.
#[derive(Debug, Clone)]
pub struct Stretch {
    pub events: Vec<StoredEvent>,
    /// The number of the last row that was read, of whatever type; the one asked for when there was none.
    pub last_seq: i64,
    /// Number and time of the first whose type this version does not know; it is not among the events.
    pub unknown: Option<(i64, Timestamp)>,
    /// Whether there may be more behind it.
    pub is_full: bool,
}

/// What is new in several organizations.
#[derive(Debug, Clone)]
pub struct News {
    /// The oldest first; those of an organization in their order.
    pub events: Vec<StoredEvent>,
    /// How far it was read, by organization, where anything was.
    pub reached: HashMap<OrgId, i64>,
    /// Whether there may be more behind it.
    pub is_full: bool,
}

/// Which events a list has.
#[derive(Debug, Clone)]
pub struct EventFilter {
    /// `None` spans all organizations.
    pub org: Option<OrgId>,
    /// Events of no site are in it, whichever sites these are.
    pub sites: SiteScope,
    pub types: EventTypes,
    pub site_id: Option<SiteId>,
    pub controller_id: Option<ControllerId>,
    pub device_id: Option<DeviceId>,
    /// From this instant.
    pub since: Option<Timestamp>,
    /// Before this instant.
    pub until: Option<Timestamp>,
}

/// A stretch of an organization's numbers.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    /// Not with it.
    pub after: i64,
    /// With it; to the end when `None`.
    pub until: Option<i64>,
}

/// Types that are warned of; beyond, the log says nothing new.
const UNKNOWN_MAX: usize = 100;
/// Organizations of one statement.
const ORGANIZATIONS_PER_STATEMENT: usize = 100;

const SELECT: &str = "SELECT e.id, e.org_id, e.seq, e.event_type, e.site_id, e.controller_id, e.device_id,
    e.causation_id, e.run_id, e.schema_version, e.payload, e.occurred_at";
const FROM: &str = "FROM event e";

/// Takes the organization's next `$2` numbers. The time of an organization's events never goes back, also when the clock
/// does: they are in the same order by time and by number.
macro_rules! advance_head {
    () => {
        "INSERT INTO event_head (org_id, seq, occurred_at) VALUES ($1, $2, $3)
        ON CONFLICT (org_id) DO UPDATE SET seq = event_head.seq + excluded.seq,
            occurred_at = CASE WHEN excluded.occurred_at > event_head.occurred_at
                THEN excluded.occurred_at ELSE event_head.occurred_at END"
    };
}
/// Writes an event with the number that its head has.
macro_rules! insert_at {
    ($head:literal) => {
        concat!(
            "INSERT INTO event (id, org_id, seq, event_type, site_id, controller_id, device_id, causation_id,
                schema_version, payload, occurred_at, run_id)
            SELECT $4, $1, h.seq, $5, $6, $7, $8,
                COALESCE($9, (SELECT r.event_id FROM connection_run r WHERE r.id = $12)), $10, $11, h.occurred_at, $12
            FROM ",
            $head,
            " h WHERE h.org_id = $1
            RETURNING seq, occurred_at, causation_id"
        )
    };
}
const ADVANCE_HEAD: &str = concat!(advance_head!(), " RETURNING seq, occurred_at");
/// Both in one round trip: other writers of the organization wait from the first statement on. `SQLite` runs them one after
/// the other; `PostgreSQL` takes one statement, of which the first is a part.
const APPEND_SQLITE: &str = concat!(advance_head!(), "; ", insert_at!("event_head"));
const APPEND_POSTGRES: &str =
    concat!("WITH head AS (", advance_head!(), " RETURNING org_id, seq, occurred_at) ", insert_at!("head"));

/// Writes an event with the organization's next number.
///
/// Writers of one organization wait for each other here until they commit, so numbers have no gaps
/// and become visible in order. Append as late in a transaction as possible.
///
/// An event of a run names the event that started the run as its cause, unless another cause is given.
pub async fn append(tx: &mut Tx, new: &NewEvent, clock: &Clock) -> Result<Event> {
    tx.note_events();
    let id: EventId = clock.new_id();
    let append = match tx {
        Tx::Sqlite(_) => APPEND_SQLITE,
        Tx::Postgres(_) => APPEND_POSTGRES,
    };
    let (seq, occurred_at, causation_id): (i64, Timestamp, Option<EventId>) = on!(tx, conn => sqlx::query_as(append)
        .bind(new.org_id)
        .bind(1_i64)
        .bind(clock.now())
        .bind(id)
        .bind(new.event_type.as_str())
        .bind(new.site_id)
        .bind(new.controller_id)
        .bind(new.device_id)
        .bind(new.causation_id)
        .bind(SCHEMA_VERSION)
        .bind(&new.payload)
        .bind(new.run_id)
        .fetch_one(conn)
        .await)?;
    Ok(Event {
        id,
        seq,
        event_type: new.event_type,
        category: new.event_type.category().to_owned(),
        priority: new.event_type.priority(),
        organization_id: new.org_id,
        occurred_at,
        causation_id,
        schema_version: u32::try_from(SCHEMA_VERSION).unwrap_or_default(),
        payload: new.payload.clone(),
    })
}

/// Writes many events of one organization, in order, with its next numbers.
///
/// The number of statements grows with the hundreds of events, not with the events. An event's cause is written as it
/// is given.
pub async fn append_all(tx: &mut Tx, org: OrgId, new: &[NewEvent], clock: &Clock) -> Result<()> {
    let Ok(count) = i64::try_from(new.len()) else { return Ok(()) };
    if count == 0 {
        return Ok(());
    }
    let (last, occurred_at) = advance_head(tx, org, count, clock.now()).await?;
    tx.note_events();
    let first = last - count + 1;
    let numbered: Vec<(i64, &NewEvent)> = (first..).zip(new).collect();
    for rows in numbered.chunks(ROWS_PER_STATEMENT) {
        on!(tx, conn => {
            let mut insert = QueryBuilder::new(
                "INSERT INTO event (id, org_id, seq, event_type, site_id, controller_id, device_id, causation_id,
                    schema_version, payload, occurred_at, run_id) ",
            );
            insert.push_values(rows, |mut row, (seq, event)| {
                row.push_bind(clock.new_id::<EventId>())
                    .push_bind(org)
                    .push_bind(*seq)
                    .push_bind(event.event_type.as_str())
                    .push_bind(event.site_id)
                    .push_bind(event.controller_id)
                    .push_bind(event.device_id)
                    .push_bind(event.causation_id)
                    .push_bind(SCHEMA_VERSION)
                    .push_bind(&event.payload)
                    .push_bind(occurred_at)
                    .push_bind(event.run_id);
            });
            insert.build().execute(conn).await.map(|_| ())
        })?;
    }
    Ok(())
}

/// Takes the organization's next numbers; gives the last of them and their time.
async fn advance_head(tx: &mut Tx, org: OrgId, count: i64, now: Timestamp) -> Result<(i64, Timestamp)> {
    Ok(on!(tx, conn => sqlx::query_as(ADVANCE_HEAD).bind(org).bind(count).bind(now).fetch_one(conn).await)?)
}

/// The newest number of every organization whose newest event is not older than this.
pub async fn heads(tx: &mut Tx, since: Option<Timestamp>) -> Result<Vec<(OrgId, i64)>> {
    let sql = match since {
        Some(_) => "SELECT org_id, seq FROM event_head WHERE occurred_at >= $1",
        None => "SELECT org_id, seq FROM event_head",
    };
    let since: Vec<Bind> = since.map(Bind::Time).into_iter().collect();
    Ok(on!(tx, conn => bind_all!(sqlx::query_as(sql), &since).fetch_all(conn).await)?)
}

/// Events of known types behind these numbers of these organizations, the first hundred of them, up to a limit.
pub async fn behind(tx: &mut Tx, known: &EventTypes, positions: &[(OrgId, i64)], limit: u32) -> Result<News> {
    let asked = &positions[..positions.len().min(ORGANIZATIONS_PER_STATEMENT)];
    let mut news =
        News { events: Vec::new(), reached: HashMap::new(), is_full: asked.len() < positions.len() };
    if asked.is_empty() {
        return Ok(news);
    }
    let mut values = Vec::new();
    let mut conditions = Vec::new();
    for (org, seq) in asked {
        values.extend([Bind::Id(org.0), Bind::Number(*seq)]);
        conditions.push(format!("(e.org_id = ${} AND e.seq > ${})", values.len() - 1, values.len()));
    }
    values.push(Bind::Number(i64::from(limit)));
    // An organization's times are in the order of its numbers.
    let sql = format!(
        "{SELECT} {FROM} WHERE {} ORDER BY e.occurred_at, e.org_id, e.seq LIMIT CAST(${} AS BIGINT)",
        conditions.join(" OR "),
        values.len()
    );
    let rows: Vec<EventRow> =
        on!(tx, conn => bind_all!(sqlx::query_as(AssertSqlSafe(sql)), &values).fetch_all(conn).await)?;
    news.is_full |= rows.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    news.reached = rows.iter().map(|row| (row.org_id, row.seq)).collect();
    news.events = stored(rows, known);
    Ok(news)
}

/// Events of known types of an organization behind a number, in order; with `only`, those of these types.
pub async fn list(
    tx: &mut Tx,
    known: &EventTypes,
    org: OrgId,
    after_seq: i64,
    only: Option<&EventTypes>,
    limit: u32,
) -> Result<Stretch> {
    let mut select = Select::new(SELECT, FROM)
        .and_bind("e.org_id = ?", Bind::Id(org.0))
        .and_bind("e.seq > ?", Bind::Number(after_seq));
    if let Some(types) = only {
        select = select.and_in("e.event_type", words(types));
    }
    let rows: Vec<EventRow> = select.all(tx, "e.seq", i64::from(limit)).await?;
    let is_unknown = |row: &&EventRow| known.find(&row.event_type).is_none();
    Ok(Stretch {
        last_seq: rows.last().map_or(after_seq, |row| row.seq),
        is_full: rows.len() >= usize::try_from(limit).unwrap_or(usize::MAX),
        unknown: rows.iter().find(is_unknown).map(|row| (row.seq, row.occurred_at)),
        events: stored(rows, known),
    })
}

/// Events that fit, the newest first.
pub async fn walk(tx: &mut Tx, filter: &EventFilter, request: WalkRequest) -> Result<Walked<StoredEvent>> {
    let walked = filtered(filter).walk::<_, StoredEvent>(tx, request).await?;
    Ok(known(walked, &filter.types))
}

fn filtered(filter: &EventFilter) -> Select {
    let select = Select::new(SELECT, FROM)
        .and_some("e.org_id = ?", filter.org.map(|id| Bind::Id(id.0)))
        .and_in("e.event_type", words(&filter.types))
        .and_some("e.site_id = ?", filter.site_id.map(|id| Bind::Id(id.0)))
        .and_some("e.controller_id = ?", filter.controller_id.map(|id| Bind::Id(id.0)))
        .and_some("e.device_id = ?", filter.device_id.map(|id| Bind::Id(id.0)))
        .and_some("e.occurred_at >= ?", filter.since.map(Bind::Time))
        .and_some("e.occurred_at < ?", filter.until.map(Bind::Time));
    match &filter.sites {
        SiteScope::Only(sites) => {
            select.and_null_or_in("e.site_id", sites.iter().map(|site| Bind::Id(site.0)))
        }
        SiteScope::All => select,
    }
}

/// Every type that was asked for is known.
fn known(walked: Walked<EventRow>, types: &EventTypes) -> Walked<StoredEvent> {
    Walked {
        items: stored(walked.items, types),
        total: walked.total,
        total_is_capped: walked.total_is_capped,
        has_more: walked.has_more,
    }
}

/// Events of these numbers that fit, in their order; the filter names the organization whose numbers they are.
///
/// Numbers become visible in order: behind the last one read there is none that comes to light later.
pub async fn walk_numbers(
    tx: &mut Tx,
    filter: &EventFilter,
    numbers: Numbers,
    request: WalkRequest,
) -> Result<Walked<StoredEvent>> {
    let select = filtered(filter)
        .and_bind("e.seq > ?", Bind::Number(numbers.after))
        .and_some("e.seq <= ?", numbers.until.map(Bind::Number));
    let walked = select.stretch(tx, "e.seq", request).await?;
    Ok(known(walked, &filter.types))
}

/// One event of these types.
pub async fn find(
    tx: &mut Tx,
    scope: &Scope,
    types: &EventTypes,
    id: EventId,
) -> Result<Option<StoredEvent>> {
    let mut select = Select::new(SELECT, FROM)
        .and_bind("e.id = ?", Bind::Id(id.0))
        .and_some("e.org_id = ?", scope.org.map(|id| Bind::Id(id.0)))
        .and_in("e.event_type", words(types));
    if let SiteScope::Only(sites) = &scope.sites {
        select = select.and_null_or_in("e.site_id", sites.iter().map(|site| Bind::Id(site.0)));
    }
    let row: Option<EventRow> = select.one(tx).await?;
    Ok(row.and_then(|row| row.known(types)))
}

/// Forgets an organization's events from before this time, the oldest first, up to a number; tells how
/// many. The newest stays, however old it is.
pub async fn trim(tx: &mut Tx, org: OrgId, before: Timestamp, limit: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM event WHERE id IN (
            SELECT e.id FROM event e
            WHERE e.org_id = $1 AND e.occurred_at < $2
                AND e.seq < (SELECT h.seq FROM event_head h WHERE h.org_id = $1)
            ORDER BY e.occurred_at, e.seq
            LIMIT CAST($3 AS BIGINT))"
        )
        .bind(org)
        .bind(before)
        .bind(i64::from(limit))
    ))
}

/// The number of the organization's newest event; no other one is written until the transaction ends.
pub async fn hold_last_seq(tx: &mut Tx, org: OrgId, clock: &Clock) -> Result<i64> {
    Ok(advance_head(tx, org, 0, clock.now()).await?.0)
}

/// The number of the organization's newest event; 0 when it has none.
pub async fn last_seq(tx: &mut Tx, org: OrgId) -> Result<i64> {
    let seq: Option<i64> = on!(tx, conn => sqlx::query_scalar("SELECT seq FROM event_head WHERE org_id = $1")
        .bind(org)
        .fetch_optional(conn)
        .await)?;
    Ok(seq.unwrap_or_default())
}

fn words(types: &EventTypes) -> impl Iterator<Item = Bind> + '_ {
    types.iter().map(|event_type| Bind::Text(event_type.to_string()))
}

fn stored(rows: Vec<EventRow>, types: &EventTypes) -> Vec<StoredEvent> {
    rows.into_iter().filter_map(|row| row.known(types)).collect()
}

#[cfg(test)]
mod tests;
