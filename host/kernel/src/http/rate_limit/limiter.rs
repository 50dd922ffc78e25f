//! Counts requests, in the process or in the cache that processes share.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use heddle_core::Timestamp;

use super::memory::Memory;
use super::shared;
use super::window::Rate;
use crate::cache::{Cache, CacheError, Link};

/// How often the log reports that limits cannot be counted.
const COMPLAINT_PERIOD_MS: i64 = 60_000;

/// A counter, and its permitted rate.
#[derive(Debug, Clone)]
pub struct Limit {
    /// Names the counter and its principal. It holds no secret, because it is written into the cache.
    pub key: String,
    pub rate: Rate,
}

/// Says whether one more request is within its limits. Numbers and positions follow the order of the limits
/// in the call. What is left does not include the request itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// How many requests are left of each limit.
    Granted(Vec<u32>),
    /// Position of the first limit that is used up; nothing was counted.
    Exceeded(usize),
}

/// Whether the request is counted or only checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    Take,
    Look,
}

/// Counts requests.
#[derive(Debug)]
pub struct Limiter {
    store: Store,
    complained_ms: AtomicI64,
}

#[derive(Debug)]
enum Store {
    Memory(Memory),
    Shared(Arc<Link>),
}

impl Limiter {
    /// Counts in the process, or in the Redis of the cache, where all processes that share it count together.
    /// Counts in the process are lost when it ends.
    pub fn new(cache: &Cache) -> Self {
        let store = match cache {
            Cache::Process => Store::Memory(Memory::default()),
            Cache::Redis(link) => Store::Shared(link.clone()),
        };
        Self { store, complained_ms: AtomicI64::new(i64::MIN) }
    }

    /// Counts one request against all of these limits, or against none when one of them is used up.
    ///
    /// `now` is the process's time; a shared cache goes by its own.
    pub async fn take(&self, limits: &[Limit], now: Timestamp) -> Result<Verdict, CacheError> {
        self.ask(Question::Take, limits, now).await
    }

    /// Whether one more request would be granted; counts nothing.
    pub async fn look(&self, limits: &[Limit], now: Timestamp) -> Result<Verdict, CacheError> {
        self.ask(Question::Look, limits, now).await
    }

    async fn ask(&self, question: Question, limits: &[Limit], now: Timestamp) -> Result<Verdict, CacheError> {
        match &self.store {
            Store::Memory(memory) => {
                let now_ms = u64::try_from(now.timestamp_millis()).unwrap_or_default();
                Ok(memory.ask(question, limits, now_ms))
            }
            Store::Shared(link) => shared::ask(link, question, limits).await,
        }
    }

    /// Logs that requests are not counted, at most once in a period: this happens at every request.
    pub(super) fn complain(&self, error: &CacheError, now: Timestamp) {
        if self.may_complain(now.timestamp_millis()) {
            tracing::warn!(
                error = %error,
                "rate limits cannot be counted: routes that take passwords refuse, all others go on without a limit"
            );
        }
    }

    /// True for one caller in each period.
    fn may_complain(&self, now_ms: i64) -> bool {
        let last_ms = self.complained_ms.load(Ordering::Relaxed);
        let is_due = now_ms < last_ms || last_ms.saturating_add(COMPLAINT_PERIOD_MS) <= now_ms;
        let swap = || {
            self.complained_ms.compare_exchange(last_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        is_due && swap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_is_down_is_told_once_a_minute() {
        let limiter = Limiter::new(&Cache::Process);
        let told: Vec<i64> =
            (1_000_000..1_200_000).step_by(100).filter(|now_ms| limiter.may_complain(*now_ms)).collect();
        assert_eq!(told, [1_000_000, 1_060_000, 1_120_000, 1_180_000]);
        assert!(limiter.may_complain(5), "a clock that went back does not silence it");
    }
}
