//! Who is calling: passwords, access tokens, sessions.
//!
//! Decides who a request is from, never what it may do: that is declared with
//! the route.

mod caller;
mod login;
pub(crate) mod password;
mod routes;
pub(crate) mod session;
mod token;
pub(crate) mod trail;

use axum::http::{HeaderMap, header};
use heddle_core::{SessionId, UserId};

pub use caller::Caller;
pub(crate) use routes::routes;

use crate::app::App;
use crate::http::error::Error;

const REQUIRED: Error = Error::Unauthenticated("authentication is required");
const REVOKED: Error = Error::Unauthenticated("session is revoked");

/// The caller that a request's `Authorization: Bearer` header proves.
pub(crate) async fn authenticate(app: &App, headers: &HeaderMap) -> Result<Caller, Error> {
    let value = headers.get(header::AUTHORIZATION).ok_or(REQUIRED)?.to_str().map_err(|_| REQUIRED)?;
    let (scheme, token) = value.split_once(' ').ok_or(REQUIRED)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(REQUIRED);
    }
    let identity = identify(app, token.trim())?;
    recheck(app, identity).await
}

/// Whom a token was made for. It outlives the token: what is still good is asked with [`recheck`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    user: UserId,
    session: SessionId,
    token_version: i64,
}

impl Identity {
    pub(crate) fn user(&self) -> UserId {
        self.user
    }
}

/// Whom an access token that has not expired proves. Asks no database.
pub(crate) fn identify(app: &App, token: &str) -> Result<Identity, Error> {
    let claims = token::verify(&app.keys.token_key(), token, app.clock.now())?;
    Ok(Identity { user: claims.sub, session: claims.sid, token_version: claims.tv })
}

/// The caller as the stored user and session are now.
///
/// One query. The role is the stored one, whatever a token said.
pub(crate) async fn recheck(app: &App, identity: Identity) -> Result<Caller, Error> {
    let mut tx = app.db.read().await?;
    let found = heddle_store::sessions::authenticate(&mut tx, identity.user, identity.session).await?;
    let found = found.ok_or(REVOKED)?;
    let is_current =
        identity.token_version == found.token_version && found.session_token_version == found.token_version;
    if !is_current || found.revoked_at.is_some() || found.expires_at <= app.clock.now() {
        return Err(REVOKED);
    }
    if !found.is_active {
        return Err(inactive());
    }
    Ok(Caller {
        sites: found.sites(),
        user_id: found.user_id,
        username: found.username,
        org_id: found.org_id,
        role: found.role,
        session_id: found.session_id,
    })
}

fn inactive() -> Error {
    Error::Refused { kind: "inactive_user", message: "account is disabled; ask an administrator".to_owned() }
}
