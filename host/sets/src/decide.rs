//! What comes next for a set over several controllers: a function of where the set and its parts stand, and of nothing else.
//! So it does not matter which process asks, or how often the one before was killed.

use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_core::change::{ApplyStep, ChangeStatus, OutcomeState};
use heddle_core::saga::{PartPhase, SagaStep};
use heddle_store::ChangeRow;

heddle_core::words! {
    /// Where a part of a set over several controllers stands.
    pub enum Standing {
        /// Nothing was sent in the present attempt.
        Waiting = "waiting",
        /// It is being applied, confirmed or taken back.
        Running = "running",
        /// The same, and the device has given no answer for a while.
        Silent = "silent",
        /// In effect, and waiting for its confirmation.
        Held = "held",
        /// In effect and permanent.
        InEffect = "in_effect",
        /// The device reads as before.
        Unchanged = "unchanged",
        /// The device holds a part of it, or it is not known what it holds.
        InDoubt = "in_doubt",
    }
}

/// For how long a device may give no answer before the other parts stop waiting for it.
pub(crate) const PATIENCE: TimeDelta = TimeDelta::seconds(30);

impl Standing {
    /// Where a part stands, by its own row.
    pub(crate) fn of(row: &ChangeRow, phase: PartPhase, now: Timestamp) -> Self {
        match (row.apply_step, row.outcome_state) {
            (ApplyStep::Holding, _) => Standing::Held,
            (ApplyStep::Idle, OutcomeState::Applied) if row.status == ChangeStatus::Applied => {
                Standing::InEffect
            }
            (ApplyStep::Idle, OutcomeState::Partial | OutcomeState::Unknown) => Standing::InDoubt,
            (ApplyStep::Idle, _) if phase == PartPhase::Waiting => Standing::Waiting,
            (ApplyStep::Idle, _) => Standing::Unchanged,
            // The state is written when the device first gives no answer, and then no more until it does.
            (_, OutcomeState::Unknown) if now > row.updated_at + PATIENCE => Standing::Silent,
            _ => Standing::Running,
        }
    }

    /// Whether the device holds nothing of the part.
    pub(crate) fn is_back(self) -> bool {
        matches!(self, Standing::Waiting | Standing::Unchanged)
    }
}

/// A part, as far as the next step depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) standing: Standing,
    pub(crate) phase: PartPhase,
    pub(crate) can_be_taken_back: bool,
    /// It can be taken back once it is permanent, too.
    pub(crate) is_compensable: bool,
    /// The device takes it back by itself at the end of the window.
    pub(crate) has_timer: bool,
}

/// The window that spans a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Window {
    /// The set was applied without one.
    None,
    Open,
    Over,
}

/// Why a set is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// This part, counted from 0, did not come into effect or is not in effect any more.
    Failed(usize),
    /// The device of this part gives no answer.
    Silent(usize),
    NotConfirmed,
}

/// The next step. Parts are counted from 0, in the order in which they are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing, until a part or a person has moved on.
    Wait,
    Begin(usize),
    /// Every part is in effect: wait for a person to confirm.
    Hold,
    Confirm(usize),
    Commit,
    /// From now on parts are taken back.
    Compensate(Why),
    TakeBack(usize),
    Compensated,
    Stuck,
}

/// Says what comes next.
pub(crate) fn next(step: SagaStep, window: Window, parts: &[Part]) -> Next {
    match step {
        SagaStep::Idle => Next::Wait,
        SagaStep::Applying => applying(window, parts),
        SagaStep::Holding => holding(window, parts),
        SagaStep::Confirming => confirming(parts),
        SagaStep::Compensating => compensating(parts),
    }
}

fn find(parts: &[Part], wanted: &[Standing]) -> Option<usize> {
    parts.iter().position(|part| wanted.contains(&part.standing))
}

/// The first part that was begun and is not on its way into effect any more.
fn failed(parts: &[Part]) -> Option<usize> {
    find(parts, &[Standing::Unchanged, Standing::InDoubt])
}

fn applying(window: Window, parts: &[Part]) -> Next {
    if let Some(at) = failed(parts) {
        return Next::Compensate(Why::Failed(at));
    }
    if let Some(at) = find(parts, &[Standing::Silent]) {
        return Next::Compensate(Why::Silent(at));
    }
    if window == Window::Over {
        return Next::Compensate(Why::NotConfirmed);
    }
    if find(parts, &[Standing::Running]).is_some() {
        return Next::Wait;
    }
    match (find(parts, &[Standing::Waiting]), find(parts, &[Standing::Held])) {
        (Some(at), _) => Next::Begin(at),
        (None, Some(_)) => Next::Hold,
        (None, None) => Next::Commit,
    }
}

fn holding(window: Window, parts: &[Part]) -> Next {
    // What is neither held nor permanent was taken back by its device, or is about to be.
    let lost =
        [Standing::Waiting, Standing::Unchanged, Standing::InDoubt, Standing::Running, Standing::Silent];
    match find(parts, &lost) {
        Some(at) => Next::Compensate(Why::Failed(at)),
        None if window == Window::Over => Next::Compensate(Why::NotConfirmed),
        None if find(parts, &[Standing::Held]).is_none() => Next::Commit,
        None => Next::Wait,
    }
}

/// A confirmation that was sent is not taken back by itself: a device that gives no answer is waited for. What cannot
/// be taken back any more comes last; else parts whose devices have a timer of their own come first.
fn confirming(parts: &[Part]) -> Next {
    if let Some(at) = failed(parts).or_else(|| find(parts, &[Standing::Waiting])) {
        return Next::Compensate(Why::Failed(at));
    }
    if find(parts, &[Standing::Running, Standing::Silent]).is_some() {
        return Next::Wait;
    }
    let held = parts.iter().enumerate().filter(|(_, part)| part.standing == Standing::Held);
    let first = held.min_by_key(|(at, part)| (!part.is_compensable, !part.has_timer, *at));
    first.map_or(Next::Commit, |(at, _)| Next::Confirm(at))
}

/// The part that was applied last is taken back first. A device that gives no answer does not keep the others waiting.
fn compensating(parts: &[Part]) -> Next {
    let (mut is_silent, mut remains) = (false, false);
    for (at, part) in parts.iter().enumerate().rev() {
        match part.standing {
            Standing::Waiting | Standing::Unchanged => {}
            Standing::Running => return Next::Wait,
            Standing::Silent => is_silent = true,
            Standing::Held => return Next::TakeBack(at),
            Standing::InEffect | Standing::InDoubt => {
                // It is tried once: what came of it shows in where the part stands.
                if part.phase != PartPhase::TakenBack && part.can_be_taken_back {
                    return Next::TakeBack(at);
                }
                remains = true;
            }
        }
    }
    match (is_silent, remains) {
        (true, _) => Next::Wait,
        (false, true) => Next::Stuck,
        (false, false) => Next::Compensated,
    }
}

/// What a set is that rests, by where its parts stand.
pub(crate) fn verdict(parts: &[Part]) -> Next {
    if parts.iter().all(|part| part.standing == Standing::InEffect) {
        Next::Commit
    } else if parts.iter().all(|part| part.standing.is_back()) {
        Next::Compensated
    } else {
        Next::Stuck
    }
}

#[cfg(test)]
mod tests;
