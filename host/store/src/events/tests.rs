use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use heddle_core::event::EventType;

use super::*;
use crate::testing::{World, first, on_both, tamper};

heddle_core::events! { TYPES {
    CHANGE_STAGED = "controller.change.staged", "change", Normal, { "change_id": "uuid" };
    DEVICE_OFFLINE = "device.offline", "device", High, { "device_id": "uuid" };
} }

fn all_types() -> EventTypes {
    only(TYPES)
}

fn only(types: &[EventType]) -> EventTypes {
    EventTypes::new(types.iter().copied())
}

fn new(world: &World, event_type: EventType) -> NewEvent {
    NewEvent { site_id: Some(world.site), ..NewEvent::of(event_type, world.org, serde_json::json!({})) }
}

fn positions(news: &News) -> Vec<(OrgId, i64)> {
    news.events.iter().map(|stored| (stored.event.organization_id, stored.event.seq)).collect()
}

on_both! {
    async fn events_are_numbered_per_organization_and_followed_by_number(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        assert_eq!(last_seq(&mut tx, a.org).await.unwrap(), 0);
        append(&mut tx, &new(&a, CHANGE_STAGED), &a.clock).await.unwrap();
        assert_eq!(append(&mut tx, &new(&a, DEVICE_OFFLINE), &a.clock).await.unwrap().seq, 2);
        assert_eq!(append(&mut tx, &new(&b, DEVICE_OFFLINE), &a.clock).await.unwrap().seq, 1);
        assert_eq!(last_seq(&mut tx, a.org).await.unwrap(), 2);
        let mut all = heads(&mut tx, None).await.unwrap();
        all.sort_unstable();
        assert_eq!(all, [(a.org, 2), (b.org, 1)]);
        let later = a.clock.now() + chrono::TimeDelta::seconds(1);
        assert!(heads(&mut tx, Some(later)).await.unwrap().is_empty());
        assert_eq!(heads(&mut tx, Some(later - chrono::TimeDelta::minutes(1))).await.unwrap().len(), 2);
        let news = behind(&mut tx, &all_types(), &[(a.org, 0), (b.org, 0)], 10).await.unwrap();
        assert_eq!((news.events.len(), news.events[0].site_id, news.is_full), (3, Some(a.site), false));
        let news = behind(&mut tx, &all_types(), &[(a.org, 1), (b.org, 1)], 1).await.unwrap();
        assert_eq!((positions(&news), news.is_full), (vec![(a.org, 2)], true));
        assert_eq!(news.reached, HashMap::from([(a.org, 2)]));
        assert!(behind(&mut tx, &all_types(), &[], 10).await.unwrap().events.is_empty());
        assert_eq!(list(&mut tx, &all_types(), a.org, 1, None, 10).await.unwrap().events[0].event.seq, 2);
        let some = list(&mut tx, &all_types(), a.org, 0, Some(&only(&[DEVICE_OFFLINE])), 1).await.unwrap();
        assert_eq!((some.events.len(), some.last_seq, some.is_full), (1, 2, true));
    }

    async fn each_commit_that_has_events_is_told_and_no_other(db) {
        let world = World::new(&db, "a").await;
        let told = Arc::new(AtomicUsize::new(0));
        db.on_events({
            let told = told.clone();
            move || {
                told.fetch_add(1, Ordering::SeqCst);
            }
        });
        let count = || told.load(Ordering::SeqCst);
        let event = new(&world, DEVICE_OFFLINE);
        let mut tx = db.write().await.unwrap();
        append_all(&mut tx, world.org, &[], &world.clock).await.unwrap();
        tx.commit().await.unwrap();
        let mut tx = db.write().await.unwrap();
        append(&mut tx, &event, &world.clock).await.unwrap();
        tx.rollback().await.unwrap();
        assert_eq!(count(), 0);
        let mut tx = db.clone().write().await.unwrap();
        append(&mut tx, &event, &world.clock).await.unwrap();
        append(&mut tx, &event, &world.clock).await.unwrap();
        assert_eq!(count(), 0, "not before it is committed");
        tx.commit().await.unwrap();
        assert_eq!(count(), 1);
        let mut tx = db.write().await.unwrap();
        append_all(&mut tx, world.org, &[event], &world.clock).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(count(), 2);
    }

    async fn writers_at_once_leave_no_gap(db) {
        let world = World::new(&db, "a").await;
        let one = || async {
            let mut tx = db.write().await.unwrap();
            let event = append(&mut tx, &new(&world, DEVICE_OFFLINE), &world.clock).await.unwrap();
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
        append(&mut tx, &new(&world, CHANGE_STAGED), &world.clock).await.unwrap();
        let many: Vec<NewEvent> = (0..1203).map(|_| new(&world, DEVICE_OFFLINE)).collect();
        append_all(&mut tx, world.org, &many, &world.clock).await.unwrap();
        append_all(&mut tx, world.org, &[], &world.clock).await.unwrap();
        let seqs: Vec<i64> =
            list(&mut tx, &all_types(), world.org, 0, None, 5000).await.unwrap().events.iter().map(|e| e.event.seq).collect();
        assert_eq!(seqs, (1..=1204).collect::<Vec<i64>>());
    }

    async fn the_oldest_events_of_all_organizations_come_first(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        let late = Clock::default();
        late.advance(chrono::TimeDelta::seconds(60));
        append(&mut tx, &new(&b, CHANGE_STAGED), &b.clock).await.unwrap();
        append(&mut tx, &new(&a, CHANGE_STAGED), &late).await.unwrap();
        // A clock that went back: the number still decides within the organization.
        append(&mut tx, &new(&a, DEVICE_OFFLINE), &a.clock).await.unwrap();
        append_all(&mut tx, b.org, &[new(&b, DEVICE_OFFLINE)], &b.clock).await.unwrap();
        let news = behind(&mut tx, &all_types(), &[(a.org, 0), (b.org, 0)], 10).await.unwrap();
        assert_eq!(positions(&news), [(b.org, 1), (b.org, 2), (a.org, 1), (a.org, 2)]);
    }

    async fn an_event_of_an_unknown_type_is_passed_over_and_counts(db) {
        let world = World::new(&db, "a").await;
        let mut tx = db.write().await.unwrap();
        let many: Vec<NewEvent> = (0..3).map(|_| new(&world, DEVICE_OFFLINE)).collect();
        append_all(&mut tx, world.org, &many, &world.clock).await.unwrap();
        tx.commit().await.unwrap();
        tamper(&db, "UPDATE event SET event_type = 'device.abducted' WHERE seq IN (2, 3)").await;
        let mut tx = db.read().await.unwrap();
        let news = behind(&mut tx, &all_types(), &[(world.org, 0)], 2).await.unwrap();
        assert_eq!((positions(&news), news.reached[&world.org], news.is_full), (vec![(world.org, 1)], 2, true));
        let stretch = list(&mut tx, &all_types(), world.org, 1, None, 2).await.unwrap();
        assert_eq!((stretch.events.len(), stretch.last_seq, stretch.is_full), (0, 3, true));
        assert_eq!(stretch.unknown.map(|(seq, _)| seq), Some(2));
    }

    async fn a_list_has_what_fits_and_of_limited_sites_also_what_is_of_none(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        for world in [&a, &b] {
            append(&mut tx, &new(world, DEVICE_OFFLINE), &a.clock).await.unwrap();
            append(&mut tx, &NewEvent { site_id: None, ..new(world, CHANGE_STAGED) }, &a.clock).await.unwrap();
        }
        let all = EventFilter { org: Some(a.org), sites: SiteScope::All, types: all_types(), site_id: None, controller_id: None, device_id: None, since: None, until: None };
        let later = a.clock.now() + chrono::TimeDelta::seconds(1);
        for (filter, expected) in [
            (all.clone(), 2),
            (EventFilter { org: None, ..all.clone() }, 4),
            (EventFilter { types: only(&[]), ..all.clone() }, 0),
            (EventFilter { types: only(&[DEVICE_OFFLINE]), ..all.clone() }, 1),
            (EventFilter { sites: SiteScope::Only(vec![]), ..all.clone() }, 1),
            (EventFilter { sites: SiteScope::Only(vec![a.site]), ..all.clone() }, 2),
            (EventFilter { sites: SiteScope::Only(vec![b.site]), ..all.clone() }, 1),
            (EventFilter { site_id: Some(a.site), ..all.clone() }, 1),
            (EventFilter { controller_id: Some(a.controller), ..all.clone() }, 0),
            (EventFilter { device_id: Some(a.clock.new_id()), ..all.clone() }, 0),
            (EventFilter { since: Some(later), ..all.clone() }, 0),
            (EventFilter { until: Some(later), ..all.clone() }, 2),
        ] {
            assert_eq!(walk(&mut tx, &filter, first(10)).await.unwrap().total, expected, "{filter:?}");
        }
        assert_eq!(walk(&mut tx, &all, first(10)).await.unwrap().items[0].event.seq, 2, "the newest comes first");
    }

    async fn old_events_are_forgotten_but_not_the_newest(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        for world in [&a, &b] {
            let many: Vec<NewEvent> = (0..5).map(|_| new(world, DEVICE_OFFLINE)).collect();
            append_all(&mut tx, world.org, &many, &a.clock).await.unwrap();
        }
        let later = a.clock.now() + chrono::TimeDelta::seconds(1);
        assert_eq!(trim(&mut tx, a.org, later - chrono::TimeDelta::hours(1), 10).await.unwrap(), 0);
        assert_eq!(trim(&mut tx, a.org, later, 3).await.unwrap(), 3, "no more than asked for, the oldest first");
        assert_eq!(list(&mut tx, &all_types(), a.org, 0, None, 10).await.unwrap().events[0].event.seq, 4);
        assert_eq!(trim(&mut tx, a.org, later, 10).await.unwrap(), 1);
        assert_eq!(list(&mut tx, &all_types(), a.org, 0, None, 10).await.unwrap().events[0].event.seq, 5, "the newest stays");
        assert_eq!(list(&mut tx, &all_types(), b.org, 0, None, 10).await.unwrap().events.len(), 5, "others keep theirs");
    }

    async fn a_count_ends_at_its_cap(db) {
        let world = World::new(&db, "a").await;
        let mut tx = db.write().await.unwrap();
        let many: Vec<NewEvent> = (0..crate::select::COUNT_MAX).map(|_| new(&world, DEVICE_OFFLINE)).collect();
        append_all(&mut tx, world.org, &many, &world.clock).await.unwrap();
        let all = EventFilter { org: None, sites: SiteScope::All, types: all_types(), site_id: None, controller_id: None, device_id: None, since: None, until: None };
        let walked = walk(&mut tx, &all, first(2)).await.unwrap();
        assert_eq!((walked.total, walked.total_is_capped), (crate::select::COUNT_MAX, false));
        append(&mut tx, &new(&world, DEVICE_OFFLINE), &world.clock).await.unwrap();
        let walked = walk(&mut tx, &all, first(2)).await.unwrap();
        assert_eq!((walked.total, walked.total_is_capped, walked.has_more), (crate::select::COUNT_MAX, true, true));
    }

    async fn a_stretch_of_numbers_is_read_in_order_and_one_event_by_its_id(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        let mut ids = Vec::new();
        for event_type in [DEVICE_OFFLINE, CHANGE_STAGED, DEVICE_OFFLINE, DEVICE_OFFLINE] {
            ids.push(append(&mut tx, &new(&a, event_type), &a.clock).await.unwrap().id);
        }
        append(&mut tx, &new(&b, DEVICE_OFFLINE), &b.clock).await.unwrap();
        let filter = EventFilter { org: Some(a.org), sites: SiteScope::All, types: only(&[DEVICE_OFFLINE]), site_id: None, controller_id: None, device_id: None, since: None, until: None };
        for (after, until, per_page, expected, has_more) in [
            (0, None, 10, &[1, 3, 4][..], false),
            (0, None, 2, &[1, 3], true),
            (1, Some(3), 10, &[3], false),
            (4, None, 10, &[], false),
        ] {
            let walked = walk_numbers(&mut tx, &filter, Numbers { after, until }, first(per_page)).await.unwrap();
            let numbers: Vec<i64> = walked.items.iter().map(|stored| stored.event.seq).collect();
            assert_eq!((numbers.as_slice(), walked.has_more), (expected, has_more), "{after} {until:?}");
        }
        let all = &all_types();
        let own = Scope::organization(a.org);
        assert_eq!(find(&mut tx, &own, all, ids[1]).await.unwrap().unwrap().event.seq, 2);
        assert!(find(&mut tx, &own, &only(&[DEVICE_OFFLINE]), ids[1]).await.unwrap().is_none());
        assert!(find(&mut tx, &Scope::organization(b.org), all, ids[1]).await.unwrap().is_none());
        let limited = Scope { org: Some(a.org), sites: SiteScope::Only(vec![b.site]) };
        assert!(find(&mut tx, &limited, all, ids[1]).await.unwrap().is_none());
    }
}
