//! Fields that the vendor keeps only with what others are, and objects that name others by what they are called.

use heddle_sdk::testing::send_stage;
use heddle_sdk::{Adapter, Fault, FaultExt, Stage};
use serde_json::json;

use super::*;

fn service(device: &Device, name: &str) -> device::Fields {
    device.row("/services", "name", name).unwrap()
}

#[test]
fn what_a_write_takes_away_is_said_and_comes_back_both_ways() {
    let changes = [update("service", &json!({ "name": "web", "protocol": "icmp" }))];
    let plan = there_and_back::<Json>(&changes, |device| {
        let web = service(device, "web");
        !web.contains_key("port") && !web.contains_key("check") && web["note"] == "old"
    });
    // What depends on the port goes with it.
    let step = &plan.steps[0];
    let shown = |text: &Option<String>| serde_json::from_str::<Value>(text.as_deref().unwrap()).unwrap();
    let (before, after) = (shown(&step.before), shown(&step.after));
    assert_eq!((&before["port"], &before["check"]), (&json!(443), &json!("https")));
    assert_eq!((&after["port"], &after["check"]), (&Value::Null, &Value::Null));
    assert_eq!(body(&plan, 0), json!({ "protocol": "icmp" }), "the device does it by itself");
    let inverse: Value = serde_json::from_str(&plan.inverse.unwrap()[0].payload).unwrap();
    assert_eq!(inverse, json!({ "name": "web", "protocol": "tcp", "port": 443, "check": "https" }));
}

#[test]
fn what_is_kept_is_not_sent_and_what_is_asked_for_is() {
    let changes = [update("service", &json!({ "name": "web", "protocol": "udp" }))];
    let plan = there_and_back::<Json>(&changes, |device| service(device, "web")["port"] == 443);
    let sent: Vec<Value> = (0..plan.native.len()).map(|at| body(&plan, at)).collect();
    assert_eq!(sent, [json!({ "protocol": "udp" }), json!({ "protocol": "tcp" })]);
    let changes = [update("service", &json!({ "name": "vpn", "protocol": "tcp", "port": 1194 }))];
    there_and_back::<Json>(&changes, |device| service(device, "vpn")["port"] == 1194);
}

#[test]
fn two_changes_of_one_object_lose_what_both_take_away() {
    let changes = [
        update("service", &json!({ "name": "web", "protocol": "icmp" })),
        update("service", &json!({ "name": "web", "note": null })),
    ];
    there_and_back::<Json>(&changes, |device| !service(device, "web").contains_key("port"));
}

#[test]
fn what_the_vendor_takes_away_is_no_change_of_others() {
    let (device, description) = (Device::new(), description());
    let changes = [update("service", &json!({ "name": "web", "protocol": "icmp" }))];
    let (host, plan) = applied::<Json>(&device, &description, &changes);
    assert_eq!(Json::compare(&host, &changes, &plan.token).unwrap().foreign, Vec::<String>::new());
    device.others("/services", |rows| drop(rows[0].insert("note".to_owned(), json!("theirs"))));
    assert_eq!(Json::compare(&host, &changes, &plan.token).unwrap().foreign.len(), 1);
}

#[test]
fn value_that_no_write_would_keep_goes_with_the_next_one_and_nothing_brings_it_back() {
    let (device, description) = (Device::new(), description());
    device.others("/services", |rows| drop(rows[2].insert("port".to_owned(), json!(50))));
    let changes = [update("service", &json!({ "name": "vpn", "note": "new" }))];
    let (host, plan) = applied::<Json>(&device, &description, &changes);
    assert!(!service(&device, "vpn").contains_key("port"));
    assert_eq!(Json::compare(&host, &changes, &plan.token).unwrap().foreign, Vec::<String>::new());
    let inverse: Value = serde_json::from_str(&plan.inverse.unwrap()[0].payload).unwrap();
    assert_eq!(inverse, json!({ "name": "vpn", "note": null }));
}

#[test]
fn what_no_answer_shows_and_what_only_a_create_takes_is_lost_for_good() {
    for payload in [json!({ "name": "web", "locked": false }), json!({ "name": "dns", "protocol": "gre" })] {
        let (device, description) = (Device::new(), description());
        let host = device.host(&description);
        let plan = Json::plan(&host, &[update("service", &payload)]).unwrap();
        assert!(plan.inverse.is_none(), "{payload}");
        assert!(plan.native.iter().all(|call| call.stage == Stage::Apply), "{payload}");
        assert!(
            plan.warnings.iter().any(|text| text.contains("cannot be taken back")),
            "{:?}",
            plan.warnings
        );
    }
}

#[test]
fn what_others_name_is_not_deleted() {
    for (name, by) in [("web", "office"), ("vpn", "office"), ("dns", "home")] {
        let fault = refused(&Device::new(), &[delete("service", &json!({ "name": name }))]);
        assert!(matches!(fault, Fault::Conflict(_)), "{fault:?}");
        assert_eq!(fault.info().code.as_deref(), Some("in-use"));
        assert!(fault.info().message.contains(by), "{fault:?}");
    }
    // What names it goes with it, or names another one by then.
    let (device, description) = (Device::new(), description());
    let changes = [
        delete("bundle", &json!({ "name": "home" })),
        delete("service", &json!({ "name": "dns" })),
        update("bundle", &json!({ "name": "office", "services": ["web"] })),
        delete("service", &json!({ "name": "vpn" })),
    ];
    applied::<Json>(&device, &description, &changes);
    assert_eq!(device.rows("/services").len(), 1);
}

#[test]
fn place_is_a_number_in_bodies_where_the_binding_says_so() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let changes = [update("numbered-rule", &json!({ "name": "dns", "action": "block" }))];
    let plan = Json::plan(&host, &changes).unwrap();
    send_stage::<Json>(&host, Stage::Apply, &changes, &plan).unwrap();
    assert_eq!(device.bodies.borrow()[0]["at"], json!(1));
    assert!(device.writes.borrow()[0].ends_with("/rules/1"));
}
