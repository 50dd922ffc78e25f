//! What of a network is gone when a change is applied.

use std::collections::{BTreeSet, HashMap, HashSet};

use heddle_core::ControllerId;

use crate::names::folded;
use crate::reach::Without;
use crate::site::{Edge, Node, Site, Tagged, Tie};

/// What a change takes away.
#[derive(Debug, Default)]
pub struct Losses {
    /// Ports and interfaces as a whole.
    pub ports: HashSet<usize>,
    /// Packets without a tag at a port.
    pub untagged: HashSet<usize>,
    /// All tagged VLANs of a port but these.
    pub retagged: HashMap<usize, Tagged>,
    /// Single tagged VLANs of a port.
    pub tagged: HashSet<(usize, u16)>,
    /// Devices as a whole.
    pub devices: HashSet<usize>,
    /// Addresses of devices at these interfaces.
    pub doors: HashSet<usize>,
    /// VLANs at a device, or at all devices of a controller.
    pub vlans: Vec<(Area, u16)>,
    /// Wireless networks by name, in small letters.
    pub ssids: Vec<(Area, String)>,
    /// Bands of access points; none of the bands where it is not known which one.
    pub radios: Vec<(usize, Option<String>)>,
    pub leaves: HashSet<usize>,
    /// Devices that lose their way to the outside.
    pub outside: HashSet<usize>,
    /// Labels of routes by which answers to the service go.
    pub answers: BTreeSet<String>,
}

/// Where something is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Area {
    Device(usize),
    Controller(ControllerId),
    /// One of the vendor's sites.
    Site(ControllerId, String),
}

impl Area {
    /// Whether a device is of it.
    pub fn has(&self, site: &Site, device: usize) -> bool {
        let of = &site.devices[device];
        match self {
            Area::Device(own) => *own == device,
            Area::Controller(controller) => of.controller == Some(*controller),
            Area::Site(controller, site_ref) => {
                of.controller == Some(*controller) && of.site_ref == *site_ref
            }
        }
    }
}

impl Losses {
    /// Whether nothing is lost.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
            && self.untagged.is_empty()
            && self.retagged.is_empty()
            && self.tagged.is_empty()
            && self.devices.is_empty()
            && self.doors.is_empty()
            && self.vlans.is_empty()
            && self.ssids.is_empty()
            && self.radios.is_empty()
            && self.leaves.is_empty()
            && self.outside.is_empty()
            && self.answers.is_empty()
    }

    /// Why the service's way may be lost although the graph stays.
    pub(crate) fn risks(&self) -> impl Iterator<Item = String> {
        self.answers.iter().map(|label| format!("answers to the service go by the route '{label}'"))
    }

    /// Marks what is lost in the graph.
    pub fn without(&self, site: &Site) -> Without {
        let ports = self.with_what_stands_on(site);
        let mut without = Without::nothing(site);
        for (at, node) in site.nodes.iter().enumerate() {
            let of_device = site.device_of(at).is_some_and(|device| self.devices.contains(&device));
            without.nodes[at] = of_device
                || match node {
                    Node::Door(port) => ports.contains(port) || self.doors.contains(port),
                    Node::Net(net) => {
                        let net = site.nets[*net];
                        let is_vlan = |(area, vlan): &(Area, u16)| {
                            net.vlan == Some(*vlan) && area.has(site, net.device)
                        };
                        net.domain.is_some_and(|port| ports.contains(&port)) || self.vlans.iter().any(is_vlan)
                    }
                    Node::Leaf(leaf) => self.leaves.contains(leaf),
                    Node::Device(_) | Node::Outside | Node::Shared => false,
                };
        }
        for (at, edge) in site.edges.iter().enumerate() {
            without.edges[at] = self.has_edge(site, edge, &ports);
        }
        without
    }

    /// The ports that are lost, with the interfaces on top of them.
    fn with_what_stands_on(&self, site: &Site) -> HashSet<usize> {
        let mut above: HashMap<usize, Vec<usize>> = HashMap::new();
        for (at, port) in site.ports.iter().enumerate() {
            if let Some(lower) = port.lower {
                above.entry(lower).or_default().push(at);
            }
        }
        let mut lost = self.ports.clone();
        let mut left: Vec<usize> = lost.iter().copied().collect();
        while let Some(port) = left.pop() {
            for child in above.get(&port).into_iter().flatten() {
                if lost.insert(*child) {
                    left.push(*child);
                }
            }
        }
        lost
    }

    fn has_edge(&self, site: &Site, edge: &Edge, ports: &HashSet<usize>) -> bool {
        let at_end = |end: usize| {
            let Some(port) = edge.ports[end] else { return false };
            if ports.contains(&port) {
                return true;
            }
            if edge.is_tagged[end] {
                let Some(vlan) = edge.vlans[end] else { return false };
                return self.tagged.contains(&(port, vlan))
                    || self.retagged.get(&port).is_some_and(|kept| !kept.has(vlan));
            }
            let is_outer = matches!(edge.tie, Tie::Link(_) | Tie::Leaf);
            is_outer && self.untagged.contains(&port)
        };
        if at_end(0) || at_end(1) {
            return true;
        }
        match edge.tie {
            Tie::Outside => self.loses_outside(site, edge),
            Tie::Leaf => self.loses_air(site, edge),
            Tie::Link(_) | Tie::Inner | Tie::Subnet => false,
        }
    }

    fn loses_outside(&self, site: &Site, edge: &Edge) -> bool {
        edge.ends.iter().any(|end| site.device_of(*end).is_some_and(|device| self.outside.contains(&device)))
    }

    /// Whether a client loses its wireless network.
    fn loses_air(&self, site: &Site, edge: &Edge) -> bool {
        if self.ssids.is_empty() && self.radios.is_empty() {
            return false;
        }
        let leaf = edge.ends.iter().find_map(|end| match site.nodes[*end] {
            Node::Leaf(leaf) => site.leaves[leaf].place.as_ref(),
            _ => None,
        });
        let Some(place) = leaf.filter(|place| place.ssid.is_some() || place.band.is_some()) else {
            return false;
        };
        let has_name = |(area, name): &(Area, String)| {
            area.has(site, place.device) && place.ssid.as_deref().is_some_and(|own| folded(own) == *name)
        };
        let has_band = |(device, band): &(usize, Option<String>)| {
            *device == place.device && (band.is_none() || place.band.is_none() || *band == place.band)
        };
        self.ssids.iter().any(has_name) || self.radios.iter().any(has_band)
    }
}
