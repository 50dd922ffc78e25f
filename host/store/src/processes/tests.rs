use chrono::TimeDelta;

use super::*;
use crate::changes::{self, Claim};
use crate::testing::{World, on_both};

async fn start(db: &Db, world: &World) -> (ProcessId, Presence) {
    let id = world.clock.new_id();
    let presence = Presence::take(db, id).await.unwrap();
    let mut tx = db.write().await.unwrap();
    let now = world.clock.now();
    insert(&mut tx, &NewProcess { id, host: "h".into(), pid: 1, version: "1".into(), now }).await.unwrap();
    tx.commit().await.unwrap();
    (id, presence)
}

on_both! {
    async fn who_holds_its_lock_lives_and_who_left_does_not(db) {
        let world = World::new(&db, "a").await;
        let me = world.clock.new_id();
        let (other, presence) = start(&db, &world).await;
        let is_postgres = matches!(db.read().await.unwrap(), Tx::Postgres(_));
        let gone = || async { gone_among(&mut db.read().await.unwrap(), me, vec![me, other]).await.unwrap() };
        if is_postgres {
            assert!(gone().await.is_empty());
            let (_, second) = start(&db, &world).await;
            second.leave().await;
            assert!(gone().await.is_empty());
        } else {
            // One process serves a file: every other process is gone.
            assert_eq!(gone().await, [other]);
            let refused = Presence::take(&db, me).await.unwrap_err();
            assert!(matches!(&refused, Error::Served(lock) if lock.ends_with("test.db.lock")), "{refused:?}");
        }
        presence.leave().await;
        // The server frees the lock of a session a moment after the client has closed it.
        for _ in 0..600 {
            if !gone().await.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(gone().await, [other]);
        Presence::take(&db, me).await.unwrap().leave().await;
    }

    async fn a_session_that_is_ended_is_noticed_at_once(db) {
        let world = World::new(&db, "a").await;
        let (own, mut presence) = start(&db, &world).await;
        assert!(tokio::time::timeout(Duration::from_millis(2500), presence.lost()).await.is_err(), "it lives");
        let ended = match db.write().await.unwrap() {
            Tx::Sqlite(_) => false,
            Tx::Postgres(mut tx) => {
                sqlx::query("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")
                    .execute(&mut *tx)
                    .await
                    .unwrap();
                true
            }
        };
        if ended {
            let other = world.clock.new_id();
            for _ in 0..600 {
                if !gone_among(&mut db.read().await.unwrap(), other, vec![own]).await.unwrap().is_empty() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let lost = tokio::time::timeout(Duration::from_secs(30), presence.lost()).await.unwrap();
            // The look of every second would have found no answer, or no lock.
            let is_told = matches!(&lost, Error::Unavailable(why) if why.to_string() == "the session was ended");
            assert!(is_told, "{lost:?}");
        }
        presence.leave().await;
    }

    async fn who_leaves_gives_up_what_it_owned(db) {
        let world = World::new(&db, "a").await;
        let (id, presence) = start(&db, &world).await;
        let change = world.staged(&db).await;
        let now = world.clock.now();
        let mut tx = db.write().await.unwrap();
        let row = changes::hold(&mut tx, change).await.unwrap().unwrap();
        let claim = changes::claim_apply(&mut tx, &row, id, &world.attempt(), changes::Window::default(), now).await.unwrap();
        assert!(matches!(claim, Claim::Claimed(_)));
        crate::controllers::schedule_now(&mut tx, &world.scope(), world.controller, now).await.unwrap();
        crate::controllers::claim(&mut tx, &[world.controller], id, now).await.unwrap();
        seen(&mut tx, id, now).await.unwrap();
        leave(&mut tx, id, now).await.unwrap();
        let other = world.clock.new_id();
        assert_eq!(changes::orphaned(&mut tx, other).await.unwrap(), Some(vec![]));
        assert_eq!(crate::controllers::claim(&mut tx, &[world.controller], other, now).await.unwrap().len(), 1);
        assert_eq!(trim(&mut tx, now, 10).await.unwrap(), 0);
        assert_eq!(trim(&mut tx, now + TimeDelta::seconds(1), 10).await.unwrap(), 1);
        tx.commit().await.unwrap();
        presence.leave().await;
    }

    async fn a_duty_is_taken_once_in_its_time(db) {
        let world = World::new(&db, "a").await;
        let hour = TimeDelta::hours(1);
        let now = world.clock.now();
        let take = |at| {
            let (db, me) = (db.clone(), world.process);
            async move {
                let mut tx = db.write().await.unwrap();
                let is_mine = take_duty(&mut tx, "sweep", me, at, hour).await.unwrap();
                tx.commit().await.unwrap();
                is_mine
            }
        };
        let (a, b) = tokio::join!(take(now), take(now));
        assert!(a != b, "of two that try one gets it");
        assert!(!take(now + TimeDelta::minutes(59)).await);
        let (a, b) = tokio::join!(take(now + hour), take(now + hour));
        assert!(a != b);
        assert!(take_duty(&mut db.write().await.unwrap(), "other", world.process, now, hour).await.unwrap());
    }
}
