//! The way back by the router's own scheduler.

use std::time::Duration;

use heddle_sdk::{Operation, Stage};
use serde_json::{Value, json};

use super::device::Device;
use super::{change, plan, run, standing};

fn entries(device: &Device) -> usize {
    let rows = device.rows("system/scheduler");
    rows.iter().filter(|row| row["name"].as_str().is_some_and(|name| name.starts_with("heddle-"))).count()
}

/// Changes that may cut the path: a new row, another value, and a value that was not there.
fn changes() -> [heddle_sdk::Change; 3] {
    let rule = json!({ "comment": "all \"of\" it$", "chain": "forward", "action": "drop" });
    let address = json!({ "address": "192.168.88.1/24", "interface": "bridge", "comment": "house" });
    let first = "defconf: accept established,related,untracked";
    [
        change("firewall.filter", Operation::Create, &rule),
        change("ip.address", Operation::Update, &address),
        change(
            "firewall.filter",
            Operation::Update,
            &json!({ "comment": first, "log-prefix": "x", "log": true }),
        ),
    ]
}

fn state(device: &Device) -> Value {
    device.configured()
}

#[test]
fn change_that_nobody_confirms_is_taken_back_by_the_router_itself() {
    for change in changes() {
        let device = Device::new();
        let before = state(&device);
        let made = plan(&device, &change).unwrap();
        assert!(made.lockout_risk && made.holds, "{}", change.feature);
        run(&device, Stage::Apply, &made).unwrap();
        assert_eq!((standing(&device, &made).as_str(), entries(&device)), ("after", 1), "{}", change.feature);
        device.lab().advance(Duration::from_secs(130));
        assert_eq!(standing(&device, &made), "before", "{}", change.feature);
        assert_eq!(state(&device), before, "{}", change.feature);
    }
}

#[test]
fn confirmation_takes_the_entry_away_and_the_change_stays() {
    for change in changes() {
        let device = Device::new();
        let made = plan(&device, &change).unwrap();
        run(&device, Stage::Apply, &made).unwrap();
        run(&device, Stage::Confirm, &made).unwrap();
        assert_eq!(entries(&device), 0);
        device.lab().advance(Duration::from_mins(5));
        assert_eq!(standing(&device, &made), "after", "{}", change.feature);
    }
}

#[test]
fn change_goes_back_before_its_time_is_over() {
    for stage in [Stage::Undo, Stage::Restore] {
        for change in changes() {
            let device = Device::new();
            let before = state(&device);
            let made = plan(&device, &change).unwrap();
            run(&device, Stage::Apply, &made).unwrap();
            run(&device, stage, &made).unwrap();
            assert_eq!((state(&device), entries(&device)), (before, 0), "{stage:?} {}", change.feature);
        }
    }
}

#[test]
fn plan_with_a_secret_has_the_hosts_timer_alone() {
    let device = Device::new();
    let now = json!({ "numbers": "home", "passphrase": "hdl-secret:00112233445566778899aabbccddeeff" });
    device.person("interface/wifi/security", "set", &now);
    let first = json!({ "name": "home", "passphrase": "another secret" });
    let made = plan(&device, &change("capsman.wifi-security", Operation::Update, &first)).unwrap();
    assert!(made.lockout_risk && !made.holds);
    let harmless = json!({ "name": "sample", "ranges": ["192.0.2.10-192.0.2.20"] });
    let made = plan(&device, &change("dhcp.pool", Operation::Create, &harmless)).unwrap();
    assert!(!made.holds);
}

#[test]
fn entry_that_a_refused_call_left_is_found() {
    for change in changes() {
        let device = Device::new();
        let made = plan(&device, &change).unwrap();
        let mut entry = made.native[0].json().unwrap();
        entry["interval"] = json!("120s");
        device.person("system/scheduler", "add", &entry);
        assert!(standing(&device, &made).starts_with("other"), "{}", change.feature);
        device.person("system/scheduler", "remove", &json!({ "numbers": entry["name"] }));
        assert_eq!(standing(&device, &made), "before", "{}", change.feature);
    }
}

#[test]
fn a_row_that_no_key_of_its_own_finds_has_the_hosts_timer_alone() {
    let device = Device::new();
    // Another address may have the same comment.
    let address = json!({ "address": "198.51.100.1/24", "interface": "bridge", "comment": "defconf" });
    let made = plan(&device, &change("ip.address", Operation::Create, &address)).unwrap();
    assert!(made.lockout_risk && !made.holds);
}
