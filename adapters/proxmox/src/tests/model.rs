//! What the adapter fills of the model, against the simulated cluster.

use std::collections::{BTreeMap, BTreeSet};

use heddle_lab::Controller as _;
use heddle_lab_proxmox::ROOT_TOKEN;
use heddle_marketplace::model;
use heddle_sdk::testing::every_page;
use heddle_sdk::{Adapter as _, ModelObject};
use serde_json::{Map, Value, json};

use super::device::{Device, description};
use crate::Proxmox;

mod odd;
mod values;

/// The kinds that are filled, with the names of their fields.
fn filled() -> BTreeMap<String, BTreeSet<String>> {
    let all = description()["model"].as_array().unwrap();
    let fields = |kind: &Value| {
        let names = kind["fields"].as_array().unwrap().iter();
        names.map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    all.iter().map(|kind| (kind["kind"].as_str().unwrap().to_owned(), fields(kind))).collect()
}

/// A write at the console of the cluster.
fn post(device: &Device, path: &str, body: &str) {
    let sent = heddle_lab::Request::new("POST", &format!("/api2/json{path}"), body.to_owned())
        .with_header("authorization", ROOT_TOKEN)
        .with_header("content-type", "application/x-www-form-urlencoded");
    {
        let mut locked = device.lab().lock();
        let (cluster, context) = locked.parts();
        let answer = cluster.handle(&sent, context);
        assert_eq!(
            answer.status,
            200,
            "{path}: {:?} {}",
            answer.reason,
            String::from_utf8_lossy(&answer.body)
        );
    }
    device.wait_ms(60_000);
}

/// A cluster with something of every kind.
pub(super) fn cluster() -> Device {
    let device = Device::new();
    for (path, body) in [
        ("/cluster/sdn/zones", "zone=guests&type=simple&dhcp=dnsmasq&ipam=pve"),
        ("/cluster/sdn/vnets", "vnet=visitors&zone=guests&alias=Visitors"),
        (
            "/cluster/sdn/vnets/visitors/subnets",
            "subnet=10.50.0.0/24&type=subnet&gateway=10.50.0.1&dhcp-dns-server=10.50.0.1\
             &dhcp-range=start-address%3D10.50.0.100%2Cend-address%3D10.50.0.200",
        ),
        ("/cluster/sdn/zones", "zone=overlay&type=vxlan&peers=192.0.2.11"),
        ("/cluster/sdn/vnets", "vnet=far&zone=overlay&tag=100"),
        ("/cluster/sdn/vnets/servers/ips", "ip=10.40.0.9&mac=BC:24:11:00:02:00&zone=lan"),
        ("/cluster/firewall/ipset/management", "cidr=10.20.0.0/24"),
        ("/cluster/firewall/ipset/management", "cidr=10.20.0.9&nomatch=1"),
        (
            "/nodes/pve1/firewall/rules",
            "type=out&action=REJECT&iface=vmbr0&dest=10.20.0.0/24&proto=tcp&dport=25,1000:2000&log=info&enable=1",
        ),
        ("/nodes/pve1/lxc/200/firewall/rules", "type=in&action=DROP&proto=icmp&icmp-type=echo-request"),
        ("/nodes/pve1/qemu/101/snapshot", "snapname=before&description=x"),
        ("/nodes/pve1/qemu/101/snapshot", "snapname=later"),
        ("/nodes/pve1/lxc/200/snapshot", "snapname=clean"),
    ] {
        post(&device, path, body);
    }
    for edit in [
        json!({ "edit": "object_set", "path": "/nodes/pve1/disks/zfs", "id": "tank", "values": {
            "size": 3_985_729_650_688_u64, "alloc": 1_200_000_000_000_u64, "free": 2_785_729_650_688_u64,
            "frag": 4, "dedup": 1, "health": "DEGRADED",
        } }),
        json!({ "edit": "guest_lock", "vmid": 103, "lock": "suspended" }),
        json!({ "edit": "rule_add", "scope": "vnets/servers", "values": {
            "type": "forward", "action": "DROP", "enable": 1, "proto": "udp", "sport": "53", "iface": "vmbr0",
            "source": "10.40.0.0/24,office", "log": "nolog", "comment": "no names from outside",
        } }),
    ] {
        device.edit(&edit);
    }
    device
}

/// All pages of a kind, and how many requests they took.
fn read(device: &Device, kind: &str) -> (Vec<ModelObject>, usize, bool) {
    device.asked.borrow_mut().clear();
    let (objects, is_complete) = every_page(|cursor| Proxmox::list_model(&device.host(), kind, None, cursor));
    (objects, device.asked.borrow().len(), is_complete)
}

fn fields(object: &ModelObject) -> Map<String, Value> {
    serde_json::from_str(&object.fields).unwrap()
}

/// The fields of one object.
fn one(device: &Device, kind: &str, key: &str) -> Value {
    let (objects, ..) = read(device, kind);
    let known: Vec<&str> = objects.iter().map(|object| object.key.as_str()).collect();
    let found = objects.iter().find(|object| object.key == key);
    let found = found.unwrap_or_else(|| panic!("there is no {kind} '{key}', but {known:?}"));
    Value::Object(fields(found))
}

/// The same without what moves by itself.
fn settled(device: &Device, kind: &str, key: &str) -> Value {
    let mut object = one(device, kind, key);
    let schema = model::find(kind).unwrap();
    object.as_object_mut().unwrap().retain(|name, _| !schema.is_measured(name));
    object
}

#[test]
fn every_kind_is_filled_as_its_schema_says_and_as_it_is_declared() {
    let device = cluster();
    let devices = Proxmox::list_devices(&device.host(), None, None).unwrap().items;
    let devices: BTreeSet<String> = devices.into_iter().map(|device| device.identity).collect();
    for (kind, declared) in filled() {
        let (objects, _, is_complete) = read(&device, &kind);
        assert!(!objects.is_empty() && is_complete, "{kind}");
        let (schema, mut keys, mut seen) = (model::find(&kind).unwrap(), BTreeSet::new(), BTreeSet::new());
        for object in &objects {
            let fields = fields(object);
            assert_eq!(schema.problem(&fields), None, "{kind} '{}': {}", object.key, object.fields);
            assert!(keys.insert(object.key.clone()), "{kind} '{}' is there twice", object.key);
            assert!(!object.label.is_empty(), "{kind} '{}'", object.key);
            let device = object.device.as_ref();
            assert!(device.is_none_or(|one| devices.contains(one)), "{kind} '{}': {device:?}", object.key);
            seen.extend(fields.into_iter().map(|(name, _)| name));
        }
        assert_eq!(seen, declared, "{kind}");
    }
}

#[test]
fn objects_of_the_model_lead_back_to_the_cluster_s_own() {
    let device = cluster();
    for kind in filled().keys() {
        let (objects, ..) = read(&device, kind);
        for object in objects.iter().take(3) {
            let native = object.native.as_ref().unwrap();
            let found = Proxmox::get_object(&device.host(), &native.kind, None, &native.key);
            assert!(found.is_ok(), "{kind} '{}': {} '{}'", object.key, native.kind, native.key);
        }
    }
}
