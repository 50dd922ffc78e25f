//! Limits how often one principal may send requests. They are counted first: a request that is refused here reaches
//! neither the router nor a handler nor the database.
//!
//! Counts within the process, or in the Redis that several processes share. While Redis gives no answer, the routes
//! that take passwords refuse, and all other routes work without a limit.

pub(crate) mod limiter;
mod memory;
mod principal;
mod routes;
mod shared;
mod window;

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::response::Response;
pub use limiter::{Limit, Limiter, Verdict};
pub(crate) use routes::Classes;
pub use window::Rate;

use self::principal::principal;
use self::routes::Class;
use crate::app::App;
use crate::http::client::Client;
use crate::http::error::{Error, RateExceeded};
use crate::metrics::RateWindow;

/// The rate of one address on the routes that take passwords. Fixed, so that no setting can raise it.
const AUTH_RATE: Rate = Rate::per_minute(5);
/// The message where a password could be tried without being counted.
pub const CLOSED: &str = "sign-in is not possible while requests cannot be counted; try again";

/// Counts one call of a route that has a limit of its own. One that cannot be counted is let through.
pub async fn take_one(app: &App, limit: Limit, window: RateWindow) -> Result<(), Error> {
    let now = app.clock.now();
    match app.limiter.take(&[limit], now).await {
        Ok(Verdict::Granted(_)) => Ok(()),
        Ok(Verdict::Exceeded(_)) => {
            app.metrics.rate_limited(window);
            Err(Error::RateLimited(RateExceeded::Minute))
        }
        Err(error) => {
            app.limiter.complain(&error, now);
            Ok(())
        }
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
