//! The chain of roots: what continues it, and what must not.

use serde_json::Value;

use super::super::bounds::{ROOT_BYTES_MAX, ROOT_STEPS_MAX};
use super::super::*;
use super::world::*;
use crate::verify::SIGNATURE_BYTES_MAX;

#[test]
fn roots_are_followed_one_by_one_to_the_last() {
    let mut world = World::new();
    let state = world.known();
    world.put_root(&root(2, role(&[1, 4, 5], 2), role(&[10], 1), role(&[20], 1)), &[1, 2, 4]);
    world.put_root(&root(3, role(&[4, 5], 2), role(&[10], 1), role(&[20], 1)), &[4, 5]);
    let updated = world.update(&state, day(2)).unwrap();
    assert_eq!(updated.state.root_version(), Some(3));
    assert!(updated.catalog.is_none(), "the known catalogue stays");
    assert_eq!(updated.state.good_at(), Some(day(2)));
    assert_eq!(world.asked[..2], ["2.root.json", "2.root.json.sig"]);
    assert_eq!(world.asked[4..], ["4.root.json", "timestamp.json", "timestamp.json.sig"]);
}

#[test]
fn a_root_needs_the_keys_of_the_old_one_and_its_own() {
    for (signers, works) in [
        (&[1, 2, 4, 5][..], true),
        (&[1, 2, 5, 6], true),
        (&[4, 5], false),
        (&[1, 2], false),
        (&[1, 4, 5], false),
        (&[1, 2, 4], false),
        (&[10, 20, 4, 5], false),
    ] {
        let mut world = World::new();
        let state = world.known();
        world.put_root(&root(2, role(&[4, 5, 6], 2), role(&[10], 1), role(&[20], 1)), signers);
        if works {
            assert_eq!(world.update(&state, day(2)).unwrap().state.root_version(), Some(2));
        } else {
            let failure = world.refuses(&state, day(2), Step::Root, "Threshold");
            assert!(failure.kept.is_none());
        }
    }
}

#[test]
fn a_stolen_key_below_the_threshold_makes_no_root() {
    let mut world = World::new();
    let state = world.known();
    // Its thief wants to be the only signer from now on.
    world.put_root(&root(2, role(&[1], 1), role(&[1], 1), role(&[1], 1)), &[1]);
    world.refuses(&state, day(2), Step::Root, "Threshold { file: \"2.root.json\", needed: 2, found: 1 }");
}

#[test]
fn a_key_that_signs_twice_counts_once() {
    let mut world = World::new();
    let state = world.known();
    let content = usual_root(2).to_bytes();
    let once: Value = serde_json::from_slice(&signatures(Document::Root, &content, &[1])).unwrap();
    let entry = once["signatures"][0].clone();
    for entries in [vec![entry.clone(), entry.clone()], vec![entry; 16]] {
        let twice = serde_json::json!({ "signatures": entries }).to_string().into_bytes();
        world.put("2.root.json", content.clone(), twice);
        world.refuses(&state, day(2), Step::Root, "Threshold { file: \"2.root.json\", needed: 2, found: 1 }");
    }
}

#[test]
fn a_key_under_two_ids_counts_for_neither() {
    let mut world = World::new();
    let state = world.known();
    // In the signatures: the second entry claims to be by another key.
    let content = usual_root(2).to_bytes();
    let text = String::from_utf8(signatures(Document::Root, &content, &[1])).unwrap();
    let other = text.replace(&key_id(1), &key_id(2));
    let both = format!("{},{}", &text[..text.len() - 2], &other["{\"signatures\":[".len()..]);
    world.put("2.root.json", content, both.into_bytes());
    world.refuses(&state, day(2), Step::Root, "Threshold { file: \"2.root.json\", needed: 2, found: 1 }");

    // In the root: the key is listed once more, under an id that is not its own.
    let mut twice = root(2, role(&[1, 2], 2), role(&[10], 1), role(&[20], 1));
    twice.keys[1].public = hex::encode(public(1));
    world.put_root(&twice, &[1, 2, 3]);
    let failure = world.refuses(&state, day(2), Step::Root, "Format");
    assert!(failure.to_string().contains("under an id that is not its own"), "{failure}");
    let mut twice = usual_root(2);
    twice.keys.push(RootKey::of(&public(1)));
    world.put_root(&twice, &[1, 2]);
    let failure = world.refuses(&state, day(2), Step::Root, "Format");
    assert!(failure.to_string().contains("is listed twice"), "{failure}");
    let mut twice = usual_root(2);
    twice.roles.root.keyids.push(key_id(1));
    world.put_root(&twice, &[1, 2]);
    let failure = world.refuses(&state, day(2), Step::Root, "Format");
    assert!(failure.to_string().contains("names a key twice"), "{failure}");
}

#[test]
fn a_gap_in_the_chain_and_a_step_back_are_refused() {
    let mut world = World::new();
    let state = world.known();
    for version in [1, 3, 4] {
        let content = usual_root(version).to_bytes();
        let signatures = signatures(Document::Root, &content, &[1, 2]);
        world.put("2.root.json", content, signatures);
        let expected = format!("Version {{ file: \"2.root.json\", expected: 2, found: {version} }}");
        world.refuses(&state, day(2), Step::Root, &expected);
    }
    // A root further on is not asked for.
    world.files.remove("2.root.json");
    world.put_root(&usual_root(3), &[1, 2]);
    assert_eq!(world.update(&state, day(2)).unwrap().state.root_version(), Some(1));
}

#[test]
fn a_server_that_hides_newer_roots_brings_none_back() {
    let mut world = World::new();
    let state = world.known();
    world.put_root(&root(2, role(&[1, 2, 3], 2), role(&[10], 1), role(&[21], 1)), &[1, 2]);
    world.put_timestamp(&world.timestamp(2, 1), &[21]);
    let state = world.update(&state, day(2)).unwrap().state;
    world.files.remove("2.root.json");
    world.put_timestamp(&world.timestamp(3, 1), &[20]);
    world.refuses(&state, day(3), Step::Timestamp, "Threshold");
}

#[test]
fn only_the_last_root_has_to_be_in_force() {
    let mut world = World::new();
    let state = world.known();
    let mut old = usual_root(2);
    old.expires = day(1);
    world.put_root(&old, &[1, 2]);
    let failure = world.refuses(&state, day(2), Step::Root, "Expired { file: \"2.root.json\"");
    assert_eq!(failure.kept.and_then(|state| state.root_version()), Some(2));
    world.put_root(&usual_root(3), &[1, 2]);
    assert_eq!(world.update(&state, day(2)).unwrap().state.root_version(), Some(3));
    // At the very moment it is over.
    world.refuses(&state, day(365), Step::Root, "Expired { file: \"3.root.json\"");
}

#[test]
fn an_update_goes_through_a_bounded_number_of_roots() {
    let mut world = World::new();
    let state = world.known();
    for version in 2..=ROOT_STEPS_MAX + 10 {
        world.put_root(&usual_root(version.into()), &[1, 2]);
    }
    let state = world.update(&state, day(2)).unwrap().state;
    assert_eq!(state.root_version(), Some(u64::from(ROOT_STEPS_MAX) + 1));
    assert_eq!(world.asked.iter().filter(|name| name.contains("root")).count(), 2 * ROOT_STEPS_MAX as usize);
    assert_eq!(
        world.update(&state, day(3)).unwrap().state.root_version(),
        Some(u64::from(ROOT_STEPS_MAX) + 10)
    );
}

#[test]
fn a_root_that_is_cut_off_changed_or_endless_is_refused() {
    let mut world = World::new();
    let state = world.known();
    world.put_root(&usual_root(2), &[1, 2]);
    let good = world.files.clone();
    let of = |name: &str| good[name].clone();

    world.files.insert("2.root.json".to_owned(), of("2.root.json")[..100].to_vec());
    world.refuses(&state, day(2), Step::Root, "Threshold");
    world.files.insert("2.root.json".to_owned(), [of("2.root.json"), b" ".to_vec()].concat());
    world.refuses(&state, day(2), Step::Root, "Threshold");
    world.files.insert("2.root.json".to_owned(), vec![b' '; usize::try_from(ROOT_BYTES_MAX).unwrap() + 1]);
    world.refuses(&state, day(2), Step::Root, "TooLarge { file: \"2.root.json\", max: 65536 }");

    world.files.clone_from(&good);
    world.files.remove("2.root.json.sig");
    world.refuses(&state, day(2), Step::Root, "Missing(\"2.root.json.sig\")");
    world.files.insert("2.root.json.sig".to_owned(), of("2.root.json.sig")[..100].to_vec());
    world.refuses(&state, day(2), Step::Root, "SignatureFormat { file: \"2.root.json.sig\"");
    let endless = vec![b' '; usize::try_from(SIGNATURE_BYTES_MAX).unwrap() + 1];
    world.files.insert("2.root.json.sig".to_owned(), endless);
    world.refuses(&state, day(2), Step::Root, "TooLarge { file: \"2.root.json.sig\"");
    let many = signatures(Document::Root, &of("2.root.json"), &(1..=17).collect::<Vec<_>>()[..16]);
    let seventeen = String::from_utf8(many)
        .unwrap()
        .replace("]}", &format!(",{{\"keyid\":\"{}\",\"sig\":\"\"}}]}}", key_id(1)));
    world.files.insert("2.root.json.sig".to_owned(), seventeen.into_bytes());
    world.refuses(&state, day(2), Step::Root, "SignatureFormat");
}

#[test]
fn the_newer_root_of_a_failed_update_keeps_replaced_keys_out() {
    let mut world = World::new();
    let state = world.known();
    let before = world.files.clone();
    world.put_root(&root(2, role(&[1, 2, 3], 2), role(&[10], 1), role(&[21], 1)), &[1, 2]);
    let failure = world.refuses(&state, day(2), Step::Timestamp, "Threshold");
    let newer = *failure.kept.unwrap();
    assert_eq!(newer.may_install(day(2)), Err(Unfit::Replaced), "nothing is installed until new keys signed");
    assert_eq!(newer.catalog_version(), Some(1), "the rest of the state stays");

    // The thief of the old key hides the newer root.
    world.files = before;
    world.put_timestamp(&world.timestamp(9, 1), &[20]);
    world.update(&state, day(2)).unwrap();
    world.refuses(&newer, day(2), Step::Timestamp, "Threshold");
    world.put_timestamp(&world.timestamp(1, 1), &[21]);
    let state = world.update(&newer, day(2)).unwrap().state;
    assert_eq!(state.may_install(day(2)), Ok(()));
}

#[test]
fn an_update_that_is_given_up_leaves_its_newer_root_and_its_timestamp() {
    let mut world = World::new();
    let state = world.known();
    world.put_root(&usual_root(2), &[1, 2]);
    let mut update = Update::begin(state.clone(), day(2)).unwrap();
    assert!(update.kept().is_none());
    for name in ["2.root.json", "2.root.json.sig"] {
        update = update.give(world.files.get(name).cloned()).unwrap();
    }
    let newer = update.kept().unwrap();
    assert_eq!(newer.root_version(), Some(2));
    assert_eq!(State { trust: state.trust.clone(), ..*newer }, state);

    // The timestamp counts with its signatures, and not before.
    world.publish(2, 2);
    let mut timestamp = world.timestamp(2, 2);
    timestamp.revocations.push(plugin_revocation("a flaw"));
    world.put_timestamp(&timestamp, &[20]);
    for (name, version) in [("3.root.json", 1), ("timestamp.json", 1), ("timestamp.json.sig", 2)] {
        update = update.give(world.files.get(name).cloned()).unwrap();
        let kept = update.kept().unwrap();
        assert_eq!(kept.timestamp_version(), Some(version), "after {name}");
        assert_eq!(kept.revocations().len(), usize::from(version == 2), "after {name}");
        assert_eq!(kept.catalog_version(), Some(1), "after {name}");
    }
}
