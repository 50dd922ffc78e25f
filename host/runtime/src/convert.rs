//! Between the words of the interface and those of the host. JSON texts are
//! parsed here; one that does not parse is a broken border.

use heddle_core::adapter::{
    Area, Availability, Capability, Comparison, Completeness, Completion, Description, DevicePage,
    DeviceProfile, DeviceStatus, Feature, FeatureOperation, Locator, Object, ObjectKind, ObjectPage,
    ObjectRef, RunOutcome, SeenDevice, Stability, Standing, Task,
};
use heddle_core::change::{AdapterPlan, ChangeSpec, Danger, NativeCall, Operation, PlanStep, Stage};
use heddle_core::fault::{Effect, Fault, FaultKind, FieldError};
use serde_json::Value;

use crate::bindings::exports::heddle::adapter::{changes, inventory, lifecycle};
use crate::bindings::heddle::common::types;
use crate::bindings::heddle::host::http;

const PLAN_TOKEN_MAX: usize = 64 << 10;
const TASK_TOKEN_MAX: usize = 4 << 10;
const ENTRIES_MAX: usize = 65_536;
const TOUCHES_MAX: usize = 256;
const TOUCH_CHARS_MAX: usize = 200;
const FOREIGN_MAX: usize = 100;
const FOREIGN_CHARS_MAX: usize = 300;

/// An answer that does not keep to the interface.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unfit(String);

type Fit<T> = Result<T, Unfit>;

fn json(what: &str, text: &str) -> Fit<Value> {
    serde_json::from_str(text).map_err(|error| Unfit(format!("{what} is not JSON: {error}")))
}

fn json_object(what: &str, text: &str) -> Fit<Value> {
    match json(what, text)? {
        object @ Value::Object(_) => Ok(object),
        _ => Err(Unfit(format!("{what} are not a JSON object"))),
    }
}

fn bounded<T>(what: &str, list: Vec<T>) -> Fit<Vec<T>> {
    if list.len() > ENTRIES_MAX {
        return Err(Unfit(format!("{what} has {} entries, {ENTRIES_MAX} are accepted", list.len())));
    }
    Ok(list)
}

/// A list of short texts; one that is too long or holds too many is a broken border.
fn texts(what: &str, list: Vec<String>, most: usize, chars_max: usize) -> Fit<Vec<String>> {
    if list.len() > most {
        return Err(Unfit(format!("{what} has {} entries, {most} are accepted", list.len())));
    }
    if list.iter().any(|text| text.chars().count() > chars_max) {
        return Err(Unfit(format!("{what} has an entry of more than {chars_max} characters")));
    }
    Ok(list)
}

fn token(what: &str, token: Vec<u8>, most: usize) -> Fit<Vec<u8>> {
    if token.len() > most {
        return Err(Unfit(format!("{what} has {} bytes, {most} are accepted", token.len())));
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
        Guest::Unsupported(info) => (FaultKind::Unsupported, info),
        Guest::Generic(info) => (FaultKind::Generic, info),
    };
    let mut message: String = info.message.chars().filter(|c| !c.is_control()).take(1_024).collect();
    heddle_core::redact::mask_text(&mut message);
    Fault {
        kind,
        message,
        code: info.code.map(|code| code.chars().take(80).collect()),
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
            .map(|f| FieldError { pointer: f.pointer, message: f.message })
            .collect(),
    }
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

pub(crate) fn description(d: lifecycle::Description) -> Fit<Description> {
    let features = d.features.into_iter().map(|f| {
        let operations = f.operations.into_iter().map(|o| {
            Ok(FeatureOperation {
                operation: operation(o.operation),
                danger: danger(o.danger),
                payload_schema: json(&format!("the payload schema of '{}'", f.id), &o.payload_schema)?,
                time_limit_ms: o.time_limit_ms,
                invertible: o.invertible,
            })
        });
        Ok(Feature {
            operations: operations.collect::<Fit<_>>()?,
            id: f.id,
            area: f.area,
            title: f.title,
            kind: f.kind,
            natural_key: f.natural_key,
        })
    });
    Ok(Description {
        features: features.collect::<Fit<_>>()?,
        vendor: d.vendor,
        title: d.title,
        areas: d.areas.into_iter().map(|a| Area { id: a.id, title: a.title }).collect(),
        kinds: d.kinds.into_iter().map(|k| ObjectKind { id: k.id, area: k.area, title: k.title }).collect(),
    })
}

pub(crate) fn profile(p: lifecycle::DeviceProfile) -> DeviceProfile {
    let capability = |c: lifecycle::Capability| Capability {
        id: c.id,
        available: match c.available {
            lifecycle::Availability::Yes => Availability::Yes,
            lifecycle::Availability::No => Availability::No,
            lifecycle::Availability::Unknown => Availability::Unknown,
        },
        reason: c.reason,
    };
    DeviceProfile {
        product: p.product,
        version: p.version,
        fingerprint: p.fingerprint,
        capabilities: p.capabilities.into_iter().map(capability).collect(),
        facts: p.facts.into_iter().map(|fact| (fact.key, fact.value)).collect(),
    }
}

fn completeness(complete: inventory::Completeness) -> Completeness {
    match complete {
        inventory::Completeness::Complete => Completeness::Complete,
        inventory::Completeness::Partial => Completeness::Partial,
        inventory::Completeness::RightsLimited => Completeness::RightsLimited,
        inventory::Completeness::Unknown => Completeness::Unknown,
    }
}

fn device(d: inventory::Device) -> Fit<SeenDevice> {
    let attributes = json_object("a device's attributes", &d.attributes)?;
    let measurements = json_object("a device's measurements", &d.measurements)?;
    Ok(SeenDevice {
        identity: d.identity,
        name: d.name,
        kind: d.kind,
        status: match d.status {
            inventory::Status::Online => DeviceStatus::Online,
            inventory::Status::Offline => DeviceStatus::Offline,
            inventory::Status::Unknown => DeviceStatus::Unknown,
        },
        model: d.model,
        serial: d.serial,
        firmware: d.firmware,
        mac: d.mac,
        addresses: d.addresses,
        site: d.site,
        attributes,
        measurements,
    })
}

pub(crate) fn devices(page: inventory::DevicePage) -> Fit<DevicePage> {
    Ok(DevicePage {
        items: bounded("a page", page.items)?.into_iter().map(device).collect::<Fit<_>>()?,
        next: page.next,
        complete: completeness(page.complete),
    })
}

fn object_ref(r: types::ObjectRef) -> ObjectRef {
    let locator = |l: types::Locator| Locator {
        surface: l.surface,
        value: l.value,
        stability: match l.stability {
            types::Stability::Durable => Stability::Durable,
            types::Stability::UntilRecreate => Stability::UntilRecreate,
            types::Stability::UntilWrite => Stability::UntilWrite,
        },
    };
    ObjectRef {
        kind: r.kind,
        site: r.site,
        key: r.key,
        locators: r.locators.into_iter().map(locator).collect(),
    }
}

pub(crate) fn object(o: inventory::Object) -> Fit<Object> {
    Ok(Object { body: json("an object", &o.body)?, reference: object_ref(o.reference), revision: o.revision })
}

pub(crate) fn objects(page: inventory::ObjectPage) -> Fit<ObjectPage> {
    Ok(ObjectPage {
        items: bounded("a page", page.items)?.into_iter().map(object).collect::<Fit<_>>()?,
        next: page.next,
        total: page.total,
        complete: completeness(page.complete),
    })
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

fn change(c: changes::Change) -> Fit<ChangeSpec> {
    Ok(ChangeSpec {
        payload: json("an inverse", &c.payload)?,
        feature: c.feature,
        operation: operation(c.operation),
        site: c.site,
    })
}

pub(crate) fn to_guest_stage(stage: Stage) -> changes::Stage {
    match stage {
        Stage::Apply => changes::Stage::Apply,
        Stage::Confirm => changes::Stage::Confirm,
        Stage::Undo => changes::Stage::Undo,
        Stage::Restore => changes::Stage::Restore,
    }
}

pub(crate) fn plan(p: changes::ChangePlan) -> Fit<AdapterPlan> {
    let optional = |what: &str, text: Option<String>| text.map(|text| json(what, &text)).transpose();
    let step = |s: changes::PlanStep| {
        Ok(PlanStep {
            summary: s.summary,
            before: optional("a plan's before", s.before)?,
            after: optional("a plan's after", s.after)?,
        })
    };
    let native = |n: changes::NativeCall| {
        Ok(NativeCall {
            stage: match n.stage {
                changes::Stage::Apply => Stage::Apply,
                changes::Stage::Confirm => Stage::Confirm,
                changes::Stage::Undo => Stage::Undo,
                changes::Stage::Restore => Stage::Restore,
            },
            method: method(n.method).as_str().to_owned(),
            path: n.path,
            body: optional("a planned call's body", n.body)?,
        })
    };
    let inverse = p.inverse.map(|inverse| inverse.into_iter().map(change).collect::<Fit<_>>()).transpose()?;
    Ok(AdapterPlan {
        steps: bounded("a plan", p.steps)?.into_iter().map(step).collect::<Fit<_>>()?,
        native: bounded("a plan", p.native)?.into_iter().map(native).collect::<Fit<_>>()?,
        danger: danger(p.danger),
        lockout_risk: p.lockout_risk,
        warnings: p.warnings,
        base_digest: p.base_digest,
        inverse,
        holds: p.holds,
        undo_takes_all: p.undo_takes_all,
        touches: texts("what a plan touches", p.touches, TOUCHES_MAX, TOUCH_CHARS_MAX)?,
        token: token("a plan's token", p.token, PLAN_TOKEN_MAX)?,
    })
}

pub(crate) fn outcome(outcome: types::Outcome) -> Fit<RunOutcome> {
    Ok(match outcome {
        types::Outcome::Done(done) => RunOutcome::Done(Completion {
            created: done.created.into_iter().map(object_ref).collect(),
            warnings: done.warnings,
            needs: done.needs,
        }),
        types::Outcome::Pending(task) => RunOutcome::Pending(Task {
            token: token("a task's token", task.token, TASK_TOKEN_MAX)?,
            poll_after_ms: task.poll_after_ms,
            unreachable_for_ms: task.unreachable_for_ms,
            give_up_after_ms: task.give_up_after_ms,
            progress_percent: task.progress_percent,
            message: task.message,
        }),
        types::Outcome::Failed(failed) => RunOutcome::Failed(fault(failed)),
    })
}

pub(crate) fn comparison(found: changes::Comparison) -> Fit<Comparison> {
    Ok(Comparison {
        standing: standing(found.standing)?,
        items: bounded("a comparison", found.items)?.into_iter().map(standing).collect::<Fit<_>>()?,
        foreign: texts("what others changed", found.foreign, FOREIGN_MAX, FOREIGN_CHARS_MAX)?,
    })
}

fn standing(standing: changes::Standing) -> Fit<Standing> {
    Ok(match standing {
        changes::Standing::Before => Standing::Before,
        changes::Standing::After => Standing::After,
        changes::Standing::Stored(needs) => Standing::Stored(needs),
        changes::Standing::Other(what) => Standing::Other(json("what differs", &what)?),
    })
}
