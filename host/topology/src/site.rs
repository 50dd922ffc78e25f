//! The graph of a site: devices, the networks within them, the links between them, and what hangs on those.
//!
//! Each VLAN of a device is a node of its own, so that a port that loses a VLAN cuts the traffic of that VLAN alone. A
//! device joins its networks only where it routes; a *door* is the address that a device has in a network.

use std::collections::HashMap;
use std::net::IpAddr;

use heddle_core::{ControllerId, DeviceId, Timestamp};
use heddle_store::model_objects::ModelObjectId;
use heddle_store::topology::NativeName;

/// A machine with networks of its own.
#[derive(Debug)]
pub struct Device {
    /// The controller that manages it; none of one that others only heard of.
    pub controller: Option<ControllerId>,
    pub id: Option<DeviceId>,
    /// The vendor's id of its site; empty where the vendor has none.
    pub site_ref: String,
    /// What its controller knows it by, or what others heard of it.
    pub identity: String,
    pub name: String,
    pub role: Option<String>,
    /// Whether it passes packets from one of its networks to another.
    pub routes: bool,
    pub addresses: Vec<IpAddr>,
}

/// A port or an interface of a device; where it is both, this is one.
#[derive(Debug)]
pub struct Port {
    pub device: usize,
    pub name: String,
    /// What its objects are known by, in small letters and without the device in front.
    pub keys: Vec<String>,
    /// Objects of the inventory that it is.
    pub objects: Vec<ModelObjectId>,
    /// Whether it is listed as a port, and not as an interface alone.
    pub is_port: bool,
    pub form: Option<String>,
    pub role: Option<String>,
    /// Neither switched off nor without a link.
    pub is_up: bool,
    pub addresses: Vec<String>,
    pub vlan_id: Option<u16>,
    /// What carries it, where it is a VLAN or a tunnel.
    pub lower: Option<usize>,
    /// The bridge or bond that it is a part of.
    pub master: Option<usize>,
    /// What it does with VLANs, where that is known.
    pub vlans: Option<PortVlans>,
    /// It says so itself, and not the VLANs.
    pub tells_vlans: bool,
}

/// The VLANs of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortVlans {
    /// VLAN of packets without a tag.
    pub native: Option<u16>,
    pub tagged: Tagged,
}

/// VLANs whose packets have a tag; the lists are in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tagged {
    Only(Vec<u16>),
    AllBut(Vec<u16>),
}

impl Tagged {
    /// Whether packets of this VLAN pass with a tag.
    pub fn has(&self, vlan: u16) -> bool {
        match self {
            Tagged::Only(list) => list.binary_search(&vlan).is_ok(),
            Tagged::AllBut(list) => list.binary_search(&vlan).is_err(),
        }
    }
}

/// A network within a device: a VLAN of a bridge, of the device as a switch, or of a port that stands alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Net {
    pub device: usize,
    /// The bridge, or the port that stands alone; none where the device itself switches.
    pub domain: Option<usize>,
    /// None of packets without a tag, where their VLAN has no number.
    pub vlan: Option<u16>,
}

/// A client or a guest.
#[derive(Debug)]
pub struct Leaf {
    pub object: ModelObjectId,
    pub label: String,
    pub mac: Option<String>,
    pub is_guest: bool,
    pub addresses: Vec<IpAddr>,
    /// Where it hangs; none where that is not known.
    pub place: Option<Place>,
}

/// Where a client or a guest hangs.
#[derive(Debug, Clone)]
pub struct Place {
    pub device: usize,
    pub port: Option<usize>,
    pub ssid: Option<String>,
    pub band: Option<String>,
}

/// A node of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Node {
    Device(usize),
    Net(usize),
    /// The address of a device at one of its ports.
    Door(usize),
    Leaf(usize),
    /// What lies behind the gateways of the site.
    Outside,
    /// A subnet that several devices are in, where the way between them is not known.
    Shared,
}

/// What an edge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tie {
    /// Part of a link between two devices, by its number.
    Link(usize),
    /// Something hangs here.
    Leaf,
    /// Within a device.
    Inner,
    /// Towards the outside.
    Outside,
    /// Two devices are in one subnet, and no more is known.
    Subnet,
}

/// An edge of the graph.
#[derive(Debug, Clone, Copy)]
pub struct Edge {
    pub ends: [usize; 2],
    /// The ports that it passes, at each end.
    pub ports: [Option<usize>; 2],
    /// The VLAN that it is, at each end; none where packets without a tag have no number.
    pub vlans: [Option<u16>; 2],
    /// Whether packets have a tag, at each end.
    pub is_tagged: [bool; 2],
    pub tie: Tie,
    /// It follows from something else than from what a device said of it.
    pub is_assumed: bool,
}

impl Edge {
    /// An edge that passes no port.
    pub(crate) fn between(a: usize, b: usize) -> Self {
        let (ports, vlans, is_tagged) = ([None; 2], [None; 2], [false; 2]);
        Self { ends: [a, b], ports, vlans, is_tagged, tie: Tie::Inner, is_assumed: false }
    }
}

/// Why a link is believed to be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// `neighbour`, `client`, `guest` or `uplink`.
    pub kind: &'static str,
    /// The object that says so.
    pub object: ModelObjectId,
}

/// A link between two devices.
#[derive(Debug)]
pub struct Link {
    /// Device and port; the port is made up where it is not known which one it is.
    pub ends: [(usize, usize); 2],
    pub evidence: Vec<Evidence>,
    pub is_assumed: bool,
}

/// What an object of the inventory is in the graph.
#[derive(Debug, Clone)]
pub struct Known {
    pub controller: ControllerId,
    pub kind: &'static str,
    pub id: ModelObjectId,
    /// The vendor's id of its site; empty where it is the controller's.
    pub site_ref: String,
    pub key: String,
    pub label: String,
    pub native: Option<NativeName>,
    pub what: What,
}

/// What of the graph an object is about.
#[derive(Debug, Clone)]
pub enum What {
    Device(usize),
    Port(usize),
    /// A VLAN: at one device, or at all devices of its controller.
    Vlan {
        device: Option<usize>,
        vlan: u16,
        interface: Option<usize>,
    },
    Ssid {
        device: Option<usize>,
        name: String,
    },
    Radio {
        device: usize,
        band: Option<String>,
    },
    Route {
        device: Option<usize>,
        is_default: bool,
        /// It leads answers to the service, and nothing else.
        covers_service: bool,
    },
    Leaf(usize),
    /// Nothing that carries traffic.
    Nothing,
}

/// The graph of a site.
#[derive(Debug, Default)]
pub struct Site {
    pub devices: Vec<Device>,
    pub ports: Vec<Port>,
    pub nets: Vec<Net>,
    pub leaves: Vec<Leaf>,
    pub links: Vec<Link>,
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    /// Numbers of the edges of each node.
    pub around: Vec<Vec<usize>>,
    pub known: Vec<Known>,
    pub controllers: Vec<crate::facts::ControllerFact>,
    /// Nodes by what they are.
    pub(crate) node_of: HashMap<Node, usize>,
    pub(crate) net_of: HashMap<Net, usize>,
    /// What has an address: a node of each device that says so, else of each client.
    pub(crate) by_address: HashMap<IpAddr, Vec<usize>>,
    /// Networks that machines have for their own containers and guests.
    pub(crate) private: Vec<ipnet::IpNet>,
    /// Networks of addresses, each with a node of the network.
    pub(crate) subnets: Vec<(ipnet::IpNet, usize)>,
    /// Where the service itself is.
    pub(crate) own_addresses: Vec<IpAddr>,
    /// What is not known, a sentence each.
    pub gaps: Vec<String>,
    pub observed_at: Option<Timestamp>,
    /// Clients and guests of which it is not known where they hang.
    pub unplaced: usize,
}

/// Most owners of one address that are told apart.
pub(crate) const OWNERS_MAX: usize = 8;
/// How the bridges of machines for their own containers and guests are called: each machine gives them the same addresses.
const PRIVATE_BRIDGES: &[&str] = &["cni", "docker", "lxcbr", "lxdbr", "podman", "virbr"];

/// Whether a port is a bridge of a machine for its own containers and guests.
pub(crate) fn is_private_bridge(port: &str) -> bool {
    let name = port.to_lowercase();
    let is_composed = |id: &str| id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    PRIVATE_BRIDGES.iter().any(|begin| name.starts_with(begin))
        || name.strip_prefix("br-").is_some_and(is_composed)
}

impl Site {
    /// Keeps in mind what has an address. What was told first counts, and a device before what is seen of it from outside.
    pub(crate) fn has_address(&mut self, own: IpAddr, node: usize) {
        let is_private = match self.nodes[node] {
            Node::Door(port) => is_private_bridge(&self.ports[port].name),
            Node::Leaf(_) => self.private.iter().any(|net| net.contains(&own)),
            _ => false,
        };
        if is_private {
            return;
        }
        let device = self.device_of(node);
        let known = self.owners(own);
        let is_settled = known.iter().any(|other| {
            let of = self.device_of(*other);
            of.is_some() != device.is_some() || *other == node || (of.is_some() && of == device)
        });
        if !is_settled && known.len() < OWNERS_MAX {
            self.by_address.entry(own).or_default().push(node);
        }
    }

    /// All that have an address.
    pub(crate) fn owners(&self, own: IpAddr) -> &[usize] {
        self.by_address.get(&own).map_or(&[], Vec::as_slice)
    }

    /// What alone has an address; none where several have it, for then it tells no place.
    pub(crate) fn owner(&self, own: IpAddr) -> Option<usize> {
        let [only] = self.owners(own) else { return None };
        Some(*only)
    }

    /// The number of a node, which is added where it is new.
    pub(crate) fn node(&mut self, node: Node) -> usize {
        if let Some(at) = self.node_of.get(&node) {
            return *at;
        }
        let at = self.nodes.len();
        self.nodes.push(node);
        self.around.push(Vec::new());
        if node != Node::Shared {
            self.node_of.insert(node, at);
        }
        at
    }

    /// The node of a network, which is added where it is new.
    pub(crate) fn net(&mut self, net: Net) -> usize {
        let at = if let Some(at) = self.net_of.get(&net) {
            *at
        } else {
            let at = self.nets.len();
            self.nets.push(net);
            self.net_of.insert(net, at);
            at
        };
        self.node(Node::Net(at))
    }

    /// The node of what is there already.
    pub fn find(&self, node: Node) -> Option<usize> {
        self.node_of.get(&node).copied()
    }

    pub(crate) fn join(&mut self, edge: Edge) {
        let [a, b] = edge.ends;
        if a == b {
            return;
        }
        let at = self.edges.len();
        self.edges.push(edge);
        self.around[a].push(at);
        self.around[b].push(at);
    }

    /// Joins two nodes within a device.
    pub(crate) fn join_within(&mut self, a: usize, b: usize, is_assumed: bool) {
        self.join(Edge { tie: Tie::Inner, is_assumed, ..Edge::between(a, b) });
    }

    /// The device that a node is of.
    pub fn device_of(&self, node: usize) -> Option<usize> {
        match self.nodes[node] {
            Node::Device(device) => Some(device),
            Node::Net(net) => Some(self.nets[net].device),
            Node::Door(port) => Some(self.ports[port].device),
            Node::Leaf(_) | Node::Outside | Node::Shared => None,
        }
    }

    /// The VLANs of packets that begin at a node's networks, where they have a number.
    pub fn vlan_of(&self, node: usize) -> Option<u16> {
        match self.nodes[node] {
            Node::Net(net) => self.nets[net].vlan,
            _ => None,
        }
    }
}
