//! How many of a kind came within a second.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Pace {
    recent: VecDeque<Instant>,
    most: usize,
}

impl Pace {
    pub(super) fn of(most: usize) -> Self {
        Self { recent: VecDeque::new(), most }
    }

    /// Counts one more; false when it is one too many.
    pub(super) fn takes(&mut self, now: Instant) -> bool {
        while self.recent.front().is_some_and(|at| now.duration_since(*at) >= Duration::from_secs(1)) {
            self.recent.pop_front();
        }
        if self.recent.len() >= self.most {
            return false;
        }
        self.recent.push_back(now);
        true
    }
}
