//! A step that is done once for each item of a list.

use heddle_core::operation::{ForEach, StepErrorCode};
use heddle_core::template::{Values, fill};
use serde_json::{Value, json};

use super::operation::StepError;

/// Most bytes of all outputs together, as JSON; those beyond are left out.
const OUTPUTS_BYTES_MAX: usize = 256 * 1024;

/// JSON Schema of what following steps may read of such a step.
pub(super) fn output_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "index": { "type": "integer" },
                        "success": { "type": "boolean" },
                        "output": { "type": ["object", "null"], "description": "What the operation gave for this item" },
                        "error_code": { "type": ["string", "null"] },
                        "message": { "type": ["string", "null"] },
                    },
                },
            },
            "count": { "type": "integer", "description": "Items that it was done for" },
            "failed": { "type": "integer" },
        },
    })
}

/// Returns the list. It is checked before anything is done for one of its items.
pub(super) fn items(each: &ForEach, values: &Values<'_>) -> Result<Vec<Value>, StepError> {
    let invalid = |message: String| StepError::new(StepErrorCode::InvalidParams, message);
    let found = fill(&Value::String(each.items.clone()), values)
        .map_err(|error| StepError::new(StepErrorCode::TemplateError, error.to_string()))?;
    let Value::Array(items) = found else {
        return Err(invalid(format!("'{}' is no list", each.items)));
    };
    if items.len() > usize::from(each.max) {
        let message =
            format!("'{}' has {} items, more than the {} of 'max'", each.items, items.len(), each.max);
        return Err(invalid(message));
    }
    Ok(items)
}

/// The results of the items that were processed so far.
#[derive(Debug, Default)]
pub(super) struct Done {
    items: Vec<Value>,
    bytes: usize,
    failed: usize,
    first: Option<StepError>,
}

impl Done {
    pub(super) fn keep(&mut self, index: usize, result: Result<Value, StepError>) {
        let (output, error) = match result {
            Ok(output) => (Some(output), None),
            Err(mut error) => (error.output.take(), Some(error)),
        };
        let bytes = output.as_ref().map_or(0, |output| output.to_string().len());
        let output = output.filter(|_| self.bytes + bytes <= OUTPUTS_BYTES_MAX);
        if output.is_some() {
            self.bytes += bytes;
        }
        self.items.push(json!({
            "index": index,
            "success": error.is_none(),
            "output": output,
            "error_code": error.as_ref().map(|error| error.code),
            "message": error.as_ref().map(|error| &error.message),
        }));
        if let Some(error) = error {
            self.failed += 1;
            self.first.get_or_insert(StepError::new(error.code, format!("item {index}: {}", error.message)));
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed > 0
    }

    /// Returns the output of the step. The step fails with the error of the first item that failed.
    pub(super) fn end(self) -> Result<Value, StepError> {
        let output = json!({ "items": self.items, "count": self.items.len(), "failed": self.failed });
        match self.first {
            None => Ok(output),
            Some(error) => Err(StepError { output: Some(output), ..error }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_none_or_too_long_is_refused_before_anything_is_done() {
        let trigger = json!({ "list": [1, 2, 3], "one": 1 });
        let values = Values { trigger: &trigger, event: None, outputs: &[], own: None };
        let of = |items: &str, max| items_of(items, max, &values);
        assert_eq!(of("{{trigger.list}}", 3).unwrap().len(), 3);
        assert!(of("{{trigger.list}}", 2).unwrap_err().message.contains("3 items"));
        assert!(of("{{trigger.one}}", 9).unwrap_err().message.contains("no list"));
        assert_eq!(of("{{trigger.none}}", 9).unwrap_err().code, StepErrorCode::TemplateError);
    }

    fn items_of(items: &str, max: u16, values: &Values<'_>) -> Result<Vec<Value>, StepError> {
        super::items(&ForEach { items: items.to_owned(), max }, values)
    }

    #[test]
    fn outputs_beyond_the_bound_are_left_out_and_the_first_failure_is_told() {
        let mut done = Done::default();
        done.keep(0, Ok(json!({ "text": "x".repeat(OUTPUTS_BYTES_MAX - 100) })));
        done.keep(1, Ok(json!({ "text": "x".repeat(200) })));
        done.keep(2, Err(StepError::new(StepErrorCode::NotFound, "gone")));
        done.keep(3, Ok(json!({})));
        let error = done.end().unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (StepErrorCode::NotFound, "item 2: gone"));
        let output = error.output.unwrap();
        assert_eq!((&output["count"], &output["failed"]), (&json!(4), &json!(1)));
        assert_eq!(
            (&output["items"][1]["output"], &output["items"][1]["success"]),
            (&Value::Null, &json!(true))
        );
        assert_eq!(output["items"][3]["output"], json!({}));
    }
}
