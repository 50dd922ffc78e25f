//! What is wrong with a value that does not fit a schema of an adapter, said so that a person can mend it.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use crate::http::error::Detail;
use crate::nearest::nearest;

/// Most candidates that a message lists.
const CANDIDATES_MAX: usize = 100;
/// Most details of one answer: a body can be wrong in as many places as it has.
const DETAILS_MAX: usize = 100;

/// Every way in which the value does not fit, each under its own field. `name` is the field of the value.
pub fn details(validator: &jsonschema::Validator, schema: &Value, value: &Value, name: &str) -> Vec<Detail> {
    validator.iter_errors(value).flat_map(|error| of_error(schema, &error, name)).take(DETAILS_MAX).collect()
}

fn of_error(schema: &Value, error: &ValidationError<'_>, name: &str) -> Vec<Detail> {
    let field = format!("{name}{}", error.instance_path().to_string().replace('/', "."));
    let kind = error.kind().keyword();
    let one = |message: String| vec![Detail::new(field.clone(), message, kind)];
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => unexpected
            .iter()
            .map(|unknown| {
                Detail::new(format!("{field}.{unknown}"), unknown_field(schema, error, unknown), kind)
            })
            .collect(),
        ValidationErrorKind::Required { property } => {
            let property = property.as_str().unwrap_or_default();
            vec![Detail::new(format!("{field}.{property}"), format!("missing field '{property}'"), kind)]
        }
        ValidationErrorKind::Enum { options } => match options.as_array() {
            Some(options) => {
                let known: Vec<String> = options.iter().take(CANDIDATES_MAX).map(Value::to_string).collect();
                one(format!("the value is not one of {}", known.join(", ")))
            }
            None => one(error.masked_with("the value").to_string()),
        },
        ValidationErrorKind::Pattern { .. } => match parent(schema, error).and_then(description) {
            Some(description) => one(format!("the value does not fit: {description}")),
            None => one(error.masked_with("the value").to_string()),
        },
        _ => one(error.masked_with("the value").to_string()),
    }
}

fn unknown_field(schema: &Value, error: &ValidationError<'_>, unknown: &str) -> String {
    let known = parent(schema, error).and_then(|parent| parent.get("properties")?.as_object());
    let known: Vec<&str> = known.map(|known| known.keys().map(String::as_str).collect()).unwrap_or_default();
    match nearest(unknown, known.iter().copied()) {
        Some(meant) => format!("unknown field '{unknown}'; nearest is '{meant}'"),
        None if known.is_empty() => format!("unknown field '{unknown}'"),
        None => format!("unknown field '{unknown}'; there are: {}", known.join(", ")),
    }
}

/// The schema whose keyword the value does not fit.
fn parent<'a>(schema: &'a Value, error: &ValidationError<'_>) -> Option<&'a Value> {
    let path = error.schema_path().to_string();
    let (parent, _) = path.rsplit_once('/')?;
    schema.pointer(parent)
}

fn description(schema: &Value) -> Option<&str> {
    schema.get("description")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_misfit_says_what_would_fit() {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "name": { "type": "string" },
                "port": { "type": "string", "pattern": "^[0-9]+(-[0-9]+)?$", "description": "a port, or a range such as 80-90" },
                "target": { "enum": ["ACCEPT", "REJECT", "DROP", "MARK", "NOTRACK"] },
            },
            "required": ["name"],
        });
        let validator = jsonschema::validator_for(&schema).unwrap();
        let value = json!({ "nmae": 1, "port": "http", "target": "ALLOW" });
        let found = details(&validator, &schema, &value, "payload");
        let of = |field: &str| {
            let detail = found.iter().find(|detail| detail.field == field);
            detail.map_or_else(|| panic!("{field} in {found:?}"), |detail| detail.message.clone())
        };
        assert_eq!(of("payload.nmae"), "unknown field 'nmae'; nearest is 'name'");
        assert_eq!(of("payload.name"), "missing field 'name'");
        assert_eq!(of("payload.port"), "the value does not fit: a port, or a range such as 80-90");
        assert_eq!(
            of("payload.target"),
            r#"the value is not one of "ACCEPT", "REJECT", "DROP", "MARK", "NOTRACK""#
        );
    }
}
