//! Lists that lost an entry, and which package an entry is about.

use semver::Version;
use serde_json::json;

use super::super::*;
use super::world::*;

/// A timestamp of this version with these revocations is served.
fn put(world: &mut World, version: u64, revocations: Vec<Revocation>) {
    let mut timestamp = world.timestamp(version, 1);
    timestamp.revocations = revocations;
    world.put_timestamp(&timestamp, &[20]);
}

fn revocation(kind: RevokedKind, value: &str, action: Action) -> Revocation {
    Revocation { kind, value: value.to_owned(), versions: None, action, reason: "stolen".to_owned() }
}

#[test]
fn a_list_that_lost_a_known_entry_is_refused() {
    let mut world = World::new();
    let component = revocation(RevokedKind::Component, &"f".repeat(64), Action::Kill);
    put(&mut world, 1, vec![plugin_revocation("a flaw"), component.clone()]);
    let state = world.known();
    assert_eq!(state.revocations().len(), 2);

    for lacking in [vec![], vec![component.clone()], vec![plugin_revocation("a flaw")]] {
        put(&mut world, 2, lacking);
        world.refuses(&state, day(2), Step::Revocations, "RevocationLost");
    }
    // Milder, or for fewer versions: that is another entry.
    let milder = Revocation { action: Action::Block, ..component.clone() };
    put(&mut world, 2, vec![plugin_revocation("a flaw"), milder]);
    world.refuses(&state, day(2), Step::Revocations, "RevocationLost { kind: \"component\"");
    let narrower = Revocation { versions: Some("<1.0.1".parse().unwrap()), ..plugin_revocation("a flaw") };
    put(&mut world, 2, vec![narrower, component.clone()]);
    world.refuses(
        &state,
        day(2),
        Step::Revocations,
        "RevocationLost { kind: \"plugin\", value: \"acme-switch\" }",
    );

    // In another order, worded anew, and with one more.
    let more = revocation(RevokedKind::Key, &key_id(30), Action::Disable);
    put(&mut world, 2, vec![component, more, plugin_revocation("a flaw in its login")]);
    let state = world.update(&state, day(2)).unwrap().state;
    assert_eq!(state.revocations().len(), 3);
    assert_eq!(state.revocations()[2].reason, "a flaw in its login");
}

#[test]
fn entries_are_of_their_kind() {
    let hash = "f".repeat(64);
    let mut of_package = revocation(RevokedKind::Package, &hash, Action::Block);
    of_package.check().unwrap();
    of_package.versions = Some("<1.0.0".parse().unwrap());
    assert!(of_package.check().unwrap_err().contains("has no 'versions'"));
    for (kind, value) in [
        (RevokedKind::Package, "acme-switch"),
        (RevokedKind::Component, &hash[1..]),
        (RevokedKind::Key, &"F".repeat(64)),
        (RevokedKind::Plugin, &hash),
        (RevokedKind::Plugin, ""),
    ] {
        assert!(revocation(kind, value, Action::Block).check().is_err(), "{kind} {value}");
    }
    let silent = Revocation { reason: String::new(), ..plugin_revocation("") };
    assert!(silent.check().unwrap_err().contains("the reason"));

    let mut world = World::new();
    let state = world.known();
    put(&mut world, 2, vec![silent]);
    world.refuses(&state, day(2), Step::Timestamp, "Format");
    for entry in [
        json!({ "kind": "publisher" }),
        json!({ "action": "warn" }),
        json!({ "versions": "latest" }),
        json!({ "until": 1 }),
    ] {
        let mut text = serde_json::to_value(plugin_revocation("a flaw")).unwrap();
        text.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
        assert!(serde_json::from_value::<Revocation>(text.clone()).is_err(), "{text}");
    }
}

#[test]
fn ranges_of_versions_follow_precedence() {
    let has = |range: &str, version: &str| {
        range.parse::<VersionRange>().unwrap().has(&Version::parse(version).unwrap())
    };
    for (range, version, expected) in [
        ("<1.4.1", "1.4.0", true),
        ("<1.4.1", "1.4.1-rc.1", true),
        ("<1.4.1", "1.4.1", false),
        ("<=1.4.1", "1.4.1+build", true),
        ("=1.4.1", "1.4.1+build", true),
        ("=1.4.1", "1.4.1-rc.1", false),
        (">=1.2.0, <1.3.0", "1.2.9", true),
        (">=1.2.0,<1.3.0", "1.3.0", false),
        (">=1.2.0, <1.3.0", "1.2.0-rc.1", false),
        ("> 1.2.0", "1.2.1", true),
        (">1.2.0", "1.2.0", false),
    ] {
        assert_eq!(has(range, version), expected, "{range} {version}");
    }
    for text in
        ["", "1.4.1", "^1.4.1", "~1.4.1", "<1.4", "*", "<1.4.1,", "<<1.4.1", "=>1.0.0", "<1.4.1 || >2.0.0"]
    {
        assert!(text.parse::<VersionRange>().is_err(), "{text}");
    }
    assert!(format!("<1.0.0-{}", "a".repeat(300)).parse::<VersionRange>().is_err());
    assert_eq!(">=1.2.0,<1.3.0".parse::<VersionRange>().unwrap().to_string(), ">=1.2.0, <1.3.0");
}

#[test]
fn the_gravest_revocation_of_a_package_counts() {
    let mut world = World::new();
    let (archive, manifest, component) = ("a".repeat(64), "b".repeat(64), "c".repeat(64));
    let version = Version::new(1, 0, 0);
    let keys = [key_id(30), key_id(31)];
    let subject = Subject {
        plugin: "acme-switch",
        version: &version,
        package_sha256: Some(&archive),
        manifest_sha256: Some(&manifest),
        component_sha256: Some(&component),
        key_ids: &keys,
    };
    for (entry, found) in [
        (revocation(RevokedKind::Package, &archive, Action::Block), true),
        (revocation(RevokedKind::Package, &manifest, Action::Block), true),
        (revocation(RevokedKind::Package, &component, Action::Block), false),
        (revocation(RevokedKind::Component, &component, Action::Block), true),
        (revocation(RevokedKind::Component, &archive, Action::Block), false),
        (revocation(RevokedKind::Key, &key_id(31), Action::Block), true),
        (revocation(RevokedKind::Key, &key_id(32), Action::Block), false),
        (revocation(RevokedKind::Plugin, "acme-switch", Action::Block), true),
        (revocation(RevokedKind::Plugin, "acme-switches", Action::Block), false),
        (plugin_revocation("old versions"), true),
    ] {
        assert_eq!(entry.concerns(&subject), found, "{entry:?}");
    }
    let newer = Version::new(1, 1, 0);
    assert!(!plugin_revocation("old versions").concerns(&Subject { version: &newer, ..subject }));
    let unknown = Subject {
        package_sha256: None,
        manifest_sha256: None,
        component_sha256: None,
        key_ids: &[],
        ..subject
    };
    assert!(!revocation(RevokedKind::Component, &component, Action::Block).concerns(&unknown));

    let graver = revocation(RevokedKind::Key, &key_id(31), Action::Kill);
    let also = revocation(RevokedKind::Component, &component, Action::Disable);
    put(&mut world, 1, vec![plugin_revocation("old versions"), graver.clone(), also]);
    let state = world.known();
    assert_eq!(state.revoked(&subject), Some(&graver));
    assert_eq!(state.revoked(&Subject { plugin: "other-one", ..unknown }), None);
    assert!(Action::Block < Action::Disable && Action::Disable < Action::Kill);
}
