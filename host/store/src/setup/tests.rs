use super::*;
use crate::testing::on_both;

on_both! {
    async fn the_second_setup_finds_the_first(db) {
        let now = heddle_core::Clock::default().now();
        let mut tx = db.write().await.unwrap();
        assert!(!is_completed(&mut tx).await.unwrap());
        assert_eq!(complete(&mut tx, now).await.unwrap(), Completion::Done);
        assert_eq!(complete(&mut tx, now).await.unwrap(), Completion::AlreadyDone);
        assert!(is_completed(&mut tx).await.unwrap());
    }

    async fn of_two_setups_at_once_one_wins(db) {
        let now = heddle_core::Clock::default().now();
        let one = || async {
            let mut tx = db.write().await.unwrap();
            let completion = complete(&mut tx, now).await.unwrap();
            tx.commit().await.unwrap();
            completion
        };
        let (a, b) = tokio::join!(one(), one());
        assert_ne!(a, b);
    }
}
