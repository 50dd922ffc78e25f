//! Values in their two forms: as payloads have them, and as the vendor does.
//!
//! In a payload an absent value is `null`; the vendor has an empty text for it. Choices have no order, so those of a
//! list are sorted.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::binding::{Field, FieldType, KindBinding};
use super::properties;
use super::units;

/// The fields of an object by the payload's names, in the payload's form. A field that the device does not know is
/// absent; one without a value is `null`.
pub type Content = BTreeMap<String, Value>;

/// What stands at a dotted place of an object, or in a flat row under the whole name.
pub(crate) fn at<'v>(object: &'v Value, place: &str) -> Option<&'v Value> {
    if place.is_empty() {
        return Some(object);
    }
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

/// What stands in a payload for a negation.
const NOT: &str = "not";

/// The value that a negation of a payload is about.
fn negated<'v>(field: &Field, value: &'v Value) -> Option<&'v Value> {
    value.as_object().filter(|_| field.negated)?.get(NOT)
}

/// The payload's form of a value that the device answered.
pub fn decode(field: &Field, value: &Value) -> Value {
    let rest = value.as_str().filter(|_| field.negated).and_then(|text| text.trim().strip_prefix('!'));
    match rest {
        Some(rest) => json!({ NOT: decoded(field, &json!(rest)) }),
        None => decoded(field, value),
    }
}

fn decoded(field: &Field, value: &Value) -> Value {
    if field.kind == FieldType::Json {
        return value.clone();
    }
    if let (FieldType::Properties, Value::Object(parts)) = (field.kind, value) {
        return properties::of_object(parts);
    }
    if field.kind == FieldType::List {
        return normal(field, &json!(selected(field, value)));
    }
    let text = match value {
        Value::Object(_) | Value::Array(_) => selected(field, value).into_iter().next().unwrap_or_default(),
        other => plain(other),
    };
    if field.kind == FieldType::Mark {
        return json!(!value.is_null() && !units::is_no(&text));
    }
    if text.is_empty() {
        return Value::Null;
    }
    match field.kind {
        FieldType::Properties => properties::parse(field, &text),
        kind => single(kind, &text),
    }
}

/// One value that is no list.
fn single(kind: FieldType, text: &str) -> Value {
    match kind {
        FieldType::Flag => json!(text == "1"),
        FieldType::Bool => units::truth(text).map_or_else(|| json!(text), |is_on| json!(is_on)),
        FieldType::Number => text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number)),
        FieldType::Size => units::size(text).map_or_else(|| json!(text), |number| json!(number)),
        FieldType::Duration => units::seconds(text).map_or_else(|| json!(text), units::number),
        _ => json!(text),
    }
}

/// The one form that equal values of a payload share.
pub fn normal(field: &Field, value: &Value) -> Value {
    if let Some(value) = negated(field, value) {
        return json!({ NOT: normal(field, value) });
    }
    match value {
        // What people write with a unit means the same.
        Value::String(text)
            if matches!(field.kind, FieldType::Size | FieldType::Duration) && !text.is_empty() =>
        {
            single(field.kind, text.trim())
        }
        Value::Null if field.kind == FieldType::Mark => json!(false),
        Value::Array(items) if field.kind == FieldType::List && field.items != FieldType::Text => {
            let items: Vec<Value> = items.iter().map(|item| single(field.items, &plain(item))).collect();
            if items.is_empty() { Value::Null } else { Value::Array(items) }
        }
        Value::String(text) if text.is_empty() && field.kind != FieldType::Json => Value::Null,
        Value::Array(items) if field.kind == FieldType::List => {
            let mut texts: Vec<String> = items.iter().map(plain).collect();
            if field.choice && !field.ordered {
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
    if let Some(value) = negated(field, value) {
        return json!(format!("!{}", plain(&encode(field, value))));
    }
    match value {
        Value::Bool(_) if field.kind == FieldType::Mark => json!(""),
        Value::Bool(_) | Value::Number(_) if field.kind != FieldType::Json => {
            json!(units::written(field.kind, value))
        }
        other if field.kind == FieldType::Json && field.merge => without_nulls(other),
        other if matches!(field.kind, FieldType::Json | FieldType::File) => other.clone(),
        Value::Object(parts) if field.kind == FieldType::Properties => json!(properties::print(field, parts)),
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().map(|item| units::written(field.items, item)).collect();
            json!(texts.join(&field.separator))
        }
        Value::String(text) => json!(text),
        other => json!(plain(other)),
    }
}

/// Whether a value is none to the vendor, and cannot be written as one.
pub(crate) fn is_none(field: &Field, value: &Value) -> bool {
    value.is_null() || (field.kind == FieldType::Mark && value == &json!(false))
}

/// The names of an object that were taken away, left out.
fn without_nulls(value: &Value) -> Value {
    let Value::Object(fields) = value else { return value.clone() };
    let known = fields.iter().filter(|(_, field)| !field.is_null());
    Value::Object(known.map(|(name, field)| (name.clone(), without_nulls(field))).collect())
}

/// Whether a value that was found is to the vendor the one that is wanted. What is absent is the default.
pub(crate) fn equal(field: &Field, wanted: &Value, found: &Value) -> bool {
    let or_default = |value| match (&field.default, value) {
        (Some(default), &Value::Null) => default,
        (_, value) => value,
    };
    let (wanted, found) = (or_default(wanted), or_default(found));
    if field.fold {
        let folded = |value: &Value| value.to_string().to_lowercase();
        return folded(wanted) == folded(found);
    }
    if field.merge { holds(found, wanted) } else { wanted == found }
}

/// Whether a value has everything of another; names that only it has do not count.
fn holds(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| holds(found.get(name).unwrap_or(&Value::Null), wanted))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found.iter().zip(wanted).all(|(found, wanted)| holds(found, wanted))
        }
        _ => found == wanted,
    }
}

/// A known value with that of a payload laid over it: objects name by name, anything else as a whole. A name that is taken
/// away stays as `null`, so that a comparison looks for it.
pub(crate) fn merged(known: Option<&Value>, asked: &Value) -> Value {
    let (Some(Value::Object(known)), Value::Object(asked)) = (known, asked) else { return asked.clone() };
    let mut out = known.clone();
    for (name, value) in asked {
        out.insert(name.clone(), merged(known.get(name), value));
    }
    Value::Object(out)
}

/// A value with `null` for every name that only another one has.
pub(crate) fn completed(value: &Value, other: &Value) -> Value {
    let (Value::Object(known), Value::Object(other)) = (value, other) else { return value.clone() };
    let mut out = known.clone();
    for (name, other) in other {
        out.insert(name.clone(), known.get(name).map_or(Value::Null, |value| completed(value, other)));
    }
    Value::Object(out)
}

/// The fields of an object that the device answered.
pub(crate) fn content(binding: &KindBinding, object: &Value) -> Content {
    let fields = binding.fields.iter().filter(|(_, field)| !field.unread);
    let value = |name: &String, field: &Field| match at(object, binding.place(name)) {
        Some(value) => Some(decode(field, value)),
        None => binding.sparse.then_some(Value::Null),
    };
    let or_default = |field: &Field, value: Value| match (&value, &field.default) {
        (Value::Null, Some(default)) => default.clone(),
        _ => value,
    };
    fields.filter_map(|(name, field)| Some((name.clone(), or_default(field, value(name, field)?)))).collect()
}

/// Fields of the natural key and of the path, from the row of a list. Some vendors leave them out where an object is read
/// by itself.
pub(crate) fn key_content(binding: &KindBinding, row: &Value) -> Content {
    let is_known = |name: &String| {
        binding.key.contains(name) || binding.params.values().any(|place| place == binding.place(name))
    };
    let known = binding.fields.iter().filter(|(name, field)| is_known(name) && !field.unread);
    known
        .filter_map(|(name, field)| Some((name.clone(), decode(field, at(row, binding.place(name))?))))
        .collect()
}

/// Adds what is known of the natural key where the object itself does not say it.
pub(crate) fn with_key(mut content: Content, key: &Content) -> Content {
    for (name, value) in key {
        let own = content.entry(name.clone()).or_insert(Value::Null);
        if own.is_null() {
            own.clone_from(value);
        }
    }
    content
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

/// What stands for a secret in values that the host hands out.
const REFERENCE: &str = "hdl-secret:";

/// A value as people may see it: wherever a secret stands in it, only that there is one.
pub(crate) fn shown(field: Option<&Field>, value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        _ if field.is_some_and(|field| field.kind == FieldType::Secret) => json!("(secret)"),
        Value::String(text) if text.contains(REFERENCE) => json!("(secret)"),
        Value::Array(items) => items.iter().map(|item| shown(None, item)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| (name.clone(), shown(None, field))).collect()
        }
        other => other.clone(),
    }
}
