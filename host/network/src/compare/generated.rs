//! Made-up sites for tests: controllers of several vendors that tell of their VLANs in different ways, cables between them, and
//! faults. The rows are those that readings would store, so what is known of a site is found in them as in real ones.

use std::collections::{BTreeMap, BTreeSet};

use heddle_core::adapter::{Completeness, Origin};
use heddle_core::{Clock, ControllerId};
use heddle_store::model_objects::of_site::{AtSite, ListAtSite};
use serde_json::{Value, json};

use super::remedy::{Wanted, Writable};
use crate::site::facts::{DEFAULT_VLAN, Facts};
use crate::site::gathered::{KINDS, gathered};

/// Numbers that follow from a seed.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }

    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// How a vendor tells of VLANs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Switches below one controller: lists of VLANs at ports, wireless networks, and ports as members.
    Switches,
    /// A firewall: a VLAN has the interfaces that carry it, and there are no ports.
    Firewall,
    /// A router whose VLANs have ports, and no names. It hears no neighbours.
    Router,
    /// A VLAN is one row with an interface on the bridge, and another one with the ports of the bridge.
    Bridge,
    /// Switches whose trunks carry all that there is.
    Trunks,
    /// Virtual networks: nothing tells where they are.
    Hypervisor,
    /// Its lists are never whole.
    Limited,
}

pub(super) const STYLES: [Style; 7] = [
    Style::Firewall,
    Style::Switches,
    Style::Router,
    Style::Bridge,
    Style::Trunks,
    Style::Hypervisor,
    Style::Limited,
];

impl Style {
    fn has_ports(self) -> bool {
        !matches!(self, Style::Firewall | Style::Hypervisor)
    }

    pub(super) fn has_names(self) -> bool {
        self != Style::Router
    }

    fn tells_members(self) -> bool {
        !matches!(self, Style::Hypervisor | Style::Trunks)
    }

    pub(super) fn is_whole(self) -> bool {
        self != Style::Limited
    }

    /// Whether everything about the use of a VLAN is known there.
    pub(super) fn tells_uses(self) -> bool {
        self.is_whole() && self != Style::Hypervisor
    }

    pub(super) fn writable(self) -> Writable {
        let fields = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        let ports = fields(&["native_vlan", "tagged_vlans"]);
        match self {
            Style::Switches => Writable {
                create_vlan: fields(&["vlan_id", "name"]),
                update_vlan: fields(&["name"]),
                delete_vlan: true,
                update_port: ports,
            },
            Style::Router => Writable {
                create_vlan: fields(&["vlan_id", "members"]),
                update_vlan: fields(&["members"]),
                delete_vlan: true,
                update_port: None,
            },
            Style::Firewall | Style::Bridge => Writable {
                create_vlan: fields(&["vlan_id", "name", "members"]),
                update_vlan: fields(&["name", "members"]),
                delete_vlan: true,
                update_port: ports.filter(|_| self == Style::Bridge),
            },
            Style::Trunks | Style::Hypervisor => Writable {
                create_vlan: fields(&["vlan_id", "name"]),
                update_vlan: fields(&["name"]),
                delete_vlan: true,
                update_port: None,
            },
            Style::Limited => Writable::default(),
        }
    }
}

/// A port of a device.
#[derive(Debug, Clone)]
pub(super) struct Socket {
    pub(super) native: u16,
    pub(super) tagged: BTreeSet<u16>,
    /// Of a trunk that carries all.
    pub(super) is_all: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Device {
    pub(super) controller: usize,
    pub(super) sockets: Vec<Socket>,
}

#[derive(Debug, Clone)]
pub(super) struct Controller {
    pub(super) id: ControllerId,
    pub(super) style: Style,
    /// Names of its VLANs.
    pub(super) vlans: BTreeMap<u16, String>,
    pub(super) subnets: BTreeMap<u16, String>,
    pub(super) ssids: BTreeSet<u16>,
}

/// A site, as it is.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) controllers: Vec<Controller>,
    pub(super) devices: Vec<Device>,
    /// Pairs of devices and their ports.
    pub(super) cables: Vec<[(usize, usize); 2]>,
    /// Ports that lead to no device of the site.
    pub(super) edges: Vec<(usize, usize)>,
    pub(super) intent: BTreeMap<u16, Option<String>>,
}

impl World {
    /// A site without faults: a tree of cables that carry every VLAN, below a firewall, and a port for each VLAN.
    pub(super) fn clean(seed: u64) -> Self {
        let (mut dice, clock) = (Dice::new(seed), Clock::default());
        let vendors = 2 + dice.below(STYLES.len() - 1);
        let mut ids: BTreeSet<u16> = BTreeSet::new();
        let count = 4 + dice.below(57);
        while ids.len() < count {
            ids.insert(u16::try_from(2 + dice.below(4_000)).unwrap());
        }
        let vlans: BTreeMap<u16, String> = ids.iter().map(|vlan| (*vlan, format!("Net {vlan}"))).collect();
        let subnet = |(at, vlan): (usize, &u16)| (*vlan, format!("10.{}.{}.0/24", at / 200, at % 200));
        let subnets: BTreeMap<u16, String> = ids.iter().enumerate().map(subnet).collect();
        let mut world = Self {
            controllers: Vec::new(),
            devices: Vec::new(),
            cables: Vec::new(),
            edges: Vec::new(),
            intent: vlans.iter().map(|(vlan, name)| (*vlan, Some(name.clone()))).collect(),
        };
        for style in &STYLES[..vendors] {
            let subnets = if *style == Style::Firewall { subnets.clone() } else { BTreeMap::new() };
            let (id, vlans) = (clock.new_id(), vlans.clone());
            world.controllers.push(Controller { id, style: *style, vlans, subnets, ssids: BTreeSet::new() });
        }
        world.devices.push(Device { controller: 0, sockets: Vec::new() });
        let switches = 1 + dice.below(40);
        for at in 0..switches {
            let controller = if at + 1 < vendors { at + 1 } else { 1 + dice.below(vendors - 1) };
            let is_single = !matches!(world.controllers[controller].style, Style::Switches | Style::Trunks);
            let is_there = world.devices.iter().any(|device| device.controller == controller);
            if is_single && is_there {
                continue;
            }
            world.add_device(controller, &mut dice);
        }
        world.use_all(&mut dice);
        world
    }

    /// A device on a cable to one that is there. A hypervisor has no port that anything tells of.
    fn add_device(&mut self, controller: usize, dice: &mut Dice) {
        let all: BTreeSet<u16> = self.intent.keys().copied().collect();
        let trunk = |is_all: bool| Socket { native: DEFAULT_VLAN, tagged: all.clone(), is_all };
        let at = self.devices.len();
        let style = self.controllers[controller].style;
        self.devices.push(Device { controller, sockets: Vec::new() });
        if style == Style::Hypervisor {
            return;
        }
        let is_wired = |device: &usize| self.style_of(*device) != Style::Hypervisor;
        let others: Vec<usize> = (0..at).filter(is_wired).collect();
        let other = *dice.pick(&others);
        let is_all = self.style_of(other) == Style::Trunks;
        self.devices[other].sockets.push(trunk(is_all));
        self.devices[at].sockets.push(trunk(style == Style::Trunks));
        self.cables.push([(other, self.devices[other].sockets.len() - 1), (at, 0)]);
        for _ in 0..2 + dice.below(4) {
            self.edges.push((at, self.devices[at].sockets.len()));
            self.devices[at].sockets.push(Socket {
                native: DEFAULT_VLAN,
                tagged: BTreeSet::new(),
                is_all: false,
            });
        }
    }

    pub(super) fn style_of(&self, device: usize) -> Style {
        self.controllers[self.devices[device].controller].style
    }

    /// Each VLAN has a port of its own, or a wireless network.
    fn use_all(&mut self, dice: &mut Dice) {
        let vlans: Vec<u16> = self.intent.keys().copied().collect();
        let edges = self.edges.clone();
        let wireless = self.controllers.iter().position(|controller| controller.style == Style::Switches);
        for (at, vlan) in vlans.into_iter().enumerate() {
            match (edges.get(at), wireless) {
                (Some((device, socket)), _) => self.devices[*device].sockets[*socket].native = vlan,
                (None, Some(controller)) if dice.below(2) == 0 => self.air(controller, vlan),
                _ => {
                    let (device, socket) = *dice.pick(&edges);
                    self.devices[device].sockets[socket].tagged.insert(vlan);
                }
            }
        }
        // Where edges have a VLAN without a tag, it has none with one.
        for (device, socket) in edges {
            let socket = &mut self.devices[device].sockets[socket];
            socket.tagged.remove(&socket.native);
        }
    }

    /// Has a wireless network lead to the VLAN.
    fn air(&mut self, controller: usize, vlan: u16) {
        self.controllers[controller].ssids.insert(vlan);
    }

    pub(super) fn domain(&self, facts: &Facts, controller: usize) -> usize {
        let id = self.controllers[controller].id;
        facts.domains.iter().position(|domain| domain.controller_id == id).unwrap()
    }

    pub(super) fn facts(&self) -> Facts {
        self.facts_of(&self.rows())
    }

    pub(super) fn facts_of(&self, rows: &[AtSite]) -> Facts {
        let of = |vendor: &str| STYLES.iter().copied().find(|style| format!("{style:?}") == vendor).unwrap();
        let fills = |vendor: &str, kind: &str, field: Option<&str>| {
            let style = of(vendor);
            match kind {
                "port" => style.has_ports(),
                "ssid" => style == Style::Switches || style == Style::Limited,
                _ => field.is_none_or(|field| field != "members" || style.tells_members()),
            }
        };
        gathered(&self.lists(), (rows, true), &fills)
    }

    fn lists(&self) -> Vec<ListAtSite> {
        let at = Clock::default().now();
        let list = |controller: &Controller, kind: &str| ListAtSite {
            controller_id: controller.id,
            name: format!("{:?}", controller.style),
            vendor: format!("{:?}", controller.style),
            kind: Some(kind.to_owned()),
            site_ref: Some(String::new()),
            site_name: None,
            read_at: Some(at),
            complete: Some(if controller.style.is_whole() {
                Completeness::Complete
            } else {
                Completeness::Partial
            }),
            left_out: Some(0),
        };
        self.controllers.iter().flat_map(|one| KINDS.iter().map(move |kind| list(one, kind))).collect()
    }
}

fn mac(device: usize) -> String {
    format!("02:00:00:00:00:{device:02x}")
}

impl World {
    /// What readings of all controllers store.
    pub(super) fn rows(&self) -> Vec<AtSite> {
        let mut rows = Vec::new();
        for (at, device) in self.devices.iter().enumerate() {
            let of = |kind: &str, key: String, fields: Value| {
                self.row(device.controller, kind, (key, Some(mac(at))), fields)
            };
            rows.push(of("system", format!("system-{at}"), json!({ "name": format!("device-{at}") })));
            for (number, socket) in device.sockets.iter().enumerate() {
                let name = self.name(at, number);
                if self.style_of(at) == Style::Firewall {
                    let fields = json!({ "name": format!("em{number}"), "mac": mac(at), "type": "physical" });
                    rows.push(of("interface", name, fields));
                } else if self.style_of(at).has_ports() {
                    let mut fields =
                        json!({ "number": number + 1, "native_vlan": socket.native, "tagged_mode": "list" });
                    fields["tagged_vlans"] = json!(socket.tagged);
                    if socket.is_all {
                        fields["tagged_mode"] = json!("all");
                        fields["tagged_vlans"] = Value::Null;
                    }
                    rows.push(of("port", name, fields));
                }
            }
        }
        for (at, controller) in self.controllers.iter().enumerate() {
            for vlan in controller.vlans.keys() {
                rows.extend(self.vlan_rows(at, *vlan));
            }
            for vlan in &controller.ssids {
                let fields = json!({ "name": format!("Air {vlan}"), "vlan_id": vlan });
                rows.push(self.row(at, "ssid", (format!("air-{vlan}"), None), fields));
            }
        }
        rows.extend(self.neighbours());
        rows
    }

    fn row(
        &self,
        controller: usize,
        kind: &str,
        (key, device_key): (String, Option<String>),
        fields: Value,
    ) -> AtSite {
        AtSite {
            id: Clock::default().new_id(),
            controller_id: self.controllers[controller].id,
            site_ref: String::new(),
            kind: kind.to_owned(),
            label: key.clone(),
            key,
            origin: Origin::Own,
            device_key,
            fields,
        }
    }

    /// What the controller calls a port.
    fn name(&self, device: usize, socket: usize) -> String {
        match self.style_of(device) {
            Style::Firewall => format!("opt{socket}"),
            Style::Switches | Style::Trunks => format!("{}:{}", mac(device), socket + 1),
            _ => format!("eth{socket}"),
        }
    }

    /// What the other end of a cable is told.
    fn announced(&self, device: usize, socket: usize) -> String {
        match self.style_of(device) {
            Style::Firewall => format!("em{socket}"),
            Style::Switches | Style::Trunks => format!("1/0/{}", socket + 1),
            _ => format!("eth{socket}"),
        }
    }

    fn neighbours(&self) -> Vec<AtSite> {
        let heard = |(near, socket): (usize, usize), (far, far_socket): (usize, usize)| {
            let fields = json!({
                "port": self.name(near, socket), "protocol": "lldp", "remote_chassis": mac(far).to_uppercase(),
                "remote_port": self.announced(far, far_socket), "remote_name": format!("device-{far}"),
            });
            let key = (format!("heard-{near}-{socket}"), Some(mac(near)));
            self.row(self.devices[near].controller, "neighbour", key, fields)
        };
        let of_cable = |[one, other]: &[(usize, usize); 2]| [heard(*one, *other), heard(*other, *one)];
        let all = self.cables.iter().flat_map(of_cable);
        let routers: Vec<ControllerId> =
            self.controllers.iter().filter(|one| one.style == Style::Router).map(|one| one.id).collect();
        all.filter(|row| !routers.contains(&row.controller_id)).collect()
    }

    fn vlan_rows(&self, controller: usize, vlan: u16) -> Vec<AtSite> {
        let of = &self.controllers[controller];
        let mut members = Vec::new();
        for (at, device) in
            self.devices.iter().enumerate().filter(|(_, device)| device.controller == controller)
        {
            for (number, socket) in device.sockets.iter().enumerate() {
                if socket.tagged.contains(&vlan) || socket.native == vlan {
                    let port = self.name(at, number);
                    members.push(json!({ "port": port, "tagged": socket.native != vlan }));
                }
            }
        }
        let mut fields = json!({ "vlan_id": vlan });
        if of.style.has_names() {
            fields["name"] = json!(of.vlans[&vlan]);
        }
        if let Some(subnet) = of.subnets.get(&vlan) {
            fields["subnets"] = json!([subnet, "fe80::/64"]);
        }
        if of.style == Style::Firewall {
            // One row for each interface that carries it.
            let row = |member: &Value| {
                let mut fields = fields.clone();
                fields["members"] = json!([member]);
                let key = format!("{vlan}-{}", member["port"].as_str().unwrap());
                self.row(controller, "vlan", (key, None), fields)
            };
            return members.iter().map(row).collect();
        }
        let mut rows = Vec::new();
        if of.style == Style::Bridge {
            let mut own = fields.clone();
            own["members"] = json!([{ "port": "bridge", "tagged": true }]);
            rows.push(self.row(controller, "vlan", (format!("i{vlan}"), None), own));
        }
        if of.style.tells_members() {
            fields["members"] = json!(members);
        }
        rows.push(self.row(controller, "vlan", (format!("v{vlan}"), None), fields));
        rows
    }

    /// Carries a change out, as the device would.
    pub(super) fn apply(&mut self, facts: &Facts, wanted: &Wanted) {
        let id = facts.domains[wanted.domain].controller_id;
        let controller = self.controllers.iter().position(|one| one.id == id).unwrap();
        let payload = &wanted.payload;
        let vlans: Vec<u16> = wanted.vlans.iter().copied().collect();
        match (wanted.kind, wanted.verb) {
            ("vlan", "create") => {
                let name = payload["name"].as_str().unwrap_or_default().to_owned();
                self.controllers[controller].vlans.insert(vlans[0], name);
                self.set_members(controller, vlans[0], &payload["members"]);
            }
            ("vlan", "delete") => {
                self.controllers[controller].vlans.remove(&vlans[0]);
                self.forget(controller, vlans[0]);
            }
            ("vlan", _) => {
                if let Some(name) = payload["name"].as_str() {
                    self.controllers[controller].vlans.insert(vlans[0], name.to_owned());
                }
                self.set_members(controller, vlans[0], &payload["members"]);
            }
            _ => self.set_port(controller, payload),
        }
    }

    fn sockets(&self, controller: usize) -> Vec<(usize, usize)> {
        let own = self.devices.iter().enumerate().filter(|(_, device)| device.controller == controller);
        own.flat_map(|(at, device)| (0..device.sockets.len()).map(move |number| (at, number))).collect()
    }

    fn set_members(&mut self, controller: usize, vlan: u16, members: &Value) {
        let Some(members) = members.as_array() else { return };
        for (device, number) in self.sockets(controller) {
            let name = self.name(device, number);
            let member = members.iter().find(|member| member["port"] == name.as_str());
            let socket = &mut self.devices[device].sockets[number];
            if member.is_some_and(|member| member["tagged"] == true) {
                socket.tagged.insert(vlan);
            } else {
                socket.tagged.remove(&vlan);
            }
        }
    }

    fn set_port(&mut self, controller: usize, payload: &Value) {
        for (device, number) in self.sockets(controller) {
            if payload["key"] != self.name(device, number).as_str() {
                continue;
            }
            let socket = &mut self.devices[device].sockets[number];
            if let Some(native) = payload["native_vlan"].as_u64() {
                socket.native = u16::try_from(native).unwrap();
            }
            if let Some(list) = payload["tagged_vlans"].as_array() {
                socket.tagged =
                    list.iter().map(|one| u16::try_from(one.as_u64().unwrap()).unwrap()).collect();
            }
        }
    }

    /// Takes a VLAN from all ports of a controller.
    pub(super) fn forget(&mut self, controller: usize, vlan: u16) {
        for (device, number) in self.sockets(controller) {
            let socket = &mut self.devices[device].sockets[number];
            socket.tagged.remove(&vlan);
            if socket.native == vlan {
                socket.native = DEFAULT_VLAN;
            }
        }
    }
}
