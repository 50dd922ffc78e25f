use chrono::TimeDelta;

use super::*;
use crate::testing::{World, on_both, page, seen};

on_both! {
    async fn a_controller_takes_its_devices_along(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (scope, now) = (world.scope(), world.clock.now());
        world.see(&mut tx, &[seen("1")]).await;
        let site = crate::sites::insert(&mut tx, &world.new_site(world.clock.new_id(), "b")).await.unwrap().id;
        let change = ControllerUpdate { site_id: Some(site), name: Some("n".into()), ..Default::default() };
        let updated = update(&mut tx, &scope, world.controller, &change, now).await.unwrap().unwrap();
        assert_eq!((updated.site_id, updated.name.as_str(), updated.tls), (site, "n", TlsPolicy::default()));
        let all = crate::devices::DeviceFilter { site_id: Some(site), ..Default::default() };
        assert_eq!(crate::devices::list(&mut tx, &scope, &all, page()).await.unwrap().1, 1);
        assert!(remove(&mut tx, &scope, world.controller, now).await.unwrap());
        assert!(!remove(&mut tx, &scope, world.controller, now).await.unwrap());
        assert_eq!(crate::devices::list(&mut tx, &scope, &all, page()).await.unwrap().1, 0);
        assert!(find_target(&mut tx, &scope, world.controller).await.unwrap().is_none());
        assert!(restore(&mut tx, &scope, world.controller, now).await.unwrap().is_some());
        assert_eq!(crate::devices::list(&mut tx, &scope, &all, page()).await.unwrap().1, 1);
        assert!(restore(&mut tx, &scope, world.controller, now).await.unwrap().is_none());
    }

    async fn another_organization_finds_nothing(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        let now = a.clock.now();
        assert!(find(&mut tx, &b.scope(), a.controller).await.unwrap().is_none());
        assert!(find_target(&mut tx, &b.scope(), a.controller).await.unwrap().is_none());
        assert!(update(&mut tx, &b.scope(), a.controller, &ControllerUpdate::default(), now).await.unwrap().is_none());
        assert!(!remove(&mut tx, &b.scope(), a.controller, now).await.unwrap());
        assert!(!schedule_now(&mut tx, &b.scope(), a.controller, now).await.unwrap());
        let filter = ControllerFilter { vendor: Some("acme".into()), status: Some(DeviceStatus::Unknown), site_id: Some(a.site), search: Some("EDGE".into()) };
        assert_eq!(list(&mut tx, &a.scope(), &filter, page()).await.unwrap().1, 1);
        assert_eq!(list(&mut tx, &b.scope(), &filter, page()).await.unwrap().1, 0);
    }

    async fn a_reading_is_due_until_it_is_recorded(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (scope, now) = (world.scope(), world.clock.now());
        assert_eq!(due(&mut tx, now, 10).await.unwrap().len(), 0);
        assert!(schedule_now(&mut tx, &scope, world.controller, now).await.unwrap());
        let target = due(&mut tx, now, 10).await.unwrap().remove(0);
        assert_eq!((target.id, target.credential_version), (world.controller, 1));
        let mut result = SyncResult { status: DeviceStatus::Online, error: None, firmware: Some("2".into()), product: None, next_sync_at: Some(now + TimeDelta::minutes(1)), now };
        assert!(record_sync(&mut tx, world.controller, &result).await.unwrap());
        assert!(!record_sync(&mut tx, world.controller, &result).await.unwrap());
        assert_eq!(due(&mut tx, now, 10).await.unwrap().len(), 0);
        result = SyncResult { status: DeviceStatus::Offline, error: Some("no answer".into()), firmware: None, now: now + TimeDelta::seconds(5), ..result };
        assert!(record_sync(&mut tx, world.controller, &result).await.unwrap());
        let found = find(&mut tx, &scope, world.controller).await.unwrap().unwrap();
        assert_eq!((found.last_sync_at, found.firmware.as_deref(), found.last_error.as_deref()), (Some(now), Some("2"), Some("no answer")));
        assert!(set_status(&mut tx, world.controller, DeviceStatus::Online, now).await.unwrap());
        assert!(!set_status(&mut tx, world.controller, DeviceStatus::Online, now).await.unwrap());
    }
}
