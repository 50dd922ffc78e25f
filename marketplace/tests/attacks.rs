//! Attacks on a catalogue that the tests of other TUF clients know, carried out on an update as a server makes it.
//!
//! Names such as `test_root_rotation` are of cases in theupdateframework/tuf-conformance and theupdateframework/python-tuf.
//! `README.md` lists all of them. Cases that are not here are in `src/catalog/tests`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends with the place where")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use chrono::{DateTime, TimeDelta};
use ed25519_dalek::SigningKey;
use heddle_marketplace::catalog::bounds::{ROOT_BYTES_MAX, TIMESTAMP_BYTES_MAX, VERSION_MAX};
use heddle_marketplace::catalog::{
    Action, Catalog, CatalogRef, Document, Failure, Next, Revocation, RevokedKind, Role, Roles, Root,
    RootKey, Signatures, State, Step, TIMESTAMP, Time, Timestamp, Update, Updated, catalog_name,
    signature_name,
};
use heddle_marketplace::key_id;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Keys are told by small numbers. Two of these three sign a root. 0 to 9 are free for the tables of cases.
const ROOT: [u8; 3] = [41, 42, 43];
const CATALOG_KEY: u8 = 50;
const TIMESTAMP_KEY: u8 = 60;
/// Bytes of a file of signatures.
const SIGNATURE_BYTES_MAX: u64 = 16 * 1024;

/// Keys of a role, and how many of them sign.
type Keys<'a> = (&'a [u8], usize);

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

fn public(number: u8) -> [u8; 32] {
    key(number).verifying_key().to_bytes()
}

fn id(number: u8) -> String {
    key_id(&public(number))
}

/// The beginning of 2027, and so many days later.
fn day(days: i64) -> Time {
    DateTime::from_timestamp(1_798_761_600, 0).unwrap() + TimeDelta::days(days)
}

fn root(version: u64, of_root: Keys<'_>, of_catalog: Keys<'_>, of_timestamp: Keys<'_>) -> Root {
    let used: BTreeSet<u8> = [of_root.0, of_catalog.0, of_timestamp.0].concat().into_iter().collect();
    let role = |(keys, threshold): Keys<'_>| Role {
        keyids: keys.iter().map(|number| id(*number)).collect(),
        threshold,
    };
    let roles = Roles { root: role(of_root), catalog: role(of_catalog), timestamp: role(of_timestamp) };
    let listed = used.iter().map(|number| RootKey::of(&public(*number))).collect();
    Root::new(version, day(365), listed, roles)
}

fn usual_root(version: u64) -> Root {
    root(version, (&ROOT, 2), (&[CATALOG_KEY], 1), (&[TIMESTAMP_KEY], 1))
}

/// What a server of a catalogue has.
#[derive(Clone)]
struct Files(BTreeMap<String, Vec<u8>>);

impl Files {
    /// Root 1, catalogue 1 and timestamp 1, of the first day.
    fn new() -> Self {
        Self::under(&usual_root(1), &ROOT[..2])
    }

    /// The same with another root.
    fn under(root: &Root, signers: &[u8]) -> Self {
        let mut files = Self(BTreeMap::new());
        files.root(root, signers);
        files.publish(1, 1);
        files
    }

    fn put(&mut self, document: Document, name: &str, content: Vec<u8>, signers: &[u8]) {
        let mut signatures = Signatures::default();
        for number in signers {
            signatures.sign(document, &content, &key(*number)).unwrap();
        }
        self.0.insert(signature_name(name), signatures.to_bytes());
        self.0.insert(name.to_owned(), content);
    }

    fn root(&mut self, root: &Root, signers: &[u8]) {
        self.put(Document::Root, &root.name(), root.to_bytes(), signers);
    }

    fn catalog(&mut self, version: u64, signers: &[u8]) {
        let content = Catalog::empty(version, day(90)).to_bytes();
        self.put(Document::Catalog, &catalog_name(version), content, signers);
    }

    fn timestamp(&mut self, timestamp: &Timestamp, signers: &[u8]) {
        self.put(Document::Timestamp, TIMESTAMP, timestamp.to_bytes(), signers);
    }

    /// A timestamp of this day for a catalogue that is served.
    fn stamp(&self, version: u64, of_catalog: u64, days: i64) -> Timestamp {
        let content = &self.0[&catalog_name(of_catalog)];
        let length = u64::try_from(content.len()).unwrap();
        let sha256 = hex::encode(Sha256::digest(content));
        let catalog = CatalogRef { version: of_catalog, length, sha256 };
        Timestamp::new(version, day(days), day(days + 7), catalog, Vec::new())
    }

    /// Serves a catalogue and a timestamp of these versions, signed by the usual keys.
    fn publish(&mut self, of_catalog: u64, version: u64) {
        self.catalog(of_catalog, &[CATALOG_KEY]);
        self.timestamp(&self.stamp(version, of_catalog, 0), &[TIMESTAMP_KEY]);
    }
}

fn update(state: &State, now: Time, files: &Files) -> Result<Updated, Failure> {
    let mut update = Update::begin(state.clone(), now)?;
    while let Next::Fetch { name, .. } = update.next() {
        update = update.give(files.0.get(&name).cloned())?;
    }
    Ok(update.finish().unwrap())
}

/// What a server knows, and its time.
struct Server {
    state: State,
    now: Time,
}

impl Server {
    /// One that knows all of these files since the second day. It is the third day now.
    fn of(files: &Files) -> Self {
        let begun = State::with_root(&files.0["1.root.json"], day(0)).unwrap();
        Self { state: update(&begun, day(1), files).unwrap().state, now: day(2) }
    }

    /// What is known after an update, which must end well.
    #[track_caller]
    fn accepts(&self, what: &str, files: &Files) -> State {
        match update(&self.state, self.now, files) {
            Ok(updated) => updated.state,
            Err(failure) => panic!("{what}: {failure}"),
        }
    }

    /// The update is refused at this step with these words. Returns what is stored then: the old state, at most under a newer
    /// root. With the good files an update goes on from it.
    #[track_caller]
    fn refuses(&self, what: &str, bad: &Files, good: &Files, step: Step, words: &str) -> State {
        let failure = update(&self.state, self.now, bad).expect_err(what);
        let shown = failure.to_string();
        assert_eq!(failure.step, step, "{what}: {shown}");
        assert!(shown.contains(&format!("step '{step}'")), "{what}: {shown}");
        assert!(shown.contains(words), "{what}: expected {words}, got {shown}");
        let left = failure.newer_root.map_or_else(|| self.state.clone(), |newer| *newer);
        let beside_root = |state: &State| {
            let mut value = serde_json::to_value(state).unwrap();
            value["trust"] = Value::Null;
            value
        };
        assert_eq!(beside_root(&left), beside_root(&self.state), "{what}");
        if let Err(failure) = update(&left, self.now, good) {
            panic!("{what}: with good files: {failure}");
        }
        left
    }
}

/// Keys of a role, how many of them sign, and the keys that signed.
type Rotation = (&'static [u8], usize, &'static [u8]);

/// Chains of roots, and why the last one is refused; `None` where it is accepted.
const ROOT_ROTATIONS: [(&str, &[Rotation], Option<&str>); 15] = [
    ("1-of-1-key-rotation", &[(&[1], 1, &[1]), (&[2], 1, &[2, 1]), (&[2], 1, &[2])], None),
    (
        "1-of-1-key-rotation-unused-signatures",
        &[(&[1], 1, &[3, 1, 4]), (&[2], 1, &[3, 2, 1, 4]), (&[2], 1, &[3, 2, 4])],
        None,
    ),
    (
        "3-of-5-sign-with-different-keycombos",
        &[
            (&[0, 1, 2, 3, 4], 3, &[0, 2, 4]),
            (&[0, 1, 2, 3, 4], 3, &[0, 4, 1]),
            (&[0, 1, 2, 3, 4], 3, &[0, 1, 3]),
            (&[0, 1, 2, 3, 4], 3, &[0, 1, 3]),
        ],
        None,
    ),
    ("3-of-5-one-key-rotated", &[(&[0, 1, 2, 3, 4], 3, &[0, 2, 4]), (&[0, 1, 3, 4, 5], 3, &[0, 4, 1])], None),
    (
        "3-of-5-one-key-rotated-with-intermediate-step",
        &[
            (&[0, 1, 2, 3, 4], 3, &[0, 2, 4]),
            (&[0, 1, 3, 4, 5], 3, &[0, 2, 4, 5]),
            (&[0, 1, 3, 4, 5], 3, &[0, 4, 5]),
        ],
        None,
    ),
    (
        "3-of-5-all-keys-rotated-with-intermediate-step",
        &[
            (&[0, 1, 2, 3, 4], 3, &[0, 2, 4]),
            (&[5, 6, 7, 8, 9], 3, &[0, 2, 4, 5, 6, 7]),
            (&[5, 6, 7, 8, 9], 3, &[5, 6, 7]),
        ],
        None,
    ),
    ("1-of-3-threshold-increase-to-2-of-3", &[(&[1, 2, 3], 1, &[1]), (&[1, 2, 3], 2, &[1, 2])], None),
    (
        "2-of-3-threshold-decrease-to-1-of-3",
        &[(&[1, 2, 3], 2, &[1, 2]), (&[1, 2, 3], 1, &[1, 2]), (&[1, 2, 3], 1, &[1])],
        None,
    ),
    ("1-of-2-threshold-increase-to-2-of-2", &[(&[1], 1, &[1]), (&[1, 2], 2, &[1, 2])], None),
    (
        "1-of-1-key-rotation-fail-not-signed-with-old-key",
        &[(&[1], 1, &[1]), (&[2], 1, &[2, 3, 4])],
        Some("is signed by 0 of the keys for it, and 1 are needed"),
    ),
    (
        "1-of-1-key-rotation-fail-not-signed-with-new-key",
        &[(&[1], 1, &[1]), (&[2], 1, &[1, 3, 4])],
        Some("is signed by 0 of the keys for it, and 1 are needed"),
    ),
    (
        "3-of-5-one-key-rotate-fails-not-signed-with-3-new-keys",
        &[(&[0, 1, 2, 3, 4], 3, &[0, 2, 4]), (&[0, 1, 3, 4, 5], 3, &[0, 2, 4])],
        Some("is signed by 2 of the keys for it, and 3 are needed"),
    ),
    (
        "3-of-5-one-key-rotate-fails-not-signed-with-3-old-keys",
        &[(&[0, 1, 2, 3, 4], 3, &[0, 2, 4]), (&[0, 1, 3, 4, 5], 3, &[0, 4, 5])],
        Some("is signed by 2 of the keys for it, and 3 are needed"),
    ),
    (
        "1-of-3-threshold-bump-to-2-of-3-fails-new-threshold-not-reached",
        &[(&[1, 2, 3], 1, &[1]), (&[1, 2, 3], 2, &[2])],
        Some("is signed by 1 of the keys for it, and 2 are needed"),
    ),
    (
        "2-of-3-threshold-decr-to-1-of-3-fails-old-threshold-not-reached",
        &[(&[1, 2, 3], 2, &[1, 2]), (&[1, 2, 3], 1, &[1])],
        Some("is signed by 1 of the keys for it, and 2 are needed"),
    ),
];

/// `test_root_rotation`
#[test]
fn roots_are_rotated_as_in_the_conformance_tests() {
    for (what, chain, refused) in ROOT_ROTATIONS {
        let rooted = |version: u64, (keys, threshold, _): Rotation| {
            root(version, (keys, threshold), (&[CATALOG_KEY], 1), (&[TIMESTAMP_KEY], 1))
        };
        let good = Files::under(&rooted(1, chain[0]), chain[0].2);
        let server = Server::of(&good);
        let mut files = good.clone();
        for (version, rotation) in (2..).zip(&chain[1..]) {
            files.root(&rooted(version, *rotation), rotation.2);
        }
        let last = u64::try_from(chain.len()).unwrap();
        let (state, expected) = match refused {
            None => (server.accepts(what, &files), last),
            Some(words) => (server.refuses(what, &files, &good, Step::Root, words), last - 1),
        };
        assert_eq!(state.root_version(), Some(expected), "{what}");
    }
}

/// Keys that a role has from root 2 on, and why a file that these keys signed is refused.
const ROLE_ROTATIONS: [(&str, Rotation, Option<&str>); 10] = [
    ("1-of-1-key-rotation", (&[2], 1, &[2]), None),
    ("1-of-1-key-rotation-unused-signatures", (&[1], 1, &[3, 1, 4]), None),
    (
        "1-of-1-key-rotation-fail-not-signed-with-new-key",
        (&[2], 1, &[1, 3, 4]),
        Some("is signed by 0 of the keys for it, and 1 are needed"),
    ),
    (
        "3-of-5-one-key-signature-wrong-not-signed-with-3-expected-keys",
        (&[0, 1, 3, 4, 5], 3, &[0, 2, 4]),
        Some("is signed by 2 of the keys for it, and 3 are needed"),
    ),
    (
        "2-of-5-one-key-signature-missing-threshold-not-reached",
        (&[0, 1, 3, 4, 5], 3, &[0, 4]),
        Some("is signed by 2 of the keys for it, and 3 are needed"),
    ),
    ("3-of-5-sign-first-combo", (&[0, 1, 2, 3, 4], 3, &[0, 2, 4]), None),
    ("3-of-5-sign-second-combo", (&[0, 1, 2, 3, 4], 3, &[0, 4, 1]), None),
    ("3-of-5-sign-third-combo", (&[0, 1, 2, 3, 4], 3, &[0, 1, 3]), None),
    ("3-of-5-sign-fourth-combo", (&[0, 1, 2, 3, 4], 3, &[1, 2, 3]), None),
    ("3-of-5-sign-fifth-combo", (&[0, 1, 2, 3, 4], 3, &[2, 3, 4]), None),
];

/// `test_non_root_rotations`, `test_snapshot_does_not_meet_threshold`
#[test]
fn keys_of_the_other_roles_are_rotated_as_in_the_conformance_tests() {
    let files = Files::new();
    let server = Server::of(&files);
    for (case, (keys, threshold, signers), refused) in ROLE_ROTATIONS {
        for is_of_catalog in [true, false] {
            let published = |signers: &[u8]| {
                let mut files = files.clone();
                if is_of_catalog {
                    let root = root(2, (&ROOT, 2), (keys, threshold), (&[TIMESTAMP_KEY], 1));
                    files.root(&root, &ROOT[..2]);
                    files.publish(2, 2);
                    files.catalog(2, signers);
                } else {
                    let root = root(2, (&ROOT, 2), (&[CATALOG_KEY], 1), (keys, threshold));
                    files.root(&root, &ROOT[..2]);
                    files.publish(2, 2);
                    files.timestamp(&files.stamp(2, 2, 0), signers);
                }
                files
            };
            let what = format!("{case}, catalogue: {is_of_catalog}");
            let step = if is_of_catalog { Step::Catalog } else { Step::Timestamp };
            if let Some(words) = refused {
                let left = server.refuses(&what, &published(signers), &published(keys), step, words);
                assert_eq!(left.root_version(), Some(2), "{what}");
            } else {
                let state = server.accepts(&what, &published(signers));
                assert_eq!((state.catalog_version(), state.timestamp_version()), (Some(2), Some(2)));
            }
        }
    }
}

/// `test_intermediate_root_incorrectly_signed`, `test_new_root_same_version`, `test_new_root_nonconsecutive_version`
#[test]
fn a_bad_root_in_the_middle_ends_the_chain_and_those_before_it_stay() {
    let files = Files::new();
    let server = Server::of(&files);
    let mut good = files;
    for version in 2..=4 {
        good.root(&usual_root(version), &ROOT[..2]);
    }
    let of = |version: u64| usual_root(version).to_bytes();
    let mut greedy = usual_root(3);
    greedy.roles.root.threshold = 4;
    let cases: [(&str, Vec<u8>, &[u8], &str); 6] = [
        (
            "signed by too few",
            of(3),
            &ROOT[..1],
            "'3.root.json' is signed by 1 of the keys for it, and 2 are needed",
        ),
        (
            "signed by keys of other roles",
            of(3),
            &[CATALOG_KEY, TIMESTAMP_KEY],
            "'3.root.json' is signed by 0 of the keys",
        ),
        ("the version before once more", of(2), &ROOT, "'3.root.json' has the version 2 instead of 3"),
        ("a version is left out", of(4), &ROOT, "'3.root.json' has the version 4 instead of 3"),
        ("no root could follow", greedy.to_bytes(), &ROOT, "the threshold of the role 'root' is 4 of 3 keys"),
        ("no JSON", b"<html>".to_vec(), &ROOT, "'3.root.json' does not follow the format"),
    ];
    for (what, content, signers, words) in cases {
        let mut bad = good.clone();
        bad.put(Document::Root, "3.root.json", content, signers);
        let left = server.refuses(what, &bad, &good, Step::Root, words);
        assert_eq!(left.root_version(), Some(2), "{what}");
    }
    let mut bad = good.clone();
    bad.0.remove("3.root.json.sig");
    let left = server.refuses("no signatures", &bad, &good, Step::Root, "'3.root.json.sig' is missing");
    assert_eq!(left.root_version(), Some(2));
    assert_eq!(server.accepts("the good chain", &good).root_version(), Some(4));
}

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

/// Root 2, catalogue 2 and timestamp 2 beside the first ones.
fn next_of(files: &Files) -> Files {
    let mut next = files.clone();
    next.root(&usual_root(2), &ROOT[..2]);
    next.publish(2, 2);
    next
}

/// `test_unsigned_metadata`, `test_new_timestamp_unsigned`, `test_new_snapshot_unsigned`, `test_new_targets_unsigned`
#[test]
fn a_file_that_too_few_keys_of_its_role_signed_is_refused_in_each_role() {
    let files = Files::new();
    let (server, good) = (Server::of(&files), next_of(&files));
    let roles: [(&str, Document, Step, &[u8], &str, u64); 3] = [
        (
            "2.root.json",
            Document::Root,
            Step::Root,
            &[ROOT[0], CATALOG_KEY, TIMESTAMP_KEY],
            "is signed by 1 of the keys for it, and 2 are needed",
            1,
        ),
        (
            "timestamp.json",
            Document::Timestamp,
            Step::Timestamp,
            &[ROOT[0], ROOT[1], CATALOG_KEY],
            "is signed by 0 of the keys for it, and 1 are needed",
            2,
        ),
        (
            "2.catalog.json",
            Document::Catalog,
            Step::Catalog,
            &[ROOT[0], ROOT[1], TIMESTAMP_KEY],
            "is signed by 0 of the keys for it, and 1 are needed",
            2,
        ),
    ];
    for (name, document, step, of_others, words, root_version) in roles {
        for (what, signers, words) in [
            ("keys of other roles", of_others, words),
            ("a key of no role", &[7], "is signed by 0 of the keys"),
            ("no key", &[], "it must hold 1 to 16 signatures"),
        ] {
            let mut bad = good.clone();
            bad.put(document, name, good.0[name].clone(), signers);
            let what = format!("{name}, {what}");
            let left = server.refuses(&what, &bad, &good, step, words);
            assert_eq!(left.root_version(), Some(root_version), "{what}");
        }
    }
}

/// `test_timestamp_404`, `test_snapshot_404`, `test_targets_404`, `test_max_metadata_lengths`,
/// `test_top_level_md_with_invalid_json`
#[test]
fn each_file_that_is_absent_cut_off_or_too_long_is_refused_at_its_step() {
    let files = Files::new();
    let (server, good) = (Server::of(&files), next_of(&files));
    let of_catalog = u64::try_from(good.0["2.catalog.json"].len()).unwrap();
    let unsigned = "is signed by 0 of the keys";
    let no_signatures = "is not a signature file";
    for (name, step, bytes_max, words) in [
        ("2.root.json", Step::Root, ROOT_BYTES_MAX, unsigned),
        ("2.root.json.sig", Step::Root, SIGNATURE_BYTES_MAX, no_signatures),
        ("timestamp.json", Step::Timestamp, TIMESTAMP_BYTES_MAX, unsigned),
        ("timestamp.json.sig", Step::Timestamp, SIGNATURE_BYTES_MAX, no_signatures),
        ("2.catalog.json", Step::Catalog, of_catalog, "bytes; the timestamp says"),
        ("2.catalog.json.sig", Step::Catalog, SIGNATURE_BYTES_MAX, no_signatures),
    ] {
        let with = |content: Vec<u8>| {
            let mut bad = good.clone();
            bad.0.insert(name.to_owned(), content);
            bad
        };
        let half = good.0[name][..good.0[name].len() / 2].to_vec();
        for (what, content) in [("empty", Vec::new()), ("cut off", half)] {
            server.refuses(&format!("{name}, {what}"), &with(content), &good, step, words);
        }
        let endless = vec![b' '; usize::try_from(bytes_max).unwrap() + 1];
        let words = format!("'{name}' has more than {bytes_max} bytes");
        server.refuses(&format!("{name}, too long"), &with(endless), &good, step, &words);

        let mut bad = good.clone();
        bad.0.remove(name);
        let missing = match name {
            // Without a next root, the known one is the last.
            "2.root.json" => {
                assert_eq!(server.accepts(name, &bad).root_version(), Some(1));
                continue;
            }
            // The name that stays is asked for then.
            "2.catalog.json" => "catalog.json",
            other => other,
        };
        let words = format!("'{missing}' is missing");
        server.refuses(&format!("{name}, absent"), &bad, &good, step, &words);
    }
}

/// An entry of a file of signatures.
fn entry(document: Document, content: &[u8], number: u8) -> Value {
    let mut signatures = Signatures::default();
    signatures.sign(document, content, &key(number)).unwrap();
    let file: Value = serde_json::from_slice(&signatures.to_bytes()).unwrap();
    file["signatures"][0].clone()
}

/// `test_duplicate_keys`, `test_duplicate_sig_keyids`, `test_invalid_sig_in_valid_metadata`, `test_keytype_and_scheme`
#[test]
fn a_signature_file_counts_each_key_once() {
    let files = Files::new();
    let (server, mut good) = (Server::of(&files), next_of(&files));
    let of_timestamp = [TIMESTAMP_KEY, 61, 62];
    good.root(&root(2, (&ROOT, 2), (&[CATALOG_KEY], 1), (&of_timestamp, 2)), &ROOT[..2]);
    good.timestamp(&good.stamp(2, 2, 0), &of_timestamp[..2]);

    let content = good.0[TIMESTAMP].clone();
    let by = |number: u8| entry(Document::Timestamp, &content, number);
    let with = |mut entry: Value, member: &str, value: Value| {
        entry[member] = value;
        entry
    };
    let claimed = |number: u8, other: u8| with(by(number), "keyid", json!(id(other)));
    let one_is_short = "is signed by 1 of the keys for it, and 2 are needed";
    for (what, entries, refused) in [
        ("each key once", vec![by(60), by(61)], None),
        ("a key twice beside enough others", vec![by(60), by(60), by(61)], None),
        ("unknown keys beside enough others", vec![by(7), by(60), by(8), by(61)], None),
        ("a wrong signature beside enough others", vec![claimed(60, 62), by(60), by(61)], None),
        ("one key nine times", vec![by(60); 9], Some(one_is_short)),
        ("one signature under the ids of two keys", vec![by(60), claimed(60, 61)], Some(one_is_short)),
        (
            "a signature for another kind of file",
            vec![by(60), entry(Document::Catalog, &content, 61)],
            Some(one_is_short),
        ),
        (
            "a signature without bytes beside enough others",
            vec![by(60), by(61), with(by(62), "sig", json!(""))],
            Some("'sig' must be 64 bytes as base64"),
        ),
        (
            "a key id in capitals",
            vec![by(60), with(by(61), "keyid", json!(id(61).to_uppercase()))],
            Some("'keyid' must be 64 lower-case hex digits"),
        ),
        (
            "a key and a scheme that the file brings",
            vec![by(60), with(by(61), "scheme", json!("none"))],
            Some("unknown field `scheme`"),
        ),
        (
            "more than sixteen",
            [vec![by(60); 15], vec![by(61), by(62)]].concat(),
            Some("it must hold 1 to 16 signatures"),
        ),
    ] {
        let mut shown = good.clone();
        let text = json!({ "signatures": entries }).to_string();
        shown.0.insert(signature_name(TIMESTAMP), text.into_bytes());
        match refused {
            None => assert_eq!(server.accepts(what, &shown).timestamp_version(), Some(2), "{what}"),
            Some(words) => {
                server.refuses(what, &shown, &good, Step::Timestamp, words);
            }
        }
    }
}

/// Changes after which a root is not valid, and the reason for which it is refused.
const INVALID_ROOTS: [(&str, fn(&mut Root), &str); 10] = [
    (
        "one key in the place of two",
        |root| root.roles.catalog = Role { keyids: vec![id(CATALOG_KEY); 2], threshold: 2 },
        "the role 'catalog' names a key twice",
    ),
    (
        "a threshold above the keys",
        |root| root.roles.catalog.threshold = 2,
        "the threshold of the role 'catalog' is 2 of 1 keys",
    ),
    (
        "a threshold of nothing",
        |root| root.roles.timestamp.threshold = 0,
        "the threshold of the role 'timestamp' is 0 of 1 keys",
    ),
    ("a key twice", |root| root.keys.push(RootKey::of(&public(ROOT[0]))), "is listed twice"),
    (
        "a key twice, in capitals",
        |root| {
            let twin = RootKey::of(&public(ROOT[0]));
            root.keys.push(RootKey { public: twin.public.to_uppercase(), ..twin });
        },
        "is listed twice",
    ),
    (
        "another key under a known id",
        |root| root.keys[0].public = RootKey::of(&public(7)).public,
        "is listed under an id that is not its own",
    ),
    (
        "a key that fits signatures which were never made",
        |root| root.keys[0].public = format!("01{}", "0".repeat(62)),
        "is no Ed25519 public key as 64 hex digits",
    ),
    (
        "a key of another kind",
        |root| root.keys[0].public = format!("04{}", "a".repeat(128)),
        "is no Ed25519 public key as 64 hex digits",
    ),
    (
        "a key that is not listed",
        |root| root.roles.timestamp.keyids = vec![id(7)],
        "the role 'timestamp' names the key",
    ),
    (
        "too many keys",
        |root| {
            root.keys.extend((0..9).map(|number| RootKey::of(&public(number))));
            root.roles.timestamp.keyids = (0..9).map(id).collect();
        },
        "it has 9 keys of the role 'timestamp'; 8 are accepted",
    ),
];

/// `test_duplicate_keys`, `test_snapshot_has_too_few_keys`, `test_bad_root_update`
#[test]
fn a_root_with_invalid_keys_or_roles_is_refused_although_it_is_signed() {
    let files = Files::new();
    let (server, good) = (Server::of(&files), next_of(&files));
    for (what, change, words) in INVALID_ROOTS {
        let mut changed = usual_root(2);
        change(&mut changed);
        let mut bad = good.clone();
        bad.root(&changed, &ROOT);
        let left = server.refuses(what, &bad, &good, Step::Root, words);
        assert_eq!(left.root_version(), Some(1), "{what}");
    }
}

/// Changes of a signed text, and the reason for which it is refused then.
fn odd_json(text: &str) -> Vec<(&'static str, String, &'static str)> {
    let first = |from: &str, to: &str| text.replacen(from, to, 1);
    let member = |member: &str| first("{", &format!("{{{member},"));
    let version = |json: &str| first("\"version\": 2", &format!("\"version\": {json}"));
    let nested = format!("\"extra\": {}{}", "[".repeat(40), "]".repeat(40));
    vec![
        ("an unknown member", member("\"extra\": 1"), "unknown field `extra`"),
        ("a member twice", member("\"version\": 9"), "the key 'version' occurs twice in one object"),
        ("many levels", member(&nested), "it is nested deeper than 24 levels"),
        ("a version as a text", version("\"2\""), "invalid type: string"),
        ("a version with a point", version("2.0"), "invalid type: floating point"),
        ("a version with an exponent", version("2e0"), "invalid type: floating point"),
        ("a version of 65 bits", version("18446744073709551618"), "invalid type: floating point"),
        ("a version of 54 bits", version("9007199254740992"), "the version is 9007199254740992"),
        ("a version below zero", version("-2"), "invalid value: integer"),
        ("a version of zero", version("0"), "the version is 0; 1 to 9007199254740991 is accepted"),
        ("no version", version("null"), "invalid type: null"),
        ("a time of a zone", first("T00:00:00Z", "T00:00:00+00:00"), "a time is written as"),
        ("another kind", first("\"type\": \"", "\"type\": \"x-"), "unknown variant `x-"),
        ("a list", format!("[{text}]"), "it must be one JSON object"),
        ("two objects", format!("{text}{{}}"), "trailing characters"),
        ("a mark of the byte order", format!("\u{feff}{text}"), "expected value"),
        ("nothing", String::new(), "EOF while parsing"),
    ]
}

/// `test_custom_fields`, `test_incorrect_metadata_type`, `test_top_level_md_with_invalid_json`, `test_bad_root_update`
#[test]
fn signed_json_that_readers_could_understand_differently_is_refused() {
    let files = Files::new();
    let (server, good) = (Server::of(&files), next_of(&files));
    for (name, document, step, signers) in [
        ("2.root.json", Document::Root, Step::Root, &ROOT[..2]),
        ("timestamp.json", Document::Timestamp, Step::Timestamp, &[TIMESTAMP_KEY]),
    ] {
        let text = String::from_utf8(good.0[name].clone()).unwrap();
        for (what, changed, words) in odd_json(&text) {
            assert_ne!(changed, text, "{what}");
            let mut bad = good.clone();
            bad.put(document, name, changed.into_bytes(), signers);
            let words = format!("'{name}' does not follow the format: {words}");
            server.refuses(&format!("{name}, {what}"), &bad, &good, step, &words);
        }
    }
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
        server.refuses(what, &bad, &good, Step::Catalog, words);
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

/// The sources in a folder, without those in folders of it.
fn sources(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sources = entries.filter(|path| path.extension().is_some_and(|end| end == "rs"));
    sources.map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn every_attack_of_the_table_has_a_test_by_name() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["src/catalog/tests", "tests", "../tests/marketplace"];
    let sources: String = folders.map(|folder| sources(&home.join(folder))).concat();
    let text = std::fs::read_to_string(home.join("README.md")).unwrap();
    let (_, rest) = text.split_once("\n## Attacks\n").unwrap();
    let section = rest.split("\n## ").next().unwrap();
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 20, "the table was found: {} rows", rows.len());
    for row in rows {
        let cell = row.trim_matches('|').split('|').next_back().unwrap();
        let tests: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "no test: {row}");
        for test in tests {
            assert!(sources.contains(&format!("fn {test}(")), "there is no test '{test}': {row}");
        }
    }
}
