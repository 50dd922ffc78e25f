//! Laws of the comparison, on made-up sites: every fault is found, nothing else is reported, and what is staged ends it.

use std::collections::{BTreeMap, BTreeSet};

use heddle_core::vlan::VlanFault;
use serde_json::Value;

use super::expected::Expected;
use super::generated::{Dice, Style, World};
use super::remedy::{Remedy, Rules, Writable, remedy};
use super::{Finding, compare, is_same_name};
use crate::site::facts::{DEFAULT_VLAN, Facts};

const SITES: u64 = 200;
/// Fields whose absence must never make a finding.
const FIELDS: [&str; 12] = [
    "members",
    "native_vlan",
    "tagged_mode",
    "tagged_vlans",
    "name",
    "subnets",
    "remote_port",
    "remote_chassis",
    "number",
    "protocol",
    "vlan_id",
    "mac",
];

fn all(facts: &Facts) -> BTreeSet<usize> {
    (0..facts.domains.len()).collect()
}

fn intent(world: &World, facts: &Facts) -> Expected {
    Expected::intent(world.intent.clone(), all(facts))
}

#[track_caller]
fn require_none(facts: &Facts, expected: &Expected, seed: u64) {
    let found = compare(facts, expected);
    assert!(found.is_empty(), "seed {seed}: {found:?}");
}

/// A finding in words that do not depend on the order of what is compared.
fn told(world: &World, facts: &Facts, finding: &Finding) -> String {
    let controller = facts.domains[finding.domain].controller_id;
    let at = world.controllers.iter().position(|one| one.id == controller).unwrap();
    match (finding.class, finding.other) {
        (VlanFault::NativeMismatch | VlanFault::SubnetOverlaps, Some((_, other))) => {
            of_pair(finding.class, finding.vlan, other)
        }
        (class, _) => format!("{class} {} at {at}", finding.vlan),
    }
}

fn of_pair(class: VlanFault, one: u16, other: u16) -> String {
    format!("{class} {} {}", one.min(other), one.max(other))
}

/// Puts faults into a site.
struct Faults {
    dice: Dice,
    /// VLANs without a fault.
    free: Vec<u16>,
    cables: BTreeSet<usize>,
    expected: BTreeSet<String>,
}

impl Faults {
    fn put(world: &mut World, seed: u64) -> BTreeSet<String> {
        let free = world.intent.keys().copied().collect();
        let mut faults =
            Self { dice: Dice::new(seed ^ 0xfa17), free, cables: BTreeSet::new(), expected: BTreeSet::new() };
        for class in VlanFault::ALL {
            for _ in 0..faults.dice.below(3) {
                if faults.free.len() < 3 {
                    break;
                }
                faults.one(world, *class);
            }
        }
        faults.expected
    }

    fn take(&mut self) -> u16 {
        let at = self.dice.below(self.free.len());
        self.free.swap_remove(at)
    }

    fn expect(&mut self, class: VlanFault, vlan: u16, controller: usize) {
        self.expected.insert(format!("{class} {vlan} at {controller}"));
    }

    fn one(&mut self, world: &mut World, class: VlanFault) {
        match class {
            VlanFault::Missing => self.missing(world),
            VlanFault::Extra => self.extra(world),
            VlanFault::NameDiffers => self.name(world),
            VlanFault::SubnetOverlaps => self.subnet(world),
            VlanFault::NativeMismatch => self.native(world),
            VlanFault::TaggedOnOneEnd => self.one_end(world),
            VlanFault::Orphan => self.orphan(world),
        }
    }

    fn missing(&mut self, world: &mut World) {
        let controller = self.dice.below(world.controllers.len());
        let elsewhere =
            world.edges.iter().copied().find(|(device, _)| world.devices[*device].controller != controller);
        let (Some((device, socket)), true) = (elsewhere, world.controllers[controller].style.is_whole())
        else {
            return;
        };
        let vlan = self.take();
        world.controllers[controller].vlans.remove(&vlan);
        world.controllers[controller].ssids.remove(&vlan);
        world.forget(controller, vlan);
        // It is still used, and so is no orphan.
        let socket = &mut world.devices[device].sockets[socket];
        if socket.native != vlan {
            socket.tagged.insert(vlan);
        }
        self.expect(VlanFault::Missing, vlan, controller);
    }

    fn extra(&mut self, world: &mut World) {
        let (device, socket) = *self.dice.pick(&world.edges);
        let controller = world.devices[device].controller;
        // Its trunks would carry the VLAN to ports that are known to lack it, of a controller of which it is not known.
        let is_limited = world.controllers.iter().any(|one| !one.style.is_whole());
        if world.controllers[controller].style == Style::Trunks && is_limited {
            return;
        }
        let vlan = u16::try_from(4_050 + self.expected.len()).unwrap();
        world.controllers[controller].vlans.insert(vlan, "Old".to_owned());
        world.devices[device].sockets[socket].tagged.insert(vlan);
        self.expect(VlanFault::Extra, vlan, controller);
    }

    fn name(&mut self, world: &mut World) {
        let controller = self.dice.below(world.controllers.len());
        if world.controllers[controller].style.has_names() {
            let vlan = self.take();
            world.controllers[controller].vlans.insert(vlan, format!("Other {vlan}"));
            self.expect(VlanFault::NameDiffers, vlan, controller);
        }
    }

    fn subnet(&mut self, world: &mut World) {
        let (one, other) = (self.take(), self.take());
        let firewall = &mut world.controllers[0];
        let within = firewall.subnets[&other].replace(".0/24", ".128/25");
        firewall.subnets.insert(one, within);
        self.expected.insert(of_pair(VlanFault::SubnetOverlaps, one, other));
    }

    /// A cable without a fault, of which this end can have one.
    fn cable(
        &mut self,
        world: &World,
        fits: impl Fn(Style, Style) -> bool,
    ) -> Option<(usize, (usize, usize))> {
        let at = self.dice.below(world.cables.len());
        let side = self.dice.below(2);
        let (end, other) = (world.cables[at][side], world.cables[at][1 - side]);
        let is_fit = fits(world.style_of(end.0), world.style_of(other.0)) && !self.cables.contains(&at);
        is_fit.then_some((at, end))
    }

    fn native(&mut self, world: &mut World) {
        let tells = |style| style != Style::Firewall;
        let Some((cable, (device, socket))) = self.cable(world, |end, other| tells(end) && tells(other))
        else {
            return;
        };
        self.cables.insert(cable);
        let vlan = self.take();
        let socket = &mut world.devices[device].sockets[socket];
        socket.native = vlan;
        socket.tagged.remove(&vlan);
        self.expected.insert(of_pair(VlanFault::NativeMismatch, DEFAULT_VLAN, vlan));
    }

    fn one_end(&mut self, world: &mut World) {
        let lists = |style| !matches!(style, Style::Firewall | Style::Trunks);
        let Some((cable, (device, socket))) = self.cable(world, |end, _| lists(end)) else { return };
        self.cables.insert(cable);
        let vlan = self.take();
        world.devices[device].sockets[socket].tagged.remove(&vlan);
        self.expect(VlanFault::TaggedOnOneEnd, vlan, world.devices[device].controller);
    }

    fn orphan(&mut self, world: &mut World) {
        if !world.controllers.iter().all(|controller| controller.style.tells_uses()) {
            return;
        }
        let vlan = self.take();
        for (device, socket) in world.edges.clone() {
            let socket = &mut world.devices[device].sockets[socket];
            socket.tagged.remove(&vlan);
            if socket.native == vlan {
                socket.native = DEFAULT_VLAN;
            }
        }
        for (at, controller) in world.controllers.iter_mut().enumerate() {
            controller.ssids.remove(&vlan);
            self.expected.insert(format!("{} {vlan} at {at}", VlanFault::Orphan));
        }
    }
}

#[test]
fn a_clean_site_has_no_finding_whatever_it_is_compared_with() {
    let (mut links, mut vendors) = (0, BTreeSet::new());
    for seed in 0..SITES {
        let world = World::clean(seed);
        let facts = world.facts();
        links += facts.links.len();
        assert_eq!(facts.links.len(), world.cables.len(), "seed {seed}: every cable is found");
        vendors.insert(world.controllers.len());
        require_none(&facts, &intent(&world, &facts), seed);
        require_none(&facts, &Expected::majority(&facts), seed);
        for at in 0..facts.domains.len() {
            require_none(&facts, &Expected::domain(&facts, at), seed);
        }
    }
    assert!(links > 1_000 && vendors == (2..=7).collect::<BTreeSet<usize>>(), "{links} links, {vendors:?}");
}

#[test]
fn every_fault_is_found_and_nothing_else() {
    let mut counted: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..SITES {
        let mut world = World::clean(seed);
        let expected = Faults::put(&mut world, seed);
        let facts = world.facts();
        let found = compare(&facts, &intent(&world, &facts));
        let found: BTreeSet<String> = found.iter().map(|finding| told(&world, &facts, finding)).collect();
        assert_eq!(found, expected, "seed {seed}");
        for told in &expected {
            *counted.entry(told.split(' ').next().unwrap().to_owned()).or_default() += 1;
        }
    }
    for class in VlanFault::ALL {
        assert!(counted.get(class.as_str()).is_some_and(|count| *count > 30), "{class}: {counted:?}");
    }
}

#[test]
fn what_is_not_known_is_never_a_fault() {
    for seed in 0..SITES {
        let (world, mut dice) = (World::clean(seed), Dice::new(seed ^ 0x0ff));
        let mut rows = world.rows();
        rows.retain(|row| matches!(row.kind.as_str(), "vlan" | "port" | "ssid") || dice.below(10) > 0);
        for row in &mut rows {
            let Value::Object(fields) = &mut row.fields else { continue };
            fields.retain(|name, _| !FIELDS.contains(&name.as_str()) || dice.below(8) > 0);
        }
        let facts = world.facts_of(&rows);
        require_none(&facts, &intent(&world, &facts), seed);
    }
}

/// What the firewall is to have distributed to all others.
fn distribution(world: &World, facts: &Facts) -> Remedy {
    let brain = world.domain(facts, 0);
    let limbs = all(facts).into_iter().filter(|at| *at != brain).collect();
    let findings = compare(facts, &Expected::intent(world.intent.clone(), limbs));
    let writable: Vec<Writable> = facts
        .domains
        .iter()
        .map(|domain| {
            let controller = world.controllers.iter().find(|one| one.id == domain.controller_id);
            controller.unwrap().style.writable()
        })
        .collect();
    let rules = Rules { read_only: [brain].into(), right: [brain].into(), removes_extra: true };
    remedy(facts, &findings, &writable, &rules)
}

#[test]
fn limbs_follow_the_brain_within_two_cycles_and_then_nothing_is_staged() {
    let mut staged = 0;
    for seed in 0..SITES {
        let mut world = World::clean(seed);
        Faults::put(&mut world, seed);
        for cycle in 0..3 {
            let facts = world.facts();
            let remedy = distribution(&world, &facts);
            let brain = world.domain(&facts, 0);
            assert!(remedy.wanted.iter().all(|wanted| wanted.domain != brain), "the brain is only read");
            if cycle == 2 {
                assert!(remedy.wanted.is_empty(), "seed {seed}: {:?}", remedy.wanted);
                let can = |style: Style| style.writable().create_vlan.is_some();
                for left in &remedy.left {
                    let domain = &facts.domains[left.finding.domain];
                    let style =
                        world.controllers.iter().find(|one| one.id == domain.controller_id).unwrap().style;
                    let is_settled =
                        matches!(left.finding.class, VlanFault::Missing | VlanFault::Extra) && can(style);
                    assert!(!is_settled, "seed {seed}: {left:?}");
                }
            }
            staged += remedy.wanted.len();
            for wanted in &remedy.wanted {
                world.apply(&facts, wanted);
            }
        }
    }
    assert!(staged > 200, "{staged}");
}

#[test]
fn everything_of_one_object_is_one_change() {
    for seed in 0..SITES {
        let mut world = World::clean(seed);
        Faults::put(&mut world, seed);
        let facts = world.facts();
        let wanted = distribution(&world, &facts).wanted;
        let mut keys = BTreeSet::new();
        for one in wanted.iter().filter(|one| one.verb != "create") {
            let key = (one.domain, one.kind, one.payload["key"].as_str().unwrap().to_owned());
            assert!(keys.insert(key), "seed {seed}: {one:?}");
        }
        let verbs = |verb: &str| ["create", "update", "delete"].iter().position(|one| *one == verb);
        assert!(wanted.iter().map(|one| (one.domain, verbs(one.verb))).is_sorted(), "seed {seed}");
    }
}

#[test]
fn names_are_the_same_where_vendors_only_write_them_otherwise() {
    for (one, other, is_same) in [
        ("Guest Wi-Fi", "guest_wifi", true),
        ("IoT", "iot ", true),
        ("Gäste", "GÄSTE", true),
        ("Guests", "Guest", false),
        ("VLAN 20", "VLAN 30", false),
        ("--", "--", true),
        ("--", "??", false),
    ] {
        assert_eq!(is_same_name(one, other), is_same, "{one} {other}");
    }
}
