//! What an attacker does who serves the files of a catalogue, or has stolen keys below the threshold: each is refused at a step
//! that is named, and the known catalogue stays.

use std::time::Duration;

use heddle_marketplace::PublisherKey;
use heddle_marketplace::catalog::{Document, Signatures};
use serde_json::{Value, json};

use super::{Lab, offered, syncs};
use crate::support::on_both;

/// Signs bytes with these keys of the registry.
pub(super) fn signed(lab: &Lab, document: Document, bytes: &[u8], keys: &[&str]) -> Vec<u8> {
    let mut signatures = Signatures::default();
    for key in keys {
        let key = PublisherKey::load(std::path::Path::new(&lab.registry.key(key))).unwrap();
        signatures.sign(document, bytes, key.signing()).unwrap();
    }
    signatures.to_bytes()
}

/// Updates the catalogue, which is refused at this step for this reason.
pub(super) async fn refused(lab: &Lab, what: &str, step: &str, words: &str) {
    let report = syncs(&lab.api, "failed").await;
    assert_eq!(report["step"], step, "{what}: {report}");
    assert!(report["reason"].as_str().unwrap().contains(words), "{what}: {report}");
    assert_eq!(report["catalog_version"], 2, "{what}: {report}");
    assert_eq!(offered(&lab.api, "").await, ["scripted"], "{what}");
}

on_both! {
    async fn who_serves_other_files_is_not_believed(database: Database) {
        let lab = Lab::start(database).await;
        let old = lab.registry.files();
        lab.registry.add(&lab.package("1.1.0"));
        syncs(&lab.api, "updated").await;
        let good = lab.registry.files();

        lab.registry.put_back(&old);
        refused(&lab, "rollback of all files", "timestamp", "older than the known version").await;

        lab.registry.put_back(&good);
        let catalog = old.iter().find(|(path, _)| path.ends_with("catalog.json")).unwrap().1;
        lab.registry.stamp(20, Duration::from_hours(24), "timestamp");
        lab.registry.write("2.catalog.json", catalog);
        lab.registry.write("catalog.json", catalog);
        // The known catalogue is the one that the timestamp names: its files are not asked for.
        syncs(&lab.api, "unchanged").await;
        lab.registry.stamp(21, Duration::from_hours(24), "timestamp");
        refused(&lab, "an old catalogue under a new timestamp", "timestamp", "older than the known version").await;

        lab.registry.put_back(&good);
        lab.registry.stamp(22, Duration::from_hours(24), "thief");
        refused(&lab, "a timestamp of another key", "timestamp", "is signed by 0 of the keys").await;

        lab.registry.put_back(&good);
        let timestamp = lab.registry.read("timestamp.json");
        lab.registry.write("timestamp.json", &timestamp[..timestamp.len() - 1]);
        refused(&lab, "a timestamp that is cut off", "timestamp", "is signed by 0 of the keys").await;
        lab.registry.write("timestamp.json", &vec![b' '; 300 << 10]);
        refused(&lab, "a timestamp without end", "timestamp", "more than 262144 bytes").await;

        lab.registry.put_back(&good);
        syncs(&lab.api, "failed").await;
        lab.registry.stamp(30, Duration::from_hours(24), "timestamp");
        syncs(&lab.api, "unchanged").await;
    }
}

on_both! {
    async fn stolen_keys_below_the_threshold_make_no_root(database: Database) {
        let lab = Lab::start(database).await;
        lab.registry.add(&lab.package("1.1.0"));
        syncs(&lab.api, "updated").await;
        let mut root: Value = serde_json::from_slice(&lab.registry.read("1.root.json")).unwrap();
        root["version"] = json!(2);
        let bytes = serde_json::to_vec(&root).unwrap();
        lab.registry.write("2.root.json", &bytes);
        for (what, keys, words) in [
            ("one key", &["root-1"][..], "is signed by 1 of the keys for it, and 2 are needed"),
            ("one key twice", &["root-1", "root-1"][..], "is signed by 1 of the keys for it, and 2 are needed"),
            ("keys of other roles", &["root-1", "catalog", "timestamp", "thief"][..], "is signed by 1 of the keys"),
        ] {
            lab.registry.write("2.root.json.sig", &signed(&lab, Document::Root, &bytes, keys));
            refused(&lab, what, "root", words).await;
        }
        let twice: Value = serde_json::from_slice(&signed(&lab, Document::Root, &bytes, &["root-1"])).unwrap();
        let one = twice["signatures"][0].clone();
        lab.registry.write("2.root.json.sig", json!({ "signatures": [one, one] }).to_string().as_bytes());
        refused(&lab, "one signature twice", "root", "is signed by 1 of the keys").await;
        // What signs a catalogue signs no root.
        lab.registry.write("2.root.json.sig", &signed(&lab, Document::Catalog, &bytes, &["root-1", "root-2"]));
        refused(&lab, "signatures for another purpose", "root", "is signed by 0 of the keys").await;
        lab.registry.write("2.root.json.sig", &signed(&lab, Document::Root, &bytes, &["root-1", "root-2"]));
        syncs(&lab.api, "unchanged").await;
    }
}

on_both! {
    async fn a_catalogue_that_is_not_the_named_one_is_not_taken(database: Database) {
        let lab = Lab::start(database).await;
        lab.registry.add(&lab.package("1.1.0"));
        syncs(&lab.api, "updated").await;
        lab.registry.add(&lab.package("1.2.0"));
        let good = lab.registry.files();
        let catalog = lab.registry.read("3.catalog.json");
        for (what, bytes, words) in [
            ("longer", [&catalog[..], b" "].concat(), "more than"),
            ("cut off", catalog[..catalog.len() - 1].to_vec(), "the timestamp says"),
            ("changed", catalog.iter().map(|byte| if *byte == b'T' { b't' } else { *byte }).collect(), "its SHA-256 differs"),
        ] {
            lab.registry.write("3.catalog.json", &bytes);
            lab.registry.write("catalog.json", &bytes);
            refused(&lab, what, "catalog", words).await;
        }
        lab.registry.put_back(&good);
        lab.registry.write("3.catalog.json.sig", &signed(&lab, Document::Catalog, &catalog, &["thief"]));
        refused(&lab, "another key", "catalog", "is signed by 0 of the keys").await;
        lab.registry.put_back(&good);
        assert_eq!(syncs(&lab.api, "updated").await["catalog_version"], 3);
    }
}

on_both! {
    async fn a_revocation_is_never_taken_back(database: Database) {
        let lab = Lab::start(database).await;
        lab.registry.add(&lab.package("1.1.0"));
        syncs(&lab.api, "updated").await;
        let before = lab.registry.files();
        lab.registry.revoke("plugin", "acme-other", "kill");
        syncs(&lab.api, "updated").await;
        lab.registry.put_back(&before);
        lab.registry.stamp(20, Duration::from_hours(24), "timestamp");
        refused(&lab, "a lost revocation", "revocations", "lacks the known entry for the plugin 'acme-other'").await;
    }
}

on_both! {
    async fn a_clock_that_is_set_back_is_noticed(database: Database) {
        let lab = Lab::start(database).await;
        lab.registry.add(&lab.package("1.1.0"));
        syncs(&lab.api, "updated").await;
        lab.server.running().app.clock.advance(chrono::TimeDelta::hours(-1));
        let lab = Lab { api: lab.server.log_in("ada").await, ..lab };
        refused(&lab, "a clock that is set back", "clock", "set the clock of this machine").await;
        let late = json!({ "override_reason": "it is late" });
        let unfit = lab.api.post("/marketplace/plugins/scripted/install", &late).await.expect_status(409);
        assert_eq!(unfit.error_type(), "catalog_unfit", "nobody can answer for that: {}", unfit.text);
    }
}
