//! VLANs and ports.

use heddle_sdk::crud::{Asked, Expressed, refused};
use heddle_sdk::{Fault, Host, Operation};
use serde_json::{Value, json};

use super::super::network::{addresses as interface_addresses, tagged};
use super::super::{beside, several, text};
use super::{asked_text, change, own, texts};

/// A VLAN with an interface of its own, or a row of a bridge.
pub(super) fn vlan(asked: &Asked<'_>, changes: &mut Vec<Expressed>) -> Result<(), Fault> {
    if own(changes)?.feature.ends_with("bridge-vlan") {
        of_bridge(asked, own(changes)?);
        return Ok(());
    }
    let is_new = own(changes)?.operation == Operation::Create;
    if let Some(members) = asked.fields.get("members").and_then(Value::as_array) {
        let [member] = members.as_slice() else {
            return Err(refused("members", "is exactly one there: the interface that carries the VLAN"));
        };
        if member.get("tagged") == Some(&json!(false)) {
            return Err(refused("members/0/tagged", "is always true there"));
        }
        own(changes)?.payload.insert("interface".to_owned(), member["port"].clone());
    } else if is_new {
        return Err(refused("members", "is needed there: the interface that carries the VLAN"));
    }
    if own(changes)?.operation == Operation::Delete {
        return Ok(());
    }
    addresses(asked, changes, is_new)
}

/// The address of the router in the network of a VLAN.
fn addresses(asked: &Asked<'_>, changes: &mut Vec<Expressed>, is_new: bool) -> Result<(), Fault> {
    let (subnets, gateway) = (asked.fields.get("subnets").map(texts), asked_text(asked, "gateway"));
    if subnets.is_none() && gateway.is_none() {
        return Ok(());
    }
    let (Some([subnet]), Some(gateway)) = (subnets.as_deref(), gateway) else {
        return Err(refused("subnets", "is one network, with the gateway in it: the address of the router"));
    };
    let bits = subnet.split_once('/').map(|(_, bits)| bits);
    let bits = bits.ok_or_else(|| refused("subnets/0", "needs the length of its prefix"))?;
    let name = own(changes)?.payload.get("name").cloned();
    let name = name.ok_or_else(|| refused("name", "is needed there: the address is bound to it"))?;
    let feature = if gateway.contains(':') { "ip.ipv6-address" } else { "ip.address" };
    let payload = |address: &str| json!({ "address": address, "interface": name });
    let wanted = format!("{gateway}/{bits}");
    let known = if is_new { Vec::new() } else { asked.row.map(interface_addresses).unwrap_or_default() };
    let known: Vec<String> =
        known.into_iter().filter(|own| own.contains(':') == gateway.contains(':')).collect();
    if known.contains(&wanted) {
        return Ok(());
    }
    if known.len() > 1 {
        return Err(refused("gateway", "is one of several addresses there: use mikrotik.ip.address"));
    }
    changes.push(change(feature, Operation::Create, payload(&wanted)));
    // The old one goes last, so that there is a way to the router all the time.
    changes.extend(known.iter().map(|own| change(feature, Operation::Delete, payload(own))));
    if !is_new && own(changes)?.payload.len() == 1 {
        changes.remove(0);
    }
    Ok(())
}

fn of_bridge(asked: &Asked<'_>, change: &mut Expressed) {
    let Some(members) = asked.fields.get("members").and_then(Value::as_array) else { return };
    let named = |is_tagged: bool| -> Vec<&Value> {
        let own = members.iter().filter(|member| (member["tagged"] == json!(true)) == is_tagged);
        own.map(|member| &member["port"]).collect()
    };
    let as_list = |ports: Vec<&Value>| if ports.is_empty() { Value::Null } else { json!(ports) };
    change.payload.insert("tagged".to_owned(), as_list(named(true)));
    // Ports whose own VLAN it is are added by the router.
    let current: Vec<&str> =
        asked.row.and_then(|row| text(row, "current-untagged")).unwrap_or_default().split(',').collect();
    let configured = asked.row.and_then(|row| text(row, "untagged")).unwrap_or_default();
    let is_own = |port: &&Value| {
        let name = port.as_str().unwrap_or_default();
        !current.contains(&name) || configured.split(',').any(|known| known == name)
    };
    change.payload.insert("untagged".to_owned(), as_list(named(false).into_iter().filter(is_own).collect()));
}

/// A port is a row of several menus: its own, that of its bridge, and that of its power.
pub(super) fn port(host: &dyn Host, asked: &Asked<'_>, changes: &mut Vec<Expressed>) -> Result<(), Fault> {
    let Some(row) = asked.row else { return Ok(()) };
    let name = text(row, "name").unwrap_or_default();
    if let Some(vlan) = asked.fields.get("native_vlan") {
        if beside(row, "bridge").is_none() {
            return Err(refused("native_vlan", "needs a port that is in a bridge"));
        }
        let payload = json!({ "interface": name, "pvid": vlan });
        changes.push(change("interfaces.bridge-port", Operation::Update, payload));
    }
    if let Some(vlans) = asked.fields.get("tagged_vlans").and_then(Value::as_array) {
        carried(host, row, name, vlans, changes)?;
    }
    if let Some(is_on) = asked.fields.get("poe").and_then(|poe| poe.get("enabled")).and_then(Value::as_bool) {
        if beside(row, "poe").is_none() {
            return Err(refused("poe/enabled", "needs a port that gives power"));
        }
        let payload = json!({ "name": name, "poe-out": if is_on { "auto-on" } else { "off" } });
        changes.push(change("interfaces.ethernet-poe", Operation::Update, payload));
    }
    if !asked.fields.contains_key("enabled") {
        changes.remove(0);
    }
    Ok(())
}

/// Puts the port into the rows of its bridge for these VLANs, and takes it out of the others.
fn carried(
    host: &dyn Host,
    row: &Value,
    name: &str,
    vlans: &[Value],
    changes: &mut Vec<Expressed>,
) -> Result<(), Fault> {
    let bridge = beside(row, "bridge").and_then(|port| text(port, "bridge"));
    let bridge = bridge.ok_or_else(|| refused("tagged_vlans", "needs a port that is in a bridge"))?;
    let wanted: Vec<u64> = vlans.iter().filter_map(Value::as_u64).collect();
    let known = tagged(row);
    for left in known.iter().filter(|vlan| !wanted.contains(&u64::from(**vlan))) {
        let id = left.to_string();
        let own = several(row, "tagged").iter().find(|one| text(one, "vlan-ids") == Some(id.as_str()));
        let own = own.ok_or_else(|| {
            refused(
                "tagged_vlans",
                &format!("cannot lose {left}: its row stands for several VLANs; split it first"),
            )
        })?;
        let ports = super::super::items(own, "tagged").into_iter().filter(|port| port != name);
        changes.push(of_row(own, bridge, ports.collect()));
    }
    let rows = super::rows(host, "interfaces.bridge-vlan")?;
    for new in wanted.iter().filter(|vlan| !known.iter().any(|known| u64::from(*known) == **vlan)) {
        let is_row =
            |one: &&Value| text(one, "bridge") == Some(bridge) && one["vlan-ids"] == json!([new.to_string()]);
        let row = rows.iter().find(is_row);
        let operation = if row.is_some() { Operation::Update } else { Operation::Create };
        let mut ports = row.map(|own| texts(&own["tagged"])).unwrap_or_default();
        ports.push(name.to_owned());
        let payload = json!({ "bridge": bridge, "vlan-ids": [new.to_string()], "tagged": ports });
        changes.push(change("interfaces.bridge-vlan", operation, payload));
    }
    Ok(())
}

fn of_row(row: &Value, bridge: &str, ports: Vec<String>) -> Expressed {
    let ids = super::super::items(row, "vlan-ids");
    let ports = if ports.is_empty() { Value::Null } else { json!(ports) };
    let payload = json!({ "bridge": bridge, "vlan-ids": ids, "tagged": ports });
    change("interfaces.bridge-vlan", Operation::Update, payload)
}
