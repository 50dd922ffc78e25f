//! Signed files that are not of their form.

use heddle_marketplace::catalog::{Document, Role, Root, RootKey, Step};

use crate::files::next_of;
use crate::server::{CATALOG_KEY, Files, ROOT, Server, TIMESTAMP_KEY, id, public, usual_root};

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
