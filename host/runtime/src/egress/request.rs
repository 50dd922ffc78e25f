//! Requests and answers as guests see them, and what a write may send.

use std::time::Duration;

use heddle_core::change::NativeCall;
use heddle_core::fault::{Fault, FaultKind};
use serde_json::Value;

use super::held::Held;

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

impl Request {
    /// A GET without a body or headers.
    pub(crate) fn get(path: &str) -> Self {
        Self {
            method: http::Method::GET,
            path: path.to_owned(),
            headers: Vec::new(),
            body: Body::None,
            timeout: None,
            max_response: None,
        }
    }

    /// The request of a reviewed call, before its references are filled in, and the session that it is sent in.
    pub(crate) fn of(call: &NativeCall) -> Result<(Self, Auth), Fault> {
        let method = http::Method::from_bytes(call.method.as_bytes())
            .map_err(|_| denied("method", format!("'{}' is not a method", call.method)))?;
        let body = match (&call.body, &call.form) {
            (Some(body), None) => Body::Json(body.clone()),
            (None, Some(form)) => Body::Form(form.clone()),
            (None, None) => Body::None,
            (Some(_), Some(_)) => return Err(denied("body", "a call has one body")),
        };
        let headers = call.headers.iter().map(|(name, value)| (name.clone(), value.clone().into_bytes()));
        let request = Self {
            method,
            path: call.path.clone(),
            headers: headers.collect(),
            body,
            timeout: None,
            max_response: None,
        };
        Ok((request, call.session.clone().map_or(Auth::None, Auth::Session)))
    }
}

/// A request that was refused because the guest may not send it.
pub(super) fn denied(code: &str, message: impl Into<String>) -> Fault {
    Fault::new(FaultKind::Denied, message).with_code(code)
}
