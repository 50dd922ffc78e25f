//! Time and ids come from one place, so that tests can set them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use uuid::{NoContext, Uuid};

/// UTC, microseconds: the finest that both databases keep.
pub type Timestamp = DateTime<Utc>;

/// Tells the time and makes ids. Cloning shares the clock.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    /// Microseconds added to the system's time; tests advance it.
    offset_micros: Arc<AtomicI64>,
    /// Where it stands, if it does not follow the system's time.
    stands_at: Option<Timestamp>,
}

impl Clock {
    /// A clock that only [`Clock::advance`] moves, so that a recording can be made again.
    pub fn standing_at(at: Timestamp) -> Self {
        Self { stands_at: Some(at), ..Self::default() }
    }

    pub fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the system clock")]
        let now = self.stands_at.unwrap_or_else(Utc::now);
        let offset = TimeDelta::microseconds(self.offset_micros.load(Ordering::Relaxed));
        (now + offset).trunc_subsecs(6)
    }

    /// A new id of the current instant.
    pub fn new_id<T: From<Uuid>>(&self) -> T {
        let now = self.now();
        let seconds = u64::try_from(now.timestamp()).unwrap_or_default();
        #[expect(clippy::disallowed_methods, reason = "the one place that makes ids")]
        let id = Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, seconds, now.timestamp_subsec_nanos()));
        T::from(id)
    }

    /// Moves this clock, and all its clones, forward.
    pub fn advance(&self, by: TimeDelta) {
        let micros = by.num_microseconds().unwrap_or_default();
        self.offset_micros.fetch_add(micros, Ordering::Relaxed);
    }
}
