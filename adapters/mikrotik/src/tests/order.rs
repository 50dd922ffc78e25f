//! Rows whose order counts.

use heddle_sdk::{Adapter as _, Fault, FaultExt, Operation, Stage};
use serde_json::{Value, json};

use super::device::Device;
use super::{change, plan, run, standing};
use crate::Mikrotik;

fn names(device: &Device) -> Vec<String> {
    let rows = device.rows("ip/firewall/filter");
    rows.iter()
        .filter_map(|row| row["comment"].as_str().map(str::to_owned))
        .filter(|name| name.len() == 1)
        .collect()
}

/// Three rules behind those that are there.
fn with_three() -> Device {
    let device = Device::new();
    for name in ["a", "b", "c"] {
        let rule = json!({ "chain": "forward", "action": "accept", "comment": name });
        device.person("ip/firewall/filter", "add", &rule);
    }
    device
}

fn moved(name: &str, behind: &Value) -> heddle_sdk::Change {
    change("firewall.filter-order", Operation::Create, &json!({ "comment": name, "place-before": behind }))
}

#[test]
fn rule_is_made_before_another_one() {
    let device = with_three();
    let rule = json!({ "chain": "forward", "action": "drop", "comment": "x", "place-before": "b" });
    let made = plan(&device, &change("firewall.filter", Operation::Create, &rule)).unwrap();
    run(&device, Stage::Apply, &made).unwrap();
    assert_eq!(standing(&device, &made), "after");
    assert_eq!(names(&device), ["a", "x", "b", "c"]);
    run(&device, Stage::Restore, &made).unwrap();
    assert_eq!(names(&device), ["a", "b", "c"]);
}

#[test]
fn moved_rule_goes_back_to_where_it_was() {
    for (name, behind, is) in [
        ("c", json!("a"), ["c", "a", "b"]),
        ("a", json!("c"), ["b", "a", "c"]),
        ("a", Value::Null, ["b", "c", "a"]),
    ] {
        let device = with_three();
        let made = plan(&device, &moved(name, &behind)).unwrap();
        run(&device, Stage::Apply, &made).unwrap();
        assert_eq!(standing(&device, &made), "after", "{name} before {behind}");
        assert_eq!(names(&device), is);
        run(&device, Stage::Restore, &made).unwrap();
        assert_eq!(names(&device), ["a", "b", "c"], "{name} before {behind}");
    }
}

#[test]
fn inverse_of_a_move_is_a_move() {
    let device = with_three();
    let made = plan(&device, &moved("c", &json!("a"))).unwrap();
    run(&device, Stage::Apply, &made).unwrap();
    let back = Mikrotik::plan(&device.host(), made.inverse.as_ref().unwrap()).unwrap();
    run(&device, Stage::Apply, &back).unwrap();
    assert_eq!(names(&device), ["a", "b", "c"]);
}

/// The router would move the rule to the end without a word.
#[test]
fn place_that_is_none_is_refused_before_it_is_sent() {
    let device = with_three();
    let fault = plan(&device, &moved("c", &json!("nothing"))).unwrap_err();
    assert!(matches!(&fault, Fault::Invalid(_)), "{fault:?}");
    assert_eq!(fault.info().fields[0].pointer, "/place-before");
}

#[test]
fn rule_without_a_name_is_known_by_its_id() {
    let device = Device::new();
    let made = device.person("ip/firewall/filter", "add", &json!({ "chain": "forward", "action": "drop" }));
    let id = made["id"].as_str().unwrap();
    let payload = json!({ "comment": id, "log": true });
    let planned = plan(&device, &change("firewall.filter", Operation::Update, &payload)).unwrap();
    run(&device, Stage::Apply, &planned).unwrap();
    assert_eq!(standing(&device, &planned), "after");
    let own = |device: &Device| {
        let rows = device.rows("ip/firewall/filter");
        rows.into_iter().find(|row| row[".id"] == made["id"]).unwrap()
    };
    assert_eq!((own(&device)["log"].as_str(), own(&device).get("comment")), (Some("true"), None));
    let back = Mikrotik::plan(&device.host(), planned.inverse.as_ref().unwrap()).unwrap();
    run(&device, Stage::Apply, &back).unwrap();
    assert_ne!(own(&device)["log"], "true");
}
