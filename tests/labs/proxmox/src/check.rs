//! Verifies parameters against the schema, with the vendor's texts.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use jsonschema::Validator;
use serde_json::{Number, Value, json};

use crate::answer::{Failure, Object, Outcome};
use crate::facts::{Field, Kind, Route};
use crate::{formats, property};

/// The parameters of a route, each of its type. All faults are reported at once, by parameter.
pub(crate) fn check(route: &Route, given: Object) -> Outcome<Object> {
    let (mut typed, mut errors) = (Object::new(), Vec::new());
    for field in route.fields().filter(|field| field.is_required() && !given.contains_key(&field.name)) {
        errors.push((field.name.clone(), "property is missing and it is not optional".to_owned()));
    }
    for (name, value) in &given {
        let Some(field) = route.field(name) else {
            let text =
                "property is not defined in schema and the schema does not allow additional properties";
            errors.push((name.clone(), text.to_owned()));
            continue;
        };
        match convert(field, value) {
            Ok(value) => {
                typed.insert(name.clone(), value);
            }
            Err(text) => errors.push((name.clone(), text)),
        }
        if let Some(required) = field.requires.as_ref().filter(|required| !given.contains_key(*required)) {
            errors.push((required.clone(), format!("missing property - '{name}' requires this property")));
        }
    }
    if errors.is_empty() { Ok(typed) } else { Err(Failure::parameters(errors)) }
}

fn convert(field: &Field, value: &Value) -> Result<Value, String> {
    if field.kind == Kind::Array {
        let items = match value {
            Value::Array(items) => items.clone(),
            one => vec![one.clone()],
        };
        return Ok(Value::Array(items));
    }
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Bool(flag) => u8::from(*flag).to_string(),
        Value::Number(number) => number.to_string(),
        Value::Null => String::new(),
        _ => return Err("value is not a scalar".to_owned()),
    };
    let value = scalar(field, &text)?;
    if !field.parts.is_empty() {
        property::check(&field.parts, &text)?;
    }
    if let Some(format) = &field.format {
        formats::check(format, &text).map_err(|error| format!("invalid format - {error}\n"))?;
    }
    Ok(value)
}

/// One value of a scalar type, within its limits.
pub(crate) fn scalar(field: &Field, text: &str) -> Result<Value, String> {
    let value = match field.kind {
        Kind::Integer => match text.parse::<i64>() {
            Ok(number) => Value::from(number),
            Err(_) => return Err(format!("type check ('integer') failed - got '{text}'")),
        },
        // A number without a fraction is written without one.
        Kind::Number if text.parse::<i64>().is_ok() => {
            text.parse::<i64>().map(Value::from).unwrap_or_default()
        }
        Kind::Number => match text.parse::<f64>().ok().and_then(Number::from_f64) {
            Some(number) => Value::Number(number),
            None => return Err(format!("type check ('number') failed - got '{text}'")),
        },
        Kind::Boolean => match text {
            "1" | "on" | "yes" | "true" => Value::from(1),
            "0" | "off" | "no" | "false" => Value::from(0),
            _ => return Err(format!("type check ('boolean') failed - got '{text}'")),
        },
        _ => Value::from(text),
    };
    limits(field, text, &value)?;
    Ok(value)
}

fn limits(field: &Field, text: &str, value: &Value) -> Result<(), String> {
    let number = value.as_f64();
    if let (Some(number), Some(minimum)) = (number, field.minimum)
        && number < minimum
    {
        return Err(format!("value must have a minimum value of {minimum}"));
    }
    if let (Some(number), Some(maximum)) = (number, field.maximum)
        && number > maximum
    {
        return Err(format!("value must have a maximum value of {maximum}"));
    }
    if !field.words.is_empty() && !field.words.iter().any(|word| word == text) {
        return Err(format!(
            "value '{text}' does not have a value in the enumeration '{}'",
            field.words.join(", ")
        ));
    }
    let length = text.chars().count();
    if let Some(minimum) = field.length_min.filter(|minimum| length < *minimum) {
        return Err(format!("value must be at least {minimum} characters long"));
    }
    if let Some(maximum) = field.length_max.filter(|maximum| length > *maximum) {
        return Err(format!("value may only be {maximum} characters long"));
    }
    if field.pattern.as_ref().is_some_and(|pattern| !matches(pattern, text)) {
        return Err("value does not match the regex pattern".to_owned());
    }
    Ok(())
}

/// Whether all of `text` matches. A pattern that the engine cannot read accepts everything.
fn matches(pattern: &str, text: &str) -> bool {
    static COMPILED: LazyLock<Mutex<HashMap<String, Option<Arc<Validator>>>>> = LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let validator = compiled.entry(pattern.to_owned()).or_insert_with(|| {
        let schema = json!({ "pattern": format!("^(?:{pattern})$") });
        jsonschema::validator_for(&schema).ok().map(Arc::new)
    });
    validator.as_ref().is_none_or(|validator| validator.is_valid(&Value::from(text)))
}
