//! Others write to the device between a plan and what follows it.

use heddle_sdk::testing::send_stage;
use heddle_sdk::{Adapter, Fault, FaultExt, Operation, Stage};
use serde_json::{Map, Value, json};

use super::device::{Device, router};
use super::{change, every_change, plan, run, standing};
use crate::OpenWrt;

fn foreign(device: &Device, plan: &heddle_sdk::ChangePlan) -> Vec<String> {
    OpenWrt::compare(&device.host(), &[], &plan.token).unwrap().foreign
}

fn options(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// A rule that another person adds at the end of the file.
fn add_rule(device: &Device, name: &str) {
    device.edit("firewall", |rows| {
        rows.push((
            name.to_lowercase(),
            "rule".to_owned(),
            false,
            options(json!({"name": name, "target": "DROP"})),
        ));
    });
}

#[test]
fn what_others_add_change_and_remove_is_told_and_decides_nothing() {
    let device = router();
    let plan = plan(&device, &every_change()[1]).unwrap();
    assert!(foreign(&device, &plan).is_empty());
    add_rule(&device, "Theirs");
    device.edit("firewall", |rows| drop(rows[6].3.insert("log".to_owned(), json!("1"))));
    device.edit("firewall", |rows| rows.retain(|row| row.0 != "b"));
    assert_eq!(
        foreign(&device, &plan),
        [
            "firewall rule 'Theirs' was added",
            "firewall rule 'Web' was changed",
            "port forward 'B' was removed",
        ]
    );
    assert_eq!(standing(&device, &plan), "before");
    run(&device, Stage::Apply, &plan).unwrap();
    assert_eq!(standing(&device, &plan), "after");
    run(&device, Stage::Restore, &plan).unwrap();
    assert_eq!(standing(&device, &plan), "before");
    assert_eq!(foreign(&device, &plan).len(), 3, "a restore writes our part only");
}

#[test]
fn options_beside_ours_in_the_same_section_are_theirs() {
    let device = router();
    let plan =
        plan(&device, &change("firewall.rule", Operation::Update, &json!({"name": "Web", "enabled": true})))
            .unwrap();
    device.edit("firewall", |rows| drop(rows[6].3.insert("log".to_owned(), json!("1"))));
    assert_eq!(foreign(&device, &plan), ["firewall rule 'Web' was changed beside what this plan touches"]);
    run(&device, Stage::Apply, &plan).unwrap();
    assert_eq!(standing(&device, &plan), "after");
}

#[test]
fn what_the_plan_touches_must_be_as_it_was_reviewed() {
    let device = router();
    let plan =
        plan(&device, &change("firewall.rule", Operation::Update, &json!({"name": "Web", "enabled": true})))
            .unwrap();
    device.edit("firewall", |rows| drop(rows[6].3.insert("enabled".to_owned(), json!("no"))));
    let host = device.host();
    let fault = send_stage::<OpenWrt>(&host, Stage::Apply, &[], &plan).unwrap_err();
    assert!(matches!(fault, Fault::StateMoved(_)));
    assert_eq!(fault.info().fields[0].pointer, "/firewall/rule/Web/enabled");
    assert_eq!(fault.info().fields[0].message, "was '0', is 'no'");
    assert_eq!(host.sent.borrow().len(), 1, "only the read was sent");
    assert_eq!(standing(&device, &plan), "other");
}

#[test]
fn a_number_that_stands_for_another_section_is_not_sent() {
    let device = router();
    let plan = plan(
        &device,
        &change("firewall.rule", Operation::Update, &json!({"name": "Allow-DHCP", "log": true})),
    )
    .unwrap();
    // The rule before it goes: the number of the plan now is that of nothing, or of another rule.
    device.edit("firewall", |rows| drop(rows.remove(4)));
    assert_eq!(standing(&device, &plan), "before");
    let fault = run(&device, Stage::Apply, &plan).unwrap_err();
    assert!(
        matches!(&fault, Fault::StateMoved(info) if info.message.contains("numbered")),
        "{:?}",
        fault.info()
    );
}

#[test]
fn plans_of_new_rules_do_not_stand_in_each_others_way() {
    let device = router();
    let create =
        |name: &str| change("firewall.rule", Operation::Create, &json!({"name": name, "target": "DROP"}));
    let plans: Vec<_> =
        ["Same name", "Same-name", "Other"].map(|name| plan(&device, &create(name)).unwrap()).into();
    for plan in &plans {
        run(&device, Stage::Apply, plan).unwrap();
        run(&device, Stage::Confirm, plan).unwrap();
        assert_eq!(standing(&device, plan), "after");
    }
    run(&device, Stage::Restore, &plans[0]).unwrap();
    assert_eq!(standing(&device, &plans[0]), "before");
    assert_eq!(standing(&device, &plans[1]), "after");
    assert_eq!(plans[0].touches, ["firewall/rule/Same name"]);
}

#[test]
fn each_change_of_a_set_has_its_own_standing() {
    let device = router();
    let changes = [every_change()[1].clone(), every_change()[0].clone()];
    let plan = OpenWrt::plan(&device.host(), &changes).unwrap();
    run(&device, Stage::Apply, &plan).unwrap();
    device.edit("firewall", |rows| rows.retain(|row| row.3.get("name") != Some(&json!("SSH"))));
    let found = OpenWrt::compare(&device.host(), &changes, &plan.token).unwrap();
    assert!(matches!(found.items[..], [heddle_sdk::Standing::After, heddle_sdk::Standing::Before]));
    assert!(matches!(found.standing, heddle_sdk::Standing::Other(_)));
}

#[test]
fn an_order_is_that_of_the_named_sections_among_themselves() {
    let device = router();
    let plan = plan(
        &device,
        &change("firewall.rule-order", Operation::Update, &json!({"order": ["Web", "Allow-Ping"]})),
    )
    .unwrap();
    run(&device, Stage::Apply, &plan).unwrap();
    add_rule(&device, "Theirs");
    assert_eq!(standing(&device, &plan), "after");
    device.edit("firewall", |rows| rows.retain(|row| row.3.get("name") != Some(&json!("Allow-DHCP"))));
    assert_eq!(standing(&device, &plan), "after");
    assert_eq!(
        foreign(&device, &plan),
        ["firewall rule 'Allow-DHCP' was removed", "firewall rule 'Theirs' was added"]
    );
}

#[test]
fn a_large_file_costs_the_names_of_what_others_changed_and_nothing_else() {
    let rules: Vec<(String, Value)> = (0..1_500)
        .map(|n| {
            (
                format!("rule_{n}"),
                json!({"name": format!("A rule with a long name, number {n}"), "target": "DROP"}),
            )
        })
        .collect();
    let rows: Vec<(&str, &str, Value)> =
        rules.iter().map(|(id, body)| ("rule", id.as_str(), body.clone())).collect();
    let device = Device::default().file("firewall", &rows);
    let name = "A rule with a long name, number 7";
    let plan =
        plan(&device, &change("firewall.rule", Operation::Update, &json!({"name": name, "log": true})))
            .unwrap();
    assert!(plan.token.len() <= 64 * 1024);
    device.edit("firewall", |rows| drop(rows[9].3.insert("log".to_owned(), json!("1"))));
    assert_eq!(
        foreign(&device, &plan),
        ["configuration 'firewall' was changed beside what this plan touches"]
    );
    run(&device, Stage::Apply, &plan).unwrap();
    assert_eq!(standing(&device, &plan), "after");
}
