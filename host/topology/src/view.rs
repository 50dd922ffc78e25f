//! The graph as clients see it: devices and the links between them, with clients as counts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use heddle_core::{ControllerId, DeviceId, SiteId, Timestamp};
use heddle_store::model_objects::ModelObjectId;
use schemars::JsonSchema;
use serde::Serialize;

use crate::reach::{self, Single};
use crate::site::{Node, Site, Tie};
use crate::way;

/// Most nodes of an answer.
const NODES_MAX: usize = 2_000;
/// Most edges of an answer.
const EDGES_MAX: usize = 5_000;
/// Most pieces of evidence of one edge.
const EVIDENCE_MAX: usize = 10;
/// Most VLANs of one edge or node.
const VLANS_MAX: usize = 200;

heddle_core::words! {
    /// What a node of a topology is.
    pub enum NodeKind {
        /// A device that a controller manages.
        Device = "device",
        /// A device that others heard of, and that no controller of the site manages.
        Heard = "heard",
        /// What lies behind the gateways of the site.
        Outside = "outside",
        /// A subnet that several devices are in, where the way between them is not known.
        Subnet = "subnet",
    }
}

heddle_core::words! {
    /// Why an edge of a topology is believed to be there.
    pub enum EvidenceKind {
        /// One device heard the other.
        Neighbour = "neighbour",
        /// A hardware address of one device is seen at a port of the other.
        Client = "client",
        /// A hardware address of a guest of one device is seen at a port of the other.
        Guest = "guest",
        /// An interface leads to a gateway that is none of the site's.
        Gateway = "gateway",
        /// Both have an address in one subnet, or a port is said to lead to the gateway.
        Subnet = "subnet",
    }
}

/// The topology of a site, as its lists were last read.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Topology {
    /// The site.
    site_id: SiteId,
    /// When the oldest list that it is made of was read; null where none was.
    observed_at: Option<Timestamp>,
    /// Devices, and what stands for something that is not known; at most 2,000.
    nodes: Vec<TopologyNode>,
    /// All nodes, shown or not.
    #[schemars(range(min = 0))]
    nodes_total: usize,
    /// Connections between nodes that are shown; at most 5,000.
    edges: Vec<TopologyEdge>,
    /// All edges, shown or not.
    #[schemars(range(min = 0))]
    edges_total: usize,
    /// Clients and guests of which it is known where they are connected.
    #[schemars(range(min = 0))]
    clients: usize,
    /// Clients and guests of which it is not known.
    #[schemars(range(min = 0))]
    clients_unplaced: usize,
    /// Nodes by which the service comes into the site.
    entered_by: Vec<String>,
    /// What is not known, a sentence each.
    unknown: Vec<String>,
}

/// A device of a topology, or what stands for something that is not known.
#[derive(Debug, Serialize, JsonSchema)]
struct TopologyNode {
    /// Edges name nodes by it; it stays the same as long as the device has its identity.
    id: String,
    /// What it is.
    kind: NodeKind,
    /// Name of the device, as people call it.
    name: String,
    /// What the device is for, such as `switch`, in the words of the model; null where it is not known.
    role: Option<String>,
    /// Controller that manages the device; null where none of the site does.
    controller_id: Option<ControllerId>,
    /// The device, where its controller lists it.
    device_id: Option<DeviceId>,
    /// Identity of the device at its controller: the `device_key` of its objects.
    device_key: Option<String>,
    /// Whether it passes packets from one of its networks to another.
    routes: bool,
    /// Clients and guests that are connected to it.
    #[schemars(range(min = 0))]
    clients: usize,
    /// VLANs that would fall apart without it, at most 200.
    single_point_vlans: Vec<u16>,
}

/// A connection of two nodes.
#[derive(Debug, Serialize, JsonSchema)]
struct TopologyEdge {
    /// Node at one end.
    from: String,
    /// Node at the other end.
    to: String,
    /// Port at `from`; null where it is not known.
    from_port: Option<String>,
    /// Port at `to`; null where it is not known.
    to_port: Option<String>,
    /// VLANs that pass, by their numbers, at most 200. Packets without a tag count as what they are where they begin.
    vlans: Vec<u16>,
    /// VLANs of which it is the only path, at most 200.
    single_path_vlans: Vec<u16>,
    /// It follows from something else than from what the devices said of each other.
    is_assumed: bool,
    /// What shows that it is there, at most 10.
    evidence: Vec<TopologyEvidence>,
}

/// What shows that a connection is there.
#[derive(Debug, Serialize, JsonSchema)]
struct TopologyEvidence {
    /// In which way it shows that.
    kind: EvidenceKind,
    /// The object of the inventory that says so; null where it follows from several.
    object_id: Option<ModelObjectId>,
}

/// VLANs of an edge of the answer.
#[derive(Default)]
struct Passing {
    vlans: BTreeSet<u16>,
    single: BTreeSet<u16>,
}

impl Topology {
    pub(crate) fn of(site: &Site, site_id: SiteId) -> Self {
        let single = reach::single(site);
        let names = ids(site);
        let nodes = nodes(site, &single, &names);
        let shown: BTreeSet<&str> = nodes.iter().take(NODES_MAX).map(|node| node.id.as_str()).collect();
        let edges = edges(site, &single, &names);
        let edges_total = edges.len();
        let is_shown =
            |edge: &TopologyEdge| shown.contains(edge.from.as_str()) && shown.contains(edge.to.as_str());
        let edges: Vec<TopologyEdge> = edges.into_iter().filter(is_shown).take(EDGES_MAX).collect();
        let origin = way::origin(site);
        let entered_by = origin.nodes.iter().filter_map(|node| named(site, &names, *node));
        let mut unknown = site.gaps.clone();
        unknown.extend(origin.note.map(str::to_owned));
        let nodes_total = nodes.len();
        Self {
            site_id,
            observed_at: site.observed_at,
            nodes_total,
            edges_total,
            clients: site.leaves.len() - site.unplaced,
            clients_unplaced: site.unplaced,
            entered_by: entered_by.collect(),
            unknown,
            edges,
            nodes: nodes.into_iter().take(NODES_MAX).collect(),
        }
    }
}

/// Ids of the nodes of the answer, by what they are.
fn ids(site: &Site) -> HashMap<usize, String> {
    let mut ids = HashMap::new();
    let mut subnets = 0;
    for (at, node) in site.nodes.iter().enumerate() {
        let id = match node {
            Node::Device(device) => {
                let device = &site.devices[*device];
                match device.controller {
                    Some(controller) => format!("{controller}/{}", device.identity),
                    None => format!("heard/{}", device.identity),
                }
            }
            Node::Outside => "outside".to_owned(),
            Node::Shared => {
                subnets += 1;
                format!("subnet/{subnets}")
            }
            Node::Net(_) | Node::Door(_) | Node::Leaf(_) => continue,
        };
        ids.insert(at, id);
    }
    ids
}

/// The id of the node of the answer that a node of the graph is a part of.
fn named(site: &Site, ids: &HashMap<usize, String>, node: usize) -> Option<String> {
    let own = ids.get(&node);
    let of_device = || ids.get(&site.find(Node::Device(site.device_of(node)?))?);
    let of_leaf = || match site.nodes[node] {
        Node::Leaf(leaf) => ids.get(&site.find(Node::Device(site.leaves[leaf].place.as_ref()?.device))?),
        _ => None,
    };
    own.or_else(of_device).or_else(of_leaf).cloned()
}

fn nodes(site: &Site, single: &Single, ids: &HashMap<usize, String>) -> Vec<TopologyNode> {
    let mut clients = vec![0_usize; site.devices.len()];
    for place in site.leaves.iter().filter_map(|leaf| leaf.place.as_ref()) {
        clients[place.device] += 1;
    }
    let mut vlans: HashMap<usize, BTreeSet<u16>> = HashMap::new();
    for (at, _) in single.nodes.iter().enumerate().filter(|(_, is_single)| **is_single) {
        if let (Some(device), Some(vlan)) = (site.device_of(at), site.vlan_of(at)) {
            vlans.entry(device).or_default().insert(vlan);
        }
    }
    let bare = |id: &str, kind, name: &str| TopologyNode {
        id: id.to_owned(),
        kind,
        name: name.to_owned(),
        role: None,
        controller_id: None,
        device_id: None,
        device_key: None,
        routes: false,
        clients: 0,
        single_point_vlans: Vec::new(),
    };
    let node = |at: usize| {
        let id = ids.get(&at)?;
        Some(match site.nodes[at] {
            Node::Device(number) => {
                let device = &site.devices[number];
                let kind = if device.controller.is_some() { NodeKind::Device } else { NodeKind::Heard };
                TopologyNode {
                    role: device.role.clone(),
                    controller_id: device.controller,
                    device_id: device.id,
                    device_key: device.controller.map(|_| device.identity.clone()),
                    routes: device.routes,
                    clients: clients[number],
                    single_point_vlans: vlans
                        .get(&number)
                        .into_iter()
                        .flatten()
                        .copied()
                        .take(VLANS_MAX)
                        .collect(),
                    ..bare(id, kind, &device.name)
                }
            }
            Node::Outside => bare(id, NodeKind::Outside, "outside"),
            _ => bare(id, NodeKind::Subnet, id),
        })
    };
    (0..site.nodes.len()).filter_map(node).collect()
}

fn edges(site: &Site, single: &Single, ids: &HashMap<usize, String>) -> Vec<TopologyEdge> {
    let mut of_links: BTreeMap<usize, Passing> = BTreeMap::new();
    let mut others: BTreeMap<(String, String), TopologyEdge> = BTreeMap::new();
    for (at, edge) in site.edges.iter().enumerate() {
        let kind = match edge.tie {
            Tie::Link(link) => {
                let passing = of_links.entry(link).or_default();
                let vlan = edge.vlans[0].or(edge.vlans[1]);
                passing.vlans.extend(vlan);
                passing.single.extend(vlan.filter(|_| single.edges[at]));
                continue;
            }
            Tie::Outside => EvidenceKind::Gateway,
            Tie::Subnet => EvidenceKind::Subnet,
            Tie::Leaf | Tie::Inner => continue,
        };
        let ends = edge.ends.map(|end| named(site, ids, end));
        let [Some(from), Some(to)] = ends else { continue };
        others.entry((from.clone(), to.clone())).or_insert_with(|| TopologyEdge {
            from,
            to,
            from_port: edge.ports[0].map(|port| site.ports[port].name.clone()),
            to_port: None,
            vlans: Vec::new(),
            single_path_vlans: Vec::new(),
            is_assumed: edge.is_assumed,
            evidence: vec![TopologyEvidence { kind, object_id: None }],
        });
    }
    let mut all: Vec<TopologyEdge> = Vec::with_capacity(site.links.len() + others.len());
    for (at, link) in site.links.iter().enumerate() {
        let id = |end: usize| ids.get(&site.find(Node::Device(link.ends[end].0))?).cloned();
        let (Some(from), Some(to)) = (id(0), id(1)) else { continue };
        let port =
            |end: usize| Some(site.ports[link.ends[end].1].name.clone()).filter(|name| !name.is_empty());
        let passing = of_links.remove(&at).unwrap_or_default();
        let evidence = link.evidence.iter().take(EVIDENCE_MAX).map(|one| TopologyEvidence {
            kind: one.kind.parse().unwrap_or(EvidenceKind::Client),
            object_id: Some(one.object),
        });
        all.push(TopologyEdge {
            from,
            to,
            from_port: port(0),
            to_port: port(1),
            vlans: passing.vlans.into_iter().take(VLANS_MAX).collect(),
            single_path_vlans: passing.single.into_iter().take(VLANS_MAX).collect(),
            is_assumed: link.is_assumed,
            evidence: evidence.collect(),
        });
    }
    all.extend(others.into_values());
    all
}
