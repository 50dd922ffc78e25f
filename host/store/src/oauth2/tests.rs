use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_core::oauth2::{ClientType, TokenKind};

use super::*;
use crate::db::{Db, Tx};
use crate::oauth2::{OauthAppId, OauthGrantId};
use crate::object::Object as _;
use crate::organizations::Organization;
use crate::select::{Scope, SiteScope};
use crate::testing::{World, on_both, page};
use crate::users::User;

fn app(world: &World, name: &str) -> NewApp {
    NewApp {
        id: world.clock.new_id(),
        org_id: world.org,
        owner_id: world.user,
        name: name.to_owned(),
        description: Some("reads devices".to_owned()),
        client_type: ClientType::Confidential,
        secret_hash: Some("secret".to_owned()),
        redirect_uris: vec!["https://app.example/cb".to_owned()],
        scopes: vec!["device:*".to_owned()],
        now: world.clock.now(),
    }
}

fn grant(world: &World, app: OauthAppId, code: &str) -> NewGrant {
    let now = world.clock.now();
    NewGrant {
        id: world.clock.new_id(),
        app_id: app,
        user_id: world.user,
        scopes: vec!["device:read".to_owned()],
        token_version: 0,
        code_hash: code.to_owned(),
        code_challenge: "challenge".to_owned(),
        redirect_uri: "https://app.example/cb".to_owned(),
        code_expires_at: now + TimeDelta::seconds(60),
        now,
    }
}

async fn give(tx: &mut Tx, grant: OauthGrantId, kind: TokenKind, hash: &str, now: Timestamp) {
    let new = NewToken {
        hash: hash.to_owned(),
        grant_id: grant,
        kind,
        scopes: vec!["device:read".to_owned()],
        expires_at: now + TimeDelta::minutes(30),
        now,
    };
    insert_token(tx, &new).await.unwrap();
}

/// An app with a grant whose code was spent, and one token of each kind: `access` and `refresh`.
async fn granted(db: &Db, world: &World) -> (OauthApp, OauthGrantId) {
    let mut tx = db.write().await.unwrap();
    let registered = insert(&mut tx, &app(world, "Reader")).await.unwrap();
    let new = grant(world, registered.id, "code");
    insert_grant(&mut tx, &new).await.unwrap();
    assert!(spend_code(&mut tx, new.id, new.now + TimeDelta::days(7), new.now).await.unwrap());
    give(&mut tx, new.id, TokenKind::Access, "access", new.now).await;
    give(&mut tx, new.id, TokenKind::Refresh, "refresh", new.now).await;
    tx.commit().await.unwrap();
    (registered, new.id)
}

on_both! {
    async fn an_app_is_seen_by_its_owner_and_its_organization(db) {
        let (world, other) = (World::new(&db, "one").await, World::new(&db, "two").await);
        let mut tx = db.write().await.unwrap();
        let made = insert(&mut tx, &app(&world, "Reader")).await.unwrap();
        assert_eq!((made.scopes.as_slice(), made.secret_rotated_at), (&["device:*".to_owned()][..], Some(made.created_at)));
        insert(&mut tx, &app(&other, "Reader")).await.unwrap();
        for (scope, owner, is_seen) in [
            (world.scope(), None, true),
            (world.scope(), Some(world.user), true),
            (world.scope(), Some(other.user), false),
            (other.scope(), None, false),
            (Scope::everything(), None, true),
        ] {
            assert_eq!(find(&mut tx, &scope, owner, made.id).await.unwrap().is_some(), is_seen);
            assert_eq!(lock(&mut tx, &scope, owner, made.id).await.unwrap().is_some(), is_seen);
        }
        let (listed, total) = list(&mut tx, &world.scope(), Some(world.user), Some("READ"), page()).await.unwrap();
        assert_eq!((listed, total), (vec![made.clone()], 1));
        assert_eq!(list(&mut tx, &Scope::everything(), None, None, page()).await.unwrap().1, 2);
        assert_eq!(list(&mut tx, &world.scope(), None, Some("%"), page()).await.unwrap().1, 0);
        assert_eq!(count_of(&mut tx, world.user).await.unwrap(), 1);
    }

    async fn an_app_is_changed_and_removed_for_good(db) {
        let world = World::new(&db, "one").await;
        let (made, grant) = granted(&db, &world).await;
        let now = world.clock.now();
        let mut tx = db.write().await.unwrap();
        let change = AppUpdate {
            name: Some("Writer".to_owned()),
            description: crate::select::Set::Clear,
            redirect_uris: Some(vec!["https://b.example/".to_owned()]),
            scopes: Some(vec!["site:read".to_owned()]),
        };
        let changed = update(&mut tx, made.id, &change, now).await.unwrap().unwrap();
        assert_eq!((changed.name.as_str(), changed.description), ("Writer", None));
        assert_eq!((changed.redirect_uris, changed.scopes), (vec!["https://b.example/".to_owned()], vec!["site:read".to_owned()]));
        let kept = update(&mut tx, made.id, &AppUpdate::default(), now).await.unwrap().unwrap();
        assert_eq!((kept.name.as_str(), kept.scopes), ("Writer", vec!["site:read".to_owned()]));
        let rotated = rotate_secret(&mut tx, made.id, "other", now).await.unwrap().unwrap();
        assert_eq!(rotated.secret_rotated_at, Some(now));
        let registered = find_registered(&mut tx, made.id).await.unwrap().unwrap();
        assert_eq!((registered.secret_hash.as_deref(), registered.org_name.as_str()), (Some("other"), "one"));
        assert!(OauthApp::remove(&mut tx, &world.scope(), made.id, now).await.unwrap());
        assert_eq!(end_grants(&mut tx, made.id, now).await.unwrap(), 1);
        assert!(find_registered(&mut tx, made.id).await.unwrap().is_none());
        assert!(find(&mut tx, &world.scope(), None, made.id).await.unwrap().is_none());
        assert!(update(&mut tx, made.id, &change, now).await.unwrap().is_none());
        assert!(rotate_secret(&mut tx, made.id, "x", now).await.unwrap().is_none());
        assert_eq!(count_of(&mut tx, world.user).await.unwrap(), 0);
        assert!(find_own(&mut tx, world.user, grant, now).await.unwrap().is_none());
        assert!(present(&mut tx, "access", now).await.unwrap().is_none());
    }

    async fn a_public_app_has_no_secret_to_rotate(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let new = NewApp { client_type: ClientType::Public, secret_hash: None, ..app(&world, "Native") };
        let made = insert(&mut tx, &new).await.unwrap();
        assert_eq!((made.client_type, made.secret_rotated_at), (ClientType::Public, None));
        assert!(rotate_secret(&mut tx, made.id, "x", new.now).await.unwrap().is_none());
    }

    async fn an_app_of_a_removed_organization_is_not_registered(db) {
        let world = World::new(&db, "one").await;
        let (made, _) = granted(&db, &world).await;
        let now = world.clock.now();
        let mut tx = db.write().await.unwrap();
        Organization::remove(&mut tx, &Scope::everything(), world.org, now).await.unwrap();
        assert!(find_registered(&mut tx, made.id).await.unwrap().is_none());
        assert!(present(&mut tx, "access", now).await.unwrap().is_none());
    }

    async fn a_code_is_spent_once_and_not_when_it_expired(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let made = insert(&mut tx, &app(&world, "Reader")).await.unwrap();
        let (one, late, gone) =
            (grant(&world, made.id, "one"), grant(&world, made.id, "late"), grant(&world, made.id, "gone"));
        for new in [&one, &late, &gone] {
            insert_grant(&mut tx, new).await.unwrap();
        }
        let (now, until) = (one.now, one.now + TimeDelta::days(7));
        let found = lock_by_code(&mut tx, "one").await.unwrap().unwrap();
        assert_eq!((found.id, found.app_id, found.org_id, found.user_id), (one.id, made.id, world.org, world.user));
        assert_eq!((found.code_spent_at, found.revoked_at, found.token_version), (None, None, 0));
        assert!(lock_by_code(&mut tx, "none").await.unwrap().is_none());
        assert!(find_own(&mut tx, world.user, one.id, now).await.unwrap().is_none(), "not in effect yet");
        assert!(spend_code(&mut tx, one.id, until, now).await.unwrap());
        assert!(!spend_code(&mut tx, one.id, until, now).await.unwrap());
        assert!(!spend_code(&mut tx, late.id, until, late.code_expires_at).await.unwrap());
        assert!(revoke(&mut tx, gone.id, now).await.unwrap());
        assert!(!spend_code(&mut tx, gone.id, until, now).await.unwrap());
        assert_eq!(lock_by_code(&mut tx, "one").await.unwrap().unwrap().code_spent_at, Some(now));
        let (own, total) = list_own(&mut tx, world.user, now, page()).await.unwrap();
        assert_eq!((own[0].app_name.as_str(), own[0].expires_at, total), ("Reader", until, 1));
    }

    async fn of_many_that_spend_a_code_at_once_one_does(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let made = insert(&mut tx, &app(&world, "Reader")).await.unwrap();
        let new = grant(&world, made.id, "code");
        insert_grant(&mut tx, &new).await.unwrap();
        tx.commit().await.unwrap();
        let spend = || async {
            let mut tx = db.write().await.unwrap();
            lock_by_code(&mut tx, "code").await.unwrap().unwrap();
            let is_spent = spend_code(&mut tx, new.id, new.now + TimeDelta::days(1), new.now).await.unwrap();
            tx.commit().await.unwrap();
            is_spent
        };
        let (a, b, c) = tokio::join!(spend(), spend(), spend());
        assert_eq!([a, b, c].iter().filter(|is_spent| **is_spent).count(), 1);
    }

    async fn a_grant_is_its_users_and_ends_with_all_tokens(db) {
        let (world, other) = (World::new(&db, "one").await, World::new(&db, "two").await);
        let (_, grant) = granted(&db, &world).await;
        let now = world.clock.now();
        let mut tx = db.write().await.unwrap();
        assert!(find_own(&mut tx, world.user, grant, now).await.unwrap().is_some());
        assert!(lock_own(&mut tx, world.user, grant, now).await.unwrap().is_some());
        assert!(lock_own(&mut tx, other.user, grant, now).await.unwrap().is_none());
        record_use(&mut tx, grant, None, now + TimeDelta::seconds(5)).await.unwrap();
        let used = find_own(&mut tx, world.user, grant, now).await.unwrap().unwrap();
        assert_eq!(used.last_used_at, now + TimeDelta::seconds(5));
        record_use(&mut tx, grant, Some(now + TimeDelta::days(9)), now).await.unwrap();
        let used = find_own(&mut tx, world.user, grant, now).await.unwrap().unwrap();
        assert_eq!(used.expires_at, now + TimeDelta::days(9));
        assert!(find_own(&mut tx, world.user, grant, now + TimeDelta::days(9)).await.unwrap().is_none());
        let found = present(&mut tx, "access", now).await.unwrap().unwrap();
        assert_eq!((found.grant_id, found.user.id, found.user.sites()), (grant, world.user, SiteScope::All));
        assert_eq!((found.scopes, found.app_scopes), (vec!["device:read".to_owned()], vec!["device:*".to_owned()]));
        assert!(revoke(&mut tx, grant, now).await.unwrap());
        assert!(!revoke(&mut tx, grant, now).await.unwrap());
        assert!(present(&mut tx, "access", now).await.unwrap().is_none());
        assert!(find_own(&mut tx, world.user, grant, now).await.unwrap().is_none());
    }

    async fn a_token_is_good_for_its_kind_and_time_and_user(db) {
        let world = World::new(&db, "one").await;
        let (_, grant) = granted(&db, &world).await;
        let now = world.clock.now();
        let mut tx = db.write().await.unwrap();
        assert!(present(&mut tx, "refresh", now).await.unwrap().is_none(), "a refresh token calls nothing");
        assert!(present(&mut tx, "access", now + TimeDelta::minutes(31)).await.unwrap().is_none());
        let found = lock_token(&mut tx, "refresh").await.unwrap().unwrap();
        assert_eq!((found.kind, found.grant.id, found.ended_at), (TokenKind::Refresh, grant, None));
        assert!(end(&mut tx, "refresh", now).await.unwrap());
        assert!(!end(&mut tx, "refresh", now).await.unwrap());
        let spent = find_token(&mut tx, "refresh").await.unwrap().unwrap();
        assert_eq!((spent.ended_at, spent.token_scopes), (Some(now), vec!["device:read".to_owned()]));
        assert!(find_token(&mut tx, "none").await.unwrap().is_none());
        crate::users::bump_token_version(&mut tx, world.user, now).await.unwrap();
        assert!(present(&mut tx, "access", now).await.unwrap().is_none(), "a bump ends it");
        assert_eq!(list_own(&mut tx, world.user, now, page()).await.unwrap().1, 0);
    }

    async fn a_removed_user_is_nobody_and_an_ended_token_too(db) {
        let world = World::new(&db, "one").await;
        granted(&db, &world).await;
        let now = world.clock.now();
        let mut tx = db.write().await.unwrap();
        assert!(present(&mut tx, "access", now).await.unwrap().unwrap().user.is_active);
        end(&mut tx, "access", now).await.unwrap();
        assert!(present(&mut tx, "access", now).await.unwrap().is_none());
        drop(tx);
        let mut tx = db.write().await.unwrap();
        User::remove(&mut tx, &world.scope(), world.user, now).await.unwrap();
        assert!(present(&mut tx, "access", now).await.unwrap().is_none());
    }

    async fn what_expired_is_forgotten_with_what_hangs_on_it(db) {
        let world = World::new(&db, "one").await;
        let (_, grant) = granted(&db, &world).await;
        let now = world.clock.now();
        let mut tx = db.write().await.unwrap();
        assert_eq!(trim(&mut tx, now, 10).await.unwrap(), 0);
        assert_eq!(trim(&mut tx, now + TimeDelta::hours(1), 1).await.unwrap(), 1, "no more than asked for");
        assert_eq!(trim_grants(&mut tx, now + TimeDelta::days(6), 10).await.unwrap(), 0);
        give(&mut tx, grant, TokenKind::Refresh, "later", now).await;
        assert_eq!(trim_grants(&mut tx, now + TimeDelta::days(8), 10).await.unwrap(), 1);
        assert!(lock_by_code(&mut tx, "code").await.unwrap().is_none());
        assert_eq!(trim(&mut tx, now + TimeDelta::days(99), 10).await.unwrap(), 0, "its tokens went with it");
    }
}
