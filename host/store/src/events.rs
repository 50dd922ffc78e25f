//! The outbox: events are rows of the transaction that caused them.
//!
//! Publishing is not done here; a dispatcher reads what is committed.

use heddle_core::event::{Event, EventType, NewEvent};
use heddle_core::{Clock, ControllerId, DeviceId, EventId, OrgId, SiteId, Timestamp};
use serde_json::Value;
use sqlx::{AssertSqlSafe, FromRow, QueryBuilder};

use crate::select::{Bind, Select, affected, bind_all};
use crate::{Result, Tx};

/// Rows of one INSERT: eleven values each, far below both databases' limit of parameters.
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
}

#[derive(FromRow)]
struct EventRow {
    id: EventId,
    org_id: OrgId,
    seq: i64,
    event_type: EventType,
    site_id: Option<SiteId>,
    controller_id: Option<ControllerId>,
    device_id: Option<DeviceId>,
    causation_id: Option<EventId>,
    schema_version: i64,
    payload: Value,
    occurred_at: Timestamp,
}

impl From<EventRow> for StoredEvent {
    fn from(row: EventRow) -> Self {
        Self {
            event: Event {
                id: row.id,
                seq: row.seq,
                event_type: row.event_type,
                category: row.event_type.category().to_owned(),
                priority: row.event_type.priority(),
                organization_id: row.org_id,
                occurred_at: row.occurred_at,
                causation_id: row.causation_id,
                schema_version: u32::try_from(row.schema_version).unwrap_or_default(),
                payload: row.payload,
            },
            site_id: row.site_id,
            controller_id: row.controller_id,
            device_id: row.device_id,
        }
    }
}

const SELECT: &str = "SELECT e.id, e.org_id, e.seq, e.event_type, e.site_id, e.controller_id, e.device_id,
    e.causation_id, e.schema_version, e.payload, e.occurred_at";
const FROM: &str = "FROM event e";

/// Writes an event with the organization's next number.
///
/// Writers of one organization wait for each other here until they commit, so numbers have no gaps
/// and become visible in order. Append as late in a transaction as possible.
pub async fn append(tx: &mut Tx, new: &NewEvent, clock: &Clock) -> Result<Event> {
    let (seq, occurred_at) = advance_head(tx, new.org_id, 1, clock.now()).await?;
    let row: EventRow = on!(tx, conn => sqlx::query_as("
        INSERT INTO event (id, org_id, seq, event_type, site_id, controller_id, device_id, causation_id,
            schema_version, payload, occurred_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
        RETURNING id, org_id, seq, event_type, site_id, controller_id, device_id, causation_id,
            schema_version, payload, occurred_at")
        .bind(clock.new_id::<EventId>()).bind(new.org_id).bind(seq).bind(new.event_type)
        .bind(new.site_id).bind(new.controller_id).bind(new.device_id).bind(new.causation_id)
        .bind(SCHEMA_VERSION).bind(&new.payload).bind(occurred_at)
        .fetch_one(conn)
        .await)?;
    Ok(StoredEvent::from(row).event)
}

/// Writes many events of one organization, in order, with its next numbers.
///
/// The number of statements grows with the hundreds of events, not with the events.
pub async fn append_all(tx: &mut Tx, org: OrgId, new: &[NewEvent], clock: &Clock) -> Result<()> {
    let Ok(count) = i64::try_from(new.len()) else { return Ok(()) };
    if count == 0 {
        return Ok(());
    }
    let (last, occurred_at) = advance_head(tx, org, count, clock.now()).await?;
    let first = last - count + 1;
    let numbered: Vec<(i64, &NewEvent)> = (first..).zip(new).collect();
    for rows in numbered.chunks(ROWS_PER_STATEMENT) {
        on!(tx, conn => {
            let mut insert = QueryBuilder::new(
                "INSERT INTO event (id, org_id, seq, event_type, site_id, controller_id, device_id, causation_id,
                    schema_version, payload, occurred_at) ",
            );
            insert.push_values(rows, |mut row, (seq, event)| {
                row.push_bind(clock.new_id::<EventId>())
                    .push_bind(org)
                    .push_bind(*seq)
                    .push_bind(event.event_type)
                    .push_bind(event.site_id)
                    .push_bind(event.controller_id)
                    .push_bind(event.device_id)
                    .push_bind(event.causation_id)
                    .push_bind(SCHEMA_VERSION)
                    .push_bind(&event.payload)
                    .push_bind(occurred_at);
            });
            insert.build().execute(conn).await.map(|_| ())
        })?;
    }
    Ok(())
}

/// Takes the organization's next numbers; gives the last of them and their time.
///
/// The time of an organization's events never goes back, also when the clock
/// does: they are in the same order by time and by number.
async fn advance_head(tx: &mut Tx, org: OrgId, count: i64, now: Timestamp) -> Result<(i64, Timestamp)> {
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO event_head (org_id, seq, occurred_at) VALUES ($1, $2, $3)
        ON CONFLICT (org_id) DO UPDATE SET seq = event_head.seq + excluded.seq,
            occurred_at = CASE WHEN excluded.occurred_at > event_head.occurred_at
                THEN excluded.occurred_at ELSE event_head.occurred_at END
        RETURNING seq, occurred_at")
        .bind(org).bind(count).bind(now)
        .fetch_one(conn)
        .await)?)
}

/// Events that nobody published yet, the oldest first; those of an organization in their order.
pub async fn unpublished(tx: &mut Tx, limit: u32) -> Result<Vec<StoredEvent>> {
    let select = Select::new(SELECT, FROM).and("e.published_at IS NULL");
    Ok(stored(select.all(tx, "e.occurred_at, e.org_id, e.seq", i64::from(limit)).await?))
}

/// When the oldest event happened that nobody published yet.
pub async fn oldest_unpublished(tx: &mut Tx) -> Result<Option<Timestamp>> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        SELECT occurred_at FROM event WHERE published_at IS NULL ORDER BY occurred_at, org_id, seq LIMIT 1")
        .fetch_optional(conn)
        .await)?)
}

pub async fn mark_published(tx: &mut Tx, ids: &[EventId], now: Timestamp) -> Result<()> {
    for ids in ids.chunks(10_000) {
        let places: Vec<String> = (2..ids.len() + 2).map(|at| format!("${at}")).collect();
        let sql = format!(
            "UPDATE event SET published_at = $1 WHERE published_at IS NULL AND id IN ({})",
            places.join(", ")
        );
        let mut values = vec![Bind::Time(now)];
        values.extend(ids.iter().map(|id| Bind::Id(id.0)));
        affected!(tx, bind_all!(sqlx::query(AssertSqlSafe(sql)), &values));
    }
    Ok(())
}

/// Events of an organization behind a number, in order; no types mean all.
pub async fn list(
    tx: &mut Tx,
    org: OrgId,
    after_seq: i64,
    types: &[EventType],
    limit: u32,
) -> Result<Vec<StoredEvent>> {
    let mut select = Select::new(SELECT, FROM)
        .and_bind("e.org_id = ?", Bind::Id(org.0))
        .and_bind("e.seq > ?", Bind::Number(after_seq));
    if !types.is_empty() {
        select = select.and_in("e.event_type", types.iter().map(|word| Bind::Text(word.to_string())));
    }
    Ok(stored(select.all(tx, "e.seq", i64::from(limit)).await?))
}

/// The number of the organization's newest event; 0 when it has none.
pub async fn last_seq(tx: &mut Tx, org: OrgId) -> Result<i64> {
    let seq: Option<i64> = on!(tx, conn => sqlx::query_scalar("SELECT seq FROM event_head WHERE org_id = $1")
        .bind(org)
        .fetch_optional(conn)
        .await)?;
    Ok(seq.unwrap_or_default())
}

fn stored(rows: Vec<EventRow>) -> Vec<StoredEvent> {
    rows.into_iter().map(StoredEvent::from).collect()
}

#[cfg(test)]
mod tests;
