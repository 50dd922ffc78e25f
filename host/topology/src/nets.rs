//! The networks within devices, and which of them a link joins: VLAN by VLAN, as the ports at both ends have them.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::facts::{Fact, Facts};
use crate::site::{Edge, Net, Node, PortVlans, Site, Tagged, Tie};

/// Most edges of a graph. What would be more is left out, and said.
const EDGES_MAX: usize = 500_000;
/// Most bridges and bonds that stand on each other.
const CHAIN_MAX: usize = 8;

/// To which network within its device each port belongs.
#[derive(Debug, Default)]
pub(crate) struct Domains {
    /// By port: the bridge, or the port that stands alone; none where the device itself switches.
    of: Vec<Option<usize>>,
    /// The VLAN of packets without a tag, by device and domain.
    untagged: HashMap<(usize, Option<usize>), u16>,
    /// VLANs that ports carry as interfaces of their own.
    above: HashMap<usize, Vec<u16>>,
    /// VLANs in which a device has an address, by device and domain.
    numbered: HashSet<Net>,
}

/// What a port does with VLANs.
enum Carries<'s> {
    Known(&'s PortVlans),
    /// Packets without a tag, and these VLANs.
    Plain(&'s [u16]),
    /// Whatever the other end has.
    Anything,
}

impl Domains {
    pub(crate) fn find(site: &Site) -> Self {
        let mut domains = Self::default();
        for at in 0..site.ports.len() {
            domains.of.push(domain(site, at));
        }
        for port in &site.ports {
            if let (Some(lower), Some(vlan)) = (port.lower, port.vlan_id) {
                domains.above.entry(lower).or_default().push(vlan);
                if let Some(Some(carrier)) = domains.of.get(lower).filter(|carrier| **carrier != Some(lower))
                {
                    domains.above.entry(*carrier).or_default().push(vlan);
                }
            }
        }
        for list in domains.above.values_mut() {
            list.sort_unstable();
            list.dedup();
        }
        domains.natives(site);
        domains
    }

    /// Packets without a tag are in VLAN 1 where any port has that as its own; else in the one that all ports have.
    fn natives(&mut self, site: &Site) {
        let mut natives: HashMap<(usize, Option<usize>), BTreeSet<u16>> = HashMap::new();
        for (at, port) in site.ports.iter().enumerate() {
            if let Some(native) = port.vlans.as_ref().and_then(|vlans| vlans.native) {
                natives.entry((port.device, self.of[at])).or_default().insert(native);
            }
        }
        for (place, all) in natives {
            let is_one = all.len() == 1 || all.contains(&1);
            self.untagged.extend(all.first().filter(|_| is_one).map(|native| (place, *native)));
        }
    }

    /// The network of packets without a tag at a port.
    pub(crate) fn untagged(&self, site: &Site, port: usize) -> Net {
        let (device, domain) = (site.ports[port].device, self.domain(port));
        let own = site.ports[port].vlans.as_ref().and_then(|vlans| vlans.native);
        Net { device, domain, vlan: own.or_else(|| self.number(device, domain)) }
    }

    /// The number of the VLAN without a tag.
    pub(crate) fn number(&self, device: usize, domain: Option<usize>) -> Option<u16> {
        let known = self.untagged.get(&(device, domain)).copied();
        known.or_else(|| self.numbered.contains(&Net { device, domain, vlan: Some(1) }).then_some(1))
    }

    pub(crate) fn domain(&self, port: usize) -> Option<usize> {
        self.of.get(port).copied().flatten()
    }

    /// The network that an interface has its address in; none of tunnels.
    pub(crate) fn of_interface(&self, site: &Site, at: usize) -> Option<Net> {
        let port = &site.ports[at];
        match (port.form.as_deref(), port.lower, port.vlan_id) {
            (Some("loopback" | "tunnel"), ..) => None,
            (_, Some(lower), Some(vlan)) if port.master.is_none() => {
                Some(Net { device: port.device, domain: self.domain(lower), vlan: Some(vlan) })
            }
            (Some("vlan"), None, Some(vlan)) if port.master.is_none() => {
                Some(Net { device: port.device, domain: None, vlan: Some(vlan) })
            }
            _ => Some(self.untagged(site, at)),
        }
    }

    /// Keeps in mind that a device has an address in this network.
    pub(crate) fn has_address(&mut self, net: Net) {
        if net.vlan.is_some() {
            self.numbered.insert(net);
        }
    }

    fn carries<'s>(&'s self, site: &'s Site, at: usize) -> Carries<'s> {
        let port = &site.ports[at];
        if let Some(known) = &port.vlans {
            return Carries::Known(known);
        }
        match self.domain(at) {
            None => Carries::Anything,
            Some(domain) if site.ports[domain].form.as_deref() == Some("bridge") => Carries::Anything,
            Some(domain) => Carries::Plain(self.above.get(&domain).map_or(&[][..], Vec::as_slice)),
        }
    }

    /// The network of packets without a tag at a port that takes whatever comes, where the other end has this number.
    fn taken(&self, site: &Site, port: usize, far: Option<u16>) -> Net {
        let (device, domain) = (site.ports[port].device, self.domain(port));
        let same = Net { device, domain, vlan: far };
        if self.numbered.contains(&same) { same } else { Net { vlan: self.number(device, domain), ..same } }
    }
}

/// The bridge or bond at the end of the chain, or the port itself where it stands alone.
fn domain(site: &Site, at: usize) -> Option<usize> {
    let mut root = at;
    for _ in 0..CHAIN_MAX {
        match site.ports[root].master {
            Some(master) => root = master,
            None => break,
        }
    }
    let port = &site.ports[root];
    let is_group = matches!(port.form.as_deref(), Some("bridge" | "bond"));
    if root != at || is_group {
        return Some(root);
    }
    let has_address = !port.addresses.is_empty() || port.role.is_some();
    let is_unknown = port.objects.is_empty();
    let stands_alone = has_address || (site.devices[port.device].routes && !is_unknown);
    (port.vlans.is_none() && stands_alone).then_some(at)
}

/// All VLANs that anything at the site names.
fn all_vlans(facts: &Facts, site: &Site) -> Vec<u16> {
    let mut all: BTreeSet<u16> = site.ports.iter().filter_map(|port| port.vlan_id).collect();
    for vlans in site.ports.iter().filter_map(|port| port.vlans.as_ref()) {
        all.extend(vlans.native);
        if let Tagged::Only(list) = &vlans.tagged {
            all.extend(list);
        }
    }
    for object in &facts.objects {
        match &object.fact {
            Fact::Vlan(fact) => all.extend(fact.vlan_id),
            Fact::Ssid(fact) => all.extend(fact.vlan_id),
            Fact::Client(fact) => all.extend(fact.vlan_id),
            _ => {}
        }
    }
    all.into_iter().collect()
}

/// Joins the networks at both ends of each link.
pub(crate) fn join(facts: &Facts, site: &mut Site, domains: &Domains) {
    above_bridges(site, domains);
    let vlans = all_vlans(facts, site);
    let mut open: HashMap<(usize, Option<usize>), Vec<usize>> = HashMap::new();
    for link in 0..site.links.len() {
        let ports = site.links[link].ends.map(|(_, port)| port);
        if ports.iter().any(|port| !site.ports[*port].is_up) {
            continue;
        }
        if site.edges.len() > EDGES_MAX {
            site.gaps.push(cut());
            return;
        }
        join_untagged(site, domains, link, ports);
        match tagged(site, domains, ports, &vlans) {
            Some(list) => {
                for vlan in list {
                    let ends = ports.map(|port| network(site, domains, port, vlan));
                    join_networks(site, link, ports, (ends, [true; 2]));
                }
            }
            None => {
                for port in ports {
                    open.entry((site.ports[port].device, domains.domain(port))).or_default().push(link);
                }
            }
        }
    }
    spread(site, domains, &open);
}

fn network(site: &Site, domains: &Domains, port: usize, vlan: u16) -> Net {
    Net { device: site.ports[port].device, domain: domains.domain(port), vlan: Some(vlan) }
}

/// A VLAN of a port that is itself a part of a bridge joins two networks of its device.
fn above_bridges(site: &mut Site, domains: &Domains) {
    for at in 0..site.ports.len() {
        let port = &site.ports[at];
        let (Some(lower), Some(vlan), Some(_)) = (port.lower, port.vlan_id, port.master) else { continue };
        if !port.is_up {
            continue;
        }
        let below = network(site, domains, lower, vlan);
        let above = domains.untagged(site, at);
        let ends = [site.net(below), site.net(above)];
        site.join(Edge { ports: [Some(at), None], ..Edge::between(ends[0], ends[1]) });
    }
}

fn join_untagged(site: &mut Site, domains: &Domains, link: usize, ports: [usize; 2]) {
    let own = |at: usize| match domains.carries(site, ports[at]) {
        Carries::Known(vlans) => vlans.native.map(|_| Some(domains.untagged(site, ports[at]))),
        Carries::Plain(_) => Some(Some(domains.untagged(site, ports[at]))),
        Carries::Anything => Some(None),
    };
    let (Some(a), Some(b)) = (own(0), own(1)) else { return };
    let far = |net: Option<Net>| net.and_then(|net| net.vlan);
    let ends = [
        a.unwrap_or_else(|| domains.taken(site, ports[0], far(b))),
        b.unwrap_or_else(|| domains.taken(site, ports[1], far(a))),
    ];
    for (at, far) in [far(b), far(a)].into_iter().enumerate() {
        same_network(site, (ends[at], far), [a, b][at].is_none());
    }
    join_networks(site, link, ports, (ends, [false; 2]));
}

/// Where a device takes whatever comes, packets without a tag and what it calls by the number of the other end are one network.
fn same_network(site: &mut Site, (own, far): (Net, Option<u16>), takes_all: bool) {
    let numbered = Net { vlan: far, ..own };
    if takes_all && far.is_some() && numbered != own && site.net_of.contains_key(&numbered) {
        let ends = [site.net(own), site.net(numbered)];
        site.join_within(ends[0], ends[1], false);
    }
}

fn join_networks(site: &mut Site, link: usize, ports: [usize; 2], (nets, is_tagged): ([Net; 2], [bool; 2])) {
    let ends = nets.map(|net| site.net(net));
    let is_assumed = site.links[link].is_assumed;
    let (ports, vlans) = (ports.map(Some), nets.map(|net| net.vlan));
    site.join(Edge { ends, ports, vlans, is_tagged, tie: Tie::Link(link), is_assumed });
}

/// The VLANs with a tag at both ends; none where both ends take whatever comes.
fn tagged(site: &Site, domains: &Domains, ports: [usize; 2], all: &[u16]) -> Option<Vec<u16>> {
    let listed = |at: usize| -> Option<Vec<u16>> {
        match domains.carries(site, ports[at]) {
            Carries::Known(vlans) => {
                let native = vlans.native;
                let list: &[u16] = if let Tagged::Only(list) = &vlans.tagged { list } else { all };
                Some(
                    list.iter()
                        .copied()
                        .filter(|vlan| vlans.tagged.has(*vlan) && Some(*vlan) != native)
                        .collect(),
                )
            }
            Carries::Plain(list) => Some(list.to_vec()),
            Carries::Anything => None,
        }
    };
    match (listed(0), listed(1)) {
        (Some(mut one), Some(other)) => {
            one.retain(|vlan| other.binary_search(vlan).is_ok());
            Some(one)
        }
        (Some(one), None) | (None, Some(one)) => Some(one),
        (None, None) => None,
    }
}

fn cut() -> String {
    format!("the site has more than {EDGES_MAX} connections; the rest of its VLANs was not looked at")
}

/// Between two ends that take whatever comes, each VLAN passes that is at one of them.
fn spread(site: &mut Site, domains: &Domains, open: &HashMap<(usize, Option<usize>), Vec<usize>>) {
    let mut left: Vec<Net> = site.nets.iter().copied().filter(|net| net.vlan.is_some()).collect();
    let mut passed: HashSet<(usize, u16)> = HashSet::new();
    while let Some(net) = left.pop() {
        let (Some(vlan), Some(links)) = (net.vlan, open.get(&(net.device, net.domain))) else { continue };
        if domains.number(net.device, net.domain) == Some(vlan) {
            continue;
        }
        for link in links {
            if site.edges.len().max(passed.len()) > EDGES_MAX {
                site.gaps.push(cut());
                return;
            }
            if !passed.insert((*link, vlan)) {
                continue;
            }
            let ports = site.links[*link].ends.map(|(_, port)| port);
            let nets = ports.map(|port| network(site, domains, port, vlan));
            left.extend(nets.iter().copied().filter(|other| !site.net_of.contains_key(other)));
            join_networks(site, *link, ports, (nets, [true; 2]));
        }
    }
}

/// The networks of each device, as nodes.
pub(crate) fn of_devices(site: &Site) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new(); site.devices.len()];
    for (at, net) in site.nets.iter().enumerate() {
        all[net.device].extend(site.find(Node::Net(at)));
    }
    all
}
