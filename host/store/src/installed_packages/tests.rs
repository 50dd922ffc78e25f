use heddle_core::Clock;
use serde_json::json;

use super::*;
use crate::packages::{self, Package};
use crate::testing::on_both;

/// Its bytes are more than one part, and none of the parts is like another.
fn bytes(seed: u8) -> Vec<u8> {
    (0..PART_BYTES * 2 + 7).map(|at| seed.wrapping_add(u8::try_from(at / 1_000 % 251).unwrap())).collect()
}

async fn put(tx: &mut Tx, clock: &Clock, manifest: &str, seed: u8) {
    let archive = bytes(seed);
    let package = NewKept {
        manifest_sha256: manifest,
        adapter_id: "acme",
        version: "1.0.0",
        archive: &archive,
        installed_at: clock.now(),
        installed_by: Some("ada"),
    };
    keep(tx, &package).await.unwrap();
}

fn chosen(clock: &Clock, manifest: &str, before: Option<&str>) -> Installed {
    Installed {
        adapter_id: "acme".to_owned(),
        manifest_sha256: manifest.to_owned(),
        version: "1.0.0".to_owned(),
        before_sha256: before.map(str::to_owned),
        is_pinned: false,
        changed_at: clock.now(),
    }
}

on_both! {
    async fn a_package_comes_back_as_it_was_installed(db) {
        let clock = Clock::default();
        let mut tx = db.write().await.unwrap();
        assert_eq!(archive(&mut tx, "one").await.unwrap(), None);
        put(&mut tx, &clock, "one", 1).await;
        put(&mut tx, &clock, "two", 2).await;
        put(&mut tx, &clock, "one", 3).await;
        assert_eq!(archive(&mut tx, "one").await.unwrap(), Some(bytes(3)));
        assert_eq!(archive(&mut tx, "two").await.unwrap(), Some(bytes(2)));
    }

    async fn the_bytes_of_two_packages_are_kept_and_the_record_of_all(db) {
        let clock = Clock::default();
        let mut tx = db.write().await.unwrap();
        for (seed, manifest) in [(1, "one"), (2, "two"), (3, "three")] {
            put(&mut tx, &clock, manifest, seed).await;
            let package = Package {
                manifest_sha256: manifest.to_owned(),
                adapter_id: "acme".to_owned(),
                version: "1.0.0".to_owned(),
                component_sha256: "component".to_owned(),
                publisher: "acme".to_owned(),
                key_id: "key".to_owned(),
                rules: json!([]),
                first_served_at: clock.now() + chrono::TimeDelta::seconds(seed.into()),
            };
            packages::record(&mut tx, &package).await.unwrap();
        }
        choose(&mut tx, &chosen(&clock, "two", Some("one"))).await.unwrap();
        choose(&mut tx, &chosen(&clock, "three", Some("two"))).await.unwrap();
        trim(&mut tx, "acme").await.unwrap();
        let known = history(&mut tx, "acme").await.unwrap();
        let kept: Vec<_> = known.iter().map(|one| (one.manifest_sha256.as_str(), one.is_kept)).collect();
        assert_eq!(kept, [("three", true), ("two", true), ("one", false)]);
        assert!(known.iter().all(|one| one.installed_by.as_deref() == Some("ada")), "{known:?}");
        choose(&mut tx, &chosen(&clock, "two", None)).await.unwrap();
        trim(&mut tx, "acme").await.unwrap();
        assert_eq!(archive(&mut tx, "three").await.unwrap(), None);
        assert_eq!(archive(&mut tx, "two").await.unwrap(), Some(bytes(2)));
    }

    async fn a_pin_ends_once(db) {
        let clock = Clock::default();
        let mut tx = db.write().await.unwrap();
        put(&mut tx, &clock, "one", 1).await;
        let pinned = Installed { is_pinned: true, ..chosen(&clock, "one", None) };
        choose(&mut tx, &pinned).await.unwrap();
        assert_eq!(all(&mut tx).await.unwrap(), [pinned]);
        let (first, second) = (clock.now(), clock.now() + chrono::TimeDelta::seconds(1));
        unpin(&mut tx, "acme", first).await.unwrap();
        unpin(&mut tx, "acme", second).await.unwrap();
        let found = find(&mut tx, "acme").await.unwrap().unwrap();
        assert_eq!((found.is_pinned, found.changed_at), (false, first));
        assert_eq!(find(&mut tx, "other").await.unwrap(), None);
    }
}
