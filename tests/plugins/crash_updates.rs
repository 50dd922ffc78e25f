//! A server that is killed while another package of a plugin takes the place of the one that serves.
//!
//! Exactly one of them serves then, and what is stored has the form of one version.

use std::time::{Duration, Instant};

use heddle_core::{Clock, OrgId};
use heddle_store::plugins;
use heddle_store::plugins::storage::{self, StorageRow};
use heddle_store::plugins::values::{self, Generation, Keeper, ValueRow};
use heddle_store::{Db, Tx};
use serde_json::{Value, json};

use super::kills::{Kills, Request, Rig, Step, Subject};
use super::standing::{Scripted, check_chain, check_kept, last_told, package};
use super::watcher::{self, ingest, install, log, names, switch};
use super::{Keys, agree, archive_of, change, send};
use crate::support::{Api, Database, on_both, until};

const ACTIVE: &str = "active 1.0.0, on for night, told active 1.0.0";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_an_update_that_serves_at_once_leaves_one_of_both_packages() {
    let keys = Keys::new();
    let (mut rig, plugin) = Scripted::in_use(Database::sqlite(), &keys).await;
    let less = package(&keys, |manifest| {
        manifest["version"] = json!("1.1.0");
        manifest["capabilities"]["fabric"]["call"] = json!(["sites.list"]);
    });
    // A package is judged once: the first installation says nothing of how long the others take.
    assert_eq!(send(rig.api(), &less).await.expect_status(201).body["state"], "active");
    change(rig.api(), "rollback").await.expect_status(200);
    let steps = Step::around(&[
        (Request::package("/plugins/install", less), "active 1.1.0, on for night, told active 1.1.0"),
        (Request::post("/plugins/scripted/rollback"), ACTIVE),
    ]);
    rig.kill_around(&plugin, &steps, Kills::of(8)).await;
}

on_both! {
    async fn a_kill_at_an_update_that_waits_leaves_it_waiting_agreed_to_or_rolled_back(database: Database) {
        let keys = Keys::new();
        let (mut rig, plugin) = Scripted::in_use(database, &keys).await;
        let more = package(&keys, |manifest| {
            manifest["version"] = json!("1.1.0");
            manifest["limits"]["requests"] = json!(32);
        });
        assert_eq!(send(rig.api(), &more).await.expect_status(201).body["state"], "awaiting_consent");
        let asked = rig.api().get("/plugins/scripted/consent").await.expect_status(200).body;
        agree(rig.api()).await;
        change(rig.api(), "rollback").await.expect_status(200);
        let agreed = json!({ "grant_hash": asked["grant_hash"] });
        let steps = Step::around(&[
            (
                Request::package("/plugins/install", more),
                "active 1.0.0 and an update waits, on for night, told awaiting_consent 1.1.0",
            ),
            (
                Request::json("POST", "/plugins/scripted/consent", &agreed),
                "active 1.1.0, on for night, told active 1.1.0",
            ),
            (Request::post("/plugins/scripted/rollback"), ACTIVE),
        ]);
        rig.kill_around(&plugin, &steps, Kills::of(5)).await;
    }
}

/// Values that the plugin has stored: a migration copies them in two transactions, and they are below its quota.
const VALUES: usize = 1_100;
/// More than is stored.
const LISTED_MAX: u32 = 5_000;

/// The plugin `watcher`, whose version 1.1.0 takes over what 1.0.0 stored.
struct Stored {
    org: OrgId,
}

impl Stored {
    async fn of(api: &Api) -> Self {
        let me = api.get("/auth/me").await.expect_status(200).body;
        Self { org: OrgId(me["organization_id"].as_str().unwrap().parse().unwrap()) }
    }

    async fn keeper(&self, tx: &mut Tx) -> Keeper {
        let row = plugins::find(tx, "watcher").await.unwrap().unwrap();
        Keeper { org: self.org, plugin: row.id }
    }

    async fn row(&self, db: &Db) -> StorageRow {
        let mut tx = db.read().await.unwrap();
        let keeper = self.keeper(&mut tx).await;
        storage::find(&mut tx, keeper).await.unwrap().unwrap()
    }

    /// Waits until a migration has begun.
    async fn has_begun(&self, db: &Db) {
        let began = Instant::now();
        loop {
            let row = self.row(db).await;
            if row.draft_generation.is_some() || row.version == "1.1.0" {
                return;
            }
            assert!(began.elapsed() < crate::support::PATIENCE, "no migration begins: {row:?}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Stores values in addition to those that the plugin has written.
    async fn fill(&self, rig: &Rig) {
        let (db, now) = (rig.db().await, Clock::default().now());
        let mut tx = db.write().await.unwrap();
        let keeper = self.keeper(&mut tx).await;
        let living = storage::find(&mut tx, keeper).await.unwrap().unwrap().living();
        let value = |n: usize| ValueRow {
            name: format!("v{n:04}"),
            bytes: b"1".to_vec(),
            version: 1,
            expires_at: None,
        };
        let all: Vec<ValueRow> = (0..VALUES).map(value).collect();
        for some in all.chunks(500) {
            values::put(&mut tx, living, some, now).await.unwrap();
        }
        tx.commit().await.unwrap();
        db.close().await;
    }
}

/// How often what is stored was brought to another form. Nothing of it may be missing.
async fn migrations_of(tx: &mut Tx, of: Generation) -> usize {
    let now = Clock::default().now();
    let all = values::list(tx, of, ("", None), LISTED_MAX, now).await.unwrap();
    assert_eq!(all.iter().filter(|one| one.name.starts_with('v')).count(), VALUES);
    let log = values::find(tx, of, "log", now).await.unwrap().unwrap();
    let lines: Vec<String> = serde_json::from_slice(&log.bytes).unwrap();
    assert_eq!(names(&lines, "seen"), ["one"]);
    lines.iter().filter(|line| line.starts_with("migrated")).count()
}

impl Subject for Stored {
    async fn check_stored(&self, rig: &Rig) {
        check_kept(rig).await;
        let db = rig.stored().await;
        let mut tx = db.read().await.unwrap();
        let keeper = self.keeper(&mut tx).await;
        let stored = storage::find(&mut tx, keeper).await.unwrap().unwrap();
        let kept = stored.kept_generation.map(|number| Generation { keeper, number });
        let (migrated, kept_version) = match stored.version.as_str() {
            "1.0.0" => (0, None),
            "1.1.0" => (1, Some("1.0.0")),
            other => panic!("{other}: {stored:?}"),
        };
        assert_eq!(stored.kept_version.as_deref(), kept_version, "{stored:?}");
        assert_eq!(kept.is_some(), kept_version.is_some(), "{stored:?}");
        assert_eq!(migrations_of(&mut tx, stored.living()).await, migrated, "{stored:?}");
        if let Some(kept) = kept {
            assert_eq!(migrations_of(&mut tx, kept).await, 0, "{stored:?}");
        }
        drop(tx);
        db.close().await;
    }

    async fn look(&self, rig: &Rig) -> String {
        let api = rig.api();
        let shown = api.get("/plugins/watcher").await.expect_status(200).body;
        assert_eq!((&shown["state"], &shown["behind"]), (&json!("active"), &Value::Null), "{shown}");
        let version = shown["version"].as_str().unwrap();
        brought_to(api, version).await;
        let kept = storage_of(api).await["kept_version"].as_str().unwrap_or("nothing").to_owned();
        let migrated = log(api).await.iter().filter(|line| line.starts_with("migrated")).count();
        check_chain(api).await;
        format!("{version}, kept {kept}, migrated {migrated}, told {}", last_told(api).await)
    }
}

async fn storage_of(api: &Api) -> Value {
    api.get("/plugins/watcher/organization").await.expect_status(200).body["storage"].clone()
}

/// Waits until what is stored has the form of this version, and returns how long that took.
async fn brought_to(api: &Api, version: &str) -> Duration {
    let began = Instant::now();
    let what = format!("what is stored has the form of {version}");
    until(&what, async || storage_of(api).await["version"] == version).await;
    began.elapsed()
}

/// A server whose plugin has stored values, and the packages of both versions.
async fn with_values(database: Database, keys: &Keys) -> (Rig, Stored, [Vec<u8>; 2]) {
    let rig = Rig::start(database, keys.options()).await;
    let packages = ["1.0.0", "1.1.0"].map(|version| {
        let mut manifest = watcher::manifest("http://127.0.0.1:9");
        manifest["version"] = json!(version);
        archive_of(&manifest, watcher::guest(), &keys.acme)
    });
    install(rig.api(), &packages[0]).await;
    switch(rig.api(), true, json!({})).await;
    ingest(rig.api(), "one", "note").await;
    watcher::until(rig.api(), |log| names(log, "seen") == ["one"]).await;
    let stored = Stored::of(rig.api()).await;
    stored.fill(&rig).await;
    (rig, stored, packages)
}

const UPDATED: &str = "1.1.0, kept 1.0.0, migrated 1, told active 1.1.0";
const ROLLED_BACK: &str = "1.0.0, kept nothing, migrated 0, told active 1.0.0";

async fn update(api: &Api, package: &[u8]) {
    assert_eq!(send(api, package).await.expect_status(201).body["state"], "active");
}

async fn roll_back(api: &Api) {
    api.post("/plugins/watcher/rollback", &json!({})).await.expect_status(200);
}

on_both! {
    async fn a_kill_at_a_migration_leaves_all_old_or_all_new_values(database: Database) {
        let keys = Keys::new();
        let (mut rig, stored, [_, new]) = with_values(database, &keys).await;
        update(rig.api(), &new).await;
        // The answer does not wait for the migration.
        let beyond = brought_to(rig.api(), "1.1.0").await;
        roll_back(rig.api()).await;
        brought_to(rig.api(), "1.0.0").await;
        let steps = Step::around(&[
            (Request::package("/plugins/install", new), UPDATED),
            (Request::post("/plugins/watcher/rollback"), ROLLED_BACK),
        ]);
        rig.kill_around(&stored, &steps, Kills::of(5).beyond(beyond)).await;
    }
}

on_both! {
    async fn a_kill_within_a_migration_leaves_values_of_one_version_and_it_ends_later(database: Database) {
        let keys = Keys::new();
        let (mut rig, stored, [_, new]) = with_values(database, &keys).await;
        let db = rig.stored().await;
        update(rig.api(), &new).await;
        stored.has_begun(&db).await;
        let span = brought_to(rig.api(), "1.1.0").await;
        for part in 0..6 {
            roll_back(rig.api()).await;
            assert_eq!(stored.look(&rig).await, ROLLED_BACK);
            update(rig.api(), &new).await;
            stored.has_begun(&db).await;
            tokio::time::sleep(span * part / 6).await;
            rig.kill_now(async |rig: &Rig| stored.check_stored(rig).await).await;
            assert_eq!(stored.look(&rig).await, UPDATED);
        }
        db.close().await;
    }
}
