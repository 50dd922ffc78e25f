//! What older and newer releases have in other words, or do not have.

use std::collections::BTreeSet;

use heddle_sdk::{Adapter, FaultExt, Listing, Operation, Stage};
use serde_json::{Value, json};

use super::device::{Device, router};
use super::transport::{everything, is_call};
use super::{change, plan, run};
use crate::OpenWrt;

/// A router of a release that has switches in place of VLANs of bridges.
fn with_a_switch() -> Device {
    Device::default().file(
        "network",
        &[
            ("switch", "switch0", json!({"name": "switch0", "reset": "1", "enable_vlan": "1"})),
            ("switch_vlan", "vlan1", json!({"device": "switch0", "vlan": "1", "ports": "0 1 2 6t"})),
            (
                "interface",
                "lan",
                json!({"type": "bridge", "ifname": "eth0.1", "proto": "static", "ipaddr": "192.168.1.1"}),
            ),
        ],
    )
}

#[test]
fn router_before_bridge_vlans_is_read_and_left_as_it_is() {
    let device = with_a_switch();
    let shown = OpenWrt::get_object(&device.host(), "network.interface", None, "lan").unwrap();
    let body: Value = serde_json::from_str(&shown.body).unwrap();
    assert_eq!(body["options"], json!({"type": "bridge", "ifname": "eth0.1"}));
    for kind in ["network.vlan", "network.device"] {
        assert!(
            OpenWrt::list_objects(&device.host(), &Listing::of(kind, 10)).unwrap().items.is_empty(),
            "{kind}"
        );
    }
    let payload = json!({"device": "br-lan", "vlan": 20, "ports": ["lan1:t"]});
    let fault = plan(&device, &change("network.vlan", Operation::Create, &payload)).unwrap_err();
    assert_eq!(fault.info().fields[0].pointer, "/device", "there is no bridge: {fault:?}");
    let payload = json!({"name": "lan", "dns": ["192.0.2.53"]});
    let made = plan(&device, &change("network.interface", Operation::Update, &payload)).unwrap();
    run(&device, Stage::Apply, &made).unwrap();
    let mut now = device.content();
    let options = now["network"][2][2].as_object_mut().unwrap();
    assert_eq!(options.remove("dns"), Some(json!(["192.0.2.53"])));
    assert_eq!(now, with_a_switch().content());
}

#[test]
fn radio_of_an_older_release_has_no_band() {
    let radio = |config: Value| {
        let device = router();
        let status = json!({"radio0": {"up": true, "disabled": false, "config": config, "interfaces": []}});
        device.answers.borrow_mut().extend([
            ("system.board".to_owned(), json!([0, {"hostname": "gw", "board_name": "m"}])),
            ("system.info".to_owned(), json!([0, {}])),
            ("network.interface.dump".to_owned(), json!([0, {"interface": []}])),
            ("network.device.status".to_owned(), json!([0, {}])),
            ("network.wireless.status".to_owned(), json!([0, status])),
        ]);
        let page = OpenWrt::list_model(&device.host(), "radio", None, None).unwrap();
        serde_json::from_str::<Value>(&page.items[0].fields).unwrap()
    };
    let older = radio(json!({"hwmode": "11g", "channel": "6", "htmode": "HT20"}));
    assert_eq!((older.get("band"), &older["channel"]), (None, &json!(6)), "{older}");
    let newer = radio(json!({"band": "2g", "channel": "6", "htmode": "HT20"}));
    assert_eq!((&newer["band"], &newer["channel"]), (&json!("2.4"), &json!(6)), "{newer}");
}

/// Packages are kept by another program since one release, and some calls came with the latest.
#[test]
fn nothing_is_asked_that_only_some_releases_have() {
    let asked = everything();
    let calls = asked.iter().flat_map(|one| &one.calls).filter(|call| is_call(call));
    let word = |call: &Value, at: usize| call["params"][at].as_str().unwrap().to_owned();
    let used: BTreeSet<String> = calls.map(|call| format!("{}.{}", word(call, 1), word(call, 2))).collect();
    for absent in ["rpc-sys.packagelist", "uci.reload_config", "file.lstat", "file.exec"] {
        assert!(!used.contains(absent), "{absent}");
    }
    let of_uci: Vec<&str> = used.iter().filter_map(|name| name.strip_prefix("uci.")).collect();
    assert_eq!(of_uci, ["add", "apply", "changes", "confirm", "delete", "get", "order", "set"]);
}

#[test]
fn release_is_told_and_a_new_one_changes_the_fingerprint() {
    let checked = |version: &str| {
        let device = router();
        let board = json!([0, {"model": "M", "board_name": "m", "release": {"version": version}}]);
        device.answers.borrow_mut().insert("system.board".to_owned(), board);
        OpenWrt::check(&device.host()).unwrap()
    };
    let (old, new) = (checked("23.05.5"), checked("24.10.0"));
    assert_eq!((old.version.as_str(), new.version.as_str()), ("23.05.5", "24.10.0"));
    assert_ne!(old.fingerprint, new.fingerprint);
    assert_eq!(checked("24.10.0").fingerprint, new.fingerprint);
    // Writes to any other release wait for a person who allows them.
    let description: Value = serde_json::from_str(include_str!("../../description.json")).unwrap();
    assert_eq!(description["releases"], json!([{ "tested": ["24.10"] }]));
}
