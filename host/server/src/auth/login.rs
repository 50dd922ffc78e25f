//! Login with a password, and the lock after repeated failures.
//!
//! An unknown name and a wrong password get the same answer, after a time that
//! is rounded up, so that one try does not tell them apart. Five tries do: only
//! the account of a known name is locked, and says so. Failures of a known name
//! are counted and in its organization's audit log; those of an unknown name
//! belong to no organization, and are neither counted nor recorded.

use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_core::secret::Secret;
use heddle_store::users::{self, Login, User};
use heddle_store::{Scope, Tx, organizations};
use serde_json::json;
use tokio::time::Instant;

use super::session::{self, Tokens};
use super::trail::{self, Deed};
use super::{inactive, password};
use crate::app::App;
use crate::http::error::Error;
use crate::http::extract::Origin;

/// Failures in a row that lock an account.
const FAILURES_MAX: i64 = 5;
/// Minutes that it stays locked.
const LOCK_MINUTES: i64 = 30;

/// A refused login is answered at a multiple of this time after it came.
///
/// It hides that only the failure of a known name is written to disk.
const REFUSAL_STEP_MS: u64 = 200;

const WRONG: Error = Error::Unauthenticated("login or password is not correct");

/// Proves who someone is by user name or email, and password; opens a session.
pub(super) async fn login(
    app: &App,
    origin: &Origin,
    name: &str,
    password: Secret,
) -> Result<(User, Tokens), Error> {
    let started = Instant::now();
    let result = prove(app, origin, name, password).await;
    app.metrics.login(&result);
    if matches!(result, Err(Error::Unauthenticated(_))) {
        let steps = started.elapsed().as_millis() / u128::from(REFUSAL_STEP_MS) + 1;
        let steps = u64::try_from(steps).map_err(Error::internal)?;
        tokio::time::sleep_until(started + Duration::from_millis(steps * REFUSAL_STEP_MS)).await;
    }
    result
}

async fn prove(app: &App, origin: &Origin, name: &str, password: Secret) -> Result<(User, Tokens), Error> {
    let known = find(app, name).await?;
    if let Some(known) = &known {
        refuse_locked(&known.user, app.clock.now())?;
    }
    let hash = known.as_ref().map_or(password::NOBODY, |known| &known.password_hash).to_owned();
    let fits = password::verify(password, hash).await?;
    let known = known.ok_or(WRONG)?;
    let mut tx = app.db.write().await?;
    // Many tries can be between the first look and here; only those before the lock count.
    let current = users::find_login(&mut tx, known.user.id).await?.ok_or(WRONG)?;
    refuse_locked(&current.user, app.clock.now())?;
    if fits && current.password_hash == known.password_hash {
        admit(tx, app, origin, current).await
    } else {
        fail(tx, app, origin, &current.user).await?;
        Err(WRONG)
    }
}

async fn find(app: &App, name: &str) -> Result<Option<Login>, Error> {
    let mut tx = app.db.read().await?;
    Ok(users::find_by_login(&mut tx, name.trim()).await?)
}

/// 423 while the lock lasts, whatever the password is.
fn refuse_locked(user: &User, now: Timestamp) -> Result<(), Error> {
    match user.locked_until {
        Some(until) if until > now => Err(Error::Locked { minutes: (until - now).num_minutes() + 1 }),
        _ => Ok(()),
    }
}

async fn admit(mut tx: Tx, app: &App, origin: &Origin, login: Login) -> Result<(User, Tokens), Error> {
    let now = app.clock.now();
    let user = login.user;
    organizations::find(&mut tx, &Scope::organization(user.org_id), user.org_id).await?.ok_or(WRONG)?;
    if !user.is_active {
        return Err(inactive());
    }
    users::record_login_success(&mut tx, user.id, now).await?;
    let tokens = session::open(&mut tx, app, origin, &user, login.token_version).await?;
    let deed = Deed {
        org: user.org_id,
        actor: Some((user.id, &user.username)),
        action: "user.login",
        target: ("user", user.id.0),
        detail: json!({}),
    };
    trail::record(&mut tx, app, origin, deed).await?;
    tx.commit().await?;
    Ok((user, tokens))
}

async fn fail(mut tx: Tx, app: &App, origin: &Origin, user: &User) -> Result<(), Error> {
    let now = app.clock.now();
    let until = now + TimeDelta::minutes(LOCK_MINUTES);
    let state = users::record_failed_login(&mut tx, user.id, now, FAILURES_MAX, until).await?;
    let is_locked = state.as_ref().is_some_and(|state| state.locked_until.is_some());
    let deed = Deed {
        org: user.org_id,
        actor: None,
        action: "user.login_failed",
        target: ("user", user.id.0),
        detail: json!({ "failures": state.map(|state| state.failed_logins), "locked": is_locked }),
    };
    trail::record(&mut tx, app, origin, deed).await?;
    tx.commit().await?;
    if is_locked {
        tracing::warn!(user.id = %user.id, "locked account of user {} after repeated failures", user.id);
    }
    Ok(())
}
