//! Features that do something instead of writing an object.

use heddle_sdk::testing::send_stage;
use heddle_sdk::{Adapter, Fault, FaultExt, NativeBody, Operation, PartValue, Stage, Standing};
use serde_json::json;

use super::*;

fn guest(device: &Device, field: &str) -> Value {
    device.row("/nodes/n1/guests", "vmid", "100").unwrap().get(field).cloned().unwrap_or_default()
}

fn inverse(plan: &ChangePlan) -> (String, Value) {
    let inverse = &plan.inverse.as_ref().unwrap()[0];
    (inverse.feature.clone(), serde_json::from_str(&inverse.payload).unwrap())
}

fn calls(plan: &ChangePlan, stage: Stage) -> usize {
    plan.native.iter().filter(|call| call.stage == stage).count()
}

#[test]
fn effect_is_a_field_becomes_a_value_and_back_takes_it_back() {
    let plan = there_and_back::<Form>(&[create("start", &json!({ "vmid": 100 }))], |device| {
        guest(device, "status") == "running"
    });
    assert_eq!(plan.steps[0].summary, "start guest '100'");
    assert_eq!(inverse(&plan), ("rig.stop".to_owned(), json!({ "vmid": 100 })));
    assert_eq!(plan.touches, ["host.guest/100"]);
}

#[test]
fn effect_from_a_field_becomes_what_the_payload_says() {
    let (device, description) = (Device::new(), description());
    let changes = [create("resize", &json!({ "vmid": 100, "memory": 1024 }))];
    let (_, plan) = applied::<Form>(&device, &description, &changes);
    assert_eq!(guest(&device, "memory"), "1024");
    assert_eq!(inverse(&plan), ("rig.resize".to_owned(), json!({ "vmid": 100, "memory": 512 })));
    assert_eq!(calls(&plan, Stage::Restore), 0);
    assert!(
        plan.warnings.iter().any(|warning| warning.contains("cannot be taken back")),
        "{:?}",
        plan.warnings
    );
    applied::<Form>(&device, &description, &plan.inverse.unwrap());
    assert_eq!(guest(&device, "memory"), "512");
}

#[test]
fn effect_there_an_object_appears_below_the_one_that_the_action_is_about() {
    let changes = [create("snapshot", &json!({ "vmid": 100, "snapname": "s1", "text": "now" }))];
    let plan = there_and_back::<Form>(&changes, |device| {
        device.row("/nodes/n1/guests/100/snapshots", "name", "s1").is_some_and(|row| row["text"] == "now")
    });
    assert_eq!(inverse(&plan), ("rig.drop".to_owned(), json!({ "snapname": "s1", "vmid": 100 })));
    assert!(plan.touches.contains(&"host.snapshot/100:s1".to_owned()), "{:?}", plan.touches);
}

#[test]
fn effect_not_there_an_object_goes() {
    let (device, description) = (Device::new(), description());
    let changes = [create("drop", &json!({ "vmid": 100, "snapname": "base" }))];
    let (_, plan) = applied::<Form>(&device, &description, &changes);
    assert!(device.rows("/nodes/n1/guests/100/snapshots").is_empty());
    assert!(plan.inverse.is_none() && calls(&plan, Stage::Restore) == 0);
    let (_, _) = applied::<Form>(&device, &description, &[create("destroy", &json!({ "vmid": 100 }))]);
    assert!(device.rows("/nodes/n1/guests").is_empty());
}

#[test]
fn what_is_so_already_needs_no_call() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    for (feature, payload) in [
        ("stop", json!({ "vmid": 100 })),
        ("resize", json!({ "vmid": 100, "memory": 512 })),
        ("snapshot", json!({ "vmid": 100, "snapname": "base" })),
        ("drop", json!({ "vmid": 100, "snapname": "none" })),
        ("destroy", json!({ "vmid": 999 })),
    ] {
        let changes = [create(feature, &payload)];
        let plan = Form::plan(&host, &changes).unwrap();
        assert!(plan.native.is_empty(), "{feature}");
        assert!(matches!(standing::<Form>(&host, &changes, &plan), Standing::After), "{feature}");
    }
}

#[test]
fn an_action_about_what_is_not_there_is_refused() {
    let device = Device::new();
    for (feature, payload) in [
        ("start", json!({ "vmid": 999 })),
        ("ping", json!({ "vmid": 999 })),
        ("snapshot", json!({ "vmid": 999, "snapname": "s" })),
    ] {
        let fault = refused(&device, &[create(feature, &payload)]);
        assert!(matches!(fault, Fault::NotFound(_)), "{feature}: {fault:?}");
    }
    let update = change("start", Operation::Update, &json!({ "vmid": 100 }));
    assert!(matches!(refused(&device, &[update]), Fault::Unsupported(_)));
}

#[test]
fn an_action_without_an_effect_is_judged_by_its_answer_alone_and_stands_by_itself() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let ping = create("ping", &json!({ "vmid": 100 }));
    let wake = create("wake", &json!({ "mac": "00:11" }));
    for (change, summary, sent) in [
        (&ping, "ping guest '100'", json!({ "guest": "100" })),
        (&wake, "wake a device", json!({ "mac": "00:11" })),
    ] {
        let changes = std::slice::from_ref(change);
        let plan = Json::plan(&host, changes).unwrap();
        assert_eq!((plan.steps[0].summary.as_str(), body(&plan, 0)), (summary, sent));
        assert!(plan.inverse.is_none() && calls(&plan, Stage::Restore) == 0);
        send_stage::<Json>(&host, Stage::Apply, changes, &plan).unwrap();
        assert!(matches!(standing::<Json>(&host, changes, &plan), Standing::Unseen));
    }
    assert_eq!(device.writes.take(), ["Post /nodes/n1/guests/100/ping", "Post /wake"]);
    for one in [ping, wake] {
        let fault = refused(&device, &[one, update("guest", &json!({ "vmid": 100, "name": "x" }))]);
        assert!(
            matches!(fault, Fault::Invalid(_)) && fault.info().message.contains("by itself"),
            "{fault:?}"
        );
    }
}

#[test]
fn an_object_that_moves_is_not_acted_on_where_it_was() {
    for (feature, payload) in [
        ("start", json!({ "vmid": 100 })),
        ("snapshot", json!({ "vmid": 100, "snapname": "s" })),
        ("ping", json!({ "vmid": 100 })),
    ] {
        let (device, description) = (Device::new(), description());
        let host = device.host(&description);
        let changes = [create(feature, &payload)];
        let plan = Form::plan(&host, &changes).unwrap();
        let guest = device.rows("/nodes/n1/guests").remove(0);
        device.others("/nodes/n1/guests", Vec::clear);
        device.others("/nodes/n2/guests", |rows| rows.push(guest));
        assert!(send_stage::<Form>(&host, Stage::Apply, &changes, &plan).is_err(), "{feature}");
        assert!(device.writes.borrow().is_empty(), "{feature}");
    }
}

#[test]
fn an_action_does_not_mind_what_else_changes_of_its_object() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    for (feature, payload) in
        [("start", json!({ "vmid": 100 })), ("snapshot", json!({ "vmid": 100, "snapname": "s" }))]
    {
        let changes = [create(feature, &payload)];
        let plan = Form::plan(&host, &changes).unwrap();
        device.others("/nodes/n1/guests", |rows| drop(rows[0].insert("memo".to_owned(), json!(feature))));
        send_stage::<Form>(&host, Stage::Apply, &changes, &plan).unwrap();
        assert!(matches!(standing::<Form>(&host, &changes, &plan), Standing::After), "{feature}");
    }
}

#[test]
fn an_action_may_move_its_object_to_other_paths() {
    for (feature, kinds) in [("migrate", 1), ("carry", 2)] {
        let (device, description) = (Device::new(), description());
        let changes = [create(feature, &json!({ "vmid": 100, "target": "n2" }))];
        let (host, plan) = applied::<Form>(&device, &description, &changes);
        assert_eq!((device.rows("/nodes/n1/guests").len(), device.rows("/nodes/n2/guests").len()), (0, 1));
        assert_eq!(plan.touches.len(), kinds, "{:?}", plan.touches);
        if feature == "migrate" {
            assert_eq!(inverse(&plan), ("rig.migrate".to_owned(), json!({ "vmid": 100, "target": "n1" })));
            applied::<Form>(&device, &description, plan.inverse.as_ref().unwrap());
            assert!(matches!(standing::<Form>(&host, &changes, &plan), Standing::Before));
        }
    }
}

#[test]
fn a_file_is_a_part_behind_its_checksum_and_its_name_tells_what_appears() {
    let (device, description) = (Device::new(), description());
    let digest = "d".repeat(64);
    let file = json!({
        "reference": format!("hdl-file:{digest}"), "name": "a b.img", "size_bytes": 7, "sha256": digest,
    });
    let changes = [create("load", &json!({ "vmid": 100, "text": "now", "file": file }))];
    let plan = Form::plan(&device.host(&description), &changes).unwrap();
    let [apply, restore] = &plan.native[..] else { panic!("two calls: {:?}", plan.native) };
    let NativeBody::Multipart(parts) = &apply.body else { panic!("parts: {apply:?}") };
    let texts: Vec<_> = parts.iter().map(|part| (part.name.as_str(), part.as_text())).collect();
    let expected = [
        ("algorithm", Some("sha256")),
        ("text", Some("now")),
        ("digest", Some(digest.as_str())),
        ("image", None),
    ];
    assert_eq!(texts, expected, "the file comes last");
    let PartValue::File(sent) = &parts[3].value else { panic!("a file: {parts:?}") };
    assert_eq!((sent.file.strip_prefix("hdl-file:"), sent.name.as_str()), (Some(digest.as_str()), "a_b.img"));
    assert_eq!(restore.path, "/nodes/n1/guests/100/snapshots/of-a_b.img");
    let inverse = &plan.inverse.unwrap()[0];
    let payload: Value = serde_json::from_str(&inverse.payload).unwrap();
    assert_eq!((inverse.feature.as_str(), inverse.operation), ("rig.snapshots", Operation::Delete));
    assert_eq!(payload, json!({ "vmid": 100, "name": "of-a_b.img" }));
}
