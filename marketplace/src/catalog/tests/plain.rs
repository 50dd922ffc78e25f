//! The simple mode: one pinned key over the bare bytes.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use ed25519_dalek::Signer as _;

use super::super::bounds::CATALOG_BYTES_MAX;
use super::super::*;
use super::world::*;

/// A world without roots, in which this key signs the catalogue of this version.
fn world(version: u64, number: u8) -> World {
    let mut world = World { files: Files::new(), asked: Vec::new() };
    let content = catalog(version).to_string().into_bytes();
    let signature = key(number).sign(&content).to_bytes().to_vec();
    world.put(CATALOG, content, signature);
    world
}

fn pinned() -> State {
    State::with_pinned_key(&public(9), day(0))
}

#[test]
fn a_catalogue_that_the_pinned_key_signed_is_taken_with_lower_assurance() {
    let mut world = world(4, 9);
    let updated = world.update(&pinned(), day(1)).unwrap();
    assert_eq!(world.asked, [CATALOG, "catalog.json.sig"]);
    assert_eq!(updated.catalog.unwrap().catalog.version, 4);
    let state = updated.state;
    assert_eq!((state.assurance(), state.catalog_version()), (Assurance::Lower, Some(4)));
    assert_eq!((state.pinned_key(), state.root()), (Some(public(9)), None));
    assert_eq!(serde_json::to_value(&state).unwrap()["trust"]["assurance"], "lower");
    assert_eq!(state.may_install(day(89)), Ok(()));
    assert_eq!(state.may_install(day(90)), Err(Unfit::Expired { file: CATALOG, at: day(90) }));
    let again = world.update(&state, day(2)).unwrap();
    assert!(again.catalog.is_none(), "it is known");
    assert_eq!(again.state.good_at(), Some(day(2)));
}

#[test]
fn a_signature_is_raw_hex_or_base64() {
    let content = b"content";
    let raw = key(9).sign(content).to_bytes();
    for good in [
        raw.to_vec(),
        hex::encode(raw).into_bytes(),
        hex::encode_upper(raw).into_bytes(),
        format!("{}\n", hex::encode(raw)).into_bytes(),
        STANDARD.encode(raw).into_bytes(),
        format!(" {}\r\n", STANDARD.encode(raw)).into_bytes(),
        STANDARD_NO_PAD.encode(raw).into_bytes(),
    ] {
        assert!(signs_plainly(&public(9), content, &good));
        assert!(!signs_plainly(&public(8), content, &good));
        assert!(!signs_plainly(&public(9), b"Content", &good));
    }
    let json = signatures(Document::Catalog, content, &[9]);
    for bad in [&b""[..], &raw[..63], &[&raw[..], b"\n"].concat(), &json, &[0; 64], &[b'0'; 128], &[b'A'; 86]]
    {
        assert!(!signs_plainly(&public(9), content, bad));
    }
    let other_alphabet = URL_SAFE_NO_PAD.encode([0xff; 64]);
    assert!(!signs_plainly(&public(9), content, other_alphabet.as_bytes()));
    // The weak key that fits signatures which no one made.
    let weak = hex::decode(format!("01{}", "00".repeat(31))).unwrap().try_into().unwrap();
    assert!(!signs_plainly(&weak, content, &[weak, [0; 32]].concat()));
}

#[test]
fn another_key_and_another_content_are_refused() {
    let state = pinned();
    world(4, 10).refuses(&state, day(1), Step::Catalog, "Threshold");
    let mut world = world(4, 9);
    let good = world.files.clone();
    world.files.get_mut(CATALOG).unwrap().push(b' ');
    world.refuses(&state, day(1), Step::Catalog, "Threshold");
    // What the key signed as a file of a full catalogue is not its signature of the bare bytes.
    let content = good[CATALOG].clone();
    let other = signatures(Document::Catalog, &content, &[9]);
    world.put(CATALOG, content, other);
    world.refuses(&state, day(1), Step::Catalog, "Threshold");
    let endless = vec![b' '; usize::try_from(CATALOG_BYTES_MAX).unwrap() + 1];
    world.files.insert(CATALOG.to_owned(), endless);
    world.refuses(&state, day(1), Step::Catalog, "TooLarge");
    for name in [CATALOG, "catalog.json.sig"] {
        world.files.clone_from(&good);
        world.files.remove(name);
        world.refuses(&state, day(1), Step::Catalog, &format!("Missing(\"{name}\")"));
    }
}

#[test]
fn an_older_replaced_or_expired_catalogue_is_refused() {
    let state = world(4, 9).update(&pinned(), day(1)).unwrap().state;
    world(3, 9).refuses(
        &state,
        day(2),
        Step::Catalog,
        "Rollback { file: \"catalog.json\", known: 4, found: 3 }",
    );
    world(5, 9).refuses(&state, day(90), Step::Catalog, "Expired");
    world(4, 9).refuses(&state, day(90), Step::Catalog, "Expired");
    let mut other = world(4, 9);
    let content = format!("{} ", catalog(4)).into_bytes();
    let signature = key(9).sign(&content).to_bytes().to_vec();
    other.put(CATALOG, content, signature);
    other.refuses(&state, day(2), Step::Catalog, "Replaced { file: \"catalog.json\", version: 4 }");
    assert_eq!(world(5, 9).update(&state, day(2)).unwrap().state.catalog_version(), Some(5));
}

#[test]
fn a_catalogue_is_parsed_as_strictly_as_with_roots() {
    let mut world = world(4, 9);
    let content = catalog(4).to_string().replacen('{', "{\"version\":9,", 1).into_bytes();
    let signature = key(9).sign(&content).to_bytes().to_vec();
    world.put(CATALOG, content, signature);
    world.refuses(&pinned(), day(1), Step::Catalog, "Format");
}

#[test]
fn an_unsound_pinned_key_is_refused() {
    let weak = hex::decode(format!("01{}", "00".repeat(31))).unwrap().try_into().unwrap();
    let failure = Update::begin(State::with_pinned_key(&weak, day(0)), day(1)).unwrap_err();
    assert_eq!(failure.step, Step::Root);
}

#[test]
fn without_signatures_a_catalogue_is_a_list_that_still_only_moves_on() {
    let mut world = World { files: Files::new(), asked: Vec::new() };
    let serve = |world: &mut World, version| {
        world.put(CATALOG, catalog(version).to_string().into_bytes(), b"no signature".to_vec());
    };
    serve(&mut world, 4);
    let updated = world.update(&State::unsigned(day(0)), day(1)).unwrap();
    assert_eq!(world.asked, [CATALOG], "nobody looks at a signature");
    assert_eq!(updated.catalog.unwrap().catalog.version, 4);
    let state = updated.state;
    assert_eq!((state.assurance(), state.pinned_key(), state.root()), (Assurance::None, None, None));
    assert_eq!(state.may_install(day(90)), Err(Unfit::Expired { file: CATALOG, at: day(90) }));
    serve(&mut world, 3);
    let refused = world.update(&state, day(2)).unwrap_err();
    assert!(matches!(refused.refusal, Refusal::Rollback { known: 4, found: 3, .. }), "{refused}");
    world.put(CATALOG, b"{}".to_vec(), Vec::new());
    assert_eq!(world.update(&state, day(2)).unwrap_err().step, Step::Catalog);
}
