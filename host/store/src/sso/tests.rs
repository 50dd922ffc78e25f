use chrono::TimeDelta;
use heddle_core::page::PageRequest;
use serde_json::json;

use super::*;
use crate::organizations::Organization;
use crate::testing::{World, on_both, page};

fn new_provider(world: &World, kind: ProviderKind, label: &str) -> NewProvider {
    NewProvider {
        id: world.clock.new_id(),
        org_id: world.org,
        kind,
        label: label.to_owned(),
        is_enabled: true,
        allow_registration: true,
        allow_linking: false,
        default_role: Role::Viewer,
        role_mapping: json!({ "admins": "org_admin" }),
        settings: json!({ "issuer": "https://id.example" }),
        secret: Some(vec![0, 1, 255]),
        now: world.clock.now(),
    }
}

fn new_attempt(world: &World, provider: IdentityProviderId, state: &str, minutes: i64) -> NewAttempt {
    NewAttempt {
        id: world.clock.new_id(),
        provider_id: provider,
        state_hash: state.to_owned(),
        browser_hash: format!("browser of {state}"),
        redirect_uri: "https://ui.example/back".to_owned(),
        secret: vec![7, 7],
        expires_at: world.clock.now() + TimeDelta::minutes(minutes),
    }
}

on_both! {
    async fn a_provider_is_kept_changed_removed_and_restored_within_its_organization(db) {
        let (world, other) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        let (scope, foreign, now) = (world.scope(), other.scope(), world.clock.now());
        let new = new_provider(&world, ProviderKind::Oidc, "Sign in");
        let made = insert(&mut tx, &new).await.unwrap();
        assert_eq!((made.kind, made.has_secret, made.default_role), (ProviderKind::Oidc, true, Role::Viewer));
        assert_eq!(made.role_mapping, json!({ "admins": "org_admin" }));
        assert_eq!(Provider::find(&mut tx, &scope, new.id).await.unwrap().as_ref(), Some(&made));
        assert_eq!(Provider::lock(&mut tx, &scope, new.id).await.unwrap().as_ref(), Some(&made));
        assert_eq!(Provider::find(&mut tx, &foreign, new.id).await.unwrap(), None);
        assert!(find_sealed(&mut tx, &foreign, new.id).await.unwrap().is_none());
        let sealed = find_sealed(&mut tx, &scope, new.id).await.unwrap().unwrap();
        assert_eq!((sealed.provider, sealed.secret), (made, Some(vec![0, 1, 255])));

        let change = ProviderUpdate { label: Some("Enter".into()), is_enabled: Some(false), ..Default::default() };
        assert_eq!(update(&mut tx, &foreign, new.id, &change, now).await.unwrap(), None);
        let changed = update(&mut tx, &scope, new.id, &change, now).await.unwrap().unwrap();
        assert_eq!((changed.label.as_str(), changed.is_enabled, changed.has_secret), ("Enter", false, true));
        let cleared = ProviderUpdate {
            secret: Set::Clear, allow_registration: Some(false), allow_linking: Some(true),
            default_role: Some(Role::Operator), role_mapping: Some(json!({})), settings: Some(json!({ "a": 1 })),
            ..Default::default()
        };
        let cleared = update(&mut tx, &scope, new.id, &cleared, now).await.unwrap().unwrap();
        assert_eq!((cleared.has_secret, cleared.allow_registration, cleared.allow_linking), (false, false, true));
        assert_eq!((cleared.default_role, cleared.role_mapping, cleared.settings), (Role::Operator, json!({}), json!({ "a": 1 })));
        let sealed = ProviderUpdate { secret: Set::To(vec![9]), ..Default::default() };
        assert!(update(&mut tx, &scope, new.id, &sealed, now).await.unwrap().unwrap().has_secret);

        assert!(!Provider::remove(&mut tx, &foreign, new.id, now).await.unwrap());
        assert!(Provider::remove(&mut tx, &scope, new.id, now).await.unwrap());
        assert!(!Provider::remove(&mut tx, &scope, new.id, now).await.unwrap());
        assert_eq!(Provider::find(&mut tx, &scope, new.id).await.unwrap(), None);
        assert_eq!(Provider::restore(&mut tx, &foreign, new.id, now).await.unwrap(), None);
        let restored = Provider::restore(&mut tx, &scope, new.id, now).await.unwrap().unwrap();
        assert_eq!((restored.id, restored.deleted_at), (new.id, None));
        assert_eq!(Provider::restore(&mut tx, &scope, new.id, now).await.unwrap(), None);
    }

    async fn a_list_is_of_one_kind_or_of_all(db) {
        let (world, other) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        for (kind, label) in [(ProviderKind::Oidc, "One"), (ProviderKind::Ldap, "Two"), (ProviderKind::Saml, "Three")] {
            insert(&mut tx, &new_provider(&world, kind, label)).await.unwrap();
        }
        insert(&mut tx, &new_provider(&other, ProviderKind::Ldap, "Other")).await.unwrap();
        let labels = |(items, total): (Vec<Provider>, i64)| (items.into_iter().map(|p| p.label).collect::<Vec<_>>(), total);
        let all = labels(list(&mut tx, &world.scope(), None, None, page()).await.unwrap());
        assert_eq!(all, (vec!["One".to_owned(), "Two".to_owned(), "Three".to_owned()], 3));
        let ldap = labels(list(&mut tx, &world.scope(), Some(ProviderKind::Ldap), None, page()).await.unwrap());
        assert_eq!(ldap, (vec!["Two".to_owned()], 1));
        let found = labels(list(&mut tx, &world.scope(), None, Some("thr"), page()).await.unwrap());
        assert_eq!(found, (vec!["Three".to_owned()], 1));
        let second = PageRequest { page: 2, per_page: 2 };
        assert_eq!(labels(list(&mut tx, &world.scope(), None, None, second).await.unwrap()).0, ["Three"]);
    }

    async fn only_enabled_providers_of_organizations_that_are_there_can_be_used(db) {
        let world = World::new(&db, "a").await;
        let mut tx = db.write().await.unwrap();
        let (scope, now) = (world.scope(), world.clock.now());
        let oidc = insert(&mut tx, &new_provider(&world, ProviderKind::Oidc, "One")).await.unwrap();
        let ldap = insert(&mut tx, &new_provider(&world, ProviderKind::Ldap, "Two")).await.unwrap();
        let off = NewProvider { is_enabled: false, ..new_provider(&world, ProviderKind::Ldap, "Off") };
        insert(&mut tx, &off).await.unwrap();
        let shown = list_public(&mut tx, "a").await.unwrap();
        assert_eq!(shown.iter().map(|p| p.label.as_str()).collect::<Vec<_>>(), ["One", "Two"]);
        assert!(list_public(&mut tx, "nowhere").await.unwrap().is_empty());
        let directories = list_usable(&mut tx, "a", ProviderKind::Ldap).await.unwrap();
        assert_eq!(directories.iter().map(|p| p.provider.id).collect::<Vec<_>>(), [ldap.id]);
        assert_eq!(directories[0].secret, Some(vec![0, 1, 255]));
        assert!(find_usable(&mut tx, oidc.id, ProviderKind::Oidc).await.unwrap().is_some());
        assert!(find_usable(&mut tx, oidc.id, ProviderKind::Ldap).await.unwrap().is_none(), "another kind");
        assert!(find_usable(&mut tx, off.id, ProviderKind::Ldap).await.unwrap().is_none(), "not enabled");
        assert!(Provider::remove(&mut tx, &scope, ldap.id, now).await.unwrap());
        assert!(find_usable(&mut tx, ldap.id, ProviderKind::Ldap).await.unwrap().is_none(), "removed");
        Organization::remove(&mut tx, &Scope::everything(), world.org, now).await.unwrap();
        assert!(find_usable(&mut tx, oidc.id, ProviderKind::Oidc).await.unwrap().is_none(), "its organization is gone");
        assert!(list_public(&mut tx, "a").await.unwrap().is_empty());
    }

    async fn a_person_at_a_provider_is_one_user(db) {
        let world = World::new(&db, "a").await;
        let mut tx = db.write().await.unwrap();
        let provider = insert(&mut tx, &new_provider(&world, ProviderKind::Oidc, "One")).await.unwrap();
        let second = insert(&mut tx, &new_provider(&world, ProviderKind::Oidc, "Two")).await.unwrap();
        let new = NewIdentity {
            id: world.clock.new_id(), provider_id: provider.id, issuer: "https://id.example".into(),
            subject: "alice".into(), user_id: world.user, created_user: true, now: world.clock.now(),
        };
        let made = insert_identity(&mut tx, &new).await.unwrap();
        let found = find_identity(&mut tx, provider.id, &new.issuer, "alice").await.unwrap();
        assert_eq!(found.as_ref(), Some(&made));
        for (id, issuer, subject) in [
            (second.id, new.issuer.as_str(), "alice"),
            (provider.id, "https://other.example", "alice"),
            (provider.id, new.issuer.as_str(), "Alice"),
        ] {
            assert_eq!(find_identity(&mut tx, id, issuer, subject).await.unwrap(), None);
        }
        let later = world.clock.now() + TimeDelta::minutes(5);
        assert!(record_identity_login(&mut tx, made.id, later).await.unwrap());
        let found = find_identity(&mut tx, provider.id, &new.issuer, "alice").await.unwrap().unwrap();
        assert_eq!(found.last_login_at, later);
        assert!(!record_identity_login(&mut tx, world.clock.new_id(), later).await.unwrap());
        let again = NewIdentity { id: world.clock.new_id(), ..new };
        let error = insert_identity(&mut tx, &again).await.unwrap_err();
        assert!(error.is_unique("user_identity_subject"), "{error}");
    }

    async fn a_sign_in_is_taken_once_by_the_browser_that_began_it(db) {
        let world = World::new(&db, "a").await;
        let mut tx = db.write().await.unwrap();
        let provider = insert(&mut tx, &new_provider(&world, ProviderKind::Oidc, "One")).await.unwrap();
        let now = world.clock.now();
        insert_attempt(&mut tx, &new_attempt(&world, provider.id, "one", 10)).await.unwrap();
        insert_attempt(&mut tx, &new_attempt(&world, provider.id, "old", -1)).await.unwrap();
        assert!(take_attempt(&mut tx, "one", "browser of two", now).await.unwrap().is_none());
        assert!(take_attempt(&mut tx, "old", "browser of old", now).await.unwrap().is_none());
        let taken = take_attempt(&mut tx, "one", "browser of one", now).await.unwrap().unwrap();
        assert_eq!((taken.provider_id, taken.secret), (provider.id, vec![7, 7]));
        assert_eq!(taken.redirect_uri, "https://ui.example/back");
        assert!(take_attempt(&mut tx, "one", "browser of one", now).await.unwrap().is_none(), "it was taken");
        insert_attempt(&mut tx, &new_attempt(&world, provider.id, "two", 10)).await.unwrap();
        insert_attempt(&mut tx, &new_attempt(&world, provider.id, "older", -2)).await.unwrap();
        assert_eq!(trim_attempts(&mut tx, now, 1).await.unwrap(), 1);
        assert_eq!(trim_attempts(&mut tx, now, 10).await.unwrap(), 1);
        assert_eq!(trim_attempts(&mut tx, now, 10).await.unwrap(), 0);
        assert!(take_attempt(&mut tx, "two", "browser of two", now).await.unwrap().is_some());
    }
}
