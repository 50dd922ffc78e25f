//! Whether events start their Connections: the negotiator looks, and what it started does not wait for long.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use chrono::TimeDelta;
use heddle_core::{OrgId, Timestamp};
use heddle_kernel::app::App;
use heddle_store::runs::{Backlog, Waiting};
use tokio::sync::Notify;

use super::in_flight::InFlight;

/// A negotiator that has not looked, or a run that has waited, for longer than this is behind.
const BEHIND_MAX: TimeDelta = TimeDelta::seconds(60);

#[derive(Debug, Default)]
pub(crate) struct FabricState {
    /// There is something to execute.
    pub(crate) wake: Notify,
    /// A queue that events wait for has room again.
    pub(crate) room: Notify,
    /// Organizations whose events wait for it.
    held_up: Mutex<HashSet<OrgId>>,
    pub(crate) in_flight: InFlight,
    /// Time of the last look at the events, in microseconds since 1970; 0 before the first look.
    looked_at: AtomicI64,
}

impl FabricState {
    /// That of this process.
    pub(crate) fn of(app: &App) -> &Self {
        app.part()
    }

    pub(super) fn hold_up(&self, org: OrgId) {
        self.held_up.lock().unwrap_or_else(PoisonError::into_inner).insert(org);
    }

    /// Lets the events of all other organizations go on: only these have runs waiting.
    pub(super) fn let_on(&self, waiting: &[Waiting]) {
        let mut held_up = self.held_up.lock().unwrap_or_else(PoisonError::into_inner);
        let before = held_up.len();
        held_up.retain(|org| waiting.iter().any(|one| one.org_id == *org));
        if held_up.len() < before {
            self.room.notify_one();
        }
    }

    pub(crate) fn looked(&self, now: Timestamp) {
        self.looked_at.store(now.timestamp_micros(), Ordering::Relaxed);
    }

    /// Whether it works: this process's negotiator, and the processes that execute what was started.
    pub(crate) fn is_up(&self, now: Timestamp, backlog: Backlog) -> bool {
        let looked_at = self.looked_at.load(Ordering::Relaxed);
        let age = TimeDelta::microseconds((now.timestamp_micros() - looked_at).max(0));
        (looked_at == 0 || age <= BEHIND_MAX) && backlog.age(now) <= BEHIND_MAX
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn it_is_behind_when_nobody_looks_or_what_was_started_waits() {
        let now = Clock::default().now();
        let state = FabricState::default();
        let none = Backlog::default();
        assert!(state.is_up(now, none), "it has not begun");
        state.looked(now);
        let later = now + TimeDelta::seconds(61);
        assert!(state.is_up(now + TimeDelta::seconds(60), none) && !state.is_up(later, none));
        state.looked(later);
        let waiting = Backlog { queued: 3, oldest: Some(now) };
        assert!(!state.is_up(later, waiting));
        assert!(state.is_up(later, Backlog { queued: 3, oldest: Some(later) }));
    }
}
