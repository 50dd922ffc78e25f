//! Fields: what is absent, emptied, rewritten, laid over or never shown.

use heddle_sdk::testing::send_stage;
use heddle_sdk::{Adapter, Fault, FaultExt, Stage, Standing};
use serde_json::json;

use super::*;

const SECRET: &str = "hdl-secret:00112233445566778899aabbccddeeff";

/// A device with a profile that has these fields.
fn with_profile(more: &Value) -> Device {
    let device = Device::new();
    let mut profile = device::fields(&json!({ "id": "z", "name": "p" }));
    profile.extend(device::fields(more));
    device.others("/profiles", |rows| rows.push(profile));
    device
}

fn profile(device: &Device) -> device::Fields {
    device.row("/profiles", "name", "p").unwrap()
}

fn guest(device: &Device) -> device::Fields {
    device.row("/nodes/n1/guests", "vmid", "100").unwrap()
}

/// The form of the first call.
fn form(plan: &ChangePlan) -> Vec<(String, String)> {
    match &plan.native[0].body {
        heddle_sdk::NativeBody::Form(form) => form.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn sparse_an_absent_field_is_what_its_default_says() {
    let device = Device::new();
    let description = description();
    let host = device.host(&description);
    for same in
        [json!({ "vmid": 100, "onboot": false }), json!({ "vmid": 100, "onboot": null, "memo": null })]
    {
        assert!(Form::plan(&host, &[update("guest", &same)]).unwrap().native.is_empty(), "{same}");
    }
    let shown = Form::get_object(&host, "host.guest", None, "100").unwrap();
    assert_eq!(serde_json::from_str::<Value>(&shown.body).unwrap()["onboot"], false);
    there_and_back_but(&update("guest", &json!({ "vmid": 100, "memo": "x" })), |device| {
        guest(device)["memo"] == "x"
    });
}

/// There and back in all that the device does not have by default.
fn there_and_back_but(change: &Change, is_done: impl Fn(&Device) -> bool) {
    there_and_back::<Form>(std::slice::from_ref(change), is_done);
}

#[test]
fn clear_names_the_fields_to_be_emptied() {
    let change = update("guest", &json!({ "vmid": 100, "name": null, "cores": null, "memory": 1024 }));
    let plan = there_and_back::<Form>(&[change], |device| {
        let guest = guest(device);
        !guest.contains_key("name") && !guest.contains_key("cores") && guest["memory"] == "1024"
    });
    let form = form(&plan);
    assert!(form.contains(&("delete".to_owned(), "cores,name".to_owned())), "{form:?}");
    assert!(form.iter().all(|(name, _)| name != "name" && name != "cores"), "{form:?}");
}

#[test]
fn properties_are_changed_part_by_part() {
    let payload = json!({ "vmid": 100, "net": { "tag": null, "firewall": 1, "bridge": "vmbr1" } });
    let plan = there_and_back::<Form>(&[update("guest", &payload)], |device| {
        let mut parts: Vec<String> =
            guest(device)["net"].as_str().unwrap().split(',').map(str::to_owned).collect();
        parts.sort();
        parts == ["bridge=vmbr1", "firewall=1", "virtio=BC:24"]
    });
    assert!(plan.steps[0].before.as_ref().unwrap().contains(r#""bridge":"vmbr0""#));
    let new =
        json!({ "vmid": 201, "node": "n1", "net": { "model": "e1000", "bridge": "vmbr0", "tag": null } });
    there_and_back::<Form>(&[create("guest", &new)], |device| {
        device.row("/nodes/n1/guests", "vmid", "201").unwrap()["net"] == "e1000,bridge=vmbr0"
    });
}

#[test]
fn create_only_fields_are_taken_once() {
    let payload = json!({ "vmid": 202, "node": "n1", "ostype": "l26" });
    there_and_back::<Form>(&[create("guest", &payload)], |device| {
        device.row("/nodes/n1/guests", "vmid", "202").unwrap()["ostype"] == "l26"
    });
    let device = Device::new();
    let fault = refused(&device, &[update("guest", &json!({ "vmid": 100, "ostype": "win" }))]);
    assert!(matches!(fault, Fault::Invalid(_)));
    assert_eq!(fault.info().fields[0].pointer, "/ostype");
    let both = [create("guest", &payload), update("guest", &json!({ "vmid": 202, "ostype": "win" }))];
    there_and_back::<Form>(&both, |device| {
        device.row("/nodes/n1/guests", "vmid", "202").unwrap()["ostype"] == "win"
    });
}

#[test]
fn unread_fields_are_written_and_not_taken_back() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let changes = [update("guest", &json!({ "vmid": 100, "password": SECRET }))];
    let plan = Form::plan(&host, &changes).unwrap();
    assert!(form(&plan).contains(&("password".to_owned(), SECRET.to_owned())));
    assert!(plan.native.iter().all(|call| call.stage == Stage::Apply));
    assert!(
        plan.inverse.is_none() && plan.warnings[0].contains("cannot be taken back"),
        "{:?}",
        plan.warnings
    );
    send_stage::<Form>(&host, Stage::Apply, &changes, &plan).unwrap();
    assert!(matches!(standing::<Form>(&host, &changes, &plan), Standing::After));
}

#[test]
fn merge_lays_an_object_over_the_known_one_and_looks_at_nothing_else() {
    let known =
        json!({ "settings": { "a": 1, "deep": { "x": 1, "y": 2 }, "list": [1, 2] }, "raw": { "a": 1 } });
    let (device, description) = (with_profile(&known), description());
    let before = device.state.borrow().clone();
    let asked = json!({ "a": null, "deep": { "y": 3 }, "new": true });
    let changes = [update("profile", &json!({ "name": "p", "settings": asked }))];
    let host = device.host(&description);
    let plan = Json::plan(&host, &changes).unwrap();
    let wanted = json!({ "deep": { "x": 1, "y": 3 }, "list": [1, 2], "new": true });
    assert_eq!(body(&plan, 0), json!({ "settings": wanted }));
    send_stage::<Json>(&host, Stage::Apply, &changes, &plan).unwrap();
    device.others("/profiles", |rows| rows[0]["settings"]["version"] = json!(2));
    assert!(
        matches!(standing::<Json>(&host, &changes, &plan), Standing::After),
        "names of the vendor do not count"
    );
    assert!(Json::plan(&host, &changes).unwrap().native.is_empty());
    device.others("/profiles", |rows| rows[0]["settings"]["a"] = json!(1));
    assert!(
        matches!(standing::<Json>(&host, &changes, &plan), Standing::Other(_)),
        "what was taken away is back"
    );
    device.others("/profiles", |rows| rows[0]["settings"] = wanted);
    restored::<Json>(&device, &description, (&host, &plan), &changes);
    assert_eq!(*device.state.borrow(), before);
}

#[test]
fn merge_tells_an_object_with_one_name_more_from_the_one_before() {
    let (device, description) = (with_profile(&json!({ "settings": { "a": 1 } })), description());
    let changes = [update("profile", &json!({ "name": "p", "settings": { "b": 2 } }))];
    let (host, plan) = applied::<Json>(&device, &description, &changes);
    assert_eq!(profile(&device)["settings"], json!({ "a": 1, "b": 2 }));
    restored::<Json>(&device, &description, (&host, &plan), &changes);
    assert_eq!(profile(&device)["settings"], json!({ "a": 1 }));
}

#[test]
fn rewritten_values_are_adjusted_and_not_wrong() {
    let (device, description) = (with_profile(&json!({ "mac": "00" })), description());
    let host = device.host(&description);
    let changes = [update("profile", &json!({ "name": "p", "mac": "ab:cd" }))];
    let plan = Json::plan(&host, &changes).unwrap();
    send_stage::<Json>(&host, Stage::Apply, &changes, &plan).unwrap();
    let found = standing::<Json>(&host, &changes, &plan);
    assert!(matches!(&found, Standing::Adjusted(what) if what.contains("AB:CD")), "{found:?}");
    restored::<Json>(&device, &description, (&host, &plan), &changes);
    assert_eq!(profile(&device)["mac"], "00");
    device.others("/profiles", |rows| drop(rows[0].insert("settings".to_owned(), json!({ "by": "others" }))));
    assert!(
        matches!(standing::<Json>(&host, &changes, &plan), Standing::Before),
        "as before is not adjusted"
    );
}

#[test]
fn ordered_lists_differ_by_their_order_and_others_do_not() {
    let device = with_profile(&json!({ "chain": "b,a", "groups": "b;a" }));
    let description = description();
    let host = device.host(&description);
    let same = [update("profile", &json!({ "name": "p", "chain": ["b", "a"], "groups": ["a", "b"] }))];
    assert!(Json::plan(&host, &same).unwrap().native.is_empty());
    let other = [update("profile", &json!({ "name": "p", "chain": ["a", "b"] }))];
    let (host, plan) = applied::<Json>(&device, &description, &other);
    assert_eq!(profile(&device)["chain"], "a,b");
    restored::<Json>(&device, &description, (&host, &plan), &other);
    assert_eq!(profile(&device)["chain"], "b,a");
}

#[test]
fn secrets_are_shown_nowhere_and_kept_as_references_alone() {
    let other = "hdl-secret:ffeeddccbbaa99887766554433221100";
    let known = json!({ "psk": SECRET, "settings": { "key": SECRET }, "raw": [{ "key": SECRET }] });
    let (device, description) = (with_profile(&known), description());
    let host = device.host(&description);
    let payload =
        json!({ "name": "p", "psk": other, "settings": { "key": other }, "raw": [{ "key": other }] });
    let changes = [update("profile", &payload)];
    let plan = Json::plan(&host, &changes).unwrap();
    let step = format!("{:?}", plan.steps);
    assert!(step.contains("(secret)") && !step.contains("hdl-secret"), "{step}");
    assert!(plan.inverse.is_none(), "no staged change holds a secret");
    let between = json!("hdl-secret:0123456789abcdef0123456789abcdef");
    device.others("/profiles", |rows| {
        rows[0]["psk"] = between.clone();
        rows[0]["settings"] = json!({ "key": between, "more": 1 });
        rows[0]["raw"] = json!([{ "key": between }]);
    });
    let Standing::Other(found) = standing::<Json>(&host, &changes, &plan) else { panic!("is another") };
    assert!(found.contains("secret") && !found.contains("hdl-secret"), "{found}");
    let read = Json::get_object(&host, "net.profile", None, "p").unwrap();
    assert!(!read.body.contains("psk"), "{}", read.body);
}

#[test]
fn values_too_large_to_be_kept_are_refused() {
    let device = with_profile(&json!({}));
    let fault = refused(&device, &[update("profile", &json!({ "name": "p", "raw": "x".repeat(70_000) }))]);
    assert!(
        matches!(fault, Fault::Invalid(_)) && fault.info().message.contains("at most 65536"),
        "{fault:?}"
    );
}

#[test]
fn a_value_that_looks_like_a_hole_stays_a_value() {
    let payload = json!({ "name": "p", "raw": "{{hole.id_0}} &x=1" });
    let device = Device::new();
    let description = description();
    let plan = Json::plan(&device.host(&description), &[create("profile", &payload)]).unwrap();
    assert!(plan.holes.is_empty());
    assert_eq!(
        heddle_sdk::crud::escaped("{{hole.a}}&b={{hole.c}}"),
        "%7B%7Bhole.a%7D%7D%26b%3D%7B%7Bhole.c%7D%7D"
    );
}
