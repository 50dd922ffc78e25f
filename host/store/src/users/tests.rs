use chrono::TimeDelta;

use super::*;
use crate::testing::{World, on_both, page};

on_both! {
    async fn a_login_is_found_by_name_or_email_in_any_case(db) {
        let world = World::new(&db, "ann").await;
        let mut tx = db.read().await.unwrap();
        for text in ["ann", "ANN", "Ann@Example.com"] {
            let login = find_by_login(&mut tx, text).await.unwrap().unwrap();
            assert_eq!((login.user.id, login.password_hash.as_str()), (world.user, "$hash"));
        }
        assert!(find_by_login(&mut tx, "an").await.unwrap().is_none());
        assert!(find_login(&mut tx, world.user).await.unwrap().is_some());
    }

    async fn names_differ_in_more_than_case(db) {
        let world = World::new(&db, "ann").await;
        let mut tx = db.write().await.unwrap();
        let mut new = world.new_user(world.clock.new_id(), "ANN");
        new.email = "other@example.com".into();
        let error = insert(&mut tx, &new).await.unwrap_err();
        assert!(error.is_unique("app_user_username"), "{error:?}");
    }

    async fn an_update_keeps_what_it_does_not_name(db) {
        let world = World::new(&db, "ann").await;
        let other = World::new(&db, "bob").await;
        let mut tx = db.write().await.unwrap();
        let now = world.clock.now();
        let change = UserUpdate { full_name: Set::Clear, role: Some(Role::Viewer), ..Default::default() };
        assert_eq!(update(&mut tx, &other.scope(), world.user, &change, now).await.unwrap(), None);
        let user = update(&mut tx, &world.scope(), world.user, &change, now).await.unwrap().unwrap();
        assert_eq!((user.full_name, user.role, user.email.as_str()), (None, Role::Viewer, "ann@example.com"));
        let filter = UserFilter { role: Some(Role::Viewer), is_active: Some(true), search: Some("A_N".into()) };
        assert_eq!(list(&mut tx, &world.scope(), &filter, page()).await.unwrap().1, 0, "_ is literal");
        let filter = UserFilter { search: Some("NN@EX".into()), ..filter };
        assert_eq!(list(&mut tx, &Scope::everything(), &filter, page()).await.unwrap().0[0].id, world.user);
        assert_eq!(count(&mut tx, &world.scope()).await.unwrap(), 1);
        assert_eq!(count(&mut tx, &Scope::everything()).await.unwrap(), 2);
        assert_eq!(find(&mut tx, &other.scope(), world.user).await.unwrap(), None);
        assert!(find(&mut tx, &world.scope(), world.user).await.unwrap().is_some());
    }

    async fn failures_in_a_row_lock_and_a_lock_runs_out(db) {
        let world = World::new(&db, "ann").await;
        let mut tx = db.write().await.unwrap();
        let now = world.clock.now();
        let until = now + TimeDelta::minutes(15);
        let first = record_failed_login(&mut tx, world.user, now, 2, until).await.unwrap().unwrap();
        assert_eq!(first, LoginState { failed_logins: 1, locked_until: None });
        let second = record_failed_login(&mut tx, world.user, now, 2, until).await.unwrap().unwrap();
        assert_eq!(second, LoginState { failed_logins: 2, locked_until: Some(until) });
        let later = until + TimeDelta::seconds(1);
        let third = record_failed_login(&mut tx, world.user, later, 2, later).await.unwrap().unwrap();
        assert_eq!(third, LoginState { failed_logins: 1, locked_until: None });
        assert!(record_login_success(&mut tx, world.user, later).await.unwrap());
        assert_eq!(find_login(&mut tx, world.user).await.unwrap().unwrap().failed_logins, 0);
        assert_eq!(bump_token_version(&mut tx, world.user, now).await.unwrap(), Some(1));
    }
}

#[test]
fn a_user_serializes_without_the_hash() {
    let schema = serde_json::to_string(&schemars::schema_for!(User)).unwrap();
    assert!(!schema.contains("password") && schema.contains("organization_id"));
}
