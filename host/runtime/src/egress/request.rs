//! Requests and answers as guests see them, and what a write may send.

use std::time::Duration;

use heddle_core::change::NativeCall;
use heddle_core::fault::{Fault, FaultKind};
use serde_json::Value;

use super::held::Held;
use crate::api::SecretBook;

/// A request as a guest asks for it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: http::Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Body,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_response: Option<usize>,
}

#[derive(Debug, Clone)]
pub(crate) enum Body {
    None,
    Json(Value),
    Form(Vec<(String, String)>),
    Multipart(Vec<Part>),
    Bytes(String, Vec<u8>),
}

#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) filename: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) content: Vec<u8>,
}

/// Which secrets a request carries, by name.
#[derive(Debug, Clone)]
pub(crate) enum Auth {
    None,
    Session(String),
    Basic(String, String),
    Inject(Vec<(Place, String)>),
}

#[derive(Debug, Clone)]
pub(crate) enum Place {
    Bearer,
    Header(String, String),
    Query(String),
    JsonPointer(String),
    FormField(String),
}

/// An answer as a guest sees it.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) reason: Option<String>,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    pub(crate) elapsed: Duration,
    /// Room that the body takes, until the guest has it.
    pub(crate) held: Held,
}

/// What a write may send.
#[derive(Debug, Clone)]
pub(crate) struct Approved {
    /// The calls of this stage, in order.
    pub(crate) calls: Vec<NativeCall>,
    pub(crate) hold_secs: u32,
    pub(crate) secrets: SecretBook,
}

/// A request that was refused because the guest may not send it.
pub(super) fn denied(code: &str, message: impl Into<String>) -> Fault {
    Fault::new(FaultKind::Denied, message).with_code(code)
}
