//! What was recorded at the practice device, and every mutant of its answers. `cargo xtask record opnsense` records it anew.

use heddle_sdk::testing::cassette::{Call, Cassette, Damage, Envelope, Spared, every_mutant, replays};

use super::device::package;
use crate::Opnsense;

const ENVELOPE: Envelope = Envelope {
    proof: &["/result", "/status"],
    turned: &[("/result", "\"failed\""), ("/result", "\"unheard\""), ("/status", "\"error\"")],
};

fn practice() -> Cassette {
    Cassette::load(include_str!("../../cassettes/practice.jsonl")).unwrap()
}

fn spared() -> Vec<Spared> {
    vec![
        Spared {
            when: |call, _, damage, fault| {
                let is_list = matches!(
                    call,
                    Call::ListObjects { .. } | Call::ListModel { .. } | Call::ListDevices { .. }
                );
                is_list && matches!(damage, Damage::Status(404) | Damage::Relabelled(404)) && fault.is_none()
            },
            why: "a firewall without a plugin answers 404; of several sources the others are whole",
        },
        Spared {
            when: |call, _, _, fault| matches!(call, Call::Check) && fault.is_none(),
            why: "a capability that cannot be asked for is not known",
        },
        Spared {
            when: |call, _, _, fault| matches!(call, Call::ListDevices { .. }) && fault.is_none(),
            why: "what tells more of a client than the list is left out where it cannot be read",
        },
        Spared {
            when: |call, _, damage, fault| {
                let is_read = matches!(
                    call,
                    Call::ListObjects { .. } | Call::GetObject { .. } | Call::ListModel { .. }
                );
                is_read && *damage == Damage::Turned && fault.is_none()
            },
            why: "what is only read has no envelope: its result and status are values of the object",
        },
        Spared {
            when: |call, path, damage, fault| {
                let is_dhcp_of_vlan = matches!(call, Call::ListModel { kind, .. } if kind == "vlan")
                    && path.ends_with("/api/kea/dhcpv4/get");
                is_dhcp_of_vlan
                    && matches!(damage, Damage::Status(403) | Damage::Relabelled(403))
                    && fault.is_none()
            },
            why: "whether Kea serves a VLAN is left open where its settings may not be read",
        },
    ]
}

#[test]
fn what_was_recorded_is_read_and_written_as_it_was() {
    replays::<Opnsense>(&practice(), package());
}

#[test]
fn every_mutant_of_every_answer_gets_the_right_fault() {
    let played = every_mutant::<Opnsense>(&practice(), package(), &ENVELOPE, &spared());
    assert!(played > 1_000, "{played}");
}
