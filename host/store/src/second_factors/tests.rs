use chrono::TimeDelta;

use super::*;
use crate::object::Object as _;
use crate::select::Scope;
use crate::testing::{World, on_both};
use crate::users::User;

on_both! {
    async fn a_staged_generator_is_replaced_until_it_is_confirmed(db) {
        let world = World::new(&db, "one").await;
        let now = world.clock.now();
        let mut tx = db.write().await.unwrap();
        assert!(find(&mut tx, world.user).await.unwrap().is_none());
        assert!(stage(&mut tx, world.user, b"first", now).await.unwrap());
        assert!(stage(&mut tx, world.user, b"second", now).await.unwrap());
        let staged = find(&mut tx, world.user).await.unwrap().unwrap();
        assert_eq!((staged.secret.as_slice(), staged.confirmed_at), (&b"second"[..], None));
        assert!(confirm(&mut tx, world.user, now).await.unwrap());
        assert!(!confirm(&mut tx, world.user, now).await.unwrap(), "it is confirmed once");
        assert!(!stage(&mut tx, world.user, b"third", now).await.unwrap(), "a confirmed one stays");
        assert_eq!(find(&mut tx, world.user).await.unwrap().unwrap().secret, b"second");
        let user = User::find(&mut tx, &Scope::everything(), world.user).await.unwrap().unwrap();
        assert!(user.mfa_enabled);
        assert!(remove(&mut tx, world.user, now).await.unwrap());
        assert!(!remove(&mut tx, world.user, now).await.unwrap());
        let user = User::find(&mut tx, &Scope::everything(), world.user).await.unwrap().unwrap();
        assert!(!user.mfa_enabled);
    }

    async fn a_step_is_spent_once_and_none_before_it_afterwards(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        assert!(!spend_step(&mut tx, world.user, 7).await.unwrap(), "there is no generator");
        stage(&mut tx, world.user, b"s", world.clock.now()).await.unwrap();
        assert!(spend_step(&mut tx, world.user, 7).await.unwrap());
        for (step, is_spent) in [(7, false), (6, false), (8, true), (8, false)] {
            assert_eq!(spend_step(&mut tx, world.user, step).await.unwrap(), is_spent, "{step}");
        }
    }

    async fn a_backup_code_is_spent_once_and_only_by_its_user(db) {
        let (one, two) = (World::new(&db, "one").await, World::new(&db, "two").await);
        let now = one.clock.now();
        let mut tx = db.write().await.unwrap();
        let hashes = ["a".to_owned(), "b".to_owned()];
        replace_backup_codes(&mut tx, one.user, &hashes, now).await.unwrap();
        assert!(!spend_backup_code(&mut tx, two.user, "a", now).await.unwrap());
        assert!(spend_backup_code(&mut tx, one.user, "a", now).await.unwrap());
        assert!(!spend_backup_code(&mut tx, one.user, "a", now + TimeDelta::hours(1)).await.unwrap());
        assert_eq!(backup_codes_left(&mut tx, one.user).await.unwrap(), 1);
        replace_backup_codes(&mut tx, one.user, &["c".to_owned()], now).await.unwrap();
        assert!(!spend_backup_code(&mut tx, one.user, "b", now).await.unwrap(), "it was replaced");
        assert_eq!(backup_codes_left(&mut tx, one.user).await.unwrap(), 1);
    }
}
