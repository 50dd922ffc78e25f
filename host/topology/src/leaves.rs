//! Clients and guests: each once, at the place that is told most exactly.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use heddle_core::ControllerId;

use crate::facts::{ClientFact, Fact, Facts, Object};
use crate::gather::Names;
use crate::names::{address, folded, mac};
use crate::nets::Domains;
use crate::site::{Edge, Leaf, Net, Node, Place, Site, Tie};

/// How exactly a place is told, from the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    Nowhere,
    /// Behind a device.
    Device,
    /// Behind an interface of a router.
    Interface,
    /// At a port that leads to another device.
    Link,
    Port,
    Air,
    Guest,
}

/// A place of a leaf, with the networks that it is in.
struct Found {
    told: Told,
    place: Option<Place>,
    nets: Vec<Net>,
    /// The device itself, where no network is known.
    device: Option<usize>,
}

/// VLANs of wireless networks by controller and name; none where several differ.
type Wireless = HashMap<(ControllerId, String), Option<u16>>;

/// Adds clients and guests. Returns which leaf each object is.
pub(crate) fn add(
    facts: &Facts,
    site: &mut Site,
    (names, domains): (&Names, &Domains),
    taken: &HashSet<usize>,
) -> HashMap<usize, usize> {
    let wireless = wireless(facts);
    let mut by_mac: HashMap<String, usize> = HashMap::new();
    let mut seen: HashSet<(usize, IpAddr)> = HashSet::new();
    let mut found: Vec<Found> = Vec::new();
    let mut of_object = HashMap::new();
    for (number, object) in facts.objects.iter().enumerate() {
        let (own_macs, addresses, one) = match &object.fact {
            Fact::Client(fact) => {
                let one = client(site, (names, domains), (object, fact), &wireless, taken);
                (fact.mac.iter().filter_map(|text| mac(text)).collect(), &fact.addresses, one)
            }
            Fact::Guest(fact) if fact.template != Some(true) => {
                let macs: Vec<String> = fact.nics.iter().filter_map(|nic| mac(nic.mac.as_deref()?)).collect();
                (macs, &fact.addresses, guest(site, (names, domains), object, fact))
            }
            _ => continue,
        };
        // What is a device by itself hangs by its links.
        if own_macs.iter().any(|own| names.macs.contains_key(own)) {
            continue;
        }
        let known = own_macs.iter().find_map(|own| by_mac.get(own).copied());
        let at = known.unwrap_or(site.leaves.len());
        if known.is_none() {
            site.leaves.push(Leaf {
                object: object.id,
                label: object.label.clone(),
                mac: own_macs.first().cloned(),
                is_guest: matches!(object.fact, Fact::Guest(_)),
                addresses: Vec::new(),
                place: None,
            });
            found.push(Found { told: Told::Nowhere, place: None, nets: Vec::new(), device: None });
        }
        let leaf = &mut site.leaves[at];
        leaf.addresses
            .extend(addresses.iter().filter_map(|text| address(text)).filter(|own| seen.insert((at, *own))));
        if one.told > found[at].told {
            leaf.label.clone_from(&object.label);
            leaf.is_guest |= one.told == Told::Guest;
            found[at] = one;
        }
        by_mac.extend(own_macs.into_iter().map(|own| (own, at)));
        of_object.insert(number, at);
    }
    for (at, one) in found.into_iter().enumerate() {
        place(site, at, one);
    }
    of_object
}

fn wireless(facts: &Facts) -> Wireless {
    let mut all = Wireless::new();
    for object in &facts.objects {
        let Fact::Ssid(fact) = &object.fact else { continue };
        let Some(name) = &fact.name else { continue };
        let known = all.entry((object.controller, folded(name))).or_insert(fact.vlan_id);
        if *known != fact.vlan_id {
            *known = None;
        }
    }
    all
}

fn client(
    site: &Site,
    (names, domains): (&Names, &Domains),
    (object, fact): (&Object, &ClientFact),
    wireless: &Wireless,
    taken: &HashSet<usize>,
) -> Found {
    let nothing = Found { told: Told::Nowhere, place: None, nets: Vec::new(), device: None };
    let Some(device) = names.device(object) else { return nothing };
    let at = |port: Option<usize>| Place { device, port, ssid: fact.ssid.clone(), band: fact.band.clone() };
    let interface = fact.interface.as_deref().and_then(|name| names.port_named(device, name));
    let of_interface = interface.and_then(|port| domains.of_interface(site, port));
    if fact.connection.as_deref() == Some("wireless") || fact.ssid.is_some() {
        let ssid = fact.ssid.as_deref().and_then(|name| wireless.get(&(object.controller, folded(name))));
        let vlan = fact.vlan_id.or(ssid.copied().flatten());
        let bare = Net { device, domain: None, vlan: domains.number(device, None) };
        let net = match (of_interface, vlan) {
            (Some(net), Some(vlan)) => Net { vlan: Some(vlan), ..net },
            (Some(net), None) => net,
            (None, Some(vlan)) => Net { vlan: Some(vlan), ..bare },
            (None, None) => bare,
        };
        return Found { told: Told::Air, place: Some(at(None)), nets: vec![net], device: None };
    }
    if let Some(port) = fact.port.as_deref().and_then(|name| names.port(device, name)) {
        let untagged = domains.untagged(site, port);
        let vlan = fact.vlan_id.or(untagged.vlan);
        let told = if taken.contains(&port) { Told::Link } else { Told::Port };
        return Found {
            told,
            place: Some(at(Some(port))),
            nets: vec![Net { vlan, ..untagged }],
            device: None,
        };
    }
    if let (Some(port), Some(net)) = (interface, of_interface) {
        return Found { told: Told::Interface, place: Some(at(Some(port))), nets: vec![net], device: None };
    }
    Found { told: Told::Device, place: Some(at(None)), device: Some(device), ..nothing }
}

fn guest(
    site: &Site,
    (names, domains): (&Names, &Domains),
    object: &Object,
    fact: &crate::facts::GuestFact,
) -> Found {
    let system = fact.system.as_deref();
    let host = system.and_then(|name| names.at_controller(object.controller, site, name));
    let Some(device) = host.or_else(|| names.only_of(object.controller)) else {
        return Found { told: Told::Nowhere, place: None, nets: Vec::new(), device: None };
    };
    let net = |nic: &crate::facts::NicFact| {
        let bridge = names.port_named(device, nic.network.as_deref()?)?;
        let untagged = domains.untagged(site, bridge);
        Some(Net { vlan: nic.vlan_id.or(untagged.vlan), ..untagged })
    };
    let nets: Vec<Net> = fact.nics.iter().filter_map(net).collect();
    let place = Place { device, port: None, ssid: None, band: None };
    let device = nets.is_empty().then_some(device);
    Found { told: Told::Guest, place: Some(place), nets, device }
}

fn place(site: &mut Site, at: usize, found: Found) {
    let leaf = site.node(Node::Leaf(at));
    for own in site.leaves[at].addresses.clone() {
        site.has_address(own, leaf);
    }
    if found.told == Told::Nowhere {
        site.unplaced += 1;
        return;
    }
    let is_assumed = matches!(found.told, Told::Link | Told::Interface | Told::Device);
    let port = found.place.as_ref().and_then(|place| place.port);
    site.leaves[at].place = found.place;
    for net in found.nets {
        let node = site.net(net);
        let (ports, vlans) = ([None, port], [net.vlan; 2]);
        let native = port.and_then(|port| site.ports[port].vlans.as_ref()).map(|vlans| vlans.native);
        let is_tagged = [false, native.is_some_and(|native| native != net.vlan)];
        site.join(Edge { ports, vlans, is_tagged, tie: Tie::Leaf, is_assumed, ..Edge::between(leaf, node) });
    }
    if let Some(device) = found.device {
        let node = site.node(Node::Device(device));
        site.join(Edge { tie: Tie::Leaf, is_assumed, ..Edge::between(leaf, node) });
    }
}
