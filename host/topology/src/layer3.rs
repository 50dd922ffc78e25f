//! Addresses: where devices have them, what lies outside of the site, and which subnets are known to be one network.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;

use ipnet::IpNet;

use crate::facts::{Fact, Facts};
use crate::gather::Names;
use crate::names::{address, is_everything, network};
use crate::nets::{self, Domains};
use crate::site::{Edge, Node, Site, Tie, is_private_bridge};

/// Roles of interfaces that show that a device has an address there, whether or not it is known which.
/// Most networks of machines for their own that are looked at.
const PRIVATE_NETS_MAX: usize = 64;
const WITH_ADDRESS: &[&str] = &["lan", "management", "wan"];

/// Finds the networks that machines have for their own containers and guests.
pub(crate) fn find_private(site: &mut Site) {
    let bridges = site.ports.iter().filter(|port| is_private_bridge(&port.name));
    let nets = bridges.flat_map(|port| port.addresses.iter().filter_map(|text| network(text)));
    let nets: BTreeSet<IpNet> = nets.collect();
    site.private = nets.into_iter().take(PRIVATE_NETS_MAX).collect();
}

/// Adds the addresses of devices at their networks.
pub(crate) fn add_doors(facts: &Facts, site: &mut Site, domains: &mut Domains) {
    for at in 0..site.ports.len() {
        let port = &site.ports[at];
        let has_role = port.role.as_deref().is_some_and(|role| WITH_ADDRESS.contains(&role));
        if port.form.as_deref() == Some("loopback") || (port.addresses.is_empty() && !has_role) {
            continue;
        }
        let (device, is_up) = (port.device, port.is_up);
        let own: Vec<IpAddr> = port.addresses.iter().filter_map(|text| address(text)).collect();
        let prefixes: Vec<IpNet> = port.addresses.iter().filter_map(|text| network(text)).collect();
        let net = domains.of_interface(site, at);
        let (door, of_device) = (site.node(Node::Door(at)), site.node(Node::Device(device)));
        for one in own.into_iter().filter(|one| !one.is_loopback()) {
            site.has_address(one, door);
        }
        if !is_up {
            continue;
        }
        site.join(Edge { ports: [Some(at), None], ..Edge::between(door, of_device) });
        let Some(net) = net else { continue };
        domains.has_address(net);
        let node = site.net(net);
        site.join(Edge { ports: [Some(at), None], vlans: [net.vlan; 2], ..Edge::between(door, node) });
        if !is_private_bridge(&site.ports[at].name) {
            site.subnets.extend(prefixes.into_iter().map(|prefix| (prefix, node)));
        }
    }
    routers(facts, site);
}

/// A device that is the gateway of several VLANs passes packets between them, whatever it is called.
fn routers(facts: &Facts, site: &mut Site) {
    let mut gateways: HashMap<usize, HashSet<u16>> = HashMap::new();
    for object in &facts.objects {
        let Fact::Vlan(fact) = &object.fact else { continue };
        let (Some(own), Some(vlan)) = (fact.gateway.as_deref().and_then(address), fact.vlan_id) else {
            continue;
        };
        for device in site.owners(own).iter().filter_map(|node| site.device_of(*node)) {
            gateways.entry(device).or_default().insert(vlan);
        }
    }
    for (device, _) in gateways.into_iter().filter(|(_, vlans)| vlans.len() > 1) {
        site.devices[device].routes = true;
    }
}

/// Adds what lies outside of the site: behind each interface that leads to a gateway which is none of the site's.
pub(crate) fn add_outside(facts: &Facts, site: &mut Site, names: &Names) {
    let doors = Doors::of(site);
    let mut ways: BTreeMap<usize, bool> = BTreeMap::new();
    for (at, port) in site.ports.iter().enumerate() {
        if port.role.as_deref() == Some("wan") {
            ways.insert(at, true);
        }
    }
    for object in &facts.objects {
        let Some(device) = names.device(object) else { continue };
        let (interface, hop) = match &object.fact {
            Fact::Gateway(fact) => (fact.interface.as_deref(), fact.address.as_deref()),
            Fact::Route(fact)
                if fact.enabled != Some(false) && fact.destination.as_deref().is_some_and(is_everything) =>
            {
                (fact.interface.as_deref(), fact.next_hop.as_deref())
            }
            _ => continue,
        };
        let hop = hop.and_then(address);
        let by_hop = || hop.and_then(|hop| doors.find(device, hop));
        let Some(at) = interface.and_then(|name| names.port_named(device, name)).or_else(by_hop) else {
            continue;
        };
        let is_inside = hop.is_some_and(|hop| names.addresses.contains_key(&hop));
        let known = ways.entry(at).or_insert(!is_inside);
        *known &= !is_inside;
    }
    for (at, _) in ways.into_iter().filter(|(_, is_outside)| *is_outside) {
        let Some(door) = site.find(Node::Door(at)).filter(|_| site.ports[at].is_up) else { continue };
        let outside = site.node(Node::Outside);
        site.join(Edge { ports: [Some(at), None], tie: Tie::Outside, ..Edge::between(door, outside) });
    }
}

/// The ports of devices by the subnets of their addresses.
struct Doors {
    lengths: BTreeMap<usize, BTreeSet<u8>>,
    ports: HashMap<(usize, IpNet), usize>,
}

impl Doors {
    fn of(site: &Site) -> Self {
        let mut doors = Self { lengths: BTreeMap::new(), ports: HashMap::new() };
        for (at, port) in site.ports.iter().enumerate() {
            for net in port.addresses.iter().filter_map(|text| network(text)) {
                doors.lengths.entry(port.device).or_default().insert(net.prefix_len());
                doors.ports.entry((port.device, net.trunc())).or_insert(at);
            }
        }
        doors
    }

    /// The port of a device that is in the narrowest subnet of an address.
    fn find(&self, device: usize, hop: IpAddr) -> Option<usize> {
        self.lengths.get(&device)?.iter().rev().find_map(|length| {
            let net = IpNet::new(hop, *length).ok()?.trunc();
            self.ports.get(&(device, net)).copied()
        })
    }
}

/// Subnets by their prefix.
struct Subnets {
    lengths: Vec<u8>,
    vlans: HashMap<IpNet, Option<u16>>,
}

impl Subnets {
    fn of(facts: &Facts, site: &Site) -> Self {
        let mut vlans: HashMap<IpNet, Option<u16>> = HashMap::new();
        for (net, node) in &site.subnets {
            let vlan = vlans.entry(*net).or_default();
            *vlan = vlan.or(site.vlan_of(*node));
        }
        for object in &facts.objects {
            let Fact::Vlan(fact) = &object.fact else { continue };
            for net in fact.subnets.iter().filter_map(|text| network(text)) {
                let vlan = vlans.entry(net).or_default();
                *vlan = vlan.or(fact.vlan_id);
            }
        }
        let lengths: HashSet<u8> = vlans.keys().map(IpNet::prefix_len).collect();
        let mut lengths: Vec<u8> = lengths.into_iter().collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        Self { lengths, vlans }
    }

    /// The smallest subnet that has the address.
    fn find(&self, own: IpAddr) -> Option<(IpNet, Option<u16>)> {
        self.lengths.iter().find_map(|bits| {
            let net = IpNet::new(own, *bits).ok()?.trunc();
            self.vlans.get(&net).map(|vlan| (net, *vlan))
        })
    }
}

/// Adds where devices without an address at an interface are managed, and ties subnets together of which no link is known.
pub(crate) fn add_management(facts: &Facts, site: &mut Site, domains: &Domains) {
    let subnets = Subnets::of(facts, site);
    let of_devices = nets::of_devices(site);
    let mut members: BTreeMap<IpNet, Vec<usize>> = BTreeMap::new();
    for (net, node) in &site.subnets {
        members.entry(*net).or_default().push(*node);
    }
    for (net, node) in bare_doors(site, domains, &subnets).into_iter().chain(of_leaves(site, &subnets)) {
        members.entry(net).or_default().push(node);
    }
    let private = private_addresses(site);
    for (device, own_nets) in of_devices.iter().enumerate() {
        let node = site.node(Node::Device(device));
        let known: Vec<(IpNet, Option<u16>)> =
            site.devices[device].addresses.iter().filter_map(|own| subnets.find(*own)).collect();
        for own in site.devices[device].addresses.clone() {
            if !private.contains(&(device, own)) {
                site.has_address(own, node);
            }
        }
        let has_door = site.around[node]
            .iter()
            .any(|edge| site.edges[*edge].ends.iter().any(|end| matches!(site.nodes[*end], Node::Door(_))));
        if has_door {
            stray(site, node, own_nets);
            continue;
        }
        manage(site, domains, (device, node, own_nets), &known);
        if own_nets.is_empty() {
            for (net, _) in known {
                members.entry(net).or_default().push(node);
            }
        }
    }
    tie_subnets(site, members);
}

/// The addresses that machines have at their bridges for their own containers and guests.
fn private_addresses(site: &Site) -> HashSet<(usize, IpAddr)> {
    let mut found = HashSet::new();
    for port in site.ports.iter().filter(|port| is_private_bridge(&port.name)) {
        found.extend(port.addresses.iter().filter_map(|text| Some((port.device, address(text)?))));
    }
    found
}

/// The subnets of addresses that were told without their prefixes, each with the network that the address is in.
fn bare_doors(site: &Site, domains: &Domains, subnets: &Subnets) -> Vec<(IpNet, usize)> {
    let mut found = Vec::new();
    for (at, port) in site.ports.iter().enumerate() {
        let bare = port.addresses.iter().filter(|text| !text.contains('/')).filter_map(|text| address(text));
        for own in bare.filter(|_| port.is_up) {
            let node =
                domains.of_interface(site, at).and_then(|net| site.find(Node::Net(*site.net_of.get(&net)?)));
            found.extend(node.and_then(|node| Some((subnets.find(own)?.0, node))));
        }
    }
    found
}

/// The subnets of clients and guests, each with the network that they hang in.
fn of_leaves(site: &Site, subnets: &Subnets) -> BTreeSet<(IpNet, usize)> {
    let mut found = BTreeSet::new();
    for (at, leaf) in site.leaves.iter().enumerate() {
        let own: Vec<IpNet> =
            leaf.addresses.iter().filter_map(|own| subnets.find(*own)).map(|(net, _)| net).collect();
        let Some(node) = site.find(Node::Leaf(at)).filter(|_| !own.is_empty()) else { continue };
        let edges = site.around[node].iter().map(|edge| site.edges[*edge]);
        // An address of one card says nothing of the network of another one.
        let nets: Vec<usize> =
            edges.map(|edge| edge.ends[1]).filter(|end| matches!(site.nodes[*end], Node::Net(_))).collect();
        if let [only] = nets[..] {
            found.extend(own.into_iter().map(|net| (net, only)));
        }
    }
    found
}

/// Networks of a device that has its addresses elsewhere are joined with the device where it is not known what else to do
/// with them: a link leads to a port that is not known.
fn stray(site: &mut Site, node: usize, own_nets: &[usize]) {
    for net in own_nets {
        let Node::Net(at) = site.nodes[*net] else { continue };
        let is_made_up = site.around[*net].iter().all(|edge| {
            let edge = &site.edges[*edge];
            let own = usize::from(edge.ends[1] == *net);
            edge.ports[own].is_some_and(|port| site.ports[port].objects.is_empty())
        });
        if site.nets[at].domain.is_none() && is_made_up {
            site.join_within(*net, node, true);
        }
    }
}

/// Joins a device with the network that it is managed in: that of its address, else the one without a tag, else any.
fn manage(
    site: &mut Site,
    domains: &Domains,
    (device, node, own_nets): (usize, usize, &[usize]),
    known: &[(IpNet, Option<u16>)],
) {
    let vlans: HashSet<u16> = known.iter().filter_map(|(_, vlan)| *vlan).collect();
    let of = |site: &Site, is: &dyn Fn(Option<u16>) -> bool| -> Vec<usize> {
        own_nets.iter().copied().filter(|net| is(site.vlan_of(*net))).collect()
    };
    let of_address = of(site, &|vlan| vlan.is_some_and(|vlan| vlans.contains(&vlan)));
    if !of_address.is_empty() {
        of_address.into_iter().for_each(|net| site.join_within(net, node, false));
        return;
    }
    let bare = domains.number(device, None);
    let untagged = of(site, &|vlan| vlan == bare || vlan.is_none());
    let all = if untagged.is_empty() { own_nets.to_vec() } else { untagged };
    let is_assumed = all.len() > 1 && site.devices[device].controller.is_some();
    all.into_iter().for_each(|net| site.join_within(net, node, is_assumed));
}

/// Networks of one subnet that no known link joins are joined by what is not known.
fn tie_subnets(site: &mut Site, members: BTreeMap<IpNet, Vec<usize>>) {
    let parts = parts(site);
    for mut nodes in members.into_values() {
        // A router stands for its part.
        nodes.sort_by_key(|node| {
            let device = site.device_of(*node);
            (!device.is_some_and(|device| site.devices[device].routes), *node)
        });
        let mut seen = HashSet::new();
        nodes.retain(|node| seen.insert(parts[*node]));
        if nodes.len() < 2 {
            continue;
        }
        let shared = site.node(Node::Shared);
        for node in nodes {
            site.join(Edge { tie: Tie::Subnet, is_assumed: true, ..Edge::between(node, shared) });
        }
    }
}

/// The number of the part of the graph that each network is in, over links alone.
fn parts(site: &Site) -> Vec<usize> {
    let is_net = |node: usize| matches!(site.nodes[node], Node::Net(_));
    let mut part = vec![usize::MAX; site.nodes.len()];
    for start in 0..site.nodes.len() {
        if part[start] != usize::MAX {
            continue;
        }
        part[start] = start;
        let mut left = vec![start];
        while let Some(node) = left.pop().filter(|_| is_net(start)) {
            for edge in &site.around[node] {
                for end in site.edges[*edge].ends {
                    if part[end] == usize::MAX && is_net(end) {
                        part[end] = start;
                        left.push(end);
                    }
                }
            }
        }
    }
    part
}
