use std::time::Duration;

use super::*;
use crate::push;
use crate::testing::{World, on_both, tamper};

on_both! {
    async fn a_request_counts_under_the_secret_that_proved_it(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (id, me, now) = (world.controller, world.process, world.clock.now());
        push::claim(&mut tx, &[id], me).await.unwrap();
        assert_eq!(find(&mut tx, id).await.unwrap().unwrap().push_secret, None);
        assert!(!push::held(&mut tx, me).await.unwrap()[0].has_push_secret);
        assert!(!note(&mut tx, id, "webhook", b"one", now).await.unwrap(), "there is none");
        assert!(!set_secret(&mut tx, id, None).await.unwrap(), "there is none to take away");
        assert!(set_secret(&mut tx, id, Some(b"one")).await.unwrap());
        let found = find(&mut tx, id).await.unwrap().unwrap();
        assert_eq!((found.push_secret.as_deref(), found.push_enabled), (Some(b"one".as_slice()), true));
        assert!(push::held(&mut tx, me).await.unwrap()[0].has_push_secret);
        assert!(note(&mut tx, id, "webhook", b"one", now).await.unwrap());
        let later = now + chrono::TimeDelta::seconds(5);
        assert!(note(&mut tx, id, "webhook", b"one", later).await.unwrap());
        assert!(note(&mut tx, id, "alarms", b"one", now).await.unwrap());
        let at = |channel: &str, heard_at| HeardAt { controller_id: id, channel: channel.to_owned(), heard_at };
        assert_eq!(heard(&mut tx, me).await.unwrap(), [at("alarms", now), at("webhook", later)]);
        assert!(heard(&mut tx, world.clock.new_id()).await.unwrap().is_empty(), "of another process");
        assert!(set_secret(&mut tx, id, Some(b"two")).await.unwrap());
        assert!(heard(&mut tx, me).await.unwrap().is_empty(), "the one before proves nothing any more");
        assert!(!note(&mut tx, id, "webhook", b"one", later).await.unwrap());
        assert!(set_secret(&mut tx, id, None).await.unwrap());
        assert_eq!(find(&mut tx, id).await.unwrap().unwrap().push_secret, None);
        tx.commit().await.unwrap();
    }

    async fn no_request_counts_under_a_secret_that_is_being_replaced(db) {
        let world = World::new(&db, "one").await;
        let (id, me, now) = (world.controller, world.process, world.clock.now());
        let mut tx = db.write().await.unwrap();
        push::claim(&mut tx, &[id], me).await.unwrap();
        set_secret(&mut tx, id, Some(b"one")).await.unwrap();
        tx.commit().await.unwrap();
        let mut replaces = db.write().await.unwrap();
        set_secret(&mut replaces, id, Some(b"two")).await.unwrap();
        let noting = async {
            let mut tx = db.write().await.unwrap();
            let is_noted = note(&mut tx, id, "webhook", b"one", now).await.unwrap();
            tx.commit().await.unwrap();
            is_noted
        };
        let replacing = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            replaces.commit().await.unwrap();
        };
        assert!(!tokio::join!(noting, replacing).0);
        assert!(heard(&mut db.read().await.unwrap(), me).await.unwrap().is_empty());
    }

    async fn of_a_removed_controller_nothing_is_kept(db) {
        let (kept, gone) = (World::new(&db, "kept").await, World::new(&db, "gone").await);
        let now = kept.clock.now();
        let mut tx = db.write().await.unwrap();
        for world in [&kept, &gone] {
            push::claim(&mut tx, &[world.controller], kept.process).await.unwrap();
            set_secret(&mut tx, world.controller, Some(b"one")).await.unwrap();
            assert!(note(&mut tx, world.controller, "webhook", b"one", now).await.unwrap());
        }
        tx.commit().await.unwrap();
        let (past, future) = (now - chrono::TimeDelta::days(1), now + chrono::TimeDelta::days(1));
        for (remove, restore) in [
            ("UPDATE controller SET deleted_at = created_at WHERE org_id = (SELECT id FROM organization WHERE slug = 'gone')",
             "UPDATE controller SET deleted_at = NULL"),
            ("UPDATE organization SET deleted_at = created_at WHERE slug = 'gone'", "UPDATE organization SET deleted_at = NULL"),
        ] {
            tamper(&db, remove).await;
            let mut tx = db.write().await.unwrap();
            let trimmed = (trim_heard(&mut tx, past, 10).await.unwrap(), trim_secrets(&mut tx, past, 10).await.unwrap());
            assert_eq!(trimmed, (0, 0), "it may be restored");
            let trimmed = (trim_heard(&mut tx, future, 10).await.unwrap(), trim_secrets(&mut tx, future, 10).await.unwrap());
            assert_eq!(trimmed, (1, 1));
            tx.commit().await.unwrap();
            tamper(&db, restore).await;
            let mut tx = db.write().await.unwrap();
            assert_eq!(find(&mut tx, gone.controller).await.unwrap().unwrap().push_secret, None);
            assert_eq!(heard(&mut tx, kept.process).await.unwrap().len(), 1, "of the other controller");
            assert!(find(&mut tx, kept.controller).await.unwrap().unwrap().push_secret.is_some());
            set_secret(&mut tx, gone.controller, Some(b"one")).await.unwrap();
            assert!(note(&mut tx, gone.controller, "webhook", b"one", now).await.unwrap());
            tx.commit().await.unwrap();
        }
    }

    async fn a_removed_controller_is_not_found(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        assert!(find(&mut tx, world.clock.new_id()).await.unwrap().is_none());
        assert!(set_secret(&mut tx, world.controller, Some(b"one")).await.unwrap());
        tx.commit().await.unwrap();
        tamper(&db, "UPDATE controller SET revision = revision + 1, deleted_at = created_at").await;
        let mut tx = db.write().await.unwrap();
        assert!(find(&mut tx, world.controller).await.unwrap().is_none());
        assert!(!note(&mut tx, world.controller, "webhook", b"one", world.clock.now()).await.unwrap());
        tx.commit().await.unwrap();
        tamper(&db, "UPDATE controller SET revision = revision + 1, deleted_at = NULL").await;
        tamper(&db, "UPDATE organization SET revision = revision + 1, deleted_at = created_at").await;
        assert!(find(&mut db.read().await.unwrap(), world.controller).await.unwrap().is_none());
    }
}
