//! Payload values to options and back. UCI takes texts and lists of texts only.

use heddle_sdk::Fault;
use heddle_sdk::FaultExt as _;
use heddle_sdk::fault;
use serde_json::{Value, json};

use super::check::Check;
use super::{Field, Type};
use crate::uci::Entry;

fn bad(pointer: &str, name: &str, value: &Value, wanted: &str) -> Fault {
    let given: String = match value {
        Value::String(text) => text.chars().take(80).collect(),
        other => other.to_string().chars().take(80).collect(),
    };
    fault::invalid(format!("'{name}' is '{given}' and must be {wanted}"))
        .with_field(pointer, format!("'{given}' is not {wanted}"))
}

/// An option's new value; `None` removes it. What says the same as `old` is `old`, whatever it is.
pub(crate) fn to_entry(field: &Field, value: &Value, old: Option<&Entry>) -> Result<Option<Entry>, Fault> {
    let pointer = format!("/{}", field.name);
    if let Some(old) = old.filter(|old| to_payload(field, old).as_ref() == Some(value)) {
        return Ok(Some(old.clone()));
    }
    let text = |text: &str| if text.is_empty() { None } else { Some(Entry::Text(text.to_owned())) };
    let new = match (field.takes, value) {
        (_, Value::Null) => None,
        (Type::Flag, Value::Bool(flag)) => Some(Entry::Text(if *flag { "1" } else { "0" }.to_owned())),
        (Type::Flag, _) => return Err(bad(&pointer, field.name, value, "true or false")),
        (Type::Number(least, most), value) => {
            let number =
                value.as_u64().filter(|number| (u64::from(least)..=u64::from(most)).contains(number));
            let number = number.ok_or_else(|| {
                bad(&pointer, field.name, value, &format!("a whole number from {least} to {most}"))
            })?;
            Some(Entry::Text(number.to_string()))
        }
        (Type::Word(words), Value::String(word)) => {
            if !words.contains(&word.as_str()) {
                return Err(bad(&pointer, field.name, value, &format!("one of {}", words.join(", "))));
            }
            text(word)
        }
        (Type::List(check), Value::Array(items)) => list(field, check, items)?,
        (Type::List(_), _) => return Err(bad(&pointer, field.name, value, "a list of texts")),
        (Type::Text(check), Value::String(given)) => {
            if !given.is_empty() && !check.accepts(given) {
                return Err(bad(&pointer, field.name, value, check.wanted()));
            }
            text(given)
        }
        (Type::Secret, Value::String(value)) => text(value),
        (Type::Text(_) | Type::Word(_) | Type::Secret, _) => {
            return Err(bad(&pointer, field.name, value, "a text"));
        }
    };
    Ok(new.map(|new| in_shape_of(field, old, new)))
}

fn list(field: &Field, check: Check, items: &[Value]) -> Result<Option<Entry>, Fault> {
    let mut texts = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let pointer = format!("/{}/{index}", field.name);
        let text = item.as_str().filter(|text| check.accepts(text));
        texts.push(text.ok_or_else(|| bad(&pointer, field.name, item, check.wanted()))?.to_owned());
    }
    Ok(if texts.is_empty() { None } else { Some(Entry::List(texts)) })
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

/// Refuses a key value that a new section cannot have.
pub(crate) fn check_key(field: &Field, text: &str) -> Result<(), Fault> {
    let wanted = match field.takes {
        Type::Text(check) | Type::List(check) if !check.accepts(text) => check.wanted().to_owned(),
        Type::Number(least, most)
            if !text.parse().is_ok_and(|number: u32| (least..=most).contains(&number)) =>
        {
            format!("a whole number from {least} to {most}")
        }
        _ => return Ok(()),
    };
    Err(bad(&format!("/{}", field.name), field.name, &json!(text), &wanted))
}

/// The new value in the shape that the option has in the file: what says the same is not a change, an option does
/// not become a list of one, and a list does not become an option.
fn in_shape_of(field: &Field, old: Option<&Entry>, new: Entry) -> Entry {
    let Some(old) = old else { return new };
    let folds_case = matches!(field.takes, Type::Word(_) | Type::List(Check::Mac) | Type::Text(Check::Mac));
    let (before, after) = (old.words(), new.words());
    let is_same = before.len() == after.len()
        && before
            .iter()
            .zip(&after)
            .all(|(a, b)| if folds_case { a.eq_ignore_ascii_case(b) } else { a == b });
    if is_same || (is_flag(old) && is_flag(&new) && is_true(old) == is_true(&new)) {
        return old.clone();
    }
    match (old, &new) {
        (Entry::Text(_), Entry::List(items)) if items.len() == 1 => Entry::Text(items[0].clone()),
        (Entry::Text(_), Entry::List(items))
            if before.len() > 1 && items.iter().all(|item| !item.contains(' ')) =>
        {
            Entry::Text(items.join(" "))
        }
        (Entry::List(_), Entry::Text(_))
            if matches!(field.takes, Type::Text(Check::Ports | Check::Weekdays)) =>
        {
            Entry::List(after.iter().map(|word| (*word).to_owned()).collect())
        }
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
        Type::Word(words) => {
            let text = entry.as_text()?;
            words.iter().find(|word| word.eq_ignore_ascii_case(text)).map(|word| json!(word))
        }
        Type::List(check) => {
            let words = entry.words();
            (words.len() <= 128 && words.iter().all(|word| check.accepts(word))).then(|| json!(words))
        }
        Type::Text(check) => {
            let text = entry.as_text().map_or_else(|| entry.words().join(" "), str::to_owned);
            check.accepts(&text).then(|| json!(text))
        }
        Type::Secret => entry.as_text().map(|text| json!(text)),
    }
}
