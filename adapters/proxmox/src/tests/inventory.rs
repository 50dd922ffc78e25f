//! Who the cluster is, what is in it, and every kind of object.

use heddle_lab::Fault as LabFault;
use heddle_lab_proxmox::Setup;
use heddle_sdk::{Adapter as _, Attribute, Availability, Completeness, Fault, FaultExt, Listing, Status};
use serde_json::{Value, json};

use super::device::{Device, description};
use crate::Proxmox;

#[test]
fn cluster_says_who_it_is_and_what_it_can_do() {
    let profile = Proxmox::check(&Device::new().host()).unwrap();
    assert_eq!((profile.product.as_str(), profile.version.as_str()), ("Proxmox VE", "9.1.3"));
    let has = |profile: &heddle_sdk::DeviceProfile, id: &str| {
        let found = profile.capabilities.iter().find(|known| known.id == id).unwrap();
        matches!(found.available, Availability::Yes)
    };
    assert!(has(&profile, "ha-rules") && has(&profile, "write-guests") && !has(&profile, "ceph"));
    let fact = |key: &str| profile.facts.iter().find(|fact| fact.key == key).map(|fact| fact.value.as_str());
    assert_eq!((fact("cluster"), fact("nodes")), (Some("lab"), Some("pve1, pve2")));
    let older = Proxmox::check(&Device::of(Setup { release: (8, 4), ..Setup::default() }).host()).unwrap();
    assert!(!has(&older, "ha-rules"));
    assert_ne!(profile.fingerprint, older.fingerprint);
    let auditor = Proxmox::check(&Device::new().for_auditor().host()).unwrap();
    assert!(has(&auditor, "read-guests") && !has(&auditor, "write-guests"));
}

#[test]
fn release_that_is_too_old_is_refused() {
    let old = Device::of(Setup { release: (8, 2), ..Setup::default() });
    let fault = Proxmox::check(&old.host()).unwrap_err();
    assert!(matches!(&fault, Fault::Unsupported(info) if info.message.contains("8.4")), "{fault:?}");
}

#[test]
fn wrong_token_is_an_authentication_fault() {
    let device = Device::new().with_token("PVEAPIToken=root@pam!heddle=wrong");
    assert!(matches!(Proxmox::check(&device.host()).unwrap_err(), Fault::Authentication(_)));
}

#[test]
fn requests_go_by_the_session_that_the_settings_name() {
    let device = Device::new().with_settings(json!({ "login": "ticket" }));
    Proxmox::check(&device.host()).unwrap();
    Proxmox::list_objects(&device.host(), &Listing::of("vm.vm", 10)).unwrap();
}

#[test]
fn devices_are_nodes_guests_and_storages() {
    let device = Device::new();
    let page = Proxmox::list_devices(&device.host(), None, None).unwrap();
    let of_kind = |kind: &str| page.items.iter().filter(|item| item.kind == kind).count();
    assert_eq!((of_kind("hypervisor"), of_kind("virtual-machine"), of_kind("container")), (2, 5, 2));
    let find = |identity: &str| page.items.iter().find(|item| item.identity == identity).unwrap();
    let node = find("node/pve1");
    assert_eq!(
        (node.addresses.as_slice(), node.firmware.as_deref()),
        (&["192.0.2.11".to_owned()][..], Some("9.1.3"))
    );
    assert!(matches!(node.status, Status::Online));
    assert!(matches!(find("qemu/101").status, Status::Online));
    assert!(matches!(find("qemu/103").status, Status::Offline));
    let measured: Value = serde_json::from_str(&find("qemu/101").measurements).unwrap();
    assert!(measured["uptime"].as_u64().is_some_and(|secs| secs > 0), "{measured}");
    let attributes: Value = serde_json::from_str(&find("qemu/101").attributes).unwrap();
    assert_eq!(
        (attributes["node"].as_str(), attributes["pool"].as_str()),
        (Some("pve1"), Some("production"))
    );
    // A shared storage is one, however many nodes have it.
    assert_eq!(page.items.iter().filter(|item| item.name == "nas").count(), 1);
    assert_eq!(page.items.iter().filter(|item| item.name == "local").count(), 2);
    assert!(matches!(page.complete, Completeness::Complete));
    assert_eq!((device.writes.get(), device.asked.borrow().len()), (0, 4));
}

#[test]
fn node_that_is_away_and_its_guests_are_told() {
    let device = Device::new();
    device.lab().fault(LabFault::vendor("node_offline", json!({ "node": "pve2" })));
    device.wait_ms(1);
    let page = Proxmox::list_devices(&device.host(), None, None).unwrap();
    let find = |identity: &str| page.items.iter().find(|item| item.identity == identity).unwrap();
    assert!(matches!(find("node/pve2").status, Status::Offline));
    assert!(matches!(find("qemu/102").status, Status::Unknown));
    // Lists of what belongs to nodes have the rest.
    let services = Proxmox::list_objects(&device.host(), &Listing::of("node.service", 1000)).unwrap();
    assert!(!services.items.is_empty() && matches!(services.complete, Completeness::Partial));
}

#[test]
fn two_thousand_guests_take_no_more_requests() {
    let device = Device::of(Setup { guests: 2000, ..Setup::default() });
    let page = Proxmox::list_devices(&device.host(), None, None).unwrap();
    assert!(page.items.len() > 2000);
    assert_eq!(device.asked.borrow().len(), 4);
}

/// Filters that make a read possible.
fn filters(kind: &Value) -> Vec<Attribute> {
    let known = |name: &str| match name {
        "node" => "pve1",
        "vmid" => {
            if kind["id"].as_str().unwrap().starts_with("container") {
                "200"
            } else {
                "101"
            }
        }
        "storage" => "nas",
        "timeframe" => "hour",
        "feature" => "snapshot",
        "service" => {
            if kind["id"] == "ceph.safety" {
                "osd"
            } else {
                "cron"
            }
        }
        "action" => "stop",
        "osdid" | "id" => "1",
        "pid" => "7",
        "file" => "/etc/hosts",
        "disk" => "/dev/sda",
        "schedule" => "daily",
        "url" => "https://a.example/x",
        "config-keys" => "mon:debug",
        "filepath" => "Lw==",
        "volume" => "nas:backup/vzdump-qemu-101.vma.zst",
        "reference" => "a.example/x",
        "portal" | "server" => "192.0.2.5",
        "pci-id-or-mapping" => "0000:01:00.0",
        "upid" => "UPID:pve1:0017C594:0ADB2769:665F1A20:qmstart:101:root@pam:",
        _ => "sample",
    };
    let needed = kind["binding"]["asked"]["needs"].as_array().into_iter().flatten().filter_map(Value::as_str);
    needed.map(|name| Attribute { key: name.to_owned(), value: known(name).to_owned() }).collect()
}

#[test]
fn every_kind_is_listed_and_nothing_but_reads_is_sent() {
    let device = Device::of(Setup { release: (9, 2), has_ceph: true, ..Setup::default() });
    let (state, mut failures) = (device.state(), Vec::new());
    for kind in description()["kinds"].as_array().unwrap() {
        let id = kind["id"].as_str().unwrap();
        let filter = filters(kind);
        match Proxmox::list_objects(&device.host(), &Listing { filter: &filter, ..Listing::of(id, 1000) }) {
            Ok(page) => {
                for item in page.items.iter().take(2) {
                    let key = &item.reference.key;
                    serde_json::from_str::<Value>(&item.body).unwrap();
                    if kind["binding"].get("asked").is_some() {
                        continue;
                    }
                    if let Err(fault) = Proxmox::get_object(&device.host(), id, None, key) {
                        failures.push(format!("{id} '{key}': {}", fault.info().message));
                    }
                }
            }
            // What is about one thing is not there for every guest or name.
            Err(Fault::NotFound(_) | Fault::Conflict(_)) if !filter.is_empty() => {}
            Err(fault) => failures.push(format!("{id}: {}", fault.info().message)),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!((device.state(), device.writes.get()), (state, 0));
}

#[test]
fn read_that_needs_a_filter_says_which() {
    let device = Device::new();
    let fault = Proxmox::list_objects(&device.host(), &Listing::of("vm.metrics", 10)).unwrap_err();
    assert!(fault.info().message.contains("node, vmid, timeframe"), "{}", fault.info().message);
    let filter = [("node", "pve1"), ("vmid", "101"), ("timeframe", "hour")]
        .map(|(key, value)| Attribute { key: key.to_owned(), value: value.to_owned() });
    let listing = Listing { filter: &filter, ..Listing::of("vm.metrics", 10) };
    assert!(!Proxmox::list_objects(&device.host(), &listing).unwrap().items.is_empty());
    let wrong = [Attribute { key: "colour".to_owned(), value: "red".to_owned() }];
    let listing = Listing { filter: &wrong, ..Listing::of("vm.metrics", 10) };
    assert!(matches!(Proxmox::list_objects(&device.host(), &listing), Err(Fault::Invalid(_))));
}

#[test]
fn configuration_in_a_list_has_what_the_list_tells_and_nothing_empty() {
    let device = Device::new();
    let page = Proxmox::list_objects(&device.host(), &Listing::of("vm.config", 100)).unwrap();
    let bodies = page.items.iter().map(|item| serde_json::from_str::<Value>(&item.body).unwrap());
    assert!(bodies.into_iter().all(|body| body.as_object().unwrap().values().all(|value| !value.is_null())));
    let one = Proxmox::get_object(&device.host(), "vm.config", None, "101").unwrap();
    let body: Value = serde_json::from_str(&one.body).unwrap();
    assert_eq!((body["name"].as_str(), body["net0"]["tag"].as_str()), (Some("web"), Some("20")));
}

#[test]
fn what_belongs_to_parents_is_listed_by_them() {
    let device = Device::new();
    let keys = |kind: &str, name: &str, value: &str| -> Vec<String> {
        let filter = [Attribute { key: name.to_owned(), value: value.to_owned() }];
        let listing = Listing { filter: &filter, ..Listing::of(kind, 1000) };
        let page = Proxmox::list_objects(&device.host(), &listing).unwrap();
        page.items.into_iter().map(|item| item.reference.key).collect()
    };
    let services = keys("node.service", "node", "pve2");
    assert!(!services.is_empty() && services.iter().all(|key| key.starts_with("pve2:")), "{services:?}");
    assert_eq!(keys("firewall.group-rule", "group", "webserver").len(), 1);
    assert_eq!(keys("sdn.subnet", "vnet", "servers"), ["servers:10.40.0.0/24"]);
    assert!(keys("storage.volume", "storage", "nas").iter().all(|key| key.contains(":nas:nas:")));
    let one = Proxmox::get_object(&device.host(), "node.service", None, "pve2:cron").unwrap();
    let body: Value = serde_json::from_str(&one.body).unwrap();
    assert_eq!((body["node"].as_str(), body["state"].as_str()), (Some("pve2"), Some("running")));
}
