//! What this process says to the others, and whether it hears them.

use std::sync::atomic::{AtomicBool, Ordering};

use heddle_core::secret::random_bytes;
use tokio::sync::Notify;

/// Calls of this process that are to be made, and whether it hears those of others.
#[derive(Debug)]
pub(crate) struct Wakes {
    /// Names this process in its calls. It is not the id of its registration, which the process can lose while it still
    /// calls.
    pub(super) name: String,
    pub(super) wanted: Notify,
    are_lost: AtomicBool,
}

impl Default for Wakes {
    fn default() -> Self {
        let name = hex::encode(random_bytes::<16>().as_slice());
        Self { name, wanted: Notify::new(), are_lost: AtomicBool::new(false) }
    }
}

impl Wakes {
    /// Asks for a call that makes the others look. Does not wait; of many at once one is made.
    pub(super) fn call(&self) {
        self.wanted.notify_one();
    }

    /// Whether other processes' events are only found by polling, although there is a cache.
    pub(crate) fn are_lost(&self) -> bool {
        self.are_lost.load(Ordering::Relaxed)
    }

    pub(super) fn lose(&self, reason: &str) {
        if !self.are_lost.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                reason,
                "calls of other processes are not heard: their events are found by looking every half second"
            );
        }
    }

    pub(super) fn regain(&self) {
        if self.are_lost.swap(false, Ordering::Relaxed) {
            tracing::info!("calls of other processes are heard again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_processes_call_by_the_same_name() {
        let (one, other) = (Wakes::default(), Wakes::default());
        assert!(!one.name.is_empty() && one.name != other.name);
    }
}
