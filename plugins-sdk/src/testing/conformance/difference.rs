//! Where two values differ.

use serde_json::Value;

/// Every place in which a value became another one.
pub(super) fn difference(old: &Value, new: &Value) -> Vec<String> {
    match (old, new) {
        (Value::Object(one), Value::Object(other)) => {
            let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
            names.flat_map(|name| below(name, &old[name.as_str()], &new[name.as_str()])).collect()
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let pairs = one.iter().zip(other).enumerate();
            pairs.flat_map(|(at, (old, new))| below(&at.to_string(), old, new)).collect()
        }
        _ if old == new => Vec::new(),
        _ => vec![format!("{old} became {new}")],
    }
}

fn below(name: &str, old: &Value, new: &Value) -> Vec<String> {
    difference(old, new).into_iter().map(|text| format!("{name}.{text}")).collect()
}

/// Whether a value is another one, or holds it among what the device added.
#[must_use]
pub fn holds(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(name, value)| found.get(name).is_some_and(|found| holds(found, value)))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found.iter().zip(wanted).all(|(found, wanted)| holds(found, wanted))
        }
        (found, wanted) => found == wanted,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_place_that_differs_is_named() {
        let (old, new) = (json!({ "a": [1, 2], "b": 1, "c": 3 }), json!({ "a": [1, 3], "c": 3, "d": true }));
        assert_eq!(difference(&old, &new), ["a.1.2 became 3", "b.1 became null", "d.null became true"]);
        assert!(difference(&old, &old).is_empty());
    }

    #[test]
    fn what_a_device_adds_does_not_hide_what_it_was_given() {
        assert!(holds(&json!({ "a": { "b": 1, "c": 2 } }), &json!({ "a": { "b": 1 } })));
        assert!(!holds(&json!([1, 2]), &json!([1])));
    }
}
