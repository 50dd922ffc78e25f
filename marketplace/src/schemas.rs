//! The schemas of a package, judged together before it serves: no request meets one that is not accepted.

use serde_json::{Value, json};

use crate::description::Description;
use crate::file_fields;
use crate::manifest::Manifest;
use crate::schema::{Schema, SchemaError};

/// Patterns of all payload schemas of an adapter together.
const PATTERNS_MAX: usize = 8_192;
/// Patterns of all schemas of a plugin's actions and events together.
const PLUGIN_PATTERNS_MAX: usize = 512;

/// Judges and compiles every schema, and keeps none: thousands of them would take hundreds of megabytes. The first one
/// that is not accepted is named by its feature, action or type of events.
pub fn judge_schemas(manifest: &Manifest, description: &Description) -> Result<(), String> {
    settings_schema(manifest).map_err(|error| format!("config-schema: {error}"))?;
    judge_plugin(manifest)?;
    let mut patterns = 0;
    for feature in &description.features {
        for operation in &feature.operations {
            let verb = operation.operation;
            let refused =
                |problem: &str| format!("the payload schema of '{}' ({verb}): {problem}", feature.id);
            let document: Value = serde_json::from_str(operation.payload_schema.get())
                .map_err(|error| refused(&error.to_string()))?;
            let schema = Schema::parse(&document).map_err(|error| refused(&error.to_string()))?;
            if let Some(problem) = file_fields::problem_of(&document) {
                return Err(refused(&problem));
            }
            patterns += schema.patterns();
            if patterns > PATTERNS_MAX {
                return Err(refused(&format!("with it there are more than {PATTERNS_MAX} patterns in all")));
            }
        }
    }
    Ok(())
}

fn judge_plugin(manifest: &Manifest) -> Result<(), String> {
    let actions = manifest.actions.iter().flat_map(|action| {
        let of = |field, schema| (format!("the {field} of the action '{}'", action.id), schema);
        [of("params-schema", &action.params_schema), of("output-schema", &action.output_schema)]
    });
    let tools = manifest.tools.iter().flat_map(|tool| {
        let of = |field, schema| (format!("the {field} of the tool '{}'", tool.id), schema);
        [of("params-schema", &tool.params_schema), of("output-schema", &tool.output_schema)]
    });
    let events = manifest.event_types.iter().map(|declared| {
        (format!("the payload-schema of the event type '{}'", declared.event_type), &declared.payload_schema)
    });
    let mut patterns = 0;
    for (name, document) in actions.chain(tools).chain(events) {
        // Counted before they are compiled.
        patterns += Schema::judge(document).map_err(|error| format!("{name}: {error}"))?;
        if patterns > PLUGIN_PATTERNS_MAX {
            return Err(format!("{name}: with it there are more than {PLUGIN_PATTERNS_MAX} patterns in all"));
        }
        Schema::compile(document).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

/// What a controller's `settings` must fit; an adapter that declares nothing takes none.
pub fn settings_schema(manifest: &Manifest) -> Result<Schema, SchemaError> {
    match &manifest.config_schema {
        Some(document) => Schema::parse(document),
        // Without a schema there are no settings.
        None => Schema::compile(&json!({ "type": "object", "additionalProperties": false })),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;
    use crate::description::{Danger, Feature, FeatureOperation, Operation, Per};

    fn manifest() -> Manifest {
        serde_json::from_value(json!({
            "schema": 1, "id": "acme", "version": "1.0.0", "kind": "adapter", "api": "1.0", "name": "Acme",
            "publisher": "acme", "license": "Apache-2.0", "files": [], "component": "component.wasm",
        }))
        .unwrap()
    }

    fn description(schema: &Value) -> Description {
        let operation = FeatureOperation {
            operation: Operation::Update,
            danger: Danger::Normal,
            payload_schema: to_raw_value(schema).unwrap(),
            time_limit_ms: None,
            invertible: false,
        };
        let feature = Feature {
            id: "acme.lab.thing".into(),
            area: "lab".into(),
            title: "Thing".into(),
            kind: None,
            per: Per::Site,
            natural_key: vec![],
            operations: vec![operation],
            releases: None,
            binding: None,
        };
        Description { features: vec![feature], ..Description::default() }
    }

    #[test]
    fn a_payload_schema_that_cannot_be_used_is_named_by_its_feature() {
        for (schema, problem) in [
            (json!({ "$ref": "https://acme.test/schema.json" }), "leaves the schema"),
            (json!({ "$ref": "file:///etc/passwd" }), "leaves the schema"),
            (json!({ "$dynamicRef": "https://acme.test/schema.json#x" }), "$dynamicRef"),
            (json!({ "properties": { "a": { "pattern": "a{0,100000}" } } }), "100000 times"),
            (json!({ "properties": { "a": { "pattern": "(" } } }), "cannot be used"),
            (json!({ "title": "x".repeat(70_000) }), "bytes"),
            (json!(true), "object"),
            (json!({ "properties": { "a": { "x-file": true } } }), "x-file"),
        ] {
            let refused = judge_schemas(&manifest(), &description(&schema)).unwrap_err();
            assert!(refused.contains("'acme.lab.thing' (update)") && refused.contains(problem), "{refused}");
        }
    }

    #[test]
    fn a_schema_of_an_action_or_event_that_cannot_be_used_is_named_by_it() {
        let plugin = |params: &Value, output: &Value, payload: &Value| -> Manifest {
            serde_json::from_value(json!({
                "schema": 1, "id": "acme", "version": "1.0.0", "kind": "plugin", "api": "1.0", "name": "Acme",
                "publisher": "acme", "license": "Apache-2.0", "files": [], "component": "component.wasm",
                "actions": [{
                    "id": "look", "title": "Look", "effect": "read", "params-schema": params, "output-schema": output,
                }],
                "event-types": [{ "type": "plugin.acme.done", "title": "Done", "payload-schema": payload }],
            }))
            .unwrap()
        };
        let (sound, bad) =
            (json!({ "type": "object" }), json!({ "properties": { "a": { "pattern": "(" } } }));
        for (manifest, named) in [
            (plugin(&bad, &sound, &sound), "the params-schema of the action 'look'"),
            (plugin(&sound, &bad, &sound), "the output-schema of the action 'look'"),
            (plugin(&sound, &sound, &bad), "the payload-schema of the event type 'plugin.acme.done'"),
        ] {
            let refused = judge_schemas(&manifest, &Description::default()).unwrap_err();
            assert!(refused.starts_with(named), "{refused}");
        }
        // Each is within the bound of one schema.
        let some: serde_json::Map<String, Value> =
            (0..100).map(|n| (format!("p{n}"), json!({ "pattern": "^a$" }))).collect();
        let mut manifest = plugin(&json!({ "properties": some }), &json!({ "properties": some }), &sound);
        manifest.actions = vec![manifest.actions[0].clone(); 2];
        judge_schemas(&manifest, &Description::default()).unwrap();
        manifest.actions = vec![manifest.actions[0].clone(); 3];
        let refused = judge_schemas(&manifest, &Description::default()).unwrap_err();
        assert!(refused.contains("more than 512 patterns"), "{refused}");
    }

    #[test]
    fn without_a_schema_there_are_no_settings() {
        let schema = settings_schema(&manifest()).unwrap();
        assert!(schema.validator().is_valid(&json!({})) && !schema.validator().is_valid(&json!({ "a": 1 })));
        judge_schemas(&manifest(), &description(&json!({ "required": ["a"] }))).unwrap();
    }
}
