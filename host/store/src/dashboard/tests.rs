use chrono::TimeDelta;
use heddle_core::UserId;
use heddle_core::change::ApplyStep;

use super::*;
use crate::changes::{Advance, advance, claim_apply};
use crate::controllers::Controller;
use crate::db::Db;
use crate::object::Object as _;
use crate::sites::Site;
use crate::testing::{World, on_both, seen};
use crate::users;
use crate::users::User;

fn horizon(now: Timestamp) -> Horizon {
    Horizon {
        day_ago: now - TimeDelta::hours(24),
        week_ago: now - TimeDelta::days(7),
        expiring_before: now + TimeDelta::hours(24),
    }
}

/// A change of the world that was applied so long ago.
async fn applied(db: &Db, world: &World, ago: TimeDelta) {
    let id = world.staged(db).await;
    let mut tx = db.write().await.unwrap();
    let now = world.clock.now();
    let row = crate::changes::hold(&mut tx, id).await.unwrap().unwrap();
    claim_apply(&mut tx, &row, world.process, &world.attempt(), crate::changes::Window::default(), now)
        .await
        .unwrap();
    let end = Advance {
        outcome_state: Some(OutcomeState::Applied),
        status: Some(ChangeStatus::Applied),
        applied_by: Some(world.user),
        applied_at: Some(now - ago),
        ..Default::default()
    };
    advance(&mut tx, id, Some(world.process), ApplyStep::Sending, ApplyStep::Idle, &end, now)
        .await
        .unwrap()
        .unwrap();
    tx.commit().await.unwrap();
}

on_both! {
    async fn only_what_is_the_organizations_and_not_removed_counts(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let now = a.clock.now();
        let mut tx = db.write().await.unwrap();
        let bea: UserId = a.clock.new_id();
        users::insert(&mut tx, &a.new_user(bea, "bea")).await.unwrap();
        let off = users::UserUpdate { is_active: Some(false), role: Some(Role::Viewer), ..Default::default() };
        users::update(&mut tx, &a.scope(), bea, &off, now).await.unwrap().unwrap();
        assert_eq!(totals(&mut tx, a.org).await.unwrap(), Totals { sites: 1, controllers: 1, users: 2 });
        let expected = [
            RoleCount { role: Role::OrgAdmin, is_active: true, count: 1 },
            RoleCount { role: Role::Viewer, is_active: false, count: 1 },
        ];
        assert_eq!(users_by_role(&mut tx, a.org).await.unwrap(), expected);
        User::remove(&mut tx, &a.scope(), bea, now).await.unwrap();
        Controller::remove(&mut tx, &a.scope(), a.controller, now).await.unwrap();
        Site::remove(&mut tx, &a.scope(), a.site, now).await.unwrap();
        assert_eq!(totals(&mut tx, a.org).await.unwrap(), Totals { sites: 0, controllers: 0, users: 1 });
        assert_eq!(totals(&mut tx, b.org).await.unwrap(), Totals { sites: 1, controllers: 1, users: 1 });
        assert!(controllers_by_status(&mut tx, a.org).await.unwrap().is_empty());
        let unknown = StatusCount { status: DeviceStatus::Unknown, count: 1 };
        assert_eq!(controllers_by_status(&mut tx, b.org).await.unwrap(), [unknown]);
    }

    async fn the_kinds_with_the_most_devices_come_first(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut devices = vec![seen("1"), seen("2"), seen("3"), seen("4")];
        devices[2].kind = "switch".to_owned();
        devices[3].kind = "camera".to_owned();
        devices[3].status = DeviceStatus::Offline;
        let mut tx = db.write().await.unwrap();
        a.see(&mut tx, &devices).await;
        let kind = |kind: &str, count| KindCount { kind: kind.to_owned(), count };
        let expected = [kind("access_point", 2), kind("camera", 1)];
        assert_eq!(devices_by_kind(&mut tx, a.org, 2).await.unwrap(), expected);
        let expected = [
            StatusCount { status: DeviceStatus::Offline, count: 1 },
            StatusCount { status: DeviceStatus::Online, count: 3 },
        ];
        assert_eq!(devices_by_status(&mut tx, a.org).await.unwrap(), expected);
        assert!(devices_by_kind(&mut tx, b.org, 20).await.unwrap().is_empty());
    }

    async fn changes_are_counted_by_what_became_of_them(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        for ago in [TimeDelta::hours(1), TimeDelta::days(2), TimeDelta::days(8)] {
            applied(&db, &a, ago).await;
        }
        a.staged(&db).await;
        b.staged(&db).await;
        let mut tx = db.read().await.unwrap();
        let now = a.clock.now();
        let applied = ChangeCount { outcome_state: OutcomeState::Applied, pending: 0, expiring: 0, applied_day: 1, applied_week: 2 };
        let none = ChangeCount { outcome_state: OutcomeState::None, pending: 1, expiring: 1, applied_day: 0, applied_week: 0 };
        assert_eq!(changes_by_outcome(&mut tx, a.org, &horizon(now)).await.unwrap(), [applied, none]);
        let early = Horizon { expiring_before: now, ..horizon(now) };
        assert_eq!(changes_by_outcome(&mut tx, a.org, &early).await.unwrap()[1].expiring, 0);
    }

    async fn the_newest_audit_entries_come_first(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        for (world, action) in [(&a, "one"), (&b, "other"), (&a, "two"), (&a, "three")] {
            let entry = crate::audit::NewAudit {
                org_id: world.org, actor_id: None, actor_name: "heddle".into(), action: action.into(),
                target_type: "x".into(), target_id: None, detail: serde_json::json!({}), request_id: None, ip: None,
            };
            crate::audit::append(&mut tx, &entry, &world.clock, &crate::audit::AuditKey::new([7; 32])).await.unwrap();
        }
        let latest = crate::audit::latest(&mut tx, a.org, 2).await.unwrap();
        assert_eq!(latest.iter().map(|entry| entry.action.as_str()).collect::<Vec<_>>(), ["three", "two"]);
    }
}
