//! Makes the graph of a site of what its objects say. Every step is linear in the objects and the edges.

use std::collections::{HashMap, HashSet};

use ipnet::IpNet;

use crate::facts::{Fact, Facts, Object};
use crate::gather::{self, Names};
use crate::names::{covers, is_everything, mac, network};
use crate::nets::{self, Domains};
use crate::site::{Edge, Known, Node, Port, Site, Tie, What};
use crate::{layer3, leaves, links};

/// Makes the graph.
pub fn build(facts: &Facts) -> Site {
    let mut site = Site {
        controllers: facts.controllers.clone(),
        own_addresses: facts.own_addresses.clone(),
        gaps: facts.gaps.clone(),
        observed_at: facts.observed_at,
        ..Site::default()
    };
    let mut names = gather::gather(facts, &mut site);
    let taken = links::find(facts, &mut site, &mut names);
    let mut domains = Domains::find(&site);
    layer3::find_private(&mut site);
    layer3::add_doors(facts, &mut site, &mut domains);
    let leaf_of = leaves::add(facts, &mut site, (&names, &domains), &taken);
    nets::join(facts, &mut site, &domains);
    uplinks(facts, &mut site, &names, &domains);
    layer3::add_outside(facts, &mut site, &names);
    layer3::add_management(facts, &mut site, &domains);
    site.known = known(facts, &names, &leaf_of, &beside_service(&site));
    site
}

/// A port that is said to lead towards the gateway, and of which no more is known, is joined with the one router of the site.
fn uplinks(facts: &Facts, site: &mut Site, names: &Names, domains: &Domains) {
    let linked: HashSet<usize> =
        site.links.iter().flat_map(|link| link.ends).map(|(device, _)| device).collect();
    let mut routers = (0..site.devices.len()).filter(|device| site.devices[*device].routes);
    let (Some(router), None) = (routers.next(), routers.next()) else { return };
    for object in &facts.objects {
        let (Fact::Port(fact), Some(device)) = (&object.fact, names.device(object)) else { continue };
        let port = names.port(device, &object.key).filter(|port| site.ports[*port].is_up);
        let Some(port) = port.filter(|_| fact.uplink == Some(true)) else { continue };
        if device == router || linked.contains(&device) {
            continue;
        }
        let untagged = domains.untagged(site, port);
        let (near, far) = (site.net(untagged), site.node(Node::Device(router)));
        let (ports, vlans) = ([Some(port), None], [untagged.vlan; 2]);
        site.join(Edge { ports, vlans, tie: Tie::Subnet, is_assumed: true, ..Edge::between(near, far) });
    }
}

/// Devices that are in a network with the service: their answers need no route.
fn beside_service(site: &Site) -> HashSet<usize> {
    let has_service =
        |net: IpNet| site.own_addresses.iter().any(|own| !own.is_loopback() && net.contains(own));
    let is_beside = |port: &&Port| port.addresses.iter().filter_map(|text| network(text)).any(has_service);
    site.ports.iter().filter(is_beside).map(|port| port.device).collect()
}

/// What each object is in the graph.
fn known(
    facts: &Facts,
    names: &Names,
    leaf_of: &HashMap<usize, usize>,
    beside_service: &HashSet<usize>,
) -> Vec<Known> {
    let of = |(number, object): (usize, &Object)| {
        let device = names.device(object);
        let port = || names.port(device?, &object.key).or_else(|| names.port(device?, &object.label));
        let what = match &object.fact {
            Fact::System(_) => device.map(What::Device),
            Fact::Port(_) | Fact::Interface(_) => port().map(What::Port),
            Fact::Vlan(fact) => fact.vlan_id.map(|vlan| What::Vlan {
                device,
                vlan,
                interface: fact.interface.as_deref().and_then(|name| names.port_named(device?, name)),
            }),
            Fact::Ssid(fact) => fact
                .name
                .clone()
                .map(|name| What::Ssid { device: object.device_key.as_ref().and(device), name }),
            Fact::Radio(fact) => device.map(|device| What::Radio { device, band: fact.band.clone() }),
            Fact::Route(fact) => Some(What::Route {
                device,
                is_default: fact.destination.as_deref().is_some_and(is_everything),
                covers_service: fact.destination.as_deref().is_some_and(|text| {
                    let is_beside = device.is_some_and(|device| beside_service.contains(&device));
                    covers(text, &facts.own_addresses) || (is_everything(text) && !is_beside)
                }),
            }),
            Fact::Client(_) | Fact::Guest(_) => {
                let leaf = leaf_of.get(&number).copied().map(What::Leaf);
                leaf.or_else(|| machine(names, &object.fact).map(What::Device))
            }
            Fact::Gateway(_) | Fact::Neighbour(_) => Some(What::Nothing),
        };
        Known {
            controller: object.controller,
            kind: object.fact.kind(),
            id: object.id,
            site_ref: object.site_ref.clone(),
            key: object.key.clone(),
            label: object.label.clone(),
            native: object.native.clone(),
            what: what.unwrap_or(What::Nothing),
        }
    };
    facts.objects.iter().enumerate().map(of).collect()
}

/// The device that a client or a guest is, by its hardware addresses.
fn machine(names: &Names, fact: &Fact) -> Option<usize> {
    let of = |text: Option<&str>| Some(names.macs.get(&mac(text?)?)?.0);
    match fact {
        Fact::Client(fact) => of(fact.mac.as_deref()),
        Fact::Guest(fact) => fact.nics.iter().find_map(|nic| of(nic.mac.as_deref())),
        _ => None,
    }
}
