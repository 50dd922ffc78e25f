//! What the vendor computes, rewrites or refuses when an item is written.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::call::{Answer, Call, scalar};
use crate::choices::{ASSIGNMENTS, USER_GROUPS, USERS, effective};
use crate::config::{Config, Values};
use crate::device::Firewall;
use crate::facts::Facts;
use crate::validate::Faults;
use crate::{hardware, trust};

pub(crate) const VLANS: &str = "Interfaces/Vlan:vlan";
pub(crate) const VIPS: &str = "Interfaces/Vip:vip";
pub(crate) const PEERS: &str = "Wireguard/Client:clients.client";
pub(crate) const CONNECTIONS: &str = "IPsec/Swanctl:Connections.Connection";
/// The lists of the parts of an `IPsec` connection.
const PARTS: [&str; 3] =
    ["IPsec/Swanctl:locals.local", "IPsec/Swanctl:remotes.remote", "IPsec/Swanctl:children.child"];
pub(crate) const INSTANCES: &str = "Wireguard/Server:servers.server";

/// Gives a new item its numbers: a sequence behind the others, the lowest free number, the next account id.
pub(crate) fn number(node: &str, id: &str, values: &mut Values, config: &Config, is_new: bool) {
    for field in Facts::get().fields(node, crate::release::Release::V26_7) {
        let used = || -> BTreeSet<u64> {
            let others = config.rows(node).filter(|(other, _)| *other != id);
            others.filter_map(|(_, values)| values.get(&field.name)?.parse().ok()).collect()
        };
        let free =
            |from: u64| (from..=u64::from(u32::MAX)).find(|number| !used().contains(number)).unwrap_or(from);
        let is_set = values.get(&field.name).is_some_and(|value| !value.is_empty());
        let is_shaper = node.starts_with("TrafficShaper/") && field.name == "number" && is_new;
        let number = match field.kind.as_str() {
            "FilterSequenceField" | "DNatSequenceField" if is_new && !is_set => {
                used().last().map_or(1, |last| (last + 100).min(999_999))
            }
            "auto-number" | "VPNIdField" if !is_set => {
                free(field.min.as_ref().and_then(|min| min.parse().ok()).unwrap_or(1))
            }
            "UidField" | "GidField" if is_new => used().last().map_or(2000, |last| (last + 1).max(2000)),
            "generated-id" if !is_set => {
                let name = format!("{}.{:08x}", &id[..id.len().min(13)], used().len());
                values.insert(field.name.clone(), name);
                continue;
            }
            _ if is_shaper => free(10000),
            _ => continue,
        };
        values.insert(field.name.clone(), number.to_string());
    }
}

/// What one model does by itself before it stores an item.
pub(crate) fn complete(
    firewall: &mut Firewall,
    call: &Call,
    id: &str,
    posted: &Values,
    values: &mut Values,
    config: &mut Config,
) -> Result<(), Answer> {
    let mut put = |field: &str, value: String| {
        values.insert(field.to_owned(), value);
    };
    match call.node() {
        VLANS => {
            // Both stand in every update; what is missing is blank, and then refused.
            for field in ["if", "tag"].iter().filter(|field| !posted.contains_key(**field)) {
                put(field, String::new());
            }
            if values.get("vlanif").is_none_or(String::is_empty) {
                let parent = values.get("if").map_or("", String::as_str);
                let prefix = if parent.starts_with("vlan") { "qinq0" } else { "vlan0" };
                let name = free_name(prefix, VLANS, "vlanif", config);
                values.insert("vlanif".to_owned(), name);
            }
        }
        VIPS => address_of_vip(call, posted, values),
        "Interfaces/Bridge:bridged" => name_device("bridge", "bridgeif", call.node(), values, config),
        "Interfaces/Gif:gif" => name_device("gif", "gifif", call.node(), values, config),
        "Interfaces/Gre:gre" => name_device("gre", "greif", call.node(), values, config),
        "Interfaces/Lagg:lagg" => name_device("lagg", "laggif", call.node(), values, config),
        PEERS => attach_peer(id, posted.get("servers").map_or("", String::as_str), config),
        USERS => account(id, posted, values, config),
        "Unbound/Unbound:dots.dot" => {
            let kind = if call.command.ends_with("forward") { "forward" } else { "dot" };
            put("type", kind.to_owned());
        }
        "Firewall/DNat:rule" => {
            let time = format!("{:.4}", firewall.time.as_secs_f64());
            put("updated.time", time.clone());
            put("updated.username", call.user.clone());
            values.entry("created.time".to_owned()).or_insert(time);
            values.entry("created.username".to_owned()).or_insert_with(|| call.user.clone());
        }
        "Dnsmasq/Dnsmasq:dhcp_options" => {
            let blank: &[&str] = if values.get("type").is_some_and(|kind| kind == "match") {
                &["tag", "interface", "force"]
            } else {
                &["set_tag"]
            };
            blank.iter().for_each(|field| drop(values.insert((*field).to_owned(), String::new())));
        }
        CONNECTIONS if call.param(0).is_empty() => {
            copy_parts(firewall, &own_field(call, "org_uuid"), id, config);
        }
        "Trust/Ca:ca" | "Trust/Cert:cert" => trust::issue(firewall, call.node(), values, config)?,
        _ => {}
    }
    Ok(())
}

/// A posted value that is no field of the item.
pub(crate) fn own_field(call: &Call, name: &str) -> String {
    call.body.get(call.root()).and_then(|item| item.get(name)).and_then(scalar).unwrap_or_default()
}

/// A copy of a connection gets copies of its parts.
fn copy_parts(firewall: &mut Firewall, from: &str, to: &str, config: &mut Config) {
    for list in PARTS {
        let parts: Vec<Values> = crate::crud::having(config, list, "connection", from)
            .map(|(_, part)| with(part, "connection", to))
            .collect();
        parts.into_iter().for_each(|part| config.put(list, &firewall.new_uuid(), part));
    }
}

/// Marks an address that is no longer on its interface until the firewall starts again.
pub(crate) const LOST: &str = "x_lost";

/// The virtual field `network` of an address, without which an update blanks it. An update without the interface counts
/// as one that moves the address away.
fn address_of_vip(call: &Call, posted: &Values, values: &mut Values) {
    let network = call.body.get(call.root()).and_then(|vip| vip.get("network")).and_then(scalar);
    let own = |field: &str| posted.get(field).map_or("", String::as_str);
    let (subnet, bits) = network.as_deref().map_or_else(
        || (own("subnet"), own("subnet_bits")),
        |network| network.split_once('/').unwrap_or((network, "32")),
    );
    let is_new = values.get("subnet").is_none_or(String::is_empty);
    if !is_new && !posted.contains_key("interface") {
        values.insert(LOST.to_owned(), "1".to_owned());
    }
    values.insert("subnet".to_owned(), subnet.to_owned());
    values.insert("subnet_bits".to_owned(), bits.to_owned());
}

fn name_device(prefix: &str, field: &str, node: &str, values: &mut Values, config: &Config) {
    if values.get(field).is_none_or(String::is_empty) {
        values.insert(field.to_owned(), free_name(prefix, node, field, config));
    }
}

/// The first name with a number that no item has.
fn free_name(prefix: &str, node: &str, field: &str, config: &Config) -> String {
    let first = u32::from(prefix.ends_with('0'));
    let name = |number: u32| format!("{prefix}{number}");
    let is_taken = |name: &String| config.rows(node).any(|(_, values)| values.get(field) == Some(name));
    (first..=9999).map(name).find(|name| !is_taken(name)).unwrap_or_else(|| name(first))
}

/// Puts a peer into the instances that it names and takes it out of all others.
fn attach_peer(id: &str, servers: &str, config: &mut Config) {
    let wanted: Vec<&str> = servers.split(',').filter(|server| !server.is_empty()).collect();
    config.rewrite(INSTANCES, |server, values| {
        let mut peers: Vec<&str> = values
            .get("peers")
            .map_or("", String::as_str)
            .split(',')
            .filter(|peer| !peer.is_empty())
            .collect();
        let is_in = peers.contains(&id);
        match (is_in, wanted.contains(&server)) {
            (true, false) => peers.retain(|peer| *peer != id),
            (false, true) => peers.push(id),
            _ => return None,
        }
        Some(with(values, "peers", &peers.join(",")))
    });
}

/// Passwords become hashes; memberships are written into the groups.
fn account(id: &str, posted: &Values, values: &mut Values, config: &mut Config) {
    let old = config.value(USERS, id, "password").to_owned();
    let wants_random = posted.get("scrambled_password").is_some_and(|value| value == "1");
    let password = match posted.get("password").filter(|text| !text.is_empty()) {
        Some(text) => format!("$6${}", hex::encode(Sha256::digest(text))),
        None if wants_random => format!("$6${}", hex::encode(Sha256::digest(id))),
        None => old,
    };
    values.insert("password".to_owned(), password);
    let uid = values.get("uid").cloned().unwrap_or_default();
    let Some(groups) = posted.get("group_memberships") else { return };
    let wanted: Vec<&str> = groups.split(',').collect();
    config.rewrite(USER_GROUPS, |_, group| {
        let gid = group.get("gid").map_or("", String::as_str);
        let members = group.get("member").map_or("", String::as_str);
        let mut members: Vec<&str> =
            members.split(',').filter(|member| !member.is_empty() && *member != uid).collect();
        if wanted.contains(&gid) {
            members.push(&uid);
        }
        Some(with(group, "member", &members.join(",")))
    });
}

/// What is refused because of the item that stands there already.
pub(crate) fn refusals(firewall: &Firewall, node: &str, id: &str, values: &Values) -> Faults {
    let Some(old) = firewall.stored.find(node, id) else { return Faults::new() };
    let changed = |field: &&str| effective(node, field, old) != effective(node, field, values);
    let fixed: &[&str] = match node {
        "Routing/Gateways:gateway_item" | "Routing/GatewayGroups:gateway_group" => &["name"],
        VLANS if hardware::assigned(&firewall.stored, effective(VLANS, "vlanif", old)).is_some() => {
            &["tag", "vlanif"]
        }
        _ => &[],
    };
    let text = "This value cannot be changed.".to_owned();
    fixed.iter().filter(|field| changed(field)).map(|field| ((*field).to_owned(), text.clone())).collect()
}

/// What a delete takes along.
pub(crate) fn before_delete(node: &str, id: &str, config: &mut Config) {
    match node {
        PEERS => attach_peer(id, "", config),
        crate::dns::HOSTS => {
            let aliases: Vec<String> = crate::crud::having(config, crate::dns::ALIASES, "host", id)
                .map(|(id, _)| id.to_owned())
                .collect();
            for id in &aliases {
                config.remove(crate::dns::ALIASES, id);
            }
        }
        CONNECTIONS => {
            for list in PARTS {
                let ids: Vec<String> = crate::crud::having(config, list, "connection", id)
                    .map(|(id, _)| id.to_owned())
                    .collect();
                for id in &ids {
                    config.remove(list, id);
                }
            }
        }
        _ => {}
    }
}

/// What a write of settings fills in elsewhere.
pub(crate) fn after_settings(node: &str, config: &mut Config) {
    if node != "Kea/KeaDhcpv4:" {
        return;
    }
    let own: Vec<String> =
        config.rows(hardware::ADDRESSES).filter_map(|(_, values)| values.get("ipaddr").cloned()).collect();
    config.rewrite("Kea/KeaDhcpv4:subnets.subnet4", |_, subnet| {
        let network = subnet.get("subnet")?;
        let is_collecting =
            effective("Kea/KeaDhcpv4:subnets.subnet4", "option_data_autocollect", subnet) == "1";
        let address = own
            .iter()
            .find(|address| crate::validate::contains(network, address))
            .filter(|_| is_collecting)?;
        let fields = ["routers", "domain_name_servers", "ntp_servers"];
        Some(
            fields
                .iter()
                .fold(subnet.clone(), |out, field| with(&out, &format!("option_data.{field}"), address)),
        )
    });
}

pub(crate) fn with(values: &Values, field: &str, value: &str) -> Values {
    let mut out = values.clone();
    out.insert(field.to_owned(), value.to_owned());
    out
}

/// The fields of an assignment that the API writes.
pub(crate) fn assignment(posted: &Value) -> Values {
    let fields = ["if", "descr", "lock"].iter();
    fields.filter_map(|field| Some(((*field).to_owned(), posted.get(*field).and_then(scalar)?))).collect()
}

/// The key for the next new assignment.
pub(crate) fn free_assignment(config: &Config) -> String {
    let mut keys = (1..).map(|number: u32| format!("opt{number}"));
    keys.find(|key| config.find(ASSIGNMENTS, key).is_none()).unwrap_or_default()
}

/// Random bytes as base64, as keys are shown.
pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}
