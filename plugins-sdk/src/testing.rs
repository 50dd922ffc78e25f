//! A host for native tests and benches: answers come from a closure, and what
//! was sent is kept.

use std::cell::{Cell, RefCell};

use serde_json::Value;

use crate::{
    Adapter, Auth, Body, Change, ChangePlan, Completion, Effect, Fault, FaultExt, Header, Host, NativeBody,
    NativeCall, Outcome, Readiness, Request, Response, Sent, Stage,
};

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

impl FakeHost<'_> {
    fn exchange(&self, request: Request, auth: &Auth) -> Result<Response, Fault> {
        self.sent.borrow_mut().push(json_body(&request).unwrap_or_default());
        (self.answer)(&request, auth)
    }
}

impl Host for FakeHost<'_> {
    fn send(&self, request: Request, auth: Auth) -> Result<Response, Fault> {
        self.exchange(request, &auth)
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

/// Sends the calls of a stage as the host does: asks whether it can begin, sends them one by one, and stops where the
/// adapter says that one failed or that a task must end first. An answer that does not come counts as lost.
pub fn send_stage<A: Adapter>(
    host: &FakeHost<'_>,
    stage: Stage,
    changes: &[Change],
    plan: &ChangePlan,
) -> Result<Outcome, Fault> {
    let calls: Vec<&NativeCall> = plan.native.iter().filter(|call| call.stage == stage).collect();
    let mut whole = Completion::default();
    if calls.is_empty() {
        return Ok(Outcome::Done(whole));
    }
    let from = match A::ready(host, stage, changes, &plan.token, 0)? {
        Readiness::Send(from) => from as usize,
        Readiness::Nothing(completion) => return Ok(Outcome::Done(completion)),
    };
    for (index, call) in calls.into_iter().enumerate().skip(from) {
        let (request, auth) = request_of(call);
        let answer = host.exchange(request, &auth).map_err(|fault| fault.with_effect(Effect::Possible));
        match A::judge(host, Sent { stage, index }, answer, changes, &plan.token)? {
            Outcome::Done(mut part) => {
                whole.created.append(&mut part.created);
                whole.warnings.append(&mut part.warnings);
                whole.needs.append(&mut part.needs);
            }
            Outcome::Failed(fault) => return Err(fault),
            pending @ Outcome::Pending(_) => return Ok(pending),
        }
    }
    Ok(Outcome::Done(whole))
}

/// The request that the host makes of a reviewed call.
fn request_of(call: &NativeCall) -> (Request, Auth) {
    let mut request = Request::new(call.method, call.path.clone());
    request.headers = call
        .headers
        .iter()
        .map(|(name, value)| Header { name: name.clone(), value: value.clone().into_bytes() })
        .collect();
    request.body = match &call.body {
        NativeBody::None => Body::None,
        NativeBody::Json(text) => Body::Json(text.clone()),
        NativeBody::Form(fields) => Body::Form(fields.clone()),
    };
    (request, call.session.clone().map_or(Auth::None, Auth::session))
}
