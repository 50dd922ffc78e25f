//! An example that fits a schema: what the catalogue shows beside each operation.

use serde_json::{Map, Value, json};

/// How deep an example is made.
const DEPTH_MAX: usize = 12;

/// Words of the field, tried where a schema gives a pattern and no example.
const WORDS: &[&str] = &[
    "example",
    "lan",
    "guest",
    "192.0.2.10",
    "192.0.2.0/24",
    "2001:db8::10",
    "2001:db8::/64",
    "02:00:00:00:00:01",
    "8443",
    "8000-8080",
    "443",
    "10",
    "1",
    "tcp",
    "12h",
    "30m",
    "08:00",
    "08:00:00",
    "2026-01-31",
    "example.org",
    "https://example.org/image.bin",
    "/etc/config/network",
    "Guest-network",
    "eth0",
    "br-lan",
    "lan1:u*",
    "0x1",
    "5/second",
    "10/minute",
    "UTC",
    "CET-1CEST,M3.5.0,M10.5.0/3",
    "Europe/Berlin",
    "DE",
    "01900000-0000-7000-8000-000000000001",
    "Correct-Horse-7-Battery",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "YNxAJwOoy4XKpC2bDvVbF4fI1cNVkDPLsjmuG4lQmGg=",
];

/// Parameters with what is required, or all that is declared where nothing is.
pub(super) fn params(schema: &Value) -> Value {
    made(schema, schema, 0, false)
}

/// An output with everything that is declared.
pub(super) fn output(schema: &Value) -> Value {
    made(schema, schema, 0, true)
}

fn made(root: &Value, schema: &Value, depth: usize, is_whole: bool) -> Value {
    if depth > DEPTH_MAX {
        return Value::Null;
    }
    if let Some(found) = schema["$ref"].as_str().and_then(|at| root.pointer(at.trim_start_matches('#'))) {
        return made(root, found, depth + 1, is_whole);
    }
    let first = |name: &str| schema[name].as_array().and_then(|items| items.first()).cloned();
    let given =
        schema.get("const").cloned().or_else(|| first("examples")).or_else(|| schema.get("example").cloned());
    if let Some(given) = given.or_else(|| schema.get("default").filter(|value| !value.is_null()).cloned()) {
        return given;
    }
    if let Some(word) = first("enum") {
        return word;
    }
    let is_object = schema.get("properties").is_some() || schema["type"] == "object";
    for name in ["oneOf", "anyOf"] {
        let choices = schema[name].as_array().into_iter().flatten();
        let choice = choices.into_iter().find(|choice| choice["type"] != "null");
        if let Some(choice) = choice.filter(|_| !is_object) {
            return made(root, choice, depth + 1, is_whole);
        }
    }
    match type_of(schema) {
        Some("object") => object(root, schema, depth, is_whole),
        Some("array") => array(root, schema, depth, is_whole),
        Some("integer" | "number") => number(schema),
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        Some(_) => text(schema),
        None if is_object => object(root, schema, depth, is_whole),
        None => json!({}),
    }
}

fn type_of(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::Array(words) => words.iter().filter_map(Value::as_str).find(|word| *word != "null"),
        word => word.as_str(),
    }
}

fn object(root: &Value, schema: &Value, depth: usize, is_whole: bool) -> Value {
    let Some(fields) = schema["properties"].as_object() else { return json!({}) };
    let names = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut wanted = names(&schema["required"]);
    // One of several ways to fill the object in.
    for choice in ["oneOf", "anyOf"] {
        let one = schema[choice].as_array().and_then(|choices| choices.first());
        wanted.extend(one.map(|one| names(&one["required"])).unwrap_or_default());
    }
    let is_wanted = |name: &String| is_whole || wanted.is_empty() || wanted.contains(name);
    let filled: Map<String, Value> = fields
        .iter()
        .filter(|(name, _)| is_wanted(name))
        .map(|(name, field)| (name.clone(), made(root, field, depth + 1, is_whole)))
        .collect();
    Value::Object(filled)
}

fn array(root: &Value, schema: &Value, depth: usize, is_whole: bool) -> Value {
    let least = schema["minItems"].as_u64().unwrap_or(1).clamp(1, 4);
    match schema.get("items") {
        Some(items) => (0..least).map(|_| made(root, items, depth + 1, is_whole)).collect(),
        None => json!([]),
    }
}

fn number(schema: &Value) -> Value {
    schema.get("minimum").or_else(|| schema.get("maximum")).cloned().unwrap_or_else(|| json!(1))
}

fn text(schema: &Value) -> Value {
    match schema["format"].as_str() {
        Some("uuid") => return json!("01900000-0000-7000-8000-000000000001"),
        Some("date-time") => return json!("2026-01-31T08:00:00.000000Z"),
        Some("uri") => return json!("https://example.org/path"),
        _ => {}
    }
    if let Ok(validator) = jsonschema::validator_for(schema)
        && let Some(word) = WORDS.iter().find(|word| validator.is_valid(&json!(word)))
    {
        return json!(word);
    }
    json!("example")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_fits_its_schema() {
        let schema = json!({
            "type": "object",
            "properties": {
                "id": { "type": "string", "format": "uuid" },
                "port": { "type": "string", "pattern": "^[0-9]+-[0-9]+$" },
                "kind": { "enum": ["a", "b"] },
                "count": { "type": ["integer", "null"], "minimum": 3 },
                "deep": { "type": "array", "minItems": 2, "items": { "$ref": "#/$defs/x" } },
                "url": { "type": "string", "examples": ["https://hooks.example.org/x"] },
                "more": { "type": "string" },
            },
            "required": ["id", "port", "kind", "count", "deep", "url"],
            "additionalProperties": false,
            "$defs": { "x": { "type": "object", "properties": { "on": { "type": "boolean" } }, "required": ["on"] } },
        });
        let validator = jsonschema::validator_for(&schema).unwrap();
        let (some, whole) = (params(&schema), output(&schema));
        assert!(validator.is_valid(&some) && validator.is_valid(&whole), "{some} {whole}");
        assert_eq!((some.get("more"), whole["more"].is_string()), (None, true));
        assert_eq!(some["deep"], json!([{ "on": true }, { "on": true }]));
    }
}
