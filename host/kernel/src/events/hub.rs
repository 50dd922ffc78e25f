//! The hub of this process: its receivers, connection slots and wake-ups.

use tokio::sync::{Notify, Semaphore, watch};

use super::bus::Bus;
use super::connection_slots::ConnectionSlots;
use super::fanout::Fanout;
use super::wakes::Wakes;

/// Connections that read their caller at the same time.
const PROOFS_AT_ONCE: usize = 8;

/// Where published events meet open connections.
#[derive(Debug)]
pub struct Hub {
    pub(super) outbox: Notify,
    pub(super) fanout: Fanout,
    pub(crate) wakes: Wakes,
    /// Held by a connection while it reads its caller again: many may have to at the same time.
    pub(super) proofs: Semaphore,
    /// Notifies the consumers that there are new events.
    pub(super) rounds: watch::Sender<u64>,
    pub(super) slots: ConnectionSlots,
    pub(crate) bus: Bus,
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            outbox: Notify::new(),
            fanout: Fanout::default(),
            wakes: Wakes::default(),
            proofs: Semaphore::new(PROOFS_AT_ONCE),
            rounds: watch::channel(0).0,
            slots: ConnectionSlots::default(),
            bus: Bus::default(),
        }
    }
}

impl Hub {
    /// Reports that an event was committed. The database calls this for each transaction with events that is committed
    /// through it.
    pub(crate) fn wake(&self) {
        self.outbox.notify_one();
        self.wakes.call();
    }

    /// Reports that another process may have committed an event.
    pub(super) fn look(&self) {
        self.outbox.notify_one();
    }

    /// Changes whenever events were published.
    pub(crate) fn published(&self) -> watch::Receiver<u64> {
        self.rounds.subscribe()
    }

    /// Returns the number of open connections that have authenticated.
    pub fn connections(&self) -> usize {
        self.slots.named()
    }
}
