//! Nodes, guests and storages, out of one list that the cluster keeps.

use heddle_sdk::{Completeness, Device, DevicePage, Fault, Host, Status, json as sdk_json};
use serde_json::{Map, Value};

use crate::answer::{number, read};
use crate::profile;

/// Fields that tell what something is.
const ATTRIBUTES: [&str; 13] = [
    "node",
    "vmid",
    "tags",
    "pool",
    "template",
    "hastate",
    "lock",
    "maxcpu",
    "maxmem",
    "maxdisk",
    "content",
    "plugintype",
    "shared",
];
/// Fields that move by themselves.
const MEASUREMENTS: [&str; 9] =
    ["cpu", "mem", "disk", "uptime", "netin", "netout", "diskread", "diskwrite", "memhost"];

/// Everything on one page.
pub(crate) fn list(host: &dyn Host) -> Result<DevicePage, Fault> {
    let resources = read(host, "/cluster/resources")?;
    let status = read(host, "/cluster/status").unwrap_or_default();
    let version = read(host, "/version").unwrap_or_default();
    let rights = read(host, "/access/permissions").unwrap_or_default();
    let mut items: Vec<Device> = Vec::new();
    for row in sdk_json::items(&resources, "") {
        let device = match sdk_json::text(row, "/type") {
            Some("node") => node(row, &status, &version),
            Some(kind @ ("qemu" | "lxc")) => guest(row, kind),
            Some("storage") => storage(row),
            _ => None,
        };
        // A shared storage is listed for each of its nodes.
        if let Some(device) = device.filter(|new| !items.iter().any(|known| known.identity == new.identity)) {
            items.push(device);
        }
    }
    // An empty list may mean that nothing may be seen.
    let sees_all = ["VM.Audit", "Sys.Audit", "Datastore.Audit"]
        .iter()
        .all(|privilege| profile::holds_everywhere(&rights, privilege));
    let complete = if sees_all { Completeness::Complete } else { Completeness::RightsLimited };
    Ok(DevicePage { items, next: None, complete })
}

fn picked(row: &Value, names: &[&str]) -> String {
    let one = |name: &&str| Some(((*name).to_owned(), row.get(*name)?.clone()));
    Value::Object(names.iter().filter_map(one).collect::<Map<_, _>>()).to_string()
}

fn described(row: &Value, identity: String, name: String, kind: &str, status: Status) -> Device {
    Device {
        identity,
        kind: kind.to_owned(),
        status,
        attributes: picked(row, &ATTRIBUTES),
        measurements: picked(row, &MEASUREMENTS),
        ..Device::named(name)
    }
}

fn node(row: &Value, status: &Value, version: &Value) -> Option<Device> {
    let name = sdk_json::text(row, "/node")?;
    let state = match sdk_json::text(row, "/status") {
        Some("online") => Status::Online,
        Some("offline") => Status::Offline,
        _ => Status::Unknown,
    };
    let is_it = |known: &&Value| known["type"] == "node" && known["name"] == name;
    let own = sdk_json::items(status, "").iter().find(is_it);
    let address = own.and_then(|known| sdk_json::text(known, "/ip")).map(str::to_owned);
    // Only the version of the node that answers is known.
    let is_local = own.is_some_and(|known| number(known, "/local") == Some(1));
    let firmware = sdk_json::text(version, "/version").filter(|_| is_local).map(str::to_owned);
    let device = described(row, format!("node/{name}"), name.to_owned(), "hypervisor", state);
    Some(Device {
        model: Some("Proxmox VE".to_owned()),
        firmware,
        addresses: address.into_iter().collect(),
        ..device
    })
}

fn guest(row: &Value, kind: &str) -> Option<Device> {
    let vmid = number(row, "/vmid")?;
    let state = match sdk_json::text(row, "/status") {
        Some("running" | "paused") => Status::Online,
        Some("stopped") => Status::Offline,
        _ => Status::Unknown,
    };
    let name = sdk_json::text(row, "/name").map_or_else(|| vmid.to_string(), str::to_owned);
    let word = if kind == "qemu" { "virtual-machine" } else { "container" };
    Some(described(row, format!("{kind}/{vmid}"), name, word, state))
}

fn storage(row: &Value) -> Option<Device> {
    let name = sdk_json::text(row, "/storage")?;
    let is_shared = number(row, "/shared") == Some(1);
    let node = sdk_json::text(row, "/node").unwrap_or_default();
    let state = match sdk_json::text(row, "/status") {
        Some("available") => Status::Online,
        _ => Status::Unknown,
    };
    let identity = if is_shared { format!("storage/{name}") } else { format!("storage/{node}/{name}") };
    let mut device = described(row, identity, name.to_owned(), "storage", state);
    if is_shared {
        // It belongs to no node in particular.
        let mut attributes: Map<String, Value> = serde_json::from_str(&device.attributes).unwrap_or_default();
        attributes.remove("node");
        device.attributes = Value::Object(attributes).to_string();
    }
    Some(device)
}
