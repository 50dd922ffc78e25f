use super::*;
use crate::testing::{World, on_both, page, seen};

on_both! {
    async fn a_reading_tells_what_is_new(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let first = world.see(&mut tx, &[seen("1"), seen("2"), seen("2")]).await;
        assert_eq!(first.len(), 2);
        assert!(first.iter().all(|s| s.novelty == Novelty::Created && s.status == Some(DeviceStatus::Online)));
        let again = world.see(&mut tx, &[seen("1"), seen("2")]).await;
        assert!(again.iter().all(|s| s.novelty == Novelty::Known && s.changed.is_empty() && s.status.is_none()), "{again:?}");
        let mut changed = seen("1");
        changed.firmware = Some("2".into());
        let third = world.see(&mut tx, &[changed]).await;
        assert_eq!((third[0].changed.as_slice(), third[0].device_id), (&["firmware"][..], first[0].device_id));
        assert_eq!((third[1].device_id, third[1].status), (first[1].device_id, Some(DeviceStatus::Offline)));
        let back = world.see(&mut tx, &[seen("1"), seen("2")]).await;
        assert_eq!((back[1].status, back[1].changed.len()), (Some(DeviceStatus::Online), 0));
        let found = find(&mut tx, &world.scope(), first[0].device_id).await.unwrap().unwrap();
        assert_eq!((found.identity.as_str(), found.addresses), ("1", vec!["192.0.2.7".to_owned()]));
    }

    async fn a_partial_list_sends_nothing_offline(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        world.see(&mut tx, &[seen("1")]).await;
        let reading = Seen { org_id: world.org, site_id: world.site, controller_id: world.controller, devices: &[], complete: Completeness::Partial };
        assert!(upsert_seen(&mut tx, &reading, &world.clock).await.unwrap().is_empty());
    }

    async fn thousands_are_written_at_once(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let many: Vec<SeenDevice> = (0..2_500).map(|n| seen(&n.to_string())).collect();
        assert_eq!(world.see(&mut tx, &many).await.len(), 2_500);
        assert_eq!(world.see(&mut tx, &many).await.len(), 2_500);
        assert_eq!(world.see(&mut tx, &[]).await.len(), 2_500);
        let offline = DeviceFilter { status: Some(DeviceStatus::Offline), kind: Some("access_point".into()), controller_id: Some(world.controller), ..Default::default() };
        let (rows, total) = list(&mut tx, &world.scope(), &offline, PageRequest { page: 1, per_page: 9_999 }).await.unwrap();
        assert_eq!((rows.len(), total), (200, 2_500));
    }

    async fn devices_outside_the_scope_are_not_found(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        let id = a.see(&mut tx, &[seen("1")]).await[0].device_id;
        assert!(find(&mut tx, &b.scope(), id).await.unwrap().is_none());
        let search = DeviceFilter { search: Some("AP 1".into()), ..Default::default() };
        assert_eq!(list(&mut tx, &b.scope(), &search, page()).await.unwrap().1, 0);
        assert_eq!(list(&mut tx, &a.scope(), &search, page()).await.unwrap().1, 1);
    }
}
