//! Events on their way to subscriptions: a queue in the database.
//!
//! A delivery is sent by the process that owns it. Of one subscription and one device, a later event waits for the
//! earlier ones that are pending.

use heddle_core::page::{WalkRequest, Walked};
use heddle_core::webhook::DeliveryState;
use heddle_core::{DeliveryId, DeviceId, EventId, OrgId, ProcessId, SubscriptionId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sqlx::{FromRow, QueryBuilder};

use crate::processes::gone_among;
use crate::select::{Bind, Select, affected};
use crate::{Result, Scope, Tx};

/// Rows of one INSERT: eleven values each, far below both databases' limit of parameters.
const ROWS_PER_STATEMENT: usize = 500;

#[derive(Debug, Clone, PartialEq, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "WebhookDelivery")]
pub struct Delivery {
    /// The same in every attempt: `X-Heddle-Delivery`.
    pub id: DeliveryId,
    pub subscription_id: SubscriptionId,
    pub event_id: EventId,
    pub event_type: String,
    /// Number of the event in its organization.
    pub seq: i64,
    pub device_id: Option<DeviceId>,
    pub state: DeliveryState,
    /// Since it was made, or last asked for again.
    pub attempts: i64,
    /// When it is tried next.
    pub next_at: Option<Timestamp>,
    /// Of the last answer.
    pub last_status: Option<i64>,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
    /// How the last answer began.
    pub response: Option<String>,
    pub response_is_truncated: bool,
    pub created_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

#[derive(Debug, Clone)]
pub struct NewDelivery {
    pub id: DeliveryId,
    pub org_id: OrgId,
    pub subscription_id: SubscriptionId,
    pub event_id: EventId,
    pub event_type: String,
    pub seq: i64,
    pub device_id: Option<DeviceId>,
    pub event: Value,
    pub now: Timestamp,
}

/// A delivery to be sent now, and where to.
#[derive(Clone, FromRow)]
pub struct Due {
    pub id: DeliveryId,
    pub subscription_id: SubscriptionId,
    pub event_type: String,
    pub event: Value,
    pub attempts: i64,
    pub url: String,
    pub secret: Vec<u8>,
    /// `{"payload": …}` of the template, where there is one.
    pub template: Option<Value>,
}

/// How an attempt ended.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub state: DeliveryState,
    /// When it is tried again, when it is pending.
    pub next_at: Option<Timestamp>,
    pub status: Option<i64>,
    pub error: Option<String>,
    pub response: Option<String>,
    pub response_is_truncated: bool,
    pub now: Timestamp,
}

/// How many are sent at once.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// To one subscription, by all processes.
    pub per_subscription: u32,
    /// Of one organization, by all processes.
    pub per_organization: u32,
    /// By this call.
    pub in_all: u32,
}

const SELECT: &str = "SELECT d.id, d.subscription_id, d.event_id, d.event_type, d.seq, d.device_id, d.state,
    d.attempts, d.next_at, d.last_status, d.last_error, d.response, d.response_is_truncated, d.created_at, d.ended_at";
const FROM: &str = "FROM webhook_delivery d
    JOIN webhook_subscription s ON s.id = d.subscription_id AND s.deleted_at IS NULL";

fn within(scope: &Scope) -> Select {
    Select::new(SELECT, FROM).within(scope, "d.org_id", None)
}

/// Queues deliveries, due at once. One that a subscription has of an event already is left as it is.
/// Tells how many are new.
pub async fn insert(tx: &mut Tx, new: &[NewDelivery]) -> Result<u64> {
    let mut inserted = 0;
    for rows in new.chunks(ROWS_PER_STATEMENT) {
        inserted += on!(tx, conn => {
            let mut insert = QueryBuilder::new(
                "INSERT INTO webhook_delivery (id, org_id, subscription_id, event_id, event_type, seq, device_id,
                    event, state, attempts, next_at, response_is_truncated, created_at) ",
            );
            insert.push_values(rows, |mut row, new| {
                row.push_bind(new.id)
                    .push_bind(new.org_id)
                    .push_bind(new.subscription_id)
                    .push_bind(new.event_id)
                    .push_bind(&new.event_type)
                    .push_bind(new.seq)
                    .push_bind(new.device_id)
                    .push_bind(&new.event)
                    .push_bind(DeliveryState::Pending)
                    .push_bind(0_i64)
                    .push_bind(new.now)
                    .push_bind(false)
                    .push_bind(new.now);
            });
            insert.push(" ON CONFLICT (subscription_id, event_id) DO NOTHING");
            insert.build().execute(conn).await.map(|done| done.rows_affected())
        })?;
    }
    Ok(inserted)
}

pub async fn find(tx: &mut Tx, scope: &Scope, id: DeliveryId) -> Result<Option<Delivery>> {
    within(scope).and_bind("d.id = ?", Bind::Id(id.0)).one(tx).await
}

/// Deliveries of a subscription, the newest first.
pub async fn walk(
    tx: &mut Tx,
    scope: &Scope,
    subscription: SubscriptionId,
    state: Option<DeliveryState>,
    request: WalkRequest,
) -> Result<Walked<Delivery>> {
    within(scope)
        .and_bind("d.subscription_id = ?", Bind::Id(subscription.0))
        .and_some("d.state = ?", state.map(|state| Bind::Text(state.to_string())))
        .walk(tx, "d.created_at, d.seq, d.id", "d.created_at DESC, d.seq DESC, d.id DESC", request)
        .await
}

/// How many are pending in all organizations.
pub async fn count_pending(tx: &mut Tx) -> Result<i64> {
    Ok(on!(tx, conn => sqlx::query_scalar("SELECT COUNT(*) FROM webhook_delivery WHERE state = 'pending'")
        .fetch_one(conn)
        .await)?)
}

/// Whether anything is due.
pub async fn has_due(tx: &mut Tx, now: Timestamp) -> Result<bool> {
    let found: Option<i64> = on!(tx, conn => sqlx::query_scalar("
        SELECT CAST(1 AS BIGINT) FROM webhook_delivery
        WHERE state = 'pending' AND owner IS NULL AND next_at <= $1 LIMIT 1")
        .bind(now)
        .fetch_optional(conn)
        .await)?;
    Ok(found.is_some())
}

/// Takes what is due, the longest first, and gives what is needed to send it.
///
/// One that was pending before of the same subscription and device holds the others back; so does the room.
pub async fn claim(tx: &mut Tx, me: ProcessId, now: Timestamp, room: Room) -> Result<Vec<Due>> {
    let claimed: Vec<DeliveryId> = on!(tx, conn => sqlx::query_scalar("
        UPDATE webhook_delivery SET owner = $1
        WHERE owner IS NULL AND state = 'pending' AND next_at <= $2 AND id IN (
            SELECT ready.id FROM (
                SELECT waiting.id, waiting.next_at, waiting.seq,
                    ROW_NUMBER() OVER (PARTITION BY waiting.org_id
                        ORDER BY waiting.next_at, waiting.seq, waiting.id) +
                    (SELECT COUNT(*) FROM webhook_delivery o
                        WHERE o.owner IS NOT NULL AND o.org_id = waiting.org_id) AS turn
                FROM (
                    SELECT d.id, d.org_id, d.next_at, d.seq,
                        ROW_NUMBER() OVER (PARTITION BY d.subscription_id ORDER BY d.next_at, d.seq, d.id) +
                        (SELECT COUNT(*) FROM webhook_delivery o
                            WHERE o.owner IS NOT NULL AND o.subscription_id = d.subscription_id) AS place
                    FROM webhook_delivery d
                    JOIN webhook_subscription s ON s.id = d.subscription_id
                    JOIN organization g ON g.id = d.org_id
                    WHERE d.state = 'pending' AND d.owner IS NULL AND d.next_at <= $2
                        AND s.is_enabled AND s.deleted_at IS NULL AND g.deleted_at IS NULL
                        AND NOT EXISTS (
                            SELECT 1 FROM webhook_delivery e
                            WHERE e.subscription_id = d.subscription_id AND e.device_id = d.device_id
                                AND e.state = 'pending' AND e.seq < d.seq)
                ) AS waiting
                WHERE waiting.place <= $3
            ) AS ready
            WHERE ready.turn <= $5
            ORDER BY ready.next_at, ready.seq, ready.id
            LIMIT $4)
        RETURNING id")
        .bind(me).bind(now).bind(i64::from(room.per_subscription)).bind(i64::from(room.in_all))
        .bind(i64::from(room.per_organization))
        .fetch_all(conn)
        .await)?;
    Select::new(
        "SELECT d.id, d.subscription_id, d.event_type, d.event, d.attempts, s.url, s.secret, t.payload AS template",
        "FROM webhook_delivery d
        JOIN webhook_subscription s ON s.id = d.subscription_id
        LEFT JOIN webhook_template t ON t.id = s.template_id",
    )
    .and_in("d.id", claimed.iter().map(|id| Bind::Id(id.0)))
    .all(tx, "d.seq, d.id", i64::try_from(claimed.len()).unwrap_or(i64::MAX))
    .await
}

/// Writes down how an attempt ended, and gives the delivery up; false when it is not this process's any more.
pub async fn finish(tx: &mut Tx, id: DeliveryId, me: ProcessId, attempt: &Attempt) -> Result<bool> {
    let ended_at = (attempt.state != DeliveryState::Pending).then_some(attempt.now);
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE webhook_delivery
        SET state = $3, attempts = attempts + 1, next_at = $4, owner = NULL, last_status = $5, last_error = $6,
            response = $7, response_is_truncated = $8, ended_at = $9
        WHERE id = $1 AND owner = $2 AND state = 'pending'"
        )
        .bind(id)
        .bind(me)
        .bind(attempt.state)
        .bind(attempt.next_at)
        .bind(attempt.status)
        .bind(attempt.error.as_ref())
        .bind(attempt.response.as_ref())
        .bind(attempt.response_is_truncated)
        .bind(ended_at)
    );
    Ok(rows == 1)
}

/// Owners of deliveries that do not live any more.
pub async fn gone_owners(tx: &mut Tx, me: ProcessId) -> Result<Vec<ProcessId>> {
    let owners: Vec<ProcessId> = on!(tx, conn => sqlx::query_scalar(
        "SELECT DISTINCT owner FROM webhook_delivery WHERE owner IS NOT NULL")
        .fetch_all(conn)
        .await)?;
    gone_among(tx, me, owners).await
}

/// Gives up all that this process, which is gone, was sending; tells how many.
pub async fn release(tx: &mut Tx, owner: ProcessId) -> Result<u64> {
    Ok(affected!(tx, sqlx::query("UPDATE webhook_delivery SET owner = NULL WHERE owner = $1").bind(owner)))
}

/// Gives up one delivery as it stands.
pub async fn release_one(tx: &mut Tx, id: DeliveryId, owner: ProcessId) -> Result<()> {
    affected!(
        tx,
        sqlx::query("UPDATE webhook_delivery SET owner = NULL WHERE id = $1 AND owner = $2")
            .bind(id)
            .bind(owner)
    );
    Ok(())
}

/// What this process owns.
pub async fn owned(tx: &mut Tx, owner: ProcessId) -> Result<Vec<DeliveryId>> {
    Ok(on!(tx, conn => sqlx::query_scalar(
        "SELECT id FROM webhook_delivery WHERE owner = $1 ORDER BY id LIMIT 10000")
        .bind(owner)
        .fetch_all(conn)
        .await)?)
}

/// Sends one again, from its first attempt; false when it is pending already.
pub async fn replay(tx: &mut Tx, id: DeliveryId, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE webhook_delivery SET state = 'pending', attempts = 0, next_at = $2, ended_at = NULL
        WHERE id = $1 AND state <> 'pending'"
        )
        .bind(id)
        .bind(now)
    );
    Ok(rows == 1)
}

/// Sends those of a subscription again whose events are in this range of numbers, both ends included; tells how many.
/// `state` narrows it to those that ended so.
pub async fn replay_range(
    tx: &mut Tx,
    subscription: SubscriptionId,
    (from, to): (i64, i64),
    state: Option<DeliveryState>,
    now: Timestamp,
) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        UPDATE webhook_delivery SET state = 'pending', attempts = 0, next_at = $4, ended_at = NULL
        WHERE subscription_id = $1 AND seq >= $2 AND seq <= $3 AND state <> 'pending'
            AND (CAST($5 AS TEXT) IS NULL OR state = $5)"
        )
        .bind(subscription)
        .bind(from)
        .bind(to)
        .bind(now)
        .bind(state)
    ))
}

/// Forgets deliveries that ended so before this time, up to a number; tells how many. A pending one has to be due for
/// as long: nobody sends it, because its subscription is off or its organization is gone.
pub async fn trim(tx: &mut Tx, state: DeliveryState, before: Timestamp, limit: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM webhook_delivery WHERE id IN (
            SELECT id FROM webhook_delivery
            WHERE state = $1 AND (ended_at < $2 OR (ended_at IS NULL AND owner IS NULL AND next_at < $2
                AND NOT EXISTS (SELECT 1 FROM webhook_subscription s JOIN organization g ON g.id = s.org_id
                    WHERE s.id = webhook_delivery.subscription_id AND s.is_enabled AND s.deleted_at IS NULL
                        AND g.deleted_at IS NULL)))
            ORDER BY ended_at, next_at, id LIMIT $3)"
        )
        .bind(state)
        .bind(before)
        .bind(i64::from(limit))
    ))
}
