//! A host for native tests and benches: answers come from a closure, and what
//! was sent is kept.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    Adapter, Auth, Body, Change, ChangePlan, Completion, Effect, Fault, FaultExt, FoundValue, Header,
    HoleSource, Host, NativeBody, NativeCall, Outcome, Readiness, Request, Response, Sent, Stage, fault,
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
    /// The package's description, whose bindings the host hands out.
    description: Option<&'a Value>,
    /// What is known of the holes of the plan that is sent, by name.
    pub holes: RefCell<BTreeMap<String, Value>>,
    /// Ids of the calls that left.
    pub left: RefCell<BTreeSet<String>>,
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
            description: None,
            holes: RefCell::default(),
            left: RefCell::default(),
        }
    }

    /// The same host with this description, whose bindings it hands out.
    #[must_use]
    pub fn describing(mut self, description: &'a Value) -> Self {
        self.description = Some(description);
        self
    }
}

impl FakeHost<'_> {
    fn exchange(&self, request: Request, auth: &Auth) -> Result<Response, Fault> {
        self.sent.borrow_mut().push(json_body(&request).unwrap_or_default());
        (self.answer)(&request, auth)
    }

    fn fill(&self, found: Vec<FoundValue>) {
        let value = |found: FoundValue| (found.hole, serde_json::from_str(&found.value).unwrap_or_default());
        self.holes.borrow_mut().extend(found.into_iter().map(value));
    }

    /// Keeps what an answer has for the holes of the plan.
    fn keep(&self, plan: &ChangePlan, call: &NativeCall, answer: &Response) {
        let Ok(answer) = answer.json() else { return };
        for hole in &plan.holes {
            if let HoleSource::Answer((id, pointer)) = &hole.source
                && call.id.as_ref() == Some(id)
                && let Some(value) = answer.pointer(pointer)
            {
                self.holes.borrow_mut().insert(hole.name.clone(), value.clone());
            }
        }
    }

    /// The reviewed call with its holes filled. Patterns are not looked at here: the host does that.
    fn filled(&self, plan: &ChangePlan, call: &NativeCall) -> Result<NativeCall, Fault> {
        let mut filled = call.clone();
        for hole in &plan.holes {
            let reference = hole.reference();
            if !format!("{filled:?}").contains(&reference) {
                continue;
            }
            let value = match &hole.source {
                HoleSource::Fresh((path, pointer)) => {
                    let auth = call.session.clone().map_or(Auth::None, Auth::session);
                    self.exchange(Request::get(path), &auth)?.json()?.pointer(pointer).cloned()
                }
                HoleSource::Answer(_) | HoleSource::Found => self.holes.borrow().get(&hole.name).cloned(),
            };
            let value =
                value.ok_or_else(|| fault::generic(format!("the hole '{}' is not known", hole.name)))?;
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            filled.path = filled.path.replace(&reference, &encoded(&text));
            filled.headers.iter_mut().for_each(|(_, header)| *header = header.replace(&reference, &text));
            match &mut filled.body {
                NativeBody::Json(body) => {
                    let mut json: Value = serde_json::from_str(body).unwrap_or_default();
                    fill_json(&mut json, &reference, &value, &text);
                    *body = json.to_string();
                }
                NativeBody::Form(fields) => {
                    fields.iter_mut().for_each(|(_, field)| *field = field.replace(&reference, &text));
                }
                NativeBody::None => {}
            }
        }
        Ok(filled)
    }

    /// Whether the call takes back one that never left. A host through which no call left knows nothing of the apply, and
    /// leaves nothing out.
    fn is_left_out(&self, call: &NativeCall) -> bool {
        let left = self.left.borrow();
        !left.is_empty() && call.only_after.as_ref().is_some_and(|id| !left.contains(id))
    }

    fn binding(&self, of: &str, id: &str) -> Option<Value> {
        let all = self.description?.get(of)?.as_array()?;
        all.iter().find(|one| one["id"] == id)?.get("binding").cloned()
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
    fn kind_binding(&self, id: &str) -> Option<Value> {
        self.binding("kinds", id)
    }
    fn feature_binding(&self, id: &str) -> Option<Value> {
        self.binding("features", id)
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
    go_on_stage::<A>(host, stage, changes, plan, 0)
}

/// The same from where the stage stopped: `left` of its calls were sent, and their answers were good.
pub fn go_on_stage<A: Adapter>(
    host: &FakeHost<'_>,
    stage: Stage,
    changes: &[Change],
    plan: &ChangePlan,
    left: u32,
) -> Result<Outcome, Fault> {
    let calls: Vec<&NativeCall> = plan.native.iter().filter(|call| call.stage == stage).collect();
    let mut whole = Completion::default();
    if calls.is_empty() {
        return Ok(Outcome::Done(whole));
    }
    let from = match A::ready(host, stage, changes, &plan.token, left)? {
        Readiness::Send(start) => {
            host.fill(start.found);
            start.from as usize
        }
        Readiness::Nothing(completion) => return Ok(Outcome::Done(completion)),
    };
    for (index, call) in calls.into_iter().enumerate().skip(from) {
        if host.is_left_out(call) {
            continue;
        }
        let (request, auth) = request_of(&host.filled(plan, call)?);
        host.left.borrow_mut().extend(call.id.clone());
        let answer = host.exchange(request, &auth).map_err(|fault| fault.with_effect(Effect::Possible));
        if let Ok(answer) = &answer {
            host.keep(plan, call, answer);
        }
        match A::judge(host, Sent { stage, index }, answer, changes, &plan.token)? {
            Outcome::Done(mut part) => {
                host.fill(part.found);
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

fn fill_json(json: &mut Value, reference: &str, value: &Value, text: &str) {
    match json {
        Value::String(whole) if whole == reference => *json = value.clone(),
        Value::String(part) => *part = part.replace(reference, text),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_json(item, reference, value, text)),
        Value::Object(fields) => fields.values_mut().for_each(|item| fill_json(item, reference, value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// One segment of a path.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
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
