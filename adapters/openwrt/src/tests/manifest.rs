//! The manifest lets through what reading needs, and nothing that writes.

use heddle_sdk::{Adapter, Listing, Operation};
use serde_json::{Value, json};

use super::device::router;
use super::{change, every_change};
use crate::{OpenWrt, inventory, rpc};

fn manifest() -> Value {
    serde_json::from_str(include_str!("../../manifest.json")).unwrap()
}

fn is_read(call: &Value) -> bool {
    let manifest = manifest();
    let fits = |rule: &Value| {
        let wanted = rule["json"].as_object().unwrap();
        wanted.iter().all(|(pointer, values)| {
            call.pointer(pointer).is_some_and(|found| values.as_array().unwrap().contains(found))
        })
    };
    manifest["reads"].as_array().unwrap().iter().any(fits)
}

#[test]
fn every_read_fits_the_manifest() {
    let device = router();
    let board = json!([0, {"hostname": "gw", "board_name": "m", "release": {"version": "1"}}]);
    let wireless = json!([0, {"radio0": {"interfaces": [{"ifname": "ap0"}]}}]);
    device.answers.borrow_mut().extend([
        ("system.board".to_owned(), board),
        ("system.info".to_owned(), json!([0, {"uptime": 1}])),
        ("file.read".to_owned(), json!([4])),
        ("luci-rpc.getHostHints".to_owned(), json!([0, {}])),
        ("iwinfo.assoclist".to_owned(), json!([0, {"results": []}])),
        ("network.wireless.status".to_owned(), wireless),
    ]);
    let host = device.host();
    OpenWrt::check(&host).unwrap();
    OpenWrt::list_devices(&host, None, None).unwrap();
    for kind in inventory::objects::KINDS {
        OpenWrt::list_objects(&host, &Listing::of(kind.id, 10)).unwrap();
    }
    for change in every_change() {
        OpenWrt::plan(&host, &[change]).unwrap();
    }
    OpenWrt::plan(&host, &[change("system.reboot", Operation::Update, &json!({}))]).unwrap();
    for sent in host.sent.borrow().iter() {
        let calls = sent.as_array().cloned().unwrap_or_else(|| vec![sent.clone()]);
        for call in calls {
            assert!(is_read(&call), "{call}");
        }
    }
}

#[test]
fn no_call_of_a_plan_passes_for_a_read() {
    let device = router();
    for change in every_change() {
        let plan = OpenWrt::plan(&device.host(), &[change]).unwrap();
        for call in &plan.native {
            assert!(!is_read(&call.json().unwrap()));
            assert_eq!(call.path, rpc::PATH);
        }
    }
}

#[test]
fn streams_are_opened_anew_before_the_device_ends_them() {
    let push = manifest()["push"].clone();
    for (name, channel) in push.as_object().unwrap() {
        // It ends what is quiet for 30 seconds.
        assert_eq!(channel["stream"], json!({ "format": "sse", "renew-s": 20 }), "{name}");
        let way = &channel["ways"][0];
        assert!(way["path"].as_str().unwrap().starts_with("/ubus/subscribe/"), "{name}");
        assert_eq!(way["apply"][0]["value"], "Bearer {{session.token}}", "{name}");
    }
}
