//! Old, frozen, mixed and forged timestamps.

use chrono::TimeDelta;

use super::super::bounds::{TIMESTAMP_BYTES_MAX, VERSION_MAX};
use super::super::*;
use super::world::*;

#[test]
fn a_first_update_brings_the_catalogue() {
    let mut world = World::new();
    let state = world.beginning();
    let updated = world.update(&state, day(1)).unwrap();
    let fetched = updated.catalog.unwrap();
    assert_eq!(fetched.bytes, world.files["1.catalog.json"]);
    assert_eq!(fetched.catalog.plugins[0].id, "acme-switch");
    let state = updated.state;
    assert_eq!(state.assurance(), Assurance::Full);
    assert_eq!((state.timestamp_version(), state.catalog_version()), (Some(1), Some(1)));
    assert_eq!((state.timestamp_signed(), state.timestamp_expires()), (Some(day(0)), Some(day(7))));
    let asked =
        ["2.root.json", "timestamp.json", "timestamp.json.sig", "1.catalog.json", "1.catalog.json.sig"];
    assert_eq!(world.asked, asked);
}

#[test]
fn the_known_timestamp_says_that_all_is_current() {
    let mut world = World::new();
    let state = world.known();
    let updated = world.update(&state, day(3)).unwrap();
    assert!(updated.catalog.is_none());
    assert_eq!(updated.state, State { good_at: Some(day(3)), ..state });
    assert_eq!(world.asked, ["2.root.json", "timestamp.json", "timestamp.json.sig"]);
}

#[test]
fn an_older_timestamp_is_refused() {
    let mut world = World::new();
    let old = world.files.clone();
    world.publish(2, 5);
    let state = world.known();
    world.files.extend(old.into_iter().filter(|(name, _)| name.starts_with("timestamp")));
    world.refuses(
        &state,
        day(2),
        Step::Timestamp,
        "Rollback { file: \"timestamp.json\", known: 5, found: 1 }",
    );
}

#[test]
fn a_known_version_with_another_content_is_refused() {
    let mut world = World::new();
    let state = world.known();
    let mut other = world.timestamp(1, 1);
    other.expires = day(8);
    world.put_timestamp(&other, &[20]);
    world.refuses(&state, day(2), Step::Timestamp, "Replaced { file: \"timestamp.json\", version: 1 }");
}

#[test]
fn a_frozen_timestamp_is_refused_when_it_expires() {
    let mut world = World::new();
    let beginning = world.beginning();
    let state = world.known();
    let last = day(7) - TimeDelta::seconds(1);
    world.update(&state, last).unwrap();
    assert_eq!(state.may_install(last), Ok(()));
    for state in [&beginning, &state] {
        world.refuses(state, day(7), Step::Timestamp, "Expired { file: \"timestamp.json\"");
    }
    assert_eq!(state.may_install(day(7)), Err(Unfit::Expired { file: TIMESTAMP, at: day(7) }));
}

#[test]
fn a_timestamp_lasts_a_bounded_time() {
    let mut world = World::new();
    let state = world.known();
    for (expires, works) in [(day(31), true), (day(32), false), (day(0), false), (day(-1), false)] {
        let mut timestamp = world.timestamp(2, 1);
        timestamp.expires = expires;
        world.put_timestamp(&timestamp, &[20]);
        if works {
            world.update(&state, day(2)).unwrap();
        } else {
            world.refuses(&state, day(2), Step::Timestamp, "Format");
        }
    }
}

#[test]
fn a_clock_that_was_set_back_is_refused() {
    let mut world = World::new();
    let mut timestamp = world.timestamp(2, 1);
    timestamp.signed = day(3);
    timestamp.expires = day(10);
    world.put_timestamp(&timestamp, &[20]);
    let beginning = world.beginning();
    let state = world.update(&beginning, day(3)).unwrap().state;
    let before = day(3) - TimeDelta::seconds(1);
    world.refuses(&state, before, Step::Clock, "Clock");
    assert!(world.asked.is_empty(), "nothing is fetched with such a clock");
    assert_eq!(state.may_install(before), Err(Unfit::Clock { now: before, signed: day(3) }));
    // A clock that is behind from the beginning is seen by the first timestamp.
    world.refuses(&beginning, before, Step::Clock, "Clock");
}

#[test]
fn files_of_different_times_are_not_mixed() {
    let mut world = World::new();
    let of_first = world.files.clone();
    world.publish(2, 2);
    let state = world.known();

    // A new timestamp that names the old catalogue.
    world.put_timestamp(&world.timestamp(3, 1), &[20]);
    world.refuses(&state, day(2), Step::Timestamp, "Rollback { file: \"catalog.json\", known: 2, found: 1 }");
    // One that names another catalogue of the known version.
    let mut mixed = world.timestamp(3, 2);
    mixed.catalog.sha256 = world.timestamp(3, 1).catalog.sha256;
    world.put_timestamp(&mixed, &[20]);
    world.refuses(&state, day(2), Step::Timestamp, "Replaced { file: \"catalog.json\", version: 2 }");
    let mut longer = world.timestamp(3, 2);
    longer.catalog.length += 1;
    world.put_timestamp(&longer, &[20]);
    world.refuses(&state, day(2), Step::Timestamp, "Replaced { file: \"catalog.json\", version: 2 }");
    // The old catalogue behind the new timestamp.
    world.publish(3, 3);
    world.files.insert("3.catalog.json".to_owned(), of_first["1.catalog.json"].clone());
    world.refuses(&state, day(2), Step::Catalog, "Hash(\"3.catalog.json\")");
}

#[test]
fn versions_that_a_thief_drove_up_are_forgotten_with_the_stolen_key() {
    let mut world = World::new();
    let mut forged = world.timestamp(VERSION_MAX, 1);
    forged.revocations.push(plugin_revocation("forged"));
    world.put_timestamp(&forged, &[20]);
    let state = world.known();
    world.put_timestamp(&world.timestamp(2, 1), &[20]);
    world.refuses(&state, day(2), Step::Timestamp, "Rollback");

    world.put_root(&root(2, role(&[1, 2, 3], 2), role(&[10], 1), role(&[21], 1)), &[1, 2]);
    world.put_timestamp(&world.timestamp(2, 1), &[21]);
    let recovered = world.update(&state, day(2)).unwrap().state;
    assert_eq!(recovered.timestamp_version(), Some(2));
    assert_eq!(recovered.revocations(), [], "what the thief revoked does not outlast the key");
    // The catalogue has keys of its own, and its version is not forgotten with those of the timestamp.
    world.publish(5, 3);
    world.put_timestamp(&world.timestamp(3, 5), &[21]);
    let known = world.update(&recovered, day(2)).unwrap().state;
    world.put_root(&root(3, role(&[1, 2, 3], 2), role(&[10], 1), role(&[22], 1)), &[1, 2]);
    world.put_timestamp(&world.timestamp(1, 1), &[22]);
    world.refuses(&known, day(2), Step::Timestamp, "Rollback { file: \"catalog.json\", known: 5, found: 1 }");
}

#[test]
fn the_version_of_a_catalogue_is_forgotten_with_the_keys_of_its_role() {
    let mut world = World::new();
    world.publish(900, 1);
    let state = world.known();
    world.put_root(&root(2, role(&[1, 2, 3], 2), role(&[11], 1), role(&[20], 1)), &[1, 2]);
    world.refuses(&state, day(2), Step::Catalog, "Threshold");
    world.put_catalog(3, catalog(3).to_string().into_bytes(), &[11]);
    world.put_timestamp(&world.timestamp(2, 3), &[20]);
    assert_eq!(world.update(&state, day(2)).unwrap().state.catalog_version(), Some(3));
}

#[test]
fn a_key_that_is_added_takes_nothing_away() {
    let mut world = World::new();
    let mut timestamp = world.timestamp(5, 1);
    timestamp.revocations.push(plugin_revocation("a flaw"));
    world.put_timestamp(&timestamp, &[20]);
    let state = world.known();

    world.put_root(&root(2, role(&[1, 2, 3], 2), role(&[10, 11], 1), role(&[20, 21], 1)), &[1, 2]);
    world.update(&state, day(2)).unwrap();
    // The old key is as good as it was, and so is what it signed long ago: none of it may come back.
    world.put_timestamp(&world.timestamp(4, 1), &[20]);
    let failure =
        world.refuses(&state, day(2), Step::Timestamp, "Rollback { file: \"timestamp.json\", known: 5");
    assert_eq!(failure.kept.unwrap().may_install(day(2)), Ok(()));
    world.put_timestamp(&world.timestamp(6, 1), &[20]);
    world.refuses(&state, day(2), Step::Revocations, "RevocationLost");
}

#[test]
fn a_higher_threshold_holds_for_what_is_known() {
    let mut world = World::new();
    let state = world.known();
    world.put_root(&root(2, role(&[1, 2, 3], 2), role(&[10, 11], 2), role(&[20], 1)), &[1, 2]);
    let failure = world.refuses(
        &state,
        day(2),
        Step::Catalog,
        "Threshold { file: \"1.catalog.json\", needed: 2, found: 1 }",
    );
    assert_eq!(failure.kept.unwrap().may_install(day(2)), Err(Unfit::Replaced));
    world.put_catalog(1, catalog(1).to_string().into_bytes(), &[10, 11]);
    world.update(&state, day(2)).unwrap();
}

#[test]
fn a_timestamp_that_is_missing_cut_off_or_endless_is_refused() {
    let mut world = World::new();
    let state = world.known();
    let good = world.files.clone();
    world.files.insert(TIMESTAMP.to_owned(), good[TIMESTAMP][..200].to_vec());
    world.refuses(&state, day(2), Step::Timestamp, "Threshold");
    let endless = vec![b' '; usize::try_from(TIMESTAMP_BYTES_MAX).unwrap() + 1];
    world.files.insert(TIMESTAMP.to_owned(), endless);
    world.refuses(&state, day(2), Step::Timestamp, "TooLarge { file: \"timestamp.json\"");
    for name in [TIMESTAMP, "timestamp.json.sig"] {
        world.files.clone_from(&good);
        world.files.remove(name);
        world.refuses(&state, day(2), Step::Timestamp, &format!("Missing(\"{name}\")"));
    }
}

#[test]
fn enough_keys_of_the_role_sign_a_timestamp() {
    let mut world = World::new();
    let state = world.known();
    world.put_root(&root(2, role(&[1, 2, 3], 2), role(&[10], 1), role(&[20, 21, 22], 2)), &[1, 2]);
    for (signers, works) in [(&[20, 22][..], true), (&[20], false), (&[20, 10, 1, 2], false), (&[], false)] {
        world.put_timestamp(&world.timestamp(2, 1), signers);
        if works {
            world.update(&state, day(2)).unwrap();
        } else {
            let reason = if signers.is_empty() { "SignatureFormat" } else { "Threshold" };
            world.refuses(&state, day(2), Step::Timestamp, reason);
        }
    }
}
