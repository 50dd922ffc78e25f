//! Every feature takes part in the walks over the whole surface.

use std::collections::BTreeSet;

use heddle_kernel::feature::Feature;
use heddle_server::FEATURES;

use crate::fixtures::FIXTURES;

/// Features that have no objects, with the reason.
const WITHOUT: &[(&str, &str)] = &[
    ("health", "answers what it measures"),
    ("setup", "makes what tenancy has"),
    ("adapters", "shows packages of the test folder, which every server loads"),
    ("access_control", "every operation answers 501"),
    ("reserved", "has names only"),
];

/// Routes that remove an object which no fixture removes, with the reason.
const NOT_REMOVED: &[(&str, &str)] = &[
    ("api-keys", "a revoked key is not restored"),
    ("auth/sessions", "an ended session is not restored"),
    ("oauth2/grants", "ends with its app"),
    ("organizations", "the world removes one of its own"),
];

#[test]
fn what_can_be_removed_is_removed_by_a_fixture_or_has_a_reason() {
    let snapshot = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("surface/snapshots/routes.txt");
    let routes = std::fs::read_to_string(snapshot).unwrap();
    let removals = routes.lines().filter_map(|line| line.strip_prefix("DELETE")?.split_whitespace().next());
    let collections: BTreeSet<&str> = removals
        .filter_map(|path| path.strip_prefix('/')?.rsplit_once("/{").map(|(collection, _)| collection))
        .filter(|collection| !collection.contains('{'))
        .collect();
    let removed = FIXTURES.iter().flat_map(|fixture| fixture.removable()).map(|(path, _)| *path);
    let known: BTreeSet<&str> = removed.chain(NOT_REMOVED.iter().map(|(path, _)| *path)).collect();
    assert_eq!(known, collections, "a removal without a fixture, or a fixture without a removal");
}

#[test]
fn every_feature_has_a_fixture_or_a_reason() {
    let features: BTreeSet<&str> = FEATURES.iter().map(Feature::name).collect();
    let fixtures = FIXTURES.iter().map(|fixture| fixture.feature());
    let mut covered = BTreeSet::new();
    for name in fixtures.chain(WITHOUT.iter().map(|(name, _)| *name)) {
        assert!(covered.insert(name), "'{name}' is there twice");
    }
    assert_eq!(covered, features, "each feature has a fixture (tests/fixtures), or a reason here");
}
