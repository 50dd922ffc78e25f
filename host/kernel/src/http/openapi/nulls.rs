//! Where `null` may stand, as the document shows it: in bodies that [`crate::http::nulls`] reads, and in answers.
//!
//! Schemas are made from types, and in Rust an optional field and a field that may be null have the same type. So the
//! fields in which `null` has a meaning carry a mark. Every other optional field is one that may be left out.

use serde_json::{Map, Value, json};

/// The mark, by `#[schemars(extend("x-nullable" = true))]`. It is not in the finished document.
const MARK: &str = "x-nullable";

/// Schema of what a client sends: `null` only where it is marked.
pub(super) fn as_asked(schema: &mut Value) {
    each_property(schema, &|property, _| {
        let is_marked = property.remove(MARK).is_some();
        // Removes null defaults, and object defaults, which client generators cannot write.
        if property.get("default").is_some_and(|default| default.is_null() || default.is_object()) {
            property.remove("default");
        }
        if is_marked {
            say_that_null_clears(property);
        } else {
            never_null(property);
        }
    });
}

/// Schema of what the server answers: a field that may be absent is left out instead of being `null`.
pub(super) fn as_answered(schema: &mut Value) {
    each_property(schema, &|property, is_required| {
        property.remove(MARK);
        // An answer shows the actual value, so it has no default.
        property.remove("default");
        if !is_required {
            never_null(property);
        }
    });
}

/// Calls `change` with each property of the schema and of nested schemas, and whether it is required.
fn each_property(schema: &mut Value, change: &impl Fn(&mut Map<String, Value>, bool)) {
    match schema {
        Value::Object(fields) => {
            let required = fields.get("required").cloned().unwrap_or_default();
            let is_required =
                |name: &str| required.as_array().is_some_and(|all| all.iter().any(|one| one == name));
            if let Some(Value::Object(properties)) = fields.get_mut("properties") {
                for (name, property) in properties {
                    let Value::Object(property) = property else { continue };
                    change(property, is_required(name));
                }
            }
            fields.values_mut().for_each(|inner| each_property(inner, change));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_property(item, change)),
        _ => {}
    }
}

fn say_that_null_clears(property: &mut Map<String, Value>) {
    let about = property.get("description").and_then(Value::as_str).unwrap_or_default();
    if about.to_lowercase().contains("null") {
        return;
    }
    let about =
        if about.is_empty() { "`null` clears it.".to_owned() } else { format!("{about} `null` clears it.") };
    property.insert("description".to_owned(), json!(about));
}

fn never_null(property: &mut Map<String, Value>) {
    if let Some(Value::Array(kinds)) = property.get("type") {
        let kinds: Vec<Value> = kinds.iter().filter(|kind| *kind != "null").cloned().collect();
        let kinds = if let [kind] = kinds.as_slice() { kind.clone() } else { json!(kinds) };
        property.insert("type".to_owned(), kinds);
    }
    if let Some(Value::Array(words)) = property.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    let Some(Value::Array(choices)) = property.get("anyOf") else { return };
    let choices: Vec<Value> = choices.iter().filter(|one| one["type"] != "null").cloned().collect();
    property.remove("anyOf");
    match choices.as_slice() {
        [Value::Object(only)] => {
            for (name, value) in only {
                property.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        _ => {
            property.insert("anyOf".to_owned(), json!(choices));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_stays_where_it_is_marked_and_is_said() {
        let property =
            json!({ "type": ["string", "null"], "default": null, "description": "Words.", MARK: true });
        let mut schema = json!({ "properties": { "notes": property } });
        as_asked(&mut schema);
        let about = "Words. `null` clears it.";
        assert_eq!(
            schema["properties"]["notes"],
            json!({ "type": ["string", "null"], "description": about })
        );
    }

    #[test]
    fn an_optional_field_of_a_request_is_left_out_and_never_null() {
        let reference = json!({ "$ref": "#/components/schemas/Tier" });
        let mut schema = json!({ "properties": {
            "name": { "type": ["string", "null"], "default": null },
            "tier": { "description": "Own words.", "anyOf": [reference, { "type": "null" }] },
        } });
        as_asked(&mut schema);
        assert_eq!(schema["properties"]["name"], json!({ "type": "string" }));
        let tier = json!({ "description": "Own words.", "$ref": "#/components/schemas/Tier" });
        assert_eq!(schema["properties"]["tier"], tier);
    }

    #[test]
    fn an_answer_has_null_only_in_fields_that_are_always_there() {
        let text = json!({ "type": ["string", "null"] });
        let mut schema =
            json!({ "required": ["always"], "properties": { "always": text, "sometimes": text } });
        as_answered(&mut schema);
        assert_eq!(schema["properties"]["always"], text);
        assert_eq!(schema["properties"]["sometimes"], json!({ "type": "string" }));
    }
}
