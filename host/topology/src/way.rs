//! The service's own way into a site: where it comes from, and where the controller of a change is.

use std::net::IpAddr;

use heddle_core::ControllerId;

use crate::names::address;
use crate::site::{Node, OWNERS_MAX, Site};

/// Most places from which the service may come that are looked at.
const ROOTS_MAX: usize = 4;

/// Where the service comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub nodes: Vec<usize>,
    /// It is known to be inside of the site.
    pub is_inside: bool,
    /// What was taken for granted, if anything.
    pub note: Option<&'static str>,
}

/// Where packets of the service enter the site: at its own place there, else from outside, else at the routers.
pub fn origin(site: &Site) -> Origin {
    let own = site.own_addresses.iter().filter(|own| !own.is_loopback());
    let exact: Vec<usize> = own.clone().filter_map(|own| site.owner(*own)).take(ROOTS_MAX).collect();
    if !exact.is_empty() {
        return Origin { nodes: exact, is_inside: true, note: None };
    }
    let several: Vec<usize> =
        own.clone().flat_map(|own| site.owners(*own)).copied().take(ROOTS_MAX).collect();
    if !several.is_empty() {
        let note = "several places of the site have an address of the service";
        return Origin { nodes: several, is_inside: true, note: Some(note) };
    }
    let near = |own: &IpAddr| site.subnets.iter().find(|(net, _)| net.contains(own)).map(|(_, node)| *node);
    let near: Vec<usize> = own.filter_map(near).take(ROOTS_MAX).collect();
    if !near.is_empty() {
        let note = "the service is in a subnet of the site, and at which port is not known";
        return Origin { nodes: near, is_inside: true, note: Some(note) };
    }
    if let Some(outside) = site.find(Node::Outside) {
        let note = "no address of the service is one of the site: it is taken to come from outside";
        return Origin { nodes: vec![outside], is_inside: false, note: Some(note) };
    }
    let routers = (0..site.devices.len()).filter(|device| site.devices[*device].routes);
    let nodes: Vec<usize> =
        routers.filter_map(|device| site.find(Node::Device(device))).take(ROOTS_MAX).collect();
    let note = "neither the service nor a gateway is found in the site: it is taken to come by the routers";
    Origin { nodes, is_inside: false, note: Some(note) }
}

/// Where a controller is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// What stands for it in sentences.
    pub label: String,
    /// One node where its address is known; else all that it may be.
    pub nodes: Vec<usize>,
    pub is_exact: bool,
    /// Each of the nodes says that the address is its own.
    pub is_disputed: bool,
}

/// Where a controller is: what has its address, or all that say so; else the one device that it manages, at any of its addresses; else outside,
/// where its address is a public one that nothing of the site has.
pub fn controller(site: &Site, id: ControllerId) -> Option<Target> {
    let own = site.controllers.iter().find(|controller| controller.id == id)?;
    let label = format!("controller '{}'", own.name);
    let exact = host(&own.host);
    if let Some(node) = exact.and_then(|own| site.owner(own)) {
        return Some(Target { label, nodes: vec![node], is_exact: true, is_disputed: false });
    }
    let several = exact.as_ref().map_or(&[][..], |own| site.owners(*own));
    if !several.is_empty() {
        // Of more than are told apart, it may be any other one.
        let nodes = if several.len() < OWNERS_MAX { several.to_vec() } else { Vec::new() };
        return Some(Target { label, nodes, is_exact: false, is_disputed: true });
    }
    let mut devices = (0..site.devices.len()).filter(|device| site.devices[*device].controller == Some(id));
    let (Some(device), None) = (devices.next(), devices.next()) else {
        let outside = site.find(Node::Outside).filter(|_| exact.is_some_and(is_public))?;
        return Some(Target { label, nodes: vec![outside], is_exact: true, is_disputed: false });
    };
    let is_own =
        |node: &usize| matches!(site.nodes[*node], Node::Door(_)) && site.device_of(*node) == Some(device);
    let doors: Vec<usize> = (0..site.nodes.len()).filter(is_own).collect();
    let nodes = if doors.is_empty() { site.find(Node::Device(device)).into_iter().collect() } else { doors };
    Some(Target { label, nodes, is_exact: false, is_disputed: false })
}

/// The address that the host of an address of a controller is, if it is one and not of this machine.
pub(crate) fn host(text: &str) -> Option<IpAddr> {
    address(text.trim_matches(['[', ']'])).filter(|own| !own.is_loopback())
}

/// Whether an address is none of those that networks give out as they like.
fn is_public(own: IpAddr) -> bool {
    match own {
        IpAddr::V4(own) => !own.is_private() && !own.is_link_local(),
        IpAddr::V6(own) => own.segments()[0] & 0xe000 == 0x2000,
    }
}

/// What stands for the rest of the network where a controller is not found: the service must not be parted from it.
pub fn rest(site: &Site, origin: &Origin) -> Option<Target> {
    let nodes = heart(site, origin);
    let is_elsewhere = origin.is_inside && !nodes.is_empty() && nodes != origin.nodes;
    is_elsewhere.then(|| Target {
        label: "gateway of the site".to_owned(),
        nodes,
        is_exact: true,
        is_disputed: false,
    })
}

/// A device that a change writes to through its controller.
pub fn device(site: &Site, device: usize) -> Option<Target> {
    let nodes = vec![site.find(Node::Device(device))?];
    Some(Target {
        label: format!("device '{}'", site.devices[device].name),
        nodes,
        is_exact: true,
        is_disputed: false,
    })
}

/// The place from which a site is reached by everything else: the outside, else the routers, else the service.
pub fn heart(site: &Site, origin: &Origin) -> Vec<usize> {
    if let Some(outside) = site.find(Node::Outside) {
        return vec![outside];
    }
    let routers = (0..site.devices.len()).filter(|device| site.devices[*device].routes);
    let nodes: Vec<usize> = routers.filter_map(|device| site.find(Node::Device(device))).collect();
    if nodes.is_empty() { origin.nodes.clone() } else { nodes }
}
