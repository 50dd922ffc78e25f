use chrono::TimeDelta;
use heddle_core::{Clock, ProcessId};
use serde_json::json;

use super::organizations::{self, OrganizationRow, SecretRow};
use super::storage;
use super::timers::{self, TimerRow};
use super::triggers::{self, Wanted};
use super::values::{self, Generation, Keeper, ValueRow};
use super::*;
use crate::packages::{self, Package};
use crate::testing::{World, on_both};

fn plugin(clock: &Clock, plugin_id: &str) -> PluginRow {
    let now = clock.now();
    PluginRow {
        id: clock.new_id(),
        plugin_id: plugin_id.to_owned(),
        state: PluginState::AwaitingConsent,
        reason: None,
        serving_sha256: None,
        before_sha256: None,
        waiting_sha256: Some("aa".to_owned()),
        revision: 1,
        created_at: now,
        updated_at: now,
        removed_at: None,
    }
}

fn version(plugin: &PluginRow, manifest_sha256: &str) -> VersionRow {
    VersionRow {
        manifest_sha256: manifest_sha256.to_owned(),
        plugin_uid: plugin.id,
        version: "1.0.0".to_owned(),
        component_sha256: "cc".to_owned(),
        publisher: "acme".to_owned(),
        key_id: "k".to_owned(),
        signed_by: json!(["k"]),
        archive_sha256: "dd".to_owned(),
        origin: PackageOrigin::Catalog,
        manifest: json!({ "id": plugin.plugin_id }),
        state: PluginState::AwaitingConsent,
        reason: None,
        step: None,
        installed_at: plugin.created_at,
        installed_by: "ada".to_owned(),
    }
}

fn switched(world: &World, plugin: &PluginRow, is_enabled: bool) -> OrganizationRow {
    let now = world.clock.now();
    OrganizationRow {
        id: world.clock.new_id(),
        org_id: world.org,
        plugin_uid: plugin.id,
        is_enabled,
        settings: json!({ "a": 1 }),
        revision: 1,
        created_at: now,
        updated_at: now,
        author_id: Some(world.user),
        configured: String::new(),
        problem: None,
        configure_at: Some(now),
        after_seq: 3,
    }
}

fn value(name: &str, bytes: &[u8], expires_at: Option<Timestamp>) -> ValueRow {
    ValueRow { name: name.to_owned(), bytes: bytes.to_vec(), version: 1, expires_at }
}

async fn names(
    tx: &mut Tx,
    of: Generation,
    behind: (&str, Option<&str>),
    limit: u32,
    now: Timestamp,
) -> Result<Vec<String>> {
    let found = values::list(tx, of, behind, limit, now).await?;
    Ok(found.into_iter().map(|one| one.name).collect())
}

on_both! {
    async fn a_plugin_its_packages_and_grants_are_found_again(db) {
        let clock = Clock::default();
        let row = plugin(&clock, "acme-one");
        let mut tx = db.write().await.unwrap();
        insert(&mut tx, &row).await.unwrap();
        assert!(insert(&mut tx, &plugin(&clock, "acme-two")).await.is_ok());
        assert_eq!(lock(&mut tx, "acme-one").await.unwrap(), Some(row.clone()));
        put_version(&mut tx, &version(&row, "aa")).await.unwrap();
        let rejected = VersionRow { state: PluginState::Rejected, step: Some(PluginState::Compiled), ..version(&row, "aa") };
        put_version(&mut tx, &rejected).await.unwrap();
        assert_eq!(versions(&mut tx, row.id).await.unwrap(), [rejected]);
        set_version_state(&mut tx, "aa", PluginState::Active, Some("why")).await.unwrap();
        let found = find_version(&mut tx, "aa").await.unwrap().unwrap();
        assert_eq!((found.state, found.reason.as_deref()), (PluginState::Active, Some("why")));
        assert_eq!(found.origin, PackageOrigin::Catalog);
        set_version_origin(&mut tx, "aa", PackageOrigin::Upload).await.unwrap();
        let moved = VersionRow { origin: PackageOrigin::Upload, ..found };
        assert_eq!(find_version(&mut tx, "aa").await.unwrap(), Some(moved), "and nothing else");
        assert_eq!(current_versions(&mut tx).await.unwrap().len(), 1, "the one that waits");

        let grant = GrantRow {
            id: clock.new_id(),
            plugin_uid: row.id,
            manifest_sha256: "aa".to_owned(),
            version: "1.0.0".to_owned(),
            grant_hash: "h".to_owned(),
            granted: json!({}),
            granted_by: None,
            granted_by_name: "ada".to_owned(),
            granted_at: clock.now(),
        };
        put_grant(&mut tx, &grant).await.unwrap();
        assert_eq!(grant_of(&mut tx, row.id, "aa").await.unwrap(), Some(grant));
        assert_eq!(grant_of(&mut tx, row.id, "bb").await.unwrap(), None);

        let active = PluginRow { state: PluginState::Active, serving_sha256: Some("aa".to_owned()), waiting_sha256: None, ..row };
        let updated = update(&mut tx, &active, clock.now()).await.unwrap();
        assert_eq!((updated.revision, updated.state), (2, PluginState::Active));
        let ids: Vec<String> = all(&mut tx).await.unwrap().into_iter().map(|one| one.plugin_id).collect();
        assert_eq!(ids, ["acme-one", "acme-two"]);
        tx.commit().await.unwrap();
        let mut tx = db.write().await.unwrap();
        let taken = insert(&mut tx, &plugin(&clock, "acme-one")).await.unwrap_err();
        assert!(taken.is_unique("plugin_name"), "{taken}");
    }

    async fn types_of_events_are_those_of_every_package_that_ever_served(db) {
        let clock = Clock::default();
        let row = plugin(&clock, "acme-one");
        let types = |name: &str| json!([{ "type": name, "title": "One", "payload-schema": { "type": "object" } }]);
        let mut tx = db.write().await.unwrap();
        insert(&mut tx, &row).await.unwrap();
        let sent = [
            ("aa", Some("first"), true), ("bb", Some("second"), true), ("cc", Some("first"), true),
            ("dd", Some("never"), false), ("ee", None, true),
        ];
        for (second, (sha256, declared, has_served)) in (0..).zip(sent) {
            let mut version = version(&row, sha256);
            if let Some(declared) = declared {
                version.manifest["event-types"] = types(declared);
            }
            put_version(&mut tx, &version).await.unwrap();
            if has_served {
                let served = Package {
                    manifest_sha256: sha256.to_owned(),
                    adapter_id: row.plugin_id.clone(),
                    version: version.version,
                    component_sha256: version.component_sha256,
                    publisher: version.publisher,
                    key_id: version.key_id,
                    rules: json!([]),
                    first_served_at: row.created_at + TimeDelta::seconds(second),
                };
                assert!(packages::record(&mut tx, &served).await.unwrap());
            }
        }
        let found = event_types_served(&mut tx).await.unwrap();
        let found: Vec<Value> = found.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        assert_eq!(found, [types("first"), types("second")], "the one that began to serve last is the first");
    }

    async fn settings_and_secrets_are_of_one_organization(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let row = PluginRow { state: PluginState::Active, ..plugin(&a.clock, "acme-one") };
        let mut tx = db.write().await.unwrap();
        insert(&mut tx, &row).await.unwrap();
        let first = organizations::set(&mut tx, &switched(&a, &row, true)).await.unwrap();
        assert_eq!(organizations::switched_on(&mut tx, a.org).await.unwrap(), ["acme-one"]);
        assert_eq!(organizations::switched_on(&mut tx, b.org).await.unwrap(), Vec::<String>::new());
        let second = organizations::set(&mut tx, &switched(&a, &row, false)).await.unwrap();
        assert_eq!((second.id, second.revision), (first.id, 2));
        assert_eq!(organizations::enabled_in(&mut tx, a.org).await.unwrap(), []);
        assert_eq!(organizations::find(&mut tx, b.org, row.id).await.unwrap(), None);
        organizations::set(&mut tx, &switched(&a, &row, true)).await.unwrap();

        let now = a.clock.now();
        let mut secret = SecretRow {
            origin: "https://api.example.net:443".to_owned(),
            id: a.clock.new_id(), org_id: a.org, plugin_uid: row.id, name: "key".to_owned(), secret: vec![1], created_at: now, updated_at: now,
        };
        organizations::put_secret(&mut tx, &secret).await.unwrap();
        secret.secret = vec![2];
        organizations::put_secret(&mut tx, &secret).await.unwrap();
        assert_eq!(organizations::secrets_in_use(&mut tx, a.org, "acme-one").await.unwrap(), [secret.clone()]);
        assert_eq!(organizations::secrets(&mut tx, b.org, row.id).await.unwrap(), []);
        assert!(!organizations::remove_secret(&mut tx, b.org, row.id, "key").await.unwrap());
        assert!(organizations::remove_secret(&mut tx, a.org, row.id, "key").await.unwrap());
        organizations::put_secret(&mut tx, &secret).await.unwrap();
        forget_bindings(&mut tx, row.id).await.unwrap();
        assert_eq!(organizations::secrets(&mut tx, a.org, row.id).await.unwrap(), []);
        assert_eq!(organizations::find(&mut tx, a.org, row.id).await.unwrap(), None);
    }

    async fn values_are_kept_apart_expire_and_are_forgotten_after_a_removal(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let row = plugin(&a.clock, "acme-one");
        let mut tx = db.write().await.unwrap();
        insert(&mut tx, &row).await.unwrap();
        let (in_a, in_b) = (Keeper { org: a.org, plugin: row.id }, Keeper { org: b.org, plugin: row.id });
        let (ours, theirs) = (Generation { keeper: in_a, number: 0 }, Generation { keeper: in_b, number: 0 });
        let now = a.clock.now();
        let later = now + chrono::TimeDelta::seconds(10);
        let some = ["a/1", "a/2", "A/3", "b"].map(|name| value(name, b"xyz", None));
        values::put(&mut tx, ours, &some, now).await.unwrap();
        values::put(&mut tx, ours, &[value("a/4", b"", Some(later)), value("b", b"zzz", None)], now).await.unwrap();
        assert_eq!(names(&mut tx, ours, ("a/", None), 2, now).await.unwrap(), ["a/1", "a/2"]);
        assert_eq!(names(&mut tx, ours, ("a/", Some("a/2")), 9, now).await.unwrap(), ["a/4"]);
        assert_eq!(names(&mut tx, ours, ("a/", None), 9, later).await.unwrap(), ["a/1", "a/2"]);
        assert_eq!(names(&mut tx, theirs, ("", None), 9, now).await.unwrap(), Vec::<String>::new());
        assert_eq!(values::used_bytes(&mut tx, ours, now).await.unwrap(), 3 * (64 + 6) + (64 + 4) + (64 + 3));
        assert_eq!(values::find(&mut tx, theirs, "b", now).await.unwrap(), None);
        assert_eq!(values::find(&mut tx, ours, "a/4", later).await.unwrap(), None);
        let both = values::find_all(&mut tx, ours, &["b", "a/1", "none"], now).await.unwrap();
        assert_eq!(both.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["a/1", "b"]);
        values::remove(&mut tx, ours, &["b", "none"]).await.unwrap();
        assert_eq!(values::forget_expired(&mut tx, later, 10).await.unwrap(), 1);
        assert_eq!(values::forget_removed(&mut tx, later, 10).await.unwrap(), 0);
        let removed = PluginRow { state: PluginState::Removed, removed_at: Some(now), ..row.clone() };
        update(&mut tx, &removed, now).await.unwrap();
        assert_eq!(values::forget_removed(&mut tx, now, 10).await.unwrap(), 0, "not yet");
        let sent_again = PluginRow { state: PluginState::AwaitingConsent, ..removed };
        update(&mut tx, &sent_again, now).await.unwrap();
        assert_eq!(values::forget_removed(&mut tx, later, 2).await.unwrap(), 2, "some at a time");
        assert_eq!(values::forget_removed(&mut tx, later, 10).await.unwrap(), 1);

        let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        assert_eq!(values::note_emitted(&mut tx, in_a, &keys(&["k"]), now).await.unwrap(), ["k"]);
        assert_eq!(values::note_emitted(&mut tx, in_a, &keys(&["k", "l"]), later).await.unwrap(), ["l"]);
        assert_eq!(values::note_emitted(&mut tx, in_b, &keys(&["k"]), now).await.unwrap(), ["k"]);
        assert_eq!(values::trim_emitted(&mut tx, later, 10).await.unwrap(), 2);
    }

    async fn a_plugin_that_begins_anew_has_nothing_of_before(db) {
        let world = World::new(&db, "a").await;
        let (row, other) = (plugin(&world.clock, "acme-one"), plugin(&world.clock, "acme-two"));
        let (keeper, now) = (Keeper { org: world.org, plugin: row.id }, world.clock.now());
        let theirs = Generation { keeper: Keeper { plugin: other.id, ..keeper }, number: 0 };
        let mut tx = db.write().await.unwrap();
        insert(&mut tx, &row).await.unwrap();
        insert(&mut tx, &other).await.unwrap();
        organizations::set(&mut tx, &switched(&world, &row, true)).await.unwrap();
        storage::open(&mut tx, keeper, "1.0.0").await.unwrap();
        let draft = storage::begin(&mut tx, keeper, now).await.unwrap().last_generation;
        for of in [Generation { keeper, number: 0 }, Generation { keeper, number: draft }, theirs] {
            values::put(&mut tx, of, &[value("a", b"x", None)], now).await.unwrap();
        }
        values::note_emitted(&mut tx, keeper, &["k".to_owned()], now).await.unwrap();

        begin_anew(&mut tx, row.id, "2.0.0").await.unwrap();
        let stored = storage::find(&mut tx, keeper).await.unwrap().unwrap();
        assert_eq!((stored.version.as_str(), stored.migrated_to, stored.draft_generation), ("2.0.0", None, None));
        assert!(stored.generation > draft, "no number is given twice");
        for number in 0..=stored.generation {
            let left = names(&mut tx, Generation { keeper, number }, ("", None), 9, now).await.unwrap();
            assert_eq!(left, Vec::<String>::new(), "generation {number}");
        }
        assert_eq!(organizations::find(&mut tx, world.org, row.id).await.unwrap(), None);
        assert_eq!(values::note_emitted(&mut tx, keeper, &["k".to_owned()], now).await.unwrap(), ["k"]);
        assert_eq!(names(&mut tx, theirs, ("", None), 9, now).await.unwrap(), ["a"], "of another plugin");
    }

    async fn a_draft_takes_the_place_of_the_storage_and_what_was_there_is_kept(db) {
        let world = World::new(&db, "a").await;
        let row = plugin(&world.clock, "acme-one");
        let keeper = Keeper { org: world.org, plugin: row.id };
        let generation = |number| Generation { keeper, number };
        let now = world.clock.now();
        let later = now + TimeDelta::days(7);
        let mut tx = db.write().await.unwrap();
        insert(&mut tx, &row).await.unwrap();
        assert_eq!(storage::find(&mut tx, keeper).await.unwrap(), None);
        let opened = storage::open(&mut tx, keeper, "1.0.0").await.unwrap();
        assert_eq!(storage::open(&mut tx, keeper, "9.0.0").await.unwrap(), opened, "it stays as it is");
        assert!(storage::is_empty(&mut tx, opened.living(), now).await.unwrap());
        let some = ["a", "b", "c"].map(|name| value(name, b"old", None));
        values::put(&mut tx, generation(0), &some, now).await.unwrap();
        assert!(!storage::is_empty(&mut tx, opened.living(), now).await.unwrap());

        // Begun twice: the first process was killed, and what it had copied goes.
        let first = storage::begin(&mut tx, keeper, now).await.unwrap();
        let copied = storage::copy(&mut tx, first.living(), 1, ("", 2)).await.unwrap();
        assert_eq!((first.draft_generation, copied.as_deref()), (Some(1), Some("b")));
        let second = storage::begin(&mut tx, keeper, now).await.unwrap();
        assert_eq!(second.draft_generation, Some(2));
        for (after, last) in [("", Some("b")), ("b", Some("c")), ("c", None)] {
            let copied = storage::copy(&mut tx, second.living(), 2, (after, 2)).await.unwrap();
            assert_eq!(copied.as_deref(), last);
        }
        assert_eq!(storage::sweep(&mut tx, now - TimeDelta::seconds(1), 9).await.unwrap(), 0, "calls may see them yet");
        assert_eq!(storage::sweep(&mut tx, now, 9).await.unwrap(), 2);
        values::put(&mut tx, generation(2), &[value("a", b"new", None)], now).await.unwrap();
        assert!(!storage::finish(&mut tx, generation(1), "2.0.0", (later, now)).await.unwrap(), "that one was given up");
        assert!(storage::finish(&mut tx, generation(2), "2.0.0", (later, now)).await.unwrap());
        let stands = storage::find(&mut tx, keeper).await.unwrap().unwrap();
        assert_eq!((stands.version.as_str(), stands.kept_version.as_deref()), ("2.0.0", Some("1.0.0")));
        let of = async |tx: &mut Tx, number| values::find(tx, generation(number), "a", now).await.unwrap().map(|row| row.bytes);
        assert_eq!(of(&mut tx, stands.generation).await.unwrap(), b"new");

        assert_eq!(stands.migrated_to.as_deref(), Some("2.0.0"));
        storage::take_over(&mut tx, keeper, ("2.1.0", Some("2.0.0"))).await.unwrap();
        assert!(storage::put_back(&mut tx, keeper, now).await.unwrap());
        let back = storage::find(&mut tx, keeper).await.unwrap().unwrap();
        assert_eq!((back.version.as_str(), back.generation, back.last_generation), ("1.0.0", 0, 2));
        assert_eq!(of(&mut tx, 0).await.unwrap(), b"old");
        assert_eq!(storage::sweep(&mut tx, now, 9).await.unwrap(), 3, "what the newer version stored");
        assert_eq!(storage::sweep(&mut tx, now, 9).await.unwrap(), 0);
        assert_eq!(storage::find(&mut tx, keeper).await.unwrap().unwrap().sweep_at, None);
        storage::begin(&mut tx, keeper, now).await.unwrap();
        storage::give_up(&mut tx, generation(3), now).await.unwrap();
        assert_eq!(storage::find(&mut tx, keeper).await.unwrap().unwrap().draft_generation, None);
        // Attempts that fail again and again leave nothing behind, and put off no sweep.
        let early = now - TimeDelta::seconds(60);
        let failing = storage::begin(&mut tx, keeper, early).await.unwrap();
        storage::copy(&mut tx, failing.living(), 4, ("", 9)).await.unwrap();
        assert_eq!(storage::forget_draft(&mut tx, generation(4), 9).await.unwrap(), 0, "it is under way");
        storage::give_up(&mut tx, generation(4), later).await.unwrap();
        assert_eq!(storage::forget_draft(&mut tx, generation(4), 2).await.unwrap(), 2);
        assert_eq!(storage::forget_draft(&mut tx, generation(4), 2).await.unwrap(), 1);
        assert_eq!(storage::forget_draft(&mut tx, generation(0), 2).await.unwrap(), 0, "that is the storage");
        let stands = storage::begin(&mut tx, keeper, later).await.unwrap();
        assert_eq!((stands.draft_generation, stands.sweep_at < Some(later)), (Some(5), true));
        storage::give_up(&mut tx, generation(5), later).await.unwrap();

        // A copy whose time is over is deleted in batches, and cannot be put back once the deletion has begun.
        storage::begin(&mut tx, keeper, now).await.unwrap();
        assert!(storage::finish(&mut tx, generation(6), "2.0.0", (later, now)).await.unwrap());
        assert_eq!(storage::forget_kept(&mut tx, now, 9).await.unwrap(), 0);
        assert_eq!(storage::forget_kept(&mut tx, later, 2).await.unwrap(), 2);
        let going = storage::find(&mut tx, keeper).await.unwrap().unwrap();
        assert_eq!((going.kept_version.as_ref(), going.kept_generation), (None, Some(0)));
        assert!(!storage::put_back(&mut tx, keeper, now).await.unwrap());
        assert_eq!(storage::find(&mut tx, keeper).await.unwrap().unwrap(), going);
        assert_eq!(storage::forget_kept(&mut tx, later, 2).await.unwrap(), 1);
        assert_eq!(storage::forget_kept(&mut tx, later, 2).await.unwrap(), 0);
        assert_eq!(storage::find(&mut tx, keeper).await.unwrap().unwrap().kept_generation, None);
    }

    async fn a_trigger_goes_on_where_it_stood_and_is_taken_by_one_process(db) {
        let world = World::new(&db, "a").await;
        let (me, other): (ProcessId, ProcessId) = (world.clock.new_id(), world.clock.new_id());
        let row = plugin(&world.clock, "acme-one");
        let now = world.clock.now();
        let later = now + TimeDelta::seconds(60);
        let keeper = Keeper { org: world.org, plugin: row.id };
        let want = |first: i64, seq: i64| vec![Wanted { plugin: row.id, trigger: "t".to_owned(), after_seq: first - 1, seq }];
        let mut tx = db.write().await.unwrap();
        insert(&mut tx, &row).await.unwrap();
        triggers::want(&mut tx, world.org, &want(5, 9), now).await.unwrap();
        triggers::want(&mut tx, world.org, &want(11, 12), later).await.unwrap();
        let due = triggers::due(&mut tx, now, 10).await.unwrap();
        assert_eq!((due.len(), due[0].seq, due[0].wanted_seq, due[0].due_at), (1, 4, 12, Some(now)));
        // Followed again after a crash, the same events change nothing.
        triggers::want(&mut tx, world.org, &want(5, 9), later).await.unwrap();
        assert_eq!(triggers::due(&mut tx, now, 10).await.unwrap(), due);

        assert!(triggers::claim(&mut tx, &due[0], me, later).await.unwrap());
        assert!(!triggers::claim(&mut tx, &due[0], other, later).await.unwrap());
        let mut held = due[0].clone();
        held.due_at = Some(later);
        assert!(triggers::due(&mut tx, now, 10).await.unwrap().is_empty());
        // More comes while it is called: it is due again at once.
        triggers::want(&mut tx, world.org, &want(20, 20), now).await.unwrap();
        assert!(triggers::done(&mut tx, &held, 12, (None, Some(now)), now).await.unwrap());
        let due = triggers::due(&mut tx, now, 10).await.unwrap();
        assert_eq!((due[0].seq, due[0].wanted_seq, due[0].called_at), (12, 20, Some(now)));
        assert!(triggers::failed(&mut tx, &due[0], (later, 20), (1, Some("why"))).await.unwrap());
        triggers::hasten(&mut tx, keeper, now).await.unwrap();
        let due = triggers::due(&mut tx, now, 10).await.unwrap();
        assert_eq!((due[0].attempts, due[0].single_seq, due[0].problem.as_deref()), (0, 20, Some("why")));
        assert!(triggers::done(&mut tx, &due[0], 20, (None, None), now).await.unwrap());
        assert!(triggers::due(&mut tx, later, 10).await.unwrap().is_empty());
        // What was not wanted meanwhile is passed over.
        triggers::want(&mut tx, world.org, &want(50, 51), now).await.unwrap();
        let due = triggers::due(&mut tx, now, 10).await.unwrap();
        assert_eq!((due[0].seq, due[0].wanted_seq), (49, 51));
        // What a process that is gone had taken is due at once.
        assert!(triggers::claim(&mut tx, &due[0], other, later).await.unwrap());
        triggers::take_back(&mut tx, &[other], now).await.unwrap();
        assert_eq!(triggers::due(&mut tx, now, 10).await.unwrap().len(), 1);
        triggers::forget(&mut tx, row.id, Some(world.clock.new_id())).await.unwrap();
        assert_eq!(triggers::list(&mut tx, keeper).await.unwrap().len(), 1);
        triggers::forget(&mut tx, row.id, Some(world.org)).await.unwrap();
        assert!(triggers::list(&mut tx, keeper).await.unwrap().is_empty());
    }

    async fn a_plugin_that_becomes_active_again_is_called_for_what_waited_and_what_comes(db) {
        let world = World::new(&db, "a").await;
        let now = world.clock.now();
        let later = now + TimeDelta::seconds(60);
        let row = PluginRow { state: PluginState::Active, ..plugin(&world.clock, "acme-one") };
        let keeper = Keeper { org: world.org, plugin: row.id };
        let want = |seq: i64| vec![Wanted { plugin: row.id, trigger: "t".to_owned(), after_seq: seq - 1, seq }];
        let mut tx = db.write().await.unwrap();
        insert(&mut tx, &row).await.unwrap();
        organizations::set(&mut tx, &switched(&world, &row, true)).await.unwrap();
        let head = async |tx: &mut Tx, seq: i64| {
            affected!(
                tx,
                sqlx::query("INSERT INTO event_head (org_id, seq, occurred_at) VALUES ($1, $2, $3)
                    ON CONFLICT (org_id) DO UPDATE SET seq = excluded.seq")
                    .bind(world.org)
                    .bind(seq)
                    .bind(now)
            );
            Ok::<(), crate::error::Error>(())
        };
        let pause = async |tx: &mut Tx| {
            for state in [PluginState::Disabled, PluginState::Active] {
                let standing = PluginRow { state, ..row.clone() };
                update(tx, &standing, now).await.unwrap();
            }
        };
        let stands = async |tx: &mut Tx| {
            let found = triggers::find(tx, keeper, "t").await.unwrap().unwrap();
            (found.seq, found.wanted_seq, found.due_at.is_some())
        };
        head(&mut tx, 8).await.unwrap();
        triggers::want(&mut tx, world.org, &want(8), now).await.unwrap();
        // Events 9 to 20 come while it is inactive, and 21 afterwards.
        head(&mut tx, 20).await.unwrap();
        pause(&mut tx).await;
        assert_eq!(organizations::listening_in(&mut tx, world.org).await.unwrap(), [(row.id, 20)]);
        head(&mut tx, 21).await.unwrap();
        triggers::want(&mut tx, world.org, &want(21), now).await.unwrap();
        assert_eq!(stands(&mut tx).await, (7, 8, true), "what waited is told apart");
        let due = triggers::due(&mut tx, later, 9).await.unwrap().remove(0);
        assert!(triggers::done(&mut tx, &due, 8, (None, None), now).await.unwrap());
        assert_eq!(stands(&mut tx).await, (8, 8, true), "what came since is to be looked for");
        let due = triggers::due(&mut tx, later, 9).await.unwrap().remove(0);
        assert!(triggers::pass_over(&mut tx, &due, 20, now).await.unwrap());
        assert_eq!(stands(&mut tx).await, (20, 21, true));
        let due = triggers::due(&mut tx, later, 9).await.unwrap().remove(0);
        assert!(triggers::done(&mut tx, &due, 21, (None, None), now).await.unwrap());
        assert_eq!(stands(&mut tx).await, (21, 21, false));
        assert!(!triggers::pass_over(&mut tx, &due, 20, now).await.unwrap(), "it is not taken any more");
        // What waits through two such times takes what came between them along.
        triggers::want(&mut tx, world.org, &want(22), now).await.unwrap();
        head(&mut tx, 30).await.unwrap();
        pause(&mut tx).await;
        triggers::want(&mut tx, world.org, &want(31), now).await.unwrap();
        head(&mut tx, 40).await.unwrap();
        pause(&mut tx).await;
        assert_eq!(stands(&mut tx).await, (21, 40, true));
    }

    async fn timers_come_once_and_an_organization_leaves_room_for_others(db) {
        let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let me: ProcessId = a.clock.new_id();
        let row = plugin(&a.clock, "acme-one");
        let now = a.clock.now();
        let later = now + TimeDelta::seconds(60);
        let timer = |org, name: &str, due_at| TimerRow {
            org_id: org, plugin_uid: row.id, name: name.to_owned(), trigger_id: "t".to_owned(), times: json!({ "every_secs": 60 }),
            scheduled_at: due_at, due_at, attempts: 0, problem: None,
        };
        let mut tx = db.write().await.unwrap();
        insert(&mut tx, &row).await.unwrap();
        let keeper = Keeper { org: a.org, plugin: row.id };
        let many: Vec<TimerRow> = (0..12).map(|n| timer(a.org, &format!("n{n:02}"), now)).collect();
        timers::put(&mut tx, keeper, &many).await.unwrap();
        let other = Keeper { org: b.org, plugin: row.id };
        timers::put(&mut tx, other, &[timer(b.org, "one", now + TimeDelta::seconds(1))]).await.unwrap();
        let due = timers::due(&mut tx, later, 64).await.unwrap();
        assert_eq!((due.len(), due.iter().filter(|row| row.org_id == b.org).count()), (9, 1));
        assert!(timers::claim(&mut tx, &due[0], me, later).await.unwrap());
        assert!(!timers::claim(&mut tx, &due[0], me, later).await.unwrap());
        let mut held = due[0].clone();
        held.due_at = later;
        assert!(timers::moved(&mut tx, &held, (later, later), (0, None)).await.unwrap());
        assert_eq!(timers::list(&mut tx, keeper).await.unwrap()[0].scheduled_at, later);
        // Set anew while it is called, it is the new one.
        timers::put(&mut tx, keeper, &[timer(a.org, "n01", later)]).await.unwrap();
        let second = due.iter().find(|row| row.name == "n01").unwrap();
        assert!(!timers::end(&mut tx, second).await.unwrap());
        timers::remove(&mut tx, keeper, &["n02", "none"]).await.unwrap();
        assert_eq!(timers::list(&mut tx, keeper).await.unwrap().len(), 11);
        timers::forget(&mut tx, row.id, None).await.unwrap();
        assert!(timers::list(&mut tx, other).await.unwrap().is_empty());
    }

    async fn a_plugin_with_much_to_do_hides_no_other(db) {
        let mut worlds = Vec::new();
        for n in 0..6 {
            worlds.push(World::new(&db, &format!("o{n}")).await);
        }
        let clock = worlds[0].clock.clone();
        let (slow, other) = (plugin(&clock, "acme-slow"), plugin(&clock, "acme-other"));
        let now = clock.now();
        let (early, later) = (now - TimeDelta::seconds(60), now + TimeDelta::seconds(1));
        let mut tx = db.write().await.unwrap();
        insert(&mut tx, &slow).await.unwrap();
        insert(&mut tx, &other).await.unwrap();
        let timer = |org, of: &PluginRow, name: String, due_at| TimerRow {
            org_id: org, plugin_uid: of.id, name, trigger_id: "t".to_owned(), times: json!({ "every_secs": 60 }),
            scheduled_at: due_at, due_at, attempts: 0, problem: None,
        };
        let want = |of: &PluginRow, trigger: String| Wanted { plugin: of.id, trigger, after_seq: 0, seq: 1 };
        for world in &worlds {
            let keeper = Keeper { org: world.org, plugin: slow.id };
            let many: Vec<TimerRow> = (0..12).map(|n| timer(world.org, &slow, format!("n{n:02}"), early)).collect();
            timers::put(&mut tx, keeper, &many).await.unwrap();
            let many: Vec<Wanted> = (0..12).map(|n| want(&slow, format!("t{n:02}"))).collect();
            triggers::want(&mut tx, world.org, &many, early).await.unwrap();
            organizations::set(&mut tx, &OrganizationRow { configure_at: Some(early), ..switched(world, &slow, true) }).await.unwrap();
        }
        // The other plugin came later, and is in an organization where the first one has more than is read of it.
        let last = &worlds[5];
        let keeper = Keeper { org: last.org, plugin: other.id };
        timers::put(&mut tx, keeper, &[timer(last.org, &other, "one".to_owned(), now)]).await.unwrap();
        triggers::want(&mut tx, last.org, &[want(&other, "one".to_owned())], now).await.unwrap();
        organizations::set(&mut tx, &OrganizationRow { configure_at: Some(now), ..switched(last, &other, true) }).await.unwrap();

        let due = timers::due(&mut tx, later, 4).await.unwrap();
        assert_eq!((due.len(), due.iter().filter(|row| row.plugin_uid == other.id).count()), (4, 1));
        let orgs: std::collections::BTreeSet<_> = due.iter().map(|row| (row.org_id, row.plugin_uid)).collect();
        assert_eq!(orgs.len(), 4, "the plugin's organizations take turns, too");
        let due = triggers::due(&mut tx, later, 4).await.unwrap();
        assert_eq!((due.len(), due.iter().filter(|row| row.plugin_uid == other.id).count()), (4, 1));
        let due = organizations::to_configure(&mut tx, later, 4).await.unwrap();
        assert_eq!((due.len(), due.iter().filter(|row| row.plugin_uid == other.id).count()), (4, 1));
        // Of one organization there are a few.
        let due = timers::due(&mut tx, later, 200).await.unwrap();
        assert_eq!(due.iter().filter(|row| row.org_id == last.org).count(), 8);
    }

    async fn a_package_that_serves_is_told_of_the_settings_once(db) {
        let world = World::new(&db, "a").await;
        let row = plugin(&world.clock, "acme-one");
        let mut tx = db.write().await.unwrap();
        insert(&mut tx, &row).await.unwrap();
        let set = organizations::set(&mut tx, &switched(&world, &row, true)).await.unwrap();
        let now = world.clock.now();
        assert_eq!(organizations::to_configure(&mut tx, now, 9).await.unwrap(), std::slice::from_ref(&set));
        let process: ProcessId = world.clock.new_id();
        let until = now + TimeDelta::seconds(60);
        assert!(organizations::claim(&mut tx, &set, process, until).await.unwrap());
        assert!(!organizations::claim(&mut tx, &set, process, until).await.unwrap());
        assert!(organizations::to_configure(&mut tx, now, 9).await.unwrap().is_empty());
        // What a process that is gone had taken is told at once.
        triggers::take_back(&mut tx, &[process], now).await.unwrap();
        let set = organizations::to_configure(&mut tx, now, 9).await.unwrap().remove(0);
        assert!(organizations::configured(&mut tx, &set, "aa:1", (Some("why"), None)).await.unwrap());
        assert!(!organizations::configured(&mut tx, &set, "aa:1", (None, None)).await.unwrap());
        let active = |serving: &str| PluginRow {
            state: PluginState::Active, serving_sha256: Some(serving.to_owned()), ..row.clone()
        };
        update(&mut tx, &active("aa"), now).await.unwrap();
        let again = organizations::to_configure(&mut tx, now, 9).await.unwrap();
        assert_eq!((again.len(), again[0].problem.as_deref()), (1, None), "it did not take them");
        assert!(organizations::configured(&mut tx, &again[0], "aa:1", (Some("why"), None)).await.unwrap());
        update(&mut tx, &active("aa"), now).await.unwrap();
        assert!(organizations::to_configure(&mut tx, now, 9).await.unwrap().is_empty(), "nothing began to serve");
        let off = PluginRow { state: PluginState::Disabled, ..active("aa") };
        update(&mut tx, &off, now).await.unwrap();
        assert!(organizations::to_configure(&mut tx, now, 9).await.unwrap().is_empty());
        update(&mut tx, &active("aa"), now).await.unwrap();
        let again = organizations::to_configure(&mut tx, now, 9).await.unwrap().remove(0);
        assert!(organizations::configured(&mut tx, &again, "aa:1", (None, None)).await.unwrap());
        update(&mut tx, &off, now).await.unwrap();
        update(&mut tx, &active("aa"), now).await.unwrap();
        assert!(organizations::to_configure(&mut tx, now, 9).await.unwrap().is_empty(), "it was told");
        update(&mut tx, &active("bb"), now).await.unwrap();
        let again = organizations::to_configure(&mut tx, now, 9).await.unwrap();
        assert_eq!((again.len(), again[0].problem.as_deref()), (1, None));
        // Set again while it is on, it goes on from where it was switched on.
        let later = OrganizationRow { after_seq: 9, ..switched(&world, &row, true) };
        organizations::set(&mut tx, &later).await.unwrap();
        assert_eq!(organizations::listening_in(&mut tx, world.org).await.unwrap(), [(row.id, 3)]);
        organizations::set(&mut tx, &OrganizationRow { is_enabled: false, ..later.clone() }).await.unwrap();
        organizations::set(&mut tx, &later).await.unwrap();
        assert_eq!(organizations::listening_in(&mut tx, world.org).await.unwrap(), [(row.id, 9)]);
    }
}
