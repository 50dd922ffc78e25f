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
        let filter = UserFilter { role: Some(Role::Viewer), is_active: Some(true), search: Some("A_N".into()), org_id: None };
        assert_eq!(list(&mut tx, &world.scope(), &filter, page()).await.unwrap().1, 0, "_ is literal");
        let filter = UserFilter { search: Some("NN@EX".into()), ..filter };
        assert_eq!(list(&mut tx, &Scope::everything(), &filter, page()).await.unwrap().0[0].id, world.user);
        assert_eq!(count(&mut tx, &world.scope()).await.unwrap(), 1);
        assert_eq!(count(&mut tx, &Scope::everything()).await.unwrap(), 2);
        assert_eq!(User::find(&mut tx, &other.scope(), world.user).await.unwrap(), None);
        assert!(User::find(&mut tx, &world.scope(), world.user).await.unwrap().is_some());
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
        assert_eq!(record_failed_login(&mut tx, world.user, now, 2, until).await.unwrap(), None, "it is locked");
        assert!(!rehash(&mut tx, world.user, "$other", "$x").await.unwrap());
        let hash = lock_login(&mut tx, world.user).await.unwrap().unwrap().password_hash;
        assert!(rehash(&mut tx, world.user, &hash, "$again").await.unwrap());
        let login = find_login(&mut tx, world.user).await.unwrap().unwrap();
        assert_eq!((login.password_hash.as_str(), login.failed_logins), ("$again", 2), "no counter moves");
        let later = until + TimeDelta::seconds(1);
        let third = record_failed_login(&mut tx, world.user, later, 2, later).await.unwrap().unwrap();
        assert_eq!(third, LoginState { failed_logins: 1, locked_until: None });
        assert!(record_login_success(&mut tx, world.user, later).await.unwrap());
        assert_eq!(find_login(&mut tx, world.user).await.unwrap().unwrap().failed_logins, 0);
        assert_eq!(bump_token_version(&mut tx, world.user, now).await.unwrap(), Some(1));
    }

    async fn a_removed_users_names_are_free_and_their_tokens_worthless(db) {
        let world = World::new(&db, "ann").await;
        let other = World::new(&db, "bob").await;
        let (scope, now) = (world.scope(), world.clock.now());
        let mut tx = db.write().await.unwrap();
        assert!(!User::remove(&mut tx, &other.scope(), world.user, now).await.unwrap());
        assert_eq!(User::find_removed(&mut tx, &scope, world.user).await.unwrap(), None);
        assert!(User::remove(&mut tx, &scope, world.user, now).await.unwrap());
        assert!(!User::remove(&mut tx, &scope, world.user, now).await.unwrap());
        assert_eq!(User::find(&mut tx, &scope, world.user).await.unwrap(), None);
        assert_eq!(User::find_removed(&mut tx, &other.scope(), world.user).await.unwrap(), None);
        let gone = User::find_removed(&mut tx, &scope, world.user).await.unwrap().unwrap();
        assert_eq!((gone.token_version, gone.deleted_at), (1, Some(now)));
        assert_eq!(User::restore(&mut tx, &other.scope(), world.user, now).await.unwrap(), None);
        let back = User::restore(&mut tx, &scope, world.user, now).await.unwrap().unwrap();
        assert_eq!((back.token_version, back.deleted_at), (1, None));
        assert_eq!(User::restore(&mut tx, &scope, world.user, now).await.unwrap(), None, "nothing to bring back");
        assert!(User::remove(&mut tx, &scope, world.user, now).await.unwrap());
        let mut new = world.new_user(world.clock.new_id(), "ANN");
        new.email = "other@example.com".into();
        insert(&mut tx, &new).await.unwrap();
        let error = User::restore(&mut tx, &scope, world.user, now).await.unwrap_err();
        assert!(error.is_unique("app_user_username"), "{error:?}");
    }

    async fn an_email_that_was_taken_keeps_its_former_user_away(db) {
        let world = World::new(&db, "ann").await;
        let (scope, now) = (world.scope(), world.clock.now());
        let mut tx = db.write().await.unwrap();
        assert!(User::remove(&mut tx, &scope, world.user, now).await.unwrap());
        let mut new = world.new_user(world.clock.new_id(), "eve");
        new.email = "Ann@example.com".into();
        insert(&mut tx, &new).await.unwrap();
        let error = User::restore(&mut tx, &scope, world.user, now).await.unwrap_err();
        assert!(error.is_unique("app_user_email"), "{error:?}");
    }

    async fn other_admins_are_active_and_of_the_organization(db) {
        let world = World::new(&db, "ann").await;
        World::new(&db, "bob").await;
        let now = world.clock.now();
        let mut tx = db.write().await.unwrap();
        assert_eq!(other_admins(&mut tx, world.org, world.user).await.unwrap(), 0);
        for (name, role, expected) in [("viewer", Role::SiteAdmin, 0), ("admin", Role::OrgAdmin, 1), ("root", Role::SuperAdmin, 2)] {
            let new = NewUser { role, ..world.new_user(world.clock.new_id(), name) };
            insert(&mut tx, &new).await.unwrap();
            assert_eq!(other_admins(&mut tx, world.org, world.user).await.unwrap(), expected, "{name}");
            if name == "root" {
                let off = UserUpdate { is_active: Some(false), ..Default::default() };
                update(&mut tx, &world.scope(), new.id, &off, now).await.unwrap().unwrap();
                assert_eq!(other_admins(&mut tx, world.org, world.user).await.unwrap(), 1);
            }
        }
    }

    async fn users_are_found_by_ids_and_by_organization(db) {
        let (a, b) = (World::new(&db, "ann").await, World::new(&db, "bob").await);
        let mut tx = db.read().await.unwrap();
        let ids = [a.user, b.user, a.clock.new_id()];
        let found = find_all(&mut tx, &a.scope(), &ids).await.unwrap();
        assert_eq!(found.iter().map(|user| user.id).collect::<Vec<_>>(), [a.user]);
        assert_eq!(find_all(&mut tx, &Scope::everything(), &ids).await.unwrap().len(), 2);
        assert!(find_all(&mut tx, &a.scope(), &[]).await.unwrap().is_empty());
        let of = |org| UserFilter { org_id: Some(org), ..Default::default() };
        let (users, total) = list(&mut tx, &Scope::everything(), &of(b.org), page()).await.unwrap();
        assert_eq!((users[0].id, total), (b.user, 1));
        assert_eq!(list(&mut tx, &a.scope(), &of(b.org), page()).await.unwrap().1, 0);
    }

    async fn a_new_password_lifts_a_lock(db) {
        let world = World::new(&db, "ann").await;
        let mut tx = db.write().await.unwrap();
        let now = world.clock.now();
        record_failed_login(&mut tx, world.user, now, 1, now + TimeDelta::minutes(15)).await.unwrap();
        let rename = UserUpdate { full_name: Set::To("Ann".into()), ..Default::default() };
        let user = update(&mut tx, &world.scope(), world.user, &rename, now).await.unwrap().unwrap();
        assert!(user.locked_until.is_some(), "another change does not");
        let reset = UserUpdate { password_hash: Some("$new".into()), ..Default::default() };
        let user = update(&mut tx, &world.scope(), world.user, &reset, now).await.unwrap().unwrap();
        assert_eq!(user.locked_until, None);
        let login = find_login(&mut tx, world.user).await.unwrap().unwrap();
        assert_eq!((login.failed_logins, login.password_hash.as_str()), (0, "$new"));
    }
}

#[test]
fn a_user_serializes_without_the_hash() {
    let schema = serde_json::to_string(&schemars::schema_for!(User)).unwrap();
    assert!(!schema.contains("password") && schema.contains("organization_id"));
}
