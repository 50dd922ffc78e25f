//! The names that the templates of a session use.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::manifest::Request;
use crate::template::{self, Part, Source};

/// Adds the names that a text takes from this source. A text that is no template is refused elsewhere.
pub(crate) fn in_text(source: Source, text: &str, found: &mut BTreeSet<String>) {
    for part in template::parse(text).unwrap_or_default() {
        if let Part::Place(of, name) = part
            && of == source
        {
            found.insert(name);
        }
    }
}

/// The same of all that a request carries: its headers, its authorization and its body, but not its path.
pub(crate) fn in_request(source: Source, request: &Request, found: &mut BTreeSet<String>) {
    request.json.iter().for_each(|json| in_json(source, json, found));
    request.form.iter().flatten().for_each(|(_, value)| in_text(source, value, found));
    request.headers.values().for_each(|value| in_text(source, value, found));
    if let Some(basic) = &request.basic {
        in_text(source, &basic.username, found);
        in_text(source, &basic.password, found);
    }
}

fn in_json(source: Source, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => in_text(source, text, found),
        Value::Array(items) => items.iter().for_each(|item| in_json(source, item, found)),
        Value::Object(fields) => fields.values().for_each(|field| in_json(source, field, found)),
        _ => {}
    }
}
