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
    authenticate_token(app, token.trim()).await
}

/// The caller that an access token proves, from the stored user and session.
///
/// One query. The role is the stored one, whatever the token says.
pub(crate) async fn authenticate_token(app: &App, token: &str) -> Result<Caller, Error> {
    let now = app.clock.now();
    let claims = token::verify(&app.keys.token_key(), token, now)?;
    let mut tx = app.db.read().await?;
    let found = heddle_store::sessions::authenticate(&mut tx, claims.sub, claims.sid).await?;
    let found = found.ok_or(REVOKED)?;
    let is_current = claims.tv == found.token_version && found.session_token_version == found.token_version;
    if !is_current || found.revoked_at.is_some() || found.expires_at <= now {
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
