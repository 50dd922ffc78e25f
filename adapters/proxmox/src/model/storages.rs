//! Storages, disks and backups. Each node lists a shared storage and all that is on it: one of them is taken.

use std::collections::BTreeMap;

use heddle_sdk::ModelObject;
use heddle_sdk::crud::Modelled;
use serde_json::Value;

use super::{is_set, rows, text_of};

/// A storage, known as in the list of devices, or a pool of disks. False for what another node has listed.
pub(super) fn volume(row: &Value, object: &mut Modelled) -> bool {
    let name = text_of(row, "storage");
    if name.is_empty() {
        // A pool may be called like the storage on it.
        object.key = format!("zfs:{}", object.key);
        return true;
    }
    let (is_shared, node) = (is_set(row, "shared"), text_of(row, "node"));
    let same = rows(row, "same");
    if is_shared
        && !is_chosen(&node, same, |one| (text_of(one, "node"), text_of(one, "status") == "available"))
    {
        return false;
    }
    object.device = Some(identity(is_shared, &node, &name));
    object.key = if is_shared { name } else { format!("{node}:{name}") };
    true
}

/// The device that a storage is.
fn identity(is_shared: bool, node: &str, name: &str) -> String {
    if is_shared { format!("storage/{name}") } else { format!("storage/{node}/{name}") }
}

/// Whether a node is the first one, by name, of those that have it; of several, one that it works at.
fn is_chosen<'v>(
    node: &str,
    all: impl Iterator<Item = &'v Value>,
    of: impl Fn(&Value) -> (String, bool),
) -> bool {
    let first = all.map(of).map(|(name, works)| (!works, name)).min();
    first.is_none_or(|(_, name)| name == node)
}

/// A disk keeps its serial number, and not its name.
pub(super) fn disk(row: &Value, object: &mut Modelled) {
    let serial = text_of(row, "serial");
    if !serial.is_empty() && serial != "unknown" {
        object.key = format!("{}:{serial}", text_of(&row["$"], "node"));
    } else {
        object.fields.remove("serial");
    }
    for name in ["model", "serial"] {
        if object.fields.get(name).is_some_and(|value| value == "unknown") {
            object.fields.remove(name);
        }
    }
}

/// Gives disks of one node with the same serial number their paths, too. All disks of a node are on one page.
pub(super) fn distinguish(items: &mut [ModelObject]) {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for item in items.iter() {
        *known.entry(item.key.clone()).or_default() += 1;
    }
    for item in items.iter_mut().filter(|item| known.get(&item.key).is_some_and(|count| *count > 1)) {
        // A disk's label is its path.
        item.key = format!("{}:{}", item.key, item.label);
    }
}

/// A backup belongs to its storage. False for what another node has listed.
pub(super) fn backup(row: &Value, object: &mut Modelled) -> bool {
    let (node, storage) = (text_of(&row["$"], "node"), text_of(&row["$"], "storage"));
    let stores = rows(row, "stores");
    let is_shared = stores.clone().any(|store| is_set(store, "shared"));
    let place = |store: &Value| (text_of(&store["$"], "node"), is_set(store, "active"));
    if is_shared && !is_chosen(&node, stores, place) {
        return false;
    }
    object.device = Some(identity(is_shared, &node, &storage));
    let volume = text_of(row, "volid");
    object.key = if is_shared { volume } else { format!("{node}:{volume}") };
    // Backups of what is gone, or of hosts, may name no guest.
    if text_of(row, "vmid").is_empty() {
        object.fields.remove("of");
    }
    true
}

#[cfg(test)]
mod tests {
    use heddle_sdk::Origin;
    use serde_json::json;

    use super::*;

    #[test]
    fn disks_with_the_same_serial_number_are_told_apart() {
        let disk = |key: &str, label: &str| ModelObject {
            key: key.to_owned(),
            label: label.to_owned(),
            origin: Origin::Own,
            device: None,
            native: None,
            fields: String::new(),
        };
        let mut disks = [disk("a:7", "/dev/sda"), disk("a:8", "/dev/sdb"), disk("a:7", "/dev/sdc")];
        distinguish(&mut disks);
        assert_eq!(disks.map(|disk| disk.key), ["a:7:/dev/sda", "a:8", "a:7:/dev/sdc"]);
    }

    #[test]
    fn one_node_speaks_for_a_shared_storage() {
        let all = [json!({ "n": "c", "up": 1 }), json!({ "n": "b", "up": 1 }), json!({ "n": "a", "up": 0 })];
        let of = |row: &Value| (text_of(row, "n"), is_set(row, "up"));
        let chosen: Vec<&str> =
            ["a", "b", "c"].into_iter().filter(|node| is_chosen(node, all.iter(), of)).collect();
        assert_eq!(chosen, ["b"]);
        assert!(is_chosen("a", [].iter(), of));
    }
}
