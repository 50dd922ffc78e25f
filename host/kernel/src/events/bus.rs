//! Whether events are published: the dispatcher runs, and sees what is committed.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use chrono::TimeDelta;
use heddle_core::Timestamp;

/// A dispatcher whose last look is older than this is stalled.
const STILL_MAX: TimeDelta = TimeDelta::seconds(60);

#[derive(Debug, Default)]
pub(crate) struct Bus {
    has_ended: AtomicBool,
    /// Time of the last look at the committed events, in microseconds since 1970.
    looked_at: AtomicI64,
}

/// Marks the dispatcher as running until it is dropped, however the dispatcher ends.
#[derive(Debug)]
pub(super) struct Dispatching<'a>(&'a Bus);

impl Bus {
    pub(super) fn begin(&self, now: Timestamp) -> Dispatching<'_> {
        self.has_ended.store(false, Ordering::Relaxed);
        self.looked(now);
        Dispatching(self)
    }

    pub(super) fn looked(&self, now: Timestamp) {
        self.looked_at.store(now.timestamp_micros(), Ordering::Relaxed);
    }

    /// Returns the age of the last look.
    pub(crate) fn last_look_age(&self, now: Timestamp) -> TimeDelta {
        let age = now.timestamp_micros() - self.looked_at.load(Ordering::Relaxed);
        TimeDelta::microseconds(age.max(0))
    }

    pub(crate) fn has_failed(&self, now: Timestamp) -> bool {
        self.has_ended.load(Ordering::Relaxed) || self.last_look_age(now) > STILL_MAX
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
            assert!(!inner.has_failed(now));
            panic!("dispatching breaks");
        });
        assert!(ended.join().is_err());
        assert!(bus.has_failed(now));
    }

    #[test]
    fn a_dispatcher_that_sees_nothing_stands_still() {
        let began = Clock::default().now();
        let bus = Bus::default();
        let _running = bus.begin(began);
        let later = began + TimeDelta::seconds(61);
        assert!(!bus.has_failed(began + TimeDelta::seconds(59)) && bus.has_failed(later));
        bus.looked(later);
        assert!(!bus.has_failed(later));
    }
}
