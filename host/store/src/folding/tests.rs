use heddle_core::Clock;

use super::*;
use crate::object::Object as _;
use crate::select::Scope;
use crate::testing::{World, on_both, tamper};
use crate::users;
use crate::users::User;

/// The tables as they were before the migration, as far as it goes.
const BEFORE: &str = "
    DROP INDEX app_user_username; DROP INDEX app_user_email; DROP INDEX app_user_unfolded;
    ALTER TABLE app_user DROP COLUMN username_folded; ALTER TABLE app_user DROP COLUMN email_folded;
    CREATE UNIQUE INDEX app_user_username ON app_user (LOWER(username)) WHERE deleted_at IS NULL;
    CREATE UNIQUE INDEX app_user_email ON app_user (LOWER(email)) WHERE deleted_at IS NULL;
    DROP TABLE spent_challenge;
    DELETE FROM _sqlx_migrations WHERE version IN (21, 22)";

async fn user(db: &Db, world: &World, username: &str, email: &str) -> heddle_core::UserId {
    let mut new = world.new_user(world.clock.new_id(), "x");
    (new.username, new.email) = (username.to_owned(), email.to_owned());
    let mut tx = db.write().await.unwrap();
    let user = users::insert(&mut tx, &new).await.unwrap();
    tx.commit().await.unwrap();
    user.id
}

async fn found(db: &Db, login: &str) -> Option<heddle_core::UserId> {
    let mut tx = db.read().await.unwrap();
    users::find_by_login(&mut tx, login).await.unwrap().map(|login| login.user.id)
}

on_both! {
    async fn users_of_before_log_in_by_any_spelling(db) {
        let world = World::new(&db, "one").await;
        let eve = user(&db, &world, "Éve", "Éve@example.org").await;
        let gone = user(&db, &world, "Straße", "s@example.org").await;
        let mut tx = db.write().await.unwrap();
        User::remove(&mut tx, &Scope::everything(), gone, Clock::default().now()).await.unwrap();
        tx.commit().await.unwrap();
        tamper(&db, BEFORE).await;
        db.migrate_again().await.unwrap();
        for login in ["éve", "ÉVE", "e\u{301}ve", "E\u{301}VE@EXAMPLE.ORG"] {
            assert_eq!(found(&db, login).await, Some(eve), "{login}");
        }
        assert_eq!(found(&db, "strasse").await, None, "a removed user has no login");
        // The name of a removed user is free, and taken again where it is the same.
        let other = user(&db, &world, "STRASSE", "t@example.org").await;
        assert_eq!(found(&db, "straße").await, Some(other));
        let mut tx = db.write().await.unwrap();
        let restored = User::restore(&mut tx, &Scope::everything(), gone, Clock::default().now()).await;
        assert!(restored.unwrap_err().is_unique("app_user_username"));
    }

    async fn users_that_would_be_the_same_are_named_and_nothing_is_changed(db) {
        let world = World::new(&db, "one").await;
        let one = user(&db, &world, "alpha", "straße@example.org").await;
        let two = user(&db, &world, "beta", "free@example.org").await;
        tamper(&db, BEFORE).await;
        // No database finds these to be the same.
        tamper(&db, "UPDATE app_user SET email = 'STRASSE@example.org' WHERE username = 'beta'").await;
        let refused = db.migrate_again().await.unwrap_err();
        let Error::SameNames(named) = &refused else { panic!("{refused:?}") };
        assert!(named.contains(&one.to_string()) && named.contains(&two.to_string()), "{named}");
        // Ids of one millisecond have no order, so either user may be named first.
        assert!(named.starts_with("email '") && named.contains("'STRASSE@example.org'"), "{named}");
        assert!(db.schema().await.unwrap().pending > 0, "the tables are as they were");
        tamper(&db, "UPDATE app_user SET email = 'other@example.org' WHERE username = 'beta'").await;
        db.migrate_again().await.unwrap();
        assert_eq!(found(&db, "Strasse@Example.org").await, Some(one));
        assert!(db.schema().await.unwrap().is_current());
    }

    async fn a_start_that_was_killed_is_taken_up_by_the_next(db) {
        let world = World::new(&db, "one").await;
        let ids = [user(&db, &world, "Ümit", "u@example.org").await, user(&db, &world, "bob", "b@example.org").await];
        tamper(&db, "UPDATE app_user SET username_folded = NULL, email_folded = NULL").await;
        assert_eq!(found(&db, "bob").await, None);
        fill_in(&db).await.unwrap();
        assert_eq!([found(&db, "ÜMIT").await, found(&db, "BOB").await], ids.map(Some));
    }
}
