//! Addresses and subnets.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

/// The subnet of an address with a prefix, such as `10.5.0.1/24`.
pub(crate) fn subnet(text: &str) -> Option<Ipv4Net> {
    text.parse::<Ipv4Net>().ok()
}

/// Whether a text is an address within a subnet.
pub(crate) fn is_in(net: Ipv4Net, address: &str) -> bool {
    address.parse::<Ipv4Addr>().is_ok_and(|address| net.contains(&address))
}

/// Whether two subnets share addresses.
pub(crate) fn overlap(one: Ipv4Net, other: Ipv4Net) -> bool {
    one.contains(&other.network()) || other.contains(&one.network())
}

/// The n-th address of a subnet; the last one where it has not so many.
pub(crate) fn nth(net: Ipv4Net, n: u32) -> Ipv4Addr {
    let first = u32::from(net.network());
    let last = u32::from(net.broadcast()).saturating_sub(1);
    Ipv4Addr::from(first.saturating_add(n).min(last))
}
