//! Hundreds of networks that are made up, with changes that lock the service out and changes that do not: what is found is
//! compared with what becomes of the network.

use std::collections::BTreeSet;

use heddle_core::blast_radius::BlastRadius;
use heddle_core::change::Operation;
use serde_json::{Value, json};

use super::told::{self, Told};
use super::world::{Dice, Machine, Role, Spot, World};
use crate::build::build;
use crate::radius::{self, Rules};
use crate::touch::{Change, Native, Words};

const NETWORKS: u64 = 500;
/// Changes of each network.
const CHANGES: usize = 6;

/// A change of a network: the machine that it writes to, what it becomes, and how it is asked for.
struct Trial {
    machine: usize,
    after: World,
    change: Change,
    is_harmless: bool,
}

fn model(told: &Told, controller: usize, (kind, verb): (&str, &str), payload: Value) -> Change {
    let words = Words::Model { kind: kind.to_owned(), verb: verb.to_owned() };
    Change { controller: told.controllers[controller], site_ref: None, words, payload }
}

/// A port of a switch.
fn any_port(world: &World, dice: &mut Dice) -> (usize, usize) {
    let switches: Vec<usize> =
        (0..world.machines.len()).filter(|at| world.machines[*at].role == Role::Switch).collect();
    let switch = *dice.pick(&switches);
    (switch, dice.below(world.machines[switch].ports.len()))
}

fn trial(world: &World, told: &Told, dice: &mut Dice) -> Trial {
    match dice.below(10) {
        choice @ 0..=4 => of_a_port(choice, world, told, dice),
        choice => of_the_whole(choice, world, told, dice),
    }
}

/// A change of a port: off, without a tag, or with another native VLAN; or one of what nobody is cut off by.
fn of_a_port(choice: usize, world: &World, told: &Told, dice: &mut Dice) -> Trial {
    let mut after = world.clone();
    let (machine, port) = any_port(world, dice);
    let controller = world.machines[machine].controller;
    let key = told::port_key(world, machine, port);
    let jack = &world.machines[machine].ports[port];
    let of_port = |fields: Value| {
        let mut payload = json!({ "key": key });
        payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        model(told, controller, ("port", "update"), payload)
    };
    let own = |after: World, change: Change| Trial { machine, after, change, is_harmless: false };
    let left = &mut after.machines[machine].ports[port];
    match choice {
        0 | 1 => {
            left.is_on = false;
            let fields = if dice.chance(70) {
                json!({ "enabled": false })
            } else {
                json!({ "poe": { "enabled": false } })
            };
            own(after, of_port(fields))
        }
        2 | 3 if !jack.tagged.is_empty() => {
            let gone = *dice.pick(&jack.tagged.iter().copied().collect::<Vec<_>>());
            left.tagged.remove(&gone);
            let kept: Vec<u16> = left.tagged.iter().copied().collect();
            own(after, of_port(json!({ "tagged_vlans": kept, "tagged_mode": "list" })))
        }
        4 => {
            let native = *dice.pick(&world.vlans);
            left.native = Some(native);
            left.tagged.remove(&native);
            own(after, of_port(json!({ "native_vlan": native })))
        }
        _ => {
            let change = of_port(json!({ "name": "Desk" }));
            Trial { machine, after: world.clone(), change, is_harmless: true }
        }
    }
}

/// A change of what many ports share: a VLAN, a way out, a user.
fn of_the_whole(choice: usize, world: &World, told: &Told, dice: &mut Dice) -> Trial {
    let mut after = world.clone();
    match choice {
        5 => {
            let gone = *dice.pick(&world.vlans);
            // What has no tag at an access point has no number there.
            let is_meant = |machine: &&mut Machine| {
                machine.controller == world.shared
                    && (machine.role != Role::AccessPoint || gone != world.management)
            };
            for machine in after.machines.iter_mut().filter(is_meant) {
                machine.lacks.insert(gone);
            }
            let shared = (0..world.machines.len()).find(|at| world.machines[*at].controller == world.shared);
            let change = model(told, world.shared, ("vlan", "delete"), json!({ "key": format!("v{gone}") }));
            // Without a switch of its own it writes to nothing.
            Trial { machine: shared.unwrap_or(0), after, change, is_harmless: shared.is_none() }
        }
        6 => {
            let user = dice.below(world.users.len());
            after.users[user].is_there = false;
            let of = &world.users[user];
            let (kind, verb) = if world.machines[of.machine].role == Role::Host {
                ("guest", "stop")
            } else {
                ("client", "block")
            };
            let change = model(
                told,
                world.machines[of.machine].controller,
                (kind, verb),
                json!({ "key": format!("u{user}") }),
            );
            Trial { machine: usize::MAX, after, change, is_harmless: false }
        }
        7 => {
            let gone = *dice.pick(&world.vlans.iter().copied().filter(|vlan| *vlan != 1).collect::<Vec<_>>());
            after.machines[0].lacks.insert(gone);
            let words = Words::Native(Native {
                feature: "acme.interfaces.vlan".to_owned(),
                kind: Some("interfaces.interface".to_owned()),
                operation: Operation::Delete,
                kinds: Vec::new(),
                names: vec![format!("opt{gone}")],
                naming: vec!["name".to_owned()],
            });
            let change = Change {
                controller: told.controllers[0],
                site_ref: None,
                words,
                payload: json!({ "name": format!("opt{gone}") }),
            };
            Trial { machine: 0, after, change, is_harmless: false }
        }
        8 => {
            after.has_outside = false;
            let change = model(told, 0, ("route", "delete"), json!({ "key": "default" }));
            Trial { machine: 0, after, change, is_harmless: false }
        }
        _ => {
            let asked = json!({ "mac": "02:00:00:00:00:01" });
            let change = model(told, 0, ("dhcp-reservation", "create"), asked);
            Trial { machine: usize::MAX, after, change, is_harmless: true }
        }
    }
}

/// Whether the service loses the controller, or the machine that a controller of several writes to.
fn is_locked_out(world: &World, told: &Told, trial: &Trial) -> bool {
    let controller = told.controllers.iter().position(|id| *id == trial.change.controller).unwrap();
    let mut targets: BTreeSet<Spot> = [world.controllers[controller]].into();
    let is_of_all = matches!(&trial.change.words, Words::Model { kind, .. } if kind == "vlan");
    if controller == world.shared && trial.machine != usize::MAX && !is_of_all {
        targets.insert(Spot::Machine(trial.machine));
    }
    targets.iter().any(|to| world.reaches(world.service, *to) && !trial.after.reaches(world.service, *to))
}

fn judged(told: &Told, change: &Change) -> BlastRadius {
    radius::of_changes(&build(&told.facts), std::slice::from_ref(change), &Rules::new())
}

#[derive(Debug, Default)]
struct Tally {
    found: usize,
    missed: usize,
    wrong: usize,
    right: usize,
    unknown: usize,
}

#[test]
fn changes_that_lock_the_service_out_are_told_from_those_that_do_not() {
    let mut tally = Tally::default();
    let mut missed = Vec::new();
    for seed in 0..NETWORKS {
        let world = World::new(seed);
        let mut dice = Dice::new(1_000_000 + seed);
        let told = told::told(&world, &mut dice, 8);
        for _ in 0..CHANGES {
            let trial = trial(&world, &told, &mut dice);
            let radius = judged(&told, &trial.change);
            let (is_risk, is_true) = (radius.own_way.is_lockout_risk(), is_locked_out(&world, &told, &trial));
            assert!(!trial.is_harmless || !is_true, "seed {seed}: what changes nothing cuts nothing");
            match (is_risk, is_true) {
                (true, true) => tally.found += 1,
                (true, false) => tally.wrong += 1,
                (false, true) => tally.missed += 1,
                (false, false) => tally.right += 1,
            }
            if is_risk != is_true {
                missed.push(format!(
                    "seed {seed}: {is_risk} {:?} {:?} {:?}",
                    trial.change.words, trial.change.payload, radius.reasons
                ));
            }
            tally.unknown += usize::from(radius.own_way == heddle_core::blast_radius::OwnWay::Unknown);
        }
    }
    let share = |part: usize, other: usize| part * 1_000 / (part + other).max(1);
    let (recall, precision) = (share(tally.found, tally.missed), share(tally.found, tally.wrong));
    assert!(tally.found > 200 && tally.right > 1_000, "{tally:?}");
    assert!(
        recall >= 980 && precision >= 900,
        "recall {recall}, precision {precision} of 1000: {tally:?}\n{}",
        missed.join("\n")
    );
}

/// Users that had a way to the outside, and have none any more.
fn cut_users(world: &World, after: &World) -> BTreeSet<usize> {
    let reaches = |world: &World, user: usize| world.reaches(Spot::Outside, Spot::User(user));
    (0..world.users.len()).filter(|user| reaches(world, *user) && !reaches(after, *user)).collect()
}

#[test]
fn clients_without_another_path_are_those_that_lose_theirs_where_all_links_are_told() {
    let mut all = 0;
    for seed in 0..NETWORKS / 2 {
        let world = World::new(seed);
        let mut dice = Dice::new(2_000_000 + seed);
        let told = told::told(&world, &mut dice, 0);
        for _ in 0..CHANGES {
            let trial = trial(&world, &told, &mut dice);
            // Without a way out another place counts as the one that is reached.
            if !trial.after.has_outside {
                continue;
            }
            let cut = cut_users(&world, &trial.after);
            let radius = judged(&told, &trial.change);
            assert_eq!(
                radius.clients_cut_off.count as usize,
                cut.len(),
                "seed {seed}: {:?} {}: {cut:?} and {radius:?}",
                trial.change.words,
                trial.change.payload
            );
            assert!(radius.clients_cut_off.count <= radius.clients_behind.count);
            all += cut.len();
        }
    }
    assert!(all > 500, "{all} clients were cut off");
}
