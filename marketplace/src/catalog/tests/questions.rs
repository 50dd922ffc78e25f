//! Keys for a plugin, versions that may be installed, ids that look alike.

use chrono::TimeDelta;
use semver::Version;
use serde_json::{Value, json};

use super::super::*;
use super::world::*;

fn parsed(catalog: &Value) -> Catalog {
    Catalog::parse(catalog.to_string().as_bytes()).unwrap()
}

/// A publisher whose keys are valid from these days to those.
fn publisher(id: &str, ids: &[&str], keys: &[(u8, i64, i64)]) -> Value {
    let keys = keys.iter().map(|(number, from, to)| {
        json!({
            "keyid": key_id(*number), "public": hex::encode(public(*number)),
            "not-before": time_to_text(&day(*from)), "not-after": time_to_text(&day(*to)),
        })
    });
    json!({ "id": id, "name": id, "ids": ids, "keys": keys.collect::<Vec<_>>() })
}

#[test]
fn keys_sign_in_their_time_for_their_ids() {
    let mut text = catalog(1);
    text["publishers"] = json!([
        publisher("acme", &["acme-*"], &[(30, 0, 100), (31, 80, 200)]),
        publisher("globex", &["globex-*", "acme-next"], &[(32, 0, 200)]),
    ]);
    let catalog = parsed(&text);
    let ids = |id: &str, at: Time, revocations: &[Revocation]| -> Vec<String> {
        let keys = catalog.signing_keys(id, at, revocations);
        assert!(keys.iter().all(|key| key.ids == [id] && key.may_sign(id)));
        keys.iter().map(crate::TrustedKey::key_id).collect()
    };
    let second = TimeDelta::seconds(1);
    assert_eq!(ids("acme-switch", day(0) - second, &[]), [""; 0]);
    assert_eq!(ids("acme-switch", day(0), &[]), [key_id(30)]);
    assert_eq!(ids("acme-switch", day(90), &[]), [key_id(30), key_id(31)], "a rotation overlaps");
    assert_eq!(ids("acme-switch", day(100) - second, &[]), [key_id(30), key_id(31)]);
    assert_eq!(ids("acme-switch", day(100), &[]), [key_id(31)]);
    assert_eq!(ids("acme", day(90), &[]), [""; 0], "'acme-*' is not 'acme'");
    assert_eq!(ids("globex-x", day(90), &[]), [key_id(32)]);
    assert_eq!(
        ids("acme-next", day(0), &[]),
        [key_id(30), key_id(32)],
        "it is not listed, so both may bring it"
    );
    assert_eq!(ids("other", day(90), &[]), [""; 0]);
    let revoked = Revocation {
        kind: RevokedKind::Key,
        value: key_id(30),
        versions: None,
        action: Action::Block,
        reason: "stolen".to_owned(),
    };
    assert_eq!(ids("acme-switch", day(90), &[revoked]), [key_id(31)]);

    // A plugin that is listed is bound to its publisher.
    text["publishers"][1]["ids"] = json!(["*"]);
    let keys = parsed(&text).signing_keys("acme-switch", day(0), &[]);
    assert_eq!(keys.iter().map(|key| key.publisher.as_str()).collect::<Vec<_>>(), ["acme"]);
}

#[test]
fn the_newest_installable_version_fits_the_host() {
    let mut text = catalog(1);
    let first = text["plugins"][0]["versions"][0].clone();
    let version = |number: &str, changes: Value| {
        let mut version = first.clone();
        version["version"] = json!(number);
        version.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        version
    };
    text["plugins"][0]["versions"] = json!([
        version("1.10.0", json!({})),
        version("1.9.0", json!({})),
        version("1.11.0", json!({ "yanked": true })),
        version("1.12.0", json!({ "min-host": "27.0.0" })),
        version("1.13.0", json!({ "api": "2.0" })),
        version("1.14.0-rc.1", json!({})),
        version("1.15.0", json!({ "component-sha256": "9".repeat(64) })),
        version("1.16.0", json!({ "signed-by": [key_id(33)] })),
    ]);
    let catalog = parsed(&text);
    let entry = |kind, value: String| Revocation {
        kind,
        value,
        versions: None,
        action: Action::Block,
        reason: "a flaw".to_owned(),
    };
    let revoked = [entry(RevokedKind::Component, "9".repeat(64)), entry(RevokedKind::Key, key_id(33))];
    let newest = |host: &str, apis: &[&str], revocations: &[Revocation]| {
        let host = Version::parse(host).unwrap();
        catalog.newest_installable("acme-switch", &host, apis, revocations).map(|one| one.version.to_string())
    };
    assert_eq!(newest("26.8.0", &["1.0"], &revoked).as_deref(), Some("1.10.0"));
    assert_eq!(newest("26.8.0", &["1.0"], &revoked[1..]).as_deref(), Some("1.15.0"));
    assert_eq!(newest("26.8.0", &["1.0"], &[]).as_deref(), Some("1.16.0"));
    assert_eq!(newest("27.1.0", &["1.0"], &revoked).as_deref(), Some("1.12.0"));
    assert_eq!(newest("26.8.0", &["1.0", "2.0"], &revoked).as_deref(), Some("1.13.0"));
    assert_eq!(newest("26.7.9", &["1.0"], &[]), None);
    assert_eq!(newest("26.8.0", &["1.0"], &[entry(RevokedKind::Plugin, "acme-switch".to_owned())]), None);
    assert!(catalog.newest_installable("acme-other", &Version::new(99, 0, 0), &["1.0"], &[]).is_none());
    let plugin = catalog.plugin("acme-switch").unwrap();
    assert!(plugin.version(&Version::parse("1.14.0-rc.1").unwrap()).is_some(), "by its name it is found");
}

#[test]
fn ids_one_step_apart_look_alike() {
    for (one, other, expected) in [
        ("acme-switch", "acme-switch", false),
        ("acme-switch", "acme-swich", true),
        ("acme-switch", "acme-switchh", true),
        ("acme-switch", "acme-svitch", true),
        ("acme-switch", "acme-siwtch", true),
        ("acme-switch", "cme-switch", true),
        ("acme-switch", "xacme-switch", true),
        ("acme-switch", "acme-swithc", true),
        ("acme-switch", "acme-stiwch", false),
        ("acme-switch", "acme-swchi", false),
        ("acme-switch", "acme-switch-2", false),
        ("acme-switch", "acme-router", false),
        ("abc", "abc", false),
        ("", "a", true),
    ] {
        assert_eq!(is_lookalike(one, other), expected, "{one} {other}");
        assert_eq!(is_lookalike(other, one), expected, "{other} {one}");
    }
    let catalog = parsed(&catalog(1));
    let found = |id: &str, publisher: &str| catalog.lookalikes(id, publisher).len();
    assert_eq!((found("acme-swich", "globex"), found("acme-switch", "globex")), (1, 1));
    assert_eq!((found("acme-swich", "acme"), found("acme-router", "globex")), (0, 0));
}
