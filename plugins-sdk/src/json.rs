//! JSON as adapters need it: lookups that do not fail, and a digest that two
//! reads of the same state share.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The text at a JSON pointer, when there is some.
pub fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// The number at a JSON pointer, when it is a whole one and not negative.
pub fn number(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}

/// The elements of the array at a JSON pointer; none when there is no array.
pub fn items<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The same value with the keys of every object sorted.
#[must_use]
pub fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            Value::Object(
                entries
                    .into_iter()
                    .map(|(key, value)| (key.clone(), canonical(value)))
                    .collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        other => other.clone(),
    }
}

/// SHA-256 of the canonical text of a value.
#[must_use]
pub fn digest(value: &Value) -> [u8; 32] {
    Sha256::digest(canonical(value).to_string().as_bytes()).into()
}
