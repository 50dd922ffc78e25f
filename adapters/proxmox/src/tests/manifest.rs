//! The package: manifest and description are sound together, and let the adapter read and nothing else.

use std::collections::BTreeSet;

use heddle_marketplace::description::Description;
use heddle_marketplace::judge_schemas;
use heddle_marketplace::manifest::Manifest;
use serde_json::{Value, json};

use super::device::description;

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
fn every_schema_is_accepted() {
    let manifest: Manifest = serde_json::from_value(manifest()).unwrap();
    let described: Description = serde_json::from_value(description().clone()).unwrap();
    judge_schemas(&manifest, &described).unwrap();
    assert!(described.features.len() > 190, "{}", described.features.len());
    assert_eq!(described.areas.len(), 12);
}

#[test]
fn bindings_are_not_too_large() {
    let all = ["kinds", "features"].map(|word| description()[word].as_array().unwrap());
    for one in all.into_iter().flatten() {
        let bytes = one["binding"].to_string().len();
        assert!(bytes <= heddle_marketplace::description::BINDING_BYTES_MAX, "{} has {bytes}", one["id"]);
    }
}

#[test]
fn every_secret_that_is_answered_is_replaced_by_a_reference() {
    let manifest = manifest();
    let replaced: BTreeSet<&str> =
        manifest["secret-fields"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for kind in description()["kinds"].as_array().unwrap() {
        for (name, field) in kind["binding"]["fields"].as_object().into_iter().flatten() {
            let is_secret = field == "secret" || field["type"] == "secret";
            // What is never read is never shown.
            let is_hidden = field["unread"] == true;
            assert!(!is_secret || is_hidden || replaced.contains(name.as_str()), "{} {name}", kind["id"]);
        }
    }
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
fn reads_by_post_are_reads_of_the_manifest_and_writes_are_not() {
    let manifest = manifest();
    let reads: Vec<&str> =
        manifest["reads"].as_array().unwrap().iter().filter_map(|rule| rule["path"].as_str()).collect();
    let fits = |path: &str| {
        reads.iter().any(|rule| {
            let (known, asked): (Vec<&str>, Vec<&str>) =
                (rule.split('/').collect(), path.split('/').collect());
            known.len() == asked.len()
                && known.iter().zip(asked).all(|(known, asked)| *known == "*" || *known == asked)
        })
    };
    for kind in description()["kinds"].as_array().unwrap() {
        let get = &kind["binding"]["get"];
        assert!(get["method"] != "POST" || fits(get["path"].as_str().unwrap()), "{}", kind["id"]);
    }
    for feature in description()["features"].as_array().unwrap() {
        for word in ["create", "update", "delete", "action"] {
            let path = feature["binding"][word]["path"].as_str().unwrap_or_default();
            assert!(!fits(path), "{path}");
        }
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
