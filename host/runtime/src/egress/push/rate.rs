//! How fast a controller may talk.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::limits::{BYTES_PER_SECOND, MESSAGES_BURST, MESSAGES_PER_SECOND};

const SECOND: Duration = Duration::from_secs(1);

/// Messages that are looked at: a burst, and then so many a second.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Messages that may still come, in parts of a second's share.
    left: f64,
    at: Instant,
}

impl Bucket {
    pub(super) fn new(now: Instant) -> Self {
        Self { left: f64::from(MESSAGES_BURST), at: now }
    }

    /// Counts one more; false when it is one too many.
    pub(super) fn takes(&mut self, now: Instant) -> bool {
        let more = now.saturating_duration_since(self.at).as_secs_f64() * f64::from(MESSAGES_PER_SECOND);
        self.left = (self.left + more).min(f64::from(MESSAGES_BURST));
        self.at = now;
        let takes = self.left >= 1.0;
        if takes {
            self.left -= 1.0;
        }
        takes
    }
}

/// How many of a kind came within a second.
#[derive(Debug)]
pub(super) struct PerSecond {
    since: Instant,
    count: usize,
    most: usize,
}

impl PerSecond {
    pub(super) fn of(most: usize) -> Self {
        Self { since: Instant::now(), count: 0, most }
    }

    /// Counts one more; false when it is one too many.
    pub(super) fn takes(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.since) >= SECOND {
            (self.since, self.count) = (now, 0);
        }
        self.count += 1;
        self.count <= self.most
    }
}

/// Bytes of a channel, whatever connections they come by. They are not dropped: the controller is read no faster.
#[derive(Debug)]
pub(super) struct Throttle(Mutex<(Instant, usize)>);

impl Default for Throttle {
    fn default() -> Self {
        Self(Mutex::new((Instant::now(), 0)))
    }
}

impl Throttle {
    /// Counts bytes that came; until when no more are read, where that were enough.
    pub(super) fn take(&self, bytes: usize, now: Instant) -> Option<Instant> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(window.0) >= SECOND {
            *window = (now, 0);
        }
        window.1 = window.1.saturating_add(bytes);
        (window.1 > BYTES_PER_SECOND).then(|| window.0 + SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_taken_and_then_so_many_a_second() {
        let start = Instant::now();
        let mut bucket = Bucket::new(start);
        let mut taken = |secs: u64| {
            (0..1_000).filter(|_| bucket.takes(start + SECOND * u32::try_from(secs).unwrap())).count()
        };
        assert_eq!(taken(0), 200);
        assert_eq!(taken(1), 50);
        assert_eq!(taken(3), 100);
        assert_eq!(taken(100), 200, "no more than a burst is saved up");
    }

    #[test]
    fn a_second_has_its_own_count() {
        let start = Instant::now();
        let mut meter = PerSecond::of(3);
        assert_eq!((0..5).filter(|_| meter.takes(start)).count(), 3);
        assert!(meter.takes(start + SECOND * 2));
    }

    #[test]
    fn more_bytes_are_read_in_the_next_second() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        assert_eq!(throttle.take(BYTES_PER_SECOND, now), None);
        let until = throttle.take(1, now).unwrap();
        assert!(until > now);
        assert_eq!(throttle.take(1, now + SECOND), None);
    }
}
