//! The package: manifest and description are sound together, and let the adapter read and nothing else.

use heddle_sdk::testing::conformance;

use super::device::package;

#[test]
fn package_is_sound() {
    conformance::package(include_str!("../../manifest.json"), include_str!("../../description.json"));
    assert!(package().features().len() > 500, "{}", package().features().len());
}

/// The router serves the requests of one user one after the other.
#[test]
fn one_request_is_in_flight() {
    let manifest: serde_json::Value = serde_json::from_str(include_str!("../../manifest.json")).unwrap();
    assert_eq!(manifest["limits"]["parallel"], 1);
}

/// What is read must not depend on a route that writes.
#[test]
fn no_route_that_only_reads_is_one_of_a_feature() {
    let manifest: serde_json::Value = serde_json::from_str(include_str!("../../manifest.json")).unwrap();
    let text = serde_json::to_string(package().features()).unwrap();
    for rule in manifest["reads"].as_array().unwrap() {
        let path = rule["path"].as_str().unwrap();
        assert!(!text.contains(&format!("\"{path}\"")), "{path}");
    }
}
