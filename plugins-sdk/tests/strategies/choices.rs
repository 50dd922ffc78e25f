//! What can be chosen, what a new object has, and what belongs to an object.

use heddle_sdk::testing::send_stage;
use heddle_sdk::{Adapter, Fault, FaultExt, Operation, Stage, Standing};
use serde_json::json;

use super::*;

fn tunnel(device: &Device) -> device::Fields {
    device.rows("/tunnels").into_iter().find(|row| row["uuid"] != "builtin").unwrap()
}

/// A device with a tunnel that was made from a plan.
fn with_tunnel(description: &Value) -> Device {
    let device = Device::new();
    let payload =
        json!({ "mode": "tls", "zone": "web", "peers": ["Two", "p1"], "port": 1195, "comment": "mine" });
    let host = device.host(description);
    let changes = [create("tunnel", &json!({ "mode": "tls", "zone": "web", "peers": ["p2"] }))];
    assert!(Json::plan(&host, &changes).is_ok());
    let fault = Json::plan(&host, &[create("tunnel", &payload)]).unwrap_err();
    assert_eq!(fault.info().fields[0].pointer, "/peers", "a label is no id where no objects are meant");
    let payload =
        json!({ "mode": "tls", "zone": "web", "peers": ["p2", "p1"], "port": 1195, "comment": "mine" });
    applied::<Json>(&device, description, &[create("tunnel", &payload)]);
    drop(host);
    device
}

#[test]
fn a_choice_is_sent_by_its_id_and_objects_by_the_name_that_people_know() {
    let description = description();
    let device = with_tunnel(&description);
    let row = tunnel(&device);
    assert_eq!(
        (&row["zone"], &row["far"], &row["port"]),
        (&json!("x1"), &json!({ "peers": "p1,p2" }), &json!("1195"))
    );
    let fault = refused(&Device::new(), &[create("tunnel", &json!({ "mode": "wg", "zone": "web" }))]);
    let field = &fault.info().fields[0];
    assert_eq!((field.pointer.as_str(), field.message.as_str()), ("/mode", "choose one of 'tls', 'psk'"));
    let fault = refused(&Device::new(), &[create("tunnel", &json!({ "mode": "tls", "zone": "none" }))]);
    assert!(
        matches!(fault, Fault::Invalid(_)) && fault.info().fields[0].message.contains("'web'"),
        "{fault:?}"
    );
    let key = Json::list_objects(&device.host(&description), &Listing::of("vpn.tunnel", 9)).unwrap().items;
    assert_eq!(key[1].reference.key, "tls:web", "labels of objects make the key");
}

#[test]
fn a_template_tells_what_a_new_object_has_and_generated_values_are_left_to_the_device() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let plan = Json::plan(&host, &[create("tunnel", &json!({ "mode": "psk", "zone": "web" }))]).unwrap();
    let after: Value = serde_json::from_str(plan.steps[0].after.as_ref().unwrap()).unwrap();
    assert_eq!((&after["port"], &after["on"], after.get("serial")), (&json!(1194), &json!(true), None));
    let sent = body(&plan, 0);
    assert_eq!(
        (&sent["tunnel"]["mode"], sent["tunnel"].get("port")),
        (&json!("psk"), None),
        "under the root: {sent}"
    );
    assert!(plan.also.iter().any(|also| also.contains("all tunnels")), "{:?}", plan.also);
}

#[test]
fn what_must_be_in_every_update_is_in_it() {
    let description = description();
    let device = with_tunnel(&description);
    let changes = [update("tunnel", &json!({ "mode": "tls", "zone": "web", "on": false }))];
    let (host, plan) = applied::<Json>(&device, &description, &changes);
    assert_eq!(body(&plan, 0), json!({ "tunnel": { "on": "0", "comment": "mine" } }));
    restored::<Json>(&device, &description, (&host, &plan), &changes);
    assert_eq!((&tunnel(&device)["on"], &tunnel(&device)["comment"]), (&json!("1"), &json!("mine")));
}

#[test]
fn what_is_built_in_is_not_changed() {
    let device = Device::new();
    let fault =
        refused(&device, &[change("tunnel", Operation::Delete, &json!({ "mode": "psk", "zone": "" }))]);
    assert!(matches!(fault, Fault::Invalid(_)) && fault.info().message.contains("built in"), "{fault:?}");
}

#[test]
fn a_final_delete_is_told_and_has_no_way_back() {
    let description = description();
    let device = with_tunnel(&description);
    let (_, plan) =
        applied::<Json>(&device, &description, &[delete("tunnel", &json!({ "mode": "tls", "zone": "web" }))]);
    assert!(plan.native.iter().all(|call| call.stage == Stage::Apply));
    assert!(plan.warnings.iter().any(|warning| warning.contains("cannot be taken back")));
    assert_eq!(device.rows("/tunnels").len(), 1);
}

#[test]
fn what_the_device_would_delete_too_is_named_first() {
    let (device, description) = (Device::new(), description());
    let host = device.host(&description);
    let changes = [
        create("zone", &json!({ "name": "lan" })),
        create("rule", &json!({ "name": "smb", "target": "lan", "action": "pass" })),
    ];
    let plan = Json::plan(&host, &changes).unwrap();
    send_stage::<Json>(&host, Stage::Apply, &changes, &plan).unwrap();
    assert!(matches!(standing::<Json>(&host, &changes, &plan), Standing::After));
    let fault = Json::plan(&host, &[delete("zone", &json!({ "name": "lan" }))]).unwrap_err();
    assert_eq!(fault.info().code.as_deref(), Some("in-use"));
    assert!(fault.info().message.contains("smb"), "{fault:?}");
    let both = [delete("rule", &json!({ "name": "smb" })), delete("zone", &json!({ "name": "lan" }))];
    assert!(Json::plan(&host, &both).is_ok(), "once it goes first, nothing is left");
}
