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
