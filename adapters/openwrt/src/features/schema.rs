//! Features as the description has them, with JSON Schemas (2020-12) of their payloads, made from the tables.

use heddle_sdk::{Danger, Operation};
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
        Type::Text(check) => json!({"type": "string", "pattern": check.pattern()}),
        Type::Word(words) => json!({"type": "string", "enum": words}),
        Type::Flag => json!({"type": "boolean"}),
        Type::Number(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
        Type::List(check) => {
            json!({"type": "array", "maxItems": 128, "items": {"type": "string", "pattern": check.pattern(), "description": check.wanted()}})
        }
        Type::Secret => json!({"type": "string", "minLength": 1, "maxLength": 255, "writeOnly": true}),
    }
}

fn described(mut schema: Value, doc: &str) -> Value {
    schema["description"] = json!(doc);
    schema
}

/// The key is one value, also where the option is a list. What is there may have any name: only a new one is checked.
fn key_property(field: &Field, operation: Operation) -> Value {
    let schema = match (field.takes, operation) {
        (Type::Number(..), _) => of_type(field.takes),
        (_, Operation::Update | Operation::Delete) => {
            json!({"type": "string", "minLength": 1, "maxLength": 260})
        }
        (Type::List(check), Operation::Create) => of_type(Type::Text(check)),
        (_, Operation::Create) => of_type(field.takes),
    };
    described(schema, field.doc)
}

/// Fields that a body has when it is read, so that it can be sent back as it is.
fn read_only(properties: &mut Map<String, Value>) {
    let docs = [
        (
            "position",
            json!({"type": "integer", "minimum": 0}),
            "its place among its like, from 0; changed by the ordering, not here",
        ),
        ("options", json!({"type": "object"}), "options that have no field here, as they are in the file"),
        ("live", json!({"type": "object"}), "what the running system says of it"),
    ];
    for (name, schema, doc) in docs {
        let mut schema = described(schema, doc);
        schema["readOnly"] = json!(true);
        properties.insert(name.to_owned(), schema);
    }
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
        properties.insert(key.name.to_owned(), key_property(key, operation));
        // A section without a key is named by the first field alone.
        if operation == Operation::Create || required.is_empty() {
            required.push(key.name);
        }
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
            if feature.is_renamed_freely() {
                let new = key_property(&feature.key[0], Operation::Create);
                properties.insert("new_name".to_owned(), described(new, "what it is called from now on"));
            }
            read_only(&mut properties);
        }
        Operation::Delete => {}
    }
    let mut schema = object(properties, &required);
    if operation == Operation::Update {
        schema["minProperties"] = json!(feature.key.len().min(1) + 1);
    }
    schema
}

fn operation(operation: Operation, danger: Danger, schema: &Value, invertible: bool) -> Value {
    let verb = match operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
    };
    let danger = match danger {
        Danger::Normal => "normal",
        Danger::Destructive => "destructive",
        Danger::Catastrophic => "catastrophic",
    };
    json!({ "operation": verb, "danger": danger, "payload-schema": schema, "invertible": invertible })
}

/// The description of a section feature.
pub(crate) fn section_feature(feature: &SectionFeature) -> Value {
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
    json!({
        "id": feature.id,
        "area": feature.area,
        "title": feature.title,
        "kind": feature.kind,
        "natural-key": feature.key.iter().map(|field| field.name).collect::<Vec<_>>(),
        "operations": operations,
    })
}

fn at_least_one(mut schema: Value) -> Value {
    schema["minProperties"] = json!(1);
    schema
}

/// The description of an ordering.
pub(crate) fn order_feature(feature: &order::OrderFeature) -> Value {
    let mut properties = Map::new();
    let list = json!({
        "type": "array",
        "minItems": 2,
        "maxItems": 512,
        "uniqueItems": true,
        "items": {"type": "string", "minLength": 1, "maxLength": 260},
        "description": "names in their new order. Those that are left out keep their places; the named ones share out the places that they have now",
    });
    let name = |doc: &str| json!({"type": "string", "minLength": 1, "maxLength": 260, "description": doc});
    properties.insert("order".to_owned(), list);
    properties.insert("name".to_owned(), name("one to move; with 'after' or 'before', instead of 'order'"));
    properties.insert("after".to_owned(), name("it goes right behind this one"));
    properties.insert(
        "before".to_owned(),
        name("it goes right before this one, where the one of 'after' is not there"),
    );
    let schema = at_least_one(object(properties, &[]));
    json!({
        "id": feature.id,
        "area": feature.area,
        "title": feature.title,
        "operations": [operation(Operation::Update, Danger::Normal, &schema, true)],
    })
}

/// The description of an action that has no inverse.
pub(crate) fn action(id: &str, title: &str, schema: &Value, time_limit_ms: Option<u32>) -> Value {
    let mut update = operation(Operation::Update, Danger::Catastrophic, schema, false);
    if let Some(limit) = time_limit_ms {
        update["time-limit-ms"] = json!(limit);
    }
    json!({ "id": id, "area": "base", "title": title, "operations": [update] })
}
