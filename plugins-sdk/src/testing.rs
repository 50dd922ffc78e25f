//! A host for native tests and benches: answers come from a closure, and what
//! was sent is kept.

use std::cell::{Cell, RefCell};

use serde_json::Value;

use crate::{Auth, Body, Fault, Host, Request, Response};

type Answer<'a> = dyn Fn(&Request, &Auth) -> Result<Response, Fault> + 'a;

/// Answers requests from a closure.
pub struct FakeHost<'a> {
    answer: Box<Answer<'a>>,
    /// Bodies of the requests so far, in order; `null` for those that are not JSON.
    pub sent: RefCell<Vec<Value>>,
    /// How often a session was reset.
    pub resets: Cell<u32>,
    /// What `now_ms` says.
    pub now_ms: Cell<u64>,
    pub settings: Value,
}

impl std::fmt::Debug for FakeHost<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeHost").field("sent", &self.sent).finish_non_exhaustive()
    }
}

impl<'a> FakeHost<'a> {
    /// Makes a host that answers every request by this closure. The test can set the other fields: the
    /// settings are empty, and the time is 1 700 000 000 000 ms.
    pub fn new(answer: impl Fn(&Request, &Auth) -> Result<Response, Fault> + 'a) -> Self {
        FakeHost {
            answer: Box::new(answer),
            sent: RefCell::default(),
            resets: Cell::new(0),
            now_ms: Cell::new(1_700_000_000_000),
            settings: Value::Object(serde_json::Map::new()),
        }
    }
}

impl Host for FakeHost<'_> {
    fn send(&self, request: Request, auth: Auth) -> Result<Response, Fault> {
        self.sent.borrow_mut().push(json_body(&request).unwrap_or_default());
        (self.answer)(&request, &auth)
    }
    fn reset_session(&self, _name: &str) {
        self.resets.set(self.resets.get() + 1);
    }
    fn now_ms(&self) -> u64 {
        self.now_ms.get()
    }
    fn settings(&self) -> Value {
        self.settings.clone()
    }
}

/// The JSON that a request carries.
pub fn json_body(request: &Request) -> Option<Value> {
    match &request.body {
        Body::Json(text) => serde_json::from_str(text).ok(),
        _ => None,
    }
}

/// An answer with a JSON body.
#[must_use]
pub fn json_response(status: u16, body: &Value) -> Response {
    Response { status, reason: None, headers: Vec::new(), body: body.to_string().into_bytes(), elapsed_ms: 1 }
}
