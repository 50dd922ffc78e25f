//! What manifest and description of a package owe to each other.

use std::collections::BTreeSet;

use heddle_marketplace::description::{BINDING_BYTES_MAX, Description};
use heddle_marketplace::manifest::{Manifest, ReadRule};
use heddle_marketplace::{inspect, judge_schemas};
use serde_json::{Value, json};

use super::Checked;

/// Parts of a feature's binding that write.
const WRITES: [&str; 4] = ["create", "update", "delete", "action"];
/// Operations of features.
const OPERATIONS: [&str; 3] = ["create", "update", "delete"];

/// Checks that a server accepts the texts of `manifest.json` and `description.json`, and that they fit together: reads by
/// POST are declared, no write passes as a read, secrets that are read are replaced by references, and dangers are the
/// same to the reviewer and to the plan.
///
/// # Panics
///
/// Where they do not: the text names each problem.
pub fn package(manifest: &str, description: &str) {
    let problems = match accepted(manifest, description) {
        Ok((manifest, description)) => {
            let parts = [reads, writes, secrets, rows];
            parts.iter().flat_map(|part| part(&manifest, &description)).collect()
        }
        Err(problem) => vec![problem],
    };
    assert!(problems.is_empty(), "{}:\n{}", problems.len(), problems.join("\n"));
}

fn accepted(manifest: &str, description: &str) -> Checked<(Manifest, Value)> {
    let told = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    let mut packed: Value = serde_json::from_str(manifest).map_err(|error| told("the manifest", &error))?;
    // The packing adds the files.
    let file = |path: &str, bytes: usize| json!({ "path": path, "size": bytes, "sha256": "0".repeat(64) });
    packed["files"] = json!([file("component.wasm", 1), file("description.json", description.len())]);
    let manifest = inspect(packed.to_string().as_bytes()).map_err(|error| told("the manifest", &error))?;
    let whole: Value = serde_json::from_str(description).map_err(|error| told("the description", &error))?;
    // A server takes the white space out.
    let described: Description =
        serde_json::from_str(&whole.to_string()).map_err(|error| told("the description", &error))?;
    let of_kinds = described.kinds.iter().map(|kind| (&kind.id, &kind.binding));
    let of_features = described.features.iter().map(|feature| (&feature.id, &feature.binding));
    for (id, binding) in of_kinds.chain(of_features) {
        let bytes = binding.as_ref().map_or(0, |binding| binding.get().len());
        if bytes > BINDING_BYTES_MAX {
            return Err(format!("the binding of '{id}' has {bytes} bytes"));
        }
    }
    judge_schemas(&manifest, &described).map_err(|error| told("a schema", &error))?;
    Ok((manifest, whole))
}

fn all<'d>(description: &'d Value, of: &str) -> impl Iterator<Item = &'d Value> {
    description[of].as_array().into_iter().flatten()
}

/// Reads that are no GET fit a rule.
fn reads(manifest: &Manifest, description: &Value) -> Vec<String> {
    let parts =
        all(description, "kinds").flat_map(|kind| ["list", "get", "file"].map(|part| &kind["binding"][part]));
    let routes = parts.filter_map(|route| Some((route["method"].as_str()?, route["path"].as_str()?)));
    let refused = routes.filter(|(method, path)| {
        *method != "GET" && !manifest.reads.iter().any(|rule| meets(rule, method, path, is_any))
    });
    refused.map(|(method, path)| format!("{method} {path} is read, and no rule of 'reads' says so")).collect()
}

/// No write could fit a rule, whatever fills its path.
fn writes(manifest: &Manifest, description: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for feature in all(description, "features") {
        let binding = &feature["binding"];
        let parts = WRITES.map(|word| (word, &binding[word]));
        let back = ("back", &binding["action"]["back"]);
        let activations = binding["activate"].as_array().into_iter().flatten().map(|one| ("activate", one));
        let cancels = WRITES.map(|word| ("cancel", &binding[word]["cancel"]));
        for (word, write) in parts.into_iter().chain([back]).chain(cancels).chain(activations) {
            let Some(path) = write["path"].as_str() else { continue };
            let method = write["method"].as_str().unwrap_or("POST");
            let could_be = |rule: &&ReadRule| !rule.has_condition() && meets(rule, method, path, is_open);
            if let Some(rule) = manifest.reads.iter().find(could_be) {
                problems.push(format!("{} {word} {path} passes as the read {}", feature["id"], rule.path));
            }
        }
    }
    problems
}

fn meets(rule: &ReadRule, method: &str, path: &str, is_same: fn(&str, &str) -> bool) -> bool {
    let (wanted, path): (Vec<&str>, Vec<&str>) = (rule.path.split('/').collect(), path.split('/').collect());
    rule.method == method
        && wanted.len() == path.len()
        && wanted.iter().zip(&path).all(|(rule, part)| !part.contains('?') && is_same(rule, part))
}

/// Whether a segment of a rule takes every value of a segment of a path.
fn is_any(rule: &str, part: &str) -> bool {
    rule == "*" || rule == part
}

/// The same for some value. An id is one that the device gave, and none of its words.
fn is_open(rule: &str, part: &str) -> bool {
    is_any(rule, part) || part.starts_with('{') && part != "{id}"
}

/// Fields of objects that hold secrets are known by their names in answers.
fn secrets(manifest: &Manifest, description: &Value) -> Vec<String> {
    let replaced: BTreeSet<&str> = manifest.secret_fields.iter().map(String::as_str).collect();
    let mut problems = Vec::new();
    for kind in all(description, "kinds") {
        for (name, field) in kind["binding"]["fields"].as_object().into_iter().flatten() {
            let is_secret = field == "secret" || field["type"] == "secret";
            // What no answer shows needs no reference.
            let is_shown = is_secret && field["unread"] != true;
            let place = field["at"].as_str().unwrap_or(name).rsplit('.').next().unwrap_or_default();
            if is_shown && !replaced.contains(place) {
                problems.push(format!(
                    "{} shows the secret '{place}', which is none of 'secret-fields'",
                    kind["id"]
                ));
            }
        }
    }
    problems
}

/// Ids begin with the package's, and dangers are the same in both places.
fn rows(manifest: &Manifest, description: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for feature in all(description, "features") {
        let id = feature["id"].as_str().unwrap_or_default();
        if !id.strip_prefix(&manifest.id).is_some_and(|rest| rest.starts_with('.')) {
            problems.push(format!("the feature '{id}' does not begin with '{}.'", manifest.id));
        }
        for word in OPERATIONS {
            let mut operations = feature["operations"].as_array().into_iter().flatten();
            let Some(operation) = operations.find(|one| one["operation"] == word) else { continue };
            let planned = feature["binding"]["danger"][word].as_str().unwrap_or("normal");
            if feature["binding"].is_object() && operation["danger"] != planned {
                problems.push(format!(
                    "{word} of '{id}' is {} to people and {planned} to its plan",
                    operation["danger"]
                ));
            }
        }
    }
    problems
}
