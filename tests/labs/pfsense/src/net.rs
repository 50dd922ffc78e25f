//! Forms of addresses, names and ports, as pfSense tells them apart.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) fn is_ipv4(text: &str) -> bool {
    text.parse::<Ipv4Addr>().is_ok()
}

pub(crate) fn is_ipv6(text: &str) -> bool {
    text.split('%').next().unwrap_or_default().parse::<Ipv6Addr>().is_ok()
}

pub(crate) fn is_ip(text: &str) -> bool {
    is_ipv4(text) || is_ipv6(text)
}

pub(crate) fn is_subnet4(text: &str) -> bool {
    subnet(text).is_some_and(|(address, bits)| address.is_ipv4() && bits <= 32)
}

pub(crate) fn is_subnet6(text: &str) -> bool {
    subnet(text).is_some_and(|(address, bits)| address.is_ipv6() && bits <= 128)
}

pub(crate) fn is_subnet(text: &str) -> bool {
    is_subnet4(text) || is_subnet6(text)
}

fn subnet(text: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = text.split_once('/')?;
    Some((address.parse().ok()?, bits.parse().ok()?))
}

/// Letters, digits, hyphens and underscores between dots.
pub(crate) fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.split('.').all(is_label)
}

/// As a host name; a dot may end it.
pub(crate) fn is_domain(text: &str) -> bool {
    is_hostname(text.strip_suffix('.').unwrap_or(text))
}

/// A host name with a domain, which is no address.
pub(crate) fn is_fqdn(text: &str) -> bool {
    text.contains('.') && is_domain(text) && !is_ipv4(text)
}

pub(crate) fn is_port(text: &str) -> bool {
    const NAMED: [&str; 10] =
        ["ssh", "http", "https", "domain", "smtp", "imap", "imaps", "ntp", "ftp", "snmp"];
    text.parse::<u16>().is_ok_and(|port| port > 0) || NAMED.contains(&text)
}

pub(crate) fn is_port_range(text: &str) -> bool {
    text.split_once([':', '-']).is_some_and(|(low, high)| is_port(low) && is_port(high))
}

pub(crate) fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let is_octet = |part: &&str| part.len() == 2 && part.chars().all(|c| c.is_ascii_hexdigit());
    parts.len() == 6 && parts.iter().all(is_octet)
}

pub(crate) fn is_email(text: &str) -> bool {
    text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && is_hostname(host))
}

pub(crate) fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty())
}

/// Network and last address of an IPv4 address with its bits.
pub(crate) fn bounds4(address: &str, bits: u32) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let address = u32::from(address.parse::<Ipv4Addr>().ok()?);
    let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
    Some((Ipv4Addr::from(address & mask), Ipv4Addr::from(address | !mask)))
}

/// The network of an address of either family.
pub(crate) fn network_of(address: &str, bits: u32) -> Option<String> {
    if let Some((network, _)) = bounds4(address, bits) {
        return Some(network.to_string());
    }
    let address = u128::from(address.parse::<Ipv6Addr>().ok()?);
    let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
    Some(Ipv6Addr::from(address & mask).to_string())
}

/// Whether an address lies in a network that is written with its bits.
pub(crate) fn contains(network: &str, address: &str) -> bool {
    let Some((base, bits)) = subnet(network) else { return false };
    let is_same_family = address.parse::<IpAddr>().is_ok_and(|own| own.is_ipv4() == base.is_ipv4());
    is_same_family && network_of(address, bits) == network_of(&base.to_string(), bits)
}

/// Whether an IPv4 address lies between two others, both included.
pub(crate) fn is_between(address: &str, from: &str, to: &str) -> bool {
    let number = |text: &str| text.parse::<Ipv4Addr>().map(u32::from);
    match (number(address), number(from), number(to)) {
        (Ok(address), Ok(from), Ok(to)) => (from..=to).contains(&address),
        _ => false,
    }
}

/// Whether the first address is the greater one.
pub(crate) fn is_greater(one: &str, other: &str) -> bool {
    match (one.parse::<IpAddr>(), other.parse::<IpAddr>()) {
        (Ok(one), Ok(other)) => one > other,
        _ => false,
    }
}
