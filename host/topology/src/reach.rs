//! Which nodes can be reached, what is lost without some of the graph, and what has no second path.

use crate::site::{Node, Site, Tie};

/// What is taken out of a graph.
#[derive(Debug, Default, Clone)]
pub struct Without {
    pub nodes: Vec<bool>,
    pub edges: Vec<bool>,
}

impl Without {
    /// Takes out nothing yet.
    pub fn nothing(site: &Site) -> Self {
        Self { nodes: vec![false; site.nodes.len()], edges: vec![false; site.edges.len()] }
    }

    fn has_edge(&self, site: &Site, edge: usize) -> bool {
        !self.edges[edge] && site.edges[edge].ends.iter().all(|end| !self.nodes[*end])
    }
}

/// How each node was reached.
#[derive(Debug)]
pub struct Reached {
    /// Edges on the shortest path; none where there is no path.
    pub hops: Vec<Option<u32>>,
    /// The edge by which each node was reached first.
    pub by: Vec<Option<usize>>,
    /// The nodes in the order in which they were reached.
    pub order: Vec<usize>,
}

impl Reached {
    /// Whether there is a path to a node.
    pub fn has(&self, node: usize) -> bool {
        self.hops[node].is_some()
    }
}

/// Goes through the graph from these nodes. Packets do not pass through clients, through the outside, or through a device
/// that does not route.
pub fn reach(site: &Site, from: &[usize], without: &Without) -> Reached {
    let mut found = Reached {
        hops: vec![None; site.nodes.len()],
        by: vec![None; site.nodes.len()],
        order: Vec::with_capacity(site.nodes.len()),
    };
    for start in from.iter().filter(|start| !without.nodes[**start]) {
        if found.hops[*start].is_none() {
            found.hops[*start] = Some(0);
            found.order.push(*start);
        }
    }
    let starts = found.order.len();
    let mut at = 0;
    while let Some(node) = found.order.get(at).copied() {
        let hops = found.hops[node].unwrap_or_default();
        if at < starts || passes(site, node) {
            for edge in &site.around[node] {
                let [a, b] = site.edges[*edge].ends;
                let next = if a == node { b } else { a };
                if found.hops[next].is_none() && without.has_edge(site, *edge) {
                    found.hops[next] = Some(hops + 1);
                    found.by[next] = Some(*edge);
                    found.order.push(next);
                }
            }
        }
        at += 1;
    }
    found
}

/// Whether packets pass through a node on their way to another one.
fn passes(site: &Site, node: usize) -> bool {
    match site.nodes[node] {
        Node::Device(device) => site.devices[device].routes,
        Node::Leaf(_) | Node::Outside => false,
        Node::Net(_) | Node::Door(_) | Node::Shared => true,
    }
}

/// Nodes whose first path leads over something that is taken out.
pub fn behind(site: &Site, reached: &Reached, without: &Without) -> Vec<bool> {
    let mut behind = vec![false; site.nodes.len()];
    for node in &reached.order {
        let over = reached.by[*node].is_some_and(|edge| {
            let [a, b] = site.edges[edge].ends;
            let before = if a == *node { b } else { a };
            without.edges[edge] || behind[before]
        });
        behind[*node] = over || without.nodes[*node];
    }
    behind
}

/// Whether the shortest path to a node leads over something that no device has reported.
pub fn is_uncertain(site: &Site, reached: &Reached, node: usize) -> bool {
    let mut at = node;
    while let Some(edge) = reached.by[at] {
        if site.edges[edge].is_assumed {
            return true;
        }
        let [a, b] = site.edges[edge].ends;
        at = if a == at { b } else { a };
    }
    false
}

/// What has no second path within its VLAN: edges, and networks of devices.
#[derive(Debug)]
pub struct Single {
    pub edges: Vec<bool>,
    pub nodes: Vec<bool>,
}

/// Finds the bridges and the articulation points of all VLANs at once: VLANs do not meet below layer 3.
///
/// Depth first without recursion, in one pass over nodes and edges.
pub fn single(site: &Site) -> Single {
    let mut found = Single { edges: vec![false; site.edges.len()], nodes: vec![false; site.nodes.len()] };
    let is_net = |node: usize| matches!(site.nodes[node], Node::Net(_));
    let counts = |edge: usize| {
        matches!(site.edges[edge].tie, Tie::Link(_) | Tie::Inner)
            && site.edges[edge].ends.iter().all(|end| is_net(*end))
    };
    let (mut entered, mut lowest) = (vec![0_usize; site.nodes.len()], vec![0_usize; site.nodes.len()]);
    let mut clock = 0;
    for root in (0..site.nodes.len()).filter(|node| is_net(*node)) {
        if entered[root] != 0 {
            continue;
        }
        clock += 1;
        (entered[root], lowest[root]) = (clock, clock);
        // Node, the edge by which it was entered, and how many of its edges were looked at.
        let mut path: Vec<(usize, Option<usize>, usize)> = vec![(root, None, 0)];
        let mut branches = 0;
        while let Some((node, by, at)) = path.last_mut() {
            let Some(edge) = site.around[*node].get(*at).copied() else {
                let (node, by) = (*node, *by);
                path.pop();
                let (Some(edge), Some((above, ..))) = (by, path.last()) else { continue };
                lowest[*above] = lowest[*above].min(lowest[node]);
                found.edges[edge] |= lowest[node] > entered[*above];
                found.nodes[*above] |= *above != root && lowest[node] >= entered[*above];
                branches += usize::from(*above == root);
                continue;
            };
            *at += 1;
            if Some(edge) == *by || !counts(edge) {
                continue;
            }
            let [a, b] = site.edges[edge].ends;
            let (node, next) = (*node, if a == *node { b } else { a });
            if entered[next] == 0 {
                clock += 1;
                (entered[next], lowest[next]) = (clock, clock);
                path.push((next, Some(edge), 0));
            } else {
                lowest[node] = lowest[node].min(entered[next]);
            }
        }
        found.nodes[root] = branches > 1;
    }
    found
}
