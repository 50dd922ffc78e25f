use chrono::TimeDelta;
use heddle_core::Role;

use super::*;
use crate::object::Object as _;
use crate::organizations::Organization;
use crate::select::SiteScope;
use crate::testing::{World, on_both, page};

async fn login(tx: &mut Tx, world: &World, hash: &str) -> Session {
    let now = world.clock.now();
    let new = NewSession {
        id: world.clock.new_id(),
        user_id: world.user,
        refresh_hash: hash.into(),
        token_version: 0,
        ip: "192.0.2.1".into(),
        user_agent: "test".into(),
        expires_at: now + TimeDelta::days(1),
        now,
    };
    insert(tx, &new).await.unwrap()
}

on_both! {
    async fn a_spent_hash_is_told_from_the_current_one(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let session = login(&mut tx, &world, "h1").await;
        let now = world.clock.now();
        assert!(matches!(rotate(&mut tx, "h1", "h2", now).await.unwrap(), Rotation::Rotated(_)));
        assert_eq!(rotate(&mut tx, "h1", "h3", now).await.unwrap(), Rotation::Lost);
        let spent = find_by_refresh_hash(&mut tx, "h1").await.unwrap().unwrap();
        assert_eq!((spent.matched, spent.session.id), (Matched::Spent(now), session.id));
        assert_eq!(find_by_refresh_hash(&mut tx, "h2").await.unwrap().unwrap().matched, Matched::Current);
        assert!(find_by_refresh_hash(&mut tx, "h3").await.unwrap().is_none());
    }

    async fn a_hash_spent_long_ago_is_known_until_it_is_forgotten(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        login(&mut tx, &world, "h1").await;
        let (first, second) = (world.clock.now(), world.clock.now() + TimeDelta::minutes(30));
        rotate(&mut tx, "h1", "h2", first).await.unwrap();
        rotate(&mut tx, "h2", "h3", second).await.unwrap();
        let spent = find_by_refresh_hash(&mut tx, "h1").await.unwrap().unwrap();
        assert_eq!(spent.matched, Matched::Spent(first));
        assert_eq!(forget_spent(&mut tx, second).await.unwrap(), 1);
        assert!(find_by_refresh_hash(&mut tx, "h1").await.unwrap().is_none());
        assert!(find_by_refresh_hash(&mut tx, "h2").await.unwrap().is_some());
    }

    async fn sessions_that_expired_long_ago_are_forgotten_with_what_they_spent(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let now = world.clock.now();
        for hash in ["h1", "k1", "m1"] {
            login(&mut tx, &world, hash).await;
        }
        rotate(&mut tx, "h1", "h2", now).await.unwrap();
        assert_eq!(trim(&mut tx, now, 10).await.unwrap(), 0);
        assert_eq!(trim_spent(&mut tx, now, 10).await.unwrap(), 0);
        assert_eq!(trim(&mut tx, now + TimeDelta::days(2), 2).await.unwrap(), 2, "no more than asked for");
        assert_eq!(trim(&mut tx, now + TimeDelta::days(2), 10).await.unwrap(), 1);
        assert!(find_by_refresh_hash(&mut tx, "h1").await.unwrap().is_none());
        assert!(find_by_refresh_hash(&mut tx, "h2").await.unwrap().is_none());
        login(&mut tx, &world, "n1").await;
        rotate(&mut tx, "n1", "n2", now).await.unwrap();
        assert_eq!(trim_spent(&mut tx, now + TimeDelta::days(2), 10).await.unwrap(), 1);
        assert!(find_by_refresh_hash(&mut tx, "n2").await.unwrap().is_some());
    }

    async fn of_two_rotations_at_once_one_wins(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        login(&mut tx, &world, "h1").await;
        tx.commit().await.unwrap();
        let one = |hash| {
            let (db, now) = (db.clone(), world.clock.now());
            async move {
                let mut tx = db.write().await.unwrap();
                let rotation = rotate(&mut tx, "h1", hash, now).await.unwrap();
                tx.commit().await.unwrap();
                rotation
            }
        };
        let (a, b) = tokio::join!(one("h2"), one("h3"));
        assert_eq!([a, b].iter().filter(|rotation| **rotation == Rotation::Lost).count(), 1);
    }

    async fn a_revoked_session_is_not_active(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let session = login(&mut tx, &world, "h1").await;
        login(&mut tx, &world, "h2").await;
        let now = world.clock.now();
        assert_eq!(list_active(&mut tx, world.user, now, page()).await.unwrap().1, 2);
        assert!(revoke(&mut tx, world.user, session.id, now).await.unwrap());
        assert!(!revoke(&mut tx, world.user, session.id, now).await.unwrap());
        assert_eq!(list_active(&mut tx, world.user, now, page()).await.unwrap().1, 1);
        assert_eq!(list_active(&mut tx, world.user, now + TimeDelta::days(2), page()).await.unwrap().1, 0);
        assert_eq!(revoke_all(&mut tx, world.user, now).await.unwrap(), 1);
        assert_eq!(rotate(&mut tx, "h2", "h3", now).await.unwrap(), Rotation::Lost);
    }

    async fn an_ended_session_is_not_extended(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let session = login(&mut tx, &world, "h1").await;
        let (now, later) = (world.clock.now(), world.clock.now() + TimeDelta::days(7));
        assert!(extend(&mut tx, session.id, later).await.unwrap());
        let extended = find_by_refresh_hash(&mut tx, "h1").await.unwrap().unwrap();
        assert_eq!(extended.session.expires_at, later);
        assert!(revoke(&mut tx, world.user, session.id, now).await.unwrap());
        assert!(!extend(&mut tx, session.id, later).await.unwrap());
    }

    async fn a_caller_comes_with_their_grants(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let session = login(&mut tx, &world, "h1").await;
        let caller = authenticate(&mut tx, world.user, session.id).await.unwrap().unwrap().user;
        assert_eq!((caller.org_id, caller.role, caller.is_active), (world.org, Role::OrgAdmin, true));
        assert_eq!(caller.sites(), SiteScope::All);
        let grant = crate::grants::NewGrant { user_id: world.user, site_id: world.site, level: heddle_core::SiteLevel::Read, granted_by: world.user, now: world.clock.now() };
        crate::grants::insert(&mut tx, &grant).await.unwrap();
        let caller = authenticate(&mut tx, world.user, session.id).await.unwrap().unwrap().user;
        assert_eq!(caller.sites(), SiteScope::Only(vec![world.site]));
        assert!(authenticate(&mut tx, world.clock.new_id(), session.id).await.unwrap().is_none());
        Organization::remove(&mut tx, &world.scope(), world.org, world.clock.now()).await.unwrap();
        assert!(authenticate(&mut tx, world.user, session.id).await.unwrap().is_none());
    }

    async fn a_proof_of_a_first_factor_is_spent_once(db) {
        let world = World::new(&db, "one").await;
        let (id, now) = (world.clock.new_id::<Uuid>(), world.clock.now());
        let mut tx = db.write().await.unwrap();
        assert!(spend_challenge(&mut tx, id, now).await.unwrap());
        assert!(!spend_challenge(&mut tx, id, now).await.unwrap());
        assert_eq!(trim_challenges(&mut tx, now, 10).await.unwrap(), 0);
        assert_eq!(trim_challenges(&mut tx, now + TimeDelta::seconds(1), 10).await.unwrap(), 1);
        assert!(spend_challenge(&mut tx, id, now).await.unwrap());
    }

    async fn an_organization_loses_all_its_sessions_and_another_none(db) {
        let (world, other) = (World::new(&db, "one").await, World::new(&db, "two").await);
        let mut tx = db.write().await.unwrap();
        login(&mut tx, &world, "h1").await;
        login(&mut tx, &other, "h2").await;
        let now = world.clock.now();
        assert_eq!(revoke_all_of(&mut tx, world.org, now).await.unwrap(), 1);
        assert_eq!(crate::users::bump_token_versions(&mut tx, world.org, now).await.unwrap(), 1);
        assert_eq!(list_active(&mut tx, world.user, now, page()).await.unwrap().1, 0);
        assert_eq!(list_active(&mut tx, other.user, now, page()).await.unwrap().1, 1);
        let versions = [world.user, other.user].map(|user| (user, i64::from(user == world.user)));
        for (user, version) in versions {
            let found = crate::users::find_login(&mut tx, user).await.unwrap().unwrap();
            assert_eq!(found.token_version, version);
        }
    }
}
