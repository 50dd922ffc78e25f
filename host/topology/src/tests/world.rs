//! Networks that are made up: what is connected with what, and what can be reached. Nothing here uses the graph that is tested.

use std::collections::{BTreeMap, BTreeSet};

/// Numbers that follow from a seed alone (`SplitMix64`).
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    /// True so many times in a hundred.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Router,
    Switch,
    AccessPoint,
    Host,
}

#[derive(Debug, Clone)]
pub(super) struct Machine {
    pub(super) role: Role,
    /// Number of its controller.
    pub(super) controller: usize,
    pub(super) ports: Vec<Jack>,
    /// Whether it is there at all.
    pub(super) is_on: bool,
    /// VLANs that were taken away from it.
    pub(super) lacks: BTreeSet<u16>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Jack {
    pub(super) is_on: bool,
    pub(super) native: Option<u16>,
    pub(super) tagged: BTreeSet<u16>,
}

/// A client or a guest.
#[derive(Debug, Clone)]
pub(super) struct User {
    pub(super) machine: usize,
    /// The port of a switch; none by air, and of a guest.
    pub(super) port: Option<usize>,
    pub(super) vlan: u16,
    pub(super) is_there: bool,
}

/// What can be reached, or from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Spot {
    Outside,
    /// The address of a machine in the VLAN of management.
    Machine(usize),
    User(usize),
}

#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) machines: Vec<Machine>,
    /// Machine and port at both ends.
    pub(super) cables: Vec<[(usize, usize); 2]>,
    pub(super) users: Vec<User>,
    pub(super) vlans: Vec<u16>,
    /// The VLAN of management; machines without ports of their own have it without a tag.
    pub(super) management: u16,
    /// The router's way out is there.
    pub(super) has_outside: bool,
    pub(super) service: Spot,
    /// Where the controller of each number is.
    pub(super) controllers: Vec<Spot>,
    /// The controller that manages several machines.
    pub(super) shared: usize,
    /// The router has all VLANs on ports of one bridge; else each on top of one port.
    pub(super) is_bridged: bool,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let count = 2 + dice.below(7);
        let mut vlans: Vec<u16> = (0..count).map(|at| 10 * u16::try_from(at + 1).unwrap()).collect();
        let management = if dice.chance(50) { 1 } else { vlans[0] };
        if management == 1 {
            vlans.insert(0, 1);
        }
        let mut world = Self {
            machines: Vec::new(),
            cables: Vec::new(),
            users: Vec::new(),
            vlans,
            management,
            has_outside: true,
            service: Spot::Outside,
            controllers: Vec::new(),
            shared: 1,
            is_bridged: dice.chance(40),
        };
        let router = world.add(Role::Router, 0);
        world.controllers = vec![Spot::Machine(router), Spot::Outside];
        world.add_switches(&mut dice);
        world.add_ends(&mut dice);
        world.choose_service(&mut dice);
        world
    }

    fn add(&mut self, role: Role, controller: usize) -> usize {
        self.machines.push(Machine {
            role,
            controller,
            ports: Vec::new(),
            is_on: true,
            lacks: BTreeSet::new(),
        });
        self.machines.len() - 1
    }

    fn jack(&mut self, machine: usize, native: Option<u16>, tagged: BTreeSet<u16>) -> usize {
        self.machines[machine].ports.push(Jack { is_on: true, native, tagged });
        self.machines[machine].ports.len() - 1
    }

    /// Of trunks: packets of VLAN 1 have no tag, all others have one.
    fn trunk(&self) -> (Option<u16>, BTreeSet<u16>) {
        let tagged = self.vlans.iter().copied().filter(|vlan| *vlan != 1).collect();
        (Some(1), tagged)
    }

    fn connect(&mut self, a: usize, b: usize, (native, tagged): (Option<u16>, BTreeSet<u16>)) {
        let ends = [(a, self.jack(a, native, tagged.clone())), (b, self.jack(b, native, tagged))];
        self.cables.push(ends);
    }

    fn add_switches(&mut self, dice: &mut Dice) {
        for number in 0..=dice.below(12) {
            // Each third one stands for itself.
            let controller = if dice.chance(33) { self.controllers.len() } else { self.shared };
            let above = if number == 0 { 0 } else { 1 + dice.below(number) };
            let switch = self.add(Role::Switch, controller);
            if controller == self.controllers.len() {
                self.controllers.push(Spot::Machine(switch));
            }
            let trunk = self.trunk();
            self.connect(above, switch, trunk.clone());
            if number > 0 && dice.chance(25) {
                let other = 1 + dice.below(number);
                self.connect(other, switch, trunk);
            }
        }
    }

    fn switches(&self) -> Vec<usize> {
        (0..self.machines.len()).filter(|at| self.machines[*at].role == Role::Switch).collect()
    }

    /// Access points, hosts and what hangs on them, and clients at ports.
    fn add_ends(&mut self, dice: &mut Dice) {
        let switches = self.switches();
        let edge = |world: &Self| {
            let tagged = world.vlans.iter().copied().filter(|vlan| *vlan != world.management && *vlan != 1);
            (Some(world.management), tagged.collect::<BTreeSet<u16>>())
        };
        for _ in 0..dice.below(5) {
            let point = self.add(Role::AccessPoint, self.shared);
            let ports = edge(self);
            self.connect(*dice.pick(&switches), point, ports.clone());
            for _ in 0..dice.below(4) {
                let vlan = any_vlan(dice, &ports);
                self.users.push(User { machine: point, port: None, vlan, is_there: true });
            }
        }
        for _ in 0..dice.below(3) {
            let controller = self.controllers.len();
            let host = self.add(Role::Host, controller);
            self.controllers.push(Spot::Machine(host));
            let ports = edge(self);
            self.connect(*dice.pick(&switches), host, ports.clone());
            for _ in 0..=dice.below(4) {
                let vlan = any_vlan(dice, &ports);
                self.users.push(User { machine: host, port: None, vlan, is_there: true });
            }
        }
        for _ in 0..2 + dice.below(15) {
            let switch = *dice.pick(&switches);
            let vlan = *dice.pick(&self.vlans.clone());
            let port = self.jack(switch, Some(vlan), BTreeSet::new());
            self.users.push(User { machine: switch, port: Some(port), vlan, is_there: true });
        }
    }

    fn choose_service(&mut self, dice: &mut Dice) {
        let users: Vec<usize> = (0..self.users.len()).collect();
        self.service = if dice.chance(40) { Spot::Outside } else { Spot::User(*dice.pick(&users)) };
        if dice.chance(50) {
            self.controllers[self.shared] = Spot::User(*dice.pick(&users));
        }
    }

    /// Whether one spot is reached from another one.
    pub(super) fn reaches(&self, from: Spot, to: Spot) -> bool {
        let parts = self.parts();
        let part = |spot: Spot| self.place(spot).and_then(|place| parts.get(&place).copied());
        part(from).is_some_and(|from| part(to) == Some(from))
    }

    /// Machine and VLAN of a spot; the router itself stands for the outside. Addresses do not move to another VLAN.
    fn place(&self, spot: Spot) -> Option<(usize, u16)> {
        match spot {
            Spot::Outside => self.has_outside.then_some((0, 0)),
            Spot::Machine(at) => Some((at, self.management)),
            Spot::User(at) => {
                let user = &self.users[at];
                let is_plugged = user.port.is_none_or(|port| {
                    let jack = &self.machines[user.machine].ports[port];
                    jack.is_on && jack.native == Some(user.vlan)
                });
                (user.is_there && is_plugged).then_some((user.machine, user.vlan))
            }
        }
    }

    fn is_there(&self, machine: usize, vlan: u16) -> bool {
        self.machines[machine].is_on && !self.machines[machine].lacks.contains(&vlan)
    }

    /// The part of the network in which each VLAN of each machine is. VLAN 0 of the router is the router itself.
    fn parts(&self) -> BTreeMap<(usize, u16), usize> {
        let mut parts: BTreeMap<(usize, u16), usize> = BTreeMap::new();
        let mut all: Vec<(usize, u16)> = vec![(0, 0)];
        for machine in 0..self.machines.len() {
            all.extend(self.vlans.iter().map(|vlan| (machine, *vlan)));
        }
        all.retain(|(machine, vlan)| self.is_there(*machine, *vlan));
        let mut joined: BTreeMap<(usize, u16), Vec<(usize, u16)>> = BTreeMap::new();
        let mut join = |a: (usize, u16), b: (usize, u16)| {
            if self.is_there(a.0, a.1) && self.is_there(b.0, b.1) {
                joined.entry(a).or_default().push(b);
                joined.entry(b).or_default().push(a);
            }
        };
        for vlan in &self.vlans {
            join((0, 0), (0, *vlan));
        }
        for [a, b] in &self.cables {
            let jacks = [a, b].map(|(machine, port)| &self.machines[*machine].ports[*port]);
            if jacks.iter().any(|jack| !jack.is_on) {
                continue;
            }
            if let (Some(vlan), true) = (jacks[0].native, jacks[0].native == jacks[1].native) {
                join((a.0, vlan), (b.0, vlan));
            }
            for vlan in jacks[0].tagged.intersection(&jacks[1].tagged) {
                join((a.0, *vlan), (b.0, *vlan));
            }
        }
        for (number, start) in all.iter().enumerate() {
            let mut left = vec![*start];
            while let Some(at) = left.pop() {
                if parts.contains_key(&at) {
                    continue;
                }
                parts.insert(at, number);
                left.extend(joined.get(&at).into_iter().flatten());
            }
        }
        parts
    }
}

fn any_vlan(dice: &mut Dice, (native, tagged): &(Option<u16>, BTreeSet<u16>)) -> u16 {
    let all: Vec<u16> = native.iter().chain(tagged).copied().collect();
    *dice.pick(&all)
}
