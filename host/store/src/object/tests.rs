use super::*;
use crate::sites::{Site, SiteUpdate};
use crate::testing::{World, on_both};
use crate::users::User;

/// The text of an update of a user of one organization.
fn text(world: &World, columns: Columns) -> String {
    let scope = Scope::organization(world.org);
    update_of::<User>((world.user, live::<User>(&scope)), columns, world.clock.now()).0
}

on_both! {
    async fn a_write_names_what_it_changes_and_nothing_else(db) {
        let world = World::new(&db, "one").await;
        let columns = Columns::default()
            .with("email", "anna@example.com")
            .or_keep("role", None::<&str>)
            .set("full_name", &Set::<String>::Clear)
            .set("password_hash", &Set::<String>::Keep)
            .raised("token_version");
        assert_eq!(
            text(&world, columns),
            "UPDATE app_user SET email = $3, full_name = NULL, token_version = token_version + 1, updated_at = $4 \
             WHERE app_user.org_id = $1 AND app_user.deleted_at IS NULL AND app_user.id = $2"
        );
    }

    async fn a_write_answers_the_object_as_a_reading_shows_it(db) {
        let world = World::new(&db, "one").await;
        let scope = world.scope();
        let mut tx = db.write().await.unwrap();
        let change = SiteUpdate { name: Some("Depot".to_owned()), ..SiteUpdate::default() };
        let changed = crate::sites::update(&mut tx, &scope, world.site, &change, world.clock.now()).await.unwrap();
        assert_eq!(changed.as_ref().map(|site| site.name.as_str()), Some("Depot"));
        assert_eq!(Site::find(&mut tx, &scope, world.site).await.unwrap(), changed);
        assert!(Site::remove(&mut tx, &scope, world.site, world.clock.now()).await.unwrap());
        assert_eq!(Site::find(&mut tx, &scope, world.site).await.unwrap(), None);
        assert!(Site::find_removed(&mut tx, &scope, world.site).await.unwrap().is_some());
        let restored = Site::restore(&mut tx, &scope, world.site, world.clock.now()).await.unwrap();
        assert_eq!(Site::find(&mut tx, &scope, world.site).await.unwrap(), restored);
        assert_eq!(Site::restore(&mut tx, &scope, world.site, world.clock.now()).await.unwrap(), None);
    }
}
