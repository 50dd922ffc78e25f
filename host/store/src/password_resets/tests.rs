use chrono::TimeDelta;

use super::*;
use crate::testing::{World, on_both};

fn new(world: &World, token_hash: &str, minutes: i64) -> NewPasswordReset {
    let now = world.clock.now();
    NewPasswordReset {
        token_hash: token_hash.to_owned(),
        user_id: world.user,
        bound_to: "b".to_owned(),
        expires_at: now + TimeDelta::minutes(minutes),
        now,
    }
}

on_both! {
    async fn a_link_is_found_until_it_expires_and_spent_once(db) {
        let world = World::new(&db, "ann").await;
        let now = world.clock.now();
        let mut tx = db.write().await.unwrap();
        insert(&mut tx, &new(&world, "h", 60)).await.unwrap();
        let found = find(&mut tx, "h", now).await.unwrap().unwrap();
        assert_eq!((found.user_id, found.bound_to.as_str()), (world.user, "b"));
        let later = now + TimeDelta::hours(2);
        assert!(find(&mut tx, "h", later).await.unwrap().is_none());
        assert!(take(&mut tx, "h", later).await.unwrap().is_none(), "an expired link cannot be spent");
        assert!(find(&mut tx, "x", now).await.unwrap().is_none());
        assert!(take(&mut tx, "x", now).await.unwrap().is_none());
        assert_eq!(take(&mut tx, "h", now).await.unwrap().unwrap().user_id, world.user);
        assert!(take(&mut tx, "h", now).await.unwrap().is_none());
        assert!(find(&mut tx, "h", now).await.unwrap().is_none());
    }

    async fn of_many_who_spend_a_link_at_once_one_gets_it(db) {
        let world = World::new(&db, "ann").await;
        let now = world.clock.now();
        let mut tx = db.write().await.unwrap();
        insert(&mut tx, &new(&world, "h", 60)).await.unwrap();
        tx.commit().await.unwrap();
        let one = || async {
            let mut tx = db.write().await.unwrap();
            let taken = take(&mut tx, "h", now).await.unwrap();
            tx.commit().await.unwrap();
            usize::from(taken.is_some())
        };
        let (a, b, c, d) = tokio::join!(one(), one(), one(), one());
        assert_eq!(a + b + c + d, 1);
    }

    async fn links_of_one_user_go_together_and_old_ones_in_batches(db) {
        let (ann, bob) = (World::new(&db, "ann").await, World::new(&db, "bob").await);
        let now = ann.clock.now();
        let mut tx = db.write().await.unwrap();
        for (world, hash, minutes) in [(&ann, "a1", 10), (&ann, "a2", 60), (&bob, "b1", 20), (&bob, "b2", 90)] {
            insert(&mut tx, &new(world, hash, minutes)).await.unwrap();
        }
        let before = now + TimeDelta::minutes(70);
        assert_eq!(trim(&mut tx, before, 2).await.unwrap(), 2);
        assert!(find(&mut tx, "a1", now).await.unwrap().is_none() && find(&mut tx, "b1", now).await.unwrap().is_none());
        assert_eq!(remove_all(&mut tx, ann.user).await.unwrap(), 1);
        assert_eq!(trim(&mut tx, before, 2).await.unwrap(), 0);
        assert!(find(&mut tx, "b2", now).await.unwrap().is_some());
    }
}
