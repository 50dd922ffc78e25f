//! Events for subscriptions: what waits to be sent and how it went, in the database.
//!
//! The caller of a function that writes them has locked the subscription (`lock_all`, or `Subscription::lock`). Sending
//! is in [`super::sending`].

use std::collections::BTreeSet;

use heddle_core::page::{WalkRequest, Walked};
use heddle_core::webhook::DeliveryState;
use heddle_core::{DeviceId, EventId, OrgId, SiteId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{FromRow, QueryBuilder};

use super::lanes;
use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Scope, Select, affected, push_list};
use crate::sort::{Key, Sorted};
use crate::webhooks::SubscriptionId;

heddle_core::ids! {
    /// One event on its way to one subscription.
    pub DeliveryId,
}

/// Rows of one INSERT: thirteen values each, far below both databases' limit of parameters.
const ROWS_PER_STATEMENT: usize = 500;

/// One event on its way to one subscription, and how the attempts to send it went.
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
    /// The last 20 attempts, the oldest first, also those from before it was asked for again.
    #[sqlx(json)]
    pub history: Vec<PastAttempt>,
    /// When it is tried next; null when it ended, and while it waits for an earlier event of its device.
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

impl Sorted for Delivery {
    const KEYS: &'static [Key] = &[Key::of("created_at", "d.created_at")];
    const DEFAULT: &'static str = "-created_at";
    const LAST: &'static [&'static str] = &["d.seq", "d.id"];
}

/// One attempt to send a delivery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "WebhookAttempt")]
pub struct PastAttempt {
    /// When it ended.
    pub at: Timestamp,
    /// Status of the receiver's answer; null where there was none.
    pub status: Option<i64>,
    /// Why it failed; null where it did not.
    pub error: Option<String>,
}

/// Attempts that are kept of one delivery.
pub(super) const HISTORY_MAX: usize = 20;

/// A row of `webhook_delivery` about to be written. It begins as pending, without an attempt.
/// `event` is the event as it is published; a later removal of the event does not touch it.
#[derive(Debug, Clone)]
pub struct NewDelivery {
    pub id: DeliveryId,
    pub org_id: OrgId,
    pub subscription_id: SubscriptionId,
    pub event_id: EventId,
    pub event_type: String,
    pub seq: i64,
    pub site_id: Option<SiteId>,
    pub device_id: Option<DeviceId>,
    pub event: Value,
    pub now: Timestamp,
}

const SELECT: &str = "SELECT d.id, d.subscription_id, d.event_id, d.event_type, d.seq, d.device_id, d.state,
    d.attempts, d.history, d.next_at, d.last_status, d.last_error, d.response, d.response_is_truncated, d.created_at, d.ended_at";
const FROM: &str = "FROM webhook_delivery d
    JOIN webhook_subscription s ON s.id = d.subscription_id AND s.deleted_at IS NULL";

fn within(scope: &Scope) -> Select {
    Select::new(SELECT, FROM).within(scope, "d.org_id", None)
}

/// Queues deliveries, due at once but for those that wait for an earlier event of their device. One that a subscription
/// has of an event already is left as it is. Tells how many are new.
pub async fn insert(tx: &mut Tx, new: &[NewDelivery]) -> Result<u64> {
    let mut inserted = 0;
    for rows in new.chunks(ROWS_PER_STATEMENT) {
        let ids: Vec<DeliveryId> = on!(tx, conn => {
            let mut insert = QueryBuilder::new(
                "INSERT INTO webhook_delivery (id, org_id, subscription_id, event_id, event_type, seq, site_id,
                    device_id, event, state, attempts, response_is_truncated, created_at) ",
            );
            insert.push_values(rows, |mut row, new| {
                row.push_bind(new.id)
                    .push_bind(new.org_id)
                    .push_bind(new.subscription_id)
                    .push_bind(new.event_id)
                    .push_bind(&new.event_type)
                    .push_bind(new.seq)
                    .push_bind(new.site_id)
                    .push_bind(new.device_id)
                    .push_bind(&new.event)
                    .push_bind(DeliveryState::Pending)
                    .push_bind(0_i64)
                    .push_bind(false)
                    .push_bind(new.now);
            });
            insert.push(" ON CONFLICT (subscription_id, event_id) DO NOTHING RETURNING id");
            insert.build_query_scalar().fetch_all(conn).await
        })?;
        if let Some(first) = rows.first() {
            lanes::settle(tx, &ids, first.now).await?;
        }
        inserted += ids.len() as u64;
    }
    if let Some(first) = new.first() {
        let subscriptions: BTreeSet<SubscriptionId> = new.iter().map(|new| new.subscription_id).collect();
        lanes::set_due(tx, &subscriptions.into_iter().collect::<Vec<_>>(), first.now).await?;
    }
    Ok(inserted)
}

/// Returns the delivery in whatever state, without a lock.
/// `None` means that the scope's organization has no such delivery, or that its subscription is removed.
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
        .walk::<_, Delivery>(tx, request)
        .await
}

/// How many are pending in all organizations.
pub async fn count_pending(tx: &mut Tx) -> Result<i64> {
    Ok(on!(tx, conn => sqlx::query_scalar("SELECT COUNT(*) FROM webhook_delivery WHERE state = 'pending'")
        .fetch_one(conn)
        .await)?)
}

/// The outcome of a request to send a delivery again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay {
    /// It had ended, and begins anew.
    Again,
    /// It waited to be tried again, and is due now.
    Hurried,
    /// It is in flight.
    InFlight,
    /// An earlier event of its device goes first.
    Behind,
}

/// Sends one again, from its first attempt; one that waits to be tried again is due at once and keeps its attempts.
pub async fn replay(tx: &mut Tx, delivery: &Delivery, now: Timestamp) -> Result<Replay> {
    if delivery.state != DeliveryState::Pending {
        revive(tx, &[delivery.id], now).await?;
        lanes::set_due(tx, &[delivery.subscription_id], now).await?;
        return Ok(Replay::Again);
    }
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE webhook_delivery SET next_at = CASE WHEN next_at > $2 THEN $2 ELSE next_at END
        WHERE id = $1 AND state = 'pending' AND owner IS NULL AND next_at IS NOT NULL"
        )
        .bind(delivery.id)
        .bind(now)
    );
    if rows == 1 {
        lanes::set_due(tx, &[delivery.subscription_id], now).await?;
        return Ok(Replay::Hurried);
    }
    Ok(if delivery.next_at.is_some() { Replay::InFlight } else { Replay::Behind })
}

/// Which deliveries of a subscription are sent again.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    /// Number of the first event.
    pub from: i64,
    /// Number of the last event.
    pub to: i64,
    /// Only those that ended so.
    pub state: Option<DeliveryState>,
    /// At most so many, the first of them.
    pub limit: u32,
}

/// The outcome of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    pub count: u64,
    /// Number of the first event that there was no place for.
    pub next_seq: Option<i64>,
}

/// Sends those that ended again, of events in this range.
pub async fn replay_range(
    tx: &mut Tx,
    subscription: SubscriptionId,
    range: Range,
    now: Timestamp,
) -> Result<Replayed> {
    let states = match range.state {
        Some(state) => vec![state],
        None => vec![DeliveryState::Delivered, DeliveryState::Dead],
    };
    let mut rows: Vec<(DeliveryId, i64)> = Vec::new();
    for state in states {
        let found: Vec<(DeliveryId, i64)> = on!(tx, conn => sqlx::query_as("
            SELECT id, seq FROM webhook_delivery
            WHERE subscription_id = $1 AND state = $2 AND state <> 'pending' AND seq >= $3 AND seq <= $4
            ORDER BY seq LIMIT CAST($5 AS BIGINT)")
            .bind(subscription).bind(state).bind(range.from).bind(range.to).bind(i64::from(range.limit) + 1)
            .fetch_all(conn)
            .await)?;
        rows.extend(found);
    }
    rows.sort_by_key(|(_, seq)| *seq);
    let limit = usize::try_from(range.limit).unwrap_or(usize::MAX);
    let next_seq = rows.get(limit).map(|(_, seq)| *seq);
    let ids: Vec<DeliveryId> = rows.into_iter().take(limit).map(|(id, _)| id).collect();
    for ids in ids.chunks(ROWS_PER_STATEMENT) {
        revive(tx, ids, now).await?;
    }
    lanes::set_due(tx, &[subscription], now).await?;
    Ok(Replayed { count: ids.len() as u64, next_seq })
}

/// Makes ended ones pending, from their first attempt, each in its place.
async fn revive(tx: &mut Tx, ids: &[DeliveryId], now: Timestamp) -> Result<()> {
    on!(tx, conn => {
        let mut update = QueryBuilder::new(
            "UPDATE webhook_delivery SET state = 'pending', attempts = 0, next_at = NULL, ended_at = NULL
            WHERE state <> 'pending' AND id IN (",
        );
        push_list!(update, ids);
        update.push(")");
        update.build().execute(conn).await.map(|_| ())
    })?;
    lanes::settle(tx, ids, now).await
}

/// Forgets deliveries that ended so before this time, up to a number; tells how many. One that is asked for again
/// meanwhile stays.
pub async fn trim(tx: &mut Tx, state: DeliveryState, before: Timestamp, limit: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM webhook_delivery WHERE state = $1 AND ended_at < $2 AND id IN (
            SELECT id FROM webhook_delivery WHERE state = $1 AND ended_at < $2
            ORDER BY ended_at, id LIMIT CAST($3 AS BIGINT))"
        )
        .bind(state)
        .bind(before)
        .bind(i64::from(limit))
    ))
}

/// Deletes pending deliveries that are not in flight, up to a number; returns how many. They are of subscriptions that
/// are off, and of organizations that are gone, since before this time. The last of each device go first, so that what
/// is left keeps its order.
pub async fn trim_abandoned(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    let found: Vec<SubscriptionId> = on!(tx, conn => sqlx::query_scalar("
        SELECT s.id FROM webhook_subscription s JOIN organization g ON g.id = s.org_id
        WHERE (s.deleted_at < $1 OR g.deleted_at < $1 OR (NOT s.is_enabled AND s.updated_at < $1))
            AND EXISTS (SELECT 1 FROM webhook_delivery d
                WHERE d.subscription_id = s.id AND d.state = 'pending' AND d.owner IS NULL)
        ORDER BY s.id LIMIT 500")
        .bind(before)
        .fetch_all(conn)
        .await)?;
    if found.is_empty() {
        return Ok(0);
    }
    // A transaction that switches one on, or queues for it, comes before or after.
    let locked: Vec<(SubscriptionId,)> = Select::new("SELECT s.id", "FROM webhook_subscription s")
        .and_in("s.id", found.iter().map(|id| Bind::Id(id.0)))
        .all_locked(tx, "s.id", 500, ("s", true))
        .await?;
    let locked: Vec<SubscriptionId> = locked.into_iter().map(|(id,)| id).collect();
    Ok(on!(tx, conn => {
        let mut delete = QueryBuilder::new(
            "DELETE FROM webhook_delivery WHERE id IN (
            SELECT d.id FROM webhook_subscription s
            JOIN organization g ON g.id = s.org_id
            JOIN webhook_delivery d ON d.subscription_id = s.id AND d.state = 'pending'
            WHERE d.owner IS NULL AND (s.deleted_at < ",
        );
        delete.push_bind(before).push(" OR g.deleted_at < ").push_bind(before);
        delete.push(" OR (NOT s.is_enabled AND s.updated_at < ").push_bind(before).push(")) AND s.id IN (");
        push_list!(delete, &locked);
        delete.push(") ORDER BY s.id, d.seq DESC LIMIT CAST(").push_bind(i64::from(limit)).push(" AS BIGINT))");
        delete.build().execute(conn).await.map(|done| done.rows_affected())
    })?)
}

/// Puts deliveries in their places that wait for nothing: behind none, and without a time, or with a time that their
/// subscription does not know. A process of an older version leaves such. Up to a number; tells how many.
pub async fn mend(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<u64> {
    let sql = concat!(
        "SELECT id, subscription_id FROM webhook_delivery
        WHERE state = 'pending' AND owner IS NULL AND ((next_at IS NULL AND NOT ",
        lanes::is_behind!(),
        ") OR (next_at IS NOT NULL AND EXISTS (SELECT 1 FROM webhook_subscription s
            WHERE s.id = webhook_delivery.subscription_id AND s.due_at IS NULL AND s.is_enabled
                AND s.deleted_at IS NULL)))
        ORDER BY id LIMIT CAST($1 AS BIGINT)"
    );
    let found: Vec<(DeliveryId, SubscriptionId)> =
        on!(tx, conn => sqlx::query_as(sql).bind(i64::from(limit)).fetch_all(conn).await)?;
    let (ids, subscriptions): (Vec<DeliveryId>, BTreeSet<SubscriptionId>) = found.into_iter().unzip();
    let subscriptions: Vec<SubscriptionId> = subscriptions.into_iter().collect();
    super::lock_all(tx, &subscriptions).await?;
    lanes::settle(tx, &ids, now).await?;
    lanes::set_due(tx, &subscriptions, now).await?;
    Ok(ids.len() as u64)
}
