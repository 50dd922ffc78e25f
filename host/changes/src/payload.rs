//! Takes the secrets out of a payload before any other code sees it.

use heddle_core::file::FILE_REFERENCE;
use heddle_core::redact::REFERENCE;
use heddle_core::secret::Secret;
use heddle_kernel::http::error::Error;
use heddle_runtime::{SecretBook, reference};
use serde_json::Value;

/// Replaces each secret of the payload by its reference and returns the secrets.
///
/// A secret field is one that the schema marks `writeOnly`, or that has a name under which the adapter's devices store
/// secrets. What a client sent has passed [`refuse_references`].
pub(super) fn take_secrets(
    schema: &Value,
    names: &[String],
    payload: &mut Value,
    key: &[u8; 32],
) -> SecretBook {
    let mut book = SecretBook::default();
    take(schema, payload, key, &mut book);
    take_named(names, payload, key, &mut book);
    book
}

fn take(schema: &Value, value: &mut Value, key: &[u8; 32], book: &mut SecretBook) {
    if schema.get("writeOnly").and_then(Value::as_bool).unwrap_or(false) {
        hide(value, key, book);
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let Some(schema) = schema.get("properties").and_then(|p| p.get(name)) {
                    take(schema, field, key, book);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| take(schema, item, key, book));
            }
        }
        _ => {}
    }
}

/// Takes fields with secret names, whatever the schema says of them.
fn take_named(names: &[String], value: &mut Value, key: &[u8; 32], book: &mut SecretBook) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if names.iter().any(|secret| secret.eq_ignore_ascii_case(name)) {
                    hide(field, key, book);
                } else {
                    take_named(names, field, key, book);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| take_named(names, item, key, book)),
        _ => {}
    }
}

fn hide(value: &mut Value, key: &[u8; 32], book: &mut SecretBook) {
    match value {
        Value::String(text) if !text.is_empty() && !text.starts_with(REFERENCE) => {
            let name = reference(key, text);
            book.entries.insert(name.clone(), Secret::new(std::mem::replace(text, name)));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, key, book)),
        Value::Object(fields) => fields.values_mut().for_each(|field| hide(field, key, book)),
        _ => {}
    }
}

/// Refuses what a client sends with a reference of the host's own in it, anywhere: it could name a secret, or a file, that
/// the client does not know.
pub(super) fn refuse_references(value: &Value, field: &str) -> Result<(), Error> {
    let is_reference =
        |text: &str| [REFERENCE, "{{host.", FILE_REFERENCE].iter().any(|mark| text.contains(mark));
    match value {
        Value::String(text) if is_reference(text) => Err(Error::field(
            field,
            "holds a reference that only the service may write; send the value itself, or the id of the file",
        )),
        Value::Array(items) => items.iter().try_for_each(|item| refuse_references(item, field)),
        Value::Object(fields) => {
            fields.iter().try_for_each(|(name, value)| refuse_references(value, &format!("{field}.{name}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "name": { "type": "string" },
                "psk": { "type": "string", "writeOnly": true },
                "peers": { "type": "array", "items": { "properties": { "key": { "writeOnly": true } } } },
            },
            "required": ["name"],
        })
    }

    #[test]
    fn secrets_leave_the_payload_by_their_names_too() {
        let mut payload = json!({"name": "x", "deep": [{"Key": "k1", "psk": ["k2"]}]});
        let names = ["key".to_owned(), "psk".to_owned()];
        let book = take_secrets(&json!({}), &names, &mut payload, &[7; 32]);
        assert_eq!(book.entries.len(), 2);
        let text = payload.to_string();
        assert!(!text.contains("k1") && !text.contains("k2"), "{text}");
    }

    #[test]
    fn each_misfit_names_its_field() {
        let schema = heddle_marketplace::Schema::parse(&schema()).unwrap();
        let Err(Error::Validation(details)) =
            heddle_inventory::adapters::validate(&schema, &json!({"nam": 1, "psk": 2}), "payload")
        else {
            panic!("is refused")
        };
        let text = format!("{details:?}");
        for word in ["nam", "payload.psk", "name"] {
            assert!(text.contains(word), "{text} names {word}");
        }
    }

    #[test]
    fn secrets_leave_the_payload_wherever_the_schema_marks_them() {
        let mut payload = json!({"name": "x", "psk": "hunter22", "peers": [{"key": "k1"}, {"key": "k2"}]});
        let book = take_secrets(&schema(), &[], &mut payload, &[7; 32]);
        let text = payload.to_string();
        assert!(!text.contains("hunter22") && !text.contains("k1") && !text.contains("k2"));
        let mut values: Vec<&str> = book.entries.values().map(Secret::expose).collect();
        values.sort_unstable();
        assert_eq!(values, ["hunter22", "k1", "k2"]);
    }

    #[test]
    fn a_client_cannot_send_a_reference() {
        for reference in [REFERENCE, FILE_REFERENCE, "{{host."] {
            let payload = json!({ "deep": [{ "name": format!("{reference}00") }] });
            assert!(refuse_references(&payload, "payload").is_err(), "{reference}");
        }
    }
}
