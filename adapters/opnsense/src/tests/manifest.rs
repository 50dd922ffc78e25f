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
fn every_schema_is_accepted() {
    let manifest: Manifest = serde_json::from_value(manifest()).unwrap();
    let described: Description = serde_json::from_value(description().clone()).unwrap();
    judge_schemas(&manifest, &described).unwrap();
    assert!(described.features.len() > 100, "{}", described.features.len());
}

#[test]
fn every_secret_field_is_replaced_by_a_reference() {
    let manifest = manifest();
    let replaced: BTreeSet<&str> =
        manifest["secret-fields"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for kind in description()["kinds"].as_array().unwrap() {
        for (name, field) in kind["binding"]["fields"].as_object().into_iter().flatten() {
            let place = field["at"].as_str().unwrap_or(name).rsplit('.').next().unwrap();
            let is_secret = field == "secret" || field["type"] == "secret";
            assert!(!is_secret || replaced.contains(place), "{} {name}", kind["id"]);
        }
    }
}

#[test]
fn lists_that_are_asked_by_post_are_reads_of_the_manifest() {
    let manifest = manifest();
    let reads: Vec<&str> =
        manifest["reads"].as_array().unwrap().iter().filter_map(|rule| rule["path"].as_str()).collect();
    let is_open = |part: &str| part == "*" || part.starts_with('{');
    let fits = |path: &str| {
        let meets = |rule: &str| {
            let (rule, path): (Vec<&str>, Vec<&str>) = (rule.split('/').collect(), path.split('/').collect());
            let mut parts = rule.iter().zip(&path);
            rule.len() == path.len() && parts.all(|(a, b)| a == b || is_open(a) || is_open(b))
        };
        reads.iter().any(|rule| meets(rule))
    };
    for kind in description()["kinds"].as_array().unwrap() {
        for route in [&kind["binding"]["list"], &kind["binding"]["get"]] {
            let path = route["path"].as_str().unwrap_or_default();
            assert!(route["method"] != "POST" || fits(path), "{path}");
        }
    }
    for feature in description()["features"].as_array().unwrap() {
        let binding = &feature["binding"];
        let action = &binding["action"];
        let writes = [&binding["create"], &binding["update"], &binding["delete"], action, &action["back"]];
        for write in writes.into_iter().chain(binding["activate"].as_array().into_iter().flatten()) {
            let path = write["path"].as_str().unwrap_or_default();
            assert!(!fits(path), "{path}");
        }
    }
}
