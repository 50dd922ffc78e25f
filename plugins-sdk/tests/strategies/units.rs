//! Vendors that write everything as text, and objects that only their place names.

use heddle_sdk::{Adapter, FaultExt};
use serde_json::json;

use super::*;

fn watch(device: &Device) -> device::Fields {
    device.row("/watches", "name", "ping").unwrap()
}

fn shown(device: &Device, key: &str) -> Value {
    let description = description();
    let object = Json::get_object(&device.host(&description), "net.watch", None, key).unwrap();
    serde_json::from_str(&object.body).unwrap()
}

#[test]
fn texts_become_values_and_stay_equal_in_each_of_their_forms() {
    let device = Device::new();
    device.others("/watches", |rows| {
        rows[1].extend(device::fields(&json!({ "pause": "1m30s", "burst": "10M", "times": "1h,00:01:30" })));
    });
    let watch = shown(&device, "ping");
    for (name, is) in [
        ("on", json!(true)),
        ("pause", json!(90)),
        ("from", json!({ "not": "lan" })),
        ("burst", json!(10_000_000)),
        ("loud", json!(true)),
        ("times", json!([3600, 90])),
    ] {
        assert_eq!(watch[name], is, "{name}");
    }
    let description = description();
    let same = json!({ "name": "ping", "on": true, "pause": "00:01:30", "burst": "10M", "times": ["1h", 90],
        "from": { "not": "lan" }, "loud": true });
    assert!(Json::plan(&device.host(&description), &[update("watch", &same)]).unwrap().native.is_empty());
}

#[test]
fn values_become_texts_and_a_mark_stands_before_what_is_emptied() {
    let payload = json!({ "name": "ping", "on": false, "pause": 0.5, "burst": 4096, "from": "wan" });
    let plan = there_and_back::<Json>(&[update("watch", &payload)], |device| watch(device)["from"] == "wan");
    let sent = json!({ "on": "false", "pause": "500ms", "burst": "4096", "from": "wan" });
    assert_eq!(body(&plan, 0), sent);
    let payload = json!({ "name": "ping", "loud": false, "pause": null });
    let plan =
        there_and_back::<Json>(&[update("watch", &payload)], |device| !watch(device).contains_key("loud"));
    assert_eq!(body(&plan, 0), json!({ "!loud": "", "!pause": "" }));
    let changes =
        [create("watch", &json!({ "name": "dns", "from": { "not": "dmz" }, "times": [1], "loud": false }))];
    let plan = there_and_back::<Json>(&changes, |device| device.rows("/watches").len() == 4);
    assert_eq!(body(&plan, 0), json!({ "name": "dns", "from": "!dmz", "times": "1s" }));
}

#[test]
fn an_object_without_a_name_has_its_id_for_one() {
    assert_eq!(shown(&Device::new(), "*3")["on"], false);
    let payload = json!({ "name": "*3", "on": true });
    let plan = there_and_back::<Json>(&[update("watch", &payload)], |device| {
        device.row("/watches", "id", "*3").is_some_and(|row| row["on"] == "true" && !row.contains_key("name"))
    });
    assert_eq!(body(&plan, 0), json!({ "on": "true" }));
    assert!(plan.inverse.is_some(), "what takes it back names it by its id, too");
}

#[test]
fn a_fixed_row_is_shown_and_not_written() {
    assert_eq!(shown(&Device::new(), "all")["on"], true);
    let fault = refused(&Device::new(), &[update("watch", &json!({ "name": "all", "on": false }))]);
    assert!(fault.info().message.contains("watch"), "{fault:?}");
}

#[test]
fn a_row_knows_the_one_behind_it() {
    let device = Device::new();
    assert_eq!(shown(&device, "ping")["next"], "*3");
    assert!(shown(&device, "*3")["next"].is_null());
}
