//! The changes that this process is bringing forward, so that one task at a time drives each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use heddle_core::ChangeId;
use heddle_core::change::ApplyStep;
use heddle_kernel::app::App;
use tokio::sync::Notify;

/// Pause before the next drive of a change whose drive ended with an error.
const REST: Duration = Duration::from_secs(30);

/// Changes that this process is driving now.
#[derive(Debug, Default, Clone)]
pub(crate) struct Drivers {
    under_way: Claims,
    holding: Claims,
    /// Until when a change is not driven again, because its drive ended with an error.
    resting: Arc<Mutex<HashMap<ChangeId, Instant>>>,
}

/// The claims by change. Each has the signal that ends the pauses of its task.
type Claims = Arc<Mutex<HashMap<ChangeId, Arc<Notify>>>>;

impl Drivers {
    /// Returns the drivers of this process.
    pub(super) fn of(app: &App) -> &Self {
        app.part()
    }

    /// Returns a claim on one change, or `None` while another task has it.
    pub(super) fn claim(&self, change: ChangeId) -> Option<DriverClaim> {
        DriverClaim::new(&self.under_way, change)
    }

    /// Pauses the change: its drive ended with an error, which would occur again at once.
    pub(super) fn rest(&self, change: ChangeId) {
        self.resting.lock().expect("no holder of this lock panics").insert(change, Instant::now() + REST);
    }

    /// Whether a task is executing it, or it is paused.
    pub(super) fn has(&self, change: ChangeId, step: ApplyStep) -> bool {
        let mut resting = self.resting.lock().expect("no holder of this lock panics");
        resting.retain(|_, until| *until > Instant::now());
        if resting.contains_key(&change) {
            return true;
        }
        drop(resting);
        let has =
            |claims: &Claims| claims.lock().expect("no holder of this lock panics").contains_key(&change);
        has(&self.under_way) || (step == ApplyStep::Holding && has(&self.holding))
    }

    /// Has the task that drives the change look at it before its pause is over; without such a task nothing happens.
    pub(super) fn wake(&self, change: ChangeId) {
        let claims = self.under_way.lock().expect("no holder of this lock panics");
        if let Some(woken) = claims.get(&change) {
            woken.notify_one();
        }
    }

    /// Returns a claim on the confirm window of one change.
    pub(super) fn claim_hold(&self, change: ChangeId) -> Option<DriverClaim> {
        DriverClaim::new(&self.holding, change)
    }
}

/// Only the holder of this claim drives the change.
#[derive(Debug)]
pub(super) struct DriverClaim {
    claims: Claims,
    pub(super) change: ChangeId,
    /// Ends the pauses of the task that has the claim.
    pub(super) woken: Arc<Notify>,
}

impl DriverClaim {
    fn new(claims: &Claims, change: ChangeId) -> Option<Self> {
        let mut held = claims.lock().expect("no holder of this lock panics");
        if held.contains_key(&change) {
            return None;
        }
        let woken = Arc::new(Notify::new());
        held.insert(change, Arc::clone(&woken));
        Some(Self { claims: Arc::clone(claims), change, woken })
    }
}

impl Drop for DriverClaim {
    fn drop(&mut self) {
        self.claims.lock().expect("no holder of this lock panics").remove(&self.change);
    }
}
