//! The adapter against a device in memory.

mod answers;
mod cassette;
mod checks;
mod concurrency;
mod device;
mod manifest;
mod model;
mod others;
mod power;
mod releases;
mod transport;
mod written;

use device::{Device, router};
use heddle_sdk::testing::send_stage;
use heddle_sdk::{
    Adapter, Change, ChangePlan, Danger, Effect, Fault, FaultExt, Listing, Operation, Stage, Standing,
};
use serde_json::{Value, json};

use crate::uci::anonymous_id;
use crate::{OpenWrt, description};

fn change(feature: &str, operation: Operation, payload: &Value) -> Change {
    Change { feature: format!("openwrt.{feature}"), operation, site: None, payload: payload.to_string() }
}

fn plan(device: &Device, change: &Change) -> Result<ChangePlan, Fault> {
    OpenWrt::plan(&device.host(), std::slice::from_ref(change))
}

fn run(device: &Device, stage: Stage, plan: &ChangePlan) -> Result<(), Fault> {
    send_stage::<OpenWrt>(&device.host(), stage, &[], plan).map(drop)
}

fn standing(device: &Device, plan: &ChangePlan) -> &'static str {
    match OpenWrt::compare(&device.host(), &[], &plan.token).unwrap().standing {
        Standing::Before => "before",
        Standing::After => "after",
        Standing::Adjusted(_) => "adjusted",
        Standing::Stored(_) => "stored",
        Standing::MovedOn(_) => "moved on",
        Standing::Other(_) => "other",
        Standing::Unseen => "unseen",
    }
}

fn every_change() -> Vec<Change> {
    use Operation::{Create, Delete, Update};
    vec![
        change(
            "firewall.rule",
            Create,
            &json!({"name": "SSH", "src": "wan", "proto": ["tcp"], "dest_port": "22", "target": "ACCEPT"}),
        ),
        change("firewall.rule", Update, &json!({"name": "Allow-Ping", "enabled": false, "icmp_type": null})),
        change("firewall.rule", Delete, &json!({"name": "Allow-Ping"})),
        change("firewall.rule", Delete, &json!({"name": "Web"})),
        change(
            "firewall.redirect",
            Create,
            &json!({"name": "C", "src": "wan", "src_dport": "90", "dest_ip": "192.168.1.4", "proto": ["tcp"]}),
        ),
        change("firewall.redirect", Update, &json!({"name": "A", "src_dport": "8081"})),
        change("firewall.redirect", Delete, &json!({"name": "A"})),
        change(
            "firewall.zone",
            Create,
            &json!({"name": "guest", "network": ["guest"], "input": "REJECT", "output": "ACCEPT", "forward": "REJECT"}),
        ),
        change("firewall.zone", Update, &json!({"name": "wan", "input": "DROP", "masq": false})),
        change("firewall.zone", Delete, &json!({"name": "spare"})),
        change("firewall.forwarding", Create, &json!({"src": "wan", "dest": "lan"})),
        change("firewall.forwarding", Update, &json!({"src": "lan", "dest": "wan", "family": "ipv4"})),
        change("firewall.forwarding", Delete, &json!({"src": "lan", "dest": "wan"})),
        change("firewall.rule-order", Update, &json!({"order": ["Web", "Allow-Ping"]})),
        change("firewall.redirect-order", Update, &json!({"order": ["B", "A"]})),
        change("dhcp.pool", Create, &json!({"interface": "guest", "start": 10, "limit": 50})),
        change("dhcp.pool", Update, &json!({"interface": "lan", "leasetime": "1h", "ignore": true})),
        change("dhcp.pool", Delete, &json!({"interface": "lan"})),
        change(
            "dhcp.host",
            Create,
            &json!({"mac": "AA:BB:CC:00:11:22", "name": "nas", "ip": "192.168.1.30"}),
        ),
        change("dhcp.host", Update, &json!({"mac": "00:11:22:33:44:55", "ip": "192.168.1.21"})),
        change("dhcp.host", Delete, &json!({"mac": "00:11:22:33:44:55"})),
        change(
            "network.interface",
            Create,
            &json!({"name": "guest", "proto": "static", "device": "br-lan.20", "ipaddr": ["10.0.0.1/24"]}),
        ),
        change(
            "network.interface",
            Update,
            &json!({"name": "lan", "ipaddr": ["192.168.2.1"], "dns": ["1.1.1.1"]}),
        ),
        change("network.interface", Delete, &json!({"name": "wan"})),
        change(
            "network.vlan",
            Create,
            &json!({"device": "br-lan", "vlan": 20, "ports": ["lan1:t", "lan2:u*"]}),
        ),
        change("network.vlan", Update, &json!({"device": "br-lan", "vlan": 10, "ports": ["lan1:t", "lan2"]})),
        change("network.vlan", Delete, &json!({"device": "br-lan", "vlan": 10})),
        change("network.device", Create, &json!({"name": "dmz0", "type": "dummy"})),
        change("network.device", Update, &json!({"name": "lan2", "mtu": 1400})),
        change("network.device", Delete, &json!({"name": "lan2"})),
        change("system.settings", Update, &json!({"hostname": "gw", "timezone": null})),
    ]
}

fn one_of(feature: &str, operation: Operation) -> Change {
    let id = format!("openwrt.{feature}");
    every_change().into_iter().find(|change| change.feature == id && change.operation == operation).unwrap()
}

#[test]
fn every_operation_reaches_the_state_that_was_predicted_and_is_restored_from_it() {
    for change in every_change() {
        let name = format!("{} {:?} {}", change.feature, change.operation, change.payload);
        let device = router();
        let before = device.content();
        let plan = plan(&device, &change).unwrap_or_else(|fault| panic!("{name}: {:?}", fault.info()));
        assert_eq!(standing(&device, &plan), "before", "{name}");
        run(&device, Stage::Apply, &plan).unwrap_or_else(|fault| panic!("{name}: {:?}", fault.info()));
        assert_eq!(standing(&device, &plan), "after", "{name}");
        run(&device, Stage::Confirm, &plan).unwrap();
        run(&device, Stage::Restore, &plan).unwrap_or_else(|fault| panic!("{name}: {:?}", fault.info()));
        assert_eq!(standing(&device, &plan), "before", "{name}");
        assert_eq!(device.content(), before, "{name}");
    }
}

/// Lists as texts: a payload cannot say which of the two an option was.
fn in_words(content: Value) -> Value {
    match content {
        Value::Object(map) => map
            .into_iter()
            .map(|(name, value)| (name, in_words(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            json!(items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
        }
        Value::Array(items) => items.into_iter().map(in_words).collect(),
        other => other,
    }
}

#[test]
fn every_inverse_brings_the_digest_or_the_options_back() {
    for change in every_change() {
        let name = format!("{} {:?}", change.feature, change.operation);
        let device = router();
        let forward = plan(&device, &change).unwrap();
        let Some(inverse) = forward.inverse.clone() else { panic!("{name} has an inverse") };
        run(&device, Stage::Apply, &forward).unwrap();
        run(&device, Stage::Confirm, &forward).unwrap();
        let back = OpenWrt::plan(&device.host(), &inverse)
            .unwrap_or_else(|fault| panic!("{name}: {:?}", fault.info()));
        run(&device, Stage::Apply, &back).unwrap();
        // A deleted section comes back with a name of its own, at the end where it has no order.
        if change.operation != Operation::Delete {
            assert_eq!(in_words(device.content()), in_words(router().content()), "{name}");
        }
    }
}

#[test]
fn undo_takes_a_held_change_back_and_can_be_repeated() {
    let device = router();
    let before = device.content();
    let plan = plan(&device, &every_change()[0]).unwrap();
    run(&device, Stage::Apply, &plan).unwrap();
    run(&device, Stage::Undo, &plan).unwrap();
    run(&device, Stage::Undo, &plan).unwrap();
    assert_eq!(device.content(), before);
}

#[test]
fn two_changes_are_planned_and_restored_together() {
    let device = router();
    let before = device.content();
    let changes = [every_change()[2].clone(), every_change()[7].clone(), every_change()[0].clone()];
    let plan = OpenWrt::plan(&device.host(), &changes).unwrap();
    run(&device, Stage::Apply, &plan).unwrap();
    assert_eq!(standing(&device, &plan), "after");
    run(&device, Stage::Confirm, &plan).unwrap();
    run(&device, Stage::Restore, &plan).unwrap();
    assert_eq!(device.content(), before);
}

#[test]
fn ids_of_anonymous_sections_are_predicted() {
    assert_eq!(anonymous_id(5, "rule"), "cfg0592bd");
    assert_eq!(anonymous_id(2, "zone"), "cfg02dc81");
    assert_eq!(anonymous_id(1, "defaults"), "cfg01e63d");
    assert_eq!(anonymous_id(4, "forwarding"), "cfg04ad58");
}

#[test]
fn what_is_sent_is_what_was_reviewed() {
    let device = router();
    let plan = plan(&device, &every_change()[1]).unwrap();
    let host = device.host();
    send_stage::<OpenWrt>(&host, Stage::Apply, &[], &plan).unwrap();
    let reviewed: Vec<Value> = plan
        .native
        .iter()
        .filter(|call| matches!(call.stage, Stage::Apply))
        .map(|call| call.json().unwrap())
        .collect();
    assert_eq!(host.sent.borrow()[1..], reviewed[..]);
    assert_eq!(host.resets.get(), 1);
}

#[test]
fn a_refused_call_before_the_apply_leaves_nothing_behind() {
    let device = router();
    let plan = plan(&device, &every_change()[0]).unwrap();
    device.answers.borrow_mut().insert("uci.add".to_owned(), json!([6]));
    let host = device.host();
    let fault = send_stage::<OpenWrt>(&host, Stage::Apply, &[], &plan).unwrap_err();
    assert!(matches!(&fault, Fault::Denied(info) if matches!(info.effect, Effect::None)));
    assert_eq!(host.resets.get(), 2, "the session with its staging is dropped");
}

#[test]
fn a_lost_answer_to_the_apply_may_have_changed_something_and_a_pending_one_is_busy() {
    let device = router();
    let plan = plan(&device, &every_change()[0]).unwrap();
    *device.breaks_at.borrow_mut() = Some("uci.apply".to_owned());
    let fault = run(&device, Stage::Apply, &plan).unwrap_err();
    assert!(matches!(&fault, Fault::Connection(info) if matches!(info.effect, Effect::Possible)));
    let device = router();
    device.answers.borrow_mut().insert("uci.apply".to_owned(), json!([6]));
    assert!(matches!(run(&device, Stage::Apply, &plan).unwrap_err(), Fault::Busy(_)));
}

#[test]
fn a_create_of_what_exists_and_an_update_of_what_does_not_are_refused() {
    use Operation::{Create, Update};
    let device = router();
    let exists = plan(&device, &change("firewall.rule", Create, &json!({"name": "Web", "target": "DROP"})))
        .unwrap_err();
    assert!(matches!(exists, Fault::Invalid(_)) && exists.info().message.contains("use operation update"));
    let absent = plan(&device, &change("firewall.rule", Update, &json!({"name": "Nope", "enabled": true})))
        .unwrap_err();
    assert!(matches!(absent, Fault::NotFound(_)));
    let zone = plan(&device, &change("firewall.forwarding", Create, &json!({"src": "lan", "dest": "moon"})))
        .unwrap_err();
    assert_eq!(zone.info().fields[0].pointer, "/dest");
}

#[test]
fn a_change_that_changes_nothing_sends_nothing() {
    let device = router();
    let plan = plan(
        &device,
        &change(
            "firewall.zone",
            Operation::Update,
            &json!({"name": "wan", "network": ["wan", "wan6"], "masq": true}),
        ),
    )
    .unwrap();
    assert!(plan.native.is_empty());
    assert_eq!(plan.warnings, ["the device is already as asked"]);
    run(&device, Stage::Apply, &plan).unwrap();
}

#[test]
fn what_may_lock_out_says_so() {
    let device = router();
    let plan = plan(&device, &one_of("network.interface", Operation::Update)).unwrap();
    assert!(plan.lockout_risk && plan.holds);
    let device = router();
    let vlan = OpenWrt::plan(&device.host(), &[one_of("network.vlan", Operation::Update)]).unwrap();
    assert!(vlan.lockout_risk);
    let delete = OpenWrt::plan(&device.host(), &[one_of("network.interface", Operation::Delete)]).unwrap();
    assert_eq!(delete.danger, Danger::Destructive);
}

#[test]
fn every_schema_is_an_object_that_refuses_unknown_fields() {
    let description = description();
    let features = description["features"].as_array().unwrap();
    for feature in features {
        for operation in feature["operations"].as_array().unwrap() {
            assert_eq!(
                operation["payload-schema"]["additionalProperties"],
                json!(false),
                "{}",
                feature["id"]
            );
        }
    }
    assert_eq!(features.len(), 16);
}

#[test]
fn devices_are_merged_by_mac_and_missing_packages_are_not_errors() {
    let device = router();
    {
        let mut answers = device.answers.borrow_mut();
        answers.insert(
            "system.board".to_owned(),
            json!([0, {"hostname": "gw", "model": "M", "board_name": "m", "release": {"version": "24.10"}}]),
        );
        answers.insert("system.info".to_owned(), json!([0, {"uptime": 5, "load": [65_536, 0, 0]}]));
        answers.insert("network.interface.dump".to_owned(), json!([0, {"interface": [{"interface": "lan", "l3_device": "br-lan", "ipv4-address": [{"address": "192.168.1.1", "mask": 24}]}]}]));
        answers.insert(
            "network.device.status".to_owned(),
            json!([0, {"br-lan": {"macaddr": "02:00:00:00:00:01", "up": true}}]),
        );
        answers.insert(
            "network.wireless.status".to_owned(),
            json!([0, {"radio0": {"interfaces": [{"ifname": "phy0-ap0"}]}}]),
        );
        answers.insert("luci-rpc.getDHCPLeases".to_owned(), json!([0, {"dhcp_leases": [{"expires": 60, "hostname": "phone", "macaddr": "AA:BB:CC:00:11:22", "ipaddr": "192.168.1.133"}]}]));
        answers.insert(
            "iwinfo.assoclist".to_owned(),
            json!([0, {"results": [{"mac": "AA:BB:CC:00:11:22", "signal": -50}]}]),
        );
    }
    let page = OpenWrt::list_devices(&device.host(), None, None).unwrap();
    assert_eq!(page.items.len(), 2);
    assert_eq!(page.items[0].identity, "02:00:00:00:00:01");
    assert_eq!(
        (page.items[1].identity.as_str(), page.items[1].name.as_str()),
        ("aa:bb:cc:00:11:22", "phone")
    );
    assert!(page.items[1].measurements.contains("\"signal_dbm\":-50"));
    assert!(page.items[0].attributes.contains("luci-rpc.getHostHints"));
    assert_eq!(OpenWrt::check(&device.host()).unwrap().version, "24.10");
    let rules = OpenWrt::list_objects(&device.host(), &Listing::of("firewall.rule", 2)).unwrap();
    assert_eq!((rules.items.len(), rules.next.as_deref(), rules.total), (2, Some("2"), Some(3)));
    assert_eq!(
        OpenWrt::get_object(&device.host(), "firewall.forwarding", None, "lan:wan")
            .unwrap()
            .reference
            .locators[0]
            .value,
        "cfg04ad58"
    );
}
