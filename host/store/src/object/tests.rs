use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::dump;
use crate::sites::{Site, SiteUpdate};
use crate::testing::{World, on_both};
use crate::users::User;

/// Tables of objects that people edit, remove and bring back: their rows have a revision.
async fn revised() -> BTreeSet<String> {
    let is_revised = |table: &dump::Table| {
        let has = |name: &str| table.columns.iter().any(|column| column.name == name);
        has("revision") && has("deleted_at")
    };
    let tables = dump::tables().await.unwrap().into_iter().filter(is_revised);
    tables.map(|table| table.name).collect()
}

/// What begins statements that write what was measured, counted or proved, and nothing that people edit.
const MEASURING: &[&str] = &[
    "app_user SET failed_logins =",
    "app_user SET password_hash =",
    "app_user SET token_version =",
    "app_user SET username_folded =",
    // Its restore raises the revision, and nothing shows it before.
    "connection SET deleted_at =",
    "connection SET last_fired_at =",
    "connection SET next_due_at =",
    "controller SET last_error =",
    "controller SET lists_all_devices =",
    "controller SET next_sync_at =",
    "controller SET product =",
    "controller SET push_owner =",
    "controller SET push_rest_until =",
    // No view shows it, and no request changes it together with other fields.
    "controller SET push_secret =",
    "controller SET push_state =",
    "controller SET push_told =",
    "controller SET release_state =",
    "controller SET status =",
    "controller SET sync_owner =",
    "controller SET updated_at =",
    "device SET last_seen_at =",
    "device SET status =",
    "webhook_subscription SET consecutive_failures =",
    "webhook_subscription SET due_at =",
    "webhook_subscription SET told_problem =",
    "webhook_subscription SET unqueued =",
];

#[tokio::test]
async fn a_statement_that_writes_an_object_raises_its_revision_or_only_measures() {
    let revised = revised().await;
    assert!(revised.len() > 10, "the tables were found: {revised:?}");
    let mut statements = BTreeSet::new();
    let is_test = |path: &Path| {
        path.components().any(|part| ["tests", "tests.rs"].iter().any(|name| part.as_os_str() == *name))
    };
    for (_, text) in crate::select::tests::all_sources().into_iter().filter(|(path, _)| !is_test(path)) {
        for found in text.split("UPDATE ").skip(1) {
            let table = found.split_whitespace().next().unwrap_or_default();
            let statement = found.split(['"', ';']).next().unwrap_or_default();
            if revised.contains(table) && !statement.contains("revision = revision + 1") {
                statements.insert(statement.split_whitespace().take(4).collect::<Vec<_>>().join(" "));
            }
        }
    }
    let known: BTreeSet<String> = MEASURING.iter().map(|&text| text.to_owned()).collect();
    assert_eq!(
        statements, known,
        "an edit by people raises the revision; what is measured stands in MEASURING"
    );
}

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
            "UPDATE app_user SET email = $3, full_name = NULL, token_version = token_version + 1, \
             revision = revision + 1, updated_at = $4 \
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
        assert_eq!(restored.map(|site| site.revision), Some(4));
        assert_eq!(Site::restore(&mut tx, &scope, world.site, world.clock.now()).await.unwrap(), None);
    }
}
