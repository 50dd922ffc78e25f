//! Connections that the clock starts: which are due, and moving them on.

use heddle_core::{ConnectionId, Timestamp};

use crate::connections::ConnectionRow;
use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Select, affected};

/// Enabled schedules whose time has come, the longest waiting first.
pub async fn due(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<Vec<ConnectionRow>> {
    Select::new("SELECT c.*", "FROM connection c")
        .and("c.next_due_at IS NOT NULL AND c.state = 'enabled' AND c.deleted_at IS NULL")
        .and_bind("c.next_due_at <= ?", Bind::Time(now))
        .all(tx, "c.next_due_at, c.id", i64::from(limit))
        .await
}

/// Moves a schedule on from a time that it was due at; false when another process did, or the schedule was edited.
pub async fn advance(
    tx: &mut Tx,
    (id, revision): (ConnectionId, i64),
    due_at: Timestamp,
    next: Option<Timestamp>,
    fired_at: Option<Timestamp>,
) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE connection SET next_due_at = $3, last_fired_at = COALESCE($4, last_fired_at)
        WHERE id = $1 AND next_due_at = $2 AND revision = $5 AND state = 'enabled' AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(due_at)
        .bind(next)
        .bind(fired_at)
        .bind(revision)
    );
    Ok(rows == 1)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use heddle_core::operation::ConnectionKind;

    use super::*;
    use crate::connections;
    use crate::connections::tests::connection;
    use crate::testing::{World, on_both};

    on_both! {
        async fn a_schedule_is_due_once(db) {
            let world = World::new(&db, "one").await;
            let now = world.clock.now();
            let later = now + TimeDelta::hours(1);
            let mut tx = db.write().await.unwrap();
            let mut new = connection(&world, "x");
            (new.kind, new.next_due_at) = (ConnectionKind::Schedule, Some(now));
            connections::insert(&mut tx, &new).await.unwrap();
            assert!(due(&mut tx, now - TimeDelta::seconds(1), 10).await.unwrap().is_empty());
            assert_eq!(due(&mut tx, now, 10).await.unwrap().len(), 1);
            assert!(!advance(&mut tx, (new.id, 2), now, Some(later), Some(now)).await.unwrap(), "it was edited since");
            assert!(advance(&mut tx, (new.id, 1), now, Some(later), Some(now)).await.unwrap());
            assert!(!advance(&mut tx, (new.id, 1), now, Some(later), Some(now)).await.unwrap());
            assert!(due(&mut tx, now, 10).await.unwrap().is_empty());
            let due = due(&mut tx, later, 10).await.unwrap();
            assert_eq!((due[0].next_due_at, due[0].last_fired_at), (Some(later), Some(now)));
        }
    }
}
