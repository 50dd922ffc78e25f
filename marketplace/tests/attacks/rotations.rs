//! Chains of roots, and keys that take the place of others.

use heddle_marketplace::catalog::{Document, Step};

use crate::server::{CATALOG_KEY, Files, ROOT, Server, TIMESTAMP_KEY, root, usual_root};

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
