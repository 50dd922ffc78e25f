//! JSON Schemas (2020-12) of payloads, made from the tables.

use heddle_sdk::{Danger, Feature, FeatureOperation, Operation};
use serde_json::{Map, Value, json};

use super::{Field, Naming, SectionFeature, Type, order};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A closed object.
pub(crate) fn object(properties: Map<String, Value>, required: &[&str]) -> Value {
    json!({
        "$schema": DIALECT,
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "required": required,
    })
}

fn of_type(takes: Type) -> Value {
    match takes {
        Type::Text(pattern) => json!({"type": "string", "pattern": pattern}),
        Type::Word(words) => json!({"type": "string", "enum": words}),
        Type::Flag => json!({"type": "boolean"}),
        Type::Number(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
        Type::List(pattern) => {
            json!({"type": "array", "maxItems": 128, "items": {"type": "string", "pattern": pattern}})
        }
        Type::Secret => json!({"type": "string", "minLength": 1, "maxLength": 255, "writeOnly": true}),
    }
}

fn described(mut schema: Value, doc: &str) -> Value {
    schema["description"] = json!(doc);
    schema
}

/// The key is one value, also where the option is a list.
fn key_property(field: &Field) -> Value {
    let takes = match field.takes {
        Type::List(pattern) => Type::Text(pattern),
        other => other,
    };
    described(of_type(takes), field.doc)
}

/// In an update, `null` removes the option.
fn clearable(field: &Field) -> Value {
    let mut schema = of_type(field.takes);
    schema["type"] = json!([schema["type"], "null"]);
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    }
    described(schema, field.doc)
}

fn payload(feature: &SectionFeature, operation: Operation) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in feature.key {
        properties.insert(key.name.to_owned(), key_property(key));
        required.push(key.name);
    }
    match operation {
        Operation::Create => {
            for field in feature.fields {
                properties.insert(field.name.to_owned(), described(of_type(field.takes), field.doc));
            }
            required.extend(feature.required);
        }
        Operation::Update => {
            for field in feature.fields {
                properties.insert(field.name.to_owned(), clearable(field));
            }
        }
        Operation::Delete => {}
    }
    let mut schema = object(properties, &required);
    if operation == Operation::Update {
        schema["minProperties"] = json!(feature.key.len() + 1);
    }
    schema
}

fn operation(operation: Operation, danger: Danger, schema: &Value, invertible: bool) -> FeatureOperation {
    FeatureOperation {
        operation,
        danger,
        payload_schema: schema.to_string(),
        time_limit_ms: None,
        invertible,
    }
}

/// The description of a section feature.
pub(crate) fn section_feature(feature: &SectionFeature) -> Feature {
    let mut operations =
        vec![operation(Operation::Update, Danger::Normal, &payload(feature, Operation::Update), true)];
    if feature.naming != Naming::Single {
        operations.insert(
            0,
            operation(Operation::Create, Danger::Normal, &payload(feature, Operation::Create), true),
        );
        operations.push(operation(
            Operation::Delete,
            feature.delete_danger,
            &payload(feature, Operation::Delete),
            true,
        ));
    }
    Feature {
        id: feature.id.to_owned(),
        area: feature.area.to_owned(),
        title: feature.title.to_owned(),
        kind: Some(feature.kind.to_owned()),
        natural_key: feature.key.iter().map(|field| field.name.to_owned()).collect(),
        operations,
    }
}

/// The description of an ordering.
pub(crate) fn order_feature(feature: &order::OrderFeature) -> Feature {
    let mut properties = Map::new();
    let list = json!({
        "type": "array",
        "minItems": 2,
        "maxItems": 512,
        "uniqueItems": true,
        "items": {"type": "string", "minLength": 1, "maxLength": 128},
        "description": "names in their new order. Those that are left out keep their places; the named ones share out the places that they have now",
    });
    properties.insert("order".to_owned(), list);
    Feature {
        id: feature.id.to_owned(),
        area: feature.area.to_owned(),
        title: feature.title.to_owned(),
        kind: None,
        natural_key: Vec::new(),
        operations: vec![operation(Operation::Update, Danger::Normal, &object(properties, &["order"]), true)],
    }
}

/// The description of an action that has no inverse.
pub(crate) fn action(id: &str, title: &str, schema: &Value, time_limit_ms: Option<u32>) -> Feature {
    let mut update = operation(Operation::Update, Danger::Catastrophic, schema, false);
    update.time_limit_ms = time_limit_ms;
    Feature {
        id: id.to_owned(),
        area: "base".to_owned(),
        title: title.to_owned(),
        kind: None,
        natural_key: Vec::new(),
        operations: vec![update],
    }
}
