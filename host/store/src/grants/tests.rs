use super::*;
use crate::testing::{World, on_both};

on_both! {
    async fn one_grant_per_user_and_site(db) {
        let world = World::new(&db, "one").await;
        let new = NewGrant { user_id: world.user, site_id: world.site, level: SiteLevel::Read, granted_by: world.user, now: world.clock.now() };
        let mut tx = db.write().await.unwrap();
        insert(&mut tx, &new).await.unwrap();
        assert_eq!(list(&mut tx, world.user).await.unwrap(), [SiteGrant { site_id: world.site, level: SiteLevel::Read }]);
        let error = insert(&mut tx, &new).await.unwrap_err();
        assert!(error.is_unique("site_grant_pkey"), "{error:?}");
    }
}
