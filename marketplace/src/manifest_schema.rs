//! The JSON Schema of a manifest as its author writes it, for editors.
//!
//! It says which keys there are and what each takes. Whether a package is accepted say the rules, which look at several keys
//! together.

use serde_json::{Value, json};

use crate::manifest::Manifest;

/// Keys of a manifest that [`pack`](crate::pack) fills in.
const FILLED_IN: &[&str] = &["files", "publisher"];

/// JSON Schema 2020-12 of `manifest.json`.
#[must_use]
pub fn manifest_schema() -> Value {
    let mut schema = schemars::schema_for!(Manifest).to_value();
    schema["title"] = json!("Manifest of a package");
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|key| key.as_str().is_none_or(|key| !FILLED_IN.contains(&key)));
    }
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.remove("files");
        let about = "Where an editor finds this schema. It is not in the package.";
        properties.insert("$schema".to_owned(), json!({ "type": "string", "description": about }));
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin_rules::tests::template;
    use crate::push_rules::tests::whole;

    #[test]
    fn it_takes_a_manifest_that_uses_everything_and_refuses_what_is_misspelt() {
        let schema = manifest_schema();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut manifest = template();
        manifest["$schema"] = json!(".heddle/manifest.schema.json");
        let problems: Vec<String> = validator.iter_errors(&manifest).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{problems:?}");
        for (pointer, value) in [
            ("/actions/0/effect", json!("write")),
            ("/capabilities/kv", json!({ "byte": 1 })),
            ("/hooks/0/signature/scheme", json!("md5")),
            ("/version", json!(1)),
        ] {
            let mut wrong = template();
            *wrong.pointer_mut(pointer).unwrap() = value;
            assert!(!validator.is_valid(&wrong), "{pointer}");
        }
        assert!(!schema.to_string().contains("[`"), "links of the source say nothing to authors");
    }

    #[test]
    fn it_takes_the_channels_of_an_adapter_and_refuses_what_is_misspelt() {
        let validator = jsonschema::validator_for(&manifest_schema()).unwrap();
        let mut manifest = whole();
        manifest.as_object_mut().unwrap().remove("files");
        let problems: Vec<String> = validator.iter_errors(&manifest).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{problems:?}");
        for (pointer, value) in [
            ("/push/events/socket", json!({ "ping": 15, "silence-s": 45 })),
            ("/push/events/per", json!("sites")),
            ("/push/leases/stream/format", json!("ndjson")),
            ("/push/tasks/watch/of", json!("/status")),
            ("/push/webhook/hook/proof/at", json!({ "query": "secret" })),
            ("/push/events/rules/0/reads", json!("device")),
        ] {
            let mut wrong = manifest.clone();
            *wrong.pointer_mut(pointer).unwrap() = value;
            assert!(!validator.is_valid(&wrong), "{pointer}");
        }
    }
}
