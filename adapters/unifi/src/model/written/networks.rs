//! Local networks, what they give addresses to, and routes.

use std::net::Ipv4Addr;

use heddle_sdk::crud::{Asked, Expressed, refused};
use heddle_sdk::{Fault, Operation, json as sdk_json};
use serde_json::{Map, Value, json};

use super::{With, asked_text, named, texts};
use crate::answer::rows;
use crate::model::networks::subnet;
use crate::model::text;
use crate::site;

/// The first address that a network gives, counted from its own: those before are left to people.
const FIRST_GIVEN: u32 = 6;
const DNS_SERVERS_MAX: usize = 4;

/// A prefix in its parts.
fn prefix(told: &str) -> Option<(Ipv4Addr, u32)> {
    let (address, length) = told.split_once('/')?;
    let length: u32 = length.parse().ok().filter(|length| (8..=30).contains(length))?;
    let mask = u32::MAX << (32 - length);
    Some((Ipv4Addr::from(u32::from(address.parse::<Ipv4Addr>().ok()?) & mask), length))
}

/// The address of the gateway and the length of the prefix stand in one text.
pub(super) fn vlan(asked: &Asked<'_>, change: &mut Expressed) -> Result<(), Fault> {
    let row = asked.row.unwrap_or(&Value::Null);
    let is_new = change.operation == Operation::Create;
    if let Some(vlan) = asked.fields.get("vlan_id") {
        named(change, &format!("VLAN {vlan}"));
        // The first network has no number, and no tag.
        if vlan == 1 {
            if is_new {
                return Err(refused("vlan_id", "is that of the first network there"));
            }
        } else {
            change.payload.insert("vlan".to_owned(), vlan.clone());
            change.payload.insert("vlan_enabled".to_owned(), json!(true));
        }
    }
    if change.operation == Operation::Delete {
        return Ok(());
    }
    let known = subnet(&text(row, "ip_subnet"));
    let wanted = match asked.fields.get("subnets").map(texts) {
        None => known.as_ref().map(|(_, prefix)| prefix.clone()),
        Some(subnets) => match subnets.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            _ => return Err(refused("subnets", "is one prefix there")),
        },
    };
    let gateway = asked_text(asked, "gateway");
    let is_asked = asked.fields.contains_key("subnets") || gateway.is_some();
    match wanted {
        Some(wanted) if is_asked => {
            let (base, length) =
                prefix(&wanted).ok_or_else(|| refused("subnets", "is a prefix of IPv4 there"))?;
            let first = Ipv4Addr::from(u32::from(base) + 1);
            let gateway = gateway.map_or(Ok(first), str::parse::<Ipv4Addr>);
            let gateway = gateway.map_err(|_| refused("gateway", "is an address of IPv4 there"))?;
            let is_within = prefix(&format!("{gateway}/{length}")).is_some_and(|(own, _)| own == base);
            if !is_within {
                return Err(refused("gateway", "is an address of the prefix"));
            }
            change.payload.insert("ip_subnet".to_owned(), json!(format!("{gateway}/{length}")));
        }
        Some(_) => {}
        None if gateway.is_some() => {
            return Err(refused("subnets", "is needed then: the prefix of the gateway"));
        }
        None if is_new => drop(change.payload.insert("purpose".to_owned(), json!("vlan-only"))),
        None if is_asked => {
            return Err(refused("subnets", "cannot be taken from a network there; make a new one"));
        }
        None => {}
    }
    dhcp(asked, row, &mut change.payload)
}

/// Whether addresses are given. Their range is in the network, and the gateway is not in it: where that is not so of the
/// range that is known, all but the first addresses of the prefix are given.
fn dhcp(asked: &Asked<'_>, row: &Value, payload: &mut Map<String, Value>) -> Result<(), Fault> {
    let word = asked_text(asked, "dhcp");
    let moved = payload.get("ip_subnet").and_then(Value::as_str).map(str::to_owned);
    let mut set = |name: &str, value: Value| drop(payload.insert(name.to_owned(), value));
    let is_server = match word {
        None => moved.is_some() && row.get("dhcpd_enabled") == Some(&Value::Bool(true)),
        Some(word @ ("none" | "relay" | "server")) => {
            set("dhcpd_enabled", json!(word == "server"));
            set("dhcp_relay_enabled", json!(word == "relay"));
            word == "server"
        }
        Some(_) => return Err(refused("dhcp", "can be none, server or relay")),
    };
    if !is_server {
        return Ok(());
    }
    let told = moved.unwrap_or_else(|| text(row, "ip_subnet"));
    let (base, length) = prefix(&told).ok_or_else(|| refused("dhcp", "needs a prefix: subnets"))?;
    let gateway = told.split('/').next().and_then(|address| address.parse().ok()).unwrap_or(base);
    let known = ["dhcpd_start", "dhcpd_stop"].map(|name| text(row, name).parse::<Ipv4Addr>());
    let is_within =
        |address: Ipv4Addr| prefix(&format!("{address}/{length}")).is_some_and(|(own, _)| own == base);
    let stays = matches!(known, [Ok(start), Ok(stop)]
        if is_within(start) && is_within(stop) && !(start..=stop).contains(&gateway));
    if !stays {
        let (first, last) = given(base, length, gateway);
        set("dhcpd_start", json!(first.to_string()));
        set("dhcpd_stop", json!(last.to_string()));
    }
    Ok(())
}

/// The addresses that a network gives: all but the first ones, and of them the larger part beside the gateway.
fn given(base: Ipv4Addr, length: u32, gateway: Ipv4Addr) -> (Ipv4Addr, Ipv4Addr) {
    let (base, gateway) = (u32::from(base), u32::from(gateway));
    let last = base + (1_u32 << (32 - length)) - 2;
    let first = (base + FIRST_GIVEN).min(last);
    let (from, to) = match (gateway.checked_sub(first), last.checked_sub(gateway)) {
        // A small network, whose last address has the gateway.
        (Some(0), Some(0)) => (base + 1, gateway - 1),
        (Some(below), Some(above)) if below > above => (first, gateway - 1),
        (Some(_), Some(_)) => (gateway + 1, last),
        _ => (first, last),
    };
    (Ipv4Addr::from(from), Ipv4Addr::from(to))
}

pub(super) fn pool(asked: &Asked<'_>, payload: &mut Map<String, Value>) -> Result<(), Fault> {
    let mut set = |name: &str, value: Value| drop(payload.insert(name.to_owned(), value));
    if let Some(ranges) = asked.fields.get("ranges").and_then(Value::as_array) {
        let [range] = ranges.as_slice() else {
            return Err(refused("ranges", "is one range there"));
        };
        set("dhcpd_start", range["from"].clone());
        set("dhcpd_stop", range["to"].clone());
    }
    match asked.fields.get("gateway") {
        None => {}
        Some(Value::Null) => set("dhcpd_gateway_enabled", json!(false)),
        Some(gateway) => {
            set("dhcpd_gateway_enabled", json!(true));
            set("dhcpd_gateway", gateway.clone());
        }
    }
    if let Some(servers) = asked.fields.get("dns_servers") {
        let servers = texts(servers);
        if servers.len() > DNS_SERVERS_MAX {
            return Err(refused("dns_servers", "are four at most there"));
        }
        set("dhcpd_dns_enabled", json!(!servers.is_empty()));
        for (at, server) in servers.iter().enumerate() {
            set(&format!("dhcpd_dns_{}", at + 1), json!(server));
        }
        if !servers.is_empty() {
            for at in servers.len()..DNS_SERVERS_MAX {
                set(&format!("dhcpd_dns_{}", at + 1), json!(""));
            }
        }
    }
    Ok(())
}

/// A reservation is a part of a known client, which may be there already.
pub(super) fn reservation(with: With<'_>, asked: &Asked<'_>, change: &mut Expressed) -> Result<(), Fault> {
    if asked.verb == "delete" {
        return Ok(());
    }
    let place = site::chosen(with.host, asked.site)?;
    if let Some(mac) = change.payload.get("mac").and_then(Value::as_str).map(str::to_lowercase) {
        change.payload.insert("mac".to_owned(), json!(mac));
        if asked.verb == "create" {
            let known = rows(with.host, &format!("/api/s/{place}/rest/user"))?;
            let is_known = known
                .iter()
                .any(|row| sdk_json::text(row, "/mac").is_some_and(|own| own.eq_ignore_ascii_case(&mac)));
            if is_known {
                change.operation = Operation::Update;
            }
        }
    }
    let network = match (asked_text(asked, "scope"), asked.verb) {
        (Some(name), _) => {
            let found = with.beside.of_name(name);
            found
                .map(|network| network.id.clone())
                .ok_or_else(|| refused("scope", "names no network of the site"))?
        }
        (None, "create") => {
            let networks = rows(with.host, &format!("/api/s/{place}/rest/networkconf"))?;
            let address = asked_text(asked, "address").unwrap_or_default();
            let found = networks.iter().find(|row| is_in(&text(row, "ip_subnet"), address));
            let found = found.map(|row| text(row, "_id"));
            found.ok_or_else(|| refused("address", "is in no network of the site"))?
        }
        (None, _) => return Ok(()),
    };
    change.payload.insert("network_id".to_owned(), json!(network));
    Ok(())
}

/// Whether an address is one of a network's.
fn is_in(told: &str, address: &str) -> bool {
    let Some((base, length)) = prefix(told) else { return false };
    prefix(&format!("{address}/{length}")).is_some_and(|(own, _)| own == base)
}

/// A route goes to a next hop, out of a network or a connection, or nowhere.
pub(super) fn route(with: With<'_>, asked: &Asked<'_>, change: &mut Expressed) -> Result<(), Fault> {
    if let Some(destination) = asked_text(asked, "destination") {
        named(change, destination);
    }
    let mut kind = None;
    if let Some(interface) = asked.fields.get("interface") {
        let name = interface.as_str().unwrap_or_default();
        let id = with.beside.of_name(name).map_or(name, |network| network.id.as_str());
        change.payload.insert("static-route_interface".to_owned(), json!(id));
        let has_hop = change.payload.contains_key("static-route_nexthop");
        kind = (!has_hop).then_some("interface-route");
    }
    match asked_text(asked, "type") {
        None => {}
        Some("unicast") => kind = kind.or(Some("nexthop-route")),
        Some("blackhole") => kind = Some("blackhole"),
        Some(_) => return Err(refused("type", "can be unicast or blackhole")),
    }
    if let Some(kind) = kind {
        change.payload.insert("static-route_type".to_owned(), json!(kind));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateway_is_not_among_the_addresses_that_are_given() {
        let of = |told: &str| {
            let (base, length) = prefix(told).unwrap();
            let gateway = told.split('/').next().unwrap().parse().unwrap();
            let (first, last) = given(base, length, gateway);
            format!("{first} {last}")
        };
        assert_eq!(of("10.5.0.1/24"), "10.5.0.6 10.5.0.254");
        assert_eq!(of("10.5.0.254/24"), "10.5.0.6 10.5.0.253");
        assert_eq!(of("10.5.0.100/24"), "10.5.0.101 10.5.0.254");
        assert_eq!(of("10.5.0.6/24"), "10.5.0.7 10.5.0.254");
        assert_eq!(of("10.5.0.6/29"), "10.5.0.1 10.5.0.5");
        assert_eq!(of("10.5.0.2/30"), "10.5.0.1 10.5.0.1");
        assert_eq!(of("10.5.0.1/30"), "10.5.0.2 10.5.0.2");
    }
}
