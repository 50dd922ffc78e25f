use chrono::TimeDelta;
use heddle_core::page::PageRequest;

use super::*;
use crate::object::Object as _;
use crate::organizations::Organization;
use crate::select::SiteScope;
use crate::testing::{World, on_both, page};

fn key(world: &World, prefix: &str, expires_at: Option<Timestamp>) -> NewApiKey {
    NewApiKey {
        id: world.clock.new_id(),
        user_id: world.user,
        prefix: prefix.to_owned(),
        secret_hash: "hash".to_owned(),
        name: prefix.to_owned(),
        description: None,
        scopes: vec!["device:read".to_owned()],
        expires_at,
        now: world.clock.now(),
    }
}

on_both! {
    async fn a_key_is_good_until_it_is_revoked_or_expires(db) {
        let (world, other) = (World::new(&db, "one").await, World::new(&db, "two").await);
        let now = world.clock.now();
        let mut tx = db.write().await.unwrap();
        let forever = insert(&mut tx, &key(&world, "aaaaaaaa", None)).await.unwrap();
        let short = insert(&mut tx, &key(&world, "bbbbbbbb", Some(now + TimeDelta::days(1)))).await.unwrap();
        assert_eq!(forever.scopes, ["device:read"]);
        let found = present(&mut tx, "bbbbbbbb", now).await.unwrap().unwrap();
        assert_eq!((found.id, found.user.id, found.user.sites()), (short.id, world.user, SiteScope::All));
        assert!(present(&mut tx, "bbbbbbbb", now + TimeDelta::days(2)).await.unwrap().is_none());
        assert!(present(&mut tx, "cccccccc", now).await.unwrap().is_none());
        assert_eq!(list_active(&mut tx, world.user, now, page()).await.unwrap().1, 2);
        let one = PageRequest { page: 2, per_page: 1 };
        let (keys, total) = list_active(&mut tx, world.user, now, one).await.unwrap();
        assert_eq!((keys[0].id, keys.len(), total), (forever.id, 1, 2));
        assert_eq!(count_active(&mut tx, other.user, now).await.unwrap(), 0);
        assert_eq!(count_active(&mut tx, world.user, now + TimeDelta::days(2)).await.unwrap(), 1);
        assert!(find_active(&mut tx, world.user, short.id, now).await.unwrap().is_some());
        assert!(find_active(&mut tx, other.user, short.id, now).await.unwrap().is_none());
        record_use(&mut tx, forever.id, now).await.unwrap();
        let used = find_active(&mut tx, world.user, forever.id, now).await.unwrap().unwrap();
        assert_eq!(used.last_used_at, Some(now));
        assert!(!revoke(&mut tx, other.user, forever.id, now).await.unwrap());
        assert!(revoke(&mut tx, world.user, forever.id, now).await.unwrap());
        assert!(!revoke(&mut tx, world.user, forever.id, now).await.unwrap());
        assert!(present(&mut tx, "aaaaaaaa", now).await.unwrap().is_none());
        assert_eq!(revoke_all(&mut tx, world.user, now).await.unwrap(), 1);
        assert!(present(&mut tx, "bbbbbbbb", now).await.unwrap().is_none());
        let error = insert(&mut tx, &key(&world, "bbbbbbbb", None)).await.unwrap_err();
        assert!(error.is_unique("api_key_prefix"), "{error:?}");
    }

    async fn a_key_of_a_removed_organization_is_nobody(db) {
        let world = World::new(&db, "one").await;
        let now = world.clock.now();
        let mut tx = db.write().await.unwrap();
        insert(&mut tx, &key(&world, "aaaaaaaa", None)).await.unwrap();
        Organization::remove(&mut tx, &crate::select::Scope::everything(), world.org, now).await.unwrap();
        assert!(present(&mut tx, "aaaaaaaa", now).await.unwrap().is_none());
    }
}
