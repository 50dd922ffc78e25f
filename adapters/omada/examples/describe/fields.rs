//! From the facts of a field to its part of a binding and its part of a schema.

use heddle_adapter_kit::schema::{self, object};
use serde_json::{Map, Value, json};

use super::facts::{Facts, Kind, Leaf};

/// Objects inside of objects, below which the schema takes anything.
const LEVELS_MAX: usize = 5;

/// What turns facts into schemas.
pub(super) struct Schemas<'f> {
    pub(super) facts: &'f Facts,
    /// Names of fields that hold secrets.
    pub(super) secrets: &'f [String],
}

impl Schemas<'_> {
    pub(super) fn is_secret(&self, name: &str, leaf: &Leaf) -> bool {
        leaf.kind == Kind::Text && !leaf.is_array && self.secrets.iter().any(|secret| secret == name)
    }

    /// The schema of one field.
    pub(super) fn of(&self, name: &str, leaf: &Leaf) -> Value {
        self.at_level(name, leaf, 0)
    }

    fn at_level(&self, name: &str, leaf: &Leaf, level: usize) -> Value {
        if self.is_secret(name, leaf) {
            return secret();
        }
        let one = self.one(leaf, level);
        if leaf.is_array { json!({ "type": "array", "items": one }) } else { one }
    }

    fn one(&self, leaf: &Leaf, level: usize) -> Value {
        match leaf.kind {
            Kind::Text if !leaf.values.is_empty() => json!({ "type": "string", "enum": leaf.values }),
            Kind::Text => bounded("string", leaf, "minLength", "maxLength"),
            Kind::Integer if !leaf.values.is_empty() => {
                let values: Vec<i64> = leaf.values.iter().filter_map(|value| value.parse().ok()).collect();
                json!({ "type": "integer", "enum": values })
            }
            Kind::Integer => bounded("integer", leaf, "minimum", "maximum"),
            Kind::Number => bounded("number", leaf, "minimum", "maximum"),
            Kind::Boolean => json!({ "type": "boolean" }),
            // The description calls some maps and lists just "object".
            Kind::Any => json!({ "type": ["object", "array"] }),
            Kind::Object(_) if level >= LEVELS_MAX => json!({ "type": "object" }),
            Kind::Object(_) => {
                let inside = self.facts.fields(leaf);
                let required: Vec<&String> =
                    inside.iter().filter(|(_, leaf)| leaf.is_required).map(|(name, _)| name).collect();
                let properties: Map<String, Value> = inside
                    .iter()
                    .map(|(name, leaf)| (name.clone(), self.at_level(name, leaf, level + 1)))
                    .collect();
                object(properties, &required)
            }
        }
    }
}

/// The schema of a secret.
pub(super) fn secret() -> Value {
    json!({ "type": "string", "minLength": 1, "writeOnly": true })
}

fn bounded(kind: &str, leaf: &Leaf, low: &str, high: &str) -> Value {
    schema::bounded(json!({ "type": kind }), [(low, leaf.low), (high, leaf.high)])
}

/// The schema of a payload with these fields.
pub(super) fn payload(properties: Vec<(String, Value)>, required: &[String]) -> Value {
    object(properties.into_iter().collect(), required)
}
