//! Devices and ports of a site, and the names by which others call them.

use std::collections::HashMap;
use std::net::IpAddr;

use heddle_core::ControllerId;

use crate::facts::{Fact, Facts, InterfaceFact, Object, PortFact, VlanFact};
use crate::names::{address, folded, mac, number};
use crate::site::{Device, Port, PortVlans, Site, Tagged};

/// Kinds whose objects show that a device is there; clients and guests are no devices.
const OF_DEVICES: &[&str] = &["interface", "neighbour", "port", "radio", "system"];

/// Names of devices and ports, all in small letters.
#[derive(Debug, Default)]
pub(crate) struct Names {
    devices: HashMap<(ControllerId, String), usize>,
    /// The one device of a controller that has one.
    only: HashMap<ControllerId, Option<usize>>,
    /// Devices by hardware address, with the port that has it.
    pub(crate) macs: HashMap<String, (usize, Option<usize>)>,
    /// Devices by name; none where several have it.
    by_name: HashMap<String, Option<usize>>,
    ports: HashMap<(usize, String), usize>,
    /// Ports by the number at the end of their names; none where several have it.
    by_number: HashMap<(usize, u32), Option<usize>>,
    /// Devices by address, with the port that has it.
    pub(crate) addresses: HashMap<IpAddr, (usize, Option<usize>)>,
}

impl Names {
    /// The device that an object belongs to: the one that it names, or the only one of its controller.
    pub(crate) fn device(&self, object: &Object) -> Option<usize> {
        match &object.device_key {
            Some(key) => self.devices.get(&(object.controller, folded(key))).copied(),
            None => self.only_of(object.controller),
        }
    }

    /// The device of a controller that has one.
    pub(crate) fn only_of(&self, controller: ControllerId) -> Option<usize> {
        self.only.get(&controller).copied().flatten()
    }

    /// A device of any controller, by a name that others heard.
    pub(crate) fn heard(&self, name: &str) -> Option<usize> {
        self.by_name.get(&folded(name)).copied().flatten()
    }

    /// The device with this identity or name at a controller.
    pub(crate) fn at_controller(&self, controller: ControllerId, site: &Site, name: &str) -> Option<usize> {
        let known = self.devices.get(&(controller, folded(name))).copied();
        let is_own = |device: &usize| site.devices[*device].controller == Some(controller);
        known.or_else(|| self.heard(name).filter(is_own))
    }

    /// A port of a device, by whatever it is called.
    pub(crate) fn port(&self, device: usize, name: &str) -> Option<usize> {
        let exact = self.ports.get(&(device, folded(name))).copied();
        exact
            .or_else(|| self.macs.get(&mac(name)?).filter(|(of, _)| *of == device)?.1)
            .or_else(|| self.by_number.get(&(device, number(name)?)).copied().flatten())
    }

    /// A port by its exact name alone.
    pub(crate) fn port_named(&self, device: usize, name: &str) -> Option<usize> {
        self.ports.get(&(device, folded(name))).copied()
    }

    /// Adds a name of a device. A name that several have tells none of them.
    fn call(&mut self, name: &str, device: usize) {
        let known = self.by_name.entry(folded(name)).or_insert(Some(device));
        if *known != Some(device) {
            *known = None;
        }
    }

    /// A device that only others told of.
    pub(crate) fn add_heard(&mut self, site: &mut Site, identity: &str, name: &str) -> usize {
        let at = site.devices.len();
        site.devices.push(Device {
            controller: None,
            id: None,
            site_ref: String::new(),
            identity: identity.to_owned(),
            name: name.to_owned(),
            role: None,
            routes: false,
            addresses: Vec::new(),
        });
        if let Some(mac) = mac(identity) {
            self.macs.entry(mac).or_insert((at, None));
        }
        self.by_name.entry(folded(name)).or_insert(Some(at));
        self.by_name.entry(folded(identity)).or_insert(Some(at));
        at
    }
}

/// Finds the devices and their ports.
pub(crate) fn gather(facts: &Facts, site: &mut Site) -> Names {
    let mut names = Names::default();
    devices(facts, site, &mut names);
    for object in &facts.objects {
        if let (Fact::Port(_) | Fact::Interface(_), Some(device)) = (&object.fact, names.device(object)) {
            add_port(site, &mut names, device, object);
        }
    }
    name_ports(facts, site, &mut names);
    for object in &facts.objects {
        match (&object.fact, names.device(object)) {
            (Fact::Interface(fact), Some(device)) => refer(site, &names, device, object, fact),
            (Fact::Vlan(fact), device) => members(site, &names, device, object, fact),
            _ => {}
        }
    }
    for vlans in site.ports.iter_mut().filter_map(|port| port.vlans.as_mut()) {
        let (Tagged::Only(list) | Tagged::AllBut(list)) = &mut vlans.tagged;
        list.sort_unstable();
        list.dedup();
    }
    names
}

fn devices(facts: &Facts, site: &mut Site, names: &mut Names) {
    let listed: HashMap<(ControllerId, String), usize> = facts
        .devices
        .iter()
        .enumerate()
        .map(|(at, device)| ((device.controller, folded(&device.identity)), at))
        .collect();
    for object in facts.objects.iter().filter(|object| OF_DEVICES.contains(&object.fact.kind())) {
        let Some(key) = &object.device_key else { continue };
        let place = (object.controller, folded(key));
        if names.devices.contains_key(&place) {
            continue;
        }
        let at = site.devices.len();
        let fact = listed.get(&place).map(|at| &facts.devices[*at]);
        let name = fact.map_or(key, |fact| &fact.name);
        site.devices.push(Device {
            controller: Some(object.controller),
            id: fact.and_then(|fact| fact.id),
            site_ref: object.site_ref.clone(),
            identity: key.clone(),
            name: name.clone(),
            role: None,
            routes: false,
            addresses: fact.map_or_else(Vec::new, |fact| {
                fact.addresses
                    .iter()
                    .filter_map(|text| address(text))
                    .filter(|one| !one.is_loopback())
                    .collect()
            }),
        });
        let mac_of = fact.and_then(|fact| fact.mac.as_deref()).and_then(mac).or_else(|| mac(key));
        if let Some(mac) = mac_of {
            names.macs.entry(mac).or_insert((at, None));
        }
        names.call(name, at);
        names.call(key, at);
        for one in &site.devices[at].addresses {
            names.addresses.entry(*one).or_insert((at, None));
        }
        names.devices.insert(place, at);
        let only = names.only.entry(object.controller).or_insert(Some(at));
        if *only != Some(at) {
            *only = None;
        }
    }
    for object in &facts.objects {
        let (Fact::System(fact), Some(at)) = (&object.fact, names.device(object)) else { continue };
        site.devices[at].role.clone_from(&fact.role);
        site.devices[at].routes = fact.role.as_deref() == Some("router");
        for text in fact.name.iter().chain([&object.label]) {
            names.call(text, at);
        }
    }
}

/// The key without the identity of its device in front of it.
fn own_part<'k>(key: &'k str, identity: &str) -> &'k str {
    key.strip_prefix(identity).and_then(|rest| rest.strip_prefix(':')).unwrap_or(key)
}

fn add_port(site: &mut Site, names: &mut Names, device: usize, object: &Object) {
    let own = folded(own_part(&object.key, &site.devices[device].identity));
    let at = *names.ports.entry((device, own.clone())).or_insert(site.ports.len());
    if at == site.ports.len() {
        site.ports.push(Port {
            device,
            name: object.label.clone(),
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
    }
    let port = &mut site.ports[at];
    port.objects.push(object.id);
    if !port.keys.contains(&own) {
        port.keys.push(own);
    }
    match &object.fact {
        Fact::Port(fact) => {
            port.is_port = true;
            port.is_up &= fact.enabled != Some(false) && fact.link.as_deref() != Some("down");
            port.vlans = vlans_of(fact);
            port.tells_vlans = port.vlans.is_some();
        }
        Fact::Interface(fact) => {
            port.form.clone_from(&fact.form);
            port.role.clone_from(&fact.role);
            port.is_up &= fact.enabled != Some(false);
            port.addresses.clone_from(&fact.addresses);
            port.vlan_id = fact.vlan_id;
            if let Some(mac) = fact.mac.as_deref().and_then(mac) {
                let known = names.macs.entry(mac).or_insert((device, Some(at)));
                if known.0 == device && known.1.is_none() {
                    known.1 = Some(at);
                }
            }
            for own in fact.addresses.iter().filter_map(|text| address(text)).filter(|own| !own.is_loopback())
            {
                names.addresses.insert(own, (device, Some(at)));
            }
        }
        _ => {}
    }
}

fn vlans_of(fact: &PortFact) -> Option<PortVlans> {
    let list = fact.tagged_vlans.clone().unwrap_or_default();
    let tagged = match fact.tagged_mode.as_deref() {
        Some("all") => Tagged::AllBut(Vec::new()),
        Some("all_but") => Tagged::AllBut(list),
        Some("none") => Tagged::Only(Vec::new()),
        Some("list") => Tagged::Only(list),
        _ if fact.tagged_vlans.is_some() => Tagged::Only(list),
        _ => {
            fact.native_vlan?;
            Tagged::Only(Vec::new())
        }
    };
    Some(PortVlans { native: fact.native_vlan, tagged })
}

/// Further names of ports, where no key is called so already: what people call them, and their numbers.
fn name_ports(facts: &Facts, site: &Site, names: &mut Names) {
    for object in &facts.objects {
        let Some(device) = names.device(object) else { continue };
        let own = own_part(&object.key, &site.devices[device].identity);
        let (name, count) = match &object.fact {
            Fact::Port(PortFact { name, number, .. }) => (name, *number),
            Fact::Interface(InterfaceFact { name, .. }) => (name, None),
            _ => continue,
        };
        let Some(at) = names.port_named(device, own) else { continue };
        for text in name.iter().chain([&object.key, &object.label]) {
            names.ports.entry((device, folded(text))).or_insert(at);
        }
        if !matches!(object.fact, Fact::Port(_)) {
            continue;
        }
        if let Some(count) = count.or_else(|| number(own)) {
            names.ports.entry((device, count.to_string())).or_insert(at);
            let known = names.by_number.entry((device, count)).or_insert(Some(at));
            if *known != Some(at) {
                *known = None;
            }
        }
    }
}

/// What carries an interface, and what it is a part of.
fn refer(site: &mut Site, names: &Names, device: usize, object: &Object, fact: &InterfaceFact) {
    let Some(at) = names.port_named(device, own_part(&object.key, &site.devices[device].identity)) else {
        return;
    };
    let find =
        |name: &Option<String>| names.port_named(device, name.as_deref()?).filter(|other| *other != at);
    let (lower, master) = (find(&fact.lower), find(&fact.master));
    site.ports[at].lower = lower;
    site.ports[at].master = master;
}

/// VLANs of ports that only the VLAN tells.
fn members(site: &mut Site, names: &Names, device: Option<usize>, object: &Object, fact: &VlanFact) {
    let (Some(vlan), Some(members)) = (fact.vlan_id, &fact.members) else { return };
    for member in members {
        let found = device
            .and_then(|device| names.port_named(device, &member.port))
            .or_else(|| of_other_device(names, object.controller, &member.port));
        let Some(at) = found else { continue };
        let port = &mut site.ports[at];
        // A VLAN on top of what is no port and in no bridge is an interface of its own.
        let is_carrier = fact.interface.is_some() && port.master.is_none() && !port.is_port;
        if port.tells_vlans || is_carrier {
            continue;
        }
        let known = port.vlans.get_or_insert(PortVlans { native: None, tagged: Tagged::Only(Vec::new()) });
        match (&mut known.tagged, member.tagged) {
            (Tagged::Only(list), Some(true)) => list.push(vlan),
            (_, Some(false)) => known.native = known.native.or(Some(vlan)),
            _ => {}
        }
    }
}

/// A port that is named with the identity of its device in front.
fn of_other_device(names: &Names, controller: ControllerId, name: &str) -> Option<usize> {
    let (identity, own) = name.rsplit_once(':')?;
    let device = names.devices.get(&(controller, folded(identity)))?;
    names.port_named(*device, own)
}
