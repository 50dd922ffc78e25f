//! What releases lack, and what is said of them before anything is asked.

use heddle_lab_proxmox::Setup;
use heddle_sdk::{Adapter as _, Fault, Listing};
use serde_json::{Value, json};

use super::device::{Device, description};
use crate::Proxmox;

fn telling(version: &str) -> Device {
    Device::of(Setup { told_version: Some(version.to_owned()), ..Setup::default() })
}

#[test]
fn releases_before_8_4_are_refused() {
    for version in ["6.4-15", "7.4-17", "8.0.2", "8.3.5", "", "x"] {
        let fault = Proxmox::check(&telling(version).host()).unwrap_err();
        assert!(matches!(fault, Fault::Unsupported(_)), "{version}: {fault:?}");
    }
    for version in ["8.4.1", "8.4-1", "9.0.0", "9.1.3", "10.0.1"] {
        assert_eq!(Proxmox::check(&telling(version).host()).unwrap().version, version);
    }
}

#[test]
fn what_came_with_a_release_is_marked_with_it() {
    let marks = |section: &str, id: &str| {
        let found = description()[section].as_array().unwrap().iter().find(|one| one["id"] == id);
        found.unwrap_or_else(|| panic!("{section} have no {id}"))["releases"].clone()
    };
    let since = |from: &str| json!({ "from": from });
    for id in ["ha.rule", "sdn.fabric", "sdn.fabric-node"] {
        assert_eq!(marks("kinds", id), since("9.0"), "{id}");
    }
    for id in [
        "ha.rule",
        "sdn.fabric",
        "sdn.fabric-node",
        "sdn.rollback",
        "sdn.unlock",
        "vm.bulk-start",
        "vm.bulk-shutdown",
        "vm.bulk-suspend",
        "vm.bulk-migrate",
    ] {
        assert_eq!(marks("features", &format!("proxmox.{id}")), since("9.0"), "{id}");
    }
    assert_eq!(marks("features", "proxmox.ha.group"), json!({ "to": "8" }), "rules took its place");
    for id in
        ["cluster.cpu-model", "cluster.cpu-flag", "sdn.route-map", "sdn.prefix-list", "storage.identity"]
    {
        assert_eq!(marks("kinds", id), since("9.1.4"), "{id}");
    }
    for id in ["cluster.cpu-model", "ceph.fs-delete", "sdn.route-map-entry", "sdn.prefix-list"] {
        assert_eq!(marks("features", &format!("proxmox.{id}")), since("9.1.4"), "{id}");
    }
    let tested = json!([{ "product": "Proxmox VE", "tested": [{ "from": "8.4", "to": "9.1" }] }]);
    assert_eq!(description()["releases"], tested);
}

/// Whether a kind is said to be newer than a release.
fn is_newer(kind: &Value, release: (u64, u64)) -> bool {
    let from = kind["releases"]["from"].as_str().unwrap_or_default();
    let mut numbers = from.split('.').map(|part| part.parse().unwrap_or_default());
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let is_patched = numbers.next().is_some_and(|patch: u64| patch > 3);
    (major, minor) > release || ((major, minor) == release && is_patched)
}

/// The practice device has it in every release.
const ALWAYS_THERE: &str = "storage.identity";

/// A path that is missing is no failure of the rest.
#[test]
fn every_kind_of_an_older_release_is_read_or_not_offered() {
    for release in [(8, 4), (9, 0), (9, 1)] {
        let device = Device::of(Setup { release, has_ceph: true, ..Setup::default() });
        let (mut lacking, mut read) = (0, 0);
        for kind in description()["kinds"].as_array().unwrap() {
            let id = kind["id"].as_str().unwrap();
            if kind["binding"].get("asked").is_some() || id == ALWAYS_THERE {
                continue;
            }
            let listed = Proxmox::list_objects(&device.host(), &Listing::of(id, 1000));
            if is_newer(kind, (release.0.into(), release.1.into())) {
                assert!(matches!(listed, Err(Fault::Unsupported(_))), "{release:?} {id}: {listed:?}");
                lacking += 1;
            } else {
                assert!(listed.is_ok(), "{release:?} {id}: {listed:?}");
                read += 1;
            }
        }
        assert!(read > 80 && lacking > 3, "{release:?}: {read} {lacking}");
    }
}
