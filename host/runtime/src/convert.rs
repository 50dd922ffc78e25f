//! Between the words of the interface and those of the host. JSON texts are
//! parsed here; one that does not parse is a broken border.

mod body;
mod occasion;
mod unfit;
mod weigh;

pub(crate) use occasion::{given_event, hook_answer, nothing};
pub(crate) use unfit::Unfit;
pub(crate) use weigh::Weigh;

use heddle_core::adapter::{
    Availability, CallOutcome, Capability, Comparison, Completeness, Completion, DevicePage, DeviceProfile,
    DeviceStatus, ItemResult, Locator, ModelChange, ModelObject, ModelPage, Object, ObjectPage, ObjectRef,
    Origin, Readiness, SeenDevice, SitePage, Stability, Standing, Task, VendorSite,
};
use heddle_core::bounds::{self, JsonRoom, KEY_BYTES_MAX, OBJECT_TEXT_BYTES_MAX, TEXT_BYTES_MAX};
use heddle_core::change::{
    AdapterPlan, ChangeSpec, Danger, Hole, HoleSource, NativeCall, Operation, PlanStep, Stage,
};
use heddle_core::fault::{Effect, Fault, FaultKind, FieldError};
use heddle_core::file::{FILE_REFERENCE, digest_of};
use serde_json::Value;

use crate::api::KeptFile;
use crate::bindings::exports::heddle::adapter::{changes, inventory, lifecycle};
use crate::bindings::heddle::common::types;
use crate::bindings::heddle::host::http;
use crate::egress::request::Response;
use crate::runtime::Tap;

const PLAN_TOKEN_MAX: usize = 64 << 10;
const TASK_TOKEN_MAX: usize = 4 << 10;
const ENTRIES_MAX: usize = 65_536;
/// Names of what a plan touches; more are left out.
const TOUCHES_MAX: usize = 256;
const TOUCH_BYTES_MAX: usize = 800;
/// What others changed: more is left out.
const FOREIGN_MAX: usize = 100;
const FOREIGN_BYTES_MAX: usize = 1_200;
/// Calls of a plan, of all stages: each is recorded and judged by itself.
const PLAN_CALLS_MAX: usize = 2_000;
/// Changes of the vendor's own that all changes of a plan in the words of the model are together.
const EXPRESSED_MAX: usize = 256;
/// Bytes of a plan: what it shows and what it sends.
const PLAN_BYTES_MAX: usize = 4 << 20;
/// Sentences of one kind in an answer; more are left out.
const TEXTS_MAX: usize = 100;
/// Capabilities or facts of a device; more are left out.
const FACTS_MAX: usize = 1_000;
/// Locators of an object, and addresses of a device; more are left out.
const LOCATORS_MAX: usize = 64;
const FAULT_MESSAGE_CHARS_MAX: usize = 1_024;
const FAULT_CODE_CHARS_MAX: usize = 80;
/// Fields that a fault names; more are left out.
const FAULT_FIELDS_MAX: usize = 32;
const FAULT_FIELD_CHARS_MAX: usize = 300;

type Fit<T> = Result<T, Unfit>;

/// Texts of an answer, and room for the JSON in all of them.
#[derive(Default)]
struct Reader {
    room: JsonRoom,
}

impl Reader {
    fn json(&mut self, what: &str, text: &str) -> Fit<Value> {
        self.room.take(text.as_bytes()).map_err(|too_much| Unfit::Size(format!("{what} {too_much}")))?;
        serde_json::from_str(text).map_err(|error| Unfit::Form(format!("{what} is not JSON: {error}")))
    }

    /// JSON that is shown, not sent: its texts are cut.
    fn shown(&mut self, what: &str, text: &str) -> Fit<Value> {
        let mut value = self.json(what, text)?;
        bounds::cut_json(&mut value, OBJECT_TEXT_BYTES_MAX);
        Ok(value)
    }

    fn shown_object(&mut self, what: &str, text: &str) -> Fit<Value> {
        match self.shown(what, text)? {
            object @ Value::Object(_) => Ok(object),
            _ => Err(Unfit::Form(format!("{what} are not a JSON object"))),
        }
    }
}

fn text(text: String) -> String {
    bounds::cut_to(text, TEXT_BYTES_MAX)
}

/// Sentences for people: the first of them, each cut.
fn texts(list: Vec<String>) -> Vec<String> {
    list.into_iter().take(TEXTS_MAX).map(text).collect()
}

/// What names something is taken whole or not at all.
fn key(what: &str, key: String) -> Fit<String> {
    if key.len() > KEY_BYTES_MAX {
        return Err(Unfit::Name(format!("{what} has {} bytes, {KEY_BYTES_MAX} are accepted", key.len())));
    }
    Ok(key)
}

fn optional_key(what: &str, text: Option<String>) -> Fit<Option<String>> {
    text.map(|text| key(what, text)).transpose()
}

fn cursor(next: Option<String>) -> Fit<Option<String>> {
    optional_key("a cursor", next)
}

fn bounded<T>(what: &str, list: Vec<T>) -> Fit<Vec<T>> {
    if list.len() > ENTRIES_MAX {
        return Err(Unfit::Size(format!("{what} has {} entries, {ENTRIES_MAX} are accepted", list.len())));
    }
    Ok(list)
}

/// The entries of a page, and how complete it is without those whose names are too long.
fn entries<T, R>(
    list: Vec<T>,
    complete: Completeness,
    mut fit: impl FnMut(T) -> Fit<R>,
) -> Fit<(Vec<R>, Completeness)> {
    let (mut entries, mut complete) = (Vec::new(), complete);
    for entry in bounded("a page", list)? {
        match fit(entry) {
            Ok(entry) => entries.push(entry),
            Err(Unfit::Name(_)) if complete == Completeness::Complete => complete = Completeness::Partial,
            Err(Unfit::Name(_)) => {}
            Err(unfit) => return Err(unfit),
        }
    }
    Ok((entries, complete))
}

/// The first so many of these texts, each cut to so many bytes: they quote names of the device.
fn short(list: Vec<String>, most: usize, bytes_max: usize) -> Vec<String> {
    list.into_iter().take(most).map(|text| bounds::cut_to(text, bytes_max)).collect()
}

fn token(what: &str, token: Vec<u8>, most: usize) -> Fit<Vec<u8>> {
    if token.len() > most {
        return Err(Unfit::Size(format!("{what} has {} bytes, {most} are accepted", token.len())));
    }
    Ok(token)
}

pub(crate) fn method(method: http::Method) -> ::http::Method {
    match method {
        http::Method::Get => ::http::Method::GET,
        http::Method::Head => ::http::Method::HEAD,
        http::Method::Post => ::http::Method::POST,
        http::Method::Put => ::http::Method::PUT,
        http::Method::Patch => ::http::Method::PATCH,
        http::Method::Delete => ::http::Method::DELETE,
        http::Method::Options => ::http::Method::OPTIONS,
    }
}

pub(crate) fn fault(fault: types::Fault) -> Fault {
    use types::Fault as Guest;
    let (kind, info) = match fault {
        Guest::Connection(info) => (FaultKind::Connection, info),
        Guest::Authentication(info) => (FaultKind::Authentication, info),
        Guest::Denied(info) => (FaultKind::Denied, info),
        Guest::Timeout(info) => (FaultKind::Timeout, info),
        Guest::NotFound(info) => (FaultKind::NotFound, info),
        Guest::RateLimit(info) => (FaultKind::RateLimit, info),
        Guest::Busy(info) => (FaultKind::Busy, info),
        Guest::NotReady(info) => (FaultKind::NotReady, info),
        Guest::Invalid(info) => (FaultKind::Invalid, info),
        Guest::StateMoved(info) => (FaultKind::StateMoved, info),
        Guest::Conflict(info) => (FaultKind::Conflict, info),
        Guest::Unsupported(info) => (FaultKind::Unsupported, info),
        Guest::Generic(info) => (FaultKind::Generic, info),
    };
    Fault {
        kind,
        message: line(&info.message, FAULT_MESSAGE_CHARS_MAX),
        code: info.code.map(|code| line(&code, FAULT_CODE_CHARS_MAX)),
        upstream_status: info.upstream_status,
        retry_after_ms: info.retry_after_ms,
        effect: match info.effect {
            types::Effect::None => Effect::None,
            types::Effect::Possible => Effect::Possible,
            types::Effect::Certain => Effect::Certain,
        },
        fields: info
            .fields
            .into_iter()
            .take(FAULT_FIELDS_MAX)
            .map(|f| FieldError {
                pointer: line(&f.pointer, FAULT_FIELD_CHARS_MAX),
                message: line(&f.message, FAULT_FIELD_CHARS_MAX),
            })
            .collect(),
    }
}

/// One line of so many characters, secrets masked.
fn line(text: &str, most: usize) -> String {
    let mut line: String = text.chars().filter(|c| !c.is_control()).take(most).collect();
    if text.chars().nth(most).is_some() {
        line.push('…');
    }
    heddle_core::redact::mask_text(&mut line);
    line
}

pub(crate) fn to_guest_fault(fault: Fault) -> types::Fault {
    use types::Fault as Guest;
    let info = types::FaultInfo {
        message: fault.message,
        code: fault.code,
        upstream_status: fault.upstream_status,
        retry_after_ms: fault.retry_after_ms,
        effect: match fault.effect {
            Effect::None => types::Effect::None,
            Effect::Possible => types::Effect::Possible,
            Effect::Certain => types::Effect::Certain,
        },
        fields: fault
            .fields
            .into_iter()
            .map(|f| types::FieldError { pointer: f.pointer, message: f.message })
            .collect(),
    };
    match fault.kind {
        FaultKind::Connection => Guest::Connection(info),
        FaultKind::Authentication => Guest::Authentication(info),
        FaultKind::Denied => Guest::Denied(info),
        FaultKind::Timeout => Guest::Timeout(info),
        FaultKind::NotFound => Guest::NotFound(info),
        FaultKind::RateLimit => Guest::RateLimit(info),
        FaultKind::Busy => Guest::Busy(info),
        FaultKind::NotReady => Guest::NotReady(info),
        FaultKind::Invalid => Guest::Invalid(info),
        FaultKind::StateMoved => Guest::StateMoved(info),
        FaultKind::Conflict => Guest::Conflict(info),
        FaultKind::Unsupported => Guest::Unsupported(info),
        FaultKind::Generic => Guest::Generic(info),
    }
}

fn danger(danger: lifecycle::Danger) -> Danger {
    match danger {
        lifecycle::Danger::Normal => Danger::Normal,
        lifecycle::Danger::Destructive => Danger::Destructive,
        lifecycle::Danger::Catastrophic => Danger::Catastrophic,
    }
}

fn operation(operation: lifecycle::Operation) -> Operation {
    match operation {
        lifecycle::Operation::Create => Operation::Create,
        lifecycle::Operation::Update => Operation::Update,
        lifecycle::Operation::Delete => Operation::Delete,
    }
}

pub(crate) fn profile(p: lifecycle::DeviceProfile) -> Fit<DeviceProfile> {
    let capability = |c: lifecycle::Capability| Capability {
        id: text(c.id),
        available: match c.available {
            lifecycle::Availability::Yes => Availability::Yes,
            lifecycle::Availability::No => Availability::No,
            lifecycle::Availability::Unknown => Availability::Unknown,
        },
        reason: c.reason.map(text),
    };
    let facts = p.facts.into_iter().take(FACTS_MAX).map(|fact| (text(fact.key), text(fact.value)));
    Ok(DeviceProfile {
        product: text(p.product),
        version: text(p.version),
        fingerprint: key("a fingerprint", p.fingerprint)?,
        capabilities: p.capabilities.into_iter().take(FACTS_MAX).map(capability).collect(),
        facts: facts.collect(),
    })
}

fn completeness(complete: inventory::Completeness) -> Completeness {
    match complete {
        inventory::Completeness::Complete => Completeness::Complete,
        inventory::Completeness::Partial => Completeness::Partial,
        inventory::Completeness::RightsLimited => Completeness::RightsLimited,
        inventory::Completeness::Unknown => Completeness::Unknown,
    }
}

fn device(reader: &mut Reader, d: inventory::Device) -> Fit<SeenDevice> {
    let attributes = reader.shown_object("a device's attributes", &d.attributes)?;
    let measurements = reader.shown_object("a device's measurements", &d.measurements)?;
    Ok(SeenDevice {
        // Too long an identity costs the device, and not the others of its page: the server leaves it out.
        identity: d.identity,
        name: text(d.name),
        kind: text(d.kind),
        status: match d.status {
            inventory::Status::Online => DeviceStatus::Online,
            inventory::Status::Offline => DeviceStatus::Offline,
            inventory::Status::Unknown => DeviceStatus::Unknown,
        },
        model: d.model.map(text),
        serial: d.serial.map(text),
        firmware: d.firmware.map(text),
        mac: d.mac.map(text),
        addresses: d.addresses.into_iter().take(LOCATORS_MAX).map(text).collect(),
        site: optional_key("a device's site", d.site)?,
        attributes,
        measurements,
    })
}

pub(crate) fn devices(page: inventory::DevicePage) -> Fit<DevicePage> {
    let mut reader = Reader::default();
    let (items, complete) =
        entries(page.items, completeness(page.complete), |item| device(&mut reader, item))?;
    Ok(DevicePage { items, next: cursor(page.next)?, complete })
}

fn object_ref(r: types::ObjectRef) -> Fit<ObjectRef> {
    let locator = |l: types::Locator| {
        Ok(Locator {
            surface: key("a locator", l.surface)?,
            value: key("a locator", l.value)?,
            stability: match l.stability {
                types::Stability::Durable => Stability::Durable,
                types::Stability::UntilRecreate => Stability::UntilRecreate,
                types::Stability::UntilWrite => Stability::UntilWrite,
            },
        })
    };
    Ok(ObjectRef {
        kind: key("an object's kind", r.kind)?,
        site: optional_key("an object's site", r.site)?,
        key: key("an object's key", r.key)?,
        locators: r.locators.into_iter().take(LOCATORS_MAX).map(locator).collect::<Fit<_>>()?,
    })
}

fn object_in(reader: &mut Reader, o: inventory::Object) -> Fit<Object> {
    Ok(Object {
        body: reader.shown("an object", &o.body)?,
        reference: object_ref(o.reference)?,
        revision: optional_key("an object's revision", o.revision)?,
    })
}

pub(crate) fn object(o: inventory::Object) -> Fit<Object> {
    object_in(&mut Reader::default(), o)
}

pub(crate) fn objects(page: inventory::ObjectPage) -> Fit<ObjectPage> {
    let mut reader = Reader::default();
    let (items, complete) =
        entries(page.items, completeness(page.complete), |item| object_in(&mut reader, item))?;
    Ok(ObjectPage { items, next: cursor(page.next)?, total: page.total, complete })
}

pub(crate) fn sites(page: inventory::SitePage) -> Fit<SitePage> {
    let site = |site: inventory::VendorSite| {
        Ok(VendorSite { id: key("a site's id", site.id)?, name: text(site.name) })
    };
    Ok(SitePage {
        items: bounded("a page", page.items)?.into_iter().map(site).collect::<Fit<_>>()?,
        next: cursor(page.next)?,
    })
}

fn model_object(reader: &mut Reader, o: inventory::ModelObject) -> Fit<ModelObject> {
    Ok(ModelObject {
        fields: reader.shown_object("the fields of an object of the model", &o.fields)?,
        key: key("the key of an object of the model", o.key)?,
        label: text(o.label),
        origin: match o.origin {
            inventory::Origin::Own => Origin::Own,
            inventory::Origin::Vendor => Origin::Vendor,
            inventory::Origin::Derived => Origin::Derived,
            inventory::Origin::Unknown => Origin::Unknown,
        },
        device: optional_key("a device's identity", o.device)?,
        native: o.native.map(object_ref).transpose()?,
    })
}

pub(crate) fn model(page: inventory::ModelPage) -> Fit<ModelPage> {
    let mut reader = Reader::default();
    let (items, complete) =
        entries(page.items, completeness(page.complete), |item| model_object(&mut reader, item))?;
    Ok(ModelPage { items, next: cursor(page.next)?, complete })
}

pub(crate) fn to_guest_changes(specs: &[ChangeSpec]) -> Vec<changes::Change> {
    let to_guest = |spec: &ChangeSpec| changes::Change {
        feature: spec.feature.clone(),
        operation: match spec.operation {
            Operation::Create => lifecycle::Operation::Create,
            Operation::Update => lifecycle::Operation::Update,
            Operation::Delete => lifecycle::Operation::Delete,
        },
        site: spec.site.clone(),
        payload: spec.payload.to_string(),
    };
    specs.iter().map(to_guest).collect()
}

fn change(reader: &mut Reader, c: changes::Change) -> Fit<ChangeSpec> {
    Ok(ChangeSpec {
        payload: reader.json("a change", &c.payload)?,
        feature: c.feature,
        operation: operation(c.operation),
        site: c.site,
    })
}

pub(crate) fn to_guest_model_changes(asked: &[ModelChange]) -> Vec<changes::ModelChange> {
    let to_guest = |change: &ModelChange| changes::ModelChange {
        kind: change.kind.clone(),
        verb: change.verb.clone(),
        site: change.site.clone(),
        payload: change.payload.to_string(),
    };
    asked.iter().map(to_guest).collect()
}

/// What changes in the words of the model are in the vendor's own, for each one.
pub(crate) fn expressed(all: Vec<Vec<changes::Change>>) -> Fit<Vec<Vec<ChangeSpec>>> {
    let mut reader = Reader::default();
    let changes: usize = all.iter().map(Vec::len).sum();
    if changes > EXPRESSED_MAX {
        return Err(Unfit::Size(format!("it takes {changes} changes, {EXPRESSED_MAX} are accepted")));
    }
    let mut one =
        |own: Vec<changes::Change>| own.into_iter().map(|c| change(&mut reader, c)).collect::<Fit<Vec<_>>>();
    all.into_iter().map(&mut one).collect()
}

pub(crate) fn to_guest_stage(stage: Stage) -> changes::Stage {
    match stage {
        Stage::Apply => changes::Stage::Apply,
        Stage::Confirm => changes::Stage::Confirm,
        Stage::Undo => changes::Stage::Undo,
        Stage::Restore => changes::Stage::Restore,
        Stage::Abort => changes::Stage::Abort,
    }
}

pub(crate) fn plan(p: changes::ChangePlan) -> Fit<AdapterPlan> {
    let bytes = p.bytes();
    if bytes > PLAN_BYTES_MAX {
        return Err(Unfit::Size(format!("a plan has {bytes} bytes, {PLAN_BYTES_MAX} are accepted")));
    }
    let mut reader = Reader::default();
    let mut steps = Vec::new();
    for step in bounded("a plan", p.steps)? {
        let before = step.before.map(|before| reader.shown("a plan's before", &before)).transpose()?;
        let after = step.after.map(|after| reader.shown("a plan's after", &after)).transpose()?;
        steps.push(PlanStep { summary: text(step.summary), before, after });
    }
    if p.native.len() > PLAN_CALLS_MAX {
        let calls = p.native.len();
        return Err(Unfit::Size(format!("a plan has {calls} calls, {PLAN_CALLS_MAX} are accepted")));
    }
    let mut native = Vec::new();
    for call in p.native {
        // What is sent is not cut.
        let mut sent = NativeCall {
            id: optional_key("a planned call's id", call.id)?,
            only_after: optional_key("the call that a planned call is after", call.only_after)?,
            headers: bounded("a planned call's headers", call.headers)?,
            session: optional_key("a planned call's session", call.session)?,
            repeatable: call.repeatable,
            ..NativeCall::new(stage(call.stage), method(call.method).as_str(), call.path)
        };
        body::set(&mut sent, call.body, &mut reader)?;
        native.push(sent);
    }
    let inverse =
        p.inverse.map(|inverse| inverse.into_iter().map(|c| change(&mut reader, c)).collect::<Fit<_>>());
    Ok(AdapterPlan {
        steps,
        native,
        holes: bounded("a plan's holes", p.holes)?.into_iter().map(hole).collect(),
        danger: danger(p.danger),
        lockout_risk: p.lockout_risk,
        warnings: texts(p.warnings),
        also: texts(p.also),
        base_digest: token("a plan's digest", p.base_digest, KEY_BYTES_MAX)?,
        inverse: inverse.transpose()?,
        holds: p.holds,
        undo_takes_all: p.undo_takes_all,
        touches: short(p.touches, TOUCHES_MAX, TOUCH_BYTES_MAX),
        token: token("a plan's token", p.token, PLAN_TOKEN_MAX)?,
    })
}

fn hole(hole: changes::Hole) -> Hole {
    Hole {
        name: hole.name,
        source: match hole.source {
            changes::HoleSource::Answer((call, pointer)) => HoleSource::Answer { call, pointer },
            changes::HoleSource::Fresh((path, pointer)) => HoleSource::Fresh { path, pointer },
            changes::HoleSource::Found => HoleSource::Found,
        },
        pattern: hole.pattern,
        max_bytes: hole.max_bytes,
    }
}

fn stage(stage: changes::Stage) -> Stage {
    match stage {
        changes::Stage::Apply => Stage::Apply,
        changes::Stage::Confirm => Stage::Confirm,
        changes::Stage::Undo => Stage::Undo,
        changes::Stage::Restore => Stage::Restore,
        changes::Stage::Abort => Stage::Abort,
    }
}

pub(crate) fn readiness(readiness: changes::Readiness) -> Fit<Readiness> {
    Ok(match readiness {
        changes::Readiness::Send(start) => Readiness::Send { from: start.from, found: found(start.found)? },
        changes::Readiness::Nothing(done) => Readiness::Nothing(completion(done)?),
    })
}

/// An answer as the component sees it, told to the tap.
pub(crate) fn to_guest_response(response: Response, tap: Option<&Tap>) -> http::Response {
    if let Some(tap) = tap {
        tap("http.body", &response.body);
        for (name, value) in &response.headers {
            tap("http.header", name.as_bytes());
            tap("http.header", value);
        }
        if let Some(reason) = &response.reason {
            tap("http.reason", reason.as_bytes());
        }
    }
    // From here on the bytes are the component's own memory, which has a bound of its own.
    drop(response.held);
    http::Response {
        status: response.status,
        reason: response.reason,
        headers: response.headers.into_iter().map(|(name, value)| http::Header { name, value }).collect(),
        body: response.body,
        elapsed_ms: u32::try_from(response.elapsed.as_millis()).unwrap_or(u32::MAX),
    }
}

/// A file that the host keeps, as a component knows it.
pub(crate) fn to_guest_file(file: &KeptFile) -> http::SavedFile {
    http::SavedFile {
        reference: format!("{FILE_REFERENCE}{}", file.sha256),
        size_bytes: file.size_bytes,
        content_type: file.content_type.clone(),
    }
}

/// The digest of the file that a component answered.
pub(crate) fn saved_file(file: http::SavedFile) -> Fit<String> {
    let digest = digest_of(&file.reference).map(str::to_owned);
    digest
        .ok_or_else(|| Unfit::Form("the component answered a text that is no reference of a file".to_owned()))
}

fn completion(done: types::Completion) -> Fit<Completion> {
    Ok(Completion {
        created: done.created.into_iter().take(FACTS_MAX).map(object_ref).collect::<Fit<_>>()?,
        warnings: texts(done.warnings),
        needs: texts(done.needs),
        found: found(done.found)?,
        items: done.items.into_iter().take(FACTS_MAX).map(item_result).collect(),
    })
}

fn item_result(item: types::ItemResult) -> ItemResult {
    ItemResult { index: item.index, failed: item.failed.map(fault) }
}

fn found(found: Vec<types::FoundValue>) -> Fit<Vec<(String, Value)>> {
    let mut reader = Reader::default();
    let mut value = |found: types::FoundValue| {
        let text = key("a hole's value", found.value)?;
        Ok((key("a hole's name", found.hole)?, reader.json("a hole's value", &text)?))
    };
    found.into_iter().take(TEXTS_MAX).map(&mut value).collect()
}

pub(crate) fn outcome(outcome: types::Outcome) -> Fit<CallOutcome> {
    Ok(match outcome {
        types::Outcome::Done(done) => CallOutcome::Done(completion(done)?),
        types::Outcome::Pending(task) => CallOutcome::Pending(Task {
            token: token("a task's token", task.token, TASK_TOKEN_MAX)?,
            poll_after_ms: task.poll_after_ms,
            unreachable_for_ms: task.unreachable_for_ms,
            give_up_after_ms: task.give_up_after_ms,
            progress_percent: task.progress_percent,
            message: task.message.map(text),
        }),
        types::Outcome::Failed(failed) => CallOutcome::Failed(fault(failed)),
    })
}

/// What an action of a plugin answered.
pub(crate) fn action_output(text: String) -> Fit<Value> {
    Reader::default().json("the answer of an action", &text)
}

/// What a plugin says of itself.
pub(crate) fn check_output(text: Option<String>) -> Fit<Option<Value>> {
    text.map(|text| Reader::default().shown("the answer of a check", &text)).transpose()
}

pub(crate) fn comparison(found: changes::Comparison) -> Fit<Comparison> {
    let mut reader = Reader::default();
    let whole = standing(&mut reader, found.standing)?;
    let items = bounded("a comparison", found.items)?;
    Ok(Comparison {
        standing: whole,
        items: items.into_iter().map(|item| standing(&mut reader, item)).collect::<Fit<_>>()?,
        foreign: short(found.foreign, FOREIGN_MAX, FOREIGN_BYTES_MAX),
    })
}

fn standing(reader: &mut Reader, standing: changes::Standing) -> Fit<Standing> {
    Ok(match standing {
        changes::Standing::Before => Standing::Before,
        changes::Standing::After => Standing::After,
        changes::Standing::Adjusted(what) => Standing::Adjusted(reader.shown("what was adjusted", &what)?),
        changes::Standing::Stored(needs) => Standing::Stored(texts(needs)),
        changes::Standing::MovedOn(what) => Standing::MovedOn(reader.shown("what moved on", &what)?),
        changes::Standing::Other(what) => Standing::Other(reader.shown("what differs", &what)?),
        changes::Standing::Unseen => Standing::Unseen,
    })
}

#[cfg(test)]
mod tests;
