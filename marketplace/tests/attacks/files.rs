//! Files that are absent, cut off, too long or signed by too few keys.

use heddle_marketplace::catalog::bounds::{ROOT_BYTES_MAX, TIMESTAMP_BYTES_MAX};
use heddle_marketplace::catalog::{Document, Signatures, Step, TIMESTAMP, signature_name};
use serde_json::{Value, json};

use crate::server::{
    CATALOG_KEY, Files, ROOT, SIGNATURE_BYTES_MAX, Server, TIMESTAMP_KEY, id, key, root, usual_root,
};

/// Root 2, catalogue 2 and timestamp 2 beside the first ones.
pub(crate) fn next_of(files: &Files) -> Files {
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
