//! Compares the VLANs of a site: what its controllers lack, have too much, call otherwise, and where the ends of links do not
//! agree. Pure: what is not known is never reported.

pub(crate) mod expected;
pub(crate) mod remedy;
mod subnets;
mod uses;

use std::collections::BTreeSet;

use heddle_core::vlan::VlanFault;

use self::expected::Expected;
use crate::site::facts::{Carriage, DEFAULT_VLAN, Domain, Facts, Link};

/// A difference. Numbers of domains and links are places in the lists of the facts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) class: VlanFault,
    pub(crate) vlan: u16,
    /// Where it is: of a link, the end that has to change.
    pub(crate) domain: usize,
    /// The link, and which of its ends is meant by the domain.
    pub(crate) link: Option<(usize, usize)>,
    pub(crate) expected: Option<String>,
    pub(crate) found: Option<String>,
    /// What it is compared with: another domain, and the VLAN there.
    pub(crate) other: Option<(usize, u16)>,
}

impl Finding {
    fn of(class: VlanFault, vlan: u16, domain: usize) -> Self {
        Self { class, vlan, domain, link: None, expected: None, found: None, other: None }
    }
}

/// Everything that differs from what is expected, by class, VLAN and domain.
pub(crate) fn compare(facts: &Facts, expected: &Expected) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for (at, domain) in facts.domains.iter().enumerate() {
        if expected.is_about(at, domain) {
            found.extend(of_domain(at, domain, expected));
        }
    }
    for (at, link) in facts.links.iter().enumerate() {
        found.extend(of_link(facts, at, link));
    }
    found.extend(subnets::overlaps(facts));
    found.extend(uses::orphans(facts));
    found.sort();
    found
}

fn of_domain(at: usize, domain: &Domain, expected: &Expected) -> Vec<Finding> {
    let mut found = Vec::new();
    for (vlan, name) in &expected.vlans {
        if domain.lacks(*vlan) {
            found.push(Finding { expected: name.clone(), ..Finding::of(VlanFault::Missing, *vlan, at) });
        } else if let Some(name) = name
            && let Some(other) = named_otherwise(domain, *vlan, name)
        {
            let (expected, found_name) = (Some(name.clone()), Some(other));
            let finding = Finding::of(VlanFault::NameDiffers, *vlan, at);
            found.push(Finding { expected, found: found_name, ..finding });
        }
    }
    if expected.is_whole {
        let own =
            domain.vlans.keys().filter(|vlan| **vlan != DEFAULT_VLAN && !expected.vlans.contains_key(*vlan));
        let own = own.filter(|vlan| domain.own_rows(**vlan).next().is_some());
        found.extend(own.map(|vlan| {
            let name = domain.name_of(*vlan).map(str::to_owned);
            Finding { found: name, ..Finding::of(VlanFault::Extra, *vlan, at) }
        }));
    }
    found
}

/// The name of the VLAN, where no name that people gave it there is the expected one.
fn named_otherwise(domain: &Domain, vlan: u16, expected: &str) -> Option<String> {
    let names: Vec<&str> = domain.own_rows(vlan).filter_map(|row| row.name.as_deref()).collect();
    let is_expected = names.iter().any(|name| is_same_name(name, expected));
    names.first().filter(|_| !is_expected).map(|name| (*name).to_owned())
}

/// Vendors differ in the letters and signs that a name may have: only letters and digits count, in any case.
pub(crate) fn is_same_name(one: &str, other: &str) -> bool {
    let plain = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let (one_plain, other_plain) = (plain(one), plain(other));
    if one_plain.is_empty() { one.trim() == other.trim() } else { one_plain == other_plain }
}

fn of_link(facts: &Facts, at: usize, link: &Link) -> Vec<Finding> {
    let mut found = Vec::new();
    let natives = link.ends.each_ref().map(|end| facts.native(end));
    let mut told: BTreeSet<u16> = BTreeSet::new();
    if let [Some(near), Some(far)] = natives
        && near != far
    {
        told.extend([near, far]);
        let finding = Finding::of(VlanFault::NativeMismatch, near, link.ends[0].domain);
        found.push(Finding {
            link: Some((at, 0)),
            found: Some(near.to_string()),
            expected: Some(far.to_string()),
            other: Some((link.ends[1].domain, far)),
            ..finding
        });
    }
    let domains = link.ends.each_ref().map(|end| facts.domain_of(end));
    let vlans: BTreeSet<u16> = domains.iter().flat_map(|domain| domain.vlans.keys().copied()).collect();
    for vlan in vlans.difference(&told) {
        // A domain without the VLAN is told of once, and not for each of its links.
        if domains.iter().any(|domain| domain.lacks(*vlan)) {
            continue;
        }
        let Some(lacking) = end_without_tag(facts, link, *vlan) else { continue };
        let finding = Finding::of(VlanFault::TaggedOnOneEnd, *vlan, link.ends[lacking].domain);
        let other = (link.ends[1 - lacking].domain, *vlan);
        found.push(Finding { link: Some((at, lacking)), other: Some(other), ..finding });
    }
    found
}

/// The end that surely does not tag the VLAN while the other one does.
fn end_without_tag(facts: &Facts, link: &Link, vlan: u16) -> Option<usize> {
    let carriages = link.ends.each_ref().map(|end| facts.carriage(end, vlan));
    let is_sure = |carriage: Carriage| matches!(carriage, Carriage::No | Carriage::Untagged);
    match carriages {
        [Carriage::Tagged, other] if is_sure(other) => Some(1),
        [other, Carriage::Tagged] if is_sure(other) => Some(0),
        _ => None,
    }
}

#[cfg(test)]
mod generated;
#[cfg(test)]
mod tests;
