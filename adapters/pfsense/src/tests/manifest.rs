//! The package: manifest and description are sound together, and let the adapter read and nothing else.

use heddle_sdk::testing::conformance;
use heddle_sdk::{Method, Request};
use serde_json::json;

use super::device::{description, package};

#[test]
fn package_is_sound() {
    conformance::package(include_str!("../../manifest.json"), include_str!("../../description.json"));
    assert!(package().features().len() > 100, "{}", package().features().len());
}

#[test]
fn shell_is_no_way_to_read() {
    for command in ["cat /conf/config.xml", "reboot", ""] {
        let request = Request::new(Method::Post, "/api/v2/diagnostics/command_prompt");
        assert!(!package().is_read(&request.with_json(&json!({ "command": command }))), "{command}");
    }
    assert!(description()["kinds"].as_array().unwrap().iter().all(|kind| kind.get("file").is_none()));
}
