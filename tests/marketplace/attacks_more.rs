//! Roots, timestamps, answers of web servers and packages that an attacker made, as tests of other TUF clients have them. Each is
//! refused at a step that is named, what was known stays, and the next update with good files ends well.

use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::Clock;
use heddle_marketplace::PublisherKey;
use heddle_marketplace::catalog::bounds::{CATALOG_BYTES_MAX, VERSION_MAX};
use heddle_marketplace::catalog::{
    CATALOG, Catalog, Document, Role, Root, RootKey, TIMESTAMP, Timestamp, catalog_name, root_name,
    signature_name,
};
use serde_json::{Value, json};

use super::attacks::{refused, signed};
use super::registry::Registry;
use super::web::{Mood, Web};
use super::{Lab, offered, options, sync, syncs};
use crate::plugins::{archive_of, guest, manifest};
use crate::support::{Answer, Api, Database, Server, on_both};

const DAY: Duration = Duration::from_hours(24);
/// Enough keys for a root.
const TWO: &[&str] = &["root-1", "root-2"];

/// A server that knows catalogue 2.
async fn knowing(database: Database) -> Lab {
    let lab = Lab::start(database).await;
    lab.registry.add(&lab.package("1.1.0"));
    syncs(&lab.api, "updated").await;
    lab
}

/// Serves a file with signatures by these keys.
fn put(lab: &Lab, document: Document, name: &str, bytes: &[u8], keys: &[&str]) {
    lab.registry.write(&signature_name(name), &signed(lab, document, bytes, keys));
    lab.registry.write(name, bytes);
}

/// The first root under another version.
fn root(lab: &Lab, version: u64) -> Root {
    let mut root = Root::parse("1.root.json", &lab.registry.read("1.root.json")).unwrap();
    root.version = version;
    root
}

fn put_root(lab: &Lab, root: &Root, keys: &[&str]) {
    put(lab, Document::Root, &root.name(), &root.to_bytes(), keys);
}

fn listed(lab: &Lab, key: &str) -> RootKey {
    RootKey::of(&PublisherKey::load(&lab.registry.path(&format!("{key}.key"))).unwrap().trusted().key)
}

/// The root of this version in which the key `next`, made on first use, replaces the key of the timestamp.
fn with_new_key(lab: &Lab, version: u64) -> Root {
    let path = lab.registry.path("next.key");
    if !path.exists() {
        PublisherKey::generate("next").unwrap().save(&path).unwrap();
    }
    let key = listed(lab, "next");
    let mut root = root(lab, version);
    root.roles.timestamp = Role { keyids: vec![key.keyid.clone()], threshold: 1 };
    root.keys.push(key);
    root
}

/// A change of the next root, the keys that sign it, and the reason for which it is refused.
type BadRoot = (&'static str, fn(&Lab, &mut Root), &'static [&'static str], &'static str);

const BAD_ROOTS: [BadRoot; 10] = [
    (
        "signed by its own new key alone",
        |lab, root| root.roles.root = only(root, listed(lab, "thief")),
        &["thief"],
        "is signed by 0 of the keys for it, and 2 are needed",
    ),
    (
        "signed by the old keys alone",
        |lab, root| root.roles.root = only(root, listed(lab, "thief")),
        TWO,
        "is signed by 0 of the keys for it, and 1 are needed",
    ),
    (
        "a higher threshold that is not reached",
        |_, root| root.roles.root.threshold = 3,
        TWO,
        "is signed by 2 of the keys for it, and 3 are needed",
    ),
    (
        "a version is left out",
        |_, root| root.version = 3,
        TWO,
        "'2.root.json' has the version 3 instead of 2",
    ),
    ("the known version", |_, root| root.version = 1, TWO, "'2.root.json' has the version 1 instead of 2"),
    (
        "a threshold above the keys",
        |_, root| root.roles.catalog.threshold = 2,
        TWO,
        "the threshold of the role 'catalog' is 2 of 1 keys",
    ),
    ("a key twice", |_, root| root.keys.push(root.keys[0].clone()), TWO, "is listed twice"),
    (
        "a role that names a key twice",
        |_, root| root.roles.root.keyids = vec![root.keys[0].keyid.clone(); 2],
        TWO,
        "the role 'root' names a key twice",
    ),
    (
        "another key under a known id",
        |lab, root| root.keys[0].public = listed(lab, "thief").public,
        TWO,
        "is listed under an id that is not its own",
    ),
    (
        "a key that is not listed",
        |lab, root| root.roles.timestamp.keyids = vec![listed(lab, "thief").keyid],
        TWO,
        "which is not listed",
    ),
];

/// Lists a key in a root, and returns a role of this key alone.
fn only(root: &mut Root, key: RootKey) -> Role {
    let role = Role { keyids: vec![key.keyid.clone()], threshold: 1 };
    root.keys.push(key);
    role
}

on_both! {
    async fn a_root_that_does_not_continue_the_chain_is_refused(database: Database) {
        let mut lab = knowing(database).await;
        let good = lab.registry.files();
        for (what, change, keys, words) in BAD_ROOTS {
            let mut next = root(&lab, 2);
            change(&lab, &mut next);
            put(&lab, Document::Root, "2.root.json", &next.to_bytes(), keys);
            refused(&lab, what, "root", words).await;
        }
        let text = String::from_utf8(root(&lab, 2).to_bytes()).unwrap();
        for (what, json, words) in [
            ("a member that is not known", text.replacen('{', "{\"extra\": 1,", 1), "unknown field `extra`"),
            ("two versions", text.replacen('{', "{\"version\": 2,", 1), "the key 'version' occurs twice"),
            ("a version as a text", text.replacen("\"version\": 2", "\"version\": \"2\"", 1), "invalid type"),
            ("a page", "<html></html>".to_owned(), "does not follow the format"),
        ] {
            put(&lab, Document::Root, "2.root.json", json.as_bytes(), TWO);
            refused(&lab, what, "root", words).await;
        }
        lab.registry.put_back(&good);
        syncs(&lab.api, "unchanged").await;

        // With an invalid first root nothing is synced, and the stored state stays.
        lab.registry.write("1.root.json", b"{}");
        lab.restart().await;
        let none = sync(&lab.api).await.expect_status(409);
        assert_eq!(none.error_type(), "marketplace_root", "{}", none.text);
        lab.registry.put_back(&good);
        lab.restart().await;
        assert_eq!(syncs(&lab.api, "unchanged").await["catalog_version"], 2);
    }
}

on_both! {
    async fn a_chain_of_roots_is_followed_to_its_first_bad_one(database: Database) {
        let lab = knowing(database).await;
        let good = lab.registry.files();
        let chain = |until: u64| {
            for version in 2..=until {
                put_root(&lab, &with_new_key(&lab, version), TWO);
            }
            lab.registry.stamp(20, DAY, "next");
        };
        chain(4);
        put_root(&lab, &with_new_key(&lab, 3), &["root-1"]);
        let words = "'3.root.json' is signed by 1 of the keys for it, and 2 are needed";
        refused(&lab, "a bad root between good ones", "root", words).await;
        // The server knows root 2 now, and refuses what the replaced key signs.
        let status = lab.api.get("/marketplace/plugins/sync").await.expect_status(200).body;
        assert!(status["unfit"].as_str().unwrap().contains("keys of the catalogue were replaced"), "{status}");
        lab.registry.put_back(&good);
        refused(&lab, "newer roots are hidden", "timestamp", "is signed by 0 of the keys").await;

        chain(4);
        let mut expired = with_new_key(&lab, 3);
        expired.expires = Clock::default().now() - TimeDelta::days(1);
        put_root(&lab, &expired, TWO);
        syncs(&lab.api, "unchanged").await;
        expired.version = 5;
        put_root(&lab, &expired, TWO);
        refused(&lab, "the last root has expired", "root", "'5.root.json' expired at").await;
        put_root(&lab, &with_new_key(&lab, 6), TWO);
        syncs(&lab.api, "unchanged").await;

        // One update goes through 64 roots. The next one goes on from there.
        for version in 7..=70 {
            put_root(&lab, &with_new_key(&lab, version), TWO);
        }
        let mut bad = with_new_key(&lab, 71);
        bad.roles.timestamp.threshold = 2;
        put_root(&lab, &bad, TWO);
        syncs(&lab.api, "unchanged").await;
        refused(&lab, "a bad root after many", "root", "'71.root.json' does not follow the format").await;
        std::fs::remove_file(lab.registry.served().join(root_name(71))).unwrap();
        syncs(&lab.api, "unchanged").await;
    }
}

on_both! {
    async fn versions_that_a_thief_drove_up_do_not_outlast_the_stolen_key(database: Database) {
        let lab = knowing(database).await;
        lab.registry.stamp(VERSION_MAX, DAY, "timestamp");
        syncs(&lab.api, "unchanged").await;
        let words = "older than the known version 9007199254740991";
        lab.registry.stamp(30, DAY, "timestamp");
        refused(&lab, "the registry's own timestamp", "timestamp", words).await;

        // A key that is only added takes nothing away.
        let mut second = with_new_key(&lab, 2);
        second.roles.timestamp.keyids.push(listed(&lab, "timestamp").keyid);
        put_root(&lab, &second, TWO);
        lab.registry.stamp(30, DAY, "next");
        refused(&lab, "another key beside the stolen one", "timestamp", words).await;
        let mut third = with_new_key(&lab, 3);
        third.keys.retain(|key| key.keyid != listed(&lab, "timestamp").keyid);
        put_root(&lab, &third, TWO);
        syncs(&lab.api, "unchanged").await;
        lab.registry.stamp(29, DAY, "next");
        refused(&lab, "rollback", "timestamp", "older than the known version 30").await;
        lab.registry.stamp(31, DAY, "timestamp");
        refused(&lab, "the stolen key", "timestamp", "is signed by 0 of the keys").await;
        lab.registry.stamp(31, DAY, "next");
        syncs(&lab.api, "unchanged").await;
    }
}

/// Changes of the next timestamp, and the step and the reason at which it is refused.
const BAD_TIMESTAMPS: [(&str, fn(&mut Timestamp), &str, &str); 10] = [
    (
        "the known version with another content",
        |one| {
            one.version -= 1;
            one.expires += TimeDelta::hours(1);
        },
        "timestamp",
        "'timestamp.json' has the known version 2 with another content",
    ),
    (
        "it has expired",
        |one| (one.signed, one.expires) = (one.signed - TimeDelta::days(2), one.signed - TimeDelta::days(1)),
        "timestamp",
        "'timestamp.json' expired at",
    ),
    (
        "it lasts too long",
        |one| one.expires = one.signed + TimeDelta::days(32),
        "timestamp",
        "it expires within 31 days after it was signed",
    ),
    (
        "it is of the future",
        |one| one.signed += TimeDelta::hours(2),
        "clock",
        "set the clock of this machine",
    ),
    (
        "a version that no later one can follow",
        |one| one.version = VERSION_MAX + 1,
        "timestamp",
        "the version is 9007199254740992; 1 to 9007199254740991 is accepted",
    ),
    (
        "a catalogue that is too long",
        |one| one.catalog.length = CATALOG_BYTES_MAX + 1,
        "timestamp",
        "a catalogue has 1 to 16777216 bytes, not 16777217",
    ),
    (
        "another catalogue of the known version",
        |one| one.catalog.sha256 = "0".repeat(64),
        "timestamp",
        "'catalog.json' has the known version 2 with another content",
    ),
    (
        "an older catalogue",
        |one| one.catalog.version = 1,
        "timestamp",
        "'catalog.json' has the version 1, which is older than the known version 2",
    ),
    (
        "the known catalogue under a higher version",
        |one| one.catalog.version = 3,
        "catalog",
        "'catalog.json' has the version 2 instead of 3",
    ),
    (
        "a catalogue that is not there",
        // Behind the timestamp before, which was good: its catalogue was not.
        |one| {
            one.version += 1;
            (one.catalog.version, one.catalog.sha256) = (3, "0".repeat(64));
        },
        "catalog",
        "'catalog.json' is not the file that the timestamp names",
    ),
];

on_both! {
    async fn an_invalid_timestamp_is_refused_at_its_step(database: Database) {
        let lab = knowing(database).await;
        let known = Timestamp::parse(&lab.registry.read(TIMESTAMP)).unwrap();
        for (what, change, step, words) in BAD_TIMESTAMPS {
            let mut next = known.clone();
            next.version += 1;
            change(&mut next);
            put(&lab, Document::Timestamp, TIMESTAMP, &next.to_bytes(), &["timestamp"]);
            refused(&lab, what, step, words).await;
        }
        let mut next = serde_json::to_value(&known).unwrap();
        next["version"] = json!(3);
        for (what, member, value, words) in [
            ("a member that is not known", "extra", json!(1), "unknown field `extra`"),
            ("a version as a text", "version", json!("3"), "invalid type"),
            ("a version with a point", "version", json!(3.0), "invalid type"),
            ("a time without a zone", "expires", json!("2027-01-15T00:00:00"), "a time is written as"),
            ("a file of another kind", "type", json!("catalog"), "unknown variant `catalog`"),
        ] {
            let mut bad = next.clone();
            bad[member] = value;
            put(&lab, Document::Timestamp, TIMESTAMP, bad.to_string().as_bytes(), &["timestamp"]);
            refused(&lab, what, "timestamp", words).await;
        }
        lab.registry.stamp(5, DAY, "timestamp");
        syncs(&lab.api, "unchanged").await;
    }
}

/// Updates the catalogue, which fails at this step for this reason. Catalogue 1 stays.
async fn fails(api: &Api, what: &str, step: Option<&str>, words: &str) {
    let report = syncs(api, "failed").await;
    assert_eq!(report["step"].as_str(), step, "{what}: {report}");
    assert!(report["reason"].as_str().unwrap().contains(words), "{what}: {report}");
    assert_eq!(report["catalog_version"], 1, "{what}: {report}");
    assert_eq!(offered(api, "").await, ["scripted"], "{what}");
}

on_both! {
    async fn wrong_answers_of_a_web_server_change_nothing(database: Database) {
        let registry = Registry::new();
        let archive = |version: &str| {
            let mut manifest = manifest("http://127.0.0.1:9");
            manifest["version"] = json!(version);
            archive_of(&manifest, guest(), &registry.acme)
        };
        registry.add(&archive("1.0.0"));
        let web = Web::start(&registry).await;
        let server = Server::start_with(database, options(&registry, &web.url)).await;
        let api = server.set_up().await;
        syncs(&api, "updated").await;
        registry.add(&archive("1.1.0"));
        for (mood, with, step, words) in [
            (Mood::Redirect, "timestamp.json", None, "the server answered 302"),
            (Mood::Status(206), "timestamp.json", None, "the server answered 206"),
            (Mood::Status(404), "timestamp.json", Some("timestamp"), "'timestamp.json' is missing"),
            (Mood::CutOff, "timestamp.json", None, "the connection broke"),
            (Mood::Bomb, "timestamp.json", Some("timestamp"), "more than 262144 bytes"),
            (Mood::Endless, "timestamp.json.sig", Some("timestamp"), "more than 16384 bytes"),
            (Mood::Other, "2.root.json", Some("root"), "'2.root.json.sig' is not a signature file"),
            (Mood::Other, "2.catalog.json", Some("catalog"), "'2.catalog.json' has"),
            (Mood::Endless, "2.catalog.json", Some("catalog"), "'2.catalog.json' has more than"),
            (Mood::CutOff, "2.catalog.json.sig", None, "'2.catalog.json.sig' cannot be fetched"),
            // Each file has 20 seconds, however its bytes come.
            (Mood::Slow, "2.catalog.json", None, "no answer in 20000 ms"),
        ] {
            web.answers_for(with, mood);
            fails(&api, &format!("{mood:?} {with}"), step, words).await;
        }
        assert_eq!(web.followed(), Vec::<String>::new(), "no redirect is followed");
        web.answers(Mood::Page);
        assert_eq!(syncs(&api, "updated").await["catalog_version"], 2, "the content type does not matter");
    }
}

async fn install(lab: &Lab) -> Answer {
    lab.api.post("/marketplace/plugins/scripted/install", &json!({ "version": "1.1.0" })).await
}

on_both! {
    async fn an_older_package_does_not_pass_for_a_newer_one(database: Database) {
        let lab = knowing(database).await;
        let good = lab.registry.files();
        let catalog = Catalog::parse(&lab.registry.read(CATALOG)).unwrap();
        let versions = &catalog.plugins[0].versions;
        let package = |number: &str| {
            versions.iter().find(|one| one.version.to_string() == number).unwrap().package.clone()
        };
        let (old, new) = (package("1.0.0"), package("1.1.0"));
        lab.registry.write(&new.url, &lab.registry.read(&old.url));
        let refused = install(&lab).await.expect_status(400);
        assert_eq!(refused.error_type(), "package_refused", "{}", refused.text);
        assert!(refused.text.contains("is not the package that the catalogue lists"), "{}", refused.text);

        // A catalogue that lists the old package under the new version.
        lab.registry.put_back(&good);
        let mut forged = catalog.clone();
        forged.version = 3;
        for one in &mut forged.plugins[0].versions {
            one.package = old.clone();
        }
        for name in [catalog_name(3), CATALOG.to_owned()] {
            put(&lab, Document::Catalog, &name, &forged.to_bytes(), &["catalog"]);
        }
        // The key of the catalogue alone changes nothing: no timestamp names that catalogue.
        syncs(&lab.api, "unchanged").await;
        lab.registry.stamp(30, DAY, "timestamp");
        assert_eq!(syncs(&lab.api, "updated").await["catalog_version"], 3);
        let refused = install(&lab).await.expect_status(400);
        assert!(refused.text.contains("another one than the catalogue lists"), "{}", refused.text);
        lab.api.get("/plugins/scripted").await.expect_status(404);

        lab.registry.publish();
        assert_eq!(syncs(&lab.api, "updated").await["catalog_version"], 4);
        let installed: Value = install(&lab).await.expect_status(201).body;
        assert_eq!(installed["version"], "1.1.0", "{installed}");
    }
}
