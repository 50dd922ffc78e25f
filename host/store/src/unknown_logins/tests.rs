use chrono::TimeDelta;
use heddle_core::Clock;

use super::*;
use crate::testing::on_both;

on_both! {
    async fn a_name_that_nobody_has_locks_like_a_user(db) {
        let mut now = Clock::default().now();
        let mut tx = db.write().await.unwrap();
        assert!(find(&mut tx, "h").await.unwrap().is_none());
        for count in 1..=3 {
            let until = now + TimeDelta::minutes(30);
            let state = record_failed_login(&mut tx, "h", now, 3, until).await.unwrap().unwrap();
            assert_eq!((state.failed_logins, state.locked_until.is_some()), (count, count == 3));
            assert_eq!(find(&mut tx, "h").await.unwrap(), Some(state));
        }
        let until = now + TimeDelta::minutes(60);
        assert_eq!(record_failed_login(&mut tx, "h", now, 3, until).await.unwrap(), None, "a lock is not prolonged");
        assert!(find(&mut tx, "other").await.unwrap().is_none());
        now += TimeDelta::minutes(31);
        let state = record_failed_login(&mut tx, "h", now, 3, now + TimeDelta::minutes(30)).await.unwrap().unwrap();
        assert_eq!((state.failed_logins, state.locked_until), (1, None), "a lock that ran out starts anew");
        assert_eq!(trim(&mut tx, now, 10).await.unwrap(), 0);
        assert_eq!(trim(&mut tx, now + TimeDelta::seconds(1), 10).await.unwrap(), 1);
        assert!(find(&mut tx, "h").await.unwrap().is_none());
    }
}
