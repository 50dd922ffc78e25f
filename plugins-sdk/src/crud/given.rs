//! Values of the model in the form of a payload: the way back of [`super::taken`]. What does not fit is refused, so that
//! nothing is dropped.

use serde_json::{Number, Value, json};

use super::binding::{Given, GivenAs, GivenForm};
use super::field::{at, plain};

/// Where a value goes, and what it becomes; or why the vendor cannot have it.
pub(crate) fn given<'g>(how: &'g Given, value: &Value) -> Result<(&'g str, Value), String> {
    match how {
        Given::Place(to) => Ok((to, value.clone())),
        Given::As(how) => {
            let made = if value.is_null() { Value::Null } else { made(how, value)? };
            Ok((&how.to, made))
        }
    }
}

fn made(how: &GivenAs, value: &Value) -> Result<Value, String> {
    let one = |value: &Value| meant(how, value);
    match (how.form, value) {
        (GivenForm::Only, Value::Array(items)) => match items.as_slice() {
            [] => Ok(Value::Null),
            [only] => one(only),
            _ => Err(format!("takes one value, not {}", items.len())),
        },
        (GivenForm::Joined, Value::Array(items)) => {
            let texts: Result<Vec<String>, String> =
                items.iter().map(|item| Ok(plain(&one(item)?))).collect();
            Ok(json!(texts?.join(how.separator.as_deref().unwrap_or(","))))
        }
        (_, Value::Array(items)) => items.iter().map(one).collect(),
        (GivenForm::NotFlag, Value::Bool(is_on)) => Ok(json!(!is_on)),
        (GivenForm::Text, value) => Ok(json!(plain(&one(value)?))),
        (_, value) => one(value),
    }
}

/// What one value means to the vendor.
fn meant(how: &GivenAs, value: &Value) -> Result<Value, String> {
    let value = match &how.item {
        Some(place) => at(value, place).unwrap_or(&Value::Null),
        None => value,
    };
    if !how.values.is_empty() {
        let word = match value {
            Value::Bool(is_on) => is_on.to_string(),
            other => plain(other),
        };
        let known = || how.values.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        return how
            .values
            .get(&word)
            .cloned()
            .ok_or_else(|| format!("cannot be '{word}' there; it can be {}", known()));
    }
    match (how.times, value.as_f64()) {
        (Some(times), Some(number)) => whole(number * times),
        _ => Ok(value.clone()),
    }
}

fn whole(number: f64) -> Result<Value, String> {
    let rounded = number.round();
    if (rounded - number).abs() > 1e-6 {
        return Err("does not fit the vendor's unit".to_owned());
    }
    // Within these bounds every whole number is exact.
    #[expect(clippy::cast_possible_truncation, reason = "it is within the bounds of i64")]
    let whole = (rounded.abs() < 9_007_199_254_740_992.0).then_some(rounded as i64);
    whole.map(|whole| Value::Number(Number::from(whole))).ok_or_else(|| "is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn becomes(how: Value, value: Value) -> Result<Value, String> {
        let how: Given = serde_json::from_value(how).unwrap();
        given(&how, &value).map(|(_, value)| value)
    }

    #[test]
    fn values_take_the_form_of_the_payload() {
        for (how, value, is) in [
            (json!("tag"), json!(20), json!(20)),
            (json!({ "to": "off", "as": "not-flag" }), json!(true), json!(false)),
            (
                json!({ "to": "t", "values": { "accept": "pass", "drop": "block" } }),
                json!("drop"),
                json!("block"),
            ),
            (json!({ "to": "t", "values": { "true": "Enable" } }), json!(true), json!("Enable")),
            (json!({ "to": "t", "as": "only" }), json!(["lan"]), json!("lan")),
            (json!({ "to": "t", "as": "only" }), json!([]), json!(null)),
            (json!({ "to": "t", "as": "joined" }), json!(["80", "443"]), json!("80,443")),
            (json!({ "to": "t", "as": "text" }), json!(20), json!("20")),
            (json!({ "to": "t", "times": 0.5 }), json!(120), json!(60)),
            (json!({ "to": "t", "values": { "2.4": 0, "5": 1 } }), json!(["5", "2.4"]), json!([1, 0])),
            (
                json!({ "to": "t", "item": "address", "as": "joined" }),
                json!([{ "address": "a" }]),
                json!("a"),
            ),
            (json!({ "to": "t", "values": { "a": 1 } }), json!(null), json!(null)),
        ] {
            assert_eq!(becomes(how.clone(), value), Ok(is), "{how}");
        }
    }

    #[test]
    fn what_the_vendor_cannot_have_is_refused() {
        for (how, value, said) in [
            (
                json!({ "to": "t", "values": { "accept": "pass" } }),
                json!("reject"),
                "cannot be 'reject' there; it can be accept",
            ),
            (json!({ "to": "t", "as": "only" }), json!(["lan", "wan"]), "takes one value, not 2"),
            (json!({ "to": "t", "times": 0.1 }), json!(15), "unit"),
        ] {
            let refusal = becomes(how, value).unwrap_err();
            assert!(refusal.contains(said), "{refusal}");
        }
    }
}
