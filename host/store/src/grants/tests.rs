use super::*;
use crate::object::Object as _;
use crate::select::SiteScope;
use crate::sites::Site;
use crate::testing::{World, on_both, page as first_page};
use crate::users::User;

fn new(world: &World, user: UserId, site: SiteId, level: SiteLevel) -> NewGrant {
    NewGrant { user_id: user, site_id: site, level, granted_by: world.user, now: world.clock.now() }
}

on_both! {
    async fn one_grant_per_user_and_site(db) {
        let world = World::new(&db, "one").await;
        let new = new(&world, world.user, world.site, SiteLevel::Read);
        let mut tx = db.write().await.unwrap();
        insert(&mut tx, &new).await.unwrap();
        let expected = [SiteGrant { site_id: world.site, level: SiteLevel::Read }];
        assert_eq!(list(&mut tx, world.user).await.unwrap(), expected);
        let error = insert(&mut tx, &new).await.unwrap_err();
        assert!(error.is_unique("site_grant_pkey"), "{error:?}");
    }

    async fn a_grant_that_is_there_gets_the_new_level(db) {
        let world = World::new(&db, "one").await;
        let mut tx = db.write().await.unwrap();
        let (branch, other) = (world.clock.new_id(), world.clock.new_id());
        crate::sites::insert(&mut tx, &world.new_site(branch, "branch")).await.unwrap();
        crate::users::insert(&mut tx, &world.new_user(other, "bea")).await.unwrap();
        upsert(&mut tx, &[new(&world, other, world.site, SiteLevel::Read)]).await.unwrap();
        let both = [
            new(&world, other, world.site, SiteLevel::Full),
            new(&world, other, branch, SiteLevel::Write),
        ];
        upsert(&mut tx, &both).await.unwrap();
        upsert(&mut tx, &[]).await.unwrap();
        let granted = find(&mut tx, &world.scope(), other, world.site).await.unwrap().unwrap();
        assert_eq!((granted.level, granted.username.as_str(), granted.site_name.as_str()), (SiteLevel::Full, "bea", "hq"));
        assert_eq!((granted.org_id, granted.granted_by, granted.site_deleted_at), (world.org, world.user, None));
        assert_eq!(count(&mut tx, other).await.unwrap(), 2);
        let mut found = pairs(&mut tx, &[other, world.user], &[branch, world.site]).await.unwrap();
        found.sort_unstable();
        let mut expected = [(other, world.site), (other, branch)];
        expected.sort_unstable();
        assert_eq!(found, expected);
        assert!(pairs(&mut tx, &[], &[branch]).await.unwrap().is_empty());
        assert!(revoke(&mut tx, other, branch).await.unwrap());
        assert!(!revoke(&mut tx, other, branch).await.unwrap());
        assert_eq!(count(&mut tx, other).await.unwrap(), 1);
    }

    async fn grants_are_seen_within_the_scope_alone(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        upsert(&mut tx, &[new(&a, a.user, a.site, SiteLevel::Read)]).await.unwrap();
        upsert(&mut tx, &[new(&b, b.user, b.site, SiteLevel::Read)]).await.unwrap();
        let all = GrantFilter::default();
        let (items, total) = page(&mut tx, &a.scope(), &all, first_page()).await.unwrap();
        assert_eq!((items[0].user_id, total), (a.user, 1));
        assert_eq!(page(&mut tx, &Scope::everything(), &all, first_page()).await.unwrap().1, 2);
        let only = Scope { org: Some(a.org), sites: SiteScope::Only(vec![b.site]) };
        assert_eq!(page(&mut tx, &only, &all, first_page()).await.unwrap().1, 0);
        for (filter, expected) in [
            (GrantFilter { user_id: Some(a.user), site_id: None }, 1),
            (GrantFilter { user_id: Some(b.user), site_id: None }, 0),
            (GrantFilter { user_id: None, site_id: Some(a.site) }, 1),
            (GrantFilter { user_id: Some(a.user), site_id: Some(b.site) }, 0),
        ] {
            assert_eq!(page(&mut tx, &a.scope(), &filter, first_page()).await.unwrap().1, expected, "{filter:?}");
        }
        assert_eq!(find(&mut tx, &b.scope(), a.user, a.site).await.unwrap(), None);
        Site::remove(&mut tx, &a.scope(), a.site, a.clock.now()).await.unwrap();
        let granted = find(&mut tx, &a.scope(), a.user, a.site).await.unwrap().unwrap();
        assert!(granted.site_deleted_at.is_some(), "a grant for a removed site is still one");
        User::remove(&mut tx, &a.scope(), a.user, a.clock.now()).await.unwrap();
        assert_eq!(find(&mut tx, &a.scope(), a.user, a.site).await.unwrap(), None);
        assert_eq!(count(&mut tx, a.user).await.unwrap(), 1, "it is there when the user comes back");
    }
}
