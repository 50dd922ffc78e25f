//! The caller: what proves it, and what it may do.
//!
//! The one place that decides which caller a request is from. It neither logs users in nor issues tokens.

pub mod api_key;
pub mod app_token;
pub mod cookies;
pub(crate) mod known;
pub(crate) mod rights;
pub mod token;

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use heddle_core::permission::KeyScope;
use heddle_core::secret::Secret;
use heddle_core::{Timestamp, UserId};
use heddle_store::sessions::SessionId;
use heddle_store::users::{self, Login};
use heddle_store::{Authenticated, CallingUser, Tx};
pub use rights::{Caller, Credential};
use sha2::{Digest as _, Sha256};

use self::known::{Known, Proof};
use self::token::Claims;
use crate::app::App;
use crate::http::error::Error;

const REQUIRED: Error = Error::Unauthenticated("authentication is required");
/// Answers 401 for a session that ended or was revoked, or whose user or organization is gone. The client
/// does not learn which of these it was.
pub const REVOKED: Error = Error::Unauthenticated("session is revoked");

const AMBIGUOUS: Error =
    Error::Unauthenticated("send one credential: either 'Authorization: Bearer' or 'X-API-Key'");

/// The caller that a request proves: by an access token, an API key, or a browser's cookie.
///
/// The one place that identifies the caller, for every channel of HTTP. A header
/// wins over the cookie, which a browser sends by itself.
pub async fn authenticate(app: &App, headers: &HeaderMap) -> Result<Caller, Error> {
    let bearer = headers.get(header::AUTHORIZATION);
    match (bearer, headers.get(api_key::HEADER)) {
        (Some(_), Some(_)) => Err(AMBIGUOUS),
        (Some(value), None) => {
            let (scheme, token) =
                value.to_str().ok().and_then(|text| text.split_once(' ')).ok_or(REQUIRED)?;
            if !scheme.eq_ignore_ascii_case("bearer") {
                return Err(REQUIRED);
            }
            match token.trim() {
                token if app_token::is_one(token) => app_token::authenticate(app, token).await,
                token => of_session(app, token).await,
            }
        }
        (None, Some(key)) => api_key::authenticate(app, key.to_str().map_err(|_| api_key::NOT_VALID)?).await,
        (None, None) => match cookies::access_token(headers) {
            Some(token) => of_session(app, &token).await,
            None => Err(REQUIRED),
        },
    }
}

/// Returns the caller of an access token, as the stored user was at most a moment ago.
async fn of_session(app: &App, token: &str) -> Result<Caller, Error> {
    let proof = Proof::Session(Sha256::digest(token).into());
    let verified = || async {
        let claims = token::verify(&app.keys.token_key(), token, app.clock.now())?;
        let known = load(app, Identity::of(&claims)).await?;
        Ok(Known { token_exp: Some(claims.exp), ..known })
    };
    let (known, now) = (app.callers.find(proof, verified).await?, app.clock.now());
    known.token_exp.map_or(Ok(()), |exp| token::refuse_expired(exp, now))?;
    if known.expires_at.is_some_and(|at| at <= now) {
        return Err(REVOKED);
    }
    Ok(known.caller.clone())
}

/// The user and session that a token was made for. It outlives the token: [`Holder::caller`] checks whether they are
/// still valid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    user: UserId,
    session: SessionId,
    token_version: i64,
}

impl Identity {
    fn of(claims: &Claims) -> Self {
        Self { user: claims.sub, session: claims.sid, token_version: claims.tv }
    }

    pub(crate) fn user(&self) -> UserId {
        self.user
    }
}

/// Returns the identity that an access token proves, if it has not expired. Does not read the database.
pub(crate) fn identify(app: &App, token: &str) -> Result<Identity, Error> {
    token::verify(&app.keys.token_key(), token, app.clock.now()).map(|claims| Identity::of(&claims))
}

/// The user or app behind a connection that stays open after its first request.
#[derive(Debug, Clone)]
pub(crate) enum Holder {
    Session(Identity),
    /// The hash of an app's access token: the connection ends with it.
    App(String),
}

impl Holder {
    /// Returns the holder of an access token of a session or of an app. Does not read the database.
    pub(crate) fn of(app: &App, token: &Secret) -> Result<Self, Error> {
        if app_token::is_one(token.expose()) {
            return Ok(Self::App(app_token::hash(app, token)));
        }
        identify(app, token.expose()).map(Self::Session)
    }

    /// The caller as the stored user and session, or token, are now.
    ///
    /// One query. The role is the stored one, whatever a token said.
    pub(crate) async fn caller(&self, app: &App) -> Result<Caller, Error> {
        let known = match self {
            Self::Session(identity) => load(app, *identity).await?,
            Self::App(hash) => app_token::load(app, hash).await?,
        };
        Ok(known.caller)
    }
}

async fn load(app: &App, identity: Identity) -> Result<Known, Error> {
    let mut tx = app.db.single().await?;
    let found = heddle_store::sessions::authenticate(&mut tx, identity.user, identity.session).await?;
    let found = found.ok_or(REVOKED)?;
    if identity.token_version != found.token_version {
        return Err(REVOKED);
    }
    refuse_ended(&found, app.clock.now())?;
    Ok(Known {
        expires_at: Some(found.expires_at),
        token_exp: None,
        caller: caller_of(found.user, Credential::Session(found.session_id), None),
    })
}

fn refuse_ended(found: &Authenticated, now: Timestamp) -> Result<(), Error> {
    let is_current = found.session_token_version == found.token_version;
    if !is_current || found.revoked_at.is_some() || found.expires_at <= now {
        return Err(REVOKED);
    }
    if found.user.is_active { Ok(()) } else { Err(inactive()) }
}

/// Locks and returns the caller's user, if their session is still good now. The lock lasts until the transaction ends.
///
/// Operations that give a session, a key or a second factor call it: what is known of a caller may be stale, and what
/// they give would outlive a session that has just ended.
pub async fn hold_caller(tx: &mut Tx, app: &App, caller: &Caller) -> Result<Login, Error> {
    let session = caller.session()?;
    let login = users::lock_login(tx, caller.user_id).await?.ok_or(REVOKED)?;
    let found = heddle_store::sessions::authenticate(tx, caller.user_id, session).await?.ok_or(REVOKED)?;
    refuse_ended(&found, app.clock.now())?;
    Ok(login)
}

/// Makes the caller that a credential of this user proves.
fn caller_of(user: CallingUser, credential: Credential, scopes: Option<Arc<[KeyScope]>>) -> Caller {
    Caller {
        sites: user.sites(),
        grants: user.grants.iter().map(|grant| (grant.site_id, grant.level)).collect(),
        user_id: user.id,
        username: user.username,
        org_id: user.org_id,
        role: user.role,
        credential,
        scopes,
    }
}

/// Makes the 403 `inactive_user` of a disabled account. It may be answered only after the credential has been
/// verified, because it shows that the account exists.
pub fn inactive() -> Error {
    Error::Refused { kind: "inactive_user", message: "account is disabled; ask an administrator".to_owned() }
}
