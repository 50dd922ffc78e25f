//! Login with a password, and the lock after repeated failures.
//!
//! An unknown name and a wrong password get the same answer, after a time that
//! is rounded up, and lock after as many failures: a client cannot tell them
//! apart. Failures of a known name are also in its organization's audit log;
//! those of an unknown name belong to no organization.

use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_core::event::format_time;
use heddle_core::name::fold;
use heddle_core::secret::Secret;
use heddle_kernel::app::App;
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::http::error::{Error, RateExceeded};
use heddle_kernel::http::extract::Origin;
use heddle_kernel::http::rate_limit::{CLOSED, Limit, Rate, Verdict};
use heddle_kernel::keys::keyed_hash;
use heddle_store::users::{self, Login, LoginState, User};
use heddle_store::{Tx, unknown_logins};
use serde_json::json;
use tokio::time::Instant;

use super::admission::{self, Admission, Way};
use super::security;
use crate::declarations::{ACCOUNT_LOCKED, MFA_FAILED};
use crate::outcomes;

/// Most characters of what a person logs in by: no user name and no email has more.
pub const LOGIN_CHARS_MAX: usize = 256;
/// Failures in a row that lock an account.
const FAILURES_MAX: i64 = 5;
/// Minutes that it stays locked.
const LOCK_MINUTES: i64 = 30;
/// Failures by one name, whether or not there were successes between them.
const FAILURE_RATE: Rate = Rate { requests: 20, window_ms: 300_000 };

/// A refused login is answered at a multiple of this time after it came.
///
/// It hides the small difference between the failures of known and of unknown names.
const REFUSAL_STEP_MS: u64 = 200;

const WRONG: Error = Error::Unauthenticated("login or password is not correct");

/// Authenticates a user by user name or email, and password.
pub async fn login(app: &App, origin: &Origin, name: &str, password: Secret) -> Result<Admission, Error> {
    let started = Instant::now();
    let result = prove(app, origin, name, password).await;
    outcomes::count(app, &result);
    if matches!(result, Err(Error::Unauthenticated(_) | Error::Locked { .. })) {
        pad(started).await?;
    }
    result
}

/// Waits until a refused login, of any kind, may be answered.
pub async fn pad(started: Instant) -> Result<(), Error> {
    let steps = started.elapsed().as_millis() / u128::from(REFUSAL_STEP_MS) + 1;
    let steps = u64::try_from(steps).map_err(Error::internal)?;
    tokio::time::sleep_until(started + Duration::from_millis(steps * REFUSAL_STEP_MS)).await;
    Ok(())
}

async fn prove(app: &App, origin: &Origin, name: &str, password: Secret) -> Result<Admission, Error> {
    let name = Name::of(app, name);
    name.refuse_flood(app).await?;
    let (known, locked_until) = name.find(app).await?;
    refuse_locked(locked_until, app.clock.now())?;
    let hash = known.as_ref().map_or_else(|| app.hashing.decoy(), |known| known.password_hash.clone());
    let fits = app.hashing.verify(password.clone(), hash).await?;
    if !fits || known.is_none() {
        name.count_failure(app).await?;
    }
    let Some(known) = known else { return Err(fail_unknown(app, &name).await?) };
    if fits
        && app.hashing.needs_rehash(&known.password_hash)
        && let Err(error) = rehash(app, &known, password.clone()).await
    {
        tracing::warn!(error = %error, user.id = %known.user.id, "a password keeps the hash of another cost until the next login");
    }
    let mut tx = app.db.write().await?;
    // Many attempts can happen between the first read and here; only those before the lock count.
    let mut current = users::lock_login(&mut tx, known.user.id).await?.ok_or(WRONG)?;
    refuse_locked(current.user.locked_until, app.clock.now())?;
    let mut fits = fits;
    if fits && current.password_hash != known.password_hash {
        // Another request renewed the hash or changed the password: the new hash counts.
        drop(tx);
        fits = app.hashing.verify(password, current.password_hash.clone()).await?;
        tx = app.db.write().await?;
        let judged = current.password_hash;
        current = users::lock_login(&mut tx, known.user.id).await?.ok_or(WRONG)?;
        refuse_locked(current.user.locked_until, app.clock.now())?;
        fits = fits && current.password_hash == judged;
    }
    if !fits {
        return Err(fail(tx, app, origin, &current.user, Step::Password, WRONG).await?);
    }
    admission::admit(tx, app, origin, current, Way::Password).await
}

/// The step at which a login failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Password,
    SecondFactor,
}

impl Step {
    fn as_str(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::SecondFactor => "second_factor",
        }
    }
}

/// A name as it was given, and the hash under which its failures are counted.
pub(super) struct Name {
    text: String,
    hash: String,
}

impl Name {
    pub(super) fn of(app: &App, text: &str) -> Self {
        let text = text.trim().to_owned();
        let hash = keyed_hash(&app.keys.login_name_key(), &Secret::new(fold(&text)));
        Self { text, hash }
    }

    /// The user of this name, and until when it is locked.
    async fn find(&self, app: &App) -> Result<(Option<Login>, Option<Timestamp>), Error> {
        let mut tx = app.db.read().await?;
        let known = users::find_by_login(&mut tx, &self.text).await?;
        // Read in either case, so that both cases take the same time.
        let unknown = unknown_logins::find(&mut tx, &self.hash).await?;
        let locked_until = match &known {
            Some(known) => known.user.locked_until,
            None => unknown.and_then(|state: LoginState| state.locked_until),
        };
        Ok((known, locked_until))
    }

    fn limit(&self) -> [Limit; 1] {
        [Limit { key: format!("failed-login:{}", self.hash), rate: FAILURE_RATE }]
    }

    /// Refuses with 429 after too many failures by this name, from any client.
    pub(super) async fn refuse_flood(&self, app: &App) -> Result<(), Error> {
        match app.limiter.look(&self.limit(), app.clock.now()).await {
            Ok(Verdict::Granted(_)) => Ok(()),
            Ok(Verdict::Exceeded(_)) => Err(Error::RateLimited(RateExceeded::Minute)),
            Err(_) => Err(Error::Unavailable(CLOSED.to_owned())),
        }
    }

    /// Counts a failure. Refuses with 429 if other attempts reached the limit meanwhile: of many attempts in parallel
    /// no more are answered than of attempts in sequence.
    pub(super) async fn count_failure(&self, app: &App) -> Result<(), Error> {
        match app.limiter.take(&self.limit(), app.clock.now()).await {
            Ok(Verdict::Granted(_)) => Ok(()),
            Ok(Verdict::Exceeded(_)) => Err(Error::RateLimited(RateExceeded::Minute)),
            Err(_) => Err(Error::Unavailable(CLOSED.to_owned())),
        }
    }
}

/// Replaces a hash of another cost by one of today's cost.
async fn rehash(app: &App, login: &Login, password: Secret) -> Result<(), Error> {
    let new_hash = app.hashing.hash(password).await?;
    let mut tx = app.db.write().await?;
    users::rehash(&mut tx, login.user.id, &login.password_hash, &new_hash).await?;
    tx.commit().await?;
    Ok(())
}

/// 423 while the lock lasts, whatever the password is.
pub(super) fn refuse_locked(until: Option<Timestamp>, now: Timestamp) -> Result<(), Error> {
    match until {
        Some(until) if until > now => Err(Error::Locked { minutes: (until - now).num_minutes() + 1 }),
        _ => Ok(()),
    }
}

/// Counts a failure of this user, and returns the error to answer: the lock, if one was set meanwhile. Commits the
/// transaction.
pub(super) async fn fail(
    mut tx: Tx,
    app: &App,
    origin: &Origin,
    user: &User,
    step: Step,
    answer: Error,
) -> Result<Error, Error> {
    let now = app.clock.now();
    let until = now + TimeDelta::minutes(LOCK_MINUTES);
    let state = users::record_failed_login(&mut tx, user.id, now, FAILURES_MAX, until).await?;
    let Some(state) = state else { return Ok(Error::Locked { minutes: LOCK_MINUTES }) };
    let is_locked = state.locked_until.is_some();
    let entry = NewEntry {
        org: user.org_id,
        actor: None,
        action: "user.login_failed",
        target: ("user", user.id.0),
        detail: json!({ "step": step.as_str(), "failures": state.failed_logins, "locked": is_locked }),
    };
    entry::record(&mut tx, app, origin, entry).await?;
    if step == Step::SecondFactor {
        let fields = json!({ "failures": state.failed_logins, "ip": origin.ip });
        security::record(&mut tx, &app.clock, MFA_FAILED, user, fields).await?;
    }
    if let Some(locked_until) = state.locked_until {
        let fields = json!({
            "step": step.as_str(),
            "failures": state.failed_logins,
            "locked_until": format_time(locked_until),
            "ip": origin.ip,
        });
        security::record(&mut tx, &app.clock, ACCOUNT_LOCKED, user, fields).await?;
    }
    tx.commit().await?;
    if is_locked {
        tracing::warn!(user.id = %user.id, "locked account of user {} after repeated failures", user.id);
    }
    Ok(answer)
}

async fn fail_unknown(app: &App, name: &Name) -> Result<Error, Error> {
    let now = app.clock.now();
    let until = now + TimeDelta::minutes(LOCK_MINUTES);
    let mut tx = app.db.write().await?;
    let state = unknown_logins::record_failed_login(&mut tx, &name.hash, now, FAILURES_MAX, until).await?;
    tx.commit().await?;
    Ok(if state.is_some() { WRONG } else { Error::Locked { minutes: LOCK_MINUTES } })
}
