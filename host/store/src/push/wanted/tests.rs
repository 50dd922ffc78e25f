use chrono::TimeDelta;

use super::*;
use crate::controllers::{self, Except};
use crate::db::Db;
use crate::testing::{World, on_both, tamper};

fn want_of(kind: &str, site_ref: &str, at: Timestamp) -> Want {
    Want { kind: kind.to_owned(), site_ref: site_ref.to_owned(), due_at: at, told_at: at, again_at: None }
}

/// Writes what is wanted, in a transaction of its own.
async fn wants(db: &Db, world: &World, wanted: &[Want]) {
    let mut tx = db.write().await.unwrap();
    want(&mut tx, world.controller, wanted).await.unwrap();
    tx.commit().await.unwrap();
}

async fn due_of(tx: &mut Tx, world: &World, of: Of, now: Timestamp) -> usize {
    due(tx, world.process, now, &Except::default(), (of, 10)).await.unwrap().len()
}

async fn names(tx: &mut Tx, world: &World, now: Timestamp) -> Vec<String> {
    let rows = of(tx, world.controller, now).await.unwrap();
    rows.into_iter().map(|row| format!("{} {}", row.kind, row.site_ref)).collect()
}

on_both! {
    async fn a_controller_is_due_for_what_is_wanted_of_it(db) {
        let world = World::new(&db, "one").await;
        let now = world.clock.now();
        wants(&db, &world, &[want_of("vlan", "", now)]).await;
        let mut tx = db.write().await.unwrap();
        assert_eq!((due_of(&mut tx, &world, Of::Model, now).await, due_of(&mut tx, &world, Of::Devices, now).await), (1, 0));
        want(&mut tx, world.controller, &[want_of(DEVICES, "", now)]).await.unwrap();
        assert_eq!((due_of(&mut tx, &world, Of::Model, now).await, due_of(&mut tx, &world, Of::Devices, now).await), (0, 1));
        assert_eq!(due_of(&mut tx, &world, Of::Devices, now - TimeDelta::seconds(1)).await, 0, "it is for later");
        for except in [
            Except { controllers: vec![world.controller], organizations: Vec::new() },
            Except { controllers: Vec::new(), organizations: vec![world.org] },
        ] {
            assert!(due(&mut tx, world.process, now, &except, (Of::Devices, 10)).await.unwrap().is_empty());
        }
        let (scope, other) = (world.scope(), world.clock.new_id());
        assert_eq!(claim(&mut tx, &[world.controller], other, now).await.unwrap().len(), 1);
        assert!(claim(&mut tx, &[world.controller], world.process, now).await.unwrap().is_empty(), "another one reads it");
        assert_eq!(due_of(&mut tx, &world, Of::Devices, now).await, 0);
        assert!(controllers::release(&mut tx, world.controller, other).await.unwrap());
        assert!(controllers::schedule_now(&mut tx, &scope, world.controller, now).await.unwrap());
        assert_eq!(due_of(&mut tx, &world, Of::Devices, now).await, 0, "its own reading takes it along");
        assert!(claim(&mut tx, &[world.controller], world.process, now).await.unwrap().is_empty());
        assert!(claim(&mut tx, &[], world.process, now).await.unwrap().is_empty());
    }

    async fn what_is_told_during_a_reading_is_read_once_more(db) {
        let world = World::new(&db, "one").await;
        let now = world.clock.now();
        wants(&db, &world, &[want_of("vlan", "", now), want_of("port", "a", now)]).await;
        let mut tx = db.write().await.unwrap();
        let taken = of(&mut tx, world.controller, now).await.unwrap();
        let later = now + TimeDelta::seconds(5);
        want(&mut tx, world.controller, &[want_of("vlan", "", later)]).await.unwrap();
        assert_eq!(settle(&mut tx, &taken, now).await.unwrap(), [now]);
        assert_eq!(names(&mut tx, &world, now).await, ["vlan "], "due no later than it was, for no reading took it");
        let taken = of(&mut tx, world.controller, now).await.unwrap();
        assert_eq!(settle(&mut tx, &taken, now).await.unwrap(), [now], "told no later than it was");
        assert!(settle(&mut tx, &taken, now).await.unwrap().is_empty());
        assert!(names(&mut tx, &world, later).await.is_empty());
        assert!(settle(&mut tx, &[], now).await.unwrap().is_empty());
    }

    async fn what_is_told_during_a_reading_is_read_at_its_own_time(db) {
        let world = World::new(&db, "one").await;
        let now = world.clock.now();
        wants(&db, &world, &[want_of("vlan", "", now), want_of(DEVICES, "", now)]).await;
        let mut tx = db.write().await.unwrap();
        assert_eq!(claim(&mut tx, &[world.controller], world.process, now).await.unwrap().len(), 1);
        let rows = of(&mut tx, world.controller, now).await.unwrap();
        take(&mut tx, &rows, world.process, now).await.unwrap();
        let [soon, later] = [30, 45].map(|secs| now + TimeDelta::seconds(secs));
        for due_at in [soon, later] {
            want(&mut tx, world.controller, &[want_of("vlan", "", due_at), want_of(DEVICES, "", due_at)]).await.unwrap();
        }
        assert!(settle(&mut tx, &rows, now).await.unwrap().is_empty());
        assert!(names(&mut tx, &world, now).await.is_empty(), "readings do not follow each other at once");
        assert_eq!(names(&mut tx, &world, soon).await, ["device ", "vlan "]);
    }

    async fn the_mark_of_a_reading_that_is_over_delays_nothing(db) {
        let world = World::new(&db, "one").await;
        let now = world.clock.now();
        let later = now + TimeDelta::seconds(30);
        for owner in [world.process, world.clock.new_id()] {
            wants(&db, &world, &[want_of("vlan", "", now)]).await;
            let mut tx = db.write().await.unwrap();
            let rows = of(&mut tx, world.controller, now).await.unwrap();
            take(&mut tx, &rows, owner, now).await.unwrap();
            tx.commit().await.unwrap();
            wants(&db, &world, &[want_of("vlan", "", later)]).await;
            let mut tx = db.write().await.unwrap();
            assert_eq!(names(&mut tx, &world, now).await, ["vlan "], "nobody reads it");
            claim(&mut tx, &[world.controller], world.process, now).await.unwrap();
            tx.commit().await.unwrap();
        }
    }

    async fn the_next_time_is_that_of_what_is_not_due_yet(db) {
        let world = World::new(&db, "one").await;
        let now = world.clock.now();
        let [soon, later] = [1, 5].map(|secs| now + TimeDelta::seconds(secs));
        assert_eq!(next_due(&mut db.read().await.unwrap(), now).await.unwrap(), None);
        wants(&db, &world, &[want_of("vlan", "", now), want_of("port", "", later), want_of("ssid", "", soon)]).await;
        let mut tx = db.read().await.unwrap();
        assert_eq!(next_due(&mut tx, now).await.unwrap(), Some(soon));
        assert_eq!(next_due(&mut tx, soon).await.unwrap(), Some(later));
        assert_eq!(next_due(&mut tx, later).await.unwrap(), None);
    }

    async fn what_a_message_is_raising_is_left_as_it_is(db) {
        let world = World::new(&db, "one").await;
        let now = world.clock.now();
        wants(&db, &world, &[want_of("vlan", "", now), want_of("port", "", now)]).await;
        let rows = of(&mut db.read().await.unwrap(), world.controller, now).await.unwrap();
        // On SQLite a transaction that writes is alone.
        if db.kind() == "postgres" {
            let mut message = db.write().await.unwrap();
            want(&mut message, world.controller, &[want_of("vlan", "", now)]).await.unwrap();
            let mut tx = db.write().await.unwrap();
            let later = now + TimeDelta::seconds(10);
            let both = async {
                take(&mut tx, &rows, world.process, now).await.unwrap();
                postpone(&mut tx, world.controller, later).await.unwrap();
            };
            tokio::time::timeout(std::time::Duration::from_secs(5), both).await.expect("it waits for nobody");
            assert_eq!(names(&mut tx, &world, now).await, ["vlan "], "only the other one waits");
            assert_eq!(settle(&mut tx, &rows, now).await.unwrap(), [now]);
            message.rollback().await.unwrap();
            assert_eq!(names(&mut tx, &world, later).await, ["vlan "]);
        }
    }

    async fn what_is_read_once_more_is_due_at_its_time(db) {
        let world = World::new(&db, "one").await;
        let now = world.clock.now();
        let again = now + TimeDelta::seconds(12);
        wants(&db, &world, &[Want { again_at: Some(again), ..want_of("vlan", "", now) }]).await;
        wants(&db, &world, &[want_of("vlan", "", now)]).await;
        let mut tx = db.write().await.unwrap();
        let taken = of(&mut tx, world.controller, now).await.unwrap();
        assert!(settle(&mut tx, &taken, now).await.unwrap().is_empty());
        assert!(names(&mut tx, &world, now).await.is_empty());
        let taken = of(&mut tx, world.controller, again).await.unwrap();
        assert_eq!(settle(&mut tx, &taken, again).await.unwrap(), [again], "it is measured from that time");
        want(&mut tx, world.controller, &[Want { again_at: Some(again), ..want_of("vlan", "", now) }]).await.unwrap();
        let taken = of(&mut tx, world.controller, again).await.unwrap();
        assert_eq!(settle(&mut tx, &taken, again).await.unwrap().len(), 1, "the reading began at that time");
        want(&mut tx, world.controller, &[Want { again_at: Some(again), ..want_of("vlan", "", now) }]).await.unwrap();
        let taken = of(&mut tx, world.controller, now).await.unwrap();
        let before = again - TimeDelta::seconds(1);
        assert!(settle(&mut tx, &taken, before).await.unwrap().is_empty(), "that reading began before, however long it took");
        assert_eq!(names(&mut tx, &world, again).await, ["vlan "]);
    }

    async fn lists_that_were_read_since_a_row_was_taken_count_under_its_number(db) {
        let world = World::new(&db, "one").await;
        let now = world.clock.now();
        wants(&db, &world, &[want_of("vlan", "", now), want_of("port", "", now)]).await;
        let mut tx = db.write().await.unwrap();
        let rows = of(&mut tx, world.controller, now).await.unwrap();
        assert!(rows.iter().all(|row| (row.taken_at, row.taken_by) == (None, None)));
        want(&mut tx, world.controller, &[want_of("port", "", now)]).await.unwrap();
        take(&mut tx, &rows, world.process, now).await.unwrap();
        let taken = of(&mut tx, world.controller, now).await.unwrap();
        assert_eq!((taken[0].taken_at, taken[1].taken_at), (None, Some(now)), "the port was told again");
        assert_eq!(taken[1].taken_by, Some(world.process));
        want(&mut tx, world.controller, &[want_of("vlan", "", now)]).await.unwrap();
        let anew = of(&mut tx, world.controller, now).await.unwrap();
        assert_eq!((anew[1].taken_at, anew[1].taken_by), (None, None));
        take(&mut tx, &[], world.process, now).await.unwrap();
    }

    async fn a_kind_that_is_wanted_of_many_sites_is_wanted_of_all(db) {
        let world = World::new(&db, "one").await;
        let now = world.clock.now();
        let sites = |from: usize, to: usize| (from..to).map(|n| want_of("vlan", &n.to_string(), now)).collect::<Vec<_>>();
        wants(&db, &world, &sites(0, 33)).await;
        let mut tx = db.write().await.unwrap();
        assert_eq!(names(&mut tx, &world, now).await, ["vlan "]);
        want(&mut tx, world.controller, &sites(0, 32)).await.unwrap();
        want(&mut tx, world.controller, &[want_of("port", "a", now)]).await.unwrap();
        assert_eq!(names(&mut tx, &world, now).await.len(), 34);
        want(&mut tx, world.controller, &sites(100, 120)).await.unwrap();
        let rows = of(&mut tx, world.controller, now).await.unwrap();
        assert_eq!((rows.len(), rows[1].site_ref.as_str(), rows[1].number), (34, "", 2));
    }

    async fn readings_for_messages_rest(db) {
        let world = World::new(&db, "one").await;
        let now = world.clock.now();
        wants(&db, &world, &[want_of("vlan", "", now)]).await;
        let mut tx = db.write().await.unwrap();
        assert_eq!(during(&mut tx, world.controller, now).await.unwrap().len(), 1);
        let rested = now + TimeDelta::seconds(2);
        assert!(!rest(&mut tx, world.controller, world.process, rested).await.unwrap(), "it reads nothing of it");
        assert_eq!(claim(&mut tx, &[world.controller], world.process, now).await.unwrap().len(), 1);
        assert!(rest(&mut tx, world.controller, world.process, rested).await.unwrap());
        assert!(during(&mut tx, world.controller, now).await.unwrap().is_empty());
        assert_eq!(due_of(&mut tx, &world, Of::Model, now).await, 0);
        assert!(claim(&mut tx, &[world.controller], world.process, now).await.unwrap().is_empty());
        assert_eq!(due_of(&mut tx, &world, Of::Model, rested).await, 1);
        assert_eq!(during(&mut tx, world.controller, rested).await.unwrap().len(), 1);
        postpone(&mut tx, world.controller, rested + TimeDelta::seconds(1)).await.unwrap();
        assert_eq!(due_of(&mut tx, &world, Of::Model, rested).await, 0);
        assert_eq!(names(&mut tx, &world, rested + TimeDelta::seconds(1)).await, ["vlan "]);
    }

    async fn a_removed_controller_is_not_read(db) {
        let world = World::new(&db, "one").await;
        let now = world.clock.now();
        wants(&db, &world, &[want_of("vlan", "", now)]).await;
        tamper(&db, "UPDATE controller SET revision = revision + 1, deleted_at = created_at").await;
        let mut tx = db.write().await.unwrap();
        assert_eq!(due_of(&mut tx, &world, Of::Model, now).await, 0);
        assert!(claim(&mut tx, &[world.controller], world.process, now).await.unwrap().is_empty());
        assert_eq!(trim(&mut tx, now - TimeDelta::days(1), 10).await.unwrap(), 0, "it may be restored");
        assert_eq!(trim(&mut tx, now + TimeDelta::days(1), 10).await.unwrap(), 1);
        assert!(names(&mut tx, &world, now).await.is_empty());
    }
}
