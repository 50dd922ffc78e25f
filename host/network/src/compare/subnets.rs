//! VLANs whose subnets have addresses in common. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use heddle_core::vlan::VlanFault;
use ipnet::IpNet;

use super::Finding;
use crate::site::facts::Facts;

/// A finding for each pair of VLANs, at the narrower of the two subnets.
///
/// Prefixes of addresses lie within one another or apart, so one pass in their order finds every pair.
pub(super) fn overlaps(facts: &Facts) -> Vec<Finding> {
    let mut found: BTreeMap<(u16, u16), Finding> = BTreeMap::new();
    // The subnets that the present one lies within, the widest first.
    let mut around: Vec<(IpNet, u16, usize)> = Vec::new();
    for (subnet, vlan, domain) in subnets(facts) {
        while around.last().is_some_and(|(wider, ..)| !wider.contains(&subnet)) {
            around.pop();
        }
        for (wider, other, other_domain) in around.iter().filter(|(_, other, _)| *other != vlan) {
            let pair = (vlan.min(*other), vlan.max(*other));
            found.entry(pair).or_insert_with(|| Finding {
                found: Some(subnet.to_string()),
                expected: Some(format!("none within {wider}")),
                other: Some((*other_domain, *other)),
                ..Finding::of(VlanFault::SubnetOverlaps, vlan, domain)
            });
        }
        around.push((subnet, vlan, domain));
    }
    found.into_values().collect()
}

/// Each subnet of each VLAN once, with the first domain that has it: a wider one before those within it.
fn subnets(facts: &Facts) -> Vec<(IpNet, u16, usize)> {
    let mut all: BTreeSet<(IpAddr, u8, u16)> = BTreeSet::new();
    let mut first: BTreeMap<(IpAddr, u8, u16), usize> = BTreeMap::new();
    for (at, domain) in facts.domains.iter().enumerate() {
        let rows = domain.vlans.iter().flat_map(|(vlan, rows)| rows.iter().map(move |row| (*vlan, row)));
        for (vlan, row) in rows {
            for subnet in row.subnets.iter().filter_map(|text| shared(text)) {
                let key = (subnet.network(), subnet.prefix_len(), vlan);
                all.insert(key);
                first.entry(key).or_insert(at);
            }
        }
    }
    let of = |key: &(IpAddr, u8, u16)| Some((IpNet::new(key.0, key.1).ok()?, key.2, first[key]));
    all.iter().filter_map(of).collect()
}

/// A subnet that only one VLAN can have. Every link has link-local addresses, and one address alone is no subnet.
fn shared(text: &str) -> Option<IpNet> {
    let subnet: IpNet = text.trim().parse::<IpNet>().ok()?.trunc();
    let is_local = match subnet.network() {
        IpAddr::V4(address) => address.is_link_local() || address.is_loopback() || address.is_multicast(),
        IpAddr::V6(address) => {
            address.is_unicast_link_local() || address.is_loopback() || address.is_multicast()
        }
    };
    let is_whole = subnet.prefix_len() == 0 || subnet.prefix_len() == subnet.max_prefix_len();
    (!is_local && !is_whole).then_some(subnet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_one_vlan_alone_can_have_is_compared() {
        for (text, is_compared) in [
            ("10.0.0.0/24", true),
            ("10.0.0.7/24", true),
            ("fd00:1::/64", true),
            ("fe80::/64", false),
            ("169.254.0.0/16", false),
            ("127.0.0.0/8", false),
            ("ff02::/16", false),
            ("0.0.0.0/0", false),
            ("10.0.0.1/32", false),
            ("10.0.0.1", false),
            ("", false),
        ] {
            assert_eq!(shared(text).is_some(), is_compared, "{text}");
        }
        assert_eq!(shared("10.0.0.7/24").unwrap().to_string(), "10.0.0.0/24");
    }
}
