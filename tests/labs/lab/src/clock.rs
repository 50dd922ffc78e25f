//! The time of a lab: real time that tests can move forward, or stop.

use std::time::Duration;

use tokio::time::Instant;

/// Runs with real time, unless it is paused. It never goes backwards.
#[derive(Clone, Debug)]
pub struct Clock {
    started: Instant,
    /// Time of the lab that had passed at `anchor`.
    base: Duration,
    anchor: Instant,
    is_paused: bool,
    epoch: Duration,
}

impl Clock {
    /// A clock that starts now; `epoch_secs` are the seconds since 1970 that it shows at its start.
    pub fn new(epoch_secs: u64) -> Self {
        let now = Instant::now();
        Self {
            started: now,
            base: Duration::ZERO,
            anchor: now,
            is_paused: false,
            epoch: Duration::from_secs(epoch_secs),
        }
    }

    /// Time of the lab since its start.
    pub fn elapsed(&self) -> Duration {
        if self.is_paused { self.base } else { self.base + self.anchor.elapsed() }
    }

    /// The lab's present as an instant: use it for deadlines, never to wait in real time.
    pub fn now(&self) -> Instant {
        self.started + self.elapsed()
    }

    /// The lab's time since 1970.
    pub fn unix(&self) -> Duration {
        self.epoch + self.elapsed()
    }

    /// The time since 1970 of an instant of this clock; instants before its start give its start.
    pub fn unix_of(&self, at: Instant) -> Duration {
        self.epoch + at.saturating_duration_since(self.started)
    }

    /// Moves forward at once.
    pub fn advance(&mut self, by: Duration) {
        self.base += by;
    }

    /// Stops: from now on only [`Clock::advance`] moves it.
    pub fn pause(&mut self) {
        self.base = self.elapsed();
        self.is_paused = true;
    }

    /// Runs on with real time, from where it stands.
    pub fn resume(&mut self) {
        self.base = self.elapsed();
        self.anchor = Instant::now();
        self.is_paused = false;
    }

    /// Whether only [`Clock::advance`] moves it.
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }
}
