//! What has expired, stolen keys, and files from before.

use heddle_marketplace::catalog::bounds::VERSION_MAX;
use heddle_marketplace::catalog::{Action, Catalog, Document, Revocation, RevokedKind, Step, Timestamp};

use crate::server::{CATALOG_KEY, Files, ROOT, Server, TIMESTAMP_KEY, day, root, usual_root};

/// `test_expired_local_root`, `test_expired_local_timestamp`, `test_expired_metadata`,
/// `test_expired_timestamp_version_rollback`, `test_expired_timestamp_snapshot_rollback`
#[test]
fn what_has_expired_gives_way_to_news_and_still_guards_against_the_old() {
    let revocation = Revocation {
        kind: RevokedKind::Plugin,
        value: "acme-switch".to_owned(),
        versions: None,
        action: Action::Kill,
        reason: "it steals".to_owned(),
    };
    let mut first = usual_root(1);
    first.expires = day(10);
    let mut files = Files::under(&first, &ROOT[..2]);
    files.publish(2, 5);
    let mut known = files.stamp(5, 2, 0);
    known.revocations = vec![revocation];
    files.timestamp(&known, &[TIMESTAMP_KEY]);
    // The known root and the known timestamp have expired by now.
    let server = Server { now: day(18), ..Server::of(&files) };

    let shown = |change: fn(&mut Timestamp)| {
        let mut files = files.clone();
        files.root(&usual_root(2), &ROOT[..2]);
        let mut timestamp = files.stamp(6, 2, 17);
        timestamp.revocations.clone_from(&known.revocations);
        change(&mut timestamp);
        files.timestamp(&timestamp, &[TIMESTAMP_KEY]);
        files
    };
    let good = shown(|_| ());
    let mut hidden = good.clone();
    hidden.0.remove("2.root.json");
    server.refuses("the newer root is hidden", &hidden, &good, Step::Root, "'1.root.json' expired at");
    let cases: [(&str, fn(&mut Timestamp), Step, &str); 5] = [
        (
            "the known timestamp",
            |one| (one.version, one.signed, one.expires) = (5, day(0), day(7)),
            Step::Timestamp,
            "'timestamp.json' expired at",
        ),
        (
            "an older timestamp",
            |one| one.version = 4,
            Step::Timestamp,
            "'timestamp.json' has the version 4, which is older than the known version 5",
        ),
        (
            "the known version with another content",
            |one| one.version = 5,
            Step::Timestamp,
            "'timestamp.json' has the known version 5 with another content",
        ),
        (
            "an older catalogue",
            |one| one.catalog.version = 1,
            Step::Timestamp,
            "'catalog.json' has the version 1, which is older than the known version 2",
        ),
        (
            "a lost revocation",
            |one| one.revocations.clear(),
            Step::Revocations,
            "lacks the known entry for the plugin 'acme-switch'",
        ),
    ];
    for (what, change, step, words) in cases {
        let left = server.refuses(what, &shown(change), &good, step, words);
        assert_eq!(left.root_version(), Some(2), "{what}");
    }
    let state = server.accepts("news", &good);
    assert_eq!((state.root_version(), state.timestamp_version()), (Some(2), Some(6)));
}

/// `test_targets_hash_mismatch`, `test_snapshot_hash_mismatch`, `test_unsigned_metadata`
#[test]
fn stolen_keys_reach_no_further_than_their_roles() {
    // Two keys sign a catalogue here.
    let of_catalog = [CATALOG_KEY, 51];
    let first = root(1, (&ROOT, 2), (&of_catalog, 2), (&[TIMESTAMP_KEY], 1));
    let mut files = Files::under(&first, &ROOT[..2]);
    files.catalog(1, &of_catalog);
    let server = Server::of(&files);
    let mut good = files;
    good.publish(2, 2);
    good.catalog(2, &of_catalog);
    let forged = Catalog::empty(2, day(80)).to_bytes();
    let forge = |signers: &[u8], is_stamped: bool| {
        let mut bad = good.clone();
        bad.put(Document::Catalog, "2.catalog.json", forged.clone(), signers);
        if is_stamped {
            bad.timestamp(&bad.stamp(2, 2, 0), &[TIMESTAMP_KEY]);
        }
        bad
    };
    for (what, bad, words) in [
        (
            "the key of the timestamp",
            forge(&[TIMESTAMP_KEY], true),
            "is signed by 0 of the keys for it, and 2 are needed",
        ),
        (
            "the key of the timestamp and one of two of the catalogue",
            forge(&[CATALOG_KEY, TIMESTAMP_KEY], true),
            "is signed by 1 of the keys for it, and 2 are needed",
        ),
        ("all keys of the catalogue", forge(&of_catalog, false), "its SHA-256 differs"),
    ] {
        // A forged timestamp was believed: the next one has a higher version.
        let mut next = good.clone();
        next.timestamp(&next.stamp(3, 2, 0), &[TIMESTAMP_KEY]);
        server.refuses(what, &bad, &next, Step::Catalog, words);
    }
    // A root that would give all roles to the attacker's own key.
    let mut bad = good.clone();
    bad.root(&root(2, (&[7], 1), (&[7], 1), (&[7], 1)), &[ROOT[0], CATALOG_KEY, 51, TIMESTAMP_KEY, 7]);
    let words = "is signed by 1 of the keys for it, and 2 are needed";
    let left = server.refuses("all but a second key of the root", &bad, &good, Step::Root, words);
    assert_eq!(left.root_version(), Some(1));
}

/// `test_new_timestamp_fast_forward_recovery`, `test_new_snapshot_fast_forward_recovery`,
/// `test_targets_fast_forward_recovery`
#[test]
fn versions_that_a_thief_drove_up_go_with_the_keys_that_signed_them() {
    let mut files = Files::new();
    files.publish(VERSION_MAX, VERSION_MAX);
    let server = Server::of(&files);
    assert_eq!(server.state.timestamp_version(), Some(VERSION_MAX));
    let recovered = |of_catalog: &[u8], of_timestamp: &[u8]| {
        let mut files = files.clone();
        files.root(&root(2, (&ROOT, 2), (of_catalog, 1), (of_timestamp, 1)), &ROOT[..2]);
        files.catalog(2, &of_catalog[of_catalog.len() - 1..]);
        files.timestamp(&files.stamp(2, 2, 0), &of_timestamp[of_timestamp.len() - 1..]);
        files
    };
    let of_timestamp =
        "'timestamp.json' has the version 2, which is older than the known version 9007199254740991";
    let of_catalog =
        "'catalog.json' has the version 2, which is older than the known version 9007199254740991";
    let added = recovered(&[CATALOG_KEY, 51], &[TIMESTAMP_KEY, 61]);
    for (what, bad, words) in [
        ("keys that are only added", added, of_timestamp),
        ("a new key of the catalogue alone", recovered(&[51], &[TIMESTAMP_KEY]), of_timestamp),
        ("a new key of the timestamp alone", recovered(&[CATALOG_KEY], &[61]), of_catalog),
    ] {
        // The next root replaces the other keys, too.
        let mut good = bad.clone();
        good.root(&root(3, (&ROOT, 2), (&[51], 1), (&[61], 1)), &ROOT[..2]);
        good.catalog(2, &[51]);
        good.timestamp(&good.stamp(2, 2, 0), &[61]);
        server.refuses(what, &bad, &good, Step::Timestamp, words);
    }
    let state = server.accepts("new keys of both roles", &recovered(&[51], &[61]));
    assert_eq!((state.catalog_version(), state.timestamp_version()), (Some(2), Some(2)));
}

/// An owner lets the next key sign beside the old one before a root replaces it.
#[test]
fn a_timestamp_from_before_is_refused_although_a_new_key_signed_it_too() {
    let both = [TIMESTAMP_KEY, 61];
    let mut older = Files::new();
    older.timestamp(&older.stamp(4, 1, 0), &both);
    let mut newer = older.clone();
    newer.timestamp(&newer.stamp(5, 1, 1), &both);
    let server = Server::of(&newer);
    assert_eq!(server.state.timestamp_version(), Some(5));
    let next = root(2, (&ROOT, 2), (&[CATALOG_KEY], 1), (&[61], 1));
    for files in [&mut older, &mut newer] {
        files.root(&next, &ROOT[..2]);
    }
    server.refuses(
        "the timestamp before",
        &older,
        &newer,
        Step::Timestamp,
        "'timestamp.json' was signed at 2027-01-01T00:00:00Z, before the last good one of 2027-01-02T00:00:00Z",
    );
}
