//! How the id of a new object comes about.

use heddle_sdk::testing::send_stage;
use heddle_sdk::{Adapter, Fault, FaultExt, HoleSource, Stage, Standing};
use serde_json::json;

use super::*;

#[test]
fn an_id_that_the_plan_chooses_is_sent_and_leads_back() {
    let plan = there_and_back::<Json>(&[create("profile", &json!({ "name": "p" }))], |device| {
        device
            .row("/profiles", "name", "p")
            .is_some_and(|row| row["id"].as_str().is_some_and(|id| id.len() == 36))
    });
    assert!(plan.holes.is_empty());
}

#[test]
fn an_id_that_is_a_field_needs_no_hole() {
    let payload = json!({ "node": "n2", "vmid": 200, "name": "web" });
    let plan = there_and_back::<Form>(&[create("guest", &payload)], |device| {
        device.row("/nodes/n2/guests", "vmid", "200").is_some_and(|row| row["name"] == "web")
    });
    assert!(plan.holes.iter().all(|hole| hole.name.starts_with("revision_")), "{:?}", plan.holes);
    let device = Device::new();
    for (payload, missing) in [(json!({ "node": "n2" }), "/vmid"), (json!({ "vmid": 200 }), "/node")] {
        let fault = refused(&device, &[create("guest", &payload)]);
        assert!(matches!(fault, Fault::Invalid(_)), "{fault:?}");
        assert_eq!(fault.info().fields[0].pointer, missing);
    }
}

#[test]
fn an_answered_id_is_kept_for_the_way_back() {
    let plan = there_and_back::<Json>(&[create("alias", &json!({ "name": "nas" }))], |device| {
        device.row("/aliases", "name", "nas").is_some()
    });
    let source = &plan.holes[0].source;
    assert!(
        matches!(source, HoleSource::Answer((call, at)) if call == "w0" && at == "/made/id"),
        "{source:?}"
    );
}

#[test]
fn an_id_that_no_answer_says_is_found_by_the_natural_key() {
    let plan =
        there_and_back::<Json>(&[create("zone", &json!({ "name": "lan", "alias": "web" }))], |device| {
            device.row("/zones", "name", "lan").is_some_and(|row| row["alias"] == "x1")
        });
    assert!(matches!(plan.holes[0].source, HoleSource::Found));
}

#[test]
fn a_lost_answer_leaves_an_object_that_is_found_and_taken_back() {
    for (feature, table) in [("alias", "/aliases"), ("zone", "/zones")] {
        let (device, description) = (Device::new(), description());
        let before = device.state.borrow().clone();
        let changes = [create(feature, &json!({ "name": "nas" }))];
        let host = device.host(&description);
        let plan = Json::plan(&host, &changes).unwrap();
        device.lost.set(Some(0));
        assert!(send_stage::<Json>(&host, Stage::Apply, &changes, &plan).is_err());
        assert!(device.row(table, "name", "nas").is_some());
        assert!(matches!(standing::<Json>(&host, &changes, &plan), Standing::After));
        restored::<Json>(&device, &description, (&host, &plan), &changes);
        assert_eq!(*device.state.borrow(), before);
    }
}

#[test]
fn a_later_change_of_the_same_plan_names_a_new_object_whose_id_is_not_known() {
    for of in ["alias", "zone"] {
        let changes = [
            create(of, &json!({ "name": "nas" })),
            create("rule", &json!({ "name": "smb", "target": "nas", "action": "pass" })),
            update("rule", &json!({ "name": "dns", "target": "nas" })),
        ];
        let plan = there_and_back::<Json>(&changes, |device| {
            let rule = |name| device.row("/rules", "name", name).unwrap()["target"].clone();
            rule("smb") == "x10" && rule("dns") == "x10" && device.rules()[0] == "smb"
        });
        assert_eq!(body(&plan, 1)["target"], "{{hole.id_0}}");
    }
}

#[test]
fn a_name_that_others_take_meanwhile_is_refused_whatever_the_ids_are() {
    for (feature, table) in [("alias", "/aliases"), ("zone", "/zones"), ("profile", "/profiles")] {
        let (device, description) = (Device::new(), description());
        let host = device.host(&description);
        let changes = [create(feature, &json!({ "name": "nas" }))];
        let plan = Json::plan(&host, &changes).unwrap();
        device.others(table, |rows| rows.push(device::fields(&json!({ "id": "z", "name": "nas" }))));
        let fault = send_stage::<Json>(&host, Stage::Apply, &changes, &plan).unwrap_err();
        assert!(matches!(fault, Fault::StateMoved(_)), "{fault:?}");
        assert!(device.writes.borrow().is_empty());
    }
}

#[test]
fn an_object_makes_room_for_another_of_the_same_name_where_ids_are_new() {
    let changes = [
        delete("profile", &json!({ "name": "p" })),
        create("profile", &json!({ "name": "p", "groups": ["b", "a"] })),
    ];
    let (device, description) = (Device::new(), description());
    device.others("/profiles", |rows| rows.push(device::fields(&json!({ "id": "z", "name": "p" }))));
    let host = device.host(&description);
    let plan = Json::plan(&host, &changes).unwrap();
    send_stage::<Json>(&host, Stage::Apply, &changes, &plan).unwrap();
    assert!(matches!(standing::<Json>(&host, &changes, &plan), Standing::After));
    assert_eq!(device.row("/profiles", "name", "p").unwrap()["groups"], "a;b");
    restored::<Json>(&device, &description, (&host, &plan), &changes);
    assert_eq!(device.row("/profiles", "name", "p").unwrap()["id"], "z");

    let answered = [
        delete("alias", &json!({ "name": "web" })),
        create("alias", &json!({ "name": "web", "note": "new" })),
    ];
    let (device, description) = (Device::new(), super::description());
    let host = device.host(&description);
    let plan = Json::plan(&host, &answered).unwrap();
    send_stage::<Json>(&host, Stage::Apply, &answered, &plan).unwrap();
    assert!(matches!(standing::<Json>(&host, &answered, &plan), Standing::After));
    assert_eq!(device.row("/aliases", "name", "web").unwrap()["note"], "new");
    assert!(
        plan.warnings.iter().any(|warning| warning.contains("cannot be taken back")),
        "another id: {plan:?}"
    );

    let device = Device::new();
    let same_id = [
        delete("guest", &json!({ "vmid": 100 })),
        create("guest", &json!({ "node": "n1", "vmid": 100, "name": "new" })),
    ];
    assert!(matches!(refused(&device, &same_id), Fault::Invalid(_)));
}

#[test]
fn others_objects_are_told_and_our_own_are_not() {
    let (device, description) = (Device::new(), description());
    let changes = [create("alias", &json!({ "name": "nas" })), create("zone", &json!({ "name": "lan" }))];
    let (host, plan) = applied::<Json>(&device, &description, &changes);
    assert_eq!(Json::compare(&host, &changes, &plan.token).unwrap().foreign, Vec::<String>::new());
    device.others("/aliases", |rows| rows[0] = device::fields(&json!({ "id": "z", "name": "tv" })));
    let foreign = Json::compare(&host, &changes, &plan.token).unwrap().foreign;
    assert_eq!(foreign, ["alias 'tv' was added", "1 of the kind 'net.alias' went away"]);
}

#[test]
fn a_name_that_stands_in_the_path_alone_is_what_people_call_the_object() {
    let plan =
        there_and_back::<Json>(&[create("tag", &json!({ "name": "x y", "color": "red" }))], |device| {
            device.row("/tags", "name", "x y").is_some_and(|row| row["color"] == "red")
        });
    assert_eq!((plan.steps[0].summary.as_str(), &plan.touches[0][..]), ("create tag 'x y'", "net.tag/x y"));
    assert_eq!(
        (plan.native[0].path.as_str(), body(&plan, 0)),
        ("/tags?name=x%20y", json!({ "color": "red" }))
    );
}

#[test]
fn a_parameter_of_a_new_object_comes_from_the_field_at_its_place() {
    let plan = there_and_back::<Json>(&[create("group", &json!({ "name": "g", "kind": "ip" }))], |device| {
        device.row("/groups", "name", "g").is_some_and(|row| row["type"] == "ip")
    });
    assert_eq!(plan.native[1].path, "/groups/ip/{{hole.id_0}}");
}
