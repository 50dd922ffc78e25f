//! Files with more of something than they may have.

use serde_json::{Value, json};

use super::super::bounds::*;
use super::super::*;
use super::world::*;

/// A catalogue in which the list at this place has so many entries.
fn with_list(pointer: &str, entries: impl Iterator<Item = Value>) -> Result<Catalog, Refusal> {
    let mut text = catalog(1);
    *text.pointer_mut(pointer).unwrap() = entries.collect();
    Catalog::parse(text.to_string().as_bytes())
}

#[track_caller]
fn refused(result: Result<Catalog, Refusal>, words: &str) {
    let refusal = result.expect_err(words).to_string();
    assert!(refusal.contains(words), "{refusal}");
}

#[test]
fn lists_of_a_catalogue_are_bounded() {
    let publisher = |n: usize| json!({ "id": format!("p{n}"), "name": "P", "ids": [], "keys": [] });
    let of_acme = [catalog(1)["publishers"][0].clone()];
    let publishers =
        |more: usize| with_list("/publishers", of_acme.iter().cloned().chain((0..more).map(publisher)));
    publishers(PUBLISHERS_MAX - 1).unwrap();
    refused(publishers(PUBLISHERS_MAX), "a list has more than 4096 entries");

    let plugin = |n: usize| {
        let mut plugin = catalog(1)["plugins"][0].clone();
        plugin["id"] = json!(format!("acme-{n}"));
        plugin["versions"] = json!([]);
        plugin
    };
    with_list("/plugins", (0..PLUGINS_MAX).map(plugin)).unwrap();
    refused(with_list("/plugins", (0..=PLUGINS_MAX).map(plugin)), "more than 10000 entries");

    let version = |n: usize| {
        let mut version = catalog(1)["plugins"][0]["versions"][0].clone();
        version["version"] = json!(format!("1.0.{n}"));
        version
    };
    with_list("/plugins/0/versions", (0..PLUGIN_VERSIONS_MAX).map(version)).unwrap();
    refused(
        with_list("/plugins/0/versions", (0..=PLUGIN_VERSIONS_MAX).map(version)),
        "more than 200 entries",
    );

    let key = |number: usize| {
        let number = u8::try_from(number).unwrap() + 100;
        json!({
            "keyid": key_id(number), "public": hex::encode(public(number)),
            "not-before": time_to_text(&day(0)), "not-after": time_to_text(&day(1)),
        })
    };
    with_list("/publishers/0/keys", (0..PUBLISHER_KEYS_MAX).map(key)).unwrap();
    refused(with_list("/publishers/0/keys", (0..=PUBLISHER_KEYS_MAX).map(key)), "more than 16 entries");
    let id = |_| json!("acme-*");
    with_list("/publishers/0/ids", (0..PUBLISHER_IDS_MAX).map(id)).unwrap();
    refused(with_list("/publishers/0/ids", (0..=PUBLISHER_IDS_MAX).map(id)), "more than 64 entries");
    // What comes after too many is not even looked at.
    let ids = (0..=PUBLISHER_IDS_MAX).map(id).chain([json!(1)]);
    refused(with_list("/publishers/0/ids", ids), "more than 64 entries");
    let signer = |_| json!(key_id(30));
    refused(
        with_list("/plugins/0/versions/0/signed-by", (0..=SIGNERS_MAX).map(signer)),
        "more than 16 entries",
    );
}

#[test]
fn keys_of_a_root_are_bounded() {
    let numbers: Vec<u8> = (1..=ROLE_KEYS_MAX).map(|number| u8::try_from(number).unwrap()).collect();
    let of = |keys: &[u8], threshold| root(1, role(keys, threshold), role(&[10], 1), role(&[20], 1));
    let parse =
        |root: &Root| Root::parse("1.root.json", &root.to_bytes()).map_err(|refusal| refusal.to_string());
    parse(&of(&numbers, ROLE_KEYS_MAX)).unwrap();
    assert!(parse(&of(&[&numbers[..], &[9]].concat(), 1)).unwrap_err().contains("9 keys of the role 'root'"));
    for threshold in [0, ROLE_KEYS_MAX + 1] {
        assert!(parse(&of(&numbers, threshold)).unwrap_err().contains("the threshold of the role 'root'"));
    }
    assert!(parse(&of(&[], 0)).unwrap_err().contains("the threshold"));
    let mut many = of(&numbers, 1);
    many.keys = (1..=25).map(|number| RootKey::of(&public(number))).collect();
    assert!(parse(&many).unwrap_err().contains("it has 25 keys; 24 are accepted"));
    let mut unlisted = of(&numbers, 1);
    unlisted.keys.pop();
    assert!(parse(&unlisted).unwrap_err().contains("which is not listed"));
    let mut weak = of(&numbers, 1);
    weak.keys[0] = RootKey::of(&hex::decode(format!("01{}", "00".repeat(31))).unwrap().try_into().unwrap());
    assert!(parse(&weak).unwrap_err().contains("is no Ed25519 public key"));
    let large = [of(&numbers, 1).to_bytes(), vec![b' '; 64 * 1024]].concat();
    assert!(matches!(Root::parse("1.root.json", &large), Err(Refusal::TooLarge { .. })));
}

#[test]
fn a_file_that_no_server_would_fetch_is_not_parsed() {
    let spaces = |bytes: u64| vec![b' '; usize::try_from(bytes).unwrap() + 1];
    let large = [catalog(1).to_string().into_bytes(), spaces(CATALOG_BYTES_MAX)].concat();
    assert!(matches!(Catalog::parse(&large), Err(Refusal::TooLarge { max: CATALOG_BYTES_MAX, .. })));
    let timestamp = World::new().timestamp(1, 1).to_bytes();
    let large = [timestamp, spaces(TIMESTAMP_BYTES_MAX)].concat();
    assert!(matches!(Timestamp::parse(&large), Err(Refusal::TooLarge { max: TIMESTAMP_BYTES_MAX, .. })));
}

#[test]
fn revocations_are_bounded() {
    let world = World::new();
    let mut timestamp = world.timestamp(1, 1);
    timestamp.revocations = vec![plugin_revocation("a flaw"); REVOCATIONS_MAX];
    Timestamp::parse(&timestamp.to_bytes()).unwrap();
    timestamp.revocations.push(plugin_revocation("a flaw"));
    let refusal = Timestamp::parse(&timestamp.to_bytes()).unwrap_err().to_string();
    assert!(refusal.contains("1025 revocations; 1024 are accepted"), "{refusal}");
    timestamp.revocations = vec![plugin_revocation(&"x".repeat(301))];
    assert!(Timestamp::parse(&timestamp.to_bytes()).unwrap_err().to_string().contains("the reason"));
}
