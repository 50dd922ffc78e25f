//! DHCP: pools and static hosts.

use heddle_sdk::Danger;

use super::{Edited, Naming, Notes, SectionFeature, Type, field, pattern};

const MODE: Type = Type::Word(&["disabled", "server", "relay", "hybrid"]);

pub(crate) static POOL: SectionFeature = SectionFeature {
    id: "openwrt.dhcp.pool",
    area: "dhcp",
    title: "DHCP pool",
    kind: "dhcp.pool",
    config: "dhcp",
    section: "dhcp",
    key: &[field("interface", Type::Text(pattern::INTERFACE), "interface that the pool serves")],
    naming: Naming::Derived(""),
    fields: &[
        field("start", Type::Number(1, 65_534), "first address, as an offset from the network address"),
        field("limit", Type::Number(1, 65_534), "how many addresses"),
        field("leasetime", Type::Text(pattern::LEASE), "'12h', '30m' or 'infinite'"),
        field("ignore", Type::Flag, "true serves nothing here"),
        field("dhcpv4", MODE, "DHCPv4 service"),
        field("dhcpv6", MODE, "DHCPv6 service"),
        field("ra", MODE, "router advertisements"),
        field("ndp", MODE, "neighbour discovery proxy"),
        field("ra_flags", Type::List(pattern::WORD), "flags of router advertisements"),
        field(
            "dhcp_option",
            Type::List("^[^\\x00-\\x1f'\"\\\\]{1,255}$"),
            "options for clients, '6,192.168.1.1'",
        ),
        field("dns", Type::List(pattern::ADDRESS), "announced DNS servers (IPv6)"),
        field("domain", Type::List(pattern::TOKEN), "announced search domains"),
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
    key: &[field("mac", Type::List(pattern::MAC), "MAC address of the host")],
    naming: Naming::Derived("hdl_host_"),
    fields: &[
        field("name", Type::Text(pattern::HOST_NAME), "host name"),
        field(
            "ip",
            Type::Text(
                "^(ignore|(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])(\\.(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])){3})$",
            ),
            "its address, or 'ignore' to serve it none",
        ),
        field("duid", Type::Text("^[0-9A-Fa-f]{2,260}$"), "DHCPv6 identifier"),
        field("hostid", Type::Text("^[0-9A-Fa-f]{1,16}$"), "host part of its IPv6 address, hex"),
        field("leasetime", Type::Text(pattern::LEASE), "'12h', '30m' or 'infinite'"),
        field("tag", Type::List(pattern::WORD), "tags for options"),
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
    if edited.after.is_none_or(|pool| pool.text("ignore") == Some("1")) {
        notes.warn(format!("clients on '{name}' get no new leases"));
    }
}

fn review_host(edited: &Edited<'_>, notes: &mut Notes) {
    let Some(host) = edited.after else { return };
    if let Some(ip) = host.text("ip").filter(|ip| *ip != "ignore" && edited.changes("ip"))
        && edited.config.of_kind("host").any(|other| other.uid != host.uid && other.text("ip") == Some(ip))
    {
        notes.error("/ip", format!("another static host has the address '{ip}'"));
    }
    if edited.changes("ip") && edited.before.is_some() {
        notes.warn("the host keeps its present address until its lease is renewed");
    }
}
