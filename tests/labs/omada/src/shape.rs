//! Values and the vendor's shapes: what a read shows of a stored object, what a document holds before it was
//! ever
//! written, and whether a body is one that the vendor accepts.

use serde_json::{Map, Value, json};

use crate::facts::{Field, Kind};

/// The stored value as a route shows it: only the fields that the route is described to answer.
///
/// A field that was never set is left out, except booleans, which answer false. Where the description is
/// cut, fields
/// that it lacks are shown as well.
pub(crate) fn project(value: &Value, field: &Field, is_cut: bool) -> Value {
    match (value, field.inside()) {
        (Value::Array(rows), _) if field.is_array => {
            let one = Field { is_array: false, ..field.clone() };
            Value::Array(rows.iter().map(|row| project(row, &one, is_cut)).collect())
        }
        (Value::Object(object), Some(inside)) if !inside.is_empty() => {
            let mut shown = if is_cut { object.clone() } else { Map::new() };
            for (name, field) in inside {
                match object.get(name) {
                    Some(value) => _ = shown.insert(name.clone(), project(value, field, is_cut)),
                    None if field.kind == Kind::Boolean && !field.is_array => {
                        _ = shown.insert(name.clone(), Value::Bool(false));
                    }
                    None => {}
                }
            }
            Value::Object(shown)
        }
        _ => value.clone(),
    }
}

/// Returns a document of this shape before its first write: every field, with the first value that is allowed.
pub(crate) fn blank(field: &Field) -> Value {
    if field.is_array {
        return json!([]);
    }
    match field.kind {
        Kind::Text => json!(field.values.first().map_or("", String::as_str)),
        Kind::Integer | Kind::Number => match (field.values.first(), field.low) {
            (Some(value), _) => value.parse::<i64>().map_or(Value::Null, |value| json!(value)),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "limits of the vendor are small whole numbers"
            )]
            (None, Some(low)) => json!(low as i64),
            (None, None) => json!(0),
        },
        Kind::Boolean => json!(false),
        Kind::Object | Kind::Any => json!({}),
        Kind::Shape(_) => {
            let inside = field.inside().unwrap_or_default();
            Value::Object(inside.iter().map(|(name, field)| (name.clone(), blank(field))).collect())
        }
    }
}

/// Lays a written object over a blank one, so that fields that were not written keep their blank value.
pub(crate) fn lay_over(under: &mut Value, over: &Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (name, value) in over {
                match under.get_mut(name) {
                    Some(old) => lay_over(old, value),
                    None => _ = under.insert(name.clone(), value.clone()),
                }
            }
        }
        (under, over) => *under = over.clone(),
    }
}

/// The first field that the vendor would refuse, by its dotted name.
pub(crate) fn refused(value: &Value, field: &Field, name: &str) -> Option<String> {
    if field.is_array {
        let one = Field { is_array: false, ..field.clone() };
        let Value::Array(rows) = value else { return Some(name.to_owned()) };
        return rows.iter().find_map(|row| refused(row, &one, name));
    }
    match field.inside() {
        None => (!fits(value, field)).then(|| name.to_owned()),
        Some(inside) => {
            let Value::Object(object) = value else { return Some(name.to_owned()) };
            inside.iter().find_map(|(child, field)| {
                let path = if name.is_empty() { child.clone() } else { format!("{name}.{child}") };
                match object.get(child) {
                    None | Some(Value::Null) => field.is_required.then_some(path),
                    Some(value) => refused(value, field, &path),
                }
            })
        }
    }
}

/// Whether one plain value has the type and keeps the limits.
pub(crate) fn fits(value: &Value, field: &Field) -> bool {
    let within = |number: f64| {
        field.low.is_none_or(|low| number >= low) && field.high.is_none_or(|high| number <= high)
    };
    let listed = |text: &str| field.values.is_empty() || field.values.iter().any(|value| value == text);
    match (field.kind, value) {
        (Kind::Text, Value::String(text)) => {
            #[expect(
                clippy::cast_precision_loss,
                reason = "a length in a request is far below the limit of f64"
            )]
            let length = text.chars().count() as f64;
            // An empty optional text stands for "not set".
            (within(length) || (text.is_empty() && !field.is_required)) && (listed(text) || text.is_empty())
        }
        (Kind::Integer, Value::Number(number)) => {
            (number.is_i64() || number.is_u64())
                && within(number.as_f64().unwrap_or_default())
                && listed(&number.to_string())
        }
        (Kind::Number, Value::Number(number)) => within(number.as_f64().unwrap_or_default()),
        (Kind::Boolean, Value::Bool(_)) | (Kind::Object | Kind::Shape(_), Value::Object(_)) => true,
        (Kind::Any, _) => true,
        // The descriptions call several maps and lists just "object".
        (Kind::Object, Value::Array(_)) => true,
        _ => false,
    }
}

/// The same check for a query parameter, which is always text.
pub(crate) fn query_fits(text: &str, field: &Field) -> bool {
    let one = Field { is_array: false, ..field.clone() };
    let value = match field.kind {
        Kind::Integer | Kind::Number => serde_json::from_str(text).unwrap_or(Value::Null),
        Kind::Boolean => json!(text == "true" || text == "false"),
        _ => json!(text),
    };
    fits(&value, &one)
}
