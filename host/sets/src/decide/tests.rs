use super::*;

fn part(standing: Standing) -> Part {
    let phase = if standing == Standing::Waiting { PartPhase::Waiting } else { PartPhase::Begun };
    Part { standing, phase, can_be_taken_back: true, is_compensable: true, has_timer: false }
}

#[track_caller]
fn check(step: SagaStep, window: Window, standings: &[Standing], expected: Next) {
    let parts: Vec<Part> = standings.iter().copied().map(part).collect();
    assert_eq!(next(step, window, &parts), expected, "{step} {window:?} {standings:?}");
}

#[test]
fn parts_are_begun_in_their_order_and_one_at_a_time() {
    use Standing::{Held, InEffect, Running, Waiting};
    let (applying, none) = (SagaStep::Applying, Window::None);
    check(applying, none, &[Waiting, Waiting], Next::Begin(0));
    check(applying, none, &[Running, Waiting], Next::Wait);
    check(applying, none, &[InEffect, Waiting], Next::Begin(1));
    check(applying, none, &[InEffect, InEffect], Next::Commit);
    check(applying, Window::Open, &[Held, Waiting], Next::Begin(1));
    check(applying, Window::Open, &[Held, Held], Next::Hold);
    check(applying, Window::Over, &[Held, Waiting], Next::Compensate(Why::NotConfirmed));
}

#[test]
fn one_part_that_fails_turns_the_set_around() {
    use Standing::{Held, InDoubt, InEffect, Running, Silent, Unchanged, Waiting};
    for failed in [Unchanged, InDoubt] {
        check(
            SagaStep::Applying,
            Window::None,
            &[InEffect, failed, Waiting],
            Next::Compensate(Why::Failed(1)),
        );
        check(
            SagaStep::Confirming,
            Window::Open,
            &[InEffect, failed, Held],
            Next::Compensate(Why::Failed(1)),
        );
    }
    check(SagaStep::Applying, Window::None, &[InEffect, Silent], Next::Compensate(Why::Silent(1)));
    for lost in [Unchanged, InDoubt, Running, Silent] {
        check(SagaStep::Holding, Window::Open, &[Held, lost], Next::Compensate(Why::Failed(1)));
    }
    check(SagaStep::Holding, Window::Open, &[Held, Held], Next::Wait);
    check(SagaStep::Holding, Window::Over, &[Held, Held], Next::Compensate(Why::NotConfirmed));
}

#[test]
fn confirmations_are_sent_in_order_and_waited_for() {
    use Standing::{Held, InEffect, Running, Silent};
    let confirming = SagaStep::Confirming;
    check(confirming, Window::Over, &[Held, Held], Next::Confirm(0));
    let timed = Part { has_timer: true, ..part(Held) };
    assert_eq!(next(confirming, Window::Open, &[part(Held), timed]), Next::Confirm(1));
    let lasting = Part { is_compensable: false, ..timed };
    assert_eq!(next(confirming, Window::Open, &[lasting, part(Held)]), Next::Confirm(1), "it comes last");
    check(confirming, Window::Open, &[Running, Held], Next::Wait);
    check(confirming, Window::Open, &[InEffect, Held], Next::Confirm(1));
    check(confirming, Window::Open, &[Silent, Held], Next::Wait);
    check(confirming, Window::Open, &[InEffect, InEffect], Next::Commit);
}

#[test]
fn what_was_applied_last_is_taken_back_first() {
    use Standing::{Held, InDoubt, InEffect, Running, Silent, Unchanged, Waiting};
    let (back, none) = (SagaStep::Compensating, Window::None);
    check(back, none, &[InEffect, InEffect, Unchanged], Next::TakeBack(1));
    check(back, none, &[InEffect, Running, Waiting], Next::Wait);
    check(back, none, &[Held, Unchanged, Waiting], Next::TakeBack(0));
    check(back, none, &[InEffect, InDoubt], Next::TakeBack(1));
    check(back, none, &[Unchanged, Unchanged, Waiting], Next::Compensated);
    // A device that is away does not keep the others as they are.
    check(back, none, &[InEffect, Silent], Next::TakeBack(0));
    check(back, none, &[Unchanged, Silent], Next::Wait);
}

#[test]
fn what_cannot_be_taken_back_leaves_the_set_stuck() {
    let lasting = Part { can_be_taken_back: false, ..part(Standing::InEffect) };
    let tried = Part { phase: PartPhase::TakenBack, ..part(Standing::InDoubt) };
    let back = |parts: &[Part]| next(SagaStep::Compensating, Window::None, parts);
    assert_eq!(back(&[part(Standing::Unchanged), lasting]), Next::Stuck);
    assert_eq!(
        back(&[part(Standing::InEffect), tried]),
        Next::TakeBack(0),
        "the others go back nevertheless"
    );
    assert_eq!(back(&[tried, part(Standing::Unchanged)]), Next::Stuck);
}

/// Every state that a part can be in.
fn every_part() -> Vec<Part> {
    let mut all = Vec::new();
    for standing in Standing::ALL {
        for phase in PartPhase::ALL {
            for can_be_taken_back in [true, false] {
                all.push(Part {
                    standing: *standing,
                    phase: *phase,
                    can_be_taken_back,
                    is_compensable: can_be_taken_back,
                    has_timer: false,
                });
            }
        }
    }
    all
}

/// An end is never a false one, and no step is out of its order, whatever happened before.
fn check_truth(step: SagaStep, window: Window, parts: &[Part]) {
    let said = next(step, window, parts);
    let is_in = |at: usize, wanted: &[Standing]| wanted.contains(&parts[at].standing);
    let is_true = match said {
        Next::Commit => parts.iter().all(|part| part.standing == Standing::InEffect),
        Next::Compensated => parts.iter().all(|part| part.standing.is_back()),
        Next::Stuck => step == SagaStep::Compensating && !parts.iter().all(|part| part.standing.is_back()),
        Next::Hold => (0..parts.len()).all(|at| is_in(at, &[Standing::Held, Standing::InEffect])),
        Next::Begin(at) => {
            let before = (0..at).all(|at| is_in(at, &[Standing::Held, Standing::InEffect]));
            step == SagaStep::Applying && is_in(at, &[Standing::Waiting]) && before
        }
        Next::Confirm(at) => {
            // What cannot be taken back any more is the last one.
            let rank = |at: usize| (!parts[at].is_compensable, at);
            let comes_first = |other: usize| is_in(other, &[Standing::Held]) && rank(at) <= rank(other);
            let others =
                (0..parts.len()).all(|other| is_in(other, &[Standing::InEffect]) || comes_first(other));
            step == SagaStep::Confirming && is_in(at, &[Standing::Held]) && others
        }
        Next::TakeBack(at) => {
            let behind = (at + 1..parts.len()).all(|at| !is_in(at, &[Standing::Held, Standing::Running]));
            step == SagaStep::Compensating && !parts[at].standing.is_back() && behind
        }
        Next::Wait | Next::Compensate(_) => true,
    };
    assert!(is_true, "{step} {window:?} {parts:?}: {said:?}");
}

#[test]
fn an_end_is_what_the_parts_show() {
    let all = every_part();
    for step in SagaStep::ALL {
        for window in [Window::None, Window::Open, Window::Over] {
            for one in &all {
                check_truth(*step, window, &[*one]);
                for two in &all {
                    check_truth(*step, window, &[*one, *two]);
                    for three in &all {
                        check_truth(*step, window, &[*one, *two, *three]);
                    }
                }
            }
        }
    }
}

#[test]
fn a_set_that_rests_is_what_its_parts_are() {
    use Standing::{InDoubt, InEffect, Unchanged, Waiting};
    for (standings, expected) in [
        (&[InEffect, InEffect][..], Next::Commit),
        (&[Unchanged, Waiting], Next::Compensated),
        (&[InEffect, Unchanged], Next::Stuck),
        (&[InDoubt, Unchanged], Next::Stuck),
    ] {
        let parts: Vec<Part> = standings.iter().copied().map(part).collect();
        assert_eq!(verdict(&parts), expected, "{standings:?}");
    }
}
