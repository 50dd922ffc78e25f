//! Catalogues that are not the one that the timestamp names, or that say what none may say.

use serde_json::{Value, json};

use super::super::bounds::CATALOG_BYTES_MAX;
use super::super::*;
use super::world::*;
use crate::verify::{length, sha256};

#[test]
fn a_catalogue_of_another_length_or_hash_is_refused_before_its_signature_is_looked_at() {
    let mut world = World::new();
    let state = world.known();
    world.publish(2, 2);
    let good = world.files["2.catalog.json"].clone();
    world.files.remove("2.catalog.json.sig");

    world.files.insert("2.catalog.json".to_owned(), good[..good.len() - 1].to_vec());
    world.refuses(&state, day(2), Step::Catalog, "Length { file: \"2.catalog.json\"");
    world.files.insert("2.catalog.json".to_owned(), [&good[..], b" "].concat());
    world.refuses(&state, day(2), Step::Catalog, "TooLarge { file: \"2.catalog.json\"");
    let mut other = good.clone();
    other[30] ^= 1;
    world.files.insert("2.catalog.json".to_owned(), other);
    world.refuses(&state, day(2), Step::Catalog, "Hash(\"2.catalog.json\")");
    world.files.insert("2.catalog.json".to_owned(), good);
    world.refuses(&state, day(2), Step::Catalog, "Missing(\"2.catalog.json.sig\")");
}

#[test]
fn no_more_is_asked_for_than_the_timestamp_says() {
    let mut world = World::new();
    let mut timestamp = world.timestamp(2, 1);
    timestamp.catalog.length = CATALOG_BYTES_MAX + 1;
    world.put_timestamp(&timestamp, &[20]);
    let state = world.beginning();
    world.refuses(&state, day(2), Step::Timestamp, "Format");

    world.publish(1, 1);
    let mut update = Update::begin(state, day(1)).unwrap();
    while let Next::Fetch { name, bytes_max } = update.next() {
        if name == "1.catalog.json" {
            assert_eq!(bytes_max, length(&world.files[&name]));
        }
        update = update.give(world.files.get(&name).cloned()).unwrap();
    }
}

#[test]
fn the_name_that_stays_is_asked_for_where_the_versioned_one_is_absent() {
    let mut world = World::new();
    for (from, to) in [("1.catalog.json", CATALOG), ("1.catalog.json.sig", "catalog.json.sig")] {
        let content = world.files.remove(from).unwrap();
        world.files.insert(to.to_owned(), content);
    }
    let state = world.beginning();
    assert!(world.update(&state, day(1)).unwrap().catalog.is_some());
    assert_eq!(world.asked[3..], ["1.catalog.json", "catalog.json", "catalog.json.sig"]);
    world.files.remove(CATALOG);
    world.refuses(&state, day(1), Step::Catalog, "Missing(\"catalog.json\")");
}

#[test]
fn a_catalogue_needs_the_keys_of_its_role() {
    let mut world = World::new();
    let state = world.known();
    for signers in [&[20][..], &[1, 2, 3], &[30]] {
        world.put_catalog(2, catalog(2).to_string().into_bytes(), signers);
        world.put_timestamp(&world.timestamp(2, 2), &[20]);
        world.refuses(
            &state,
            day(2),
            Step::Catalog,
            "Threshold { file: \"2.catalog.json\", needed: 1, found: 0 }",
        );
    }
}

#[test]
fn a_catalogue_has_the_version_that_the_timestamp_says() {
    let mut world = World::new();
    let state = world.known();
    for version in [1, 3] {
        world.put_catalog(2, catalog(version).to_string().into_bytes(), &[10]);
        world.put_timestamp(&world.timestamp(2, 2), &[20]);
        world.refuses(&state, day(2), Step::Catalog, "Version { file: \"2.catalog.json\", expected: 2");
    }
}

#[test]
fn an_expired_catalogue_is_refused_also_when_it_is_known() {
    let mut world = World::new();
    let mut timestamp = world.timestamp(2, 1);
    (timestamp.signed, timestamp.expires) = (day(85), day(95));
    let state = world.known();
    world.put_timestamp(&timestamp, &[20]);
    world.update(&state, day(89)).unwrap();
    world.refuses(&state, day(90), Step::Catalog, "Expired { file: \"catalog.json\"");
    let beginning = world.beginning();
    world.refuses(&beginning, day(90), Step::Catalog, "Expired { file: \"catalog.json\"");
}

/// A signed catalogue with this one value changed is refused with these words.
#[track_caller]
fn rule(pointer: &str, value: Value, words: &str) {
    let mut changed = catalog(1);
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    match changed.pointer_mut(parent).unwrap() {
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => items[last.parse::<usize>().unwrap()] = value,
        parent => parent[last] = value,
    }
    refused(changed.to_string().as_bytes(), words);
}

#[track_caller]
fn refused(content: &[u8], words: &str) {
    let refusal = Catalog::parse(content).expect_err(words);
    assert!(matches!(refusal, Refusal::Format { .. }));
    assert!(refusal.to_string().contains(words), "expected {words}, got {refusal}");
}

#[test]
fn json_that_readers_could_understand_differently_is_refused() {
    let text = catalog(1).to_string();
    refused(text.replacen('{', "{\"version\":9,", 1).as_bytes(), "the key 'version' occurs twice");
    refused(
        text.replacen("\"secrets\":true", "\"secrets\":true,\"secrets\":false", 1).as_bytes(),
        "'secrets' occurs twice",
    );
    refused(
        text.replacen("\"secrets\":true", &format!("\"a\":{}{}", "[".repeat(40), "]".repeat(40)), 1)
            .as_bytes(),
        "nested deeper",
    );
    refused(format!("{text}{{}}").as_bytes(), "trailing");
    refused(&text.as_bytes()[..text.len() - 1], "EOF");
    refused(b"[]", "must be one JSON object");
    rule("/extra", json!(1), "unknown field `extra`");
    rule("/publishers/0/extra", json!(1), "unknown field `extra`");
    rule("/plugins/0/extra", json!(1), "unknown field `extra`");
    rule("/plugins/0/versions/0/extra", json!(1), "unknown field `extra`");
    rule("/plugins/0/versions/0/package/extra", json!(1), "unknown field `extra`");
    rule("/type", json!("timestamp"), "unknown variant `timestamp`");
    for time in [
        "2027-01-01",
        "2027-01-01T00:00:00+00:00",
        "2027-1-1T00:00:00Z",
        "+2027-01-01T00:00:00Z",
        "2027-02-30T00:00:00Z",
        "+12027-01-01T00:00:00Z",
        "2027-01-01T12:30:60Z",
    ] {
        rule("/expires", json!(time), "a time is written as");
    }
    for version in [json!(0), json!(1_u64 << 53)] {
        rule("/version", version, "the version is");
    }
    rule("/version", json!(-1), "invalid value");
    rule("/version", json!(1.5), "invalid type");
}

#[test]
fn publishers_and_plugins_belong_together() {
    let publisher = catalog(1)["publishers"][0].clone();
    let mut twin = publisher.clone();
    twin["id"] = json!("globex");
    rule("/publishers/-", publisher, "publisher 'acme' is listed twice");
    rule("/publishers/-", twin, "is listed twice");
    rule("/publishers/0/id", json!("Acme"), "is no id of a publisher");
    rule("/publishers/0/ids", json!(["other-*"]), "is by 'acme', which is not listed for this id");
    rule("/publishers/0/ids", json!(["a*c"]), "is neither an id nor a beginning");
    rule("/publishers/0/keys/0/keyid", json!(key_id(31)), "under its own id");
    rule("/publishers/0/keys/0/public", json!(format!("01{}", "0".repeat(62))), "is no Ed25519 public key");
    rule("/publishers/0/keys/0/not-after", json!("2026-01-01T00:00:00Z"), "ends before it begins");
    rule("/plugins/0/publisher", json!("globex"), "is by 'globex'");
    rule("/plugins/-", catalog(1)["plugins"][0].clone(), "plugin 'acme-switch' is listed twice");
    rule("/plugins/0/id", json!("acme"), "is by 'acme', which is not listed for this id");
    rule("/plugins/0/id", json!("marketplace"), "the id is reserved");
}

#[test]
fn what_people_read_is_bounded_and_what_it_seems() {
    rule("/plugins/0/name", json!("x".repeat(81)), "the name");
    rule("/plugins/0/name", json!("Switches\u{202e}gpj"), "the name");
    rule("/plugins/0/summary", json!("two\nlines"), "the summary");
    rule("/plugins/0/summary", json!(" "), "the summary");
    rule("/plugins/0/description", json!("x".repeat(16_385)), "the description");
    rule("/plugins/0/description", json!("a\u{200b}b"), "the description");
    rule("/plugins/0/license", json!(""), "the license");
    rule("/plugins/0/categories", json!(["Switching"]), "the category 'Switching'");
    rule(
        "/plugins/0/categories",
        json!(["a", "b", "c", "d", "e", "f", "g", "h", "i"]),
        "more than 8 entries",
    );
    for homepage in
        ["javascript:alert(1)", "https://user:pass@acme.example/", "https://acme.example/ x", "acme"]
    {
        rule("/plugins/0/homepage", json!(homepage), "the homepage");
    }
    for icon in ["../icon.svg", "icons/a.svg", "https://acme.example/icon.svg"] {
        rule("/plugins/0/icon", json!(icon), "the icon");
    }
    rule("/plugins/0/kind", json!("theme"), "unknown variant `theme`");
    let mut changed = catalog(1);
    changed["plugins"][0]["name"] = json!("Коммутаторы 交换机 محولات");
    Catalog::parse(changed.to_string().as_bytes()).unwrap();
}

#[test]
fn versions_are_told_apart_and_name_their_bytes() {
    let of_version = |field: &str| format!("/plugins/0/versions/0/{field}");
    rule(
        "/plugins/0/versions/-",
        catalog(1)["plugins"][0]["versions"][0].clone(),
        "version 1.0.0 is listed twice",
    );
    rule(&of_version("version"), json!("1.1.0+other"), "is listed twice");
    rule(&of_version("version"), json!("1.0"), "unexpected end of input");
    rule(&of_version("version"), json!(format!("1.0.0-{}", "a".repeat(100))), "at most 100 bytes");
    rule(&of_version("manifest-sha256"), json!("E".repeat(64)), "is no SHA-256");
    rule(&of_version("signed-by"), json!(["abc"]), "is no SHA-256");
    rule(&of_version("package/sha256"), json!(""), "'sha256' of a package");
    rule(&of_version("package/length"), json!(0), "a package has 1 to");
    rule(&of_version("package/length"), json!(1_u64 << 40), "a package has 1 to");
    for url in ["../x.zip", "/x.zip", "file:///x.zip", "packages\\x.zip", "", "ftp://acme.example/x.zip"] {
        rule(&of_version("package/url"), json!(url), "is neither a path beside the catalogue nor an address");
    }
    rule(&of_version("api"), json!("1"), "is not 'major.minor'");
    rule(&of_version("min-host"), json!("26"), "unexpected end of input");
    rule(&of_version("capabilities"), json!([]), "'capabilities' begins with '{'");
    rule(&of_version("permissions"), json!("all"), "'permissions' begins with '['");
    rule(&of_version("capabilities"), json!({ "a": "x".repeat(17_000) }), "at most 16384 bytes");
}

#[test]
fn a_catalogue_is_written_as_it_was_read() {
    let content = catalog(1).to_string();
    let parsed = Catalog::parse(content.as_bytes()).unwrap();
    let written: Value = serde_json::from_slice(&parsed.to_bytes()).unwrap();
    assert_eq!(written, catalog(1));
    assert_eq!(sha256(&parsed.to_bytes()), sha256(&Catalog::parse(&parsed.to_bytes()).unwrap().to_bytes()));
}
