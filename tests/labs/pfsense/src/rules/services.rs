//! The DHCP server with its pools and reservations, the resolver, and time servers.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::{refusal, unless};
use crate::device::Pfsense;
use crate::draft::Draft;
use crate::interfaces;
use crate::net;
use crate::reply::Refusal;
use crate::store::{Config, NAME, Object, is_true, text};

pub(crate) fn field(draft: &mut Draft, name: &str) -> Result<(), Refusal> {
    let prefix = match draft.model.name.as_str() {
        "DHCPServer" => "DHCP_SERVER",
        "DHCPServerAddressPool" => "DHCP_SERVER_ADDRESS_POOL",
        "DHCPServerStaticMapping" => "DHCP_SERVER_STATIC_MAPPING",
        "DHCPServerCustomOption" if name == "value" => return option(draft),
        "DNSResolverAccessListNetwork" if name == "mask" => {
            let is_over =
                net::is_ipv4(draft.text("network")) && draft.number("mask").is_some_and(|bits| bits > 32);
            return unless(!is_over, "DNS_RESOLVER_ACCESS_LIST_NETWORK_MASK_EXCEEDS_IPV4_MAXIMUM");
        }
        "NTPTimeServer" if name == "type" => {
            if draft.text("timeserver").ends_with("pool.ntp.org") {
                draft.set("type", json!("pool"));
            }
            return Ok(());
        }
        _ => return Ok(()),
    };
    let Some(interface) = interface_of(draft) else { return Ok(()) };
    let outside = |address: &str| !address.is_empty() && !interfaces::holds(interface, address);
    match name {
        "enable" if draft.is_true("enable") => {
            let is_static = net::is_ipv4(text(interface, "ipaddr"));
            unless(is_static, "DHCP_SERVER_CANNOT_ENABLE_WITHOUT_STATIC_IPV4")?;
            let relays = is_true(&draft.config().single("DHCPRelay"), "enable");
            unless(!relays, "DHCP_SERVER_CANNOT_BE_ENABLED_WITH_DHCP_RELAY")
        }
        "range_from" => {
            let (from, to) = (draft.text("range_from"), draft.text("range_to"));
            let first = bounds(interface).map(|(first, _)| first.to_string());
            let is_network = first.as_deref() == Some(from);
            unless(!is_network, &format!("{prefix}_RANGE_FROM_CANNOT_BE_NETWORK_ADDRESS"))?;
            let is_greater = net::is_greater(from, to);
            unless(!is_greater, &format!("{prefix}_RANGE_FROM_CANNOT_BE_GREATER_THAN_RANGE_TO"))?;
            unless(!outside(from), &format!("{prefix}_RANGE_FROM_OUTSIDE_OF_SUBNET"))
        }
        "range_to" => {
            let to = draft.text("range_to");
            let last = bounds(interface).map(|(_, last)| last.to_string());
            // The vendor's id of the server names the other end.
            let end = if prefix == "DHCP_SERVER" { "FROM" } else { "TO" };
            let is_last = last.as_deref() == Some(to);
            unless(!is_last, &format!("{prefix}_RANGE_{end}_CANNOT_BE_BROADCAST_ADDRESS"))?;
            unless(!outside(to), &format!("{prefix}_RANGE_TO_OUTSIDE_OF_SUBNET"))
        }
        "maxleasetime" => {
            let is_less = draft.number("maxleasetime") < draft.number("defaultleasetime");
            unless(!is_less, &format!("{prefix}_MAX_LEASE_TIME_LESS_THAN_DEFAULT"))
        }
        "gateway" => {
            let gateway = draft.text("gateway");
            unless(gateway == "none" || !outside(gateway), &format!("{prefix}_GATEWAY_NOT_WITHIN_SUBNET"))
        }
        "ipaddr" => reserved(draft, interface),
        "nonak" => {
            let has_peer = draft.is_true("nonak") && !draft.text("failover_peerip").is_empty();
            unless(!has_peer, "DHCP_SERVER_NONAK_WITH_FAILOVER_PEERIP_NOT_ALLOWED")
        }
        "staticarp" if draft.is_true("staticarp") => {
            let maps = draft.value("staticmap").as_array().into_iter().flatten();
            let is_bare = { maps }.any(|map| map["ipaddr"].as_str().is_none_or(str::is_empty));
            unless(!is_bare, "DHCP_SERVER_STATICARP_WITH_NO_IP_STATIC_MAPPINGS")
        }
        _ => Ok(()),
    }
}

/// The interface of a server, or of the server above.
fn interface_of<'f>(draft: &Draft<'f>) -> Option<&'f Object> {
    let id = match &draft.parent {
        Some(parent) => parent.id.as_str(),
        None => draft.id.as_ref().and_then(Value::as_str),
    };
    interfaces::of_id(draft.config(), id?)
}

fn bounds(interface: &Object) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let (address, bits) = interfaces::address4(interface)?;
    net::bounds4(&address, bits)
}

/// An address that is reserved lies in the network and outside of what is given away.
fn reserved(draft: &Draft, interface: &Object) -> Result<(), Refusal> {
    let address = draft.text("ipaddr");
    if address.is_empty() {
        return Ok(());
    }
    let server = server_of(draft);
    let ranges = ranges(server.as_ref());
    let is_given = ranges.iter().any(|(from, to)| net::is_between(address, from, to));
    if is_given || draft.config().having("VirtualIP", "subnet", address).is_some() {
        return Err(refusal(409, "DHCP_SERVER_STATIC_MAPPING_IPADDR_OVERLAPS_EXISTING_OBJECT"));
    }
    unless(interfaces::holds(interface, address), "DHCP_SERVER_STATIC_MAPPING_IPADDR_NOT_WITHIN_SUBNET")
}

fn server_of(draft: &Draft) -> Option<Object> {
    let id = draft.parent.as_ref().map_or(draft.id.as_ref(), |parent| Some(&parent.id))?.as_str()?;
    draft.config().having("DHCPServer", NAME, id).cloned()
}

/// The ranges of a server and of its pools.
fn ranges(server: Option<&Object>) -> Vec<(String, String)> {
    let Some(server) = server else { return Vec::new() };
    let pools = Config::children(server, "DHCPServerAddressPool");
    let all = std::iter::once(server.clone()).chain(pools);
    all.map(|own| (text(&own, "range_from").to_owned(), text(&own, "range_to").to_owned())).collect()
}

/// A range meets no other one, no reservation and no virtual address.
pub(crate) fn range(draft: &mut Draft) -> Result<(), Refusal> {
    let (from, to) = (draft.text("range_from"), draft.text("range_to"));
    let server = server_of(draft);
    let maps =
        server.as_ref().map(|own| Config::children(own, "DHCPServerStaticMapping")).unwrap_or_default();
    let is_server = draft.model.name == "DHCPServer";
    let own = draft.id.as_ref().and_then(Value::as_u64);
    // The first range is that of the server, the others are those of its pools.
    let mut others = ranges(server.as_ref())
        .into_iter()
        .enumerate()
        .filter(|(at, _)| if is_server { *at > 0 } else { own.is_none_or(|own| *at as u64 != own + 1) });
    let meets = others
        .any(|(_, (first, last))| net::is_between(&first, from, to) || net::is_between(&last, from, to));
    let is_reserved = maps.iter().any(|map| net::is_between(text(map, "ipaddr"), from, to));
    let vips = draft.config().list("VirtualIP").iter();
    let is_virtual = { vips }.any(|vip| net::is_between(text(vip, "subnet"), from, to));
    let id = if is_server {
        "DHCP_SERVER_PRIMARY_POOL_OVERLAPS_EXISTING_OBJECT"
    } else {
        "DHCP_SERVER_ADDRESS_POOL_OVERLAPS_EXISTING_OBJECT"
    };
    if meets || is_reserved || is_virtual { Err(refusal(409, id)) } else { Ok(()) }
}

fn option(draft: &Draft) -> Result<(), Refusal> {
    let value = draft.text("value");
    let id = |end: &str| format!("DHCP_SERVER_CUSTOM_OPTION_VALUE_MUST_{end}");
    let number = value.parse::<i64>().ok();
    let within = |from: i64, to: i64, name: &str| {
        let is_in = number.is_some_and(|number| (from..=to).contains(&number));
        unless(is_in, &id(&format!("BE_IN_RANGE_WITH_{name}_TYPE")))
    };
    let is_hex =
        || value.split(':').all(|part| part.len() == 2 && part.chars().all(|c| c.is_ascii_hexdigit()));
    match draft.text("type") {
        "text" => unless(!value.contains('"'), &id("NOT_CONTAIN_QUOTES_WITH_TEXT_TYPE")),
        "string" => {
            let is_quoted = value.len() > 1 && value.starts_with('"') && value.ends_with('"');
            unless(is_quoted || is_hex(), &id("BE_STRING_OR_HEX_STRING_WITH_STRING_TYPE"))
        }
        "boolean" => unless(
            ["true", "false", "on", "off"].contains(&value),
            &id("BE_ONE_OF_BOOLEAN_OPTIONS_WITH_BOOLEAN_TYPE"),
        ),
        "unsigned integer 8" => within(0, 255, "UNSIGNED_INTEGER_8"),
        "unsigned integer 16" => within(0, 65_535, "UNSIGNED_INTEGER_16"),
        "unsigned integer 32" => within(0, i64::from(u32::MAX), "UNSIGNED_INTEGER_32"),
        "signed integer 8" => within(-128, 127, "SIGNED_INTEGER_8"),
        "signed integer 16" => within(-32_768, 32_767, "SIGNED_INTEGER_16"),
        "signed integer 32" => within(i64::from(i32::MIN), i64::from(i32::MAX), "SIGNED_INTEGER_32"),
        _ => unless(net::is_ipv4(value) || net::is_fqdn(value), &id("BE_VALID_IPV4_WITH_IP_ADDRESS_TYPE")),
    }
}

/// A server has the interface that its id names.
pub(crate) fn show_server(firewall: &Pfsense, id: Option<&Value>, out: &mut Object) {
    if let Some(id) = id.and_then(Value::as_str) {
        out.insert("interface".to_owned(), json!(interfaces::show(&firewall.stored, id)));
    }
}
