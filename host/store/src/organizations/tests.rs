use super::*;
use crate::testing::{World, on_both, page};

on_both! {
    async fn a_slug_is_free_again_after_removal(db) {
        let world = World::new(&db, "one").await;
        let scope = world.scope();
        let now = world.clock.now();
        let mut tx = db.write().await.unwrap();
        assert!(Organization::remove(&mut tx, &scope, world.org, now).await.unwrap());
        assert!(!Organization::remove(&mut tx, &scope, world.org, now).await.unwrap());
        assert_eq!(Organization::find(&mut tx, &scope, world.org).await.unwrap(), None);
        let new = NewOrganization { id: world.clock.new_id(), name: "x".into(), slug: "one".into(), settings: serde_json::json!({}), now };
        insert(&mut tx, &new).await.unwrap();
        tx.commit().await.unwrap();
        let mut tx = db.write().await.unwrap();
        let error = Organization::restore(&mut tx, &scope, world.org, now).await.unwrap_err();
        assert!(error.is_unique("organization_slug"), "{error:?}");
    }

    async fn another_organization_is_not_found(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        let now = a.clock.now();
        let rename = OrganizationUpdate { name: Some("new".into()), ..Default::default() };
        assert_eq!(Organization::find(&mut tx, &a.scope(), b.org).await.unwrap(), None);
        assert_eq!(update(&mut tx, &a.scope(), b.org, &rename, now).await.unwrap(), None);
        assert!(!Organization::remove(&mut tx, &a.scope(), b.org, now).await.unwrap());
        assert_eq!(update(&mut tx, &a.scope(), a.org, &rename, now).await.unwrap().unwrap().name, "new");
        assert_eq!(list(&mut tx, &a.scope(), &OrganizationFilter::default(), page()).await.unwrap().1, 1);
        let filter = OrganizationFilter { search: Some("NEW".into()), tier: None };
        let (found, total) = list(&mut tx, &Scope::everything(), &filter, page()).await.unwrap();
        assert_eq!((found[0].id, total), (a.org, 1));
        assert!(Organization::remove(&mut tx, &a.scope(), a.org, now).await.unwrap());
        assert_eq!(Organization::restore(&mut tx, &b.scope(), a.org, now).await.unwrap(), None);
        assert!(Organization::restore(&mut tx, &a.scope(), a.org, now).await.unwrap().is_some());
    }

    async fn a_tier_is_standard_until_it_is_changed(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        let found = Organization::lock(&mut tx, &a.scope(), a.org).await.unwrap().unwrap();
        assert_eq!(found.tier, Tier::Standard);
        let change = OrganizationUpdate { tier: Some(Tier::Free), ..Default::default() };
        let changed = update(&mut tx, &a.scope(), a.org, &change, a.clock.now()).await.unwrap().unwrap();
        assert_eq!((changed.tier, changed.name.as_str()), (Tier::Free, "a"));
        let of = |tier| OrganizationFilter { tier: Some(tier), search: None };
        let (free, total) = list(&mut tx, &Scope::everything(), &of(Tier::Free), page()).await.unwrap();
        assert_eq!((free[0].id, total), (a.org, 1));
        let (standard, _) = list(&mut tx, &Scope::everything(), &of(Tier::Standard), page()).await.unwrap();
        assert_eq!(standard[0].id, b.org);
        assert_eq!(list(&mut tx, &a.scope(), &of(Tier::Standard), page()).await.unwrap().1, 0);
    }
}
