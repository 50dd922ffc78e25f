//! The order of deliveries, and when a subscription has its turn.
//!
//! A lane holds the pending deliveries of one subscription and one device. Only its first, by the events' numbers, has
//! a `next_at`; the others wait without one until it ended. A delivery of no device waits for no other. So the
//! deliveries of a subscription that can be sent are the beginning of one index, however many wait behind them.
//! `due_at` of a subscription says from when any of them can be sent.
//!
//! The caller has locked the subscriptions.

use heddle_core::{DeviceId, Timestamp};
use sqlx::QueryBuilder;

use crate::db::Tx;
use crate::error::Result;
use crate::select::{affected, push_list};
use crate::webhooks::SubscriptionId;
use crate::webhooks::deliveries::DeliveryId;

/// Whether an earlier one of the same lane is pending.
macro_rules! is_behind {
    () => {
        "EXISTS (SELECT 1 FROM webhook_delivery e WHERE e.subscription_id = webhook_delivery.subscription_id
            AND e.device_id = webhook_delivery.device_id AND e.state = 'pending' AND e.seq < webhook_delivery.seq)"
    };
}
pub(super) use is_behind;

/// Puts deliveries, which have just become pending and have no `next_at`, in their places: those that are the first of
/// their lanes are due now, and the ones before which they come wait. At most a few hundred.
///
/// One that is being sent stays what it is until it is given up.
pub(super) async fn settle(tx: &mut Tx, ids: &[DeliveryId], now: Timestamp) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    // A statement of its own: in one with the update, the database may read everything that is pending.
    let next: Vec<Option<DeliveryId>> = on!(tx, conn => {
        let mut select = QueryBuilder::new(
            "SELECT (
                SELECT l.id FROM webhook_delivery l
                WHERE l.subscription_id = n.subscription_id AND l.device_id = n.device_id
                    AND l.state = 'pending' AND l.seq > n.seq
                ORDER BY l.seq LIMIT 1)
            FROM webhook_delivery n WHERE n.device_id IS NOT NULL AND n.id IN (",
        );
        push_list!(select, ids);
        select.push(")");
        select.build_query_scalar().fetch_all(conn).await
    })?;
    let next: Vec<DeliveryId> = next.into_iter().flatten().collect();
    if !next.is_empty() {
        on!(tx, conn => {
            let mut update = QueryBuilder::new(concat!(
                "UPDATE webhook_delivery SET next_at = NULL
                WHERE state = 'pending' AND owner IS NULL AND next_at IS NOT NULL AND ", is_behind!(), " AND id IN ("
            ));
            push_list!(update, &next);
            update.push(")");
            update.build().execute(conn).await.map(|_| ())
        })?;
    }
    on!(tx, conn => {
        let mut update = QueryBuilder::new("UPDATE webhook_delivery SET next_at = ");
        update.push_bind(now);
        update.push(concat!(
            " WHERE state = 'pending' AND owner IS NULL AND next_at IS NULL AND NOT ", is_behind!(), " AND id IN ("
        ));
        push_list!(update, ids);
        update.push(")");
        update.build().execute(conn).await.map(|_| ())
    })?;
    Ok(())
}

/// The first that waits in a lane is due, now that the one before it has ended.
pub(super) async fn move_up(
    tx: &mut Tx,
    subscription: SubscriptionId,
    device: DeviceId,
    now: Timestamp,
) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        UPDATE webhook_delivery SET next_at = $3
        WHERE owner IS NULL AND next_at IS NULL AND id = (
            SELECT id FROM webhook_delivery
            WHERE subscription_id = $1 AND device_id = $2 AND state = 'pending'
            ORDER BY seq LIMIT 1)"
        )
        .bind(subscription)
        .bind(device)
        .bind(now)
    );
    Ok(())
}

/// Ends the `CASE` that sets when something of a subscription can be sent: otherwise with its first delivery that waits.
/// The ids of the subscriptions follow.
const ELSE_NEXT: &str = " ELSE d.next_at END FROM webhook_delivery d
    WHERE d.subscription_id = webhook_subscription.id AND d.state = 'pending' AND d.owner IS NULL
        AND d.next_at IS NOT NULL
    ORDER BY d.next_at LIMIT 1)
WHERE id IN (";

/// Says when something of these subscriptions can be sent. One that has its turn already keeps it.
pub(super) async fn set_due(tx: &mut Tx, subscriptions: &[SubscriptionId], now: Timestamp) -> Result<()> {
    if subscriptions.is_empty() {
        return Ok(());
    }
    on!(tx, conn => {
        let mut update = QueryBuilder::new(
            "UPDATE webhook_subscription SET due_at = (SELECT CASE WHEN webhook_subscription.due_at <= ",
        );
        update.push_bind(now).push(" AND d.next_at <= ").push_bind(now);
        update.push(" THEN webhook_subscription.due_at").push(ELSE_NEXT);
        push_list!(update, subscriptions);
        update.push(")");
        update.build().execute(conn).await.map(|_| ())
    })?;
    Ok(())
}

/// The same for those that have just been served: whatever else of them is due comes after all who wait by now.
pub(super) async fn set_due_after_turn(
    tx: &mut Tx,
    subscriptions: &[SubscriptionId],
    now: Timestamp,
) -> Result<()> {
    if subscriptions.is_empty() {
        return Ok(());
    }
    on!(tx, conn => {
        let mut update = QueryBuilder::new(
            "UPDATE webhook_subscription SET due_at = (SELECT CASE WHEN d.next_at < ",
        );
        update.push_bind(now).push(" THEN ").push_bind(now).push(ELSE_NEXT);
        push_list!(update, subscriptions);
        update.push(")");
        update.build().execute(conn).await.map(|_| ())
    })?;
    Ok(())
}
