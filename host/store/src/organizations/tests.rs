use super::*;
use crate::testing::{World, on_both, page};

on_both! {
    async fn a_slug_is_free_again_after_removal(db) {
        let world = World::new(&db, "one").await;
        let scope = world.scope();
        let now = world.clock.now();
        let mut tx = db.write().await.unwrap();
        assert!(remove(&mut tx, &scope, world.org, now).await.unwrap());
        assert!(!remove(&mut tx, &scope, world.org, now).await.unwrap());
        assert_eq!(find(&mut tx, &scope, world.org).await.unwrap(), None);
        let new = NewOrganization { id: world.clock.new_id(), name: "x".into(), slug: "one".into(), settings: serde_json::json!({}), now };
        insert(&mut tx, &new).await.unwrap();
        tx.commit().await.unwrap();
        let mut tx = db.write().await.unwrap();
        let error = restore(&mut tx, &scope, world.org, now).await.unwrap_err();
        assert!(error.is_unique("organization_slug"), "{error:?}");
    }

    async fn another_organization_is_not_found(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        let now = a.clock.now();
        let rename = OrganizationUpdate { name: Some("new".into()), ..Default::default() };
        assert_eq!(find(&mut tx, &a.scope(), b.org).await.unwrap(), None);
        assert_eq!(update(&mut tx, &a.scope(), b.org, &rename, now).await.unwrap(), None);
        assert!(!remove(&mut tx, &a.scope(), b.org, now).await.unwrap());
        assert_eq!(update(&mut tx, &a.scope(), a.org, &rename, now).await.unwrap().unwrap().name, "new");
        assert_eq!(list(&mut tx, &a.scope(), None, page()).await.unwrap().1, 1);
        let (found, total) = list(&mut tx, &Scope::everything(), Some("NEW"), page()).await.unwrap();
        assert_eq!((found[0].id, total), (a.org, 1));
        assert!(remove(&mut tx, &a.scope(), a.org, now).await.unwrap());
        assert_eq!(restore(&mut tx, &b.scope(), a.org, now).await.unwrap(), None);
        assert!(restore(&mut tx, &a.scope(), a.org, now).await.unwrap().is_some());
    }
}
