//! What metrics say of channels.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use heddle_core::push::PushState;
use heddle_core::{ControllerId, Timestamp};
use heddle_kernel::app::App;
use heddle_kernel::metrics::Families;
use heddle_runtime::MessageCounts;
use prometheus::{IntCounterVec, IntGaugeVec};

use crate::board::Board;

/// Counters of channels, and the boards that the gauge is measured from.
pub(crate) struct Measures {
    channels: IntGaugeVec,
    messages: IntCounterVec,
    openings: IntCounterVec,
    boards: Mutex<HashMap<ControllerId, (String, Arc<Board>)>>,
}

impl Measures {
    pub(crate) fn new(families: &Families<'_>) -> Self {
        Self {
            channels: families.gauges(
                "heddle_push_channels",
                "Channels of controllers that this process holds, by how they stand.",
                &["adapter", "state"],
            ),
            messages: families.counters(
                "heddle_push_messages_total",
                "Messages of controllers on their channels.",
                &["adapter", "outcome"],
            ),
            openings: families.counters(
                "heddle_push_openings_total",
                "Attempts to open channels of controllers.",
                &["adapter", "outcome"],
            ),
            boards: Mutex::default(),
        }
    }

    pub(crate) fn of(app: &App) -> &Self {
        app.part()
    }

    pub(crate) fn holds(&self, controller: ControllerId, vendor: &str, board: &Arc<Board>) {
        self.lock().insert(controller, (vendor.to_owned(), board.clone()));
    }

    /// Forgets a board, unless the controller has another one by now.
    pub(crate) fn gives_up(&self, controller: ControllerId, board: &Arc<Board>) {
        let mut boards = self.lock();
        if boards.get(&controller).is_some_and(|(_, held)| Arc::ptr_eq(held, board)) {
            boards.remove(&controller);
        }
    }

    pub(crate) fn opening(&self, vendor: &str, outcome: &str) {
        self.openings.with_label_values(&[vendor, outcome]).inc();
    }

    /// Counts the messages that came since the counts of before.
    pub(crate) fn messages(&self, vendor: &str, before: MessageCounts, now: MessageCounts) {
        let added = [
            ("read", now.read - before.read),
            ("ignored", now.ignored - before.ignored),
            ("dropped", now.dropped - before.dropped),
        ];
        for (outcome, count) in added {
            self.messages.with_label_values(&[vendor, outcome]).inc_by(count);
        }
    }

    /// Counts a request of a controller.
    pub(crate) fn request(&self, vendor: &str, outcome: &str) {
        self.messages.with_label_values(&[vendor, outcome]).inc();
    }

    /// Sets the gauge. A state in which no channel is by now stays at 0.
    pub(crate) fn measure(&self, now: Timestamp) {
        let mut counts: HashMap<(String, PushState), i64> = HashMap::new();
        for (vendor, board) in self.lock().values() {
            for state in PushState::ALL {
                counts.entry((vendor.clone(), *state)).or_default();
            }
            for standing in board.standings(now) {
                *counts.entry((vendor.clone(), standing.state())).or_default() += 1;
            }
        }
        self.channels.reset();
        for ((vendor, state), count) in counts {
            self.channels.with_label_values(&[vendor.as_str(), state.as_str()]).set(count);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ControllerId, (String, Arc<Board>)>> {
        self.boards.lock().expect("no holder of this lock panics")
    }
}
