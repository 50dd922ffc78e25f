use super::*;
use crate::testing::{World, on_both, page};

fn new(world: &World, name: &str) -> NewRole {
    NewRole {
        id: world.clock.new_id(),
        org_id: world.org,
        name: name.to_owned(),
        description: Some("for scripts".to_owned()),
        permissions: vec!["device:read".to_owned(), "controller:*".to_owned()],
        created_by: world.user,
        now: world.clock.now(),
    }
}

on_both! {
    async fn a_role_is_changed_in_what_is_named(db) {
        let world = World::new(&db, "one").await;
        let (scope, now) = (world.scope(), world.clock.now());
        let mut tx = db.write().await.unwrap();
        let role = insert(&mut tx, &new(&world, "Reader")).await.unwrap();
        assert_eq!(role.permissions, ["device:read", "controller:*"]);
        assert_eq!(StoredRole::lock(&mut tx, &scope, role.id).await.unwrap(), Some(role.clone()));
        let change = RoleUpdate { description: Set::Clear, ..Default::default() };
        let changed = update(&mut tx, &scope, role.id, &change, now).await.unwrap().unwrap();
        assert_eq!((changed.name.as_str(), changed.description), ("Reader", None));
        let change = RoleUpdate { permissions: Some(vec![]), name: Some("Nobody".into()), ..Default::default() };
        let changed = update(&mut tx, &scope, role.id, &change, now).await.unwrap().unwrap();
        assert_eq!((changed.name.as_str(), changed.permissions.len()), ("Nobody", 0));
    }

    async fn names_are_unique_within_the_organization_in_any_case(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let (scope, now) = (a.scope(), a.clock.now());
        let mut tx = db.write().await.unwrap();
        let role = insert(&mut tx, &new(&a, "Reader")).await.unwrap();
        insert(&mut tx, &new(&b, "Reader")).await.unwrap();
        assert!(StoredRole::remove(&mut tx, &scope, role.id, now).await.unwrap());
        assert!(!StoredRole::remove(&mut tx, &scope, role.id, now).await.unwrap());
        assert!(StoredRole::restore(&mut tx, &scope, role.id, now).await.unwrap().is_some());
        assert!(StoredRole::remove(&mut tx, &scope, role.id, now).await.unwrap());
        insert(&mut tx, &new(&a, "READER")).await.unwrap();
        let error = StoredRole::restore(&mut tx, &scope, role.id, now).await.unwrap_err();
        assert!(error.is_unique("stored_role_name"), "{error:?}");
    }

    async fn another_organizations_role_is_not_found(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let now = a.clock.now();
        let mut tx = db.write().await.unwrap();
        let first = insert(&mut tx, &new(&a, "first")).await.unwrap();
        let second = insert(&mut tx, &new(&a, "50% more")).await.unwrap();
        let scope = b.scope();
        assert_eq!(StoredRole::find(&mut tx, &scope, first.id).await.unwrap(), None);
        assert_eq!(update(&mut tx, &scope, first.id, &RoleUpdate::default(), now).await.unwrap(), None);
        assert!(!StoredRole::remove(&mut tx, &scope, first.id, now).await.unwrap());
        assert_eq!(slice(&mut tx, &scope, None, &page().into(), (10, 0)).await.unwrap(), (vec![], 0));
        let (found, total) = slice(&mut tx, &a.scope(), None, &page().into(), (1, 1)).await.unwrap();
        assert_eq!((found[0].id, total), (second.id, 2));
        for (text, expected) in [("0% M", 1), ("%", 1), ("_", 0), ("SCRIPTS", 2)] {
            assert_eq!(slice(&mut tx, &a.scope(), Some(text), &page().into(), (10, 0)).await.unwrap().1, expected, "{text}");
        }
        StoredRole::remove(&mut tx, &a.scope(), first.id, now).await.unwrap();
        assert_eq!(StoredRole::restore(&mut tx, &scope, first.id, now).await.unwrap(), None);
    }
}
