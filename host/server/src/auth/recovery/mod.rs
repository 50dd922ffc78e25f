//! How people come to a new password: by the one they have, or by a link in a mail.
//!
//! What a new password is held against is in `password`; what administrators do
//! with the passwords of others is in `tenancy::users`.

mod change;
mod page;
mod request;
mod reset;

use heddle_core::event::{EventType, NewEvent};
use heddle_core::secret::Secret;
use heddle_core::{Timestamp, UserId};
use heddle_store::users::{self, Login, User, UserUpdate};
use heddle_store::{Scope, Tx, api_keys, events, password_resets, sessions};
use serde_json::json;

use super::trail::{self, Deed};
use crate::app::App;
use crate::http::error::Error;
use crate::http::extract::Origin;
use crate::http::routes::Routes;
use crate::keys::keyed_hash;

pub(crate) use page::{PATHS as PAGES, router as pages};

pub(super) fn routes() -> Routes {
    change::routes().merge(request::routes()).merge(reset::routes())
}

/// What was ended with an old password.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    /// The user's, from now on.
    pub(crate) token_version: i64,
    sessions: u64,
    api_keys: u64,
}

/// Ends whatever may have been made by somebody who should not have had the password: sessions, API keys, and links
/// to reset it.
pub(crate) async fn end_access(tx: &mut Tx, user: UserId, now: Timestamp) -> Result<Ended, Error> {
    let token_version = users::bump_token_version(tx, user, now).await?.ok_or(Error::NotFound("user"))?;
    let sessions = sessions::revoke_all(tx, user, now).await?;
    let api_keys = api_keys::revoke_all(tx, user, now).await?;
    password_resets::remove_all(tx, user).await?;
    Ok(Ended { token_version, sessions, api_keys })
}

/// Gives users their new password and ends what the old one gave; a lock is lifted. The outbox is to be woken after
/// the commit.
async fn renew(
    tx: &mut Tx,
    app: &App,
    origin: &Origin,
    user: &User,
    password_hash: String,
    action: &'static str,
) -> Result<Ended, Error> {
    let now = app.clock.now();
    let update = UserUpdate { password_hash: Some(password_hash), ..UserUpdate::default() };
    users::update(tx, &Scope::everything(), user.id, &update, now).await?.ok_or(Error::NotFound("user"))?;
    let ended = end_access(tx, user.id, now).await?;
    let deed = Deed {
        org: user.org_id,
        actor: Some(user.into()),
        action,
        target: ("user", user.id.0),
        detail: json!({ "sessions_revoked": ended.sessions, "api_keys_revoked": ended.api_keys }),
    };
    trail::record(tx, app, origin, deed).await?;
    let event = NewEvent {
        event_type: EventType::UserUpdated,
        org_id: user.org_id,
        site_id: None,
        controller_id: None,
        device_id: None,
        causation_id: None,
        run_id: None,
        payload: json!({
            "user_id": user.id,
            "username": user.username,
            "role": user.role,
            "actor_id": user.id,
            "changed": ["password"],
        }),
    };
    events::append(tx, &event, &app.clock).await?;
    Ok(ended)
}

/// What a link hangs on: with another email or password of the user it is void, whoever changed them.
fn bound_to(app: &App, login: &Login) -> String {
    let email = login.user.email.to_lowercase();
    let state = Secret::new(format!("{}\n{email}\n{}", login.user.id, login.password_hash));
    keyed_hash(&app.keys.password_reset_key(), &state)
}

/// Under what a token is stored.
fn token_hash(app: &App, token: &Secret) -> String {
    keyed_hash(&app.keys.password_reset_key(), token)
}
