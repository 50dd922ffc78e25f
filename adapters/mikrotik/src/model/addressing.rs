//! Routes, pools, leases and records.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use heddle_sdk::crud::Modelled;
use serde_json::{Value, json};

use super::{is_marked, is_on, items, put, several, text};

/// The prefix that an address is in.
pub(super) fn network_of(own: &str) -> Option<String> {
    let (address, bits) = own.split_once('/')?;
    let bits: u8 = bits.parse().ok()?;
    Some(format!("{}/{bits}", masked(address.split('%').next()?.parse().ok()?, bits)))
}

/// Whether an address is within the network of another one with its prefix.
pub(super) fn is_within(address: &str, own: &str) -> bool {
    let bits = own.split_once('/').and_then(|(_, bits)| bits.parse().ok());
    let known =
        address.parse().ok().zip(bits).map(|(address, bits): (IpAddr, u8)| (masked(address, bits), bits));
    known.is_some_and(|(network, bits)| network_of(own) == Some(format!("{network}/{bits}")))
}

/// The address with the bits behind the prefix off.
fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(own) => {
            let mask = u32::MAX.checked_shl(u32::from(32_u8.saturating_sub(bits))).unwrap_or(0);
            Ipv4Addr::from(u32::from(own) & mask).into()
        }
        IpAddr::V6(own) => {
            let mask = u128::MAX.checked_shl(u32::from(128_u8.saturating_sub(bits))).unwrap_or(0);
            Ipv6Addr::from(u128::from(own) & mask).into()
        }
    }
}

/// A gateway is an address, an interface, or an address with its interface behind `%`.
fn hop(row: &Value) -> (Option<String>, Option<String>) {
    let all = items(row, "gateway");
    let Some(first) = all.first() else { return (None, None) };
    let (address, interface) =
        first.split_once('%').map_or((first.as_str(), None), |(own, name)| (own, Some(name)));
    let is_address = address.parse::<IpAddr>().is_ok();
    let immediate = text(row, "immediate-gw").map(|gw| gw.split_once('%').map_or(gw, |(_, name)| name));
    let immediate = immediate.filter(|name| name.parse::<IpAddr>().is_err());
    let named = if is_address { interface.or(immediate) } else { Some(address) };
    (is_address.then(|| address.to_owned()), named.map(str::to_owned))
}

pub(super) fn route(row: &Value, object: &mut Modelled) {
    let (address, interface) = hop(row);
    put(object, "next_hop", address);
    put(object, "interface", interface);
    put(object, "type", Some(if is_marked(row, "blackhole") { "blackhole" } else { "unicast" }));
    // One that is off tells neither who made it nor its table.
    let from = match () {
        () if is_on(row, "connect") => "connected",
        () if is_on(row, "dynamic") => "dynamic",
        () => "static",
    };
    put(object, "origin_type", Some(from));
    if from != "static" {
        object.origin = heddle_sdk::Origin::Derived;
    }
    if !object.fields.contains_key("enabled") {
        put(object, "enabled", Some(true));
    }
}

/// A default route as the gateway that it leads to. Only one that is watched has a state.
pub(super) fn gateway(row: &Value, object: &mut Modelled) {
    let (address, interface) = hop(row);
    let is_watched = text(row, "check-gateway").is_some_and(|how| how != "none");
    let is_active = is_on(row, "active");
    put(object, "monitor", address.clone().filter(|_| is_watched));
    put(object, "address", address);
    put(object, "interface", interface);
    put(object, "active", Some(is_active));
    let state = match (is_watched, is_active) {
        (false, _) => "unknown",
        (true, true) => "online",
        (true, false) => "offline",
    };
    put(object, "state", Some(state));
    if is_on(row, "dynamic") {
        object.origin = heddle_sdk::Origin::Derived;
    }
}

/// A server names its pool, and its network is the one that its addresses are in.
pub(super) fn pool(row: &Value, object: &mut Modelled) {
    let ranges: Vec<Value> = super::beside(row, "pool").map(ranges).unwrap_or_default();
    if let Some(network) = network(row) {
        let dns = items(network, "dns-server");
        put(object, "gateway", items(network, "gateway").into_iter().next());
        put(object, "dns_servers", (!dns.is_empty()).then_some(dns));
        put(object, "domain", text(network, "domain"));
    }
    put(object, "ranges", (!ranges.is_empty()).then_some(ranges));
}

/// `a-b`; an address alone is a range of one.
fn ranges(pool: &Value) -> Vec<Value> {
    let range = |range: &String| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let is_address = |text: &str| text.trim().parse::<IpAddr>().is_ok();
        // A prefix as a pool has neither a first nor a last address that is given out by name.
        (is_address(from) && is_address(to)).then(|| json!({ "from": from.trim(), "to": to.trim() }))
    };
    items(pool, "ranges").iter().filter_map(range).collect()
}

/// The network of the server's interface among those of all servers.
pub(super) fn network(row: &Value) -> Option<&Value> {
    let own: Vec<String> =
        several(row, "addresses").iter().filter_map(|own| network_of(text(own, "address")?)).collect();
    several(row, "networks")
        .iter()
        .find(|network| text(network, "address").is_some_and(|address| own.iter().any(|own| own == address)))
}

pub(super) fn lease(row: &Value, object: &mut Modelled) {
    let is_static = !is_on(row, "dynamic");
    let state = match text(row, "status") {
        Some("bound") if is_static => "static",
        Some("bound" | "offered") => "active",
        _ if is_static => "static",
        Some("waiting") => "expired",
        _ => "unknown",
    };
    put(object, "state", Some(state));
}

/// The field that has the value of each type.
const VALUES: [(&str, &str, &str); 9] = [
    ("A", "A", "address"),
    ("AAAA", "AAAA", "address"),
    ("CNAME", "CNAME", "cname"),
    ("MX", "MX", "mx-exchange"),
    ("TXT", "TXT", "text"),
    ("SRV", "SRV", "srv-target"),
    ("NS", "NS", "ns"),
    ("FWD", "FORWARD", "forward-to"),
    ("PTR", "PTR", "address"),
];

/// The field of the value of a record, by the model's type.
pub(super) fn value_field(kind: &str) -> Option<&'static str> {
    VALUES.iter().find(|(_, known, _)| *known == kind).map(|(.., field)| *field)
}

/// A record; one for names by a pattern is none.
pub(super) fn record(row: &Value, object: &mut Modelled) -> bool {
    // Old rows have no type.
    let kind = text(row, "type").unwrap_or("A");
    let known = VALUES.iter().find(|(own, ..)| *own == kind);
    put(object, "type", Some(known.map_or("other", |(_, kind, _)| kind)));
    put(object, "value", known.and_then(|(.., field)| text(row, field)));
    if !object.fields.contains_key("enabled") {
        put(object, "enabled", Some(true));
    }
    object.fields.contains_key("name")
}
