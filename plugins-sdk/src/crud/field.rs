//! Values in their two forms: as payloads have them, and as the vendor does.
//!
//! In a payload an absent value is `null`; the vendor has an empty text for it. Choices have no order, so those of a
//! list are sorted.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::binding::{Field, FieldType, KindBinding};

/// The fields of an object by the payload's names, in the payload's form. A field that the device does not know is
/// absent; one without a value is `null`.
pub type Content = BTreeMap<String, Value>;

/// What stands at a dotted place of an object, or in a flat row under the whole name.
pub(crate) fn at<'v>(object: &'v Value, place: &str) -> Option<&'v Value> {
    object.get(place).or_else(|| place.split('.').try_fold(object, |value, part| value.get(part)))
}

/// Puts a value at a dotted place.
pub(crate) fn put(object: &mut Map<String, Value>, place: &str, value: Value) {
    match place.split_once('.') {
        None => drop(object.insert(place.to_owned(), value)),
        Some((first, rest)) => {
            let inner = object.entry(first).or_insert_with(|| json!({}));
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

/// A text as the vendor has it, whatever JSON type stands there.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Bool(is_on) => if *is_on { "1" } else { "0" }.to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

fn is_selected(choice: &Value) -> bool {
    match choice.get("selected") {
        Some(Value::Bool(is_on)) => *is_on,
        Some(other) => plain(other) == "1",
        None => false,
    }
}

/// The values that an answer selects, as texts.
fn selected(field: &Field, value: &Value) -> Vec<String> {
    match value {
        Value::Object(choices) => {
            let chosen = choices.iter().filter(|(key, choice)| !key.is_empty() && is_selected(choice));
            chosen.map(|(key, _)| key.clone()).collect()
        }
        Value::Array(values) => values.iter().map(plain).filter(|text| !text.is_empty()).collect(),
        other => parts(field, &plain(other)),
    }
}

fn parts(field: &Field, text: &str) -> Vec<String> {
    text.split(field.separator.as_str())
        .map(|part| part.trim().to_owned())
        .filter(|part| !part.is_empty())
        .collect()
}

/// The payload's form of a value that the device answered.
pub fn decode(field: &Field, value: &Value) -> Value {
    if field.kind == FieldType::Json {
        return value.clone();
    }
    if field.kind == FieldType::List {
        return normal(field, &json!(selected(field, value)));
    }
    let text = match value {
        Value::Object(_) | Value::Array(_) => selected(field, value).into_iter().next().unwrap_or_default(),
        other => plain(other),
    };
    if text.is_empty() {
        return Value::Null;
    }
    match field.kind {
        FieldType::Flag => json!(text == "1"),
        FieldType::Number => text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number)),
        FieldType::Text | FieldType::Secret | FieldType::List | FieldType::Json => json!(text),
    }
}

/// The one form that equal values of a payload share.
pub fn normal(field: &Field, value: &Value) -> Value {
    match value {
        Value::String(text) if text.is_empty() && field.kind != FieldType::Json => Value::Null,
        Value::Array(items) if field.kind == FieldType::List => {
            let mut texts: Vec<String> = items.iter().map(plain).collect();
            if field.choice {
                texts.sort();
                texts.dedup();
            }
            if texts.is_empty() { Value::Null } else { json!(texts) }
        }
        other => other.clone(),
    }
}

/// The vendor's form of a value of a payload.
pub fn encode(field: &Field, value: &Value) -> Value {
    match value {
        other if field.kind == FieldType::Json => other.clone(),
        Value::Array(items) => {
            json!(items.iter().map(plain).collect::<Vec<_>>().join(&field.separator))
        }
        Value::String(text) => json!(text),
        other => json!(plain(other)),
    }
}

/// Whether two values mean the same to the vendor.
pub(crate) fn equal(field: &Field, one: &Value, other: &Value) -> bool {
    if field.fold {
        let folded = |value: &Value| value.to_string().to_lowercase();
        return folded(one) == folded(other);
    }
    one == other
}

/// The fields of an object that the device answered.
pub(crate) fn content(binding: &KindBinding, object: &Value) -> Content {
    let fields = binding.fields.iter().filter(|(_, field)| !field.unread);
    fields
        .filter_map(|(name, field)| Some((name.clone(), decode(field, at(object, binding.place(name))?))))
        .collect()
}

/// What a field can be chosen from, by id, with the label of each; none where the device does not tell.
pub(crate) fn choices(binding: &KindBinding, name: &str, object: &Value) -> Option<Vec<(String, String)>> {
    let Value::Object(choices) = at(object, binding.place(name))? else { return None };
    let named = choices.iter().filter(|(key, _)| !key.is_empty());
    Some(
        named
            .map(|(key, choice)| (key.clone(), choice.get("value").map(plain).unwrap_or_default()))
            .collect(),
    )
}

/// A content as a JSON object.
pub(crate) fn to_json(content: &Content) -> Value {
    Value::Object(content.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
}
