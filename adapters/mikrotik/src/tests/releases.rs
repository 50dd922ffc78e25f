//! What came and went with releases.

use heddle_lab_mikrotik::{Release, Settings};
use heddle_sdk::{Adapter as _, Fault, FaultExt, Listing, Operation, Stage};
use serde_json::json;

use super::device::{Device, description};
use super::{change, plan, run, standing};
use crate::Mikrotik;

fn of(release: Release) -> Device {
    Device::of(Settings { release, ..Settings::default() })
}

#[test]
fn change_is_applied_at_each_release() {
    for release in [Release::V7_16, Release::V7_22, Release::V7_24] {
        let device = of(release);
        let payload = json!({ "list": "sample", "address": "192.0.2.7" });
        let made = plan(&device, &change("firewall.address-list", Operation::Create, &payload)).unwrap();
        run(&device, Stage::Apply, &made).unwrap();
        assert_eq!(standing(&device, &made), "after", "{release:?}");
        run(&device, Stage::Restore, &made).unwrap();
        assert_eq!(standing(&device, &made), "before", "{release:?}");
    }
}

#[test]
fn what_came_with_a_release_is_marked_with_it_and_absent_before() {
    let old = of(Release::V7_16);
    let mut lacking = 0;
    for kind in description()["kinds"].as_array().unwrap() {
        let Some(from) = kind["releases"]["from"].as_str() else { continue };
        let minor: u32 = from.trim_start_matches("7.").parse().unwrap();
        let has_filter = kind["binding"]["list"]["filters"].is_object();
        if minor <= 16 || has_filter {
            continue;
        }
        let id = kind["id"].as_str().unwrap();
        let listed = Mikrotik::list_objects(&old.host(), &Listing::of(id, 10));
        assert!(matches!(listed, Err(Fault::Unsupported(_))), "{id}: {listed:?}");
        lacking += 1;
    }
    assert!(lacking > 10, "{lacking}");
}

/// A field that came later is refused by the router, which names it.
#[test]
fn field_of_a_newer_release_is_named_by_the_refusal() {
    let device = of(Release::V7_16);
    let payload = json!({
        "interface": "wireguard1", "public-key": "hJQ0mR4vqX8rE4B1d7zv0w9dQm2m3xJmX4m5c6Ynq1A=",
        "allowed-address": ["10.99.0.7/32"], "responder": true,
    });
    let made = plan(&device, &change("vpn.wireguard-peers", Operation::Create, &payload)).unwrap();
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(matches!(&fault, Fault::Invalid(_)), "{fault:?}");
    assert_eq!(fault.info().fields[0].pointer, "/responder");
    assert_eq!(standing(&device, &made), "before");
}
