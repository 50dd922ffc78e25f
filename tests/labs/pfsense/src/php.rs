//! How the vendor's language compares values and reads queries.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

/// The number that a text is, if it is one.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) if !text.is_empty() => text.trim().parse().ok(),
        _ => None,
    }
}

pub(crate) fn is_numeric(value: &Value) -> bool {
    number(value).is_some()
}

fn truth(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty() && text != "0",
        Value::Array(items) => !items.is_empty(),
        Value::Object(items) => !items.is_empty(),
    }
}

/// Equality that converts types. Neither side is null.
pub(crate) fn equals(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Bool(_), _) | (_, Value::Bool(_)) => truth(one) == truth(other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equals(one, other))
        }
        (Value::Object(_) | Value::Array(_), _) | (_, Value::Object(_) | Value::Array(_)) => one == other,
        _ => match (number(one), number(other)) {
            (Some(one), Some(other)) => one.total_cmp(&other) == Ordering::Equal,
            _ => text(one) == text(other),
        },
    }
}

/// A value where a text is expected.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(true) => "1".to_owned(),
        Value::Array(_) | Value::Object(_) => "Array".to_owned(),
        Value::Null | Value::Bool(false) => String::new(),
    }
}

/// Order of two values, with the vendor's names of how to sort.
pub(crate) fn compare(one: &Value, other: &Value, flags: &str) -> Ordering {
    match flags {
        "SORT_NATURAL" => natural(&text(one), &text(other)),
        "SORT_STRING" | "SORT_LOCALE_STRING" | "SORT_FLAG_CASE" => text(one).cmp(&text(other)),
        "SORT_NUMERIC" => number(one).unwrap_or(0.0).total_cmp(&number(other).unwrap_or(0.0)),
        _ => match (number(one), number(other)) {
            (Some(one), Some(other)) => one.total_cmp(&other),
            _ => text(one).cmp(&text(other)),
        },
    }
}

/// Runs of digits compare as numbers.
fn natural(one: &str, other: &str) -> Ordering {
    let pieces = |text: &str| -> Vec<(bool, String)> {
        let mut pieces: Vec<(bool, String)> = Vec::new();
        for c in text.chars() {
            match pieces.last_mut() {
                Some((is_digits, piece)) if *is_digits == c.is_ascii_digit() => piece.push(c),
                _ => pieces.push((c.is_ascii_digit(), c.to_string())),
            }
        }
        pieces
    };
    let (one, other) = (pieces(one), pieces(other));
    for ((one_digits, one), (other_digits, other)) in one.iter().zip(&other) {
        let order = if *one_digits && *other_digits {
            one.parse::<u128>().unwrap_or(0).cmp(&other.parse::<u128>().unwrap_or(0))
        } else {
            one.cmp(other)
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    one.len().cmp(&other.len())
}

/// The pairs of a query, with names in brackets as lists and maps, and values typed by their shape.
pub(crate) fn query(pairs: Vec<(String, String)>) -> Map<String, Value> {
    let mut out = Map::new();
    for (key, value) in pairs {
        let value = typed(&value);
        match key.split_once('[') {
            None => drop(out.insert(key, value)),
            Some((name, rest)) => {
                let inner = rest.trim_end_matches(']').to_owned();
                let slot = out.entry(name.to_owned()).or_insert_with(|| json!([]));
                put(slot, inner, value);
            }
        }
    }
    out
}

fn put(slot: &mut Value, key: String, value: Value) {
    match slot {
        Value::Array(items) if key.is_empty() || key == items.len().to_string() => items.push(value),
        Value::Array(items) if items.is_empty() => *slot = json!({ key: value }),
        Value::Object(items) => drop(items.insert(key, value)),
        _ => {}
    }
}

fn typed(text: &str) -> Value {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text {
        "true" => json!(true),
        "false" => json!(false),
        "null" => Value::Null,
        // A number that does not fit becomes the largest one.
        _ if is_digits => json!(text.parse::<i64>().unwrap_or(i64::MAX)),
        _ if text.contains('.') => text.parse::<f64>().map_or_else(|_| json!(text), |number| json!(number)),
        _ => json!(text),
    }
}

/// Whether a value is one of a list, by equality that converts types.
pub(crate) fn is_in(value: &Value, list: &[Value]) -> bool {
    list.iter().any(|option| match (value.is_null(), option.is_null()) {
        (false, false) => equals(value, option),
        // Null equals what is empty.
        (true, false) => !truth(option) && option != &json!("0"),
        (false, true) => !truth(value) && value != &json!("0"),
        (true, true) => true,
    })
}
