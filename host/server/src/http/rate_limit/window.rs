//! The sliding window: requests of this bucket of time, and of the one before it for the part of it that the window
//! still covers. Pure; [`super::shared`] states the same in Lua.

/// How many requests are granted in any time of this length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub requests: u32,
    pub window_ms: u32,
}

impl Rate {
    pub const fn per_second(requests: u32) -> Self {
        Self { requests, window_ms: 1_000 }
    }

    pub const fn per_minute(requests: u32) -> Self {
        Self { requests, window_ms: 60_000 }
    }

    pub const fn per_hour(requests: u32) -> Self {
        Self { requests, window_ms: 3_600_000 }
    }
}

/// What was granted to one principal in the bucket of its last request and in the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counter {
    bucket: u64,
    current: u32,
    previous: u32,
}

impl Counter {
    /// The counter with one more request at this time, and how many more would be granted; `None` when this one is not.
    ///
    /// `now_ms` counts from any fixed instant. A clock that went back starts the window anew: nobody is locked out
    /// until it has caught up.
    pub(super) fn with_one_more(self, rate: Rate, now_ms: u64) -> Option<(Self, u32)> {
        let window = u64::from(rate.window_ms);
        let mut counter = self.moved_to(now_ms / window);
        let rest = window - now_ms % window;
        let allowed = u64::from(rate.requests) * window;
        let used = u64::from(counter.previous) * rest + (u64::from(counter.current) + 1) * window;
        let left = allowed.checked_sub(used)? / window;
        counter.current += 1;
        Some((counter, u32::try_from(left).unwrap_or(u32::MAX)))
    }

    fn moved_to(self, bucket: u64) -> Self {
        match bucket.checked_sub(self.bucket) {
            Some(0) => self,
            Some(1) => Self { bucket, current: 0, previous: self.current },
            _ => Self { bucket, current: 0, previous: 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE: Rate = Rate::per_minute(5);

    /// Sends at these seconds; answers which were granted, with what was left.
    fn outcomes(rate: Rate, seconds: &[u64]) -> Vec<Option<u32>> {
        let mut counter = Counter::default();
        let mut send = |second: &u64| {
            let (next, left) = counter.with_one_more(rate, second * 1_000)?;
            counter = next;
            Some(left)
        };
        seconds.iter().map(&mut send).collect()
    }

    #[test]
    fn so_many_are_granted_as_the_rate_says_and_the_next_is_not() {
        let at_once = outcomes(FIVE, &[600; 6]);
        assert_eq!(at_once, [Some(4), Some(3), Some(2), Some(1), Some(0), None]);
    }

    #[test]
    fn what_was_granted_falls_out_of_the_window_bit_by_bit() {
        // Five at the end of a bucket, which begins at 600 s: of them 5 * 47/60 still count 13 s into the next one.
        let mut seconds = vec![659; 5];
        seconds.extend([660, 671, 672, 673, 683, 684, 684]);
        let outcomes = outcomes(FIVE, &seconds);
        assert_eq!(outcomes[4], Some(0), "five are granted");
        assert_eq!(outcomes[5..], [None, None, Some(0), None, None, Some(0), None]);
    }

    #[test]
    fn what_was_refused_is_not_counted() {
        let mut seconds = vec![600; 50];
        seconds.push(720);
        assert_eq!(outcomes(FIVE, &seconds).last(), Some(&Some(4)));
    }

    #[test]
    fn a_clock_that_went_back_starts_the_window_anew() {
        assert_eq!(outcomes(Rate::per_minute(1), &[600, 600, 100, 100]), [Some(0), None, Some(0), None]);
    }

    #[test]
    fn no_setting_overflows() {
        let most = Rate::per_minute(u32::MAX);
        let full = Counter { bucket: 10, current: u32::MAX - 1, previous: 0 };
        let (full, left) = full.with_one_more(most, 600_000).expect("one is left");
        assert_eq!((full.current, left), (u32::MAX, 0));
        assert_eq!(full.with_one_more(most, 600_000), None);
        assert_eq!(full.with_one_more(most, 660_000), None);
    }

    /// In no window of time is more than twice the rate granted, and in the long run not more than the rate.
    #[test]
    fn a_flood_gets_the_rate_and_no_more() {
        for (requests, step_ms) in [(1, 7), (5, 333), (120, 1), (600, 50), (7, 9_999)] {
            let rate = Rate::per_second(requests);
            let mut counter = Counter::default();
            let mut granted = Vec::new();
            for now_ms in (50_000..90_000).step_by(step_ms) {
                if let Some((next, left)) = counter.with_one_more(rate, now_ms) {
                    counter = next;
                    granted.push(now_ms);
                    assert!(left < requests);
                }
            }
            let most = granted
                .iter()
                .map(|start| granted.iter().filter(|at| (*start..start + 1_000).contains(*at)).count());
            assert!(most.max() <= Some(2 * requests as usize), "{requests} each {step_ms} ms");
            assert!(
                granted.len() <= 41 * requests as usize,
                "{requests} each {step_ms} ms: {}",
                granted.len()
            );
        }
    }
}
