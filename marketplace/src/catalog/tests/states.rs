//! What is stored between two updates.

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::super::*;
use super::world::*;

#[test]
fn a_state_is_stored_and_read_again() {
    let mut world = World::new();
    let mut timestamp = world.timestamp(1, 1);
    timestamp.revocations.push(plugin_revocation("a flaw"));
    world.put_timestamp(&timestamp, &[20]);
    for state in [world.beginning(), world.known(), State::with_pinned_key(&public(9), day(0))] {
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<State>(&text).unwrap(), state);
    }
    let known = world.known();
    assert_eq!(known.root().map(str::as_bytes), Some(&world.files["1.root.json"][..]));
}

#[test]
fn the_stored_catalogue_is_the_one_of_the_state() {
    let mut world = World::new();
    let state = world.known();
    let content = &world.files["1.catalog.json"];
    assert_eq!(state.open_catalog(content).unwrap().version, 1);
    assert_eq!(state.catalog_sha256().map(str::len), Some(64));
    let mut other = content.clone();
    other[20] ^= 1;
    assert_eq!(state.open_catalog(&other).unwrap_err(), Refusal::Hash(CATALOG.to_owned()));
    assert_eq!(world.beginning().open_catalog(content).unwrap_err(), Refusal::Missing(CATALOG.to_owned()));
}

#[test]
fn nothing_is_installed_before_the_first_update() {
    let world = World::new();
    assert_eq!(world.beginning().may_install(day(0)), Err(Unfit::Never));
    assert_eq!(State::with_pinned_key(&public(9), day(0)).may_install(day(0)), Err(Unfit::Never));
}

#[test]
fn a_warning_is_due_after_ninety_days_without_a_good_timestamp() {
    let mut world = World::new();
    let (beginning, state) = (world.beginning(), world.known());
    let second = TimeDelta::seconds(1);
    assert!(!beginning.is_warning_due(day(90) - second) && beginning.is_warning_due(day(90)));
    assert!(!state.is_warning_due(day(91) - second) && state.is_warning_due(day(91)));
    assert!(!state.is_warning_due(day(-1)));
}

#[test]
fn a_first_root_that_is_none_is_refused() {
    for content in [&b""[..], b"{}", b"not json"] {
        assert!(matches!(State::with_root(content, day(0)), Err(Refusal::Format { .. })));
    }
    let mut weak: Value = serde_json::from_slice(&usual_root(1).to_bytes()).unwrap();
    weak["roles"]["root"]["threshold"] = json!(0);
    assert!(State::with_root(weak.to_string().as_bytes(), day(0)).is_err());
}

#[test]
fn a_stored_state_that_was_damaged_fails_at_its_root() {
    let mut world = World::new();
    let text = serde_json::to_string(&world.known()).unwrap();
    let damaged: State = serde_json::from_str(&text.replace("threshold", "treshold")).unwrap();
    assert_eq!(damaged.may_install(day(1)), Err(Unfit::Damaged));
    let failure = Update::begin(damaged, day(1)).unwrap_err();
    assert_eq!(failure.step, Step::Root);
}

#[test]
fn an_unfinished_update_has_no_result() {
    let world = World::new();
    let update = Update::begin(world.beginning(), day(1)).unwrap();
    assert_eq!(update.next(), Next::Fetch { name: "2.root.json".to_owned(), bytes_max: 64 * 1024 });
    assert_eq!(update.next(), update.next(), "asking changes nothing");
    assert!(update.finish().is_none());
}
