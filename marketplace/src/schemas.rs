//! The schemas of a package, judged together before it serves: no request meets one that is not accepted.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::description::Description;
use crate::file_fields;
use crate::manifest::Manifest;
use crate::schema::{Schema, SchemaError};

/// Patterns of all payload schemas of an adapter together. In one schema, the same pattern counts once.
const PATTERNS_MAX: usize = 8_192;
/// Patterns of all schemas of a plugin's actions and events together.
const PLUGIN_PATTERNS_MAX: usize = 512;
/// Bytes of all compiled patterns of a plugin together, which have equal parts of it: compiling takes time with them.
const PLUGIN_PATTERNS_MEMORY_MAX: usize = 256 << 20;

/// Judges and compiles every schema, and keeps none: thousands of them would take hundreds of megabytes. The first one
/// that is not accepted is named by its feature, action or type of events.
pub fn judge_schemas(manifest: &Manifest, description: &Description) -> Result<(), String> {
    settings_schema(manifest).map_err(|error| format!("config-schema: {error}"))?;
    judge_all(|| of_plugin(manifest), PLUGIN_PATTERNS_MAX, PLUGIN_PATTERNS_MEMORY_MAX)?;
    // Thousands of features have thousands of patterns, most of them the same in each: what one schema may take bounds them.
    judge_all(|| of_adapter(description), PATTERNS_MAX, usize::MAX)
}

/// A schema, and what a refusal calls it.
type Named<'a> = (String, Cow<'a, Value>);

/// Judges all before one is compiled: what a pattern may take follows from their number.
fn judge_all<'a, I: Iterator<Item = Result<Named<'a>, String>>>(
    schemas: impl Fn() -> I,
    patterns_max: usize,
    memory_max: usize,
) -> Result<(), String> {
    let mut patterns = 0;
    for named in schemas() {
        let (name, document) = named?;
        patterns += Schema::judge(&document).map_err(|error| format!("{name}: {error}"))?;
        if patterns > patterns_max {
            return Err(format!("{name}: with it there are more than {patterns_max} patterns in all"));
        }
    }
    for named in schemas() {
        let (name, document) = named?;
        Schema::compile_within(&document, memory_max / patterns.max(1))
            .map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

fn of_adapter(description: &Description) -> impl Iterator<Item = Result<Named<'_>, String>> {
    let operations = description
        .features
        .iter()
        .flat_map(|feature| feature.operations.iter().map(move |operation| (feature, operation)));
    operations.map(|(feature, operation)| {
        let name = format!("the payload schema of '{}' ({})", feature.id, operation.operation);
        let document: Value = serde_json::from_str(operation.payload_schema.get())
            .map_err(|error| format!("{name}: {error}"))?;
        match file_fields::problem_of(&document) {
            Some(problem) => Err(format!("{name}: {problem}")),
            None => Ok((name, Cow::Owned(document))),
        }
    })
}

fn of_plugin(manifest: &Manifest) -> impl Iterator<Item = Result<Named<'_>, String>> {
    let of = |name: String, schema| Ok((name, Cow::Borrowed(schema)));
    let actions = manifest.actions.iter().flat_map(move |action| {
        let of = |field, schema| of(format!("the {field} of the action '{}'", action.id), schema);
        [of("params-schema", &action.params_schema), of("output-schema", &action.output_schema)]
    });
    let tools = manifest.tools.iter().flat_map(move |tool| {
        let of = |field, schema| of(format!("the {field} of the tool '{}'", tool.id), schema);
        [of("params-schema", &tool.params_schema), of("output-schema", &tool.output_schema)]
    });
    let events = manifest.event_types.iter().map(move |declared| {
        let name = format!("the payload-schema of the event type '{}'", declared.event_type);
        of(name, &declared.payload_schema)
    });
    actions.chain(tools).chain(events)
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
            (0..100).map(|n| (format!("p{n}"), json!({ "pattern": format!("^a{n}$") }))).collect();
        let mut manifest = plugin(&json!({ "properties": some }), &json!({ "properties": some }), &sound);
        manifest.actions = vec![manifest.actions[0].clone(); 2];
        judge_schemas(&manifest, &Description::default()).unwrap();
        manifest.actions = vec![manifest.actions[0].clone(); 3];
        let refused = judge_schemas(&manifest, &Description::default()).unwrap_err();
        assert!(refused.contains("more than 512 patterns"), "{refused}");
    }

    #[test]
    fn texts_of_usual_length_have_room_among_a_hundred_patterns_of_a_plugin() {
        let share = PLUGIN_PATTERNS_MEMORY_MAX / 100;
        for pattern in ["^.{1,512}$", "^[^\\x00-\\x1f]{1,1000}$", "^https?://[^\\s]{1,1000}$"] {
            let schema = json!({ "properties": { "a": { "pattern": pattern } } });
            Schema::compile_within(&schema, share).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        }
    }

    #[test]
    fn without_a_schema_there_are_no_settings() {
        let schema = settings_schema(&manifest()).unwrap();
        assert!(schema.validator().is_valid(&json!({})) && !schema.validator().is_valid(&json!({ "a": 1 })));
        judge_schemas(&manifest(), &description(&json!({ "required": ["a"] }))).unwrap();
    }
}
