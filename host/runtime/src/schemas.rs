//! The schemas of an adapter, judged and compiled once when it is loaded: no request compiles one, and none
//! answers with an error because of one.

use std::collections::HashMap;

use heddle_core::adapter::Description;
use heddle_core::change::Operation;
use heddle_marketplace::Schema;
use heddle_marketplace::manifest::Manifest;
use serde_json::json;

/// Patterns of all payload schemas of an adapter together.
const PATTERNS_MAX: usize = 8_192;

/// What a controller's settings and the payloads of changes are checked against.
pub(crate) struct Schemas {
    pub(crate) settings: Schema,
    payloads: HashMap<String, Vec<(Operation, Schema)>>,
}

impl Schemas {
    /// The first schema that is not accepted is named by its feature.
    pub(crate) fn compile(manifest: &Manifest, description: &Description) -> Result<Self, String> {
        let settings = match &manifest.config_schema {
            Some(document) => Schema::parse(document),
            // Without a schema there are no settings.
            None => Schema::compile(&json!({ "type": "object", "additionalProperties": false })),
        };
        let settings = settings.map_err(|error| format!("config-schema: {error}"))?;
        let (mut payloads, mut patterns) = (HashMap::new(), 0);
        for feature in &description.features {
            let mut operations = Vec::with_capacity(feature.operations.len());
            for operation in &feature.operations {
                let verb = operation.operation;
                let refused =
                    |problem: &str| format!("the payload schema of '{}' ({verb}): {problem}", feature.id);
                let schema =
                    Schema::parse(&operation.payload_schema).map_err(|error| refused(&error.to_string()))?;
                patterns += schema.patterns();
                if patterns > PATTERNS_MAX {
                    return Err(refused(&format!(
                        "with it there are more than {PATTERNS_MAX} patterns in all"
                    )));
                }
                operations.push((verb, schema));
            }
            payloads.insert(feature.id.clone(), operations);
        }
        Ok(Self { settings, payloads })
    }

    pub(crate) fn payload(&self, feature: &str, operation: Operation) -> Option<&Schema> {
        let operations = self.payloads.get(feature)?;
        operations.iter().find(|(verb, _)| *verb == operation).map(|(_, schema)| schema)
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::adapter::{Feature, FeatureOperation};
    use heddle_core::change::Danger;
    use serde_json::Value;

    use super::*;

    fn manifest() -> Manifest {
        serde_json::from_value(json!({
            "schema": 1, "id": "acme", "version": "1.0.0", "kind": "adapter", "api": "1.0", "name": "Acme",
            "publisher": "acme", "license": "Apache-2.0", "files": [], "component": "component.wasm",
        }))
        .unwrap()
    }

    fn description(schema: Value) -> Description {
        let operation = FeatureOperation {
            operation: Operation::Update,
            danger: Danger::Normal,
            payload_schema: schema,
            time_limit_ms: None,
            invertible: false,
        };
        let feature = Feature {
            id: "acme.lab.thing".into(),
            area: "lab".into(),
            title: "Thing".into(),
            kind: None,
            natural_key: vec![],
            operations: vec![operation],
        };
        Description {
            vendor: "acme".into(),
            title: "Acme".into(),
            areas: vec![],
            kinds: vec![],
            features: vec![feature],
        }
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
        ] {
            let refused = Schemas::compile(&manifest(), &description(schema)).err().unwrap();
            assert!(refused.contains("'acme.lab.thing' (update)") && refused.contains(problem), "{refused}");
        }
    }

    #[test]
    fn schemas_are_found_by_feature_and_operation() {
        let schemas = Schemas::compile(&manifest(), &description(json!({ "required": ["a"] }))).ok().unwrap();
        let schema = schemas.payload("acme.lab.thing", Operation::Update).unwrap();
        assert!(!schema.validator().is_valid(&json!({})) && schema.validator().is_valid(&json!({ "a": 1 })));
        assert!(schemas.payload("acme.lab.thing", Operation::Create).is_none());
        assert!(
            !schemas.settings.validator().is_valid(&json!({ "a": 1 })),
            "without a schema there are no settings"
        );
    }
}
