//! The sliding window: a log of the times at which requests were granted. Pure; `take.lua` states the same for Redis.
//!
//! A small limit has one entry for each request and is exact. A large limit has one entry for a group of up to a
//! twentieth of the limit. A group leaves the window with its first request. So a request below the limit is never
//! refused, and no window of time holds more than the limit and one group.

/// Largest limit whose log has an entry for each request.
const EXACT_MAX: u32 = 64;
/// Groups of a larger limit: each is at most 5 % of it.
const GROUPS: u32 = 20;

/// How many requests are granted in any time of this length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub requests: u32,
    pub window_ms: u32,
}

impl Rate {
    /// Permits this many requests in any second, or up to a twentieth more where it is above 64; 0 permits
    /// none. The window slides and does not follow the seconds of the clock.
    pub const fn per_second(requests: u32) -> Self {
        Self { requests, window_ms: 1_000 }
    }

    /// Permits this many requests in any 60 seconds, or up to a twentieth more where it is above 64; 0
    /// permits none. The window slides and does not follow the minutes of the clock.
    pub const fn per_minute(requests: u32) -> Self {
        Self { requests, window_ms: 60_000 }
    }

    /// Permits this many requests in any 3600 seconds, or up to a twentieth more where it is above 64; 0
    /// permits none. The window slides and does not follow the hours of the clock.
    pub const fn per_hour(requests: u32) -> Self {
        Self { requests, window_ms: 3_600_000 }
    }

    /// Requests that share one entry of the log.
    pub(super) const fn group(self) -> u32 {
        if self.requests <= EXACT_MAX { 1 } else { self.requests / GROUPS }
    }
}

/// The requests that were granted to one principal within the window: at most [`EXACT_MAX`] entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Log {
    /// Time of the first request of each group, the oldest first. All groups but the last are full.
    starts: Vec<u64>,
    /// Requests of the last group.
    last: u32,
    /// Time of the newest request.
    newest: u64,
}

impl Log {
    /// Returns how many more requests would be granted after one at this time; `None` when this one is refused.
    ///
    /// `now_ms` counts from any fixed instant.
    pub(super) fn room(&self, rate: Rate, now_ms: u64) -> Option<u32> {
        let now_ms = self.not_before_newest(rate, now_ms).unwrap_or(now_ms);
        let left = rate.requests.checked_sub(self.held(rate, now_ms))?;
        left.checked_sub(1)
    }

    /// Enters a request that [`Log::room`] has granted.
    pub(super) fn enter(&mut self, rate: Rate, now_ms: u64) {
        let now_ms = self.not_before_newest(rate, now_ms).unwrap_or_else(|| {
            *self = Self::default();
            now_ms
        });
        let gone = self.gone(rate, now_ms);
        self.starts.drain(..gone);
        if self.starts.is_empty() || self.last >= rate.group() {
            self.starts.push(now_ms);
            self.last = 1;
        } else {
            self.last += 1;
        }
        self.newest = now_ms;
    }

    /// Threads read the clock in one order and come here in another: a time slightly before the newest counts as the
    /// newest. `None` when the clock was set back by more than the window, which starts the log anew: otherwise
    /// requests would be refused until the clock has caught up.
    fn not_before_newest(&self, rate: Rate, now_ms: u64) -> Option<u64> {
        let is_set_back = now_ms.saturating_add(u64::from(rate.window_ms)) < self.newest;
        (!is_set_back).then_some(now_ms.max(self.newest))
    }

    /// Groups that have left the window.
    fn gone(&self, rate: Rate, now_ms: u64) -> usize {
        let has_left = |start: &u64| start.saturating_add(u64::from(rate.window_ms)) <= now_ms;
        self.starts.partition_point(has_left)
    }

    /// Requests within the window, as far as the log tells.
    fn held(&self, rate: Rate, now_ms: u64) -> u32 {
        if self.not_before_newest(rate, now_ms).is_none() {
            return 0;
        }
        let groups = self.starts.len() - self.gone(rate, now_ms);
        let Some(full) = groups.checked_sub(1) else { return 0 };
        u32::try_from(full).unwrap_or(u32::MAX).saturating_mul(rate.group()).saturating_add(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE: Rate = Rate::per_minute(5);

    fn ask(log: &mut Log, rate: Rate, now_ms: u64) -> Option<u32> {
        let left = log.room(rate, now_ms)?;
        log.enter(rate, now_ms);
        Some(left)
    }

    /// Sends at these seconds; answers which were granted, with what was left.
    fn outcomes(rate: Rate, seconds: &[u64]) -> Vec<Option<u32>> {
        let mut log = Log::default();
        seconds.iter().map(|second| ask(&mut log, rate, second * 1_000)).collect()
    }

    #[test]
    fn so_many_are_granted_as_the_rate_says_and_the_next_is_not() {
        let at_once = outcomes(FIVE, &[600; 6]);
        assert_eq!(at_once, [Some(4), Some(3), Some(2), Some(1), Some(0), None]);
    }

    #[test]
    fn each_request_leaves_the_window_by_itself() {
        let outcomes = outcomes(FIVE, &[600, 610, 620, 630, 640, 659, 660, 661, 670, 719, 720]);
        assert_eq!(outcomes[4..], [Some(0), None, Some(0), None, Some(0), Some(2), Some(2)]);
    }

    #[test]
    fn what_was_refused_is_not_counted() {
        let mut seconds = vec![600; 50];
        seconds.push(720);
        assert_eq!(outcomes(FIVE, &seconds).last(), Some(&Some(4)));
    }

    #[test]
    fn a_clock_that_was_set_back_starts_the_window_anew_and_one_that_lags_does_not() {
        assert_eq!(outcomes(Rate::per_minute(1), &[600, 600, 100, 100]), [Some(0), None, Some(0), None]);
        assert_eq!(outcomes(Rate::per_minute(2), &[600, 599, 599, 598]), [Some(1), Some(0), None, None]);
    }

    #[test]
    fn no_setting_overflows() {
        let most = Rate::per_minute(u32::MAX);
        let mut log = Log { starts: vec![600_000; 20], last: most.group(), newest: 600_000 };
        let left = log.room(most, 600_000).expect("the limit is no multiple of twenty");
        assert_eq!(left, u32::MAX - 20 * most.group() - 1);
        log.enter(most, 600_000);
        log.last = u32::MAX - 20 * most.group();
        assert_eq!(log.room(most, 600_000), None);
        assert_eq!(Log::default().room(Rate { requests: 0, window_ms: 1 }, 5), None);
    }

    /// A generator of its own, so that the sequences are the same each time.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % bound
        }
    }

    /// Requests within the window that ends at this time, exactly.
    fn exactly(granted: &[u64], rate: Rate, now_ms: u64) -> usize {
        granted.iter().rev().take_while(|at| *at + u64::from(rate.window_ms) > now_ms).count()
    }

    #[test]
    fn a_log_grants_what_an_exact_window_grants() {
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        for round in 0..400 {
            let requests = match round % 4 {
                0 => 1 + random.below(8),
                1 => 1 + random.below(64),
                2 => 65 + random.below(200),
                _ => 500 + random.below(700),
            };
            let rate = Rate {
                requests: u32::try_from(requests).unwrap(),
                window_ms: u32::try_from(1 + random.below(60_000)).unwrap(),
            };
            let beyond = if rate.requests <= EXACT_MAX { 0 } else { requests / 20 };
            let (mut log, mut granted, mut now_ms) = (Log::default(), Vec::new(), random.below(1 << 40));
            for _ in 0..4 * requests + 50 {
                // Floods, pauses of about the window's length, and everything between.
                now_ms += match random.below(6) {
                    0..=2 => 0,
                    3 => random.below(3),
                    4 => random.below(1 + 2 * u64::from(rate.window_ms) / requests),
                    _ => random.below(1 + u64::from(rate.window_ms)),
                };
                let held = u64::try_from(exactly(&granted, rate, now_ms)).unwrap();
                let is_granted = ask(&mut log, rate, now_ms).is_some();
                assert!(is_granted || held >= requests, "{rate:?}: refused below the limit, at {held}");
                assert!(
                    !is_granted || held < requests + beyond,
                    "{rate:?}: granted {} in one window",
                    held + 1
                );
                if is_granted {
                    granted.push(now_ms);
                }
                assert!(log.starts.len() <= EXACT_MAX as usize, "{rate:?}: {} entries", log.starts.len());
            }
        }
    }
}
