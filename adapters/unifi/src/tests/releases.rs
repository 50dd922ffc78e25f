//! The releases of the application.

use heddle_lab_unifi::{Release, Settings};
use heddle_sdk::{Adapter as _, Operation, Stage};
use serde_json::{Value, json};

use super::device::{Device, description};
use super::{change, plan, run, standing};
use crate::Unifi;

#[test]
fn what_came_and_went_with_a_release_is_marked_with_it() {
    let marks = |section: &str, id: &str| {
        let found = description()[section].as_array().unwrap().iter().find(|one| one["id"] == id);
        found.unwrap_or_else(|| panic!("{section} have no {id}"))["releases"].clone()
    };
    assert_eq!(marks("features", "unifi.firewall.policy"), json!({ "from": "10.1" }));
    assert_eq!(marks("kinds", "switching.stack"), json!({ "from": "10.2" }));
    assert_eq!(marks("features", "unifi.profiles.tag"), json!({ "to": "10.3" }));
    assert_eq!(marks("kinds", "insights.event"), json!({ "to": "9.5" }));
    assert_eq!(marks("kinds", "wifi.wlan"), Value::Null);
}

#[test]
fn change_is_applied_and_taken_back_at_each_release() {
    for release in [Release::V9_5, Release::V10_1, Release::V10_2, Release::V10_3, Release::V10_4] {
        let device = Device::of(Settings { release, ..Settings::default() });
        let profile = Unifi::check(&device.host()).unwrap();
        assert_eq!(profile.product, "UniFi Network");
        let payload =
            json!({ "name": "sample", "group_type": "address-group", "group_members": ["192.0.2.7"] });
        let planned = plan(&device, &change("firewall.group", Operation::Create, &payload)).unwrap();
        run(&device, Stage::Apply, &planned).unwrap();
        assert_eq!(standing(&device, &planned), "after", "{release:?}");
        run(&device, Stage::Restore, &planned).unwrap();
        assert_eq!(standing(&device, &planned), "before", "{release:?}");
    }
}

#[test]
fn fingerprint_moves_with_an_upgrade_and_with_a_gateway() {
    let of = |settings: Settings| Unifi::check(&Device::of(settings).host()).unwrap().fingerprint;
    let usual = of(Settings::default());
    assert_eq!(usual, of(Settings::default()));
    assert_ne!(usual, of(Settings { release: Release::V10_1, ..Settings::default() }));
    assert_ne!(usual, of(Settings { has_gateway: false, ..Settings::default() }));
}
