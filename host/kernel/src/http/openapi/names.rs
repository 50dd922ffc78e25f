//! Schema names that client generators cannot use, and their replacements in the document.
//!
//! A schema becomes a class in the client's language. The language, or the code that a generator puts into every file,
//! may already have a class of that name. Then the client does not compile, or it hides the language's own class.

use serde_json::{Map, Value};

const PREFIX: &str = "#/components/schemas/";

/// Names of types here, and the names of their schemas.
const OTHERWISE: &[(&str, &str)] = &[
    ("Event", "EventRecord"),
    ("EventCursorPage", "EventRecordCursorPage"),
    ("Object", "LiveObject"),
    ("ObjectPage", "LiveObjectPage"),
    ("Operator", "ConditionOperator"),
];

/// Returns the replacement of a schema's name. A body that creates an object is called `SiteCreate`, next to
/// `SiteUpdate`: in a Go client, `NewSite` is the constructor of `Site`.
fn other(name: &str) -> Option<String> {
    let created = name.strip_prefix("New").filter(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
    let taken = || OTHERWISE.iter().find_map(|(taken, other)| (*taken == name).then(|| (*other).to_owned()));
    created.map(|rest| format!("{rest}Create")).or_else(taken)
}

/// Renames the schemas and all references to them, wherever they stand.
pub(super) fn rename(document: &mut Value) {
    if let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") {
        let renamed = std::mem::take(schemas);
        *schemas = renamed
            .into_iter()
            .map(|(name, schema)| (other(&name).unwrap_or(name), schema))
            .collect::<Map<_, _>>();
        schemas.sort_keys();
    }
    rename_references(document);
}

fn rename_references(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get_mut("$ref")
                && let Some(name) = reference.strip_prefix(PREFIX).and_then(other)
            {
                *reference = format!("{PREFIX}{name}");
            }
            fields.values_mut().for_each(rename_references);
        }
        Value::Array(items) => items.iter_mut().for_each(rename_references),
        _ => {}
    }
}
