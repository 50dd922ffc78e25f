//! Refusals, and the four forms in which the vendor tells one.

use heddle_lab::{Answer, Request};
use serde_json::{Value, json};

use crate::row::{Row, moment, uuid};

/// What a call was refused for.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// The vendor's code, such as `api.err.VlanUsed`.
    pub(crate) code: String,
    pub(crate) message: String,
    /// What the envelope of the older interface tells beside the code.
    more: Box<Row>,
    /// The field that does not fit, and its pattern.
    field: Option<Box<(String, String)>>,
}

pub(crate) type Outcome<T> = Result<T, Refusal>;

impl Refusal {
    /// A code of the older interfaces, without `api.err.`, with status 400.
    pub(crate) fn new(code: &str) -> Self {
        Self::of(400, &format!("api.err.{code}"), "")
    }

    /// A code of the official interface.
    pub(crate) fn of(status: u16, code: &str, message: &str) -> Self {
        Self { status, code: code.to_owned(), message: message.to_owned(), more: Box::default(), field: None }
    }

    pub(crate) fn not_found() -> Self {
        Self { status: 404, ..Self::new("NotFound") }
    }

    pub(crate) fn no_id() -> Self {
        Self::new("IdInvalid")
    }

    pub(crate) fn read_only() -> Self {
        Self { status: 403, ..Self::new("NoPermission") }
    }

    /// A value that does not have the form of its field.
    pub(crate) fn invalid(field: &str, pattern: &str) -> Self {
        let mut refusal = Self::new("InvalidPayload");
        refusal.field = Some(Box::new((field.to_owned(), pattern.to_owned())));
        refusal.message = format!("{field} is invalid");
        refusal
    }

    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn with_message(mut self, message: &str) -> Self {
        message.clone_into(&mut self.message);
        self
    }

    /// Tells a name and a value beside the code.
    pub(crate) fn telling(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// In the envelope of the first interface.
    pub(crate) fn v1(&self) -> Answer {
        let mut meta = json!({ "rc": "error", "msg": self.code });
        if let Some(meta) = meta.as_object_mut() {
            meta.extend(Row::clone(&self.more));
        }
        let data = match self.field.as_deref() {
            None => json!([]),
            Some((field, pattern)) => json!([{
                "rc": "error", "msg": "api.err.InvalidValue",
                "validationError": { "field": field, "pattern": pattern },
            }]),
        };
        Answer::json(self.status, &json!({ "meta": meta, "data": data }))
    }

    /// As the second interface tells it.
    pub(crate) fn v2(&self) -> Answer {
        let body = json!({ "code": self.code, "message": self.message, "errorCode": self.status });
        Answer::json(self.status, &body)
    }

    /// As the official interface tells it.
    pub(crate) fn official(&self, path: &str, now_ms: u64) -> Answer {
        let mut body = json!({
            "statusCode": self.status,
            "statusName": name_of(self.status),
            "code": self.code,
            "message": self.message,
            "timestamp": moment(now_ms),
            "requestPath": path,
        });
        // A path that leads nowhere gets no number.
        if self.code != "api.request.error" {
            body["requestId"] = json!(uuid("request", &format!("{path} {now_ms}")));
        }
        Answer::json(self.status, &body)
    }
}

fn name_of(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHORIZED",
        403 => "FORBIDDEN",
        404 => "NOT_FOUND",
        409 => "CONFLICT",
        429 => "TOO_MANY_REQUESTS",
        500 => "INTERNAL_SERVER_ERROR",
        _ => "BAD_REQUEST",
    }
}

/// The envelope of the first interface around rows.
pub(crate) fn ok(data: Vec<Value>) -> Value {
    json!({ "meta": { "rc": "ok" }, "data": data })
}

/// What the console, or its proxy before the application, says.
pub(crate) fn console(status: u16, message: &str) -> Answer {
    Answer::json(status, &json!({ "error": { "code": status, "message": message } }))
}

/// The path below the prefix of a console.
pub(crate) fn inner_path(request: &Request) -> &str {
    request.path.strip_prefix("/proxy/network").unwrap_or(&request.path)
}
