//! What the VLANs of a site are compared with: an intent, one of its controllers, or what most of them have. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::is_same_name;
use crate::site::facts::{DEFAULT_VLAN, Domain, Facts};

/// The VLANs that domains should have, and which domains.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expected {
    /// With their names, where there is a right one.
    pub(crate) vlans: BTreeMap<u16, Option<String>>,
    /// These are all: a VLAN that is not among them is too much.
    pub(crate) is_whole: bool,
    /// The domains that are compared; `None` where all are.
    pub(crate) domains: Option<BTreeSet<usize>>,
    /// Those that are compared although they have no VLAN yet: they were named. The first VLAN of a device changes how all of
    /// its ports work, and many devices never need one.
    pub(crate) named: BTreeSet<usize>,
}

impl Expected {
    /// What an intent says. The domain that it is read from is not compared with it.
    pub(crate) fn intent(vlans: BTreeMap<u16, Option<String>>, domains: BTreeSet<usize>) -> Self {
        let vlans = vlans.into_iter().filter(|(vlan, _)| *vlan != DEFAULT_VLAN).collect();
        Self { vlans, is_whole: true, domains: Some(domains), named: BTreeSet::new() }
    }

    /// The same, also for these domains where they have no VLAN yet.
    pub(crate) fn with_named(self, named: BTreeSet<usize>) -> Self {
        Self { named, ..self }
    }

    /// VLANs that are to be at these domains, beside what is there.
    pub(crate) fn given(vlans: BTreeMap<u16, Option<String>>, domains: BTreeSet<usize>) -> Self {
        Self { is_whole: false, ..Self::intent(vlans, domains) }
    }

    /// What one of the domains has.
    pub(crate) fn domain(facts: &Facts, at: usize) -> Self {
        let domain = &facts.domains[at];
        let own = domain.vlans.keys().filter(|vlan| **vlan != DEFAULT_VLAN);
        let vlans = own.map(|vlan| (*vlan, domain.name_of(*vlan).map(str::to_owned))).collect();
        let others = (0..facts.domains.len()).filter(|other| *other != at).collect();
        Self { vlans, is_whole: domain.knows_vlans, domains: Some(others), named: BTreeSet::new() }
    }

    /// What most of the domains have, of those that use VLANs; half of them are enough.
    pub(crate) fn majority(facts: &Facts) -> Self {
        let using: Vec<&Domain> = facts.domains.iter().filter(|domain| domain.uses_vlans()).collect();
        let mut vlans = BTreeMap::new();
        for vlan in facts.vlans().into_iter().filter(|vlan| *vlan != DEFAULT_VLAN) {
            let having = using.iter().filter(|domain| domain.has(vlan)).count();
            let lacking = using.iter().filter(|domain| domain.lacks(vlan)).count();
            if having >= lacking {
                vlans.insert(vlan, usual_name(&using, vlan));
            }
        }
        Self { vlans, is_whole: true, domains: None, named: BTreeSet::new() }
    }

    /// Whether the domain is compared.
    pub(super) fn is_about(&self, at: usize, domain: &Domain) -> bool {
        self.domains.as_ref().is_none_or(|domains| domains.contains(&at))
            && (domain.uses_vlans() || self.named.contains(&at))
    }
}

/// The name that most domains give the VLAN; of those that equally many give, the first.
fn usual_name(domains: &[&Domain], vlan: u16) -> Option<String> {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for name in domains.iter().filter_map(|domain| domain.name_of(vlan)) {
        match counted.iter_mut().find(|(known, _)| is_same_name(known, name)) {
            Some((_, count)) => *count += 1,
            None => counted.push((name, 1)),
        }
    }
    let most = counted.iter().map(|(_, count)| *count).max()?;
    counted.iter().find(|(_, count)| *count == most).map(|(name, _)| (*name).to_owned())
}
