//! `fabric.log`: writes a line into the service's log, where `/fabric/logs` shows it to its organization.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_core::LogLevel;
use heddle_core::operation::StepErrorCode;
use heddle_core::redact::{mask_text, sanitize};
use heddle_kernel::logs::OF_ORGANIZATIONS;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::sink;
use crate::declarations::EVENT_WRITE;
use crate::operation::{Declaration, Operation, StepCall, StepError, object_schema, params_of};

const MESSAGE_CHARS_MAX: usize = 2000;
/// Most bytes of the fields, as JSON.
const FIELDS_BYTES_MAX: usize = 4096;

pub(crate) struct Log(Declaration);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    #[serde(default = "info")]
    level: LogLevel,
    message: String,
    #[serde(default)]
    fields: Map<String, Value>,
}

fn info() -> LogLevel {
    LogLevel::Info
}

/// A validated line.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    level: LogLevel,
    message: String,
    fields: String,
}

impl Log {
    pub(crate) fn new() -> Self {
        let words = (
            "fabric.log",
            "Log",
            "Writes a line into the organization's log, which 'GET /fabric/logs' shows.",
        );
        let params = json!({
            "level": { "type": "string", "enum": LogLevel::ALL, "default": "info" },
            "message": {
                "type": "string", "minLength": 1, "maxLength": MESSAGE_CHARS_MAX,
                "examples": ["device edge is offline"],
            },
            "fields": {
                "type": "object", "description": "At most 4096 bytes as JSON",
                "examples": [{ "device": "edge" }],
            },
        });
        let output = json!({ "level": { "type": "string", "enum": LogLevel::ALL } });
        let (params, output) = (object_schema(params, &["message"]), object_schema(output, &["level"]));
        Self(sink(words, EVENT_WRITE, &params, output))
    }
}

impl Operation for Log {
    fn declaration(&self) -> &Declaration {
        &self.0
    }

    fn run<'a>(&'a self, call: &'a StepCall<'a>, params: Value) -> BoxFuture<'a, Result<Value, StepError>> {
        async move {
            let line = line(params_of(params)?)?;
            write(call, &line);
            Ok(json!({ "level": line.level }))
        }
        .boxed()
    }
}

fn line(params: Params) -> Result<Line, StepError> {
    let invalid = |text: String| StepError::new(StepErrorCode::InvalidParams, text);
    // One line, for every reader of the log.
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let mut message = params.message.chars().map(plain).collect::<String>().trim().to_owned();
    if !(1..=MESSAGE_CHARS_MAX).contains(&message.chars().count()) {
        return Err(invalid(format!("message must have 1 to {MESSAGE_CHARS_MAX} characters")));
    }
    mask_text(&mut message);
    let mut fields = Value::Object(params.fields);
    sanitize(&mut fields);
    let fields = fields.to_string();
    if fields.len() > FIELDS_BYTES_MAX {
        return Err(invalid(format!("fields must have at most {FIELDS_BYTES_MAX} bytes as JSON")));
    }
    Ok(Line { level: params.level, message, fields })
}

fn write(call: &StepCall<'_>, line: &Line) {
    let (org, run) = (call.author.org_id, call.run_id);
    let Line { level, message, fields } = line;
    match level {
        LogLevel::Info => {
            tracing::info!(target: OF_ORGANIZATIONS, { organization.id = %org, run.id = %run, %fields }, "{message}");
        }
        LogLevel::Warn => {
            tracing::warn!(target: OF_ORGANIZATIONS, { organization.id = %org, run.id = %run, %fields }, "{message}");
        }
        LogLevel::Error => {
            tracing::error!(target: OF_ORGANIZATIONS, { organization.id = %org, run.id = %run, %fields }, "{message}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(params: Value) -> Result<Line, StepErrorCode> {
        params_of(params).and_then(line).map_err(|error| error.code)
    }

    #[test]
    fn a_line_is_one_line_without_secrets() {
        let given =
            json!({ "level": "warn", "message": "a\nb", "fields": { "n": 1, "deep": { "Token": "x" } } });
        let expected = Line {
            level: LogLevel::Warn,
            message: "a b".to_owned(),
            fields: "{\"n\":1,\"deep\":{}}".to_owned(),
        };
        assert_eq!(checked(given).unwrap(), expected);
        assert_eq!(checked(json!({ "message": "m" })).unwrap().level, LogLevel::Info);
    }

    #[test]
    fn what_is_too_long_or_unknown_is_refused() {
        for given in [
            json!({ "message": " " }),
            json!({ "message": "m".repeat(2001) }),
            json!({ "message": "m", "fields": { "f": "x".repeat(4096) } }),
            json!({ "message": "m", "level": "debug" }),
            json!({ "message": "m", "more": 1 }),
        ] {
            assert_eq!(checked(given).unwrap_err(), StepErrorCode::InvalidParams);
        }
    }
}
