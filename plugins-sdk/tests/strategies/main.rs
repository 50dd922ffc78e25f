//! The strategies of the SDK against an invented device that keeps state: every word of the grammar of bindings.
#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

mod actions;
mod choices;
mod device;
mod expressed;
mod fields;
mod ids;
mod kept;
mod lists;
mod model;
mod nested;
mod positions;
mod random;
mod sets;
mod tasks;
mod units;
mod wire;

use device::Device;
use heddle_sdk::crud::{Encoding, Modelled, Place, Purpose, Vendor, Written};
use heddle_sdk::testing::{FakeHost, send_stage};
use heddle_sdk::{
    Adapter, Auth, Change, ChangePlan, Comparison, Completion, Device as Seen, DevicePage, DeviceProfile,
    Effect, Fault, FaultExt, HoleSource, Host, Listing, ModelPage, Object, ObjectPage, Operation, Outcome,
    Readiness, Request, Response, Sent, Stage, Standing, Task, crud, fault,
};
use serde_json::{Value, json};

/// The adapter of the device; `FORM` says whether it takes forms.
pub(crate) struct Rig<const FORM: bool>;
pub(crate) type Json = Rig<false>;
pub(crate) type Form = Rig<true>;

struct Api {
    is_form: bool,
}

impl Vendor for Api {
    fn session(&self) -> &'static str {
        "api"
    }

    fn encoding(&self) -> Encoding {
        if self.is_form { Encoding::Form } else { Encoding::Json }
    }

    fn places_of_page(&self) -> usize {
        64
    }

    fn content(&self, response: &Response) -> Result<Value, Fault> {
        match response.status {
            200 => response.json(),
            401 => Err(fault::authentication("the login is refused")),
            403 => Err(fault::denied("the user may not read this")),
            404 => Err(fault::not_found("there is no such object")),
            501 => Err(fault::unsupported("this version does not have it")),
            504 => Err(fault::timeout("it took too long")),
            status => Err(fault::generic(format!("status {status}"))),
        }
    }

    fn written(&self, _: Purpose, response: &Response) -> Result<Written, Fault> {
        let answer = response.json().unwrap_or_default();
        match response.status {
            200 if answer.get("task").is_some() => Ok(Written::Task(task())),
            200 => match answer.get("warnings").and_then(Value::as_array) {
                Some(all) => {
                    Ok(Written::Warned(all.iter().map(|one| one.as_str().unwrap().to_owned()).collect()))
                }
                None => Ok(Written::Done),
            },
            401 => Err(fault::authentication("the login is refused")),
            403 => Err(fault::denied("the user may not read this")),
            404 => Err(fault::not_found("there is no such object")),
            501 => Err(fault::unsupported("this version does not have it")),
            504 => Err(fault::timeout("it took too long")),
            409 => Err(fault::conflict("is another by now")),
            422 => Err(fault::invalid("is refused").with_field("/note", "is not liked")),
            status => Err(fault::generic(format!("status {status}")).with_effect(Effect::Possible)),
        }
    }

    fn needs(&self, host: &dyn Host, kind: &str, place: &Place, id: &str) -> Result<Vec<String>, Fault> {
        if kind != "host.guest" {
            return Ok(Vec::new());
        }
        assert!(place.contains_key("node"), "{place:?}");
        let waiting = host.settings()["waiting"].as_str() == Some(id);
        Ok(waiting.then(|| "restart of the guest".to_owned()).into_iter().collect())
    }

    fn expressed(
        &self,
        _: &dyn Host,
        asked: &crud::Asked<'_>,
        changes: &mut Vec<crud::Expressed>,
    ) -> Result<(), Fault> {
        // The device counts in tens.
        if let Some(size) = asked.fields.get("size") {
            let size = size.as_u64().map_or(Value::Null, |size| json!(size * 10));
            changes[0].payload.insert("mtu".to_owned(), size);
        }
        Ok(())
    }

    fn modelled(&self, _: &str, row: &Value, object: &mut Modelled) -> bool {
        if row["id"] == "kept" {
            object.fields.insert("said".to_owned(), row["id"].clone());
        }
        row["id"] != "left-out"
    }
}

impl<const FORM: bool> Rig<FORM> {
    const API: Api = Api { is_form: FORM };
}

impl<const FORM: bool> Adapter for Rig<FORM> {
    fn check(_: &dyn Host) -> Result<DeviceProfile, Fault> {
        Ok(DeviceProfile::new("rig", "1"))
    }
    fn list_devices(_: &dyn Host, _: Option<&str>, _: Option<&str>) -> Result<DevicePage, Fault> {
        let complete = heddle_sdk::Completeness::Complete;
        Ok(DevicePage { items: vec![Seen::named("rig")], next: None, complete })
    }
    fn list_objects(host: &dyn Host, listing: &Listing<'_>) -> Result<ObjectPage, Fault> {
        crud::list_objects(&Self::API, host, listing)
    }
    fn get_object(host: &dyn Host, kind: &str, site: Option<&str>, key: &str) -> Result<Object, Fault> {
        crud::get_object(&Self::API, host, kind, site, key)
    }
    fn list_model(
        host: &dyn Host,
        kind: &str,
        site: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<ModelPage, Fault> {
        crud::list_model(&Self::API, host, kind, site, cursor)
    }
    fn express(host: &dyn Host, changes: &[heddle_sdk::ModelChange]) -> Result<Vec<Vec<Change>>, Fault> {
        crud::express(&Self::API, host, changes)
    }
    fn plan(host: &dyn Host, changes: &[Change]) -> Result<ChangePlan, Fault> {
        crud::plan(&Self::API, host, changes)
    }
    fn ready(host: &dyn Host, at: Stage, _: &[Change], token: &[u8], left: u32) -> Result<Readiness, Fault> {
        crud::ready(&Self::API, host, at, token, left)
    }
    fn judge(
        host: &dyn Host,
        call: Sent,
        answer: Result<Response, Fault>,
        _: &[Change],
        token: &[u8],
    ) -> Result<Outcome, Fault> {
        crud::judge(&Self::API, host, call, answer, token)
    }
    fn poll(host: &dyn Host, _: &[u8]) -> Result<Outcome, Fault> {
        host.send(Request::get("/nodes"), Auth::session("api"))?;
        Ok(Outcome::Done(Completion::default()))
    }
    fn compare(host: &dyn Host, _: &[Change], token: &[u8]) -> Result<Comparison, Fault> {
        crud::compare(&Self::API, host, token)
    }
}

pub(crate) fn description() -> Value {
    serde_json::from_str(include_str!("description.json")).unwrap()
}

pub(crate) fn change(feature: &str, operation: Operation, payload: &Value) -> Change {
    Change { feature: format!("rig.{feature}"), operation, site: None, payload: payload.to_string() }
}

pub(crate) fn create(feature: &str, payload: &Value) -> Change {
    change(feature, Operation::Create, payload)
}

pub(crate) fn update(feature: &str, payload: &Value) -> Change {
    change(feature, Operation::Update, payload)
}

pub(crate) fn delete(feature: &str, payload: &Value) -> Change {
    change(feature, Operation::Delete, payload)
}

/// The fault of what is refused when it is planned; nothing is written.
#[track_caller]
pub(crate) fn refused(device: &Device, changes: &[Change]) -> Fault {
    let description = description();
    let fault = Json::plan(&device.host(&description), changes).map(|plan| plan.native).unwrap_err();
    assert_eq!(*device.writes.borrow(), Vec::<String>::new(), "a plan writes nothing");
    fault
}

/// The standing of the whole plan.
#[track_caller]
pub(crate) fn standing<A: Adapter>(host: &FakeHost<'_>, changes: &[Change], plan: &ChangePlan) -> Standing {
    A::compare(host, changes, &plan.token).unwrap().standing
}

/// Plans and applies; the device has what was asked for, and another plan has nothing to do.
#[track_caller]
pub(crate) fn applied<'a, A: Adapter>(
    device: &'a Device,
    description: &'a Value,
    changes: &[Change],
) -> (FakeHost<'a>, ChangePlan) {
    let host = device.host(description);
    let writes = device.writes.borrow().len();
    let plan = A::plan(&host, changes).unwrap();
    assert_eq!(device.writes.borrow().len(), writes, "a plan writes nothing");
    assert!(!plan.native.is_empty());
    check_holes(&plan);
    let before = standing::<A>(&host, changes, &plan);
    assert!(matches!(before, Standing::Before), "{before:?}");
    send_stage::<A>(&host, Stage::Apply, changes, &plan).unwrap();
    let after = standing::<A>(&host, changes, &plan);
    assert!(matches!(after, Standing::After), "{after:?}");
    let items = A::compare(&host, changes, &plan.token).unwrap().items;
    assert!(
        items.len() == changes.len() && items.iter().all(|item| matches!(item, Standing::After)),
        "{items:?}"
    );
    let again = A::plan(&host, changes);
    let is_done = again.as_ref().map_or(changes.len() > 1, |plan| plan.native.is_empty());
    assert!(is_done, "{again:?}");
    (host, plan)
}

/// Restores as after a restart of the host, which has kept what answers gave.
#[track_caller]
pub(crate) fn restored<'a, A: Adapter>(
    device: &'a Device,
    description: &'a Value,
    (old, plan): (&FakeHost<'_>, &ChangePlan),
    changes: &[Change],
) {
    let host = restarted(device, description, old);
    send_stage::<A>(&host, Stage::Restore, changes, plan).unwrap();
    let standing = standing::<A>(&host, changes, plan);
    assert!(matches!(standing, Standing::Before), "{standing:?}");
}

/// A host that knows what another kept with the change.
pub(crate) fn restarted<'a>(device: &'a Device, description: &'a Value, old: &FakeHost<'_>) -> FakeHost<'a> {
    let host = device.host(description);
    host.holes.replace(old.holes.borrow().clone());
    host.left.replace(old.left.borrow().clone());
    host
}

/// Plans, applies, finds it as planned and as it was asked for, restores, and finds everything as before.
#[track_caller]
pub(crate) fn there_and_back<A: Adapter>(
    changes: &[Change],
    is_done: impl Fn(&Device) -> bool,
) -> ChangePlan {
    let (device, description) = (Device::new(), description());
    let before = device.state.borrow().clone();
    let (host, plan) = applied::<A>(&device, &description, changes);
    assert!(is_done(&device), "{:#?}", device.state.borrow());
    restored::<A>(&device, &description, (&host, &plan), changes);
    assert_eq!(*device.state.borrow(), before);
    if let Some(inverse) = &plan.inverse {
        let device = Device::new();
        applied::<A>(&device, &description, changes);
        let host = device.host(&description);
        let back = A::plan(&host, inverse).unwrap();
        check_holes(&back);
        send_stage::<A>(&host, Stage::Apply, inverse, &back).unwrap();
        let standing = standing::<A>(&host, inverse, &back);
        assert!(matches!(standing, Standing::After), "the staged way back: {standing:?}");
        assert_eq!(*device.state.borrow(), before, "the staged way back: {inverse:?}");
    }
    plan
}

/// The JSON of a call.
pub(crate) fn body(plan: &ChangePlan, at: usize) -> Value {
    plan.native[at].json().unwrap_or(json!(null))
}

fn task() -> Task {
    Task {
        token: b"t1".to_vec(),
        poll_after_ms: 1,
        unreachable_for_ms: None,
        give_up_after_ms: 1000,
        progress_percent: None,
        message: None,
    }
}

/// What the host asks of the calls and holes of a plan.
#[track_caller]
fn check_holes(plan: &ChangePlan) {
    let ids: Vec<&str> = plan.native.iter().filter_map(|call| call.id.as_deref()).collect();
    let first = |id: &str| plan.native.iter().position(|call| call.id.as_deref() == Some(id)).unwrap();
    assert!(ids.iter().all(|id| ids.iter().filter(|other| other == &id).count() == 1), "{ids:?}");
    let after = plan.native.iter().filter_map(|call| call.only_after.as_deref());
    assert!(after.clone().all(|id| ids.contains(&id)), "{ids:?}");
    assert!(plan.holes.len() <= 64);
    for hole in &plan.holes {
        let named = |call: &heddle_sdk::NativeCall| format!("{call:?}").contains(&hole.reference());
        let by = plan.native.iter().position(named).expect("a call names it");
        match &hole.source {
            HoleSource::Answer((call, pointer)) => assert!(first(call) < by && pointer.starts_with('/')),
            HoleSource::Fresh((path, _)) => assert!(path.starts_with('/') && !path.contains("{{"), "{path}"),
            HoleSource::Found => {}
        }
    }
    let known = |name: &str| plan.holes.iter().any(|hole| hole.name == name);
    for call in &plan.native {
        let text = format!("{call:?}");
        let names = text.split("{{hole.").skip(1).filter_map(|rest| Some(rest.split_once("}}")?.0));
        names.for_each(|name| assert!(known(name), "{name} is not declared: {text}"));
    }
}
