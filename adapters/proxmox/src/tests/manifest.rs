//! The package: manifest and description are sound together, and let the adapter read and nothing else.

use std::collections::BTreeSet;

use heddle_sdk::testing::conformance;
use serde_json::{Value, json};

use super::device::{description, package};

fn manifest() -> Value {
    let mut manifest: Value = serde_json::from_str(include_str!("../../manifest.json")).unwrap();
    // The packing adds the files.
    manifest["files"] = json!([]);
    manifest
}

#[test]
fn sessions_and_limits_are_accepted() {
    let mut manifest = manifest();
    let file = |path: &str| json!({ "path": path, "size": 1, "sha256": "0".repeat(64) });
    manifest["files"] = json!([file("component.wasm"), file("description.json")]);
    let accepted = heddle_marketplace::inspect(manifest.to_string().as_bytes()).unwrap();
    let names: Vec<&String> = accepted.auth.keys().collect();
    assert_eq!(names, ["ticket", "token"]);
    // A ticket lives two hours, and only writes carry the other token.
    let ticket = &accepted.auth["ticket"];
    assert!(
        ticket.ttl_s < 7_200 && ticket.apply.iter().any(|apply| apply.methods == ["POST", "PUT", "DELETE"])
    );
    assert!(accepted.auth["token"].login.is_empty());
}

#[test]
fn package_is_sound() {
    conformance::package(include_str!("../../manifest.json"), include_str!("../../description.json"));
    assert!(package().features().len() > 190, "{}", package().features().len());
    assert_eq!(description()["areas"].as_array().unwrap().len(), 12);
}

#[test]
fn names_of_the_envelope_are_no_secrets() {
    let manifest = manifest();
    let fields = manifest["secret-fields"].as_array().unwrap();
    for name in ["data", "errors", "message", "key", "value", "content", "username"] {
        assert!(!fields.contains(&json!(name)), "{name}");
    }
}

#[test]
fn every_parameter_of_a_path_is_told_by_an_object_or_a_payload() {
    let kinds = description()["kinds"].as_array().unwrap();
    let of_kind = |id: &Value| kinds.iter().find(|kind| kind["id"] == *id);
    for feature in description()["features"].as_array().unwrap() {
        let mut known: BTreeSet<String> = BTreeSet::from(["id".to_owned()]);
        let mut kind = of_kind(&feature["kind"]);
        while let Some(found) = kind {
            let binding = &found["binding"];
            let within = &binding["within"];
            for params in [&binding["params"], &within["params"]] {
                known.extend(params.as_object().into_iter().flatten().map(|(name, _)| name.clone()));
            }
            kind = of_kind(&within["kind"]);
        }
        for operation in feature["operations"].as_array().unwrap() {
            let required = operation["payload-schema"]["required"].as_array().into_iter().flatten();
            known.extend(required.filter_map(Value::as_str).map(str::to_owned));
        }
        for word in ["create", "update", "delete", "action"] {
            let path = feature["binding"][word]["path"].as_str().unwrap_or_default();
            for name in path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
                assert!(known.contains(name), "{} {word}: {name} of {path}", feature["id"]);
            }
        }
    }
}
