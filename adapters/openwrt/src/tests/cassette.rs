//! What was recorded at the practice device, and every mutant of its answers. `cargo xtask record openwrt` records it anew.

use heddle_sdk::testing::Package;
use heddle_sdk::testing::cassette::{Call, Cassette, Envelope, Spared, every_mutant, replays};

use crate::OpenWrt;

const ENVELOPE: Envelope =
    Envelope { proof: &["/result/0"], turned: &[("/result/0", "6"), ("/result/0", "99")] };

fn package() -> &'static Package {
    heddle_sdk::package_of!("../../manifest.json", "../../description.json")
}

fn practice() -> Cassette {
    Cassette::load(include_str!("../../cassettes/practice.jsonl")).unwrap()
}

/// The calls of the recorded plan that only stage: the first of its apply, and what its restore deletes.
fn is_staging(call: &Call) -> bool {
    match call {
        Call::Judge { stage, index: 0, .. } => stage == "apply",
        Call::Judge { stage, index: 1, .. } => stage == "restore",
        _ => false,
    }
}

fn spared() -> Vec<Spared> {
    vec![
        Spared {
            when: |call, _, _, fault| matches!(call, Call::Check) && fault.is_none(),
            why: "a capability that cannot be asked for is not known",
        },
        Spared {
            when: |call, _, _, fault| matches!(call, Call::Plan { .. }) && fault.is_none(),
            why: "what a plan wants to know beside its files is left out where it cannot be read",
        },
        Spared {
            when: |call, _, _, fault| is_staging(call) && fault.is_some(),
            why: "what is staged is dropped with its session",
        },
    ]
}

#[test]
fn what_was_recorded_is_read_and_written_as_it_was() {
    replays::<OpenWrt>(&practice(), package());
}

#[test]
fn every_mutant_of_every_answer_gets_the_right_fault() {
    let played = every_mutant::<OpenWrt>(&practice(), package(), &ENVELOPE, &spared());
    assert!(played > 1_000, "{played}");
}
