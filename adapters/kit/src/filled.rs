//! Whether what an adapter reads in the words of the model is what its description says.

use std::collections::{BTreeMap, BTreeSet};

use heddle_marketplace::model;
use serde_json::{Map, Value};

/// What is wrong with the objects of the model, in words: fields that their kind does not have so, keys that are there twice at
/// one device, and fields that the description names and no object has, or the other way round.
///
/// `objects` gives key and fields of all objects of a kind, by practice device.
pub fn filled_problems(
    description: &Value,
    mut objects: impl FnMut(&str) -> Vec<Vec<(String, Map<String, Value>)>>,
) -> Vec<String> {
    let mut problems = Vec::new();
    for entry in description["model"].as_array().into_iter().flatten() {
        let kind = entry["kind"].as_str().unwrap_or_default();
        let Some(known) = model::find(kind) else {
            problems.push(format!("the model has no kind '{kind}'"));
            continue;
        };
        let named: BTreeSet<&str> =
            entry["fields"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut seen = BTreeSet::new();
        for of_device in objects(kind) {
            let mut keys = BTreeMap::<String, usize>::new();
            for (key, fields) in of_device {
                problems.extend(known.problem(&fields).map(|problem| format!("{kind} '{key}': {problem}")));
                *keys.entry(key).or_default() += 1;
                seen.extend(fields.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name));
            }
            let twice = keys.iter().filter(|(_, count)| **count > 1);
            problems.extend(twice.map(|(key, _)| format!("{kind} '{key}' is there twice")));
        }
        let missing = named.iter().filter(|name| !seen.contains(**name));
        problems.extend(missing.map(|name| format!("{kind}: no object has '{name}'")));
        let unnamed = seen.iter().filter(|name| !named.contains(name.as_str()));
        problems.extend(unnamed.map(|name| format!("{kind}: '{name}' is filled and not named")));
    }
    problems
}
