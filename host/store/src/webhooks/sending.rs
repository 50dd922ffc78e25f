//! Deliveries on their way: claimed, sent, given up.
//!
//! A delivery is sent by the process that owns it. The next ones are chosen in two steps: the subscriptions of which
//! something is due and which have room, those first that have waited the longest since they were served; then the
//! first few deliveries of each. A claim reads one row of each subscription that is due (at most [`WAITING_MAX`]) and
//! of each delivery in flight. Of the deliveries that wait it reads only those that it takes, however many wait.

mod turns;

use std::collections::HashMap;

use heddle_core::webhook::DeliveryState;
use heddle_core::{DeviceId, OrgId, ProcessId, SiteId, Timestamp};
use serde_json::Value;
use sqlx::types::Json;
use sqlx::{FromRow, QueryBuilder};

use self::turns::{Places, allot};
use super::deliveries::{HISTORY_MAX, PastAttempt};
use super::lanes;
use super::{Author, author, lock_all, lock_free};
use crate::db::Tx;
use crate::error::Result;
use crate::processes::gone_among;
use crate::select::{Bind, Select, push_list};
use crate::webhooks::SubscriptionId;
use crate::webhooks::deliveries::DeliveryId;

/// Subscriptions among which one claim chooses.
const WAITING_MAX: i64 = 2_000;
/// Subscriptions of one statement.
const SUBSCRIPTIONS_PER_STATEMENT: usize = 100;

/// A delivery to be sent now, with its URL and the author whose rights apply.
#[derive(Clone, FromRow)]
pub struct Due {
    pub id: DeliveryId,
    pub subscription_id: SubscriptionId,
    pub event_type: String,
    /// Where the event happened.
    pub event_site_id: Option<SiteId>,
    pub event: Value,
    pub attempts: i64,
    pub url: String,
    pub secret: Vec<u8>,
    /// What the subscription is for, now.
    #[sqlx(json)]
    pub events: Vec<String>,
    pub site_id: Option<SiteId>,
    /// `{"payload": …}` of the template, where there is one.
    pub template: Option<Value>,
    #[sqlx(flatten)]
    pub author: Author,
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
    /// The last so many of them are for organizations that have fewer in flight than one subscription may have: an
    /// organization that waits for hanging receivers leaves these to others.
    pub reserved: u32,
}

/// A subscription of which something can be sent.
#[derive(Debug, Clone, Copy, FromRow)]
struct Waiting {
    id: SubscriptionId,
    org_id: OrgId,
    /// How many are being sent to it.
    held: i64,
    held_in_org: i64,
}

/// All deliveries in flight are read as a whole, by an index of nothing else. The limit keeps the planner from grouping
/// along another index, through all that waits.
macro_rules! held {
    () => {
        "WITH held AS (SELECT subscription_id, org_id FROM webhook_delivery WHERE owner IS NOT NULL LIMIT 100000) "
    };
}

pub(super) const WAITING: &str = concat!(
    held!(),
    "SELECT s.id, s.org_id, COALESCE(o.held, 0) AS held, COALESCE(p.held, 0) AS held_in_org
    FROM webhook_subscription s
    JOIN organization g ON g.id = s.org_id
    LEFT JOIN (SELECT subscription_id, COUNT(*) AS held FROM held GROUP BY subscription_id) o
        ON o.subscription_id = s.id
    LEFT JOIN (SELECT org_id, COUNT(*) AS held FROM held GROUP BY org_id) p ON p.org_id = s.org_id
    WHERE s.due_at IS NOT NULL AND s.is_enabled AND s.deleted_at IS NULL AND g.deleted_at IS NULL
        AND s.due_at <= $1 AND COALESCE(o.held, 0) < $2 AND COALESCE(p.held, 0) < $3
    ORDER BY s.due_at, s.id LIMIT CAST($4 AS BIGINT)"
);

/// The first of a subscription that are due; between these come the subscription, the time and how many.
pub(super) const READY: [&str; 4] = [
    "SELECT r.id FROM webhook_delivery r
    WHERE r.state = 'pending' AND r.owner IS NULL AND r.next_at IS NOT NULL AND r.subscription_id = ",
    " AND r.next_at <= ",
    " ORDER BY r.next_at, r.seq, r.id LIMIT CAST(",
    " AS BIGINT)",
];

async fn waiting(tx: &mut Tx, now: Timestamp, room: Room, limit: i64) -> Result<Vec<Waiting>> {
    Ok(on!(tx, conn => sqlx::query_as(WAITING)
        .bind(now)
        .bind(i64::from(room.per_subscription))
        .bind(i64::from(room.per_organization_now(room.in_all)))
        .bind(limit)
        .fetch_all(conn)
        .await)?)
}

/// Whether anything is due that there is room for.
pub async fn has_due(tx: &mut Tx, now: Timestamp, room: Room) -> Result<bool> {
    Ok(room.in_all > 0 && !waiting(tx, now, room, 1).await?.is_empty())
}

/// Takes what is due, and gives what is needed to send it, in the order of the events.
///
/// One that was pending before of the same subscription and device holds the others back; so does the room.
pub async fn claim(tx: &mut Tx, me: ProcessId, now: Timestamp, room: Room) -> Result<Vec<Due>> {
    let places = allot(&waiting(tx, now, room, WAITING_MAX).await?, room);
    let mut claimed: Vec<DeliveryId> = Vec::new();
    for places in hold(tx, places, room).await?.chunks(SUBSCRIPTIONS_PER_STATEMENT) {
        claimed.extend(take(tx, me, now, places).await?);
        let served: Vec<SubscriptionId> = places.iter().map(|places| places.subscription).collect();
        lanes::set_due_after_turn(tx, &served, now).await?;
    }
    Select::new(
        concat!(
            "SELECT d.id, d.subscription_id, d.event_type, d.site_id AS event_site_id, d.event, d.attempts, s.url,
            s.secret, s.events, s.site_id, t.payload AS template, ",
            author!("s")
        ),
        "FROM webhook_delivery d
        JOIN webhook_subscription s ON s.id = d.subscription_id
        JOIN app_user u ON u.id = s.author_id
        LEFT JOIN webhook_template t ON t.id = s.template_id",
    )
    .and_in("d.id", claimed.iter().map(|id| Bind::Id(id.0)))
    .all(tx, "d.seq, d.id", i64::try_from(claimed.len()).unwrap_or(i64::MAX))
    .await
}

/// Locks the subscriptions that no other transaction has locked: none queues for them, removes them or serves them
/// meanwhile. Deliveries that others have claimed before use up places.
async fn hold(tx: &mut Tx, mut places: Vec<Places>, room: Room) -> Result<Vec<Places>> {
    let ids: Vec<SubscriptionId> = places.iter().map(|places| places.subscription).collect();
    if ids.is_empty() {
        return Ok(places);
    }
    let there = lock_free(tx, &ids).await?;
    let held: Vec<(SubscriptionId, i64)> = on!(tx, conn => sqlx::query_as(
        concat!(held!(), "SELECT subscription_id, COUNT(*) FROM held GROUP BY subscription_id"))
        .fetch_all(conn)
        .await)?;
    let held: HashMap<SubscriptionId, i64> = held.into_iter().collect();
    for places in &mut places {
        let free = i64::from(room.per_subscription) - held.get(&places.subscription).copied().unwrap_or(0);
        places.count = places.count.min(free);
    }
    places.retain(|places| places.count > 0 && there.get(&places.subscription).copied().unwrap_or(false));
    Ok(places)
}

/// The first of each subscription that are due, as many as have places.
async fn take(tx: &mut Tx, me: ProcessId, now: Timestamp, places: &[Places]) -> Result<Vec<DeliveryId>> {
    Ok(on!(tx, conn => {
        let mut update = QueryBuilder::new("UPDATE webhook_delivery SET owner = ");
        update.push_bind(me);
        update.push(" WHERE owner IS NULL AND state = 'pending' AND id IN (");
        for (at, places) in places.iter().enumerate() {
            update.push(if at == 0 { "" } else { " UNION ALL " });
            update.push("SELECT id FROM (").push(READY[0]).push_bind(places.subscription);
            update.push(READY[1]).push_bind(now).push(READY[2]).push_bind(places.count);
            update.push(READY[3]).push(") AS ready");
        }
        update.push(") RETURNING id");
        update.build_query_scalar().fetch_all(conn).await
    })?)
}

/// Records how an attempt ended, and gives the delivery up; false when this process no longer owns it. The caller has
/// locked the subscription.
pub async fn finish(tx: &mut Tx, id: DeliveryId, me: ProcessId, attempt: &Attempt) -> Result<bool> {
    let ended_at = (attempt.state != DeliveryState::Pending).then_some(attempt.now);
    let Some(history) = history_with(tx, id, me, attempt).await? else { return Ok(false) };
    let sql = concat!(
        "UPDATE webhook_delivery
        SET state = $3, attempts = attempts + 1, owner = NULL, last_status = $5, last_error = $6, response = $7,
            response_is_truncated = $8, ended_at = $9, history = $10, next_at = CASE WHEN ",
        lanes::is_behind!(),
        " THEN NULL ELSE $4 END
        WHERE id = $1 AND owner = $2 AND state = 'pending'
        RETURNING subscription_id, device_id"
    );
    let found: Option<(SubscriptionId, Option<DeviceId>)> = on!(tx, conn => sqlx::query_as(sql)
        .bind(id)
        .bind(me)
        .bind(attempt.state)
        .bind(attempt.next_at)
        .bind(attempt.status)
        .bind(attempt.error.as_ref())
        .bind(attempt.response.as_ref())
        .bind(attempt.response_is_truncated)
        .bind(ended_at)
        .bind(Json(history))
        .fetch_optional(conn)
        .await)?;
    let Some((subscription, device)) = found else { return Ok(false) };
    if let (Some(device), true) = (device, ended_at.is_some()) {
        lanes::move_up(tx, subscription, device, attempt.now).await?;
    }
    lanes::set_due(tx, &[subscription], attempt.now).await?;
    Ok(true)
}

/// Returns the kept attempts of the delivery, this one included; `None` when this process no longer owns it.
async fn history_with(
    tx: &mut Tx,
    id: DeliveryId,
    me: ProcessId,
    attempt: &Attempt,
) -> Result<Option<Vec<PastAttempt>>> {
    let found: Option<Json<Vec<PastAttempt>>> = on!(tx, conn => sqlx::query_scalar(
        "SELECT history FROM webhook_delivery WHERE id = $1 AND owner = $2 AND state = 'pending'")
        .bind(id)
        .bind(me)
        .fetch_optional(conn)
        .await)?;
    Ok(found.map(|Json(mut history)| {
        history.push(PastAttempt { at: attempt.now, status: attempt.status, error: attempt.error.clone() });
        let surplus = history.len().saturating_sub(HISTORY_MAX);
        history.drain(..surplus);
        history
    }))
}

/// Returns the owners of deliveries that are no longer alive.
pub async fn gone_owners(tx: &mut Tx, me: ProcessId) -> Result<Vec<ProcessId>> {
    let owners: Vec<ProcessId> = on!(tx, conn => sqlx::query_scalar(
        "SELECT DISTINCT owner FROM webhook_delivery WHERE owner IS NOT NULL")
        .fetch_all(conn)
        .await)?;
    gone_among(tx, me, owners).await
}

/// Gives up all that a process was sending; tells how many.
pub async fn release(tx: &mut Tx, owner: ProcessId, now: Timestamp) -> Result<u64> {
    let rows = owned(tx, owner).await?;
    let ids: Vec<DeliveryId> = rows.into_iter().map(|(id, _)| id).collect();
    release_some(tx, owner, &ids, now).await
}

/// Gives up some of what a process was sending, as they stand; tells how many.
pub async fn release_some(tx: &mut Tx, owner: ProcessId, ids: &[DeliveryId], now: Timestamp) -> Result<u64> {
    let mut subscriptions: Vec<SubscriptionId> = owned(tx, owner)
        .await?
        .into_iter()
        .filter(|(id, _)| ids.contains(id))
        .map(|(_, subscription)| subscription)
        .collect();
    subscriptions.sort_unstable();
    subscriptions.dedup();
    lock_all(tx, &subscriptions).await?;
    let mut released = 0;
    for ids in ids.chunks(SUBSCRIPTIONS_PER_STATEMENT) {
        released += on!(tx, conn => {
            let mut update = QueryBuilder::new(concat!(
                "UPDATE webhook_delivery SET owner = NULL, next_at = CASE WHEN ",
                lanes::is_behind!(),
                " THEN NULL ELSE next_at END WHERE owner = "
            ));
            update.push_bind(owner);
            update.push(" AND id IN (");
            push_list!(update, ids);
            update.push(")");
            update.build().execute(conn).await.map(|done| done.rows_affected())
        })?;
    }
    for subscriptions in subscriptions.chunks(SUBSCRIPTIONS_PER_STATEMENT) {
        lanes::set_due(tx, subscriptions, now).await?;
    }
    Ok(released)
}

/// Returns the deliveries that this process owns, each with its subscription.
pub async fn owned(tx: &mut Tx, owner: ProcessId) -> Result<Vec<(DeliveryId, SubscriptionId)>> {
    Ok(on!(tx, conn => sqlx::query_as(
        "SELECT id, subscription_id FROM webhook_delivery WHERE owner = $1 ORDER BY id LIMIT 10000")
        .bind(owner)
        .fetch_all(conn)
        .await)?)
}

impl Room {
    /// Most of one organization while so many places are free.
    fn per_organization_now(self, free: u32) -> u32 {
        if free > self.reserved {
            self.per_organization
        } else {
            self.per_organization.min(self.per_subscription)
        }
    }
}
