//! Why an adapter could not do something, as the public API names it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

stored_words! {
    /// The cause of an adapter's failure. One to one with the interface's `fault`.
    pub enum FaultKind {
        Connection = "connection",
        Authentication = "authentication",
        Denied = "denied",
        Timeout = "timeout",
        NotFound = "not_found",
        RateLimit = "rate_limit",
        Busy = "busy",
        NotReady = "not_ready",
        Invalid = "invalid",
        StateMoved = "state_moved",
        Conflict = "conflict",
        Unsupported = "unsupported",
        Generic = "generic",
    }
}

stored_words! {
    /// Whether a failed call may have changed something at the device.
    pub enum Effect {
        None = "none",
        Possible = "possible",
        Certain = "certain",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldError {
    pub pointer: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct Fault {
    pub kind: FaultKind,
    pub message: String,
    pub code: Option<String>,
    pub upstream_status: Option<u16>,
    pub retry_after_ms: Option<u64>,
    pub effect: Effect,
    pub fields: Vec<FieldError>,
}

impl Fault {
    /// A fault of a request that changed nothing.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            code: None,
            upstream_status: None,
            retry_after_ms: None,
            effect: Effect::None,
            fields: Vec::new(),
        }
    }

    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    #[must_use]
    pub fn with_effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }
}

impl FaultKind {
    /// HTTP status and `error.type` of the public API.
    pub const fn public(self) -> (u16, &'static str) {
        match self {
            FaultKind::Connection => (502, "adapter_connection_error"),
            FaultKind::Authentication => (502, "adapter_authentication_error"),
            FaultKind::Timeout => (504, "adapter_timeout"),
            FaultKind::NotFound => (404, "adapter_not_found"),
            FaultKind::RateLimit => (429, "adapter_rate_limit"),
            FaultKind::Invalid => (422, "validation_error"),
            FaultKind::StateMoved => (409, "state_moved"),
            FaultKind::Conflict => (409, "conflict"),
            FaultKind::Denied
            | FaultKind::Busy
            | FaultKind::NotReady
            | FaultKind::Unsupported
            | FaultKind::Generic => (502, "adapter_error"),
        }
    }
}
