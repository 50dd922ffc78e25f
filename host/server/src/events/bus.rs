//! Whether events find their way out: the dispatcher runs, and its outbox moves.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use chrono::TimeDelta;
use heddle_core::Timestamp;

/// An outbox in which something waits, and nothing moves, for longer than this stands still.
const STILL_MAX: TimeDelta = TimeDelta::seconds(60);

#[derive(Debug, Default)]
pub(crate) struct Bus {
    has_ended: AtomicBool,
    /// When the outbox was last emptied or made shorter, in microseconds since 1970.
    progress_at: AtomicI64,
}

/// The dispatcher runs while this lives, however it ends.
#[derive(Debug)]
pub(super) struct Dispatching<'a>(&'a Bus);

impl Bus {
    pub(super) fn begin(&self, now: Timestamp) -> Dispatching<'_> {
        self.has_ended.store(false, Ordering::Relaxed);
        self.progressed(now);
        Dispatching(self)
    }

    pub(super) fn progressed(&self, now: Timestamp) {
        self.progress_at.store(now.timestamp_micros(), Ordering::Relaxed);
    }

    /// `oldest` is when the oldest event happened that waits in the outbox.
    pub(crate) fn has_failed(&self, oldest: Option<Timestamp>, now: Timestamp) -> bool {
        let since_progress =
            TimeDelta::microseconds(now.timestamp_micros() - self.progress_at.load(Ordering::Relaxed));
        let stands_still =
            oldest.is_some_and(|oldest| now - oldest > STILL_MAX) && since_progress > STILL_MAX;
        self.has_ended.load(Ordering::Relaxed) || stands_still
    }
}

impl Drop for Dispatching<'_> {
    fn drop(&mut self) {
        self.0.has_ended.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn a_dispatcher_that_panicked_has_failed_the_bus() {
        let now = Clock::default().now();
        let bus = std::sync::Arc::new(Bus::default());
        let inner = bus.clone();
        let ended = std::thread::spawn(move || {
            let _running = inner.begin(now);
            assert!(!inner.has_failed(None, now));
            panic!("dispatching breaks");
        });
        assert!(ended.join().is_err());
        assert!(bus.has_failed(None, now));
    }

    #[test]
    fn an_outbox_that_waits_and_does_not_move_stands_still() {
        let began = Clock::default().now();
        let bus = Bus::default();
        let _running = bus.begin(began);
        let later = began + TimeDelta::seconds(61);
        assert!(bus.has_failed(Some(began), later));
        assert!(!bus.has_failed(None, later), "nothing waits");
        assert!(!bus.has_failed(Some(later), later), "it waits since just now");
        bus.progressed(later);
        assert!(!bus.has_failed(Some(began), later), "a long outbox that gets shorter moves");
    }
}
