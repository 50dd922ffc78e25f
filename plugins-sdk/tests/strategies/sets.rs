//! Several changes of one object in one plan.

use heddle_sdk::testing::send_stage;
use heddle_sdk::{Adapter, Fault, Stage, Standing};
use serde_json::json;

use super::*;

fn guest(device: &Device, id: &str) -> device::Fields {
    device.row("/nodes/n1/guests", "vmid", id).unwrap()
}

#[test]
fn changes_by_one_feature_become_one_call() {
    let changes = [
        create("alias", &json!({ "name": "nas", "note": "one" })),
        update("alias", &json!({ "name": "nas", "note": "two" })),
    ];
    let plan = there_and_back::<Json>(&changes, |device| {
        device.row("/aliases", "name", "nas").unwrap()["note"] == "two"
    });
    assert_eq!(plan.native.iter().filter(|call| call.stage == Stage::Apply).count(), 2, "and the activation");
    let nothing = [create("alias", &json!({ "name": "nas" })), delete("alias", &json!({ "name": "nas" }))];
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    assert!(Json::plan(&host, &nothing).unwrap().native.is_empty());
    let [one, two] = nothing;
    let anew = [one, two, create("alias", &json!({ "name": "nas", "note": "three" }))];
    let plan = Json::plan(&host, &anew).unwrap();
    assert_eq!(body(&plan, 0), json!({ "name": "nas", "note": "three" }));
    send_stage::<Json>(&host, Stage::Apply, &anew, &plan).unwrap();
    assert!(matches!(standing::<Json>(&host, &anew, &plan), Standing::After));
}

#[test]
fn changes_by_several_features_are_each_sent_their_own_way() {
    let changes = [
        update("guest", &json!({ "vmid": 100, "name": "post" })),
        update("memo", &json!({ "vmid": 100, "memo": "moved" })),
        create("start", &json!({ "vmid": 100 })),
        update("guest", &json!({ "vmid": 100, "cores": 4 })),
    ];
    let (device, description) = (Device::new(), description());
    let (host, plan) = applied::<Form>(&device, &description, &changes);
    let sent: Vec<String> = device
        .bodies
        .borrow()
        .iter()
        .map(|body| body.keys().filter(|name| *name != "digest").cloned().collect::<Vec<_>>().join(","))
        .collect();
    assert_eq!(sent, ["name", "by,memo", "", "cores"]);
    restored::<Form>(&device, &description, (&host, &plan), &changes);
    let guest = guest(&device, "100");
    assert_eq!(
        (&guest["name"], &guest["status"], &guest["cores"]),
        (&json!("mail"), &json!("stopped"), &json!("2"))
    );
}

#[test]
fn a_new_object_can_be_changed_and_acted_on_by_other_features_at_once() {
    let changes = [
        create("guest", &json!({ "node": "n1", "vmid": 300, "name": "new" })),
        update("memo", &json!({ "vmid": 300, "memo": "hello" })),
        create("start", &json!({ "vmid": 300 })),
    ];
    let (device, description) = (Device::new(), description());
    let before = device.rows("/nodes/n1/guests");
    let (host, plan) = applied::<Form>(&device, &description, &changes);
    let new = guest(&device, "300");
    assert_eq!((&new["memo"], &new["status"]), (&json!("hello"), &json!("running")));
    restored::<Form>(&device, &description, (&host, &plan), &changes);
    assert_eq!(device.rows("/nodes/n1/guests"), before);

    let host = device.host(&description);
    let plan = Form::plan(&host, &changes).unwrap();
    device.refused.replace(Some("/start".to_owned()));
    assert!(send_stage::<Form>(&host, Stage::Apply, &changes, &plan).is_err());
    assert!(matches!(standing::<Form>(&host, &changes, &plan), Standing::Other(_)));
    device.refused.take();
    restored::<Form>(&device, &description, (&host, &plan), &changes);
    assert_eq!(device.rows("/nodes/n1/guests"), before);
}

#[test]
fn an_object_can_be_stopped_and_deleted_at_once() {
    let (device, description) = (Device::new(), description());
    device.others("/nodes/n1/guests", |rows| rows[0]["status"] = json!("running"));
    let changes = [create("stop", &json!({ "vmid": 100 })), delete("guest", &json!({ "vmid": 100 }))];
    let (host, plan) = applied::<Form>(&device, &description, &changes);
    assert!(device.rows("/nodes/n1/guests").is_empty());
    assert!(plan.native.iter().all(|call| call.stage == Stage::Apply), "the password is lost");
    let _ = host;
}

#[test]
fn two_actions_that_lead_to_and_fro_end_where_the_last_leads() {
    let changes = [create("start", &json!({ "vmid": 100 })), create("stop", &json!({ "vmid": 100 }))];
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let plan = Form::plan(&host, &changes).unwrap();
    send_stage::<Form>(&host, Stage::Apply, &changes, &plan).unwrap();
    assert_eq!(guest(&device, "100")["status"], "stopped");
    assert_eq!(device.writes.borrow().len(), 2);
    assert!(matches!(standing::<Form>(&host, &changes, &plan), Standing::After));
}

#[test]
fn the_change_that_cannot_be_planned_is_named() {
    let device = Device::new();
    let changes = [
        update("alias", &json!({ "name": "web", "note": "new" })),
        update("alias", &json!({ "name": "none", "note": "new" })),
    ];
    let fault = refused(&device, &changes);
    assert!(matches!(&fault, Fault::NotFound(info) if info.message.starts_with("change 2:")), "{fault:?}");
}

#[test]
fn what_belongs_to_an_object_goes_with_it() {
    let changes = [
        create("drop", &json!({ "vmid": 100, "snapname": "base" })),
        delete("guest", &json!({ "vmid": 100 })),
    ];
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let plan = Form::plan(&host, &changes).unwrap();
    send_stage::<Form>(&host, Stage::Apply, &changes, &plan).unwrap();
    assert!(device.rows("/nodes/n1/guests").is_empty());
    assert!(matches!(standing::<Form>(&host, &changes, &plan), Standing::After));
}

#[test]
fn a_new_object_without_a_known_id_can_be_acted_on_at_once() {
    let changes = [
        create("rule", &json!({ "name": "smb", "target": "", "action": "pass" })),
        create("block", &json!({ "name": "smb" })),
        create("block", &json!({ "name": "dns" })),
    ];
    let plan = there_and_back::<Json>(&changes, |device| {
        let action = |name| device.row("/rules", "name", name).unwrap()["action"].clone();
        action("smb") == "block" && action("dns") == "block" && action("ssh") == "pass"
    });
    assert_eq!(plan.native[1].path, "/rules/{{hole.id_0}}/block");
}

#[test]
fn one_field_that_two_features_write_ends_as_the_last_says() {
    let changes = [
        update("guest", &json!({ "vmid": 100, "memo": "one", "name": "post" })),
        update("memo", &json!({ "vmid": 100, "memo": "two" })),
    ];
    let (device, description) = (Device::new(), description());
    let (host, plan) = applied::<Form>(&device, &description, &changes[1..]);
    restored::<Form>(&device, &description, (&host, &plan), &changes[1..]);
    let host = device.host(&description);
    let plan = Form::plan(&host, &changes).unwrap();
    send_stage::<Form>(&host, Stage::Apply, &changes, &plan).unwrap();
    assert!(matches!(standing::<Form>(&host, &changes, &plan), Standing::After));
    assert_eq!(
        (&guest(&device, "100")["memo"], &guest(&device, "100")["name"]),
        (&json!("two"), &json!("post"))
    );
    restored::<Form>(&device, &description, (&host, &plan), &changes);
    assert_eq!(guest(&device, "100").get("name"), Some(&json!("mail")));
}

#[test]
fn a_new_object_that_another_change_names_is_not_taken_away_in_the_same_plan() {
    let changes = [
        create("alias", &json!({ "name": "nas" })),
        create("zone", &json!({ "name": "lan", "alias": "nas" })),
        delete("alias", &json!({ "name": "nas" })),
    ];
    let fault = refused(&Device::new(), &changes);
    assert!(matches!(&fault, Fault::Invalid(info) if info.message.contains("'nas'")), "{fault:?}");
}

#[test]
fn an_action_that_is_so_already_is_no_obstacle_to_the_rest_and_must_stay_so() {
    let (device, description) = (Device::new(), description());
    let changes =
        [create("stop", &json!({ "vmid": 100 })), update("alias", &json!({ "name": "web", "note": "new" }))];
    applied::<Json>(&device, &description, &changes);
    let host = device.host(&description);
    let changes = [changes[0].clone(), update("alias", &json!({ "name": "web", "note": "newer" }))];
    let plan = Json::plan(&host, &changes).unwrap();
    device.others("/nodes/n1/guests", |rows| drop(rows[0].insert("status".to_owned(), json!("running"))));
    assert!(matches!(send_stage::<Json>(&host, Stage::Apply, &changes, &plan), Err(Fault::StateMoved(_))));
}

#[test]
fn what_an_action_makes_is_known_to_the_changes_behind_it() {
    let snapshot = create("snapshot", &json!({ "vmid": 100, "snapname": "s1" }));
    let (device, description) = (Device::new(), description());
    let (_, plan) = applied::<Form>(&device, &description, &[snapshot.clone(), snapshot]);
    assert_eq!(plan.native.iter().filter(|call| call.stage == Stage::Apply).count(), 1);
}

#[test]
fn what_moves_in_a_plan_is_not_written_behind_that() {
    let device = Device::new();
    let moves = create("migrate", &json!({ "vmid": 100, "target": "n2" }));
    for behind in [
        update("guest", &json!({ "vmid": 100, "name": "x" })),
        create("start", &json!({ "vmid": 100 })),
        create("snapshot", &json!({ "vmid": 100, "snapname": "s" })),
    ] {
        let fault = refused(&device, &[moves.clone(), behind]);
        assert!(matches!(&fault, Fault::Invalid(info) if info.message.contains("moves")), "{fault:?}");
    }
}

#[test]
fn an_object_that_goes_is_not_made_anew_in_one_plan() {
    let device = Device::new();
    let changes = [
        create("drop", &json!({ "vmid": 100, "snapname": "base" })),
        create("snapshot", &json!({ "vmid": 100, "snapname": "base" })),
    ];
    let new = create("guest", &json!({ "node": "n2", "vmid": 300 }));
    for changes in [&changes[..], &[new.clone(), create("destroy", &json!({ "vmid": 300 })), new]] {
        let fault = refused(&device, changes);
        assert!(
            matches!(&fault, Fault::Invalid(info) if info.message.contains("one after the other")),
            "{fault:?}"
        );
    }
}

#[test]
fn what_was_changed_before_a_delete_that_never_came_is_taken_back() {
    let (device, description) = (Device::new(), description());
    let before = device.state.borrow().clone();
    let changes = [
        create("block", &json!({ "name": "ssh" })),
        update("rule", &json!({ "name": "ssh", "target": "" })),
        delete("rule", &json!({ "name": "ssh" })),
    ];
    let host = device.host(&description);
    let plan = Json::plan(&host, &changes).unwrap();
    device.lost.set(Some(1));
    assert!(send_stage::<Json>(&host, Stage::Apply, &changes, &plan).is_err());
    assert!(matches!(standing::<Json>(&host, &changes, &plan), Standing::Other(_)));
    restored::<Json>(&device, &description, (&host, &plan), &changes);
    assert_eq!(*device.state.borrow(), before);
}

#[test]
fn changes_keep_their_order_where_it_matters() {
    let changes = [
        update("rule", &json!({ "name": "ssh", "action": "block" })),
        create("alias", &json!({ "name": "nas" })),
        update("rule", &json!({ "name": "ssh", "target": "nas" })),
    ];
    let plan = there_and_back::<Json>(&changes, |device| {
        let ssh = device.row("/rules", "name", "ssh").unwrap();
        ssh["target"] == "x10" && ssh["action"] == "block"
    });
    let apply = plan.native.iter().filter(|call| call.stage == Stage::Apply && call.id.is_some()).count();
    assert_eq!(apply, 3, "the target is named when it is there");
    let device = Device::new();
    let changes = [
        update("alias", &json!({ "name": "web", "note": "x" })),
        update("rule", &json!({ "name": "ssh", "target": "" })),
        delete("alias", &json!({ "name": "web" })),
    ];
    let description = description();
    let plan = Json::plan(&device.host(&description), &changes).unwrap();
    let paths: Vec<&str> = plan.native.iter().map(|call| call.path.as_str()).collect();
    assert_eq!(
        paths[..3],
        ["/aliases/x1", "/rules/{{hole.id_1}}", "/aliases/x1"],
        "nothing names it when it goes"
    );
}
