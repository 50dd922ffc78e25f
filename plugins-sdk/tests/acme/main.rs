//! The adapter of the authors' guide, and with it the strategies of the SDK: against a device that keeps state.
#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

#[path = "../../examples/acme/main.rs"]
mod acme;
mod conformance;
mod device;

use acme::Acme;
use device::Device;
use heddle_sdk::testing::{FakeHost, send_stage};
use heddle_sdk::{Adapter, Change, ChangePlan, Effect, Fault, FaultExt, Listing, Operation, Stage, Standing};
use serde_json::{Value, json};

fn description() -> Value {
    serde_json::from_str(include_str!("../../examples/acme/description.json")).unwrap()
}

fn change(feature: &str, operation: Operation, payload: &Value) -> Change {
    Change { feature: format!("acme.network.{feature}"), operation, site: None, payload: payload.to_string() }
}

fn stage(host: &FakeHost<'_>, at: Stage, changes: &[Change], plan: &ChangePlan) -> Result<(), Fault> {
    send_stage::<Acme>(host, at, changes, plan).map(drop)
}

fn standing(host: &FakeHost<'_>, changes: &[Change], plan: &ChangePlan) -> Standing {
    Acme::compare(host, changes, &plan.token).unwrap().standing
}

/// Plans, applies, finds it as planned and as it was asked for, and restores.
#[track_caller]
fn there_and_back(change: Change, is_done: impl Fn(&Device) -> bool) {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let before = device.stored.borrow().clone();
    let changes = [change];
    let plan = Acme::plan(&host, &changes).unwrap();
    assert_eq!(*device.writes.borrow(), Vec::<String>::new(), "a plan writes nothing");
    assert!(matches!(standing(&host, &changes, &plan), Standing::Before));
    stage(&host, Stage::Apply, &changes, &plan).unwrap();
    assert!(matches!(standing(&host, &changes, &plan), Standing::After));
    assert!(is_done(&device), "{:?}", device.stored);
    assert_eq!(*device.running.borrow(), *device.stored.borrow(), "what was written is active");
    let again = Acme::plan(&host, &changes).unwrap();
    assert!(again.native.is_empty(), "{:?}", again.native);
    stage(&host, Stage::Restore, &changes, &plan).unwrap();
    assert!(matches!(standing(&host, &changes, &plan), Standing::Before));
    assert_eq!((&*device.stored.borrow(), &*device.running.borrow()), (&before, &before));
}

fn has(device: &Device, name: &str, field: &str, value: &Value) -> bool {
    let stored = device.stored.borrow();
    stored.hosts.values().any(|host| host["name"] == name && host.get(field) == Some(value))
}

#[test]
fn an_object_is_created_and_taken_away_again() {
    let payload = json!({ "name": "nas", "address": "10.0.0.7" });
    there_and_back(change("host", Operation::Create, &payload), |device| {
        has(device, "nas", "address", &json!("10.0.0.7"))
    });
}

#[test]
fn an_object_is_changed_in_what_is_asked_and_nothing_else() {
    let payload = json!({ "name": "printer", "enabled": false });
    there_and_back(change("host", Operation::Update, &payload), |device| {
        has(device, "printer", "enabled", &json!(false)) && has(device, "printer", "note", &json!("floor 2"))
    });
    let (device, description) = (Device::new(), description());
    let plan =
        Acme::plan(&device.host(&description), &[change("host", Operation::Update, &payload)]).unwrap();
    assert_eq!(plan.native[0].json().unwrap(), json!({ "enabled": false }));
}

#[test]
fn an_object_is_deleted_and_written_again_as_it_was() {
    let payload = json!({ "name": "printer" });
    there_and_back(change("host", Operation::Delete, &payload), |device| {
        device.stored.borrow().hosts.is_empty()
    });
}

#[test]
fn settings_are_sent_as_a_whole() {
    let payload = json!({ "dnssec": false });
    there_and_back(change("dns", Operation::Update, &payload), |device| {
        let stored = device.stored.borrow();
        stored.dns["dnssec"] == false && stored.dns["forwarders"] == json!(["9.9.9.9"])
    });
}

#[test]
fn changes_of_one_plan_build_on_each_other_and_are_activated_once() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let changes = [
        change("host", Operation::Create, &json!({ "name": "nas", "address": "10.0.0.7" })),
        change("host", Operation::Update, &json!({ "name": "nas", "note": "rack 1" })),
        change("dns", Operation::Update, &json!({ "forwarders": ["10.0.0.7"] })),
    ];
    let plan = Acme::plan(&host, &changes).unwrap();
    stage(&host, Stage::Apply, &changes, &plan).unwrap();
    let writes = device.writes.borrow().clone();
    assert_eq!(writes.iter().filter(|write| write.contains("/apply")).count(), 1, "{writes:?}");
    assert!(writes.last().unwrap().contains("/apply"), "{writes:?}");
    assert!(has(&device, "nas", "note", &json!("rack 1")));
}

#[test]
fn what_others_change_is_neither_lost_nor_written_over() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let changes = [change("host", Operation::Update, &json!({ "name": "printer", "note": "floor 3" }))];
    let plan = Acme::plan(&host, &changes).unwrap();
    device.put("a1", &json!({ "name": "printer", "address": "10.0.0.8", "enabled": true, "note": "moved" }));
    let refused = stage(&host, Stage::Apply, &changes, &plan).unwrap_err();
    assert!(matches!(refused, Fault::StateMoved(_)), "{refused:?}");
    assert!(device.writes.borrow().is_empty());
    let plan = Acme::plan(&host, &changes).unwrap();
    stage(&host, Stage::Apply, &changes, &plan).unwrap();
    device.put("b2", &json!({ "name": "camera", "address": "10.0.0.3", "enabled": true, "note": "" }));
    let found = Acme::compare(&host, &changes, &plan.token).unwrap();
    assert!(matches!(found.standing, Standing::After));
    assert_eq!(found.foreign, ["host 'camera' was added"]);
}

#[test]
fn a_name_that_was_taken_meanwhile_is_refused_before_anything_is_sent() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let changes = [change("host", Operation::Create, &json!({ "name": "nas", "address": "10.0.0.7" }))];
    let plan = Acme::plan(&host, &changes).unwrap();
    device.put("b2", &json!({ "name": "nas", "address": "10.0.0.3", "enabled": true, "note": "" }));
    assert!(matches!(stage(&host, Stage::Apply, &changes, &plan), Err(Fault::StateMoved(_))));
    assert!(device.writes.borrow().is_empty());
}

#[test]
fn a_refused_value_is_named_by_its_field_and_changes_nothing() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let changes = [change("host", Operation::Create, &json!({ "name": "nas", "address": "127.0.0.1" }))];
    let plan = Acme::plan(&host, &changes).unwrap();
    let refused = stage(&host, Stage::Apply, &changes, &plan).unwrap_err();
    assert!(matches!(refused, Fault::Invalid(_)) && matches!(refused.info().effect, Effect::None));
    let field = &refused.info().fields[0];
    assert_eq!((&*field.pointer, &*field.message), ("/address", "is an address of this device"));
    assert!(matches!(standing(&host, &changes, &plan), Standing::Before));
}

#[test]
fn what_does_not_exist_is_said_and_what_is_there_already_is_not_written() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let absent = [change("host", Operation::Update, &json!({ "name": "nas", "note": "x" }))];
    assert!(matches!(Acme::plan(&host, &absent), Err(Fault::NotFound(_))));
    let taken = [change("host", Operation::Create, &json!({ "name": "printer", "address": "10.0.0.1" }))];
    let refused = Acme::plan(&host, &taken).unwrap_err();
    assert_eq!(refused.info().code.as_deref(), Some("exists"));
    let same = [change("host", Operation::Create, &json!({ "name": "printer", "address": "10.0.0.9" }))];
    assert!(Acme::plan(&host, &same).unwrap().native.is_empty());
    let gone = [change("host", Operation::Delete, &json!({ "name": "nas" }))];
    assert!(Acme::plan(&host, &gone).unwrap().native.is_empty());
}

#[test]
fn lists_are_read_in_pages_and_objects_by_their_names() {
    let (device, description) = (Device::new(), description());
    for n in 0..250 {
        device.put(&format!("x{n:03}"), &json!({ "name": format!("h{n:03}"), "address": "10.1.0.1" }));
    }
    let host = device.host(&description);
    let (mut names, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let listing = Listing { cursor: cursor.as_deref(), ..Listing::of("network.host", 1000) };
        let page = Acme::list_objects(&host, &listing).unwrap();
        assert_eq!((page.total, page.items.len() <= 100), (Some(251), true));
        names.extend(page.items.into_iter().map(|object| object.reference.key));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 251);
    let read = Acme::get_object(&host, "network.host", None, "printer").unwrap();
    assert_eq!(serde_json::from_str::<Value>(&read.body).unwrap()["note"], "floor 2");
    assert!(matches!(Acme::get_object(&host, "network.host", None, "absent"), Err(Fault::NotFound(_))));
    let lease = Acme::get_object(&host, "network.lease", None, "02:00:00:00:00:01").unwrap();
    assert!(lease.body.contains("10.0.0.50"));
    let dns = Acme::list_objects(&host, &Listing::of("network.dns", 10)).unwrap();
    assert_eq!(dns.items[0].reference.key, "settings");
}
