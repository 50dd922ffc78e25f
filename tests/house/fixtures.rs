//! Every feature takes part in the walks over the whole surface.

use std::collections::BTreeSet;

use heddle_kernel::feature::Feature;
use heddle_server::FEATURES;

use crate::fixtures::FIXTURES;
use crate::support::{Database, Server};

/// Features with routes that have no objects, with the reason.
const WITHOUT: &[(&str, &str)] = &[
    ("health", "answers what it measures"),
    ("setup", "makes what tenancy has"),
    ("topology", "is made of what inventory has: tests/vendors/topology.rs"),
    ("adapters", "shows packages of the test folder, which every server loads"),
    (
        "plugins",
        "what is installed is of the whole service, and the walk would need a package: tests/plugins",
    ),
    ("push", "has channels of the controllers that inventory makes: tests/inventory/hooks.rs"),
    ("intent", "a document shows what other features have"),
    ("marketplace", "what is offered is of a registry, which the walk would have to make: tests/marketplace"),
    ("access_control", "every operation answers 501"),
];

/// Routes that remove an object which no fixture removes, with the reason.
const NOT_REMOVED: &[(&str, &str)] = &[
    ("api-keys", "a revoked key is not restored"),
    ("auth/sessions", "an ended session is not restored"),
    ("files", "the bytes are gone at once, so none is restored"),
    ("oauth2/grants", "ends with its app"),
    ("organizations", "the world removes one of its own"),
    ("plugins", "a removed plugin is installed again"),
    ("plugins/trusted-keys", "a key that is trusted no more is added again"),
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

#[tokio::test]
async fn every_feature_with_routes_has_a_fixture_or_a_reason() {
    let server = Server::start(Database::sqlite()).await;
    let app = &server.running().app;
    let all: BTreeSet<&str> = FEATURES.iter().map(Feature::name).collect();
    let with_routes: BTreeSet<&str> =
        FEATURES.iter().filter(|one| one.routes(app).iter().next().is_some()).map(Feature::name).collect();
    let fixtures = FIXTURES.iter().map(|fixture| fixture.feature());
    let mut covered = BTreeSet::new();
    for name in fixtures.chain(WITHOUT.iter().map(|(name, _)| *name)) {
        assert!(covered.insert(name), "'{name}' is there twice");
    }
    let missing: Vec<_> = with_routes.difference(&covered).collect();
    assert!(
        missing.is_empty(),
        "each feature with routes has a fixture (tests/fixtures), or a reason here: {missing:?}"
    );
    assert!(covered.is_subset(&all), "a fixture of no feature: {covered:?}");
}
