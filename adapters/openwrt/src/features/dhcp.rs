//! DHCP: pools and static hosts.

use heddle_sdk::Danger;

use crate::uci::Section;
use crate::world::{is_in, subnets_of};

use super::{Edited, Naming, Notes, SectionFeature, Type, check::Check, field};

const MODE: Type = Type::Word(&["disabled", "server", "relay", "hybrid"]);

pub(crate) static POOL: SectionFeature = SectionFeature {
    id: "openwrt.dhcp.pool",
    area: "dhcp",
    title: "DHCP pool",
    kind: "dhcp.pool",
    config: "dhcp",
    section: "dhcp",
    key: &[field("interface", Type::Text(Check::Interface), "interface that the pool serves")],
    naming: Naming::Derived(""),
    fields: &[
        field("start", Type::Number(1, 65_534), "first address, as an offset from the network address"),
        field("limit", Type::Number(1, 65_534), "how many addresses"),
        field("leasetime", Type::Text(Check::Lease), "'12h', '30m' or 'infinite'"),
        field("ignore", Type::Flag, "true serves nothing here"),
        field("dhcpv4", MODE, "DHCPv4 service"),
        field("dhcpv6", MODE, "DHCPv6 service"),
        field("ra", MODE, "router advertisements"),
        field("ndp", MODE, "neighbour discovery proxy"),
        field("ra_flags", Type::List(Check::Word), "flags of router advertisements"),
        field("dhcp_option", Type::List(Check::Line(255)), "options for clients, '6,192.168.1.1'"),
        field("dns", Type::List(Check::Address), "announced DNS servers (IPv6)"),
        field("domain", Type::List(Check::Token), "announced search domains"),
        field("dynamicdhcp", Type::Flag, "false serves static hosts only"),
        field("force", Type::Flag, "serves even if another server is seen"),
    ],
    required: &[],
    delete_danger: Danger::Normal,
    review: review_pool,
    order: None,
};

pub(crate) static HOST: SectionFeature = SectionFeature {
    id: "openwrt.dhcp.host",
    area: "dhcp",
    title: "Static DHCP host",
    kind: "dhcp.host",
    config: "dhcp",
    section: "host",
    key: &[field("mac", Type::List(Check::Mac), "MAC address of the host")],
    naming: Naming::Derived("hdl_host_"),
    fields: &[
        field("name", Type::Text(Check::HostName), "host name"),
        field("ip", Type::Text(Check::Ipv4OrIgnore), "its address, or 'ignore' to serve it none"),
        field("duid", Type::Text(Check::Hex(260)), "DHCPv6 identifier"),
        field("hostid", Type::Text(Check::Hex(16)), "host part of its IPv6 address, hex"),
        field("leasetime", Type::Text(Check::Lease), "'12h', '30m' or 'infinite'"),
        field("tag", Type::List(Check::Word), "tags for options"),
        field("dns", Type::Flag, "adds names to DNS"),
        field("broadcast", Type::Flag, "always answers by broadcast"),
    ],
    required: &[],
    delete_danger: Danger::Normal,
    review: review_host,
    order: None,
};

fn review_pool(edited: &Edited<'_>, notes: &mut Notes) {
    let name = edited.after.or(edited.before).and_then(|pool| pool.text("interface")).unwrap_or_default();
    let serves = |pool: &Section| pool.text("ignore") != Some("1");
    if edited.after.is_none_or(|pool| !serves(pool)) {
        notes.warn(format!("clients on '{name}' get no new leases"));
    }
    let Some(pool) = edited.after.filter(|pool| serves(pool) && edited.before != Some(*pool)) else { return };
    if !edited.world.knows_network() {
        return;
    }
    let Some(interface) = edited.world.interface(name) else {
        notes.warn(format!("there is no interface '{name}'; the pool has no effect"));
        return;
    };
    let Some((address, bits)) = subnets_of(interface).first().copied() else {
        notes
            .warn(format!("interface '{name}' has no fixed IPv4 address; the pool serves no IPv4 addresses"));
        return;
    };
    // Without the network's own address and that of the broadcast.
    let hosts = 1_u64.checked_shl(u32::from(32 - bits.min(32))).unwrap_or(0).saturating_sub(2);
    let number =
        |option: &str, default: u64| pool.text(option).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (start, limit): (u64, u64) = (number("start", 100), number("limit", 150));
    if start > hosts {
        notes.warn(format!("the pool starts at offset {start} and the network {address}/{bits} has {hosts} addresses: it serves none"));
    } else if start.saturating_add(limit).saturating_sub(1) > hosts {
        notes.warn(format!(
            "the pool ends at offset {} and the network {address}/{bits} has {hosts} addresses: it is cut there",
            start.saturating_add(limit).saturating_sub(1)
        ));
    }
}

fn review_host(edited: &Edited<'_>, notes: &mut Notes) {
    let Some(host) = edited.after else { return };
    let Some(ip) = host.text("ip").filter(|ip| *ip != "ignore" && edited.changes("ip")) else { return };
    if edited.config.of_kind("host").any(|other| other.uid != host.uid && other.text("ip") == Some(ip)) {
        notes.error("/ip", format!("another static host has the address '{ip}'"));
    }
    if edited.before.is_some() {
        notes.warn("the host keeps its present address until its lease is renewed");
    }
    let subnets = edited.world.subnets();
    if let Ok(address) = ip.parse()
        && !subnets.is_empty()
        && !subnets.iter().any(|(_, of, bits)| is_in(address, *of, *bits))
    {
        notes.warn(format!("'{ip}' is in no network of the router; the host will not get it"));
    }
}
