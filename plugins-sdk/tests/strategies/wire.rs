//! How calls are written: forms, constants, revisions, activations.

use heddle_sdk::testing::send_stage;
use heddle_sdk::{Adapter, FaultExt, HoleSource, NativeBody, Stage};
use serde_json::json;

use super::*;

fn fresh(plan: &ChangePlan) -> Vec<&str> {
    let path = |source| match source {
        &HoleSource::Fresh((ref path, ref pointer)) => Some((path.as_str(), pointer.as_str())),
        _ => None,
    };
    let all = plan.holes.iter().filter_map(|hole| path(&hole.source));
    all.map(|(path, pointer)| {
        assert_eq!(pointer, "/digest");
        path
    })
    .collect()
}

#[test]
fn revision_is_read_fresh_and_sent_in_a_form_and_in_the_query_of_a_delete() {
    let changes = [update("guest", &json!({ "vmid": 100, "name": "post" }))];
    let plan = there_and_back::<Form>(&changes, |_| true);
    assert_eq!(fresh(&plan), ["/nodes/n1/guests/100"]);
    let NativeBody::Form(form) = &plan.native[0].body else { panic!("a form") };
    assert_eq!(form[1], ("digest".to_owned(), "{{hole.revision_0}}".to_owned()));
    let (device, description) = (Device::new(), description());
    let (_, plan) = applied::<Form>(&device, &description, &[delete("guest", &json!({ "vmid": 100 }))]);
    assert_eq!(plan.native[0].path, "/nodes/n1/guests/100?digest={{hole.revision_0}}");
    assert!(matches!(plan.native[0].body, NativeBody::None));
    assert!(
        device.writes.borrow()[0]
            .ends_with(device::digest(&json!(Device::new().rows("/nodes/n1/guests")[0])).as_str().unwrap())
    );
}

#[test]
fn revision_is_read_fresh_and_sent_in_json() {
    let plan =
        there_and_back::<Json>(&[update("rule", &json!({ "name": "dns", "action": "block" }))], |_| true);
    assert_eq!(fresh(&plan), ["/rules"], "of the list, where ids do not last");
    assert_eq!(body(&plan, 0), json!({ "action": "block", "digest": "{{hole.revision_1}}" }));
    let (device, description) = (Device::new(), description());
    let (_, plan) = applied::<Json>(&device, &description, &[delete("rule", &json!({ "name": "dns" }))]);
    assert_eq!(body(&plan, 0), json!({ "digest": "{{hole.revision_1}}" }));
}

#[test]
fn revision_that_is_old_is_refused_by_the_device() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let changes = [update("guest", &json!({ "vmid": 100, "name": "post" }))];
    let mut plan = Form::plan(&host, &changes).unwrap();
    for call in &mut plan.native {
        if let NativeBody::Form(form) = &mut call.body {
            form.retain(|(name, _)| name != "digest");
            form.push(("digest".to_owned(), "old".to_owned()));
        }
    }
    assert!(matches!(send_stage::<Form>(&host, Stage::Apply, &changes, &plan), Err(Fault::Conflict(_))));
}

#[test]
fn form_bodies_hold_texts_and_paths_hold_the_parameters_of_a_delete() {
    let payload = json!({ "vmid": 203, "node": "n1", "cores": 4, "onboot": true, "name": "a&b=c" });
    let plan = there_and_back::<Form>(&[create("guest", &payload)], |device| {
        let guest = device.row("/nodes/n1/guests", "vmid", "203").unwrap();
        guest["cores"] == "4" && guest["onboot"] == "1" && guest["name"] == "a&b=c"
    });
    assert!(matches!(plan.native[0].body, NativeBody::Form(_)));
    let zone = [create("zone", &json!({ "name": "lan" }))];
    let plan = there_and_back::<Form>(&zone, |device| device.row("/zones", "name", "lan").is_some());
    let restore = plan.native.iter().find(|call| call.stage == Stage::Restore).unwrap();
    let (path, query) = restore.path.split_once('?').unwrap();
    let mut query: Vec<&str> = query.split('&').collect();
    query.sort_unstable();
    assert_eq!((path, query), ("/zones/{{hole.id_0}}", vec!["which={{hole.id_0}}", "why=gone"]));
}

#[test]
fn with_constants_name_the_object_and_the_parameters_of_its_place() {
    let change = update("slot", &json!({ "node": "n2", "name": "a", "label": "x" }));
    let (device, description) = (Device::new(), description());
    let (_, plan) = applied::<Json>(&device, &description, &[change]);
    assert_eq!(body(&plan, 0), json!({ "label": "x", "node": 8, "of": ["a", { "on": "node n2" }] }));
    let changes = [create("profile", &json!({ "name": "p" }))];
    let plan = Json::plan(&device.host(&description), &changes).unwrap();
    assert_eq!(body(&plan, 0)["id"].as_str().map(str::len), Some(36));
    let changes = [create("zone", &json!({ "name": "lan" }))];
    let (_, plan) = applied::<Json>(&device, &description, &changes);
    let restore: Vec<_> = plan.native.iter().filter(|call| call.stage == Stage::Restore).collect();
    assert_eq!(
        restore[0].json().unwrap(),
        json!({ "why": "gone", "which": "{{hole.id_0}}" }),
        "a DELETE with a body"
    );
}

#[test]
fn activations_that_differ_in_what_they_say_are_all_sent_each_once() {
    let changes = [
        create("alias", &json!({ "name": "a" })),
        create("zone", &json!({ "name": "b" })),
        create("alias", &json!({ "name": "c" })),
    ];
    let plan = there_and_back::<Json>(&changes, |_| true);
    let apply: Vec<Value> = plan
        .native
        .iter()
        .filter(|call| call.stage == Stage::Apply && call.path == "/apply")
        .map(|call| call.json().unwrap())
        .collect();
    assert_eq!(apply, [json!({ "what": "aliases" }), json!({ "what": "zones" })]);
}

#[test]
fn danger_is_that_of_the_operation_and_of_what_the_payload_says() {
    let (device, description) = (Device::new(), description());
    let danger = |change: Change| {
        let plan = Form::plan(&device.host(&description), &[change]).unwrap();
        format!("{:?}", plan.danger)
    };
    let of = |more: Value| {
        let mut payload = device::fields(&json!({ "vmid": 100, "name": "post" }));
        payload.extend(device::fields(&more));
        update("guest", &Value::Object(payload))
    };
    for (change, wanted) in [
        (of(json!({})), "Danger::Normal"),
        (of(json!({ "protection": true })), "Danger::Normal"),
        (of(json!({ "onboot": false })), "Danger::Normal"),
        (of(json!({ "onboot": true })), "Danger::Destructive"),
        (of(json!({ "onboot": true, "protection": false })), "Danger::Catastrophic"),
        (delete("guest", &json!({ "vmid": 100 })), "Danger::Destructive"),
    ] {
        let payload = change.payload.clone();
        assert_eq!(danger(change), wanted, "{payload}");
    }
}

#[test]
fn revision_of_an_object_whose_id_is_not_known_is_left_out() {
    let at = json!({ "node": "n1", "slot": "a:b", "bus": "01:0", "mode": "hba" });
    let plan = there_and_back::<Json>(&[create("card", &at)], |_| true);
    assert!(fresh(&plan).is_empty(), "no path is known to read it at: {:?}", plan.holes);
    let (device, description) = (Device::new(), description());
    let known = json!({ "node": "n1", "slot": "a", "bus": "00:1f.2" });
    let (_, plan) = applied::<Json>(&device, &description, &[delete("card", &known)]);
    assert_eq!(fresh(&plan), ["/nodes/n1/slots/a/cards/x2"]);
}

#[test]
fn more_open_values_than_a_plan_may_have_are_refused_when_it_is_planned() {
    let device = Device::new();
    let all =
        |count| (0..count).map(|n| create("alias", &json!({ "name": format!("a{n}") }))).collect::<Vec<_>>();
    let fault = refused(&device, &all(65));
    assert!(matches!(fault, Fault::Invalid(_)) && fault.info().message.contains("split"), "{fault:?}");
    let (device, description) = (Device::new(), description());
    applied::<Json>(&device, &description, &all(64));
}

#[test]
fn what_another_version_planned_is_refused() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let lists = br#"{"items":1,"lists":[],"parts":[{"list":0,"id":"","name":"","key":[],"items":[],"is_there":[true,true],"whole":"","rest":"","touched":{}}],"apply":[],"restore":[]}"#;
    for token in [&b""[..], b"{}", b"[]", lists] {
        assert!(matches!(Json::compare(&host, &[], token), Err(Fault::Invalid(_))));
        assert!(matches!(Json::ready(&host, Stage::Apply, &[], token, 0), Err(Fault::Invalid(_))));
    }
}
