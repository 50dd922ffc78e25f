//! Fields of a payload schema that name a file: `"x-file": true`, and `x-max-bytes` where the vendor takes less.

use serde_json::{Map, Value};

use crate::schema::children;

const FILE: &str = "x-file";
const BYTES_MAX: &str = "x-max-bytes";

/// Says what is wrong with the fields for files of a schema that was judged. The host looks for them below `properties` and
/// `items` alone: elsewhere an id would be taken for a text.
pub(crate) fn problem_of(schema: &Value) -> Option<String> {
    let fields = schema.as_object()?;
    if fields.contains_key(FILE) {
        return Some(format!("'{FILE}' stands at a field, not at the whole payload"));
    }
    problem_below(fields, true)
}

fn problem_below(fields: &Map<String, Value>, is_found: bool) -> Option<String> {
    children(fields).find_map(|(keyword, schema)| {
        let fields = schema.as_object()?;
        let is_found = is_found && matches!(keyword, "properties" | "items");
        problem_at(fields, is_found).or_else(|| {
            // The host looks no deeper than a file.
            problem_below(fields, is_found && !fields.contains_key(FILE))
        })
    })
}

fn problem_at(fields: &Map<String, Value>, is_found: bool) -> Option<String> {
    match fields.get(FILE) {
        None if fields.contains_key(BYTES_MAX) => {
            return Some(format!("'{BYTES_MAX}' stands beside '{FILE}' only"));
        }
        None => return None,
        Some(Value::Bool(true)) => {}
        Some(other) => return Some(format!("'{FILE}' is {other}; only true is accepted")),
    }
    if !is_found {
        return Some(format!("'{FILE}' is found below 'properties' and 'items' only"));
    }
    if fields.get("type").and_then(Value::as_str) != Some("string") {
        return Some(format!("a field with '{FILE}' has the type \"string\""));
    }
    let bytes_max = fields.get(BYTES_MAX).filter(|most| most.as_u64().is_none_or(|most| most == 0))?;
    Some(format!("'{BYTES_MAX}' is {bytes_max}; a whole number above zero is accepted"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn refused(schema: &Value, words: &str) {
        let problem = problem_of(schema).expect(words);
        assert!(problem.contains(words), "{problem}");
    }

    #[test]
    fn a_file_is_a_text_below_properties_and_items() {
        let file = json!({ "type": "string", "x-file": true, "x-max-bytes": 10 });
        let list = json!({ "type": "array", "items": { "properties": { "image": file } } });
        let schema =
            json!({ "properties": { "image": file, "disks": list, "x-file": { "type": "boolean" } } });
        assert_eq!(problem_of(&schema), None);
        assert_eq!(problem_of(&json!({ "properties": { "a": { "const": { "x-file": 1 } } } })), None);
    }

    #[test]
    fn a_file_that_would_not_be_found_is_refused() {
        let file = json!({ "type": "string", "x-file": true });
        let found = "below 'properties' and 'items' only";
        refused(&file, "not at the whole payload");
        refused(&json!({ "additionalProperties": file }), found);
        refused(&json!({ "properties": { "a": { "anyOf": [file] } } }), found);
        refused(&json!({ "oneOf": [{ "properties": { "a": file } }] }), found);
        refused(&json!({ "$defs": { "a": file }, "properties": { "a": { "$ref": "#/$defs/a" } } }), found);
        let inside = json!({ "type": "string", "x-file": true, "properties": { "b": file } });
        refused(&json!({ "properties": { "a": inside } }), found);
    }

    #[test]
    fn a_file_says_what_it_is_in_values_that_mean_it() {
        let of = |field: Value| json!({ "properties": { "a": field } });
        refused(&of(json!({ "type": "string", "x-file": "yes" })), "only true is accepted");
        refused(&of(json!({ "type": ["string", "null"], "x-file": true })), "has the type");
        refused(&of(json!({ "x-file": true })), "has the type");
        for most in [json!(1.5), json!(-1), json!(0), json!("10")] {
            refused(&of(json!({ "type": "string", "x-file": true, "x-max-bytes": most })), "whole number");
        }
        refused(&of(json!({ "type": "string", "x-max-bytes": 10 })), "beside 'x-file' only");
    }
}
