//! What an operator should look at, over all organizations.

use heddle_core::adapter::DeviceStatus;
use heddle_core::change::{ApplyStep, OutcomeState};
use heddle_core::{ChangeId, ControllerId, Timestamp};
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Select};

/// The first few of a list that is only counted beyond.
const SHOWN: i64 = 10;
/// Rows of an organization that is not removed: no user can settle those of a removed one.
const OF_ORGANIZATION: &str =
    "EXISTS (SELECT 1 FROM organization o WHERE o.id = c.org_id AND o.deleted_at IS NULL)";

/// A row of `change` that is pending, is not being applied, and left its device in an unknown state.
/// Members of a set are among them, the row of a set is not.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct UnsettledChange {
    pub id: ChangeId,
    pub outcome_state: OutcomeState,
}

/// A row of `controller` that is offline and was not read for long.
/// `last_sync_at` is `None` where no reading has ended without an error yet.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct SilentController {
    pub id: ControllerId,
    pub name: String,
    pub last_sync_at: Option<Timestamp>,
}

/// Returns the changes whose device is in an unknown state: the first ten, and how many there are.
pub async fn unsettled_changes(tx: &mut Tx) -> Result<(Vec<UnsettledChange>, i64)> {
    let states = [OutcomeState::Partial, OutcomeState::Unknown];
    Select::new("SELECT c.id, c.outcome_state", "FROM change c")
        .and(OF_ORGANIZATION)
        .and("NOT c.is_set")
        .and("c.status = 'pending'")
        .and_bind("c.apply_step = ?", Bind::Text(ApplyStep::Idle.to_string()))
        .and_in("c.outcome_state", states.map(|state| Bind::Text(state.to_string())))
        .slice(tx, "c.staged_at, c.id", SHOWN, 0)
        .await
}

/// Controllers that are offline and were not read since `before`: the first ten, and how many there are.
pub async fn silent_controllers(tx: &mut Tx, before: Timestamp) -> Result<(Vec<SilentController>, i64)> {
    Select::new("SELECT c.id, c.name, c.last_sync_at", "FROM controller c")
        .and(OF_ORGANIZATION)
        .and("c.deleted_at IS NULL")
        .and_bind("c.status = ?", Bind::Text(DeviceStatus::Offline.to_string()))
        .and_bind("COALESCE(c.last_sync_at, c.created_at) < ?", Bind::Time(before))
        .slice(tx, "c.created_at, c.id", SHOWN, 0)
        .await
}

/// A row of `controller` whose channels are wanted and do not tell what changes.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct PollingController {
    pub id: ControllerId,
    pub name: String,
    pub push_reason: Option<String>,
}

/// Controllers with channels that are wanted: how many there are.
pub async fn pushing_controllers(tx: &mut Tx) -> Result<i64> {
    with_channels().count(tx).await
}

/// Those of them that are read at their interval only: the first ten, and how many there are.
pub async fn polling_controllers(tx: &mut Tx) -> Result<(Vec<PollingController>, i64)> {
    with_channels().and("c.push_state = 'polling'").slice(tx, "c.created_at, c.id", SHOWN, 0).await
}

fn with_channels() -> Select {
    Select::new("SELECT c.id, c.name, c.push_reason", "FROM controller c")
        .and(OF_ORGANIZATION)
        .and("c.deleted_at IS NULL")
        .and("c.push_enabled AND c.push_state IS NOT NULL")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, on_both, tamper};

    on_both! {
        async fn what_is_in_order_is_not_listed(db) {
            let world = World::new(&db, "a").await;
            let id = world.staged(&db).await;
            let late = world.clock.now() + chrono::TimeDelta::hours(1);
            let mut tx = db.read().await.unwrap();
            assert_eq!(unsettled_changes(&mut tx).await.unwrap(), (Vec::new(), 0));
            assert_eq!(silent_controllers(&mut tx, late).await.unwrap(), (Vec::new(), 0));
            tx.rollback().await.unwrap();
            tamper(&db, "UPDATE change SET outcome_state = 'partial'").await;
            tamper(&db, "UPDATE controller SET status = 'offline'").await;
            let mut tx = db.read().await.unwrap();
            let (changes, count) = unsettled_changes(&mut tx).await.unwrap();
            assert_eq!((changes[0].id, changes[0].outcome_state, count), (id, OutcomeState::Partial, 1));
            let (controllers, count) = silent_controllers(&mut tx, late).await.unwrap();
            assert_eq!((controllers[0].id, controllers[0].last_sync_at, count), (world.controller, None, 1));
            let early = world.clock.now() - chrono::TimeDelta::hours(1);
            assert_eq!(silent_controllers(&mut tx, early).await.unwrap().1, 0);
            tx.rollback().await.unwrap();
            tamper(&db, "UPDATE controller SET push_state = 'polling', push_reason = 'status 404'").await;
            let mut tx = db.read().await.unwrap();
            let (polling, count) = polling_controllers(&mut tx).await.unwrap();
            assert_eq!((polling[0].id, polling[0].push_reason.as_deref(), count), (world.controller, Some("status 404"), 1));
            assert_eq!(pushing_controllers(&mut tx).await.unwrap(), 1);
            tx.rollback().await.unwrap();
            tamper(&db, "UPDATE controller SET revision = revision + 1, push_enabled = FALSE").await;
            let mut tx = db.read().await.unwrap();
            assert_eq!((polling_controllers(&mut tx).await.unwrap().1, pushing_controllers(&mut tx).await.unwrap()), (0, 0));
            tx.rollback().await.unwrap();
            tamper(&db, "UPDATE organization SET revision = revision + 1, deleted_at = created_at").await;
            let mut tx = db.read().await.unwrap();
            let left = (unsettled_changes(&mut tx).await.unwrap().1, silent_controllers(&mut tx, late).await.unwrap().1);
            assert_eq!(left, (0, 0), "of a removed organization");
            tx.rollback().await.unwrap();
            tamper(&db, "UPDATE organization SET revision = revision + 1, deleted_at = NULL").await;
            tamper(&db, "UPDATE change SET status = 'discarded'").await;
            let mut tx = db.read().await.unwrap();
            assert_eq!(unsettled_changes(&mut tx).await.unwrap().1, 0);
        }
    }
}
