//! The blast radius: what lies behind what changes touch, and what becomes of the service's own way.

use std::collections::{BTreeSet, HashMap, HashSet};

use heddle_core::ControllerId;
use heddle_core::blast_radius::{BlastRadius, NameList, OwnWay, SENTENCES_MAX};
use serde_json::Value;

use crate::losses::Losses;
use crate::names::folded;
use crate::reach::{self, Reached, Without};
use crate::rule;
use crate::site::{Node, Site};
use crate::touch::{self, Change, Touched};
use crate::way::{self, Origin, Target};

/// Most VLANs in one list.
const VLANS_MAX: usize = 200;
/// Most ports without anything known behind them that are named.
const PORTS_NAMED: usize = 3;

/// Stored fields of rules of firewalls, by controller and key.
pub type Rules = HashMap<(ControllerId, String), Value>;

/// Judges changes of one controller, or of several that belong together.
pub(crate) fn of_changes(site: &Site, changes: &[Change], rules: &Rules) -> BlastRadius {
    let origin = way::origin(site);
    let controllers: BTreeSet<ControllerId> = changes.iter().map(|change| change.controller).collect();
    let targets: Vec<Target> = controllers.iter().filter_map(|id| way::controller(site, *id)).collect();
    let nothing = Without::nothing(site);
    let ways: Vec<Reached> = origin.nodes.iter().map(|root| reach::reach(site, &[*root], &nothing)).collect();
    let rule_way = rule_way(site, (&origin, &ways), &targets, &controllers);
    let touched = touch::touched(site, changes, &rule_way, rules);
    let without = touched.losses.without(site);
    let mut radius = outline(site, &touched.losses, &without, &origin);
    let mut all = targets;
    for id in controllers.iter().filter(|id| way::controller(site, **id).is_none()) {
        let name = site.controllers.iter().find(|one| one.id == *id).map_or("", |one| one.name.as_str());
        radius.unknown.push(format!("where the controller '{name}' is connected is not known"));
    }
    // The device of a controller that stands for itself is reached by the controller's address.
    let is_several = |device: &usize| {
        let own = site.devices[*device].controller;
        site.devices.iter().filter(|other| other.controller == own).nth(1).is_some()
    };
    // A device that the change switches off does not count as a lockout.
    let is_meant = |device: &&usize| is_several(device) && !touched.losses.devices.contains(*device);
    all.extend(touched.devices.iter().filter(is_meant).filter_map(|device| way::device(site, *device)));
    if all.is_empty() {
        all.extend(way::rest(site, &origin));
    }
    let is_silent = silent_ports(site, &touched.losses).is_some();
    judge(site, (&origin, &ways), &all, (&touched, &without, is_silent), &mut radius);
    radius.touched = NameList::of(touched.labels.iter().map(String::as_str));
    radius.reasons.extend(touched.risks);
    radius.unknown.extend(touched.unknown);
    finish(site, radius)
}

/// Judges what would become of the network without some of it.
pub fn of_losses(site: &Site, losses: &Losses, label: &str, controller: Option<ControllerId>) -> BlastRadius {
    let origin = way::origin(site);
    let nothing = Without::nothing(site);
    let ways: Vec<Reached> = origin.nodes.iter().map(|root| reach::reach(site, &[*root], &nothing)).collect();
    let without = losses.without(site);
    let mut radius = outline(site, losses, &without, &origin);
    let targets: Vec<Target> = controller.and_then(|id| way::controller(site, id)).into_iter().collect();
    let touched = Touched { risks: losses.risks().collect(), ..Touched::default() };
    let is_silent = silent_ports(site, losses).is_some();
    judge(site, (&origin, &ways), &targets, (&touched, &without, is_silent), &mut radius);
    radius.touched = NameList::of([label]);
    radius.reasons.extend(touched.risks);
    finish(site, radius)
}

/// What lies behind, and what of it has no other path.
fn outline(site: &Site, losses: &Losses, without: &Without, origin: &Origin) -> BlastRadius {
    let heart = way::heart(site, origin);
    let before = reach::reach(site, &heart, &Without::nothing(site));
    let behind = reach::behind(site, &before, without);
    let after = reach::reach(site, &heart, without);
    let is_lost = |node: usize| before.has(node) && !after.has(node);
    let devices = |is: &dyn Fn(usize) -> bool| {
        let of = |node: usize| match site.nodes[node] {
            Node::Device(device) if is(node) => Some(site.devices[device].name.as_str()),
            _ => None,
        };
        NameList::of((0..site.nodes.len()).filter_map(of))
    };
    let clients = |is: &dyn Fn(usize) -> bool| {
        let of = |node: usize| match site.nodes[node] {
            Node::Leaf(leaf) if is(node) => Some(site.leaves[leaf].label.as_str()),
            _ => None,
        };
        NameList::of((0..site.nodes.len()).filter_map(of))
    };
    let nets = (0..site.nodes.len()).filter(|node| is_lost(*node)).filter_map(|node| site.vlan_of(node));
    let vlans: BTreeSet<u16> = nets.collect();
    let mut unknown = Vec::new();
    if heart.is_empty() {
        unknown.push("no gateway of the site is known, so no path can be followed".to_owned());
    }
    unknown.extend(silent_ports(site, losses));
    BlastRadius {
        touched: NameList::default(),
        devices_behind: devices(&|node| behind[node]),
        devices_cut_off: devices(&is_lost),
        clients_behind: clients(&|node| behind[node]),
        clients_cut_off: clients(&is_lost),
        vlans_cut: vlans.into_iter().take(VLANS_MAX).collect(),
        own_way: OwnWay::Kept,
        reasons: Vec::new(),
        unknown,
        observed_at: site.observed_at,
    }
}

/// Ports that are lost and in use, and behind which nothing is known.
fn silent_ports(site: &Site, losses: &Losses) -> Option<String> {
    let lost: HashSet<usize> = losses.ports.iter().chain(&losses.untagged).copied().collect();
    let used: HashSet<usize> = site.edges.iter().flat_map(|edge| edge.ports).flatten().collect();
    let is_silent = |port: &&usize| {
        let own = &site.ports[**port];
        own.is_port && own.is_up && !used.contains(*port)
    };
    let mut names: Vec<&str> =
        lost.iter().filter(is_silent).map(|port| site.ports[*port].name.as_str()).collect();
    names.sort_unstable();
    let more = names.len().saturating_sub(PORTS_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown = names.iter().take(PORTS_NAMED).map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    (!names.is_empty()).then(|| format!("what is connected at port {shown}{more} is not known"))
}

/// What becomes of the way from each place that the service may come from to each place that it has to reach. `is_silent` says
/// that a port is lost behind which nothing is known: the service itself may be there.
fn judge(
    site: &Site,
    (origin, ways): (&Origin, &[Reached]),
    targets: &[Target],
    (touched, without, is_silent): (&Touched, &Without, bool),
    radius: &mut BlastRadius,
) {
    let is_touching = without.nodes.iter().chain(&without.edges).any(|is_lost| *is_lost);
    if !touched.risks.is_empty() {
        radius.own_way = OwnWay::AtRisk;
    } else if !touched.unknown.is_empty() {
        radius.own_way = OwnWay::Unknown;
    }
    if is_silent && origin.note.is_some() {
        radius.own_way = radius.own_way.max(OwnWay::Unknown);
    }
    if !is_touching && !is_silent {
        return;
    }
    if targets.is_empty() || ways.is_empty() {
        radius.own_way = radius.own_way.max(OwnWay::Unknown);
        radius.reasons.push("no path from the service to what is changed is known".to_owned());
        return;
    }
    let after: Vec<Reached> = origin.nodes.iter().map(|root| reach::reach(site, &[*root], without)).collect();
    for target in targets {
        let pairs = || (0..ways.len()).flat_map(|at| target.nodes.iter().map(move |node| (at, *node)));
        let known: Vec<(usize, usize)> = pairs().filter(|(at, node)| ways[*at].has(*node)).collect();
        let lost = known.iter().filter(|(at, node)| !after[*at].has(*node)).count();
        let is_doubtful = |pair: &(usize, usize)| reach::is_uncertain(site, &after[pair.0], pair.1);
        let (state, reason) = if known.is_empty() {
            (OwnWay::Unknown, format!("no path to the {} is known", target.label))
        } else if lost == known.len() {
            (OwnWay::Cut, format!("no path to the {} is left", target.label))
        } else if lost > 0 {
            let why = if target.is_exact { "" } else { ", and which of its addresses is used is not known" };
            (OwnWay::AtRisk, format!("one of the paths to the {} is lost{why}", target.label))
        } else if target.is_disputed && known.len() < pairs().count() {
            (OwnWay::Unknown, format!("which of several places is the {} is not known", target.label))
        } else if known.iter().any(is_doubtful) {
            (OwnWay::Unknown, format!("a part of the path to the {} is not known", target.label))
        } else {
            continue;
        };
        let is_back = state == OwnWay::Cut && touched.is_brief;
        radius.own_way = radius.own_way.max(if is_back { OwnWay::AtRisk } else { state });
        radius.reasons.push(if is_back { format!("{reason} until it is back") } else { reason });
    }
    let is_guess = radius.own_way != OwnWay::Kept;
    radius.unknown.extend(origin.note.filter(|_| is_guess).map(str::to_owned));
}

/// The way as rules of firewalls speak of it.
fn rule_way<'s>(
    site: &'s Site,
    (origin, ways): (&Origin, &[Reached]),
    targets: &[Target],
    controllers: &BTreeSet<ControllerId>,
) -> rule::Way<'s> {
    let own = site.controllers.iter().find(|one| controllers.contains(&one.id));
    let names = |port: usize| {
        let port = &site.ports[port];
        std::iter::once(folded(&port.name)).chain(port.keys.iter().cloned())
    };
    let mut passed = HashSet::new();
    let is_known = targets.iter().all(|target| target.is_exact);
    for (reached, target) in ways.iter().flat_map(|way| targets.iter().map(move |target| (way, target))) {
        for node in target.nodes.iter().filter(|node| is_known && reached.has(**node)) {
            let mut at = *node;
            loop {
                if let Node::Door(port) = site.nodes[at] {
                    passed.extend(names(port));
                }
                let Some(edge) = reached.by[at] else { break };
                let [a, b] = site.edges[edge].ends;
                at = if a == at { b } else { a };
            }
        }
    }
    rule::Way {
        host: own.and_then(|own| way::host(&own.host)),
        port: own.map_or(443, |own| own.port),
        is_inside: origin.is_inside,
        own_addresses: if origin.is_inside { &site.own_addresses } else { &[] },
        passed,
        all: (0..site.ports.len()).flat_map(names).collect(),
    }
}

/// Puts what is known of gaps with the rest, and limits the lists.
fn finish(site: &Site, mut radius: BlastRadius) -> BlastRadius {
    radius.unknown.extend(site.gaps.iter().cloned());
    if site.unplaced > 0 {
        radius.unknown.push(format!("where {} clients are connected is not known", site.unplaced));
    }
    for list in [&mut radius.reasons, &mut radius.unknown] {
        let mut seen = HashSet::new();
        list.retain(|sentence| seen.insert(sentence.clone()));
        list.truncate(SENTENCES_MAX);
    }
    radius
}
