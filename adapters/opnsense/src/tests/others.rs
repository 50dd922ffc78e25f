//! What goes wrong between a plan and its end, and several changes in one plan.

use heddle_sdk::{Adapter as _, Effect, Fault, FaultExt, Operation, Readiness, Stage, Start};
use serde_json::{Value, json};

use super::device::Device;
use super::{change, plan, run, standing};
use crate::Opnsense;

fn alias(name: &str, content: &[&str]) -> heddle_sdk::Change {
    change("firewall.alias", Operation::Create, &json!({ "name": name, "type": "host", "content": content }))
}

#[test]
fn changes_of_one_plan_build_on_each_other_and_share_an_apply() {
    let device = Device::new();
    let stored = device.stored();
    let subnet = json!({ "subnet": "192.0.2.0/24", "pools": ["192.0.2.10-192.0.2.20"] });
    let reservation =
        json!({ "subnet": "192.0.2.0/24", "hw_address": "02:00:00:00:00:77", "ip_address": "192.0.2.30" });
    let changes = [
        change("kea.dhcp4-subnet", Operation::Create, &subnet),
        change("kea.dhcp4-reservation", Operation::Create, &reservation),
        change(
            "kea.dhcp4-reservation",
            Operation::Update,
            &json!({ "subnet": "192.0.2.0/24", "hw_address": "02:00:00:00:00:77", "hostname": "sample" }),
        ),
    ];
    let made = Opnsense::plan(&device.host(), &changes).unwrap();
    let applies: Vec<&str> =
        made.native.iter().filter(|call| call.stage == Stage::Apply).map(|call| call.path.as_str()).collect();
    assert_eq!(applies.len(), 3, "{applies:?}");
    assert_eq!(applies[2], "/api/kea/service/reconfigure");
    run(&device, Stage::Apply, &made).unwrap();
    assert_eq!(standing(&device, &made), "after");
    run(&device, Stage::Restore, &made).unwrap();
    assert_eq!(device.stored(), stored);
    assert_eq!(device.running(), stored);
}

#[test]
fn inverse_of_a_plan_takes_it_back() {
    let device = Device::new();
    let stored = device.stored();
    let changes = [
        alias("sample", &["192.0.2.7"]),
        change(
            "routing.static-route",
            Operation::Update,
            &json!({ "network": "10.99.0.0/16", "gateway": "WAN_GW", "descr": "other" }),
        ),
        change("firewall.rule", Operation::Delete, &json!({ "description": "web" })),
    ];
    let made = Opnsense::plan(&device.host(), &changes).unwrap();
    assert!(made.lockout_risk);
    run(&device, Stage::Apply, &made).unwrap();
    let back = Opnsense::plan(&device.host(), made.inverse.as_ref().unwrap()).unwrap();
    run(&device, Stage::Apply, &back).unwrap();
    let rules = "Firewall/Filter:rules.rule";
    let ids = |state: &std::collections::BTreeMap<String, Value>| {
        state[rules].as_object().unwrap().values().cloned().collect::<Vec<_>>()
    };
    let (mut was, mut is) = (ids(&stored), ids(&device.stored()));
    was.sort_by_key(ToString::to_string);
    is.sort_by_key(ToString::to_string);
    assert_eq!(was, is);
    let mut now = device.stored();
    now.insert(rules.to_owned(), stored[rules].clone());
    assert_eq!(now, stored);
}

#[test]
fn same_name_that_another_person_made_meanwhile_is_not_doubled() {
    let device = Device::new();
    let ours = plan(&device, &alias("sample", &["192.0.2.7"])).unwrap();
    let theirs = plan(&device, &alias("sample", &["192.0.2.8"])).unwrap();
    run(&device, Stage::Apply, &theirs).unwrap();
    let posts = device.posts.get();
    let fault = run(&device, Stage::Apply, &ours).unwrap_err();
    assert!(matches!(fault, Fault::StateMoved(_)));
    assert_eq!(device.posts.get(), posts);
}

#[test]
fn what_others_add_is_told_and_decides_nothing() {
    let device = Device::new();
    let made = plan(&device, &alias("sample", &["192.0.2.7"])).unwrap();
    run(&device, Stage::Apply, &plan(&device, &alias("theirs", &["192.0.2.8"])).unwrap()).unwrap();
    run(&device, Stage::Apply, &made).unwrap();
    let comparison = Opnsense::compare(&device.host(), &[], &made.token).unwrap();
    assert!(matches!(comparison.standing, heddle_sdk::Standing::After));
    assert_eq!(comparison.foreign, ["alias 'theirs' was added"]);
}

#[test]
fn refused_value_names_the_field_of_the_payload() {
    let device = Device::new();
    let wrong = change(
        "firewall.rule",
        Operation::Create,
        &json!({ "description": "sample", "interface": ["lan"], "protocol": "ICMP", "destination_port": "443" }),
    );
    let made = plan(&device, &wrong).unwrap();
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(matches!(&fault, Fault::Invalid(info) if matches!(info.effect, Effect::None)), "{fault:?}");
    assert_eq!(fault.info().fields[0].pointer, "/destination_port");
    assert_eq!(standing(&device, &made), "before");
}

#[test]
fn unknown_choice_is_refused_by_the_plan_with_those_that_exist() {
    let device = Device::new();
    let wrong = change(
        "routing.static-route",
        Operation::Create,
        &json!({ "network": "192.0.2.0/24", "gateway": "NOPE" }),
    );
    let fault = plan(&device, &wrong).unwrap_err();
    assert_eq!(fault.info().fields[0].pointer, "/gateway");
    assert!(fault.info().fields[0].message.contains("'WAN_GW'"), "{:?}", fault.info().fields);
}

#[test]
fn failed_activation_says_that_something_was_stored_and_can_be_taken_back() {
    let device = Device::new();
    let stored = device.stored();
    let made = plan(&device, &alias("sample", &["192.0.2.7"])).unwrap();
    device.lab().fault(heddle_lab::Fault::vendor("reload_fails", Value::Null));
    // The firewall says that it worked.
    run(&device, Stage::Apply, &made).unwrap();
    assert_ne!(device.running(), device.stored());
    device.lab().clear_faults();
    run(&device, Stage::Restore, &made).unwrap();
    assert_eq!((device.stored(), device.running()), (stored.clone(), stored));
}

#[test]
fn object_in_use_is_not_deleted() {
    let device = Device::new();
    let made = plan(&device, &change("firewall.alias", Operation::Delete, &json!({ "name": "web_servers" })))
        .unwrap();
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(matches!(&fault, Fault::Invalid(info) if matches!(info.effect, Effect::None)));
    assert!(fault.info().message.contains("in use"), "{}", fault.info().message);
    assert_eq!(standing(&device, &made), "before");
}

#[test]
fn what_the_device_would_delete_too_is_named_before() {
    let device = Device::new();
    let change = change("ipsec.connection", Operation::Delete, &json!({ "description": "branch" }));
    let fault = plan(&device, &change).unwrap_err();
    assert_eq!(fault.info().code.as_deref(), Some("in-use"));
}

#[test]
fn reader_is_denied_and_nothing_is_changed() {
    let device = Device::new().for_reader();
    let made = plan(&device, &alias("sample", &["192.0.2.7"])).unwrap();
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(matches!(&fault, Fault::Denied(info) if matches!(info.effect, Effect::None)), "{fault:?}");
}

#[test]
fn interrupted_stages_go_on_behind_the_calls_that_left() {
    let device = Device::new();
    let made = plan(&device, &alias("sample", &["192.0.2.7"])).unwrap();
    let ready = |stage, left| Opnsense::ready(&device.host(), stage, &[], &made.token, left).unwrap();
    assert!(matches!(ready(Stage::Apply, 1), Readiness::Send(Start { from: 1, .. })));
    assert!(matches!(ready(Stage::Restore, 0), Readiness::Nothing(_)));
    run(&device, Stage::Apply, &made).unwrap();
    assert!(matches!(ready(Stage::Restore, 0), Readiness::Send(Start { from: 0, .. })));
    assert!(matches!(ready(Stage::Restore, 1), Readiness::Send(Start { from: 1, .. })));
    assert!(made.native.iter().all(|call| call.repeatable == (call.stage == Stage::Restore)));
}

#[test]
fn create_of_what_exists_and_update_of_what_does_not_are_refused() {
    let device = Device::new();
    let exists = plan(&device, &alias("web_servers", &["192.0.2.7"])).unwrap_err();
    assert!(exists.info().message.contains("use operation update"));
    let absent = change("firewall.alias", Operation::Update, &json!({ "name": "nope", "enabled": false }));
    assert!(matches!(plan(&device, &absent).unwrap_err(), Fault::NotFound(_)));
    let gone = change("firewall.alias", Operation::Delete, &json!({ "name": "nope" }));
    assert_eq!(plan(&device, &gone).unwrap().warnings, ["the device is already as asked"]);
}

/// Plans and applies a change that is expected to work.
fn applied(device: &Device, feature: &str, operation: Operation, payload: &Value) {
    let made = plan(device, &change(feature, operation, payload)).unwrap();
    run(device, Stage::Apply, &made).unwrap();
    assert_eq!(standing(device, &made), "after", "{feature}");
}

#[test]
fn update_of_a_group_leaves_the_rules_that_name_it_alone() {
    let device = Device::new();
    applied(&device, "firewall.group", Operation::Create, &json!({ "ifname": "DMZ", "members": ["lan"] }));
    let rule = json!({ "description": "of the group", "interface": ["DMZ"], "source_net": ["DMZ"] });
    applied(&device, "firewall.rule", Operation::Create, &rule);
    let rules = device.stored()["Firewall/Filter:rules.rule"].clone();
    applied(&device, "firewall.group", Operation::Update, &json!({ "ifname": "DMZ", "descr": "servers" }));
    assert_eq!(device.stored()["Firewall/Filter:rules.rule"], rules);
    assert!(rules.to_string().contains("DMZ"), "{rules}");
}

#[test]
fn update_of_a_virtual_address_leaves_it_on_its_interface() {
    let device = Device::new();
    let address = json!({ "descr": "service", "interface": "lan", "network": "192.0.2.77/32" });
    applied(&device, "interfaces.vip", Operation::Create, &address);
    let change = json!({
        "descr": "service", "interface": "lan", "network": "192.0.2.77/32", "noexpand": true,
    });
    applied(&device, "interfaces.vip", Operation::Update, &change);
    let running = device.running()["Interfaces/Vip:vip"].to_string();
    assert!(running.contains("192.0.2.77") && !running.contains("x_lost"), "{running}");
}
