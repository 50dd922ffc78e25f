use super::*;
use crate::select::SiteScope;
use crate::testing::{World, on_both, page, seen};

on_both! {
    async fn a_list_counts_what_is_on_each_site(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        world.see(&mut tx, &[seen("1"), seen("2")]).await;
        insert(&mut tx, &world.new_site(world.clock.new_id(), "branch_1")).await.unwrap();
        let (sites, total) = list(&mut tx, &world.scope(), None, page()).await.unwrap();
        assert_eq!(total, 2);
        assert_eq!((sites[0].controller_count, sites[0].device_count), (1, 2));
        assert_eq!((sites[1].controller_count, sites[1].device_count), (0, 0));
        for (text, expected) in [("BRANCH_", 1), ("branch%", 0), ("r_", 0), ("\\", 0)] {
            assert_eq!(list(&mut tx, &world.scope(), Some(text), page()).await.unwrap().1, expected, "{text}");
        }
        let second = heddle_core::page::PageRequest { page: 2, per_page: 1 };
        let (sites, total) = list(&mut tx, &world.scope(), None, second).await.unwrap();
        assert_eq!((sites[0].slug.as_str(), total), ("branch_1", 2));
    }

    async fn sites_outside_the_scope_are_not_found(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        let now = a.clock.now();
        for scope in [b.scope(), Scope { org: Some(a.org), sites: SiteScope::Only(vec![]) }, Scope { org: Some(a.org), sites: SiteScope::Only(vec![b.site]) }] {
            assert_eq!(Site::find(&mut tx, &scope, a.site).await.unwrap(), None);
            assert_eq!(update(&mut tx, &scope, a.site, &SiteUpdate::default(), now).await.unwrap(), None);
            assert!(!Site::remove(&mut tx, &scope, a.site, now).await.unwrap());
            assert_eq!(Site::restore(&mut tx, &scope, a.site, now).await.unwrap(), None);
        }
        assert!(Site::find(&mut tx, &Scope { org: None, sites: SiteScope::Only(vec![a.site]) }, a.site).await.unwrap().is_some());
    }

    async fn only_sites_of_the_scope_are_visible(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        let branch = a.clock.new_id();
        insert(&mut tx, &a.new_site(branch, "branch")).await.unwrap();
        let ids = [a.site, branch, b.site, a.clock.new_id()];
        assert_eq!(visible(&mut tx, &a.scope(), &ids).await.unwrap(), [a.site, branch]);
        let only = Scope { org: Some(a.org), sites: SiteScope::Only(vec![branch]) };
        assert_eq!(visible(&mut tx, &only, &ids).await.unwrap(), [branch]);
        assert!(Site::remove(&mut tx, &a.scope(), branch, a.clock.now()).await.unwrap());
        assert_eq!(visible(&mut tx, &a.scope(), &ids).await.unwrap(), [a.site]);
        assert!(visible(&mut tx, &a.scope(), &[]).await.unwrap().is_empty());
    }

    async fn a_removed_site_comes_back_unless_its_slug_is_taken(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (scope, now) = (world.scope(), world.clock.now());
        let rename = SiteUpdate { name: Some("Head".into()), settings: Some(serde_json::json!({"a": 1})), ..Default::default() };
        assert_eq!(update(&mut tx, &scope, world.site, &rename, now).await.unwrap().unwrap().name, "Head");
        assert!(Site::remove(&mut tx, &scope, world.site, now).await.unwrap());
        assert!(Site::restore(&mut tx, &scope, world.site, now).await.unwrap().is_some());
        assert!(Site::remove(&mut tx, &scope, world.site, now).await.unwrap());
        insert(&mut tx, &world.new_site(world.clock.new_id(), "hq")).await.unwrap();
        let error = Site::restore(&mut tx, &scope, world.site, now).await.unwrap_err();
        assert!(error.is_unique("site_slug"), "{error:?}");
    }
}
