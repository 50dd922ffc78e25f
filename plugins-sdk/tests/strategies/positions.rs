//! Lists whose ids are positions.

use heddle_sdk::testing::send_stage;
use heddle_sdk::{Adapter, Effect, Fault, FaultExt, Stage, Standing};
use serde_json::json;

use super::*;

fn intrude(device: &Device) {
    let rule = json!({ "name": "other", "target": "", "action": "pass" });
    device.others("/rules", |rows| rows.insert(0, device::fields(&rule)));
}

fn action(device: &Device, name: &str) -> Value {
    device.row("/rules", "name", name).unwrap()["action"].clone()
}

#[test]
fn a_rule_is_changed_where_it_stands_by_now() {
    let changes = [update("rule", &json!({ "name": "DNS", "action": "block" }))];
    there_and_back::<Json>(&changes, |device| action(device, "dns") == "block");
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let plan = Json::plan(&host, &changes).unwrap();
    assert!(plan.lockout_risk);
    intrude(&device);
    send_stage::<Json>(&host, Stage::Apply, &changes, &plan).unwrap();
    assert_eq!((action(&device, "dns"), action(&device, "ssh")), (json!("block"), json!("pass")));
    assert!(device.writes.borrow()[0].contains("/rules/2"), "{:?}", device.writes);
    intrude(&device);
    device.others("/rules", |rows| rows[0] = device::fields(&json!({ "name": "one more" })));
    restored::<Json>(&device, &description, (&host, &plan), &changes);
    assert_eq!(action(&device, "dns"), "pass");
}

#[test]
fn a_new_rule_stands_first_and_is_taken_away_from_where_it_is() {
    let changes = [create("rule", &json!({ "name": "smb", "target": "web", "action": "pass" }))];
    there_and_back::<Json>(&changes, |device| device.rules() == ["smb", "ssh", "dns", "ntp"]);
    let (device, description) = (Device::new(), description());
    let (host, plan) = applied::<Json>(&device, &description, &changes);
    intrude(&device);
    restored::<Json>(&device, &description, (&host, &plan), &changes);
    assert_eq!(device.rules(), ["other", "ssh", "dns", "ntp"]);
}

#[test]
fn a_deleted_rule_is_written_again_with_what_it_had() {
    let (device, description) = (Device::new(), description());
    let changes = [delete("rule", &json!({ "name": "ssh" }))];
    let (host, plan) = applied::<Json>(&device, &description, &changes);
    assert_eq!(device.rules(), ["dns", "ntp"]);
    restored::<Json>(&device, &description, (&host, &plan), &changes);
    assert_eq!(device.rules(), ["ssh", "dns", "ntp"]);
    let restore: Vec<_> = plan.native.iter().filter(|call| call.stage == Stage::Restore).collect();
    assert!(restore.iter().all(|call| !call.repeatable), "a second create adds a second rule");
}

#[test]
fn several_changes_of_one_plan_each_meet_their_own_rule() {
    let changes = [
        delete("rule", &json!({ "name": "ssh" })),
        create("rule", &json!({ "name": "smb", "target": "web", "action": "pass" })),
        update("rule", &json!({ "name": "ntp", "action": "pass" })),
        create("rule", &json!({ "name": "ftp", "target": "", "action": "pass" })),
        delete("rule", &json!({ "name": "dns" })),
        update("rule", &json!({ "name": "smb", "action": "block" })),
    ];
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let plan = Json::plan(&host, &changes).unwrap();
    device.intruder.set(Some(1));
    send_stage::<Json>(&host, Stage::Apply, &changes, &plan).unwrap();
    assert!(matches!(standing::<Json>(&host, &changes, &plan), Standing::After));
    assert_eq!(device.rules(), ["ftp", "intruder-1", "smb", "ntp"]);
    assert_eq!((action(&device, "ntp"), action(&device, "smb")), (json!("pass"), json!("block")));
    let foreign = Json::compare(&host, &changes, &plan.token).unwrap().foreign;
    assert_eq!(foreign, ["rule 'intruder-1' was added"]);
    device.intruder.set(Some(device.writes.borrow().len()));
    restored::<Json>(&device, &description, (&host, &plan), &changes);
    let mut rules = device.rules();
    rules.retain(|name| !name.starts_with("intruder"));
    rules.sort();
    assert_eq!(rules, ["dns", "ntp", "ssh"]);
    assert_eq!(action(&device, "ntp"), "block");
}

#[test]
fn a_rule_that_others_take_away_between_two_calls_is_not_mistaken_for_another() {
    let changes = [
        update("rule", &json!({ "name": "ssh", "action": "block" })),
        delete("rule", &json!({ "name": "dns" })),
    ];
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let plan = Json::plan(&host, &changes).unwrap();
    let gone = FakeHost::new(|request: &Request, auth: &Auth| {
        let answer = host.send(request.clone(), auth.clone());
        if request.method == heddle_sdk::Method::Put {
            device.others("/rules", |rows| rows.retain(|row| row["name"] != "dns"));
        }
        answer
    })
    .describing(&description);
    let fault = send_stage::<Json>(&gone, Stage::Apply, &changes, &plan).unwrap_err();
    assert!(matches!(fault, Fault::StateMoved(_)), "{fault:?}");
    assert!(matches!(fault.info().effect, Effect::Certain));
    assert_eq!(device.rules(), ["ssh", "ntp"]);
}

#[test]
fn two_rules_of_one_name_are_not_told_apart() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let changes = [update("rule", &json!({ "name": "ssh", "action": "block" }))];
    let plan = Json::plan(&host, &changes).unwrap();
    device.others("/rules", |rows| rows.push(rows[0].clone()));
    let fault = send_stage::<Json>(&host, Stage::Apply, &changes, &plan).unwrap_err();
    assert!(matches!(fault, Fault::StateMoved(_)), "{fault:?}");
    assert!(matches!(standing::<Json>(&host, &changes, &plan), Standing::Other(_)));
    assert!(matches!(refused(&device, &changes), Fault::Invalid(_)));
}

#[test]
fn one_rule_taken_away_and_added_in_one_plan_is_refused() {
    let device = Device::new();
    let changes = [
        delete("rule", &json!({ "name": "ssh" })),
        create("rule", &json!({ "name": "ssh", "target": "web", "action": "block" })),
    ];
    let fault = refused(&device, &changes);
    assert!(matches!(fault, Fault::Invalid(_)) && fault.info().message.contains("one after the other"));
}

#[test]
fn an_action_meets_its_rule_where_it_stands_by_now() {
    let changes = [
        create("block", &json!({ "name": "dns" })),
        create("rule", &json!({ "name": "smb", "target": "", "action": "pass" })),
        create("block", &json!({ "name": "ssh" })),
    ];
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let plan = Json::plan(&host, &changes).unwrap();
    intrude(&device);
    device.intruder.set(Some(0));
    send_stage::<Json>(&host, Stage::Apply, &changes, &plan).unwrap();
    let blocked = |name| action(&device, name) == "block";
    assert!(blocked("dns") && blocked("ssh") && !blocked("smb") && !blocked("other"));
    assert!(matches!(standing::<Json>(&host, &changes, &plan), Standing::After));
    restored::<Json>(&device, &description, (&host, &plan), &changes);
    assert_eq!(device.rules(), ["intruder-0", "other", "ssh", "dns", "ntp"]);
    assert!(action(&device, "dns") == "pass" && action(&device, "ssh") == "pass");
}

#[test]
fn positions_below_a_parent_are_those_of_its_own_list() {
    let changes = [
        create("filter", &json!({ "vmid": 100, "name": "out", "action": "pass" })),
        update("filter", &json!({ "vmid": 100, "name": "in", "action": "pass" })),
    ];
    let plan = there_and_back::<Form>(&changes, |device| {
        let filters = device.rows("/nodes/n1/guests/100/filters");
        filters[0]["name"] == "out" && filters[1]["action"] == "pass"
    });
    assert_eq!(plan.touches, ["host.filter/100:out", "host.filter/100:in"]);
    assert!(plan.native[1].path.ends_with("/guests/100/filters/{{hole.id_1}}"), "{}", plan.native[1].path);
}

#[test]
fn an_answer_that_is_lost_in_the_middle_leaves_what_can_be_taken_back() {
    let changes = [
        create("alias", &json!({ "name": "nas" })),
        create("rule", &json!({ "name": "smb", "target": "nas", "action": "pass" })),
        update("rule", &json!({ "name": "dns", "action": "block" })),
    ];
    for lost in 0..3 {
        let (device, description) = (Device::new(), description());
        let before = device.state.borrow().clone();
        let host = device.host(&description);
        let plan = Json::plan(&host, &changes).unwrap();
        device.lost.set(Some(lost));
        let fault = send_stage::<Json>(&host, Stage::Apply, &changes, &plan).unwrap_err();
        assert!(!matches!(fault.info().effect, Effect::None), "{fault:?}");
        assert_eq!(device.writes.borrow().len(), lost + 1);
        restored::<Json>(&device, &description, (&host, &plan), &changes);
        assert_eq!(*device.state.borrow(), before, "lost was {lost}");
    }
}
