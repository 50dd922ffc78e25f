//! Pauses before a version is installed by itself once more that could not be installed, through no fault of its own as far as
//! anything says: the machine was busy, or a file could not be fetched. It is never given up, and costs less and less.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use chrono::TimeDelta;
use heddle_core::Timestamp;

/// The first pause, in minutes. Each one is twice as long as the one before: a compilation takes a core for minutes.
const PAUSE_MIN_MINUTES: i64 = 10;
const PAUSE_MAX_MINUTES: i64 = 24 * 60;

/// The pauses of this process, by the SHA-256 of the manifest.
#[derive(Debug, Default)]
pub(crate) struct Retries(Mutex<BTreeMap<String, Pause>>);

#[derive(Debug)]
struct Pause {
    length: TimeDelta,
    since: Timestamp,
}

impl Retries {
    /// Whether this version is not tried again yet. A clock that was set back does not prolong a pause.
    pub(crate) fn last(&self, manifest_sha256: &str, now: Timestamp) -> bool {
        let pauses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pauses.get(manifest_sha256).is_some_and(|pause| {
            let age = now.signed_duration_since(pause.since);
            age >= TimeDelta::zero() && age < pause.length
        })
    }

    /// Begins the next pause of this version.
    pub(crate) fn prolong(&self, manifest_sha256: &str, now: Timestamp) {
        let mut pauses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = pauses.get(manifest_sha256).map(|pause| pause.length);
        let (first, most) = (TimeDelta::minutes(PAUSE_MIN_MINUTES), TimeDelta::minutes(PAUSE_MAX_MINUTES));
        let length = before.map_or(first, |length| (length * 2).min(most));
        pauses.insert(manifest_sha256.to_owned(), Pause { length, since: now });
    }

    /// Forgets the pauses of a version that was installed, or waits for consent.
    pub(crate) fn end(&self, manifest_sha256: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(manifest_sha256);
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn pauses_grow_up_to_a_day_and_are_of_one_version() {
        let (retries, begun) = (Retries::default(), Clock::default().now());
        let at = |minutes: i64| begun + TimeDelta::minutes(minutes);
        assert!(!retries.last("one", begun));
        retries.prolong("one", begun);
        assert!(retries.last("one", at(9)) && !retries.last("one", at(10)) && !retries.last("two", at(9)));
        retries.prolong("one", at(10));
        assert!(retries.last("one", at(29)) && !retries.last("one", at(30)));
        assert!(!retries.last("one", begun), "the clock was set back");
        for _ in 0..20 {
            retries.prolong("one", begun);
        }
        assert!(retries.last("one", at(24 * 60 - 1)) && !retries.last("one", at(24 * 60)));
        retries.end("one");
        assert!(!retries.last("one", begun));
    }
}
