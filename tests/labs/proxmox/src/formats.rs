//! The named formats of the schema. A format that is not known here accepts everything.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::answer::split_list;

/// Verifies a value; the error is what the vendor says after `invalid format - `.
pub(crate) fn check(format: &str, text: &str) -> Result<(), String> {
    if let Some(element) = format.strip_suffix("-list") {
        return split_list(text).try_for_each(|part| check(element, part));
    }
    let (is_valid, name) = match format {
        "pve-configid" => (is_name(text, 2, "_-"), "configuration ID"),
        "pve-vmid" => (is_vmid(text), "VM ID"),
        "pve-node" => (is_host_label(text), "node name"),
        "pve-storage-id" => (is_name(text, 2, "-_.") && !text.ends_with(['-', '_', '.']), "storage ID"),
        "pve-iface" => (is_interface(text), "network interface name"),
        "pve-poolid" => {
            (text.split('/').all(|part| part.chars().all(is_id_char) && !part.is_empty()), "pool ID")
        }
        "pve-roleid" | "pve-groupid" => (text.chars().all(is_id_char) && !text.is_empty(), "ID"),
        "pve-realm" => (is_name(text, 2, "-_."), "realm"),
        "pve-userid" => (is_user(text), "user name"),
        "pve-sdn-fabric-id" => (is_host_label(text), "SDN fabric ID"),
        "pve-sdn-zone-id" | "pve-sdn-vnet-id" | "pve-sdn-controller-id" => {
            (is_name(text, 2, if format == "pve-sdn-controller-id" { "-" } else { "" }), "SDN object ID")
        }
        "dns-name" => (text.split('.').all(is_host_label), "DNS name"),
        "ipv4" => (text.parse::<Ipv4Addr>().is_ok(), "IPv4 address"),
        "ipv6" => (text.parse::<Ipv6Addr>().is_ok(), "IPv6 address"),
        "ip" => (text.parse::<IpAddr>().is_ok(), "IP address"),
        "address" => (text.parse::<IpAddr>().is_ok() || text.split('.').all(is_host_label), "DNS name or IP"),
        "CIDR" => (text.parse::<IpNet>().is_ok(), "CIDR network"),
        "CIDRv4" => (matches!(text.parse(), Ok(IpNet::V4(_))), "IPv4 CIDR network"),
        "CIDRv6" => (matches!(text.parse(), Ok(IpNet::V6(_))), "IPv6 CIDR network"),
        "IPorCIDR" => (is_address(text), "IP address or CIDR network"),
        "IPorCIDRorAlias" => (is_address(text) || is_alias(text), "IP address, CIDR network or alias"),
        "mac-addr" => (is_mac(text), "unicast MAC address"),
        "pve-fw-addr-spec" => (is_address_list(text), "address list"),
        "pve-fw-dport-spec" | "pve-fw-sport-spec" => (is_port_list(text), "port list"),
        "pve-replication-job-id" => {
            let valid =
                text.split_once('-').is_some_and(|(vmid, job)| is_vmid(vmid) && job.parse::<u32>().is_ok());
            (valid, "replication job ID")
        }
        "pve-volume-id" => (
            text.split_once(':').is_some_and(|(store, rest)| !store.is_empty() && !rest.is_empty()),
            "volume ID",
        ),
        _ => return Ok(()),
    };
    if is_valid { Ok(()) } else { Err(format!("value does not look like a valid {name}")) }
}

fn is_id_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')
}

/// A letter, then letters, digits and `marks`.
fn is_name(text: &str, length_min: usize, marks: &str) -> bool {
    text.len() >= length_min
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || marks.contains(c))
}

fn is_vmid(text: &str) -> bool {
    (3..=9).contains(&text.len()) && !text.starts_with('0') && text.chars().all(|c| c.is_ascii_digit())
}

fn is_host_label(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

fn is_interface(text: &str) -> bool {
    let base = text.split(['.', ':']).next().unwrap_or_default();
    (2..=20).contains(&text.len()) && is_name(base, 2, "_")
}

fn is_user(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(name, realm)| {
        !name.is_empty() && !name.contains([':', '/', ' ']) && is_name(realm, 2, "-_.")
    })
}

fn is_address(text: &str) -> bool {
    text.parse::<IpNet>().is_ok() || text.parse::<IpAddr>().is_ok()
}

fn is_alias(text: &str) -> bool {
    let name = text.strip_prefix("dc/").or_else(|| text.strip_prefix("guest/")).unwrap_or(text);
    is_name(name, 2, "-_")
}

/// An address set, an alias, or a list of addresses, networks and ranges.
fn is_address_list(text: &str) -> bool {
    let set = |part: &str| part.strip_prefix('+').is_some_and(|name| !name.is_empty());
    let range = |part: &str| {
        part.split_once('-')
            .is_some_and(|(low, high)| low.parse::<IpAddr>().is_ok() && high.parse::<IpAddr>().is_ok())
    };
    split_list(text).all(|part| set(part) || is_address(part) || range(part) || is_alias(part))
}

fn is_port_list(text: &str) -> bool {
    let is_port = |part: &str| part.parse::<u16>().is_ok() || is_name(part, 2, "-");
    split_list(text).all(|part| part.split(':').all(is_port))
}

/// Six octets; the first one is of a unicast address.
fn is_mac(text: &str) -> bool {
    let octets: Vec<Option<u8>> = text
        .split(':')
        .map(|octet| (octet.len() == 2).then(|| u8::from_str_radix(octet, 16).ok()).flatten())
        .collect();
    octets.len() == 6 && octets.iter().all(Option::is_some) && octets[0].is_some_and(|first| first & 1 == 0)
}
