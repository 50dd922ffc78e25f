//! Others edit the same configuration: digests, locks, and a cluster without quorum.

use std::cell::Cell;

use heddle_sdk::crud::{Purpose, Vendor as _};
use heddle_sdk::testing::{FakeHost, finish_stage, json_response};
use heddle_sdk::{Adapter as _, Effect, Fault, FaultExt, Listing, Method, Operation, Stage, fault};
use serde_json::{Value, json};

use super::device::{Device, description, package};
use super::{change, plan, run, standing};
use crate::{Proxmox, Vendor};

/// Writes that could take a digest and do not: new names, which change nothing else, and entries whose list tells none.
const WITHOUT_A_DIGEST: [&str; 5] = [
    "proxmox.firewall.group",
    "proxmox.firewall.ipset",
    "proxmox.firewall.vm-ipset",
    "proxmox.firewall.container-ipset",
    "proxmox.sdn.route-map-entry",
];

/// A path without the names of its parameters.
fn pattern(path: &str) -> String {
    let path = path.trim_start_matches("/api2/json").split('?').next().unwrap_or_default();
    let part = |part: &str| if part.starts_with('{') { "{}".to_owned() } else { part.to_owned() };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Methods and paths whose parameters have a digest.
fn with_digest() -> Vec<(String, String)> {
    let facts: Value = serde_json::from_str(include_str!("../../facts.json")).unwrap();
    let is_digest =
        |at: &Value| facts.pointer(&format!("/fields/{at}/name")).is_some_and(|name| name == "digest");
    let routes = facts["routes"].as_object().unwrap().iter();
    let taking = routes.filter(|(_, route)| route["fields"].as_array().into_iter().flatten().any(is_digest));
    let parted = taking.map(|(name, _)| name.split_once(' ').unwrap());
    parted.map(|(method, path)| (method.to_owned(), pattern(path))).collect()
}

#[test]
fn every_object_with_a_digest_is_written_with_it() {
    let known = with_digest();
    let mut count = 0;
    for feature in description()["features"].as_array().unwrap() {
        for word in ["update", "delete"] {
            let Some(write) = feature["binding"].get(word) else { continue };
            let method = write["method"].as_str().unwrap_or("POST").to_owned();
            if !known.contains(&(method, pattern(write["path"].as_str().unwrap()))) {
                continue;
            }
            let is_spared = WITHOUT_A_DIGEST.iter().any(|id| feature["id"] == *id);
            assert_eq!(write["revision"]["as"] == "digest", !is_spared, "{} {word}", feature["id"]);
            count += 1;
        }
    }
    assert!(count > 50, "{count}");
}

/// Between the reading that was compared with the review and the write, the digest is what counts.
#[test]
fn edit_right_before_the_write_is_refused_by_the_node() {
    let device = Device::new();
    let made =
        plan(&device, &change("vm.config", Operation::Update, &json!({ "vmid": 103, "cores": 8 }))).unwrap();
    let writes = device.writes.get();
    // The last reading before the write is that of the digest.
    let reads = Cell::new(0);
    let host = FakeHost::new(|request, auth| {
        let answer = device.exchange(request, auth);
        if matches!(request.method, Method::Get) && request.path.ends_with("/103/config") {
            reads.set(reads.get() + 1);
            if reads.get() == 2 {
                device.edit(&json!({ "edit": "guest_config", "vmid": 103, "values": { "cores": 6 } }));
            }
        }
        Ok(answer)
    })
    .with_package(package());
    let fault =
        finish_stage::<Proxmox>(&host, Stage::Apply, &[], &made, |ms| device.wait_ms(ms)).unwrap_err();
    assert_eq!(reads.get(), 2);
    assert!(matches!(&fault, Fault::StateMoved(info) if matches!(info.effect, Effect::None)), "{fault:?}");
    assert_eq!(device.writes.get(), writes + 1, "it was sent, and refused");
    assert_eq!(device.state()["guests"]["103"]["config"]["cores"], 6);
}

/// Containers and later releases have locks of their own: any word is one.
#[test]
fn lock_of_any_kind_is_waited_for() {
    let vendor = Vendor::of(&FakeHost::new(|_, _| Err(fault::generic("is not asked"))));
    let words = [
        "backup",
        "clone",
        "create",
        "migrate",
        "rollback",
        "snapshot",
        "snapshot-delete",
        "suspended",
        "suspending",
        "disk",
        "mounted",
        "fstrim",
        "another",
    ];
    let locks =
        words.iter().flat_map(|word| [format!("VM is locked ({word})"), format!("CT is locked ({word})")]);
    let files = [
        "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout",
        "unable to acquire lock 'storage-x' - got timeout",
    ];
    for text in locks.chain(files.map(str::to_owned)) {
        let answer = json_response(500, &json!({ "data": null, "message": text }));
        for purpose in [Purpose::Update, Purpose::Delete, Purpose::Act] {
            let found = vendor.written(purpose, &answer).unwrap_err();
            assert!(
                matches!(&found, Fault::Busy(info) if info.retry_after_ms.is_some()),
                "{text}: {found:?}"
            );
            assert!(matches!(found.info().effect, Effect::None), "{text}");
        }
    }
}

#[test]
fn guest_that_is_locked_is_left_alone() {
    let device = Device::new();
    let made =
        plan(&device, &change("vm.config", Operation::Update, &json!({ "vmid": 103, "cores": 8 }))).unwrap();
    device.edit(&json!({ "edit": "guest_lock", "vmid": 103, "lock": "backup" }));
    let before = device.state();
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(matches!(&fault, Fault::Busy(info) if matches!(info.effect, Effect::None)), "{fault:?}");
    assert_eq!(device.state(), before);
    device.edit(&json!({ "edit": "guest_lock", "vmid": 103 }));
    run(&device, Stage::Apply, &made).unwrap();
    assert_eq!(standing(&device, &made), "after");
}

#[test]
fn no_lock_is_passed_over() {
    let text = description().to_string();
    assert!(!text.contains("skiplock") && !text.contains("skip-lock"));
}

#[test]
fn without_quorum_reads_go_on() {
    let device = Device::new();
    device.lab().fault(heddle_lab::Fault::vendor("quorum_lost", Value::Null));
    device.wait_ms(1);
    let profile = Proxmox::check(&device.host()).unwrap();
    let quorate = profile.facts.iter().find(|fact| fact.key == "quorate").unwrap();
    assert_eq!(quorate.value, "no");
    assert!(!Proxmox::list_devices(&device.host(), None, None).unwrap().items.is_empty());
    for kind in ["vm.config", "storage.definition", "firewall.rule", "sdn.zone"] {
        Proxmox::list_objects(&device.host(), &Listing::of(kind, 100)).unwrap();
    }
}
