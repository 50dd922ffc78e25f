//! Links between devices: of what devices heard of each other, and of where the hardware addresses of devices were seen.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::facts::{Fact, Facts, NeighbourFact, Object};
use crate::gather::Names;
use crate::names::mac;
use crate::site::{Evidence, Link, Port, Site};

/// What one device reported of a link; a port that is not known is none.
struct Heard {
    ends: [(usize, Option<usize>); 2],
    evidence: Evidence,
}

/// Finds the links. Returns the ports that lead to another device.
pub(crate) fn find(facts: &Facts, site: &mut Site, names: &mut Names) -> HashSet<usize> {
    let clients = client_macs(facts);
    let mut heard = Vec::new();
    for object in &facts.objects {
        if let (Fact::Neighbour(fact), Some(device)) = (&object.fact, names.device(object)) {
            heard.extend(neighbour(site, names, device, (object, fact), &clients));
        }
    }
    add(site, heard);
    let seen = seen(facts, site, names, &taken(site));
    add(site, seen);
    taken(site)
}

fn taken(site: &Site) -> HashSet<usize> {
    site.links.iter().flat_map(|link| link.ends).map(|(_, port)| port).collect()
}

/// Hardware addresses of clients, some of which announce themselves, such as phones.
fn client_macs(facts: &Facts) -> HashSet<String> {
    let of = |object: &Object| match &object.fact {
        Fact::Client(fact) => fact.mac.as_deref().and_then(mac),
        _ => None,
    };
    facts.objects.iter().filter_map(of).collect()
}

fn neighbour(
    site: &mut Site,
    names: &mut Names,
    device: usize,
    (object, fact): (&Object, &NeighbourFact),
    clients: &HashSet<String>,
) -> Option<Heard> {
    let own = fact.port.as_deref().and_then(|name| names.port(device, name));
    let chassis = fact.remote_chassis.as_deref().unwrap_or_default();
    let by_mac = |text: &str| names.macs.get(&mac(text)?).copied();
    let port_mac = fact.remote_port.as_deref().and_then(by_mac);
    let known = by_mac(chassis)
        .or(port_mac)
        .map(|(other, _)| other)
        .or_else(|| names.heard(chassis))
        .or_else(|| names.heard(fact.remote_name.as_deref()?));
    let other = match known {
        Some(other) if other == device => return None,
        Some(other) => other,
        // A client that announces itself hangs at its port as any other does.
        None if mac(chassis).is_some_and(|mac| clients.contains(&mac)) => return None,
        None => {
            let identity = [Some(chassis), fact.remote_name.as_deref()];
            let identity = identity.into_iter().flatten().find(|text| !text.trim().is_empty())?;
            let name = fact.remote_name.as_deref().filter(|name| !name.trim().is_empty()).unwrap_or(identity);
            names.add_heard(site, identity, name)
        }
    };
    let far = port_mac.filter(|(of, _)| *of == other).and_then(|(_, port)| port);
    let far = far.or_else(|| names.port(other, fact.remote_port.as_deref()?));
    let evidence = Evidence { kind: "neighbour", object: object.id };
    Some(Heard { ends: [(device, own), (other, far)], evidence })
}

/// Ports at which a hardware address of a device was seen as a client, or that of a guest, which is behind its host.
fn seen(facts: &Facts, site: &Site, names: &Names, taken: &HashSet<usize>) -> Vec<Heard> {
    let hosts = hosts(facts, names, site);
    // Of a device that told where it is linked, the address is seen all along the way.
    let linked: HashSet<usize> =
        site.links.iter().flat_map(|link| link.ends).map(|(device, _)| device).collect();
    let mut found: BTreeMap<(usize, usize), Heard> = BTreeMap::new();
    for object in &facts.objects {
        let (Fact::Client(fact), Some(device)) = (&object.fact, names.device(object)) else { continue };
        let Some(own_mac) = fact.mac.as_deref().and_then(mac) else { continue };
        let other = names.macs.get(&own_mac).map(|of| (*of, "client"));
        let Some(((other, far), kind)) = other.or_else(|| hosts.get(&own_mac).map(|host| (*host, "guest")))
        else {
            continue;
        };
        let port = fact.port.as_deref().and_then(|name| names.port(device, name));
        // A port that leads to another device shows all that is behind that one.
        let Some(port) = port.filter(|port| !taken.contains(port)) else { continue };
        if other == device || linked.contains(&other) {
            continue;
        }
        let evidence = Evidence { kind, object: object.id };
        let heard = Heard { ends: [(device, Some(port)), (other, far)], evidence };
        found.entry((port, other)).or_insert(heard);
    }
    // A port that shows several devices leads to something between them that tells nothing of itself.
    found.into_values().collect()
}

/// The host of each guest by the guest's hardware addresses, with the port by which its bridge leads out.
fn hosts(facts: &Facts, names: &Names, site: &Site) -> HashMap<String, (usize, Option<usize>)> {
    let mut carriers: HashMap<usize, Option<usize>> = HashMap::new();
    for (at, port) in site.ports.iter().enumerate() {
        let Some(bridge) = port.master.filter(|_| is_cable(port)) else { continue };
        carriers.entry(bridge).and_modify(|known| *known = None).or_insert(Some(at));
    }
    let mut all = HashMap::new();
    for object in &facts.objects {
        let Fact::Guest(fact) = &object.fact else { continue };
        let system = fact.system.as_deref();
        let host = system.and_then(|name| names.at_controller(object.controller, site, name));
        let Some(host) = host.or_else(|| names.only_of(object.controller)) else { continue };
        for nic in &fact.nics {
            let Some(own) = nic.mac.as_deref().and_then(mac) else { continue };
            let bridge = nic.network.as_deref().and_then(|name| names.port_named(host, name));
            let carrier = bridge.and_then(|bridge| carriers.get(&bridge).copied().flatten());
            all.insert(own, (host, carrier));
        }
    }
    all
}

/// Whether a cable can be in it.
fn is_cable(port: &Port) -> bool {
    port.is_port || matches!(port.form.as_deref(), Some("physical" | "bond"))
}

/// Makes links of what was heard: the words of both sides are one link.
fn add(site: &mut Site, heard: Vec<Heard>) {
    let mut by_pair: BTreeMap<[usize; 2], Vec<Heard>> = BTreeMap::new();
    for mut one in heard {
        if one.ends[0].0 > one.ends[1].0 {
            one.ends.swap(0, 1);
        }
        by_pair.entry([one.ends[0].0, one.ends[1].0]).or_default().push(one);
    }
    for words in by_pair.into_values() {
        let mut links: Vec<([(usize, Option<usize>); 2], Vec<Evidence>)> = Vec::new();
        // What names both ports first; then each word completes a link that lacks its side, or is part of one.
        let (whole, parts): (Vec<Heard>, Vec<Heard>) =
            words.into_iter().partition(|word| word.ends.iter().all(|(_, port)| port.is_some()));
        let mut at_port: HashMap<usize, usize> = HashMap::new();
        for word in whole {
            let known = word.ends.iter().find_map(|(_, port)| at_port.get(&(*port)?).copied());
            let at = known.unwrap_or(links.len());
            if at == links.len() {
                links.push((word.ends, Vec::new()));
            }
            at_port.extend(word.ends.iter().filter_map(|(_, port)| Some(((*port)?, at))));
            links[at].1.push(word.evidence);
        }
        let mut open: [Vec<usize>; 2] = [Vec::new(), Vec::new()];
        for word in parts {
            let told = usize::from(word.ends[0].1.is_none());
            let port = word.ends[told].1;
            if let Some(at) = port.and_then(|port| at_port.get(&port)) {
                links[*at].1.push(word.evidence);
                continue;
            }
            // A word of the other side that lacks this one.
            let at = if port.is_some() { open[1 - told].pop() } else { None };
            if let Some(at) = at {
                links[at].0[told].1 = port;
                links[at].1.push(word.evidence);
            } else {
                links.push((word.ends, vec![word.evidence]));
                if port.is_some() {
                    open[told].push(links.len() - 1);
                }
            }
            if let Some(port) = port {
                at_port.insert(port, at.unwrap_or(links.len() - 1));
            }
        }
        for (ends, evidence) in links {
            let ends =
                ends.map(|(device, port)| (device, port.unwrap_or_else(|| unknown_port(site, device))));
            let is_assumed = evidence.iter().all(|one| one.kind != "neighbour");
            site.links.push(Link { ends, evidence, is_assumed });
        }
    }
}

/// A port of which only the device is known.
pub(crate) fn unknown_port(site: &mut Site, device: usize) -> usize {
    let at = site.ports.len();
    site.ports.push(Port {
        device,
        name: String::new(),
        keys: Vec::new(),
        objects: Vec::new(),
        is_port: false,
        form: None,
        role: None,
        is_up: true,
        addresses: Vec::new(),
        vlan_id: None,
        lower: None,
        master: None,
        vlans: None,
        tells_vlans: false,
    });
    at
}
