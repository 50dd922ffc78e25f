//! Shows what components and controllers say to each other, to a tool that records it.
//!
//! What is shown is what the component sees: a request without its credential, a reviewed call with its secrets still
//! references, an answer whose secrets were replaced. No server sets a witness.

use heddle_core::change::NativeCall;
use heddle_core::fault::Fault;
use serde_json::Value;

use super::request::{Body, Request, Response};

/// A request, and what came of it.
#[derive(Debug, Clone)]
pub struct Exchange {
    pub method: String,
    /// With its query.
    pub path: String,
    /// The body where it is JSON.
    pub body: Option<Value>,
    /// The body where it is a form: names and values in their order.
    pub form: Option<Vec<(String, String)>>,
    pub answer: Result<Answered, Fault>,
}

/// An answer as the component sees it.
#[derive(Debug, Clone)]
pub struct Answered {
    pub status: u16,
    /// The reason phrase, where it is not the usual one.
    pub reason: Option<String>,
    /// Names in lower case.
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

/// Told of each exchange with a controller, in the order in which the answers came. It is for tests and for the tool
/// that records cassettes.
pub trait Witness: Send + Sync {
    /// A component's request, or a call of a plan.
    fn exchanged(&self, exchange: Exchange);

    /// What a login exposed to the component.
    fn exposed(&self, session: &str, facts: &[(String, String)]);
}

impl Exchange {
    /// A request of a component whose answer is not known yet.
    pub(super) fn of(request: &Request) -> Self {
        let (body, form) = match &request.body {
            Body::Json(body) => (Some(body.clone()), None),
            Body::Form(form) => (None, Some(form.clone())),
            Body::None | Body::Multipart(_) | Body::Bytes(..) | Body::File(..) => (None, None),
        };
        let (method, path) = (request.method.to_string(), request.path.clone());
        Self { method, path, body, form, answer: Err(not_sent()) }
    }

    /// The same of a reviewed call.
    pub(super) fn of_call(call: &NativeCall) -> Self {
        Self {
            method: call.method.clone(),
            path: call.path.clone(),
            body: call.body.clone(),
            form: call.form.clone(),
            answer: Err(not_sent()),
        }
    }

    /// The same with its answer.
    pub(super) fn answered(mut self, answer: &Result<Response, Fault>) -> Self {
        self.answer = match answer {
            Ok(response) => Ok(Answered {
                status: response.status,
                reason: response.reason.clone(),
                headers: response.headers.clone(),
                body: response.body.clone(),
            }),
            Err(fault) => Err(fault.clone()),
        };
        self
    }
}

fn not_sent() -> Fault {
    Fault::new(heddle_core::fault::FaultKind::Generic, "it was not sent")
}
