use chrono::TimeDelta;

use super::*;
use crate::testing::{World, on_both};

on_both! {
    async fn a_key_is_kept_once_per_user_and_forgotten_with_time(db) {
        let (one, two) = (World::new(&db, "one").await, World::new(&db, "two").await);
        let now = one.clock.now();
        let kept = |world: &World, at| Kept {
            user_id: world.user,
            idempotency_key: "k-1".to_owned(),
            route: "POST /sites".to_owned(),
            request_hash: "h".to_owned(),
            tag: "\"0a\"".to_owned(),
            location: "/sites/1".to_owned(),
            response: vec![1, 2],
            created_at: at,
        };
        let mut tx = db.write().await.unwrap();
        insert(&mut tx, &kept(&one, now)).await.unwrap();
        insert(&mut tx, &kept(&two, now + TimeDelta::hours(1))).await.unwrap();
        tx.commit().await.unwrap();
        let mut tx = db.write().await.unwrap();
        let error = insert(&mut tx, &kept(&one, now)).await.unwrap_err();
        assert!(error.is_unique("idempotency_pkey"), "{error:?}");
        drop(tx);
        let mut tx = db.write().await.unwrap();
        let found = find(&mut tx, one.user, "k-1").await.unwrap().unwrap();
        assert_eq!((found.response, found.created_at), (vec![1, 2], now));
        assert!(find(&mut tx, one.user, "k-2").await.unwrap().is_none());
        assert_eq!(trim(&mut tx, now + TimeDelta::minutes(1), 10).await.unwrap(), 1);
        assert!(find(&mut tx, one.user, "k-1").await.unwrap().is_none());
        let at = now + TimeDelta::hours(1);
        assert!(!forget_one(&mut tx, two.user, "k-1", now).await.unwrap(), "it was kept anew");
        assert!(forget_one(&mut tx, two.user, "k-1", at).await.unwrap());
        assert!(!forget_one(&mut tx, two.user, "k-1", at).await.unwrap());
    }
}
