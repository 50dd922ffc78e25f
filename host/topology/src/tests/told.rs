//! What controllers tell of a network that is made up: each kind of machine in the way of one kind of vendor, and not all of it.

use heddle_core::ControllerId;
use serde_json::{Value, json};

use super::Teller;
use super::world::{Dice, Jack, Role, Spot, World};
use crate::facts::Facts;

/// A network as it is told, with what its objects are called.
pub(super) struct Told {
    pub(super) facts: Facts,
    pub(super) controllers: Vec<ControllerId>,
}

/// The address of a host in a VLAN.
fn address(vlan: u16, host: usize) -> String {
    format!("10.0.{vlan}.{host}")
}

pub(super) fn user_address(world: &World, user: usize) -> String {
    address(world.users[user].vlan, 100 + user)
}

fn machine_address(world: &World, machine: usize) -> String {
    address(world.management, if machine == 0 { 1 } else { 10 + machine })
}

fn spot_address(world: &World, spot: Spot) -> String {
    match spot {
        Spot::Outside => "203.0.113.77".to_owned(),
        Spot::Machine(at) => machine_address(world, at),
        Spot::User(at) => user_address(world, at),
    }
}

fn mac(machine: usize, port: usize) -> String {
    format!("02:00:00:00:{machine:02x}:{port:02x}")
}

pub(super) fn user_mac(user: usize) -> String {
    format!("02:aa:00:00:00:{user:02x}")
}

/// What a controller knows a machine by.
pub(super) fn identity(world: &World, machine: usize) -> String {
    match world.machines[machine].role {
        Role::Host => format!("node/host{machine}"),
        _ => mac(machine, 0),
    }
}

fn is_shared(world: &World, machine: usize) -> bool {
    world.machines[machine].controller == world.shared
}

/// The key of the object that a port is.
pub(super) fn port_key(world: &World, machine: usize, port: usize) -> String {
    match world.machines[machine].role {
        Role::Host => "eno1".to_owned(),
        Role::Router if !world.is_bridged => "lan".to_owned(),
        _ if is_shared(world, machine) => format!("{}:{}", mac(machine, 0), port + 1),
        _ => format!("ether{}", port + 1),
    }
}

/// The name by which other machines hear of a port.
fn heard_port(world: &World, machine: usize, port: usize) -> String {
    match world.machines[machine].role {
        Role::AccessPoint => "eth0".to_owned(),
        Role::Router if !world.is_bridged => "igb1".to_owned(),
        Role::Switch if is_shared(world, machine) => format!("1/0/{}", port + 1),
        _ => port_key(world, machine, port),
    }
}

/// Tells of a network. Of a hundred words that machines could say of each other, so many are missing.
pub(super) fn told(world: &World, dice: &mut Dice, missing: usize) -> Told {
    let mut teller = Teller::new();
    let controllers: Vec<ControllerId> = (0..world.controllers.len())
        .map(|at| teller.controller(&format!("c{at}"), &spot_address(world, world.controllers[at])))
        .collect();
    for machine in 0..world.machines.len() {
        let id = controllers[world.machines[machine].controller];
        machine_itself(world, &mut teller, id, machine);
    }
    shared_lists(world, &mut teller, controllers[world.shared]);
    for cable in &world.cables {
        for [(own, own_port), (other, other_port)] in [[cable[0], cable[1]], [cable[1], cable[0]]] {
            let tells = matches!(world.machines[own].role, Role::Router | Role::Switch);
            if !tells || dice.chance(missing) {
                continue;
            }
            let chassis = match dice.below(3) {
                0 => mac(other, 0),
                1 => mac(other, 0).replace(':', "-").to_uppercase(),
                _ => format!("m{other}"),
            };
            // A host is known by its name alone.
            let chassis =
                if world.machines[other].role == Role::Host { format!("host{other}") } else { chassis };
            let fields = json!({
                "port": heard_port(world, own, own_port), "remote_chassis": chassis,
                "remote_port": heard_port(world, other, other_port), "protocol": "lldp",
            });
            let id = controllers[world.machines[own].controller];
            teller.tell(id, Some(&identity(world, own)), ("neighbour", &format!("{own}/{own_port}")), fields);
        }
    }
    users(world, &mut teller, &controllers, dice);
    teller.facts.own_addresses = match world.service {
        Spot::User(at) => vec!["127.0.0.1".parse().unwrap(), user_address(world, at).parse().unwrap()],
        _ => vec!["203.0.113.5".parse().unwrap()],
    };
    Told { facts: teller.facts, controllers }
}

fn machine_itself(world: &World, teller: &mut Teller, id: ControllerId, machine: usize) {
    let of = &world.machines[machine];
    let own = identity(world, machine);
    let (name, role) = match of.role {
        Role::Router => (format!("m{machine}"), "router"),
        Role::Switch => (format!("m{machine}"), "switch"),
        Role::AccessPoint => (format!("m{machine}"), "access-point"),
        Role::Host => (format!("host{machine}"), "hypervisor"),
    };
    teller.device(id, &own, &name, &[&machine_address(world, machine)]);
    teller.tell(id, Some(&own), ("system", &own), json!({ "role": role, "name": name }));
    match of.role {
        Role::Router => router(world, teller, id, &own),
        Role::Switch if is_shared(world, machine) => {
            for (at, jack) in of.ports.iter().enumerate() {
                teller.tell(id, Some(&own), ("port", &port_key(world, machine, at)), port(jack, at));
            }
        }
        Role::Switch => bridged(world, teller, id, machine, (&own, &machine_address(world, machine))),
        Role::AccessPoint => {}
        Role::Host => {
            teller.tell(
                id,
                Some(&own),
                ("interface", "eno1"),
                json!({ "name": "eno1", "type": "physical", "master": "vmbr0" }),
            );
            let addresses = [format!("{}/24", machine_address(world, machine))];
            teller.tell(
                id,
                Some(&own),
                ("interface", "vmbr0"),
                json!({ "name": "vmbr0", "type": "bridge", "addresses": addresses }),
            );
        }
    }
}

fn port(jack: &Jack, at: usize) -> Value {
    let tagged: Vec<u16> = jack.tagged.iter().copied().collect();
    let mode = if tagged.is_empty() { "none" } else { "list" };
    let mut fields = json!({
        "number": at + 1, "enabled": jack.is_on, "link": "up", "tagged_vlans": tagged, "tagged_mode": mode,
    });
    if let Some(native) = jack.native {
        fields["native_vlan"] = json!(native);
    }
    fields
}

/// A machine whose ports are in a bridge, with its addresses on top of that.
fn bridged(
    world: &World,
    teller: &mut Teller,
    id: ControllerId,
    machine: usize,
    (own, address): (&str, &str),
) {
    for (at, jack) in world.machines[machine].ports.iter().enumerate() {
        let name = format!("ether{}", at + 1);
        teller.tell(id, Some(own), ("port", &name), port(jack, at));
        let fields =
            json!({ "name": name, "type": "physical", "master": "bridge", "mac": mac(machine, at + 1) });
        teller.tell(id, Some(own), ("interface", &name), fields);
    }
    let addresses = [format!("{address}/24")];
    let mut bridge = json!({ "name": "bridge", "type": "bridge" });
    if world.management == 1 {
        bridge["addresses"] = json!(addresses);
    } else {
        let fields = json!({ "name": "mgmt", "type": "vlan", "lower": "bridge", "vlan_id": world.management, "addresses": addresses });
        teller.tell(id, Some(own), ("interface", "mgmt"), fields);
    }
    teller.tell(id, Some(own), ("interface", "bridge"), bridge);
}

fn router(world: &World, teller: &mut Teller, id: ControllerId, own: &str) {
    let wan = json!({ "name": "igb0", "type": "physical", "role": "wan", "addresses": ["198.51.100.2/24"], "mac": mac(0, 99) });
    teller.tell(id, Some(own), ("interface", "wan"), wan);
    teller.tell(
        id,
        Some(own),
        ("gateway", "wan_gw"),
        json!({ "name": "WAN", "interface": "wan", "address": "198.51.100.1" }),
    );
    let default = json!({ "destination": "0.0.0.0/0", "next_hop": "198.51.100.1", "interface": "wan" });
    teller.tell(id, Some(own), ("route", "default"), default);
    let carrier = if world.is_bridged { "bridge" } else { "lan" };
    for vlan in world.vlans.iter().filter(|vlan| **vlan != 1) {
        let fields = json!({
            "name": format!("vlan0.{vlan}"), "type": "vlan", "role": "lan", "lower": carrier, "vlan_id": vlan,
            "addresses": [format!("{}/24", address(*vlan, 1))],
        });
        teller.tell(id, Some(own), ("interface", &format!("opt{vlan}")), fields);
    }
    let mut base = json!({ "name": carrier, "type": if world.is_bridged { "bridge" } else { "physical" }, "mac": mac(0, 1) });
    if world.vlans.contains(&1) {
        base["addresses"] = json!([format!("{}/24", address(1, 1))]);
        base["role"] = json!("lan");
    }
    if world.is_bridged {
        for (at, jack) in world.machines[0].ports.iter().enumerate() {
            let name = format!("ether{}", at + 1);
            teller.tell(id, Some(own), ("port", &name), port(jack, at));
            teller.tell(
                id,
                Some(own),
                ("interface", &name),
                json!({ "name": name, "type": "physical", "master": "bridge" }),
            );
        }
    } else {
        base["name"] = json!("igb1");
    }
    teller.tell(id, Some(own), ("interface", carrier), base);
}

/// What the controller of several machines tells of all of them.
fn shared_lists(world: &World, teller: &mut Teller, id: ControllerId) {
    for vlan in &world.vlans {
        let fields = json!({ "vlan_id": vlan, "name": format!("net{vlan}"), "subnets": [format!("{}/24", address(*vlan, 0))] });
        teller.tell(id, None, ("vlan", &format!("v{vlan}")), fields);
        let mut ssid = json!({ "name": format!("air{vlan}") });
        if *vlan != world.management {
            ssid["vlan_id"] = json!(vlan);
        }
        teller.tell(id, None, ("ssid", &format!("s{vlan}")), ssid);
    }
}

fn users(world: &World, teller: &mut Teller, controllers: &[ControllerId], dice: &mut Dice) {
    for (at, user) in world.users.iter().enumerate() {
        let machine = &world.machines[user.machine];
        let id = controllers[machine.controller];
        let own = identity(world, user.machine);
        let (mac, addresses) = (user_mac(at), [user_address(world, at)]);
        let key = format!("u{at}");
        match machine.role {
            Role::Host => {
                let mut nic = json!({ "mac": mac, "network": "vmbr0" });
                if user.vlan != world.management {
                    nic["vlan_id"] = json!(user.vlan);
                }
                let fields = json!({ "name": key, "system": format!("host{}", user.machine), "addresses": addresses, "nics": [nic] });
                teller.tell(id, None, ("guest", &key), fields);
                // The switch sees it, too.
                if let Some((switch, port)) = beside(world, user.machine) {
                    let fields = json!({ "mac": mac, "port": heard_port(world, switch, port), "vlan_id": user.vlan, "connection": "wired" });
                    let id = controllers[world.machines[switch].controller];
                    teller.tell(id, Some(&identity(world, switch)), ("client", &key), fields);
                }
            }
            Role::AccessPoint => {
                let fields = json!({ "mac": mac, "hostname": key, "addresses": addresses, "connection": "wireless", "ssid": format!("air{}", user.vlan) });
                teller.tell(id, Some(&own), ("client", &key), fields);
            }
            Role::Router | Role::Switch => {
                let port = heard_port(world, user.machine, user.port.unwrap());
                let mut fields = json!({ "mac": mac, "hostname": key, "addresses": addresses, "connection": "wired", "port": port });
                if dice.chance(70) {
                    fields["vlan_id"] = json!(user.vlan);
                }
                teller.tell(id, Some(&own), ("client", &key), fields);
            }
        }
        // The router knows their addresses.
        let interface = if user.vlan == 1 {
            if world.is_bridged { "bridge" } else { "lan" }.to_owned()
        } else {
            format!("opt{}", user.vlan)
        };
        let fields =
            json!({ "mac": user_mac(at), "addresses": [user_address(world, at)], "interface": interface });
        teller.tell(controllers[0], Some(&identity(world, 0)), ("client", &user_mac(at)), fields);
    }
}

/// The switch and its port at which a machine hangs.
fn beside(world: &World, machine: usize) -> Option<(usize, usize)> {
    let other = |[a, b]: &[(usize, usize); 2]| match machine {
        own if own == a.0 => Some(*b),
        own if own == b.0 => Some(*a),
        _ => None,
    };
    world.cables.iter().find_map(other)
}
