//! The form of single values: type, size, range.

use serde_json::{Value, json};

use crate::facts::{Facts, Field, Kind};
use crate::reply::Refusal;

/// Bytes of a text without a limit of its own.
const LENGTH_MAX: usize = 1024;

/// Whether a value is empty; refuses one where that is not allowed.
pub(crate) fn is_empty(field: &Field, value: &Value) -> Result<bool, Refusal> {
    let is_empty = value == &json!("") || value == &json!([]);
    // A list without a minimum may be empty; its entries may not.
    let allows = field.allow_empty || (field.many && value.is_array() && field.min_items.unwrap_or(0) == 0);
    if field.read_only || !is_empty || allows {
        return Ok(is_empty || field.read_only);
    }
    Err(Refusal::invalid("FIELD_EMPTY_NOT_ALLOWED", &format!("Field `{}` cannot be empty.", field.name)))
}

pub(crate) fn is_type(field: &Field, value: &Value) -> Result<(), Refusal> {
    if field.read_only || value.is_null() && field.allow_null {
        return Ok(());
    }
    let (is_right, name) = match field.kind {
        Kind::Boolean => (value.is_boolean(), "boolean"),
        Kind::Integer | Kind::UnixTime => (value.is_i64() || value.is_u64(), "integer"),
        Kind::Number => (value.is_f64(), "double"),
        Kind::Object => (value.is_object() || value.is_array(), "array"),
        _ => (value.is_string(), "string"),
    };
    if is_right {
        return Ok(());
    }
    Err(Refusal::invalid("FIELD_INVALID_TYPE", &format!("Field `{}` must be of type `{name}`", field.name)))
}

pub(crate) fn has_size(field: &Field, text: &str) -> Result<(), Refusal> {
    let is_limited = !matches!(field.kind, Kind::Base64 | Kind::Port | Kind::Datetime);
    let max = field.max_length.unwrap_or(LENGTH_MAX);
    if is_limited && field.refers.is_none() && max > 0 && text.len() > max {
        let text = format!("Field `{}` cannot exceed {max} characters.", field.name);
        return Err(Refusal::invalid("LENGTH_VALIDATOR_MAXIMUM_CONSTRAINT", &text));
    }
    if field.min_length.is_some_and(|min| text.len() < min) {
        let text = format!("Field `{}` is too short.", field.name);
        return Err(Refusal::invalid("LENGTH_VALIDATOR_MINIMUM_CONSTRAINT", &text));
    }
    Ok(())
}

pub(crate) fn is_in_range(field: &Field, value: &Value) -> Result<(), Refusal> {
    let Some(number) = value.as_f64() else { return Ok(()) };
    if number < field.min.unwrap_or(0.0) {
        let text = format!("Field `{}` is below its minimum.", field.name);
        return Err(Refusal::invalid("NUMERIC_RANGE_VALIDATOR_MINIMUM_CONSTRAINT", &text));
    }
    if field.max.is_some_and(|max| number > max) {
        let text = format!("Field `{}` is above its maximum.", field.name);
        return Err(Refusal::invalid("NUMERIC_RANGE_VALIDATOR_MAXIMUM_CONSTRAINT", &text));
    }
    Ok(())
}

pub(crate) fn has_length(field: &Field, length: usize) -> Result<(), Refusal> {
    let child = field.nested.as_deref().and_then(|name| Facts::get().model(name));
    let min = field.min_items.unwrap_or_else(|| child.map_or(0, |child| child.min));
    let min = if field.allow_empty { 0 } else { min };
    if length < min {
        let text = format!("Field `{}` must have at least {min} entries.", field.name);
        return Err(Refusal::invalid("LENGTH_VALIDATOR_MINIMUM_CONSTRAINT", &text));
    }
    if field.max_items.is_some_and(|max| length > max) {
        let text = format!("Field `{}` has too many entries.", field.name);
        return Err(Refusal::invalid("LENGTH_VALIDATOR_MAXIMUM_CONSTRAINT", &text));
    }
    Ok(())
}
