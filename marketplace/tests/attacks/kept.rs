//! What a server keeps of an update that failed behind its timestamp: what that revokes holds, and the rest is guarded as before.

use heddle_marketplace::catalog::bounds::VERSION_MAX;
use heddle_marketplace::catalog::{
    Action, CATALOG, Catalog, Document, Revocation, RevokedKind, Step, Timestamp, Unfit, catalog_name,
    signature_name,
};

use crate::server::{CATALOG_KEY, Files, ROOT, Server, TIMESTAMP_KEY, day, root, update};

fn kill() -> Revocation {
    Revocation {
        kind: RevokedKind::Plugin,
        value: "acme-switch".to_owned(),
        versions: None,
        action: Action::Kill,
        reason: "it steals".to_owned(),
    }
}

/// The same timestamp, which revokes.
fn revoking(mut timestamp: Timestamp) -> Timestamp {
    timestamp.revocations = vec![kill()];
    timestamp
}

/// The same files with catalogue 2, and a timestamp 2 that names it and revokes.
fn next_of(files: &Files) -> Files {
    let mut next = files.clone();
    next.publish(2, 2);
    next.timestamp(&revoking(next.stamp(2, 2, 1)), &[TIMESTAMP_KEY]);
    next
}

/// The same files without catalogue 2.
fn without_catalog(files: &Files) -> Files {
    let mut bad = files.clone();
    bad.0.remove(&catalog_name(2));
    bad
}

/// `test_snapshot_404`, `test_targets_404`, `test_new_snapshot_unsigned`, `test_snapshot_hash_mismatch`
#[test]
fn what_a_timestamp_revokes_holds_although_its_catalogue_is_refused() {
    let files = Files::new();
    let (server, good) = (Server::of(&files), next_of(&files));
    let name = catalog_name(2);
    let mut unsigned = good.clone();
    unsigned.0.remove(&signature_name(&name));
    let mut forged = good.clone();
    forged.put(Document::Catalog, &name, good.0[&name].clone(), &[TIMESTAMP_KEY]);
    let mut other = good.clone();
    other.0.insert(name.clone(), good.0["1.catalog.json"].clone());
    for (what, bad, words) in [
        ("it is absent", without_catalog(&good), "'catalog.json' is missing"),
        ("its signatures are absent", unsigned, "'2.catalog.json.sig' is missing"),
        ("another key signed it", forged, "is signed by 0 of the keys for it"),
        ("it is another one", other, "'2.catalog.json'"),
    ] {
        let left = server.refuses(what, &bad, &good, Step::Catalog, words);
        assert_eq!((left.timestamp_version(), left.catalog_version()), (Some(2), Some(1)), "{what}");
        assert_eq!(left.revocations(), [kill()], "{what}");
        assert_eq!(left.may_install(server.now), Ok(()), "{what}: the known catalogue is as good as before");
        // The same timestamp brings its catalogue, once that is there.
        let updated = update(&left, day(3), &good).unwrap();
        assert_eq!(updated.catalog.map(|fetched| fetched.catalog.version), Some(2), "{what}");
        assert_eq!(updated.state.revocations(), [kill()], "{what}");
    }
}

/// `test_snapshot_expired`, `test_targets_expired`
#[test]
fn what_a_timestamp_revokes_holds_although_the_catalogue_has_expired() {
    let files = Files::new();
    let server = Server { now: day(92), ..Server::of(&files) };
    let mut known = files.clone();
    known.timestamp(&revoking(known.stamp(2, 1, 91)), &[TIMESTAMP_KEY]);
    let mut late = files;
    late.publish(2, 2);
    late.timestamp(&revoking(late.stamp(2, 2, 91)), &[TIMESTAMP_KEY]);
    let mut good = late.clone();
    let content = Catalog::empty(3, day(180)).to_bytes();
    good.put(Document::Catalog, &catalog_name(3), content, &[CATALOG_KEY]);
    good.timestamp(&revoking(good.stamp(3, 3, 91)), &[TIMESTAMP_KEY]);
    for (what, bad, unfit) in [
        ("the known catalogue", known, Unfit::Expired { file: CATALOG, at: day(90) }),
        ("the next catalogue", late, Unfit::Behind { until: day(7) }),
    ] {
        let left = server.refuses(what, &bad, &good, Step::Catalog, "'catalog.json' expired at");
        assert_eq!(left.revocations(), [kill()], "{what}");
        assert_eq!(left.may_install(server.now), Err(unfit), "{what}");
    }
}

#[test]
fn what_was_kept_of_a_failed_update_guards_against_the_old() {
    let files = Files::new();
    let good = next_of(&files);
    let failed = update(&Server::of(&files).state, day(2), &without_catalog(&good)).unwrap_err();
    let server = Server { state: *failed.kept.unwrap(), now: day(2) };
    let stamped = |version: u64, change: fn(Timestamp) -> Timestamp| {
        let mut files = good.clone();
        files.timestamp(&change(files.stamp(version, 2, 1)), &[TIMESTAMP_KEY]);
        files
    };
    let same: fn(Timestamp) -> Timestamp = |timestamp| timestamp;
    for (what, bad, step, words) in [
        ("the timestamp before", files, Step::Timestamp, "has the version 1, which is older than"),
        ("the known version with another content", stamped(2, same), Step::Timestamp, "with another content"),
        ("a lost revocation", stamped(3, same), Step::Revocations, "lacks the known entry for the plugin"),
    ] {
        let left = server.refuses(what, &bad, &good, step, words);
        assert_eq!(left, server.state, "{what}");
    }
    assert_eq!(server.accepts("a newer one", &stamped(3, revoking)).catalog_version(), Some(2));
}

/// A server that withholds a catalogue and serves each timestamp gains no time by it.
#[test]
fn timestamps_without_their_catalogue_do_not_prolong_the_known_one() {
    let mut good = Files::new();
    let mut state = Server::of(&good).state;
    good.publish(2, 2);
    for (version, days) in [(2, 3), (3, 6), (4, 9), (5, 15)] {
        good.timestamp(&good.stamp(version, 2, days), &[TIMESTAMP_KEY]);
        let failed = update(&state, day(days), &without_catalog(&good)).unwrap_err();
        state = *failed.kept.unwrap();
        assert_eq!(state.timestamp_version(), Some(version));
        let expected = if days < 7 { Ok(()) } else { Err(Unfit::Behind { until: day(7) }) };
        assert_eq!(state.may_install(day(days)), expected, "day {days}");
        assert_eq!(state.good_at(), Some(day(1)), "such an update was not a good one");
    }
    let updated = update(&state, day(15), &good).unwrap();
    assert_eq!(updated.state.may_install(day(15)), Ok(()));

    // A timestamp that names the known catalogue again ends it, too.
    good.timestamp(&good.stamp(6, 1, 15), &[TIMESTAMP_KEY]);
    let updated = update(&state, day(15), &good).unwrap();
    assert!(updated.catalog.is_none());
    assert_eq!(updated.state.may_install(day(15)), Ok(()));
}

#[test]
fn a_timestamp_that_was_kept_goes_with_the_stolen_key_that_signed_it() {
    let files = Files::new();
    let server = Server::of(&files);
    let mut bad = next_of(&files);
    bad.timestamp(&revoking(bad.stamp(VERSION_MAX, 2, 1)), &[TIMESTAMP_KEY]);
    let bad = without_catalog(&bad);
    let mut good = next_of(&files);
    good.root(&root(2, (&ROOT, 2), (&[CATALOG_KEY], 1), (&[61], 1)), &ROOT[..2]);
    good.timestamp(&good.stamp(2, 2, 1), &[61]);
    let words = "'catalog.json' is missing";
    let left = server.refuses("a thief's version", &bad, &good, Step::Catalog, words);
    assert_eq!(left.timestamp_version(), Some(VERSION_MAX));
    let state = update(&left, server.now, &good).unwrap().state;
    assert_eq!((state.timestamp_version(), state.catalog_version()), (Some(2), Some(2)));
    assert_eq!(state.revocations(), [], "what the thief revoked does not outlast the key");
}
