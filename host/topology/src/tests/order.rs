//! How far controllers are in networks that are made up.

use std::collections::{BTreeMap, BTreeSet};

use super::told;
use super::world::{Dice, Role, Spot, World};
use crate::build::build;
use crate::order::distances;

#[test]
fn a_controller_is_no_nearer_than_one_over_which_alone_it_is_reached() {
    let (mut pairs, mut wrong) = (0, Vec::new());
    for seed in 0..200 {
        let world = World::new(seed);
        let told = told::told(&world, &mut Dice::new(3_000_000 + seed), 0);
        let distances = distances(&build(&told.facts));
        // One of which it is not known counts as the farthest.
        let hops =
            |controller: usize| distances.get(&told.controllers[controller]).copied().unwrap_or(u32::MAX);
        let single: Vec<usize> = (0..world.machines.len())
            .filter(|at| {
                world.machines[*at].role == Role::Switch && world.machines[*at].controller != world.shared
            })
            .collect();
        // Of each machine those that are reached only over it.
        let behind: BTreeMap<usize, BTreeSet<usize>> = single
            .iter()
            .map(|near| {
                let mut without = world.clone();
                without.machines[*near].is_on = false;
                let is_cut = |far: &usize| {
                    let to = Spot::Machine(*far);
                    world.reaches(world.service, to) && !without.reaches(world.service, to)
                };
                (*near, single.iter().copied().filter(|far| far != near && is_cut(far)).collect())
            })
            .collect();
        for (near, cut) in &behind {
            // Where each is reached only over the other, in different VLANs, no order is right.
            for far in cut.iter().filter(|far| !behind[*far].contains(near)) {
                let hops = [near, far].map(|machine| hops(world.machines[*machine].controller));
                if hops[0] > hops[1] {
                    wrong.push(format!("seed {seed}: {far} is behind {near}"));
                }
                pairs += 1;
            }
        }
    }
    assert!(pairs > 100, "{pairs} pairs were compared");
    // The graph follows what devices tell, in any VLAN; where they tell of a path that carries none, it is too short.
    assert!(wrong.len() * 25 <= pairs, "{} of {pairs}: {wrong:?}", wrong.len());
}
