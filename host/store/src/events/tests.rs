use super::*;
use crate::testing::{World, on_both};

fn new(world: &World, event_type: EventType) -> NewEvent {
    NewEvent {
        event_type,
        org_id: world.org,
        site_id: Some(world.site),
        controller_id: None,
        device_id: None,
        causation_id: None,
        payload: serde_json::json!({}),
    }
}

on_both! {
    async fn events_are_numbered_per_organization_and_published_once(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        assert_eq!(last_seq(&mut tx, a.org).await.unwrap(), 0);
        append(&mut tx, &new(&a, EventType::ChangeStaged), &a.clock).await.unwrap();
        assert_eq!(append(&mut tx, &new(&a, EventType::DeviceOffline), &a.clock).await.unwrap().seq, 2);
        assert_eq!(append(&mut tx, &new(&b, EventType::DeviceOffline), &a.clock).await.unwrap().seq, 1);
        assert_eq!(last_seq(&mut tx, a.org).await.unwrap(), 2);
        let waiting = unpublished(&mut tx, 10).await.unwrap();
        assert_eq!((waiting.len(), waiting[0].site_id), (3, Some(a.site)));
        assert_eq!(oldest_unpublished(&mut tx).await.unwrap(), Some(waiting[0].event.occurred_at));
        let ids: Vec<EventId> = waiting.iter().map(|e| e.event.id).collect();
        mark_published(&mut tx, &ids[1..], a.clock.now()).await.unwrap();
        mark_published(&mut tx, &[], a.clock.now()).await.unwrap();
        assert_eq!(unpublished(&mut tx, 10).await.unwrap().len(), 1);
        mark_published(&mut tx, &ids, a.clock.now()).await.unwrap();
        assert_eq!(oldest_unpublished(&mut tx).await.unwrap(), None);
        assert_eq!(list(&mut tx, a.org, 1, &[], 10).await.unwrap()[0].event.seq, 2);
        assert_eq!(list(&mut tx, a.org, 0, &[EventType::DeviceOffline], 10).await.unwrap().len(), 1);
    }

    async fn writers_at_once_leave_no_gap(db) {
        let world = World::new(&db, "a").await;
        let one = || async {
            let mut tx = db.write().await.unwrap();
            let event = append(&mut tx, &new(&world, EventType::DeviceOffline), &world.clock).await.unwrap();
            tx.commit().await.unwrap();
            event.seq
        };
        let (a, b, c, d) = tokio::join!(one(), one(), one(), one());
        let mut all = [a, b, c, d];
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3, 4]);
    }

    async fn many_events_are_numbered_without_a_gap_behind_those_before(db) {
        let world = World::new(&db, "a").await;
        let mut tx = db.write().await.unwrap();
        append(&mut tx, &new(&world, EventType::ChangeStaged), &world.clock).await.unwrap();
        let many: Vec<NewEvent> = (0..1203).map(|_| new(&world, EventType::DeviceOffline)).collect();
        append_all(&mut tx, world.org, &many, &world.clock).await.unwrap();
        append_all(&mut tx, world.org, &[], &world.clock).await.unwrap();
        let seqs: Vec<i64> =
            list(&mut tx, world.org, 0, &[], 5000).await.unwrap().iter().map(|e| e.event.seq).collect();
        assert_eq!(seqs, (1..=1204).collect::<Vec<i64>>());
    }

    async fn the_oldest_events_of_all_organizations_come_first(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        let late = Clock::default();
        late.advance(chrono::TimeDelta::seconds(60));
        append(&mut tx, &new(&b, EventType::ChangeStaged), &b.clock).await.unwrap();
        append(&mut tx, &new(&a, EventType::ChangeStaged), &late).await.unwrap();
        // A clock that went back: the number still decides within the organization.
        append(&mut tx, &new(&a, EventType::DeviceOffline), &a.clock).await.unwrap();
        append_all(&mut tx, b.org, &[new(&b, EventType::DeviceOffline)], &b.clock).await.unwrap();
        let waiting = unpublished(&mut tx, 10).await.unwrap();
        let order: Vec<_> = waiting.iter().map(|e| (e.event.organization_id, e.event.seq)).collect();
        assert_eq!(order, [(b.org, 1), (b.org, 2), (a.org, 1), (a.org, 2)]);
    }
}
