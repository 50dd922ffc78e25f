//! Sends the calls of a plan, as the host does.

use serde_json::Value;

use super::{FakeHost, refused};
use crate::{
    Adapter, Auth, Body, Change, ChangePlan, Completion, Effect, Fault, FaultExt, FormPart, Header,
    HoleSource, NativeBody, NativeCall, Outcome, Part, PartValue, Readiness, Request, Response, Sent, Stage,
    fault,
};

/// Most polls of one task.
const POLLS_MAX: usize = 200;

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
    Sending { host, stage, changes, plan, left }.go_on::<A>()
}

/// Sends a stage to its end: `wait` is called with the milliseconds that a task wants before it is asked after, and the
/// calls behind a task follow it.
pub fn finish_stage<A: Adapter>(
    host: &FakeHost<'_>,
    stage: Stage,
    changes: &[Change],
    plan: &ChangePlan,
    wait: impl Fn(u64),
) -> Result<Completion, Fault> {
    let calls = plan.native.iter().filter(|call| call.stage == stage).count();
    let mut sending = Sending { host, stage, changes, plan, left: 0 };
    let mut outcome = sending.go_on::<A>()?;
    for _ in 0..POLLS_MAX {
        match outcome {
            Outcome::Failed(fault) => return Err(fault),
            Outcome::Pending(task) => {
                wait(task.poll_after_ms.into());
                outcome = A::poll(host, &task.token)?;
                if matches!(outcome, Outcome::Done(_)) && (sending.left as usize) < calls {
                    outcome = sending.go_on::<A>()?;
                }
            }
            Outcome::Done(completion) => return Ok(completion),
        }
    }
    Err(fault::timeout("the task does not end"))
}

/// A stage under way.
struct Sending<'s> {
    host: &'s FakeHost<'s>,
    stage: Stage,
    changes: &'s [Change],
    plan: &'s ChangePlan,
    /// Calls of the stage that left.
    left: u32,
}

impl Sending<'_> {
    fn go_on<A: Adapter>(&mut self) -> Result<Outcome, Fault> {
        let Self { host, stage, changes, plan, left } = *self;
        let calls: Vec<&NativeCall> = plan.native.iter().filter(|call| call.stage == stage).collect();
        let mut whole = Completion::default();
        if calls.is_empty() {
            return Ok(Outcome::Done(whole));
        }
        host.check(plan)?;
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
            let answer = host.send_call(plan, call)?;
            self.left = self.left.max(u32::try_from(index + 1).unwrap_or(u32::MAX));
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
}

impl FakeHost<'_> {
    /// Refuses a plan that a server would refuse.
    pub(super) fn check(&self, plan: &ChangePlan) -> Result<(), Fault> {
        let problem = self.package.and_then(|package| package.problem_of_plan(plan));
        problem.map_or(Ok(()), |problem| Err(refused("plan", problem)))
    }

    /// Sends a reviewed call; the inner fault is that of an answer that did not come.
    fn send_call(&self, plan: &ChangePlan, call: &NativeCall) -> Result<Result<Response, Fault>, Fault> {
        let (request, auth) = request_of(&self.filled(plan, call)?);
        if self.package.is_some_and(|package| package.fits_a_rule(&request)) {
            return Err(refused("not-approved", format!("{} is a read, and a plan sends it", request.path)));
        }
        self.left.borrow_mut().extend(call.id.clone());
        if call.stage != Stage::Abort {
            self.last.replace(call.id.clone());
        }
        let answer = self.exchange(request, &auth).map_err(|fault| fault.with_effect(Effect::Possible));
        if let Ok(answer) = &answer {
            self.keep(plan, call, answer);
        }
        Ok(answer)
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
                NativeBody::Multipart(parts) => parts.iter_mut().for_each(|part| {
                    if let PartValue::Text(value) = &mut part.value {
                        *value = value.replace(&reference, &text);
                    }
                }),
                NativeBody::None | NativeBody::File(_) => {}
            }
        }
        Ok(filled)
    }

    /// Whether the call takes back one that never left, or ends a job that does not run. A host through which no call left
    /// knows nothing of the apply, and leaves nothing out.
    fn is_left_out(&self, call: &NativeCall) -> bool {
        if call.stage == Stage::Abort {
            return *self.last.borrow() != call.only_after;
        }
        let left = self.left.borrow();
        !left.is_empty() && call.only_after.as_ref().is_some_and(|id| !left.contains(id))
    }
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

/// A part of a form; in the place of a file's bytes stands its reference.
fn part_of(part: &FormPart) -> Part {
    let (filename, content_type, content) = match &part.value {
        PartValue::Text(text) => (None, None, text),
        PartValue::File(file) => (Some(file.name.clone()), Some(file.content_type.clone()), &file.file),
    };
    Part { name: part.name.clone(), filename, content_type, content: content.clone().into_bytes() }
}

/// The request that the host makes of a reviewed call. In the place of a file's bytes stands its reference.
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
        NativeBody::File(file) => Body::Bytes((file.content_type.clone(), file.file.clone().into_bytes())),
        NativeBody::Multipart(parts) => Body::Multipart(parts.iter().map(part_of).collect()),
    };
    (request, call.session.clone().map_or(Auth::None, Auth::session))
}
