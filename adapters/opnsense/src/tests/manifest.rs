//! The package: manifest and description are sound together, and let the adapter read and nothing else.

use heddle_sdk::testing::conformance;

use super::device::package;

#[test]
fn package_is_sound() {
    conformance::package(include_str!("../../manifest.json"), include_str!("../../description.json"));
    assert!(package().features().len() > 100, "{}", package().features().len());
}
