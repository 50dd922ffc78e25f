//! The one error of all handlers, and the one place that renders it.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use heddle_core::fault::{Fault, FaultKind};
use heddle_core::{Permission, Role};
use heddle_runtime::CallError;
use serde::Serialize;
use serde_json::{Value, json};

/// One thing that is wrong with a body or a parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Detail {
    /// JSON pointer (RFC 6901) of the field in the body: `/payload/dest_port`, `/steps/0/params`; empty for the body as a
    /// whole. A parameter of the query, of the path or a header is named in the same way: `/per_page`.
    #[schemars(regex(pattern = r"^(/[^/]*)*$"))]
    pub field: String,
    /// What is wrong, and what would work.
    pub message: String,
    /// A stable word: `missing`, `unknown_field`, `type_error`, `value_error`, or the keyword of the schema that is
    /// violated.
    #[serde(rename = "type")]
    pub kind: String,
}

impl Detail {
    /// Names the field by a JSON pointer, or with dots and brackets such as `steps[0].params`, which are
    /// answered as a pointer. `body` means the body as a whole. `kind` is the stable word of the detail's
    /// type.
    pub fn new(field: impl Into<String>, message: impl Into<String>, kind: &str) -> Self {
        Self { field: field.into(), message: message.into(), kind: kind.to_owned() }
    }

    /// Returns the detail as it is answered: rules name fields with dots and brackets, clients find them by pointers.
    fn pointed(&self) -> Self {
        Self { field: pointer(&self.field), ..self.clone() }
    }
}

/// Returns the JSON pointer of a field that is written with dots or brackets: `steps.0.params`, `events[1]`. Text that
/// is a pointer already is returned unchanged.
fn pointer(field: &str) -> String {
    match field {
        "body" => String::new(),
        pointer if pointer.starts_with('/') => pointer.to_owned(),
        path => format!("/{}", path.replace(['.', '['], "/").replace(']', "")),
    }
}

/// Says why a request failed. Handlers return it, and only the edge writes the status and the body. Messages
/// go to the client and must hold no secret; the source of [`Error::Internal`] goes to the log alone.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// 400. A rule of the business is not met; the type says which.
    #[error("{message}")]
    BadRequest { kind: &'static str, message: String },
    /// 401. The caller is not known, or is no longer known.
    #[error("{0}")]
    Unauthenticated(&'static str),
    /// 403. Names the missing permission so that an administrator can grant it.
    #[error("permission '{0}' is required")]
    Forbidden(Permission),
    /// 403. Names the role that is needed.
    #[error("role '{0}' or higher is required")]
    ForbiddenRole(Role),
    /// 403. Another rule forbids it.
    #[error("{message}")]
    Refused { kind: &'static str, message: String },
    /// 404. Absent, removed, or in another organization: the caller cannot tell which.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// 404. A word of the path is not known; the message names the nearest that is.
    #[error("{0}")]
    Unknown(String),
    /// 409. The type is stable: `conflict`, `state_moved`, `plan_changed`, …
    #[error("{message}")]
    Conflict { kind: &'static str, message: String },
    /// 412. `If-Match` names another state of the object than it has.
    #[error("object was changed since it was read; read it again and send its ETag in If-Match")]
    PreconditionFailed,
    /// 413. A part of the body is larger than it may be.
    #[error("{0}")]
    TooLarge(String),
    /// 422. Each detail names a field.
    #[error("request is not valid")]
    Validation(Vec<Detail>),
    /// 423.
    #[error("account is locked after repeated failures; try again in {minutes} min")]
    Locked { minutes: i64 },
    /// An adapter's fault, or its trap.
    #[error("{0}")]
    Adapter(#[from] CallError),
    /// 502 or 504. A server that a feature needs failed; the message comes from the feature.
    #[error("{message}")]
    Upstream { status: StatusCode, kind: &'static str, message: &'static str },
    /// 501. This server cannot do it.
    #[error("{0}")]
    NotAvailable(&'static str),
    /// 503. A required part gives no answer.
    #[error("{0}")]
    Unavailable(String),
    /// Exactly `{"detail": …}`, outside the envelope, where the interface says so.
    #[error("{detail}")]
    Bare { status: StatusCode, detail: String },
    /// 429. Exactly `{"detail": …, "retry_after": …}`, outside the envelope.
    #[error("{}", .0.detail())]
    RateLimited(RateExceeded),
    /// A body in the format of another protocol, outside the envelope.
    #[error("{}", .0.kind)]
    Shaped(Box<Shaped>),
    /// 500. The source goes to the log; the client sees a generic sentence.
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A refusal in the format of another protocol.
#[derive(Debug)]
pub struct Shaped {
    pub status: StatusCode,
    pub kind: &'static str,
    pub body: Value,
    /// `WWW-Authenticate`.
    pub challenge: Option<&'static str>,
}

/// Which limit of requests is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateExceeded {
    Burst,
    Minute,
    Hour,
    /// Too many requests are in flight.
    AtOnce,
}

impl RateExceeded {
    fn detail(self) -> &'static str {
        match self {
            Self::Burst => "Rate limit exceeded (burst)",
            Self::Minute | Self::Hour => "Rate limit exceeded",
            Self::AtOnce => "Too many at once; wait until one has ended",
        }
    }

    fn retry_after_secs(self) -> u32 {
        match self {
            Self::Burst | Self::AtOnce => 1,
            Self::Minute => 60,
            Self::Hour => 3600,
        }
    }
}

impl Error {
    /// Makes a 409 of the general type `conflict`. A conflict that clients have to tell apart gets its own
    /// type in [`Error::Conflict`].
    pub fn conflict(message: impl Into<String>) -> Self {
        Error::Conflict { kind: "conflict", message: message.into() }
    }

    /// Makes a 500 for a fault of the service itself. The source and its causes go to the log, and the client
    /// sees a generic sentence.
    pub fn internal(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Error::Internal(source.into())
    }

    /// One field that is not valid.
    pub fn field(field: &str, message: impl Into<String>) -> Self {
        Error::Validation(vec![Detail::new(field, message, "value_error")])
    }

    /// Returns the HTTP status of the answer. For a failure of an adapter it follows from the kind of the
    /// fault.
    pub fn status(&self) -> StatusCode {
        match self {
            Error::BadRequest { .. } => StatusCode::BAD_REQUEST,
            Error::Unauthenticated(_) => StatusCode::UNAUTHORIZED,
            Error::Forbidden(_) | Error::ForbiddenRole(_) | Error::Refused { .. } => StatusCode::FORBIDDEN,
            Error::NotFound(_) | Error::Unknown(_) => StatusCode::NOT_FOUND,
            Error::Conflict { .. } => StatusCode::CONFLICT,
            Error::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            Error::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Error::Validation(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Error::Locked { .. } => StatusCode::LOCKED,
            Error::Adapter(error) => adapter_public(error).0,
            Error::NotAvailable(_) => StatusCode::NOT_IMPLEMENTED,
            Error::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Error::Bare { status, .. } | Error::Upstream { status, .. } => *status,
            Error::RateLimited(_) => StatusCode::TOO_MANY_REQUESTS,
            Error::Shaped(shaped) => shaped.status,
            Error::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns the stable word by which clients tell failures apart: `error.type` in the envelope. Errors
    /// outside of the envelope have one, too, for results of requests about many objects.
    pub fn kind(&self) -> &'static str {
        match self {
            Error::BadRequest { kind, .. }
            | Error::Refused { kind, .. }
            | Error::Conflict { kind, .. }
            | Error::Upstream { kind, .. } => kind,
            Error::Unauthenticated(_) => "unauthenticated",
            Error::Forbidden(_) | Error::ForbiddenRole(_) => "permission_denied",
            Error::NotFound(_) | Error::Unknown(_) => "not_found",
            Error::PreconditionFailed => "precondition_failed",
            Error::TooLarge(_) => "payload_too_large",
            Error::Validation(_) => "validation_error",
            Error::Locked { .. } => "locked",
            Error::Adapter(error) => adapter_public(error).1,
            Error::NotAvailable(_) => "not_implemented",
            Error::Unavailable(_) => "unavailable",
            Error::Bare { .. } => "refused",
            Error::RateLimited(_) => "rate_limited",
            Error::Shaped(shaped) => shaped.kind,
            Error::Internal(_) => "internal_error",
        }
    }

    fn details(&self) -> Option<Vec<Detail>> {
        match self {
            Error::Validation(details) => Some(details.iter().map(Detail::pointed).collect()),
            // The fields name objects of the device, not fields of the request.
            Error::Adapter(CallError::Fault(fault))
                if fault.kind == FaultKind::StateMoved && !fault.fields.is_empty() =>
            {
                let detail =
                    |f: &heddle_core::fault::FieldError| Detail::new(&f.pointer, &f.message, "state_moved");
                Some(fault.fields.iter().map(detail).collect())
            }
            Error::Adapter(CallError::Fault(fault)) if !fault.fields.is_empty() => {
                let detail = |f: &heddle_core::fault::FieldError| {
                    Detail::new(format!("/payload{}", f.pointer), &f.message, "value_error")
                };
                Some(fault.fields.iter().map(detail).collect())
            }
            _ => None,
        }
    }
}

/// Status and `error.type` of an adapter's failure.
fn adapter_public(error: &CallError) -> (StatusCode, &'static str) {
    use heddle_runtime::TrapClass;
    match error {
        CallError::Fault(fault) => {
            let (status, kind) = fault.kind.public();
            (StatusCode::from_u16(status).expect("the table holds valid codes"), kind)
        }
        CallError::Trap { class: TrapClass::Cpu | TrapClass::Wall, .. } => {
            (StatusCode::GATEWAY_TIMEOUT, "adapter_timeout")
        }
        CallError::Trap { .. } => (StatusCode::BAD_GATEWAY, "adapter_error"),
        CallError::Suspended { .. } => (StatusCode::SERVICE_UNAVAILABLE, "adapter_suspended"),
        CallError::Overload => (StatusCode::SERVICE_UNAVAILABLE, "overloaded"),
        CallError::Host(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal_error"),
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Error::Adapter(CallError::Fault(fault))
    }
}

impl From<heddle_store::Error> for Error {
    fn from(error: heddle_store::Error) -> Self {
        use heddle_store::Error as Store;
        match error {
            Store::Busy => Error::Unavailable("database is busy; try again".to_owned()),
            Store::Full => {
                Error::Unavailable("database has no space left; free some and try again".to_owned())
            }
            Store::Unavailable(source) => {
                tracing::error!(error = %source, "database gives no answer");
                Error::Unavailable("database gives no answer; try again".to_owned())
            }
            other => Error::internal(other),
        }
    }
}

/// Carries the error on a response from the handler to the edge, which renders it.
#[derive(Clone)]
pub(crate) struct Failure(pub(crate) std::sync::Arc<Error>);

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(Failure(std::sync::Arc::new(self)));
        response
    }
}

/// Writes an error's body. The only code that does.
pub(crate) fn render(error: &Error, request_id: &str) -> Response {
    if let Error::Bare { status, detail } = error {
        return (*status, axum::Json(json!({ "detail": detail }))).into_response();
    }
    if let Error::RateLimited(exceeded) = error {
        let seconds = exceeded.retry_after_secs();
        let body = json!({ "detail": exceeded.detail(), "retry_after": seconds });
        let wait = [(header::RETRY_AFTER, HeaderValue::from(seconds))];
        return (error.status(), wait, axum::Json(body)).into_response();
    }
    if let Error::Shaped(shaped) = error {
        let mut response = (shaped.status, axum::Json(&shaped.body)).into_response();
        if let Some(how) = shaped.challenge {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(how));
        }
        return response;
    }
    let status = error.status();
    let message = error.to_string();
    let mut response =
        (status, axum::Json(envelope(status, error.kind(), &message, request_id, error.details())))
            .into_response();
    let headers = response.headers_mut();
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Error::Adapter(CallError::Fault(Fault { retry_after_ms: Some(ms), .. })) = error {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(ms.div_ceil(1000)));
    }
    response
}

/// Renders a response that has no error of ours: an unmatched path, a wrong method, a rejected extractor.
pub(crate) fn render_plain(status: StatusCode, request_id: &str) -> Response {
    let (kind, message) = match status {
        StatusCode::NOT_FOUND => ("not_found", "path not found"),
        StatusCode::METHOD_NOT_ALLOWED => ("method_not_allowed", "method not allowed on this path"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            ("unsupported_media_type", "send 'content-type: application/json'")
        }
        status if status.is_server_error() => ("internal_error", "internal error"),
        _ => ("bad_request", "request cannot be read"),
    };
    (status, axum::Json(envelope(status, kind, message, request_id, None))).into_response()
}

fn envelope(
    status: StatusCode,
    kind: &str,
    message: &str,
    request_id: &str,
    details: Option<Vec<Detail>>,
) -> Value {
    let mut error = json!({
        "code": status.as_u16(),
        "message": message,
        "request_id": request_id,
        "type": kind,
    });
    if let Some(details) = details {
        error["details"] = json!(details);
    }
    json!({ "error": error })
}
