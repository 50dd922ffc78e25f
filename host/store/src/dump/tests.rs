use super::*;
use crate::credentials::Credential;
use crate::db::Db;
use crate::object::Object as _;
use crate::select::Scope;
use crate::testing::{World, on_both, postgres, sqlite};

/// All rows of all tables, as JSON.
async fn all(db: &Db) -> Vec<(String, Vec<Vec<serde_json::Value>>)> {
    let mut tx = db.read().await.unwrap();
    let mut dumped = Vec::new();
    for table in tables().await.unwrap() {
        let (mut rows, mut last): (Vec<Vec<serde_json::Value>>, Option<Vec<Cell>>) = (Vec::new(), None);
        loop {
            let page = table.page(&mut tx, last.as_deref(), 2).await.unwrap();
            if page.is_empty() {
                break;
            }
            rows.extend(page.iter().map(|row| row.iter().map(Cell::to_json).collect()));
            last = page.into_iter().last();
        }
        assert_eq!(i64::try_from(rows.len()).unwrap(), table.count(&mut tx).await.unwrap(), "{}", table.name);
        dumped.push((table.name, rows));
    }
    dumped
}

async fn fill(db: &Db) {
    let world = World::new(db, "a").await;
    World::new(db, "b").await;
    for _ in 0..5 {
        world.staged(db).await;
    }
    let mut tx = db.write().await.unwrap();
    crate::setup::complete(&mut tx, world.clock.now()).await.unwrap();
    let (first, second) = (world.clock.new_id(), world.clock.new_id());
    crate::changes::insert(&mut tx, &world.new_change(first)).await.unwrap();
    let reverting = crate::changes::NewChange { reverts: Some(first), ..world.new_change(second) };
    crate::changes::insert(&mut tx, &reverting).await.unwrap();
    // The earlier row refers to the later one.
    assert!(crate::changes::mark_reverted(&mut tx, first, second, world.clock.now()).await.unwrap());
    world.see(&mut tx, &[crate::testing::seen("1"), crate::testing::seen("2")]).await;
    let scope = Scope::everything();
    assert!(Credential::remove(&mut tx, &scope, world.credential, world.clock.now()).await.unwrap());
    tx.commit().await.unwrap();
}

async fn copy(from: &Db, to: &Db) {
    let (mut read, mut write) = (from.read().await.unwrap(), to.write().await.unwrap());
    for table in tables().await.unwrap() {
        let rows = table.page(&mut read, None, 1000).await.unwrap();
        let rows: Vec<Vec<Cell>> = rows
            .iter()
            .map(|row| {
                let cells = row.iter().zip(&table.columns);
                cells.map(|(cell, column)| Cell::parse(column.kind, cell.to_json()).unwrap()).collect()
            })
            .collect();
        table.insert(&mut write, &rows).await.unwrap();
    }
    write.commit().await.unwrap();
}

/// JSON texts differ between databases in order and spelling, nothing else does.
fn canonical(dump: Vec<(String, Vec<Vec<serde_json::Value>>)>) -> String {
    let cell = |value: serde_json::Value| match &value {
        serde_json::Value::String(text) if text.starts_with(['{', '[']) => {
            crate::audit::canonical(&serde_json::from_str(text).unwrap()).to_string().into()
        }
        _ => value,
    };
    let row = |row: Vec<serde_json::Value>| row.into_iter().map(cell).collect::<Vec<_>>();
    let tables: Vec<_> =
        dump.into_iter().map(|(name, rows)| (name, rows.into_iter().map(row).collect::<Vec<_>>())).collect();
    serde_json::to_string_pretty(&tables).unwrap()
}

#[tokio::test]
async fn every_table_of_the_migrations_is_there_after_those_it_refers_to() {
    let tables = tables().await.unwrap();
    let position = |name: &str| tables.iter().position(|table| table.name == name).unwrap();
    assert!(position("organization") < position("site"));
    assert!(position("credential") < position("controller"));
    assert!(position("controller") < position("change"));
    assert!(tables.iter().all(|table| !table.name.starts_with('_')));
    let migrations: String = crate::db::migration_texts();
    let dropped = migrations.matches("DROP TABLE ").count();
    assert_eq!(migrations.matches("CREATE TABLE ").count() - dropped, tables.len());
}

on_both! {
    async fn what_was_written_in_is_read_out(db) {
        fill(&db).await;
        let folder = tempfile::tempdir().unwrap();
        let file = sqlite(folder.path()).await;
        copy(&db, &file).await;
        assert_eq!(canonical(all(&file).await), canonical(all(&db).await));
        if let Some((back, name)) = postgres().await {
            copy(&file, &back).await;
            assert_eq!(canonical(all(&back).await), canonical(all(&db).await));
            back.close().await;
            crate::testing::drop_postgres(&name).await;
        }
        file.close().await;
    }

    async fn a_reference_to_nothing_fails_at_the_commit(db) {
        let world = World::new(&db, "a").await;
        let mut tx = db.write().await.unwrap();
        let stray = crate::changes::NewChange { reverts: Some(world.clock.new_id()), ..world.new_change(world.clock.new_id()) };
        crate::changes::insert(&mut tx, &stray).await.unwrap();
        assert!(tx.commit().await.is_err());
    }
}
