//! Changes in the words of the model, where the bindings of `model.json` do not say everything.

use heddle_sdk::crud::{self, Asked, Expressed, Vendor, refused};
use heddle_sdk::{Fault, Host, Operation, fault};
use serde_json::{Map, Value, json};

use super::text_of;

/// Longest name of a network of the SDN.
const VNET_CHARS: usize = 8;

/// Completes what a change is in the cluster's own features.
pub(crate) fn expressed(
    vendor: &dyn Vendor,
    host: &dyn Host,
    asked: &Asked<'_>,
    changes: &mut Vec<Expressed>,
) -> Result<(), Fault> {
    let Some(change) = changes.first_mut() else { return Ok(()) };
    match asked.kind {
        "vlan" => vlan(vendor, host, asked, change),
        "dhcp-pool" => {
            ranges(asked, &mut change.payload);
            Ok(())
        }
        "dhcp-reservation" if change.operation == Operation::Create => {
            let zone = zone_of(vendor, host, &text_of(&json!(asked.fields), "scope"))?;
            change.payload.insert("zone".to_owned(), json!(zone));
            Ok(())
        }
        "firewall-rule" => rule(asked, change),
        "address-group" => group(asked, changes),
        "snapshot" if asked.verb == "create" => snapshot(vendor, host, asked, change),
        _ => Ok(()),
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// All objects of a kind, as they are shown.
fn all(vendor: &dyn Vendor, host: &dyn Host, kind: &str) -> Result<Vec<Value>, Fault> {
    Ok(crud::every_object(vendor, host, kind, None)?.into_iter().map(|(_, object)| object).collect())
}

/// A VLAN is a network of the only zone of that type, named by its interface or by its number.
fn vlan(
    vendor: &dyn Vendor,
    host: &dyn Host,
    asked: &Asked<'_>,
    change: &mut Expressed,
) -> Result<(), Fault> {
    let own = asked.fields.get("interface");
    if change.operation != Operation::Create {
        return match own {
            Some(own) if change.payload.get("vnet") != Some(own) => {
                Err(refused("interface", "names the network there; make a new one and delete this one"))
            }
            _ => Ok(()),
        };
    }
    let zones = all(vendor, host, "sdn.zone")?;
    let zones: Vec<String> = zones
        .iter()
        .filter(|zone| text_of(zone, "type") == "vlan")
        .map(|zone| text_of(zone, "zone"))
        .collect();
    let [zone] = zones.as_slice() else {
        let message = format!(
            "{} zones of the SDN are of the type vlan, and a network needs one: stage proxmox.sdn.vnet",
            zones.len()
        );
        return Err(fault::invalid(message));
    };
    let name = match own.and_then(Value::as_str) {
        Some(own) if own.chars().count() > VNET_CHARS => {
            return Err(refused("interface", "has at most 8 characters there"));
        }
        Some(own) => own.to_owned(),
        None => format!("vlan{}", text_of(&json!(asked.fields), "vlan_id")),
    };
    change.payload.insert("vnet".to_owned(), json!(name));
    change.payload.insert("zone".to_owned(), json!(zone));
    Ok(())
}

/// The zone of a network.
fn zone_of(vendor: &dyn Vendor, host: &dyn Host, vnet: &str) -> Result<String, Fault> {
    let vnets = all(vendor, host, "sdn.vnet")?;
    let found = vnets.iter().find(|one| text_of(one, "vnet") == vnet);
    found
        .map(|vnet| text_of(vnet, "zone"))
        .ok_or_else(|| refused("scope", "is needed: the name of a network of the SDN"))
}

fn ranges(asked: &Asked<'_>, payload: &mut Map<String, Value>) {
    if let Some(ranges) = asked.fields.get("ranges") {
        let one = |range: &Value| {
            format!("start-address={},end-address={}", text_of(range, "from"), text_of(range, "to"))
        };
        let ranges: Vec<String> = ranges.as_array().into_iter().flatten().map(one).collect();
        payload.insert("dhcp-range".to_owned(), json!(ranges));
    }
}

fn rule(asked: &Asked<'_>, change: &mut Expressed) -> Result<(), Fault> {
    let (fields, payload) = (asked.fields, &mut change.payload);
    if change.operation == Operation::Create {
        owner(fields, payload)?;
    }
    let known = asked.row.map(|row| text_of(row, "type")).unwrap_or_default();
    let direction = fields.get("direction").and_then(Value::as_str).unwrap_or(&known);
    let (own, other) = if direction == "out" { ("to", "from") } else { ("from", "to") };
    if fields.get(other).is_some_and(|list| !texts(list).is_empty()) {
        return Err(refused(other, "goes with the other direction there"));
    }
    if let Some(interfaces) = fields.get(own) {
        put_text(payload, "iface", &texts(interfaces).join(","));
    }
    for (field, place) in [("source", "source"), ("destination", "dest")] {
        if let Some(side) = fields.get(field) {
            if side.get("negated") == Some(&json!(true)) {
                return Err(refused(&format!("{field}/negated"), "has no word there"));
            }
            if !texts(&side["networks"]).is_empty() {
                return Err(refused(&format!("{field}/networks"), "are addresses there, or sets: groups"));
            }
            let groups = texts(&side["groups"]).into_iter().map(|name| format!("+{name}"));
            let parts: Vec<String> = texts(&side["addresses"]).into_iter().chain(groups).collect();
            put_text(payload, place, &parts.join(","));
        }
    }
    for (field, place) in [("source_ports", "sport"), ("destination_ports", "dport")] {
        if let Some(ports) = fields.get(field) {
            let ports: Vec<String> = texts(ports).iter().map(|port| port.replace('-', ":")).collect();
            put_text(payload, place, &ports.join(","));
        }
    }
    Ok(())
}

/// What is empty is not there.
fn put_text(payload: &mut Map<String, Value>, name: &str, text: &str) {
    payload.insert(name.to_owned(), if text.is_empty() { Value::Null } else { json!(text) });
}

/// The list that a new rule stands in: the scope says whose.
fn owner(fields: &Map<String, Value>, payload: &mut Map<String, Value>) -> Result<(), Fault> {
    let key = text_of(&fields.get("scope").cloned().unwrap_or_default(), "key");
    let Some((kind, name)) = key.split_once('/') else { return Ok(()) };
    let (field, value) = match kind {
        "node" => ("node", json!(name)),
        "vnet" => ("vnet", json!(name)),
        "group" => ("group", json!(name)),
        _ => {
            let number: u32 =
                name.parse().map_err(|_| refused("scope/key", "is the number of a guest: qemu/101"))?;
            ("vmid", json!(number))
        }
    };
    payload.insert(field.to_owned(), value);
    Ok(())
}

/// A set and its entries are objects of their own; an alias is one address. What is created is an alias: entries of a set
/// that is not there yet cannot be planned.
fn group(asked: &Asked<'_>, changes: &mut Vec<Expressed>) -> Result<(), Fault> {
    let change = &changes[0];
    if asked.fields.get("type").is_some_and(|kind| kind != "addresses") {
        return Err(refused("type", "can be addresses there"));
    }
    if change.feature != "proxmox.firewall.ipset" {
        return Ok(());
    }
    let name = change.payload.get("name").cloned().unwrap_or_default();
    let known: Vec<String> = asked.row.map(entries).unwrap_or_default();
    let wanted = match (asked.verb, asked.fields.get("members")) {
        ("delete", _) => Some(Vec::new()),
        (_, members) => members.map(texts),
    };
    let Some(wanted) = wanted else { return Ok(()) };
    let entry = |operation: Operation, member: &str| {
        let cidr = member.trim_start_matches('!');
        let mut payload = Map::new();
        payload.insert("name".to_owned(), name.clone());
        payload.insert("cidr".to_owned(), json!(cidr));
        if operation == Operation::Create && cidr != member {
            payload.insert("nomatch".to_owned(), json!(true));
        }
        Expressed { feature: "proxmox.firewall.ipset-entry".to_owned(), operation, payload }
    };
    let gone = known.iter().filter(|member| !wanted.contains(member));
    let mut all: Vec<Expressed> = gone.map(|member| entry(Operation::Delete, member)).collect();
    let new = wanted.iter().filter(|member| !known.contains(member));
    all.extend(new.map(|member| entry(Operation::Create, member)));
    // A set goes after its entries; an update is of the entries alone.
    match asked.verb {
        "delete" => changes.splice(0..0, all).for_each(drop),
        _ if !all.is_empty() => *changes = all,
        _ => {}
    }
    Ok(())
}

fn entries(row: &Value) -> Vec<String> {
    let entries = row["&"]["entries"].as_array().into_iter().flatten();
    let shown = |entry: &Value| {
        let sign = if text_of(entry, "nomatch") == "1" { "!" } else { "" };
        format!("{sign}{}", text_of(entry, "cidr"))
    };
    entries.map(shown).collect()
}

/// A snapshot is of a machine or of a container: the number says which.
fn snapshot(
    vendor: &dyn Vendor,
    host: &dyn Host,
    asked: &Asked<'_>,
    change: &mut Expressed,
) -> Result<(), Fault> {
    let key = text_of(&asked.fields.get("of").cloned().unwrap_or_default(), "key");
    let number: u32 = key.parse().map_err(|_| refused("of/key", "is the number of a guest"))?;
    let containers = all(vendor, host, "container.container")?;
    if containers.iter().any(|one| text_of(one, "vmid") == key) {
        "proxmox.snapshot.container".clone_into(&mut change.feature);
    }
    change.payload.insert("vmid".to_owned(), json!(number));
    Ok(())
}
