//! The envelope of each answer.

use heddle_lab::Answer;
use serde_json::{Map, Value, json};

/// Why a request is refused, as the vendor tells it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    pub(crate) id: String,
    pub(crate) message: String,
    pub(crate) data: Box<Value>,
    pub(crate) retry_after_secs: Option<u64>,
}

impl Refusal {
    pub(crate) fn new(code: u16, id: &str, message: &str) -> Self {
        // Quotes are backticks in every message.
        let message = message.replace(['"', '\''], "`");
        Self { code, id: id.to_owned(), message, data: Box::new(json!([])), retry_after_secs: None }
    }

    /// 400, the usual one.
    pub(crate) fn invalid(id: &str, message: &str) -> Self {
        Self::new(400, id, message)
    }

    pub(crate) fn not_found(id: &str, message: &str) -> Self {
        Self::new(404, id, message)
    }

    pub(crate) fn conflict(id: &str, message: &str) -> Self {
        Self::new(409, id, message)
    }

    pub(crate) fn forbidden(id: &str, message: &str) -> Self {
        Self::new(403, id, message)
    }

    pub(crate) fn server(id: &str, message: &str) -> Self {
        Self::new(500, id, message)
    }

    /// What an error that no code foresees becomes: its text and a trace.
    pub(crate) fn unexpected(message: &str) -> Self {
        let trace = format!(
            "{message}\n#0 /usr/local/pkg/RESTAPI/Core/Endpoint.inc(1): process_request()\n#1 {{main}}"
        );
        Self::server("ENDPOINT_RECEIVED_UNEXPECTED_ERROR", &trace)
    }

    /// 503 with the seconds to wait.
    pub(crate) fn unavailable(id: &str, message: &str, retry_after_secs: u64) -> Self {
        Self { retry_after_secs: Some(retry_after_secs), ..Self::new(503, id, message) }
    }

    #[must_use]
    pub(crate) fn with_data(mut self, data: Value) -> Self {
        self.data = Box::new(data);
        self
    }

    pub(crate) fn answer(self) -> Answer {
        let answer = envelope(self.code, &self.id, &self.message, *self.data, None);
        let answer = match self.retry_after_secs {
            Some(secs) => answer.with_header("retry-after", &secs.to_string()),
            None => answer,
        };
        match self.code {
            401 => answer.with_header("www-authenticate", "Basic realm=\"Login for pfSense REST API\""),
            _ => answer,
        }
    }
}

/// The answer of a request that was carried out.
pub(crate) fn success(data: Value, links: Option<Map<String, Value>>) -> Answer {
    // An object without fields is an empty list.
    let data = if data.as_object().is_some_and(Map::is_empty) { json!([]) } else { data };
    envelope(200, "SUCCESS", "", data, links)
}

fn envelope(code: u16, id: &str, message: &str, data: Value, links: Option<Map<String, Value>>) -> Answer {
    let mut body = json!({
        "code": code, "status": status(code), "response_id": id, "message": message, "data": data
    });
    if let Some(links) = links {
        body["_links"] = Value::Object(links);
    }
    Answer::body(code, "application/json", format!("{body}\n"))
}

fn status(code: u16) -> &'static str {
    match code {
        200 => "ok",
        400 => "bad request",
        401 => "unauthorized",
        403 => "forbidden",
        404 => "not found",
        405 => "method not allowed",
        406 => "not acceptable",
        409 => "conflict",
        413 => "request entity too large",
        415 => "unsupported media type",
        422 => "unprocessable entity",
        424 => "failed dependency",
        503 => "service unavailable",
        _ => "internal server error",
    }
}
