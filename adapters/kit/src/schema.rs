//! Parts of the schemas of payloads.

use serde_json::{Map, Value, json};

/// An object that has these fields and no others.
pub fn object<S: AsRef<str>>(properties: Map<String, Value>, required: &[S]) -> Value {
    let mut schema = json!({ "type": "object", "additionalProperties": false, "properties": properties });
    if !required.is_empty() {
        schema["required"] = required.iter().map(AsRef::as_ref).collect();
    }
    schema
}

/// A text that is not empty.
pub fn text(chars_max: u32) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": chars_max })
}

/// A text that no answer shows.
pub fn secret(chars_max: u32) -> Value {
    let mut schema = text(chars_max);
    schema["writeOnly"] = json!(true);
    schema
}

/// The same schema with those of the bounds that there are, each with its keyword.
pub fn bounded<V: Into<Value>>(mut schema: Value, bounds: [(&str, Option<V>); 2]) -> Value {
    for (word, bound) in bounds {
        if let Some(bound) = bound {
            schema[word] = bound.into();
        }
    }
    schema
}

/// The same schema, where `null` empties the field.
pub fn nullable(mut schema: Value) -> Value {
    let kind = schema["type"].take();
    schema["type"] = json!([kind, "null"]);
    if let Some(options) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        options.push(Value::Null);
    }
    schema
}
