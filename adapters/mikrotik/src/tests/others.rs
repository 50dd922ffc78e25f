//! What goes wrong between a plan and its end, several changes in one plan, and values that the router writes in its own way.

use heddle_sdk::{Adapter as _, Effect, Fault, FaultExt, NativeCall, Operation, Outcome, Stage};
use serde_json::{Value, json};

use super::device::Device;
use super::{change, plan, run, standing};
use crate::Mikrotik;

fn entry(list: &str, address: &str) -> heddle_sdk::Change {
    change("firewall.address-list", Operation::Create, &json!({ "list": list, "address": address }))
}

fn pool() -> Value {
    json!({ "name": "sample", "ranges": ["192.0.2.10-192.0.2.20"] })
}

#[test]
fn changes_of_one_plan_build_on_each_other() {
    let device = Device::new();
    let before = device.configured();
    let changes = [
        change(
            "dhcp.pool",
            Operation::Create,
            &json!({ "name": "more", "ranges": ["192.0.2.30-192.0.2.40"] }),
        ),
        change(
            "dhcp.pool",
            Operation::Create,
            &json!({ "name": "visitors", "ranges": ["192.0.2.10-192.0.2.20"], "next-pool": "more" }),
        ),
        entry("visitors", "192.0.2.0/24"),
    ];
    let made = Mikrotik::plan(&device.host(), &changes).unwrap();
    let is_write = |call: &&NativeCall| call.stage == Stage::Apply && !call.path.ends_with("/scheduler");
    assert_eq!(made.native.iter().filter(is_write).count(), 3);
    run(&device, Stage::Apply, &made).unwrap();
    assert_eq!(standing(&device, &made), "after");
    run(&device, Stage::Restore, &made).unwrap();
    assert_eq!(device.configured(), before);
}

#[test]
fn same_row_that_another_person_made_meanwhile_is_not_doubled() {
    let device = Device::new();
    let ours = plan(&device, &entry("sample", "192.0.2.7")).unwrap();
    device.person("ip/firewall/address-list", "add", &json!({ "list": "sample", "address": "192.0.2.7" }));
    let posts = device.posts.get();
    let fault = run(&device, Stage::Apply, &ours).unwrap_err();
    assert!(matches!(fault, Fault::StateMoved(_)));
    assert_eq!(device.posts.get(), posts);
}

#[test]
fn reader_is_denied_and_nothing_is_changed() {
    let device = Device::new().for_reader();
    let made = plan(&device, &entry("sample", "192.0.2.7")).unwrap();
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(matches!(&fault, Fault::Denied(info) if matches!(info.effect, Effect::None)), "{fault:?}");
}

#[test]
fn name_of_nothing_is_refused_with_its_field() {
    let device = Device::new();
    let payload = json!({ "name": "sample", "ranges": ["192.0.2.7"], "next-pool": "nothing" });
    let made = plan(&device, &change("dhcp.pool", Operation::Create, &payload)).unwrap();
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(matches!(&fault, Fault::Invalid(info) if matches!(info.effect, Effect::None)), "{fault:?}");
    assert_eq!(fault.info().fields[0].pointer, "/next-pool");
    assert_eq!(standing(&device, &made), "before");
}

/// The router refuses what it carried out.
#[test]
fn refusal_after_the_change_leaves_the_effect_open_and_the_device_tells() {
    let device = Device::new();
    let made = plan(&device, &change("dhcp.pool", Operation::Create, &pool())).unwrap();
    device.lab().fault(heddle_lab::Fault::vendor("applied_with_400", Value::Null).on("PUT", "/rest/ip/pool"));
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(matches!(fault.info().effect, Effect::Possible), "{fault:?}");
    device.lab().clear_faults();
    assert_eq!(standing(&device, &made), "after");
}

#[test]
fn request_that_is_cut_leaves_the_effect_open() {
    let device = Device::new();
    let made = plan(&device, &change("dhcp.pool", Operation::Create, &pool())).unwrap();
    device.lab().fault(heddle_lab::Fault::vendor("session_closed", Value::Null));
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(matches!(&fault, Fault::Timeout(info) if matches!(info.effect, Effect::Possible)), "{fault:?}");
}

#[test]
fn what_the_router_made_is_not_changed() {
    let device = Device::new();
    let lease = json!({ "do": "lease", "address": "192.168.88.77", "mac": "02:00:00:00:00:77", "hostname": "desk", "server": "defconf" });
    device.lab().edit(&lease).unwrap();
    let payload = json!({ "server": "defconf", "address": "192.168.88.77", "comment": "desk" });
    let fault = plan(&device, &change("dhcp.server-lease", Operation::Update, &payload)).unwrap_err();
    assert!(fault.info().message.contains("built in"), "{}", fault.info().message);
}

#[test]
fn dynamic_lease_is_made_static() {
    let device = Device::new();
    let lease = json!({ "do": "lease", "address": "192.168.88.77", "mac": "02:00:00:00:00:77", "hostname": "desk", "server": "defconf" });
    device.lab().edit(&lease).unwrap();
    let payload = json!({ "address": "192.168.88.77" });
    let made = plan(&device, &change("dhcp.server-lease.make-static", Operation::Create, &payload)).unwrap();
    run(&device, Stage::Apply, &made).unwrap();
    assert_eq!(standing(&device, &made), "after");
    let rows = device.rows("ip/dhcp-server/lease");
    let own = rows.iter().find(|row| row["address"] == "192.168.88.77").unwrap();
    assert_eq!(own["dynamic"], "false");
}

/// Times, numbers with units, sets and negations are written anew by the router, and are equal all the same.
#[test]
fn value_that_the_router_writes_in_its_own_way_is_the_same() {
    let device = Device::new();
    for (feature, payload) in [
        ("dhcp.server", json!({ "name": "defconf", "lease-time": 5_400 })),
        ("dhcp.server", json!({ "name": "defconf", "lease-time": "90m" })),
        (
            "firewall.filter",
            json!({ "comment": "defconf: drop invalid", "connection-state": { "not": ["related", "established"] } }),
        ),
        ("system.clock", json!({ "time-zone-autodetect": true })),
    ] {
        let change = change(feature, Operation::Update, &payload);
        let Ok(made) = plan(&device, &change) else { continue };
        run(&device, Stage::Apply, &made).unwrap();
        assert_eq!(standing(&device, &made), "after", "{feature} {payload}");
        assert!(plan(&device, &change).unwrap().native.is_empty(), "{feature} {payload}");
    }
}

#[test]
fn field_is_taken_away_and_comes_back() {
    let device = Device::new();
    let payload = json!({ "name": "defconf", "comment": "household" });
    let first = plan(&device, &change("dhcp.server", Operation::Update, &payload)).unwrap();
    run(&device, Stage::Apply, &first).unwrap();
    let none = json!({ "name": "defconf", "comment": null });
    let made = plan(&device, &change("dhcp.server", Operation::Update, &none)).unwrap();
    run(&device, Stage::Apply, &made).unwrap();
    let own = |device: &Device| device.rows("ip/dhcp-server")[0].get("comment").cloned();
    assert_eq!(own(&device), None);
    run(&device, Stage::Restore, &made).unwrap();
    assert_eq!(own(&device), Some(json!("household")));
}

#[test]
fn restart_is_waited_for() {
    let device = Device::new();
    let made = plan(&device, &change("system.machine.reboot", Operation::Create, &json!({}))).unwrap();
    let changes = [change("system.machine.reboot", Operation::Create, &json!({}))];
    let outcome = heddle_sdk::testing::send_stage::<Mikrotik>(&device.host(), Stage::Apply, &changes, &made);
    assert!(matches!(outcome, Ok(Outcome::Pending(_))), "{outcome:?}");
    assert!(matches!(Mikrotik::poll(&device.host(), b"restart"), Ok(Outcome::Pending(_))));
    device.lab().advance(std::time::Duration::from_secs(90));
    assert!(matches!(Mikrotik::poll(&device.host(), b"restart"), Ok(Outcome::Done(_))));
}
