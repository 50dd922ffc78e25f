//! How long a channel waits before it is opened again. Pure.

use std::time::{Duration, Instant};

use heddle_runtime::{Ended, Retry, Whose};

const FIRST: Duration = Duration::from_secs(1);
/// Longest wait, and the one behind a refused login or certificate: more attempts could lock an account.
const LONGEST: Duration = Duration::from_mins(5);
/// A channel that was open for so long begins with the shortest wait again.
const LASTED: Duration = Duration::from_mins(1);
/// How long nothing is tried that only another package, release or setting can change.
const UNSUPPORTED: Duration = Duration::from_hours(24);
/// Messages that are too large within [`TOO_LARGE_WITHIN`] until the channel rests.
const TOO_LARGE_MAX: usize = 3;
const TOO_LARGE_WITHIN: Duration = Duration::from_mins(10);
const TOO_LARGE_REST: Duration = Duration::from_hours(1);

/// The attempts of one channel.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    /// When a message was too large, the latest last.
    too_large: Vec<Instant>,
}

/// How often the channels of one controller were begun, because something that they depend on had changed.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    last: Option<Instant>,
    wait: Duration,
}

impl Pace {
    /// How long channels wait that begin now: not at all, and longer each time that others began a short time before. A
    /// controller whose version changes back and forth is not asked each second.
    pub(crate) fn begins(&mut self, now: Instant) -> Duration {
        let is_again = self.last.is_some_and(|last| now < last + self.wait + LASTED);
        self.wait = if is_again { (self.wait * 2).clamp(FIRST, LASTED) } else { Duration::ZERO };
        self.last = Some(now);
        self.wait
    }
}

/// What is done after a channel ended or could not be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) time: Duration,
    /// Whether it is of no use to wait for it: changes are seen at the interval from now on.
    pub(crate) is_given_up: bool,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: FIRST, too_large: Vec::new() }
    }
}

impl Backoff {
    /// What follows an end of a channel that was open for so long (not at all: `None`). `spread` makes channels that ended
    /// together begin apart: by up to a fifth.
    pub(crate) fn after(
        &mut self,
        ended: &Ended,
        open_for: Option<Duration>,
        now: Instant,
        spread: u64,
    ) -> Wait {
        if open_for.is_some_and(|open| open >= LASTED) {
            self.next = FIRST;
        }
        if *ended == Ended::TooLarge && self.is_too_often(now) {
            return Wait { time: TOO_LARGE_REST, is_given_up: true };
        }
        let retry = retry(ended);
        let (time, is_given_up) = match retry {
            // What changes all the time is not asked for all the time.
            Retry::Now => (FIRST, false),
            Retry::Soon => (self.next, false),
            Retry::Late => (LONGEST, true),
            Retry::Changed => (UNSUPPORTED, true),
        };
        if retry == Retry::Soon {
            self.next = (self.next * 2).min(LONGEST);
        }
        let part = u32::try_from(spread % 201).unwrap_or_default();
        Wait { time: time + time * part / 1_000, is_given_up }
    }

    fn is_too_often(&mut self, now: Instant) -> bool {
        self.too_large.retain(|at| now.saturating_duration_since(*at) < TOO_LARGE_WITHIN);
        self.too_large.push(now);
        self.too_large.len() >= TOO_LARGE_MAX
    }
}

/// When it is worth opening a channel again. The places of a controller are free soon: they are those of its channels of before,
/// which are being closed.
fn retry(ended: &Ended) -> Retry {
    match ended {
        Ended::NoPlace { whose: Whose::Controller, .. } => Retry::Soon,
        other => other.retry(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_waits_longer_each_time_until_it_was_open_for_a_minute() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        let mut secs = |open: Option<u64>| {
            let wait = backoff.after(&Ended::Closed, open.map(Duration::from_secs), now, 0);
            assert!(!wait.is_given_up);
            wait.time.as_secs()
        };
        let waits: Vec<u64> = (0..10).map(|_| secs(None)).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
        assert_eq!((secs(Some(59)), secs(Some(60)), secs(None)), (300, 1, 2));
    }

    #[test]
    fn what_only_a_change_resolves_is_not_tried_again_soon() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        let mut after = |ended: &Ended| backoff.after(ended, None, now, 0);
        let refused = after(&Ended::Refused("no".to_owned()));
        assert_eq!((refused.time.as_secs(), refused.is_given_up), (300, true));
        let unsupported = after(&Ended::Unsupported { status: 404 });
        assert_eq!((unsupported.time, unsupported.is_given_up), (UNSUPPORTED, true));
        assert_eq!(after(&Ended::Changed), Wait { time: FIRST, is_given_up: false });
        let full = |whose| Ended::NoPlace { whose, most: 32 };
        assert!(after(&full(Whose::Organization)).is_given_up);
        assert_eq!(after(&Ended::Closed).time, FIRST, "these were no attempts that failed");
        let own = after(&full(Whose::Controller));
        assert!(own.time < LONGEST && !own.is_given_up, "its channels of before are being closed");
    }

    #[test]
    fn channels_that_begin_again_and_again_wait() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        let mut secs = |at| pace.begins(now + Duration::from_secs(at)).as_secs();
        let waits: Vec<u64> = (0..9).map(&mut secs).collect();
        assert_eq!(waits, [0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!((secs(127), secs(248)), (60, 0), "they lasted");
    }

    #[test]
    fn channels_that_ended_together_begin_apart() {
        for (spread, millis) in [(0, 1_000), (100, 1_100), (200, 1_200), (201, 1_000)] {
            let wait = Backoff::default().after(&Ended::Closed, None, Instant::now(), spread);
            assert_eq!(wait.time.as_millis(), millis, "{spread}");
        }
    }

    #[test]
    fn large_messages_end_a_channel_for_an_hour() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        let mut after = |mins| backoff.after(&Ended::TooLarge, None, now + Duration::from_mins(mins), 0);
        assert!(!after(0).is_given_up && !after(9).is_given_up);
        assert!(!after(11).is_given_up, "the first one is long ago");
        assert_eq!(after(12), Wait { time: TOO_LARGE_REST, is_given_up: true });
    }
}
