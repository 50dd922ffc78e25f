//! Sessions: opened by a login, kept alive by single-use refresh tokens, ended by revocation.
//!
//! A refresh token that comes a second time is either a lost race between two
//! tabs or stolen; the time since it was spent tells which.

use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_core::event::format_time;
use heddle_core::secret::{Secret, random_secret};
use heddle_kernel::app::App;
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::caller::token::{self, Claims, Subject};
use heddle_kernel::caller::{Caller, REVOKED};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;
use heddle_kernel::keys::keyed_hash;
use heddle_store::Tx;
use heddle_store::sessions::{self, FoundSession, Matched, NewSession, Rotation, SessionId};
use heddle_store::users::{self, User};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{admission, security};
use crate::declarations::{REFRESH_REUSE, SignInSettings};

/// Seconds within which a spent refresh token is a lost race and not theft.
const RACE_SECS: i64 = 10;

const LOST_RACE: Error = Error::Unauthenticated("refresh token was already used");

/// The result of a login or a refresh.
#[derive(Serialize, JsonSchema)]
pub struct Tokens {
    pub(super) access_token: String,
    pub(super) refresh_token: String,
    token_type: &'static str,
    /// Seconds until the access token expires.
    expires_in: u32,
    #[serde(skip)]
    pub(super) session: SessionId,
}

/// Opens a session for a user who has just proved their identity.
pub async fn open(
    tx: &mut Tx,
    app: &App,
    origin: &Origin,
    user: &User,
    token_version: i64,
) -> Result<Tokens, Error> {
    let now = app.clock.now();
    let id: SessionId = app.clock.new_id();
    let refresh = random_secret();
    let new = NewSession {
        id,
        user_id: user.id,
        refresh_hash: keyed_hash(&app.keys.refresh_key(), &refresh),
        token_version,
        ip: origin.ip.clone(),
        user_agent: origin.user_agent.clone(),
        expires_at: refresh_expiry(app, now),
        now,
    };
    sessions::insert(tx, &new).await?;
    let subject = Subject { user: user.id, org: user.org_id, role: user.role, token_version, session: id };
    tokens(app, subject, &refresh)
}

/// Invalidates every token of the user, and opens a session for the client of this request.
///
/// `held` comes from [`heddle_kernel::caller::hold_caller`] in the same transaction.
pub(crate) async fn renew(tx: &mut Tx, app: &App, origin: &Origin, held: &User) -> Result<Tokens, Error> {
    let now = app.clock.now();
    let version = users::bump_token_version(tx, held.id, now).await?.ok_or(Error::NotFound("user"))?;
    sessions::revoke_all(tx, held.id, now).await?;
    open(tx, app, origin, held, version).await
}

fn refresh_expiry(app: &App, now: Timestamp) -> Timestamp {
    now + TimeDelta::days(i64::from(app.config.of::<SignInSettings>().refresh_token_days))
}

fn tokens(app: &App, subject: Subject, refresh: &Secret) -> Result<Tokens, Error> {
    let expires_in = app.config.of::<SignInSettings>().access_token_minutes.saturating_mul(60);
    let claims = Claims::new(subject, app.clock.new_id(), app.clock.now(), expires_in);
    Ok(Tokens {
        access_token: token::sign(&app.keys.token_key(), &claims)?,
        refresh_token: refresh.expose().to_owned(),
        token_type: "bearer",
        expires_in,
        session: subject.session,
    })
}

/// Spends a refresh token for a new pair. Of two requests that present it at once, one gets the pair.
pub(super) async fn refresh(app: &App, origin: &Origin, presented: &Secret) -> Result<Tokens, Error> {
    let now = app.clock.now();
    let key = app.keys.refresh_key();
    let old_hash = keyed_hash(&key, presented);
    // A request that lost a race learns that here, without making others wait.
    if let Some(at) = spent_at(app, &old_hash).await?
        && is_race(at, now)
    {
        return Err(LOST_RACE);
    }
    let mut tx = app.db.write().await?;
    let found = sessions::find_by_refresh_hash(&mut tx, &old_hash).await?;
    let found = found.ok_or(Error::Unauthenticated("refresh token is not valid"))?;
    if found.revoked_at.is_some() {
        return Err(REVOKED);
    }
    if let Matched::Spent(at) = found.matched {
        return if is_race(at, now) {
            Err(LOST_RACE)
        } else {
            Err(stolen(tx, app, origin, &found, at).await?)
        };
    }
    if found.session.expires_at <= now {
        return Err(Error::Unauthenticated("refresh token is expired"));
    }
    let login = users::find_login(&mut tx, found.session.user_id).await?.ok_or(REVOKED)?;
    if login.token_version != found.token_version {
        return Err(REVOKED);
    }
    admission::refuse_barred(&mut tx, &login.user).await?;
    let new = random_secret();
    let rotation = sessions::rotate(&mut tx, &old_hash, &keyed_hash(&key, &new), now).await?;
    let Rotation::Rotated(session) = rotation else { return Err(LOST_RACE) };
    sessions::extend(&mut tx, session.id, refresh_expiry(app, now)).await?;
    // Tokens that were spent before that time would have expired by now anyway.
    let lifetime = TimeDelta::days(i64::from(app.config.of::<SignInSettings>().refresh_token_days));
    sessions::forget_spent(&mut tx, now - lifetime).await?;
    let subject = Subject {
        user: login.user.id,
        org: login.user.org_id,
        role: login.user.role,
        token_version: login.token_version,
        session: session.id,
    };
    let tokens = tokens(app, subject, &new)?;
    tx.commit().await?;
    Ok(tokens)
}

async fn spent_at(app: &App, hash: &str) -> Result<Option<Timestamp>, Error> {
    let mut tx = app.db.read().await?;
    let found =
        sessions::find_by_refresh_hash(&mut tx, hash).await?.filter(|found| found.revoked_at.is_none());
    Ok(found.and_then(|found| match found.matched {
        Matched::Spent(at) => Some(at),
        Matched::Current => None,
    }))
}

/// Whether a token that was spent and presented at these times lost a race; otherwise it is stolen.
fn is_race(spent_at: Timestamp, presented_at: Timestamp) -> bool {
    presented_at - spent_at <= TimeDelta::seconds(RACE_SECS)
}

/// Ends the session of a refresh token that was presented again.
async fn stolen(
    mut tx: Tx,
    app: &App,
    origin: &Origin,
    found: &FoundSession,
    at: Timestamp,
) -> Result<Error, Error> {
    let session = &found.session;
    sessions::revoke(&mut tx, session.user_id, session.id, app.clock.now()).await?;
    if let Some(login) = users::find_login(&mut tx, session.user_id).await? {
        let entry = NewEntry {
            org: login.user.org_id,
            actor: None,
            action: REFRESH_REUSE.as_str(),
            target: ("session", session.id.0),
            detail: json!({ "user_id": session.user_id, "spent_at": at }),
        };
        entry::record(&mut tx, app, origin, entry).await?;
        let fields = json!({ "session_id": session.id, "spent_at": format_time(at), "ip": origin.ip });
        security::record(&mut tx, &app.clock, REFRESH_REUSE, &login.user, fields).await?;
    }
    tx.commit().await?;
    app.callers.forget();
    tracing::warn!(session.id = %session.id, "revoked session {}: its spent refresh token was used again", session.id);
    Ok(REVOKED)
}

/// Ends one of the caller's sessions; the action says how.
pub(super) async fn revoke(
    app: &App,
    caller: &Caller,
    origin: &Origin,
    id: SessionId,
    action: &'static str,
) -> Result<(), Error> {
    let mut tx = app.db.write().await?;
    if !sessions::revoke(&mut tx, caller.user_id, id, app.clock.now()).await? {
        return Err(Error::NotFound("session"));
    }
    let entry = NewEntry {
        org: caller.org_id,
        actor: caller.actor(),
        action,
        target: ("session", id.0),
        detail: json!({}),
    };
    entry::record(&mut tx, app, origin, entry).await?;
    tx.commit().await?;
    Ok(())
}

/// Invalidates every token of the caller.
pub(super) async fn revoke_all(app: &App, caller: &Caller, origin: &Origin) -> Result<(), Error> {
    let now = app.clock.now();
    let mut tx = app.db.write().await?;
    users::bump_token_version(&mut tx, caller.user_id, now).await?.ok_or(Error::NotFound("user"))?;
    let revoked = sessions::revoke_all(&mut tx, caller.user_id, now).await?;
    let entry = NewEntry {
        org: caller.org_id,
        actor: caller.actor(),
        action: "user.logout_all",
        target: ("user", caller.user_id.0),
        detail: json!({ "sessions_revoked": revoked }),
    };
    entry::record(&mut tx, app, origin, entry).await?;
    tx.commit().await?;
    Ok(())
}
