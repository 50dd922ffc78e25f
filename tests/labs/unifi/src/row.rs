//! Stored objects, and how their fields read: the vendor's types are loose.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// One stored object. Fields whose names begin with `~` belong to the simulator and are never shown.
pub(crate) type Row = Map<String, Value>;

/// A text; empty when there is none.
pub(crate) fn text<'a>(row: &'a Row, name: &str) -> &'a str {
    row.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A boolean, which may be written as text.
pub(crate) fn flag(row: &Row, name: &str) -> bool {
    row.get(name).is_some_and(is_true)
}

/// As [`flag`], true where the field is absent.
pub(crate) fn flag_or_true(row: &Row, name: &str) -> bool {
    row.get(name).is_none_or(is_true)
}

fn is_true(value: &Value) -> bool {
    value.as_bool().unwrap_or_else(|| matches!(value.as_str(), Some("true" | "enabled")))
}

/// A whole number, which may be written as text.
pub(crate) fn number(row: &Row, name: &str) -> Option<i64> {
    let value = row.get(name)?;
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

/// The texts of a list; nothing when there is none.
pub(crate) fn texts<'a>(row: &'a Row, name: &str) -> Vec<&'a str> {
    row.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The objects of a list.
pub(crate) fn objects<'a>(row: &'a Row, name: &str) -> Vec<&'a Row> {
    row.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object).collect()
}

/// The object in a field.
pub(crate) fn object<'a>(row: &'a Row, name: &str) -> Option<&'a Row> {
    row.get(name).and_then(Value::as_object)
}

/// The fields of a JSON object.
///
/// # Panics
/// When it is none: the caller writes it down as one.
pub(crate) fn row(value: Value) -> Row {
    match value {
        Value::Object(row) => row,
        other => panic!("'{other}' is written as an object"),
    }
}

/// The row without the simulator's own fields.
pub(crate) fn shown(row: &Row) -> Row {
    row.iter()
        .filter(|(name, _)| !name.starts_with('~'))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Writes a field.
pub(crate) fn put(row: &mut Row, name: &str, value: impl Into<Value>) {
    row.insert(name.to_owned(), value.into());
}

/// Writes a field where there is none.
pub(crate) fn put_default(row: &mut Row, name: &str, value: Value) {
    row.entry(name.to_owned()).or_insert(value);
}

/// The id of an object in the official interface, which nothing else tells.
pub(crate) fn uuid(kind: &str, id: &str) -> String {
    let hex = hex::encode(Sha256::digest(format!("{kind} {id}")));
    format!("{}-{}-3{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

/// Whether a text has the form of an id of the official interface.
pub(crate) fn is_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

/// Whether a text has the form of an id of the older interfaces.
pub(crate) fn is_object_id(text: &str) -> bool {
    text.len() == 24 && text.chars().all(|c| c.is_ascii_hexdigit())
}

/// A moment in the form of the official interface.
pub(crate) fn moment(unix_ms: u64) -> Value {
    let secs = i64::try_from(unix_ms / 1000).unwrap_or_default();
    let time = chrono::DateTime::from_timestamp(secs, 0).unwrap_or_default();
    json!(time.format("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Whether an object, or anything inside it, is this text.
pub(crate) fn mentions(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => text == wanted,
        Value::Array(values) => values.iter().any(|value| mentions(value, wanted)),
        Value::Object(fields) => fields.values().any(|value| mentions(value, wanted)),
        _ => false,
    }
}
