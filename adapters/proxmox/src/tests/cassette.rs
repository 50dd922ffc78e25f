//! What was recorded at the practice device, and every mutant of its answers. `cargo xtask record proxmox` records it anew.

use heddle_sdk::Fault;
use heddle_sdk::testing::cassette::{Call, Cassette, Damage, Envelope, Spared, every_mutant, replays};

use super::device::package;
use crate::Proxmox;

/// The status with an envelope proves it; what stands in the envelope differs by call.
const ENVELOPE: Envelope = Envelope { proof: &[], turned: &[] };

fn practice() -> Cassette {
    Cassette::load(include_str!("../../cassettes/practice.jsonl")).unwrap()
}

fn spared() -> Vec<Spared> {
    vec![
        Spared {
            when: |_, _, damage, fault| *damage == Damage::Relabelled(404) && fault.is_none(),
            why: "with an envelope of the node, 404 says that the object is gone",
        },
        Spared {
            when: |call, _, _, fault| matches!(call, Call::Check) && fault.is_none(),
            why: "a capability that cannot be asked for is not known",
        },
        Spared {
            when: |call, _, _, fault| matches!(call, Call::ListDevices { .. }) && fault.is_none(),
            why: "what tells more of a node than the list is left out where it cannot be read",
        },
        Spared {
            when: |call, _, _, fault| {
                let is_ceph = matches!(call, Call::ListObjects { kind, .. } if kind.starts_with("ceph."));
                is_ceph && matches!(fault, Some(Fault::Unsupported(_)))
            },
            why: "of several nodes one says already that Ceph is not there",
        },
        Spared {
            when: |call, _, damage, fault| {
                let is_of_guests =
                    matches!(call, Call::ListObjects { kind, .. } if kind == "container.interface");
                is_of_guests
                    && *damage == Damage::Relabelled(404)
                    && matches!(fault, Some(Fault::Conflict(_)))
            },
            why: "a container that is gone is left out, and the other one says that it does not run",
        },
        Spared {
            when: |call, path, _, fault| {
                let is_beside = matches!(call, Call::Poll { .. }) && path.ends_with("/resources?type=sdn");
                is_beside && fault.is_none()
            },
            why: "zones that did not come up behind an apply are only warned of",
        },
    ]
}

#[test]
fn what_was_recorded_is_read_and_written_as_it_was() {
    replays::<Proxmox>(&practice(), package());
}

#[test]
fn every_mutant_of_every_answer_gets_the_right_fault() {
    let played = every_mutant::<Proxmox>(&practice(), package(), &ENVELOPE, &spared());
    assert!(played > 1_000, "{played}");
}
