//! Network: interfaces, VLANs of bridges, and devices. Any of them may carry
//! the connection that this adapter works through.

use heddle_sdk::Danger;

use super::{Edited, Naming, Notes, SectionFeature, Type, check::Check, field};
use crate::uci::{Entry, Section};

pub(crate) static INTERFACE: SectionFeature = SectionFeature {
    id: "openwrt.network.interface",
    area: "base",
    title: "Network interface",
    kind: "network.interface",
    config: "network",
    section: "interface",
    key: &[field("name", Type::Text(Check::Interface), "the interface's name; at most 15 characters")],
    naming: Naming::Key,
    fields: &[
        field("proto", Type::Text(Check::Word), "'static', 'dhcp', 'dhcpv6', 'pppoe', 'wireguard', 'none'"),
        field("device", Type::Text(Check::Device), "device or bridge below, 'br-lan.20'"),
        field("auto", Type::Flag, "brought up at start; true when absent"),
        field("disabled", Type::Flag, "true keeps it without effect"),
        field("ipaddr", Type::List(Check::Ipv4Prefix), "IPv4 addresses, for proto static"),
        field("netmask", Type::Text(Check::Netmask), "IPv4 netmask"),
        field("gateway", Type::Text(Check::Ipv4), "IPv4 default gateway"),
        field("broadcast", Type::Text(Check::Ipv4), "IPv4 broadcast address"),
        field("ip6addr", Type::List(Check::Ipv6Prefix), "IPv6 addresses, for proto static"),
        field("ip6gw", Type::Text(Check::Address), "IPv6 default gateway"),
        field("ip6prefix", Type::List(Check::Ipv6Prefix), "IPv6 prefixes to hand on"),
        field("ip6assign", Type::Number(0, 64), "length of the prefix to take for this interface"),
        field("ip6hint", Type::Text(Check::Hex(16)), "which part of the prefix, hex"),
        field("dns", Type::List(Check::Address), "DNS servers"),
        field("dns_search", Type::List(Check::Token), "search domains"),
        field("peerdns", Type::Flag, "takes DNS servers from the peer"),
        field("defaultroute", Type::Flag, "adds a default route"),
        field("metric", Type::Number(0, 4_294_967_295), "metric of its routes"),
        field("mtu", Type::Number(68, 65_535), "bytes per packet"),
        field("force_link", Type::Flag, "configured without carrier too"),
        field("delegate", Type::Flag, "hands prefixes on"),
        field("hostname", Type::Text(Check::Token), "name sent to the DHCP server"),
        field("username", Type::Text(Check::Token), "user name, for proto pppoe"),
        field("password", Type::Secret, "password, for proto pppoe"),
        field("listen_port", Type::Number(1, 65_535), "UDP port, for proto wireguard"),
        field("addresses", Type::List(Check::Prefix), "addresses, for proto wireguard"),
        field("private_key", Type::Secret, "private key, for proto wireguard"),
    ],
    required: &["proto"],
    delete_danger: Danger::Destructive,
    review: review_interface,
    order: None,
};

pub(crate) static VLAN: SectionFeature = SectionFeature {
    id: "openwrt.network.vlan",
    area: "base",
    title: "VLAN of a bridge",
    kind: "network.vlan",
    config: "network",
    section: "bridge-vlan",
    key: &[
        field("device", Type::Text(Check::DeviceName), "the bridge"),
        field("vlan", Type::Number(1, 4094), "VLAN id"),
    ],
    naming: Naming::Derived("hdl_vlan_"),
    fields: &[
        field("ports", Type::List(Check::VlanPort), "members: 'lan1' or 'lan1:u*' untagged, 'lan2:t' tagged"),
        field("local", Type::Flag, "the router itself is a member; true when absent"),
        field("alias", Type::List(Check::Word), "other names"),
    ],
    required: &[],
    delete_danger: Danger::Destructive,
    review: review_vlan,
    order: None,
};

pub(crate) static DEVICE: SectionFeature = SectionFeature {
    id: "openwrt.network.device",
    area: "base",
    title: "Network device",
    kind: "network.device",
    config: "network",
    section: "device",
    key: &[field("name", Type::Text(Check::DeviceName), "the device's name; at most 15 characters")],
    naming: Naming::Derived("hdl_dev_"),
    fields: &[
        field(
            "type",
            Type::Word(&["bridge", "8021q", "8021ad", "macvlan", "veth", "dummy", "bonding"]),
            "absent for a port",
        ),
        field("ports", Type::List(Check::DeviceName), "members, for type bridge"),
        field("ifname", Type::Text(Check::Device), "device below, for a VLAN"),
        field("vid", Type::Number(1, 4094), "VLAN id, for a VLAN"),
        field("macaddr", Type::Text(Check::Mac), "MAC address"),
        field("mtu", Type::Number(68, 65_535), "bytes per packet"),
        field("enabled", Type::Flag, "false keeps it down"),
        field("ipv6", Type::Flag, "false switches IPv6 off"),
        field("stp", Type::Flag, "spanning tree, for type bridge"),
        field("igmp_snooping", Type::Flag, "for type bridge"),
        field("vlan_filtering", Type::Flag, "for type bridge"),
        field("bridge_empty", Type::Flag, "exists without members too"),
        field("txqueuelen", Type::Number(0, 100_000), "packets in the send queue"),
    ],
    required: &[],
    delete_danger: Danger::Destructive,
    review: review_device,
    order: None,
};

/// Protocols that netifd and the packages of the project know.
const PROTOCOLS: &[&str] = &[
    "3g",
    "464xlat",
    "6in4",
    "6rd",
    "6to4",
    "autoip",
    "batadv",
    "batadv_hardif",
    "batadv_vlan",
    "bonding",
    "dhcp",
    "dhcpv6",
    "directip",
    "dslite",
    "external",
    "fou",
    "gre",
    "gretap",
    "grev6",
    "grev6tap",
    "hnet",
    "ipip",
    "ipip6h",
    "l2tp",
    "lw4o6",
    "map",
    "mbim",
    "modemmanager",
    "ncm",
    "none",
    "openconnect",
    "openfortivpn",
    "openvpn",
    "ppp",
    "pppoa",
    "pppoe",
    "pptp",
    "qmi",
    "relay",
    "sstp",
    "static",
    "unet",
    "unmanaged",
    "vpnc",
    "vrf",
    "vti",
    "vtiv6",
    "vxlan",
    "vxlan6",
    "wireguard",
    "wwan",
    "xfrm",
    "yggdrasil",
    "zerotier",
];

/// What keeps an interface from coming up.
fn warn_of_dead_ends(edited: &Edited<'_>, interface: &Section, notes: &mut Notes) {
    if let Some(proto) =
        interface.text("proto").filter(|proto| edited.changes("proto") && !PROTOCOLS.contains(proto))
    {
        notes.warn(format!("protocol '{proto}' is not known; the interface stays down unless a package of the router provides it"));
    }
    let (Some(device), Some(running)) = (interface.text("device"), &edited.world.devices) else { return };
    if !edited.changes("device") || device.starts_with('@') {
        return;
    }
    let declared = |name: &str| edited.config.of_kind("device").any(|other| other.text("name") == Some(name));
    // "br-lan.20" is made on "br-lan" when it is asked for.
    let below = device.rsplit_once('.').map_or(device, |(below, _)| below);
    if ![device, below].iter().any(|name| running.contains(*name) || declared(name)) {
        notes.warn(format!("there is no device '{device}' on the router; the interface stays down"));
    }
}

fn review_interface(edited: &Edited<'_>, notes: &mut Notes) {
    if edited.before == edited.after {
        return;
    }
    if let Some(after) = edited.after {
        warn_of_dead_ends(edited, after, notes);
    }
    let Some(before) = edited.before else {
        let Some(after) = edited.after else { return };
        let shared = after.text("device").and_then(|device| {
            edited.config.of_kind("interface").find(|other| {
                other.uid != after.uid && other.text("device") == Some(device) && other.id != "loopback"
            })
        });
        if let Some(other) = shared {
            notes.warn(format!("interface '{}' uses the same device", other.id));
        }
        notes.warn("a new interface is in no firewall zone; its traffic meets the default policies");
        return;
    };
    match edited.after {
        None => {
            notes.lockout(format!("removing interface '{}' cuts everything that goes through it", before.id));
        }
        Some(_) if before.id == "lan" => notes.lockout("'lan' usually carries the management of the router"),
        Some(_) => {
            notes.lockout(format!("interface '{}' restarts, and may carry this connection", before.id));
        }
    }
    if before.id == "loopback" {
        notes.error("/name", "the loopback interface cannot be changed");
    }
    if edited.changes("ipaddr") && edited.after.is_some() {
        notes.warn(
            "the router will answer at another address; update the controller's address if it is this one",
        );
    }
}

fn review_vlan(edited: &Edited<'_>, notes: &mut Notes) {
    if edited.before == edited.after {
        return;
    }
    let Some(vlan) = edited.after.or(edited.before) else { return };
    let bridge = vlan.text("device").unwrap_or_default();
    notes.lockout(format!("VLANs of '{bridge}' change for all of its ports"));
    let Some(after) = edited.after else { return };
    let device = edited
        .config
        .of_kind("device")
        .find(|device| device.text("name") == Some(bridge) && device.text("type") == Some("bridge"));
    let Some(device) = device else {
        notes.error("/device", format!("there is no bridge '{bridge}'"));
        return;
    };
    let of_bridge =
        || edited.config.of_kind("bridge-vlan").filter(|other| other.text("device") == Some(bridge));
    if edited.before.is_none() && of_bridge().count() == 1 {
        notes.warn(format!(
            "the first VLAN switches filtering on: interfaces must use '{bridge}.<vlan>' from then on"
        ));
    }
    let members: Vec<&str> = device.options.get("ports").map(Entry::words).unwrap_or_default();
    let listed = |port: &&str| {
        of_bridge().any(|vlan| {
            vlan.options
                .get("ports")
                .is_some_and(|ports| ports.words().iter().any(|word| word.split(':').next() == Some(*port)))
        })
    };
    let silent: Vec<&str> = members.iter().copied().filter(|port| !listed(port)).collect();
    if !silent.is_empty() {
        notes.warn(format!("ports in no VLAN of '{bridge}' lose all traffic: {}", silent.join(", ")));
    }
    for word in after.options.get("ports").map(Entry::words).unwrap_or_default() {
        let port = word.split(':').next().unwrap_or(word);
        if !members.contains(&port) {
            notes.error("/ports", format!("'{port}' is not a port of '{bridge}'"));
        }
    }
}

fn review_device(edited: &Edited<'_>, notes: &mut Notes) {
    if edited.before == edited.after {
        return;
    }
    if let Some(before) = edited.before {
        notes.lockout(format!(
            "device '{}' restarts with everything on it",
            before.text("name").unwrap_or("?")
        ));
    }
    if edited.after.is_none() {
        let name = edited.before.and_then(|device| device.text("name")).unwrap_or_default();
        let below =
            |used: &str| used == name || used.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        if let Some(user) =
            edited.config.of_kind("interface").find(|interface| interface.text("device").is_some_and(below))
        {
            notes.error("/name", format!("interface '{}' still uses device '{name}'", user.id));
        }
    }
}
