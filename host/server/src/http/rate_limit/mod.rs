//! Limits how often one principal may send requests. They are counted first: a request that is refused here reaches
//! neither the router nor a handler nor the database.
//!
//! Counts within the process, or in the Redis that several processes share. While Redis gives no answer, the routes
//! that take passwords refuse, and all other routes work without a limit.

mod memory;
mod principal;
mod routes;
mod shared;
mod window;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::response::Response;
use heddle_core::Timestamp;

use self::memory::Memory;
use self::principal::principal;
use self::routes::Class;
use crate::app::App;
use crate::cache::{Cache, CacheError, Link};
use crate::http::client::Client;
use crate::http::error::{Error, RateExceeded};
use crate::metrics::RateWindow;

pub(crate) use routes::Classes;
pub use window::Rate;

/// The rate of one address on the routes that take passwords. Fixed, so that no setting can raise it.
const AUTH_RATE: Rate = Rate::per_minute(5);
/// The message where a password could be tried without being counted.
pub const CLOSED: &str = "sign-in is not possible while requests cannot be counted; try again";
/// How often the log reports that limits cannot be counted.
const COMPLAINT_PERIOD_MS: i64 = 60_000;

/// A counter, and its permitted rate.
#[derive(Debug, Clone)]
pub struct Limit {
    /// Names the counter and its principal. It holds no secret, because it is written into the cache.
    pub key: String,
    pub rate: Rate,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// How many requests are left of each limit.
    Granted(Vec<u32>),
    /// Position of the first limit that is used up; nothing was counted.
    Exceeded(usize),
}

/// Whether the request is counted or only checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
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

    /// Counts one call of a route that has a limit of its own. One that cannot be counted is let through.
    pub(crate) async fn take_one(&self, app: &App, limit: Limit, window: RateWindow) -> Result<(), Error> {
        let now = app.clock.now();
        match self.take(&[limit], now).await {
            Ok(Verdict::Granted(_)) => Ok(()),
            Ok(Verdict::Exceeded(_)) => {
                app.metrics.rate_limited(window);
                Err(Error::RateLimited(RateExceeded::Minute))
            }
            Err(error) => {
                self.complain(&error, now);
                Ok(())
            }
        }
    }

    /// Logs that requests are not counted, at most once in a period: this happens at every request.
    fn complain(&self, error: &CacheError, now: Timestamp) {
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

/// The part of an answer that describes the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Allowance {
    limit: u32,
    remaining: u32,
}

impl Allowance {
    /// Adds the headers, only where the request succeeded.
    pub(super) fn tell(self, response: &mut Response) {
        if response.status().as_u16() < 400 {
            let headers = response.headers_mut();
            headers.insert("x-ratelimit-limit", HeaderValue::from(self.limit));
            headers.insert("x-ratelimit-remaining", HeaderValue::from(self.remaining));
        }
    }
}

/// The limits that count a request.
#[derive(Debug)]
pub(super) struct Demand {
    class: Class,
    /// The longest wait first: a client that has used up the minute gains nothing by trying again in a second.
    limits: Vec<Limit>,
}

impl Demand {
    /// `None` when the route is not limited.
    pub(super) fn of(app: &App, classes: &Classes, client: &Client, request: &Request) -> Option<Self> {
        let class = classes.class(request);
        if class == Class::Unlimited {
            return None;
        }
        let principal = principal(app, client, request.headers());
        let minute = Rate::per_minute(app.config.rate_limit_rpm);
        let second = Rate::per_second(app.config.rate_limit_burst);
        let mut limits = vec![
            Limit { key: format!("minute:{principal}"), rate: minute },
            Limit { key: format!("second:{principal}"), rate: second },
        ];
        if class == Class::Login {
            limits.insert(0, Limit { key: format!("auth:{}", client.network()), rate: AUTH_RATE });
        }
        Some(Self { class, limits })
    }

    /// Counts the request, or refuses it; `None` when it could not be counted and is let through.
    pub(super) async fn count(self, app: &App) -> Result<Option<Allowance>, Error> {
        let now = app.clock.now();
        match app.limiter.take(&self.limits, now).await {
            Ok(Verdict::Granted(left)) => {
                let first = self.limits.first().zip(left.first());
                Ok(first.map(|(limit, left)| Allowance { limit: limit.rate.requests, remaining: *left }))
            }
            Ok(Verdict::Exceeded(index)) => {
                let is_burst = index + 1 == self.limits.len();
                let window = match (is_burst, self.class) {
                    (true, _) => RateWindow::Burst,
                    (false, Class::Login) if index == 0 => RateWindow::Auth,
                    (false, _) => RateWindow::Minute,
                };
                app.metrics.rate_limited(window);
                Err(Error::RateLimited(if is_burst { RateExceeded::Burst } else { RateExceeded::Minute }))
            }
            Err(error) => {
                app.limiter.complain(&error, now);
                if self.class == Class::Login {
                    return Err(Error::Unavailable(CLOSED.to_owned()));
                }
                Ok(None)
            }
        }
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
