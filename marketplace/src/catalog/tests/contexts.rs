//! A signature is good for one kind of file, one content and one key.

use ed25519_dalek::Signer as _;
use serde_json::json;

use super::super::*;
use super::world::*;

/// The file of one signature over these bytes as they are.
fn bare(number: u8, message: &[u8]) -> Vec<u8> {
    use base64::Engine as _;
    let sig = base64::engine::general_purpose::STANDARD.encode(key(number).sign(message).to_bytes());
    json!({ "signatures": [{ "keyid": key_id(number), "sig": sig }] }).to_string().into_bytes()
}

#[test]
fn a_signature_for_one_kind_of_file_fits_no_other() {
    let mut world = World::new();
    // One key has all roles, so that only the kind can tell the files apart.
    world.put_root(&root(1, role(&[1], 1), role(&[1], 1), role(&[1], 1)), &[1]);
    let state = world.beginning();
    world.put_catalog(1, catalog(1).to_string().into_bytes(), &[1]);
    world.put_timestamp(&world.timestamp(1, 1), &[1]);
    world.put_root(&root(2, role(&[1], 1), role(&[1], 1), role(&[1], 1)), &[1]);
    world.update(&state, day(1)).unwrap();
    let good = world.files.clone();
    let all = [
        ("2.root.json", Document::Root, Step::Root),
        (TIMESTAMP, Document::Timestamp, Step::Timestamp),
        ("1.catalog.json", Document::Catalog, Step::Catalog),
    ];
    for (name, own, step) in all {
        let content = &good[name];
        for document in [Document::Root, Document::Timestamp, Document::Catalog] {
            world.files.insert(signature_name(name), signatures(document, content, &[1]));
            if document == own {
                world.update(&state, day(1)).unwrap();
            } else {
                world.refuses(&state, day(1), step, "Threshold");
            }
        }
        for other in [
            crate::sign(content, &key(1)),
            bare(1, content),
            bare(1, &[b"heddle-root-v1", &content[..]].concat()),
        ] {
            world.files.insert(signature_name(name), other);
            world.refuses(&state, day(1), step, "Threshold");
        }
        world.files.clone_from(&good);
    }
}

#[test]
fn a_file_of_another_kind_is_refused_although_it_is_signed() {
    let mut world = World::new();
    let state = world.known();
    let content = world.files["1.catalog.json"].clone();
    let signed = signatures(Document::Timestamp, &content, &[20]);
    world.put(TIMESTAMP, content, signed);
    world.refuses(&state, day(2), Step::Timestamp, "Format");
}

#[test]
fn a_file_is_verified_before_it_is_parsed() {
    let mut world = World::new();
    let state = world.known();
    let garbage = b"not json".to_vec();
    world.put(TIMESTAMP, garbage.clone(), signatures(Document::Timestamp, &garbage, &[10]));
    world.refuses(&state, day(2), Step::Timestamp, "Threshold");
    world.put(TIMESTAMP, garbage.clone(), signatures(Document::Timestamp, &garbage, &[20]));
    world.refuses(&state, day(2), Step::Timestamp, "Format");
    world.put("2.root.json", garbage.clone(), signatures(Document::Root, &garbage, &[1]));
    world.refuses(&state, day(2), Step::Root, "Threshold");
    world.put("2.root.json", garbage.clone(), signatures(Document::Root, &garbage, &[1, 2]));
    world.refuses(&state, day(2), Step::Root, "Format");
}

#[test]
fn every_byte_of_a_signed_file_and_of_its_signature_matters() {
    let mut world = World::new();
    let state = world.known();
    world.publish(2, 2);
    let good = world.files.clone();
    for name in [TIMESTAMP, "timestamp.json.sig", "2.catalog.json.sig"] {
        for at in 0..good[name].len() {
            world.files.get_mut(name).unwrap()[at] ^= 1 << (at % 7);
            assert!(world.update(&state, day(2)).is_err(), "byte {at} of {name}");
            world.files.insert(name.to_owned(), good[name].clone());
        }
    }
    world.update(&state, day(2)).unwrap();
}

#[test]
fn signatures_of_another_content_beside_the_right_ones_do_no_harm() {
    // As between the two steps in which a file is replaced.
    let mut world = World::new();
    let state = world.known();
    let old = world.files[TIMESTAMP].clone();
    world.publish(2, 2);
    let new = world.files[TIMESTAMP].clone();
    let mut both = Signatures::parse(&signatures(Document::Timestamp, &new, &[20])).unwrap();
    both.extend(Signatures::parse(&signatures(Document::Timestamp, &old, &[20])).unwrap());
    for content in [old, new] {
        world.put(TIMESTAMP, content, both.to_bytes());
        world.update(&state, day(2)).unwrap();
    }
}

#[test]
fn signatures_are_added_once_and_kept_for_their_content() {
    let mut signatures = Signatures::default();
    for _ in 0..3 {
        signatures.sign(Document::Root, b"one", &key(1)).unwrap();
    }
    signatures.sign(Document::Root, b"two", &key(2)).unwrap();
    let keys = [public(1), public(2), public(1)];
    assert_eq!(signatures.signers(Document::Root, b"one", &keys), [key_id(1)].into());
    assert_eq!(signatures.signers(Document::Root, b"two", &keys[..1]), [].into());
    signatures.retain(Document::Root, b"one", &keys);
    assert_eq!(signatures.to_bytes(), super::world::signatures(Document::Root, b"one", &[1]));
    for number in 2..=16 {
        signatures.sign(Document::Root, b"one", &key(number)).unwrap();
    }
    signatures.sign(Document::Root, b"one", &key(17)).unwrap_err();
}
