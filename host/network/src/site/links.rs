//! Links between the devices of a site, out of what each of them heard of the other one. A link is known where both ends are
//! known for sure: one device and one port at each end, and no second neighbour at either. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use heddle_store::model_objects::of_site::AtSite;

use super::facts::{Domain, End, Link, Port, folded};
use super::gathered::text;

/// Protocols that no switch forwards: what is heard is at the other end of the cable.
const OF_ONE_CABLE: [&str; 2] = ["lldp", "cdp"];
/// Digits of a hardware address.
const MAC_DIGITS: usize = 12;

/// A device, by its domain and its identity there.
pub(super) type Device = (usize, Option<String>);
/// An end, by its domain, its device and its port.
type EndKey = (usize, Option<String>, String);

/// What a device heard of its neighbour.
#[derive(Debug)]
pub(super) struct Heard {
    device: Device,
    port: String,
    chassis: Option<String>,
    remote_port: String,
    remote_name: Option<String>,
}

impl Heard {
    /// What can tell a link: it names both ports, and was heard by a protocol of one cable.
    pub(super) fn of(device: Device, object: &AtSite) -> Option<Self> {
        text(object, "protocol").filter(|protocol| OF_ONE_CABLE.contains(&protocol.as_str()))?;
        Some(Self {
            device,
            port: text(object, "port")?,
            chassis: text(object, "remote_chassis"),
            remote_port: text(object, "remote_port")?,
            remote_name: text(object, "remote_name"),
        })
    }
}

#[derive(Debug)]
pub(super) struct Interface {
    device: Device,
    key: String,
    name: Option<String>,
    mac: Option<String>,
    master: Option<String>,
    kind: Option<String>,
}

impl Interface {
    pub(super) fn of(device: Device, object: &AtSite) -> Self {
        Self {
            device,
            key: object.key.clone(),
            name: text(object, "name"),
            mac: text(object, "mac").as_deref().and_then(mac),
            master: text(object, "master"),
            kind: text(object, "type"),
        }
    }

    /// By which others may name it, folded.
    fn names(&self) -> impl Iterator<Item = String> + '_ {
        [Some(self.key.as_str()), self.name.as_deref()].into_iter().flatten().map(folded)
    }
}

#[derive(Debug)]
pub(super) struct System {
    device: Device,
    names: Vec<String>,
}

impl System {
    pub(super) fn of(device: Device, object: &AtSite) -> Self {
        let names = [Some(object.label.clone()), text(object, "name")];
        let names = names.iter().flatten().map(|name| folded(name)).collect();
        Self { device, names }
    }
}

/// The twelve digits of a hardware address, however it is written.
fn mac(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let is_plain = text.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '-' | '.'));
    (is_plain && digits.len() == MAC_DIGITS).then(|| digits.to_lowercase())
}

/// What is known of the cables of a site.
#[derive(Debug, Default)]
pub(super) struct Wire {
    pub(super) heard: Vec<Heard>,
    pub(super) interfaces: Vec<Interface>,
    pub(super) systems: Vec<System>,
}

/// What can be looked up of a site, so that no neighbour has a whole list gone through.
#[derive(Debug, Default)]
struct Index<'w> {
    /// Devices by what others know them by. More than one device for a word makes the word useless.
    by_mac: BTreeMap<String, BTreeSet<Device>>,
    by_name: BTreeMap<&'w str, BTreeSet<Device>>,
    devices: BTreeMap<Device, Parts<'w>>,
    /// Folded names of the ports that VLANs name, for each domain.
    members: Vec<HashSet<&'w str>>,
}

/// The interfaces and ports of a device by what they are known by. `None` where several are.
#[derive(Debug, Default)]
struct Parts<'w> {
    /// The first one of each name.
    interfaces_by_name: HashMap<String, &'w Interface>,
    interfaces_by_mac: HashMap<&'w str, Option<&'w Interface>>,
    ports_by_name: HashMap<&'w str, Option<usize>>,
    ports_by_number: HashMap<u64, Option<usize>>,
}

impl<'w> Parts<'w> {
    fn add_interface(&mut self, one: &'w Interface) {
        for name in one.names() {
            self.interfaces_by_name.entry(name).or_insert(one);
        }
        if let Some(own) = &one.mac {
            self.interfaces_by_mac.entry(own).and_modify(|known| *known = None).or_insert(Some(one));
        }
    }

    fn add_port(&mut self, at: usize, port: &'w Port) {
        for name in &port.names {
            self.ports_by_name.entry(name).and_modify(|known| *known = None).or_insert(Some(at));
        }
        if let Some(number) = port.number {
            self.ports_by_number.entry(number).and_modify(|known| *known = None).or_insert(Some(at));
        }
    }

    fn interface(&self, name: &str) -> Option<&'w Interface> {
        // Interfaces above it can have its hardware address.
        let by_name = self.interfaces_by_name.get(&folded(name)).copied();
        by_name.or_else(|| self.interfaces_by_mac.get(mac(name)?.as_str()).copied().flatten())
    }

    /// The only port that has any of these names.
    fn port(&self, names: &BTreeSet<String>) -> Option<usize> {
        let found: Option<BTreeSet<usize>> =
            names.iter().filter_map(|name| self.ports_by_name.get(name.as_str()).copied()).collect();
        let found = found.filter(|found| found.len() == 1)?;
        found.first().copied()
    }

    /// `5` or `1/0/5`: the fifth port of a device that is no stack.
    fn port_by_number(&self, name: &str) -> Option<usize> {
        let parts: Result<Vec<u64>, _> = name.split('/').map(str::parse).collect();
        let parts = parts.ok()?;
        let (number, before) = parts.split_last()?;
        if before.first().is_some_and(|unit| *unit > 1) {
            return None;
        }
        self.ports_by_number.get(number).copied().flatten()
    }
}

impl Wire {
    /// The links of which both ends are known.
    pub(super) fn links(&self, domains: &[Domain]) -> Vec<Link> {
        let index = self.index(domains);
        let mut ends: BTreeMap<EndKey, End> = BTreeMap::new();
        let mut opposite: BTreeMap<EndKey, BTreeSet<EndKey>> = BTreeMap::new();
        for heard in &self.heard {
            let Some((near, far)) = index.ends(heard, domains) else { continue };
            let [near_key, far_key] =
                [&near, &far].map(|end| (end.domain, end.device.clone(), folded(&end.port)));
            opposite.entry(near_key.clone()).or_default().insert(far_key.clone());
            opposite.entry(far_key.clone()).or_default().insert(near_key.clone());
            ends.entry(near_key).or_insert(near);
            ends.entry(far_key).or_insert(far);
        }
        let mut links = Vec::new();
        for near in opposite.keys() {
            let Some(far) = only(&opposite, near) else { continue };
            if near < far && only(&opposite, far) == Some(near) {
                links.push(Link { ends: [ends[near].clone(), ends[far].clone()] });
            }
        }
        links
    }

    fn index<'w>(&'w self, domains: &'w [Domain]) -> Index<'w> {
        let members = |domain: &'w Domain| {
            let rows = domain.vlans.values().flatten();
            rows.flat_map(|row| row.by_port.keys().map(String::as_str)).collect()
        };
        let mut index = Index { members: domains.iter().map(members).collect(), ..Index::default() };
        let of_ports = domains.iter().enumerate().flat_map(|(at, domain)| {
            domain.ports.iter().enumerate().map(move |(port_at, port)| (at, port_at, port))
        });
        for (at, port_at, port) in of_ports {
            let device = (at, port.device.clone());
            index.add_identity(&device);
            index.devices.entry(device).or_default().add_port(port_at, port);
        }
        for one in &self.interfaces {
            index.add_identity(&one.device);
            if let Some(own) = &one.mac {
                index.by_mac.entry(own.clone()).or_default().insert(one.device.clone());
            }
            index.devices.entry(one.device.clone()).or_default().add_interface(one);
        }
        for one in &self.systems {
            index.add_identity(&one.device);
            for name in &one.names {
                index.by_name.entry(name).or_default().insert(one.device.clone());
            }
        }
        index
    }
}

/// The only end opposite to this one.
fn only<'o>(opposite: &'o BTreeMap<EndKey, BTreeSet<EndKey>>, key: &EndKey) -> Option<&'o EndKey> {
    opposite.get(key).filter(|others| others.len() == 1)?.first()
}

impl Index<'_> {
    /// A device can have its hardware address as its identity.
    fn add_identity(&mut self, device: &Device) {
        if let Some(own) = device.1.as_deref().and_then(mac) {
            self.by_mac.entry(own).or_default().insert(device.clone());
        }
    }

    /// Both ends of what was heard.
    fn ends(&self, heard: &Heard, domains: &[Domain]) -> Option<(End, End)> {
        let far = self.far(heard).filter(|far| *far != heard.device)?;
        Some((self.end(&heard.device, &heard.port, domains)?, self.end(&far, &heard.remote_port, domains)?))
    }

    fn far(&self, heard: &Heard) -> Option<Device> {
        let only = |found: Option<&BTreeSet<Device>>| found.filter(|all| all.len() == 1)?.first().cloned();
        let by_mac = heard.chassis.as_deref().and_then(mac).and_then(|mac| self.by_mac.get(&mac));
        if by_mac.is_some() {
            return only(by_mac);
        }
        let name = heard.remote_name.as_deref().map(folded);
        only(name.and_then(|name| self.by_name.get(name.as_str())))
    }

    /// A port of a device, if the name is surely that of one port or interface.
    fn end(&self, device: &Device, name: &str, domains: &[Domain]) -> Option<End> {
        let wanted = folded(name);
        let parts = self.devices.get(device);
        let of_device = |name: &str| parts.and_then(|parts| parts.interface(name));
        let interface = of_device(name);
        let names: BTreeSet<String> =
            interface.map_or_else(|| [wanted.clone()].into(), |interface| interface.names().collect());
        let domain = &domains[device.0];
        let port_at = parts.and_then(|parts| parts.port(&names).or_else(|| parts.port_by_number(&wanted)));
        let port = port_at.map(|at| &domain.ports[at]);
        if port.is_none() && interface.is_none() && !self.members[device.0].contains(wanted.as_str()) {
            return None;
        }
        let mut names = names;
        names.extend(port.into_iter().flat_map(|port| port.names.iter().cloned()));
        let master = interface.and_then(|interface| interface.master.as_ref());
        let is_bond = master
            .and_then(|master| of_device(master))
            .is_some_and(|one| one.kind.as_deref() == Some("bond"));
        if let Some(bond) = master.filter(|_| is_bond) {
            // VLANs are those of the bond as a whole.
            names.insert(folded(bond));
        }
        let port = port.map(|port| port.key.clone()).or_else(|| interface.map(|one| one.key.clone()));
        Some(End {
            domain: device.0,
            device: device.1.clone(),
            port: port.unwrap_or_else(|| name.to_owned()),
            names,
            port_at,
            bridge: master.filter(|_| !is_bond).map(|master| folded(master)),
        })
    }
}

#[cfg(test)]
mod tests;
