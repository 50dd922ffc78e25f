//! JSON Schemas of operations that stage a change.

use std::borrow::Cow;
use std::collections::BTreeMap;

use heddle_changes::declarations::NOTES_CHARS_MAX;
use heddle_core::Document;
use heddle_core::change::{ChangeStatus, Danger, Operation as ChangeOperation};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// What following steps learn of the change.
pub(super) fn staged_schema() -> Value {
    let id = || json!({ "type": "string", "format": "uuid" });
    json!({
        "type": "object",
        "properties": {
            "change_id": id(),
            "controller_id": id(),
            "site_id": id(),
            "feature": { "type": "string", "examples": ["acme.firewall.rule"] },
            "operation": { "type": "string", "enum": ChangeOperation::ALL },
            "status": { "type": "string", "enum": ChangeStatus::ALL },
            "danger": { "type": "string", "enum": Danger::ALL },
            "plan_hash": {
                "type": ["string", "null"], "description": "What is reviewed; null where there is no plan",
            },
            "plan_error": {
                "type": ["object", "null"], "description": "Why there is no plan",
                "properties": { "type": { "type": "string" }, "message": { "type": "string" } },
            },
        },
        "required": [
            "change_id", "controller_id", "site_id", "feature", "operation", "status", "danger", "plan_hash",
            "plan_error",
        ],
        "additionalProperties": false,
    })
}

/// The parameters.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WriteSchema<'a> {
    #[serde(rename = "$defs", skip_serializing_if = "Option::is_none")]
    definitions: Option<&'a RawValue>,
    additional_properties: bool,
    properties: WriteProperties<'a>,
    required: [&'static str; 2],
    r#type: &'static str,
}

#[derive(Serialize)]
struct WriteProperties<'a> {
    controller_id: Value,
    notes: Value,
    payload: PayloadSchema<'a>,
    site_ref: Value,
}

#[derive(Serialize)]
#[serde(untagged)]
enum PayloadSchema<'a> {
    Fields(BTreeMap<Cow<'a, str>, &'a RawValue>),
    /// It takes everything, or nothing.
    Plain(&'a Document),
}

/// The payload's schema inside that of the parameters; its definitions move along, so that references find them. What is
/// in them is not looked at.
pub(super) fn write_schema(payload: &Document) -> Document {
    let mut definitions = None;
    let payload = match serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(payload.as_str()) {
        Ok(mut fields) => {
            fields.remove("$schema");
            fields.remove("$id");
            definitions = fields.remove("$defs");
            PayloadSchema::Fields(fields)
        }
        Err(_) => PayloadSchema::Plain(payload),
    };
    let schema = WriteSchema {
        definitions,
        additional_properties: false,
        properties: WriteProperties {
            controller_id: json!({ "type": "string", "format": "uuid" }),
            notes: json!({ "type": "string", "maxLength": NOTES_CHARS_MAX }),
            payload,
            site_ref: json!({ "type": "string", "minLength": 1 }),
        },
        required: ["controller_id", "payload"],
        r#type: "object",
    };
    Document::from(to_raw_value(&schema).expect("a schema is JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(payload: &Value) -> Value {
        write_schema(&Document::from(payload)).value()
    }

    #[test]
    fn definitions_of_the_payload_are_found_from_the_whole() {
        let whole = schema(&json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "x", "type": "object",
            "properties": { "port": { "$ref": "#/$defs/port" } }, "$defs": { "port": { "type": "integer" } },
        }));
        assert_eq!(
            whole["properties"]["payload"],
            json!({ "type": "object", "properties": { "port": { "$ref": "#/$defs/port" } } })
        );
        assert_eq!(whole["$defs"], json!({ "port": { "type": "integer" } }));
        let schema = heddle_marketplace::Schema::compile(&whole).unwrap();
        let given = |port: Value| json!({ "controller_id": "0198f0c0-0000-7000-8000-000000000001", "payload": { "port": port } });
        assert!(schema.validator().is_valid(&given(json!(7))));
        assert!(!schema.validator().is_valid(&given(json!("seven"))));
        assert!(!schema.validator().is_valid(&json!({ "controller_id": given(json!(7))["controller_id"] })));
    }

    #[test]
    fn schema_that_is_no_object_stays() {
        assert_eq!(schema(&json!(true))["properties"]["payload"], json!(true));
        assert!(schema(&json!(false)).get("$defs").is_none());
    }
}
