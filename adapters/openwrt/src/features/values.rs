//! Payload values to options and back. UCI takes texts and lists of texts only.

use heddle_sdk::Fault;
use heddle_sdk::FaultExt as _;
use heddle_sdk::fault;
use serde_json::{Value, json};

use super::{Field, Type};
use crate::uci::Entry;

/// An option's new value; `None` removes it.
pub(crate) fn to_entry(field: &Field, value: &Value) -> Result<Option<Entry>, Fault> {
    let bad = |what: &str| {
        fault::invalid(format!("'{}' must be {what}", field.name))
            .with_field(format!("/{}", field.name), format!("must be {what}"))
    };
    let text = |text: &str| if text.is_empty() { None } else { Some(Entry::Text(text.to_owned())) };
    Ok(match (field.takes, value) {
        (_, Value::Null) => None,
        (Type::Flag, Value::Bool(flag)) => Some(Entry::Text(if *flag { "1" } else { "0" }.to_owned())),
        (Type::Flag, _) => return Err(bad("true or false")),
        (Type::Number(least, most), value) => {
            let number =
                value.as_u64().filter(|number| (u64::from(least)..=u64::from(most)).contains(number));
            let number = number.ok_or_else(|| bad(&format!("a whole number from {least} to {most}")))?;
            Some(Entry::Text(number.to_string()))
        }
        (Type::Word(words), Value::String(word)) => {
            if !words.contains(&word.as_str()) {
                return Err(bad(&format!("one of {}", words.join(", "))));
            }
            text(word)
        }
        (Type::List(_), Value::Array(items)) => {
            let items: Option<Vec<String>> = items
                .iter()
                .map(|item| item.as_str().filter(|text| !text.is_empty()).map(str::to_owned))
                .collect();
            let items = items.ok_or_else(|| bad("a list of texts"))?;
            if items.is_empty() { None } else { Some(Entry::List(items)) }
        }
        (Type::List(_), _) => return Err(bad("a list of texts")),
        (Type::Text(_) | Type::Secret, Value::String(value)) => text(value),
        (Type::Text(_) | Type::Word(_) | Type::Secret, _) => return Err(bad("a text")),
    })
}

/// A key value as text.
pub(crate) fn key_text(field: &Field, payload: &Value) -> Result<String, Fault> {
    let found = match payload.get(field.name) {
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    found.ok_or_else(|| {
        fault::invalid(format!("'{}' is missing", field.name))
            .with_field(format!("/{}", field.name), "is required")
    })
}

/// The same option in a new list or text, in the shape that the file has: a
/// value that says the same is not a change.
pub(crate) fn keep_shape(old: Option<&Entry>, new: Entry) -> Entry {
    match old {
        Some(old)
            if old.words() == new.words()
                && matches!(
                    (old, &new),
                    (Entry::Text(_), Entry::List(_)) | (Entry::List(_), Entry::Text(_))
                ) =>
        {
            old.clone()
        }
        Some(old) if is_true(old) == is_true(&new) && is_flag(old) && is_flag(&new) => old.clone(),
        _ => new,
    }
}

fn is_flag(entry: &Entry) -> bool {
    matches!(
        entry.as_text(),
        Some("1" | "0" | "on" | "off" | "true" | "false" | "yes" | "no" | "enabled" | "disabled")
    )
}

fn is_true(entry: &Entry) -> bool {
    matches!(entry.as_text(), Some("1" | "on" | "true" | "yes" | "enabled"))
}

/// The payload value that gives this option; none when the schema cannot say it.
pub(crate) fn to_payload(field: &Field, entry: &Entry) -> Option<Value> {
    match field.takes {
        Type::Flag => is_flag(entry).then(|| json!(is_true(entry))),
        Type::Number(least, most) => {
            let number: u32 = entry.as_text()?.parse().ok()?;
            (least..=most).contains(&number).then(|| json!(number))
        }
        Type::Word(words) => entry.as_text().filter(|text| words.contains(text)).map(|text| json!(text)),
        Type::List(_) => Some(json!(entry.words())),
        Type::Text(_) | Type::Secret => {
            Some(json!(entry.as_text().map_or_else(|| entry.words().join(" "), str::to_owned)))
        }
    }
}
