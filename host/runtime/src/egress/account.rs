//! What the requests of one call have used and done.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::held;
use super::ledger::Ledger;
use crate::limits::REFUSALS_LOGGED;

/// What the requests of one call use up together, whatever their targets.
pub(crate) struct Account {
    pub(super) room: held::Room,
    pub(super) ledger: Mutex<Ledger>,
}

impl Account {
    /// Bytes that were answered so far: by servers and devices, and by the host itself to a plugin.
    pub(crate) fn answered(&self) -> usize {
        self.room.taken().saturating_add(self.ledger().given_bytes)
    }

    /// Counts bytes that the host hands over itself: how many there are is not the component's choice.
    pub(crate) fn give(&self, bytes: usize) {
        let mut ledger = self.ledger();
        ledger.given_bytes = ledger.given_bytes.saturating_add(bytes);
    }

    /// Whether a request that can change something left, and may have arrived.
    pub(crate) fn has_left(&self) -> bool {
        self.ledger().left > 0
    }

    /// Counts a refusal of something that the component may not do. False where the log has enough of this call.
    pub(crate) fn refuse(&self) -> bool {
        let mut ledger = self.ledger();
        ledger.denied += 1;
        ledger.refused() <= REFUSALS_LOGGED
    }

    /// Counts a refusal of a plugin for its data.
    pub(super) fn refuse_for_data(&self) -> bool {
        let mut ledger = self.ledger();
        ledger.denied_for_data += 1;
        ledger.refused() <= REFUSALS_LOGGED
    }

    /// Whether this is the first time in the call that its credential cannot be read.
    pub(crate) fn is_first_failure(&self) -> bool {
        !std::mem::replace(&mut self.ledger().credential_failed, true)
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
