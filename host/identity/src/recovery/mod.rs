//! How users get a new password: with the one they have, or by a link in a mail.
//!
//! The rules for a new password are in `password`; what administrators do with
//! the passwords of other users is in `tenancy::users`.

mod change;
mod page;
mod request;
mod reset;

use chrono::TimeDelta;
use heddle_core::event::NewEvent;
use heddle_core::name::fold;
use heddle_core::secret::{Secret, random_secret};
use heddle_core::{Timestamp, UserId};
use heddle_kernel::app::App;
use heddle_kernel::audit::entry::{self, NewEntry};
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;
use heddle_kernel::http::routes::Routes;
use heddle_kernel::keys::{Keys, keyed_hash};
use heddle_store::password_resets::NewPasswordReset;
use heddle_store::users::{self, Login, User, UserUpdate};
use heddle_store::{Scope, Tx, api_keys, events, password_resets, sessions};
pub(super) use page::{PATHS as PAGES, router as pages};
use serde_json::json;

use super::security;
use crate::declarations::{PASSWORD_CHANGED, USER_UPDATED};

/// How long a link is good.
pub const LINK_MINUTES: i64 = 60;

pub(super) fn routes() -> Routes {
    change::routes().merge(request::routes()).merge(reset::routes())
}

/// What was ended with an old password.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// The user's token version from now on.
    pub(crate) token_version: i64,
    pub(crate) sessions: u64,
    pub(crate) api_keys: u64,
}

/// How a user got a new password.
#[derive(Debug, Clone, Copy)]
pub enum Way {
    /// With the old password.
    Changed,
    /// By a link.
    Reset,
    /// From an administrator.
    Administrator,
}

impl Way {
    fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Reset => "reset_link",
            Self::Administrator => "administrator",
        }
    }

    fn action(self) -> &'static str {
        match self {
            Self::Changed => "user.password_changed",
            Self::Reset => "user.password_reset",
            Self::Administrator => USER_UPDATED.as_str(),
        }
    }
}

/// Appends the event that a user has a new password, and what ended with the old one.
pub async fn tell(
    tx: &mut Tx,
    app: &App,
    user: &User,
    actor: UserId,
    way: Way,
    ended: Ended,
) -> Result<(), Error> {
    let fields = json!({
        "actor_id": actor,
        "way": way.as_str(),
        "sessions_revoked": ended.sessions,
        "api_keys_revoked": ended.api_keys,
    });
    security::record(tx, &app.clock, PASSWORD_CHANGED, user, fields).await
}

/// Ends everything that an attacker with the old password may have made: sessions, API keys, and links to reset the
/// password.
pub async fn end_access(tx: &mut Tx, user: UserId, now: Timestamp) -> Result<Ended, Error> {
    let token_version = users::bump_token_version(tx, user, now).await?.ok_or(Error::NotFound("user"))?;
    let sessions = sessions::revoke_all(tx, user, now).await?;
    let api_keys = api_keys::revoke_all(tx, user, now).await?;
    password_resets::remove_all(tx, user).await?;
    Ok(Ended { token_version, sessions, api_keys })
}

/// Sets a user's new password, ends the access that the old one gave, and lifts a lock.
async fn renew(
    tx: &mut Tx,
    app: &App,
    origin: &Origin,
    user: &User,
    password_hash: String,
    way: Way,
) -> Result<Ended, Error> {
    let now = app.clock.now();
    let update = UserUpdate { password_hash: Some(password_hash), ..UserUpdate::default() };
    users::update(tx, &Scope::everything(), user.id, &update, now).await?.ok_or(Error::NotFound("user"))?;
    let ended = end_access(tx, user.id, now).await?;
    let entry = NewEntry {
        org: user.org_id,
        actor: Some(user.into()),
        action: way.action(),
        target: ("user", user.id.0),
        detail: json!({ "sessions_revoked": ended.sessions, "api_keys_revoked": ended.api_keys }),
    };
    entry::record(tx, app, origin, entry).await?;
    let event = NewEvent::of(
        USER_UPDATED,
        user.org_id,
        json!({
            "user_id": user.id,
            "username": user.username,
            "role": user.role,
            "actor_id": user.id,
            "changed": ["password"],
        }),
    );
    events::append(tx, &event, &app.clock).await?;
    tell(tx, app, user, user.id, way, ended).await?;
    Ok(ended)
}

/// Returns the hash of the user's state that a link is bound to. A change of the email or password makes the link
/// void, whichever user made it.
fn bound_to(keys: &Keys, login: &Login) -> String {
    let email = fold(&login.user.email);
    let state = Secret::new(format!("{}\n{email}\n{}", login.user.id, login.password_hash));
    keyed_hash(&keys.password_reset_key(), &state)
}

/// Makes a link by which this user can set a new password once, within an hour.
pub async fn new_link(
    tx: &mut Tx,
    keys: &Keys,
    base: &str,
    login: &Login,
    now: Timestamp,
) -> Result<Secret, heddle_store::Error> {
    let token = random_secret();
    let new = NewPasswordReset {
        token_hash: token_hash(keys, &token),
        user_id: login.user.id,
        bound_to: bound_to(keys, login),
        expires_at: now + TimeDelta::minutes(LINK_MINUTES),
        now,
    };
    password_resets::insert(tx, &new).await?;
    Ok(Secret::new(format!("{base}{}#token={}", PAGES[0], token.expose())))
}

/// Returns the hash under which a token is stored.
fn token_hash(keys: &Keys, token: &Secret) -> String {
    keyed_hash(&keys.password_reset_key(), token)
}
