//! What the result of a write says of its parts. The envelope tells of a success although some of them failed.

use heddle_sdk::fault;
use serde_json::{Map, Value};

/// Deeper than any result that the vendor describes.
const LEVELS_MAX: usize = 16;
/// More are not named.
const NAMED_MAX: usize = 8;
/// Fields that say whose result it is.
const OWNERS: [&str; 5] = ["mac", "stackId", "name", "port", "sn"];
/// Fields that say why.
const REASONS: [&str; 3] = ["errorMsg", "msg", "message"];

/// What failed inside of a result, in words.
pub(crate) fn failures(result: &Value) -> Vec<String> {
    let mut found = Vec::new();
    look(result, None, LEVELS_MAX, &mut found);
    found
}

/// Whether the controller still works on what it was told to do.
pub(crate) fn is_unfinished(result: &Value) -> bool {
    result.get("finished") == Some(&Value::Bool(false))
}

fn look(value: &Value, owner: Option<&str>, levels: usize, found: &mut Vec<String>) {
    if levels == 0 || found.len() >= NAMED_MAX {
        return;
    }
    match value {
        Value::Array(rows) => {
            for row in rows {
                look(row, owner, levels - 1, found);
            }
        }
        Value::Object(fields) => {
            let owner = text(fields, &OWNERS).or(owner);
            for (name, inner) in fields {
                if is_failure(name, inner) {
                    found.push(words(fields, owner, name, inner));
                } else {
                    look(inner, owner, levels - 1, found);
                }
            }
        }
        _ => {}
    }
}

fn is_failure(name: &str, value: &Value) -> bool {
    match (name, value) {
        ("errorCode" | "errcode", Value::Number(code)) => code.as_i64() != Some(0),
        ("failPorts" | "errorMap", Value::Object(parts)) => !parts.is_empty(),
        ("failPorts" | "errorMap", Value::Array(parts)) => !parts.is_empty(),
        (name, Value::Bool(false)) => name.starts_with("try") && name.ends_with("Result"),
        _ => false,
    }
}

fn words(fields: &Map<String, Value>, owner: Option<&str>, name: &str, value: &Value) -> String {
    let of = owner.map(|owner| format!("{owner}: ")).unwrap_or_default();
    let why = text(fields, &REASONS).map(|reason| format!(" ({reason})")).unwrap_or_default();
    fault::said(&format!("{of}{name} {value}{why}"))
}

/// The first of these fields that says something.
fn text<'v>(fields: &'v Map<String, Value>, names: &[&str]) -> Option<&'v str> {
    names.iter().filter_map(|name| fields.get(*name)?.as_str()).find(|text| !text.is_empty())
}
