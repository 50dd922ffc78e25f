//! What was recorded at the practice device, and every mutant of its answers. `cargo xtask record omada` records it anew.

use heddle_sdk::testing::cassette::{Call, Cassette, Damage, Envelope, Spared, every_mutant, replays};

use super::device::package;
use crate::Omada;

const ENVELOPE: Envelope =
    Envelope { proof: &["/errorCode"], turned: &[("/errorCode", "-1"), ("/errorCode", "-99999")] };

fn practice() -> Cassette {
    Cassette::load(include_str!("../../cassettes/practice.jsonl")).unwrap()
}

fn spared() -> Vec<Spared> {
    vec![
        Spared {
            when: |_, _, damage, _| matches!(damage, Damage::Relabelled(_)),
            why: "the envelope decides, whatever the status is",
        },
        Spared {
            when: |call, _, damage, fault| {
                let is_read = matches!(
                    call,
                    Call::ListObjects { .. } | Call::ListModel { .. } | Call::ListDevices { .. }
                );
                is_read && *damage == Damage::Status(404) && fault.is_none()
            },
            why: "the web server's own 404 says that the release has no such route for the object, which is left out",
        },
        Spared {
            when: |call, _, _, fault| matches!(call, Call::Check) && fault.is_none(),
            why: "a capability that cannot be asked for is not known",
        },
    ]
}

#[test]
fn what_was_recorded_is_read_and_written_as_it_was() {
    replays::<Omada>(&practice(), package());
}

#[test]
fn every_mutant_of_every_answer_gets_the_right_fault() {
    let played = every_mutant::<Omada>(&practice(), package(), &ENVELOPE, &spared());
    assert!(played > 1_000, "{played}");
}
