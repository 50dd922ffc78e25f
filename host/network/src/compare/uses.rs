//! VLANs that nothing at the site uses. Pure.
//!
//! A VLAN is used where a port has it without a tag, where a port has it with a tag and does not lead to another device of the
//! site, and where a wireless network leads to it. It is an orphan only where all ports, links and networks are known.

use std::collections::BTreeSet;

use heddle_core::vlan::VlanFault;

use super::Finding;
use crate::site::facts::{Carriage, DEFAULT_VLAN, Domain, Facts, Ssids, folded};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Used,
    Unused,
    Unknown,
}

/// A finding at each domain that has an orphan.
pub(super) fn orphans(facts: &Facts) -> Vec<Finding> {
    if !facts.are_whole {
        return Vec::new();
    }
    let ends = Ends::of(facts);
    let mut found = Vec::new();
    for vlan in facts.vlans().into_iter().filter(|vlan| *vlan != DEFAULT_VLAN) {
        if !is_unused(facts, &ends, vlan) {
            continue;
        }
        let having =
            facts.domains.iter().enumerate().filter(|(_, domain)| domain.own_rows(vlan).next().is_some());
        found.extend(having.map(|(at, domain)| Finding {
            found: domain.name_of(vlan).map(str::to_owned),
            ..Finding::of(VlanFault::Orphan, vlan, at)
        }));
    }
    found
}

fn is_unused(facts: &Facts, ends: &Ends<'_>, vlan: u16) -> bool {
    let mut domains = facts.domains.iter().enumerate();
    domains.all(|(at, domain)| use_at(ends, at, domain, vlan) == Use::Unused)
}

/// The ends of links, by their domain.
struct Ends<'f> {
    ports: BTreeSet<(usize, usize)>,
    names: BTreeSet<(usize, Option<&'f str>, &'f str)>,
}

impl<'f> Ends<'f> {
    fn of(facts: &'f Facts) -> Self {
        let all = || facts.links.iter().flat_map(|link| &link.ends);
        let ports = all().filter_map(|end| Some((end.domain, end.port_at?))).collect();
        let names = all().flat_map(|end| {
            end.names.iter().map(move |name| (end.domain, end.device.as_deref(), name.as_str()))
        });
        Self { ports, names: names.collect() }
    }

    fn has_name(&self, at: usize, device: Option<&str>, name: &str) -> bool {
        self.names.contains(&(at, device, name))
    }
}

fn use_at(ends: &Ends<'_>, at: usize, domain: &Domain, vlan: u16) -> Use {
    match &domain.ssids {
        Ssids::Known(vlans) if vlans.contains(&vlan) => return Use::Used,
        Ssids::Known(_) => {}
        Ssids::ByInterface if domain.rows(vlan).iter().any(|row| row.interface.is_some()) => {
            return Use::Used;
        }
        Ssids::ByInterface => {}
        Ssids::Unknown => return Use::Unknown,
    }
    if domain.lacks(vlan) {
        return Use::Unused;
    }
    let by_ports = use_of_ports(ends, at, domain, vlan);
    if by_ports == Use::Used || (by_ports == Use::Unused && domain.knows_ports) {
        return by_ports;
    }
    match use_of_members(ends, at, domain, vlan) {
        Use::Unused if by_ports == Use::Unknown => Use::Unknown,
        by_members => by_members,
    }
}

fn use_of_ports(ends: &Ends<'_>, at: usize, domain: &Domain, vlan: u16) -> Use {
    let mut known = Use::Unused;
    for (port_at, port) in domain.ports.iter().enumerate() {
        match domain.carriage(port, vlan) {
            Carriage::Untagged => return Use::Used,
            Carriage::Tagged if !ends.ports.contains(&(at, port_at)) => return Use::Used,
            Carriage::Tagged | Carriage::No => {}
            Carriage::Unknown => known = Use::Unknown,
        }
    }
    known
}

/// What the VLAN itself says of its ports.
fn use_of_members(ends: &Ends<'_>, at: usize, domain: &Domain, vlan: u16) -> Use {
    let rows = domain.rows(vlan);
    if rows.is_empty() || rows.iter().any(|row| row.members.is_none()) {
        return Use::Unknown;
    }
    let members = rows.iter().flat_map(|row| row.members.iter().flatten().map(move |member| (row, member)));
    // Another object may say more of the VLAN where not all are known.
    let mut known = if domain.knows_vlans { Use::Unused } else { Use::Unknown };
    for (row, member) in members {
        let is_end = ends.has_name(at, row.device.as_deref(), &folded(&member.port));
        match (member.is_tagged, is_end) {
            (Some(false), _) | (Some(true) | None, false) => return Use::Used,
            (None, true) => known = Use::Unknown,
            (Some(true), true) => {}
        }
    }
    known
}
