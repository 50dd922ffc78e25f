//! Paths with values put in.

use serde_json::{Map, Value};

use super::Place;
use super::holes;

/// One value as a part of a path or a query. A hole stays as it is: the host fills it in and encodes it.
#[must_use]
pub fn escaped(text: &str) -> String {
    if holes::is_reference(text) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

/// A path with its parameters and the id of an object. Each `{name}` is looked at once: no value completes another.
pub(crate) fn filled(path: &str, place: &Place, id: &str) -> String {
    put_in(path, place, id, &escaped)
}

/// A constant whose texts name parameters or the id of an object.
pub(crate) fn filled_json(value: &Value, place: &Place, id: &str) -> Value {
    match value {
        Value::String(text) => {
            let number = text.strip_prefix('{').and_then(|name| name.strip_suffix("#}"));
            if let Some(name) = number {
                let text = if name == "id" { id } else { place.get(name).map_or("", String::as_str) };
                return text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from);
            }
            Value::from(put_in(text, place, id, &str::to_owned))
        }
        Value::Array(items) => items.iter().map(|item| filled_json(item, place, id)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| (name.clone(), filled_json(field, place, id))).collect()
        }
        other => other.clone(),
    }
}

/// The constants of a body, filled in.
pub(crate) fn filled_with(with: &Map<String, Value>, place: &Place, id: &str) -> Map<String, Value> {
    let optional = |value: &Value| value.as_str()?.strip_prefix('{')?.strip_suffix("?}").map(str::to_owned);
    let one = |(name, value): (&String, &Value)| match optional(value) {
        Some(known) => Some((name.clone(), Value::from(place.get(&known)?.clone()))),
        None => Some((name.clone(), filled_json(value, place, id))),
    };
    with.iter().filter_map(one).collect()
}

fn put_in(path: &str, place: &Place, id: &str, written: &dyn Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, behind)) = rest.split_once('{') {
        out.push_str(before);
        let Some((name, after)) = behind.split_once('}') else {
            out.push('{');
            rest = behind;
            continue;
        };
        match (name, place.get(name)) {
            ("id", _) => out.push_str(&written(id)),
            (_, Some(value)) => out.push_str(&written(value)),
            _ => out.push_str(&format!("{{{name}}}")),
        }
        rest = after;
    }
    out + rest
}

/// A parameter of a path that nothing filled in.
pub(crate) fn unfilled(path: &str) -> Option<&str> {
    let parts = path.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    parts.map(|(name, _)| name).find(|name| !name.is_empty() && is_name(name))
}

/// A path with these parameters in its query.
pub(crate) fn with_query(path: &str, params: &[(String, String)]) -> String {
    if params.is_empty() {
        return path.to_owned();
    }
    let query: Vec<String> =
        params.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(value))).collect();
    let joint = if path.contains('?') { '&' } else { '?' };
    format!("{path}{joint}{}", query.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_encoded_and_looked_at_once() {
        let place = Place::from([("node".to_owned(), "{id}/..".to_owned())]);
        assert_eq!(filled("/nodes/{node}/x/{id}?a={b}", &place, "1 2"), "/nodes/%7Bid%7D%2F../x/1%202?a={b}");
        assert_eq!(filled("/x/{id}", &place, "{{hole.id_0}}"), "/x/{{hole.id_0}}");
    }

    #[test]
    fn constants_name_parameters_as_texts_and_as_numbers() {
        let place = Place::from([("port".to_owned(), "7".to_owned())]);
        let with =
            serde_json::json!({ "id": "{id}", "ports": ["{port#}", { "name": "p {port}" }], "on": true });
        let filled = serde_json::json!({ "id": "a/b", "ports": [7, { "name": "p 7" }], "on": true });
        assert_eq!(filled_json(&with, &place, "a/b"), filled);
        assert_eq!(filled_json(&Value::from("{id#}"), &place, "{{hole.id_0}}"), "{{hole.id_0}}");
    }

    #[test]
    fn constant_of_which_nothing_is_known_may_be_left_out() {
        let with = serde_json::json!({ "numbers": "{id}", "destination": "{next?}" });
        let with = with.as_object().unwrap();
        let filled = |place: Place| Value::Object(filled_with(with, &place, "*1"));
        let known = Place::from([("next".to_owned(), "*2".to_owned())]);
        assert_eq!(filled(known), serde_json::json!({ "numbers": "*1", "destination": "*2" }));
        assert_eq!(filled(Place::new()), serde_json::json!({ "numbers": "*1" }));
    }

    #[test]
    fn what_is_not_filled_in_is_found_and_holes_are_left_alone() {
        assert_eq!(unfilled("/nodes/{node}/x"), Some("node"));
        assert_eq!(unfilled("/x/{{hole.id_0}}/%7Bid%7D?a={}"), None);
    }

    #[test]
    fn a_query_is_appended() {
        let params = [("a b".to_owned(), "1&2".to_owned())];
        assert_eq!(with_query("/x", &params), "/x?a%20b=1%262");
        assert_eq!(with_query("/x?y=1", &params), "/x?y=1&a%20b=1%262");
    }
}
