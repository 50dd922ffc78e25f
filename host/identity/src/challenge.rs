//! Tokens that prove the first of two factors.

use std::sync::LazyLock;

use heddle_core::{Timestamp, UserId};
use heddle_kernel::app::App;
use heddle_kernel::caller::token::{ISSUER, decode, refuse_expired, sign, validation};
use heddle_kernel::http::error::Error;
use heddle_store::users::User;
use jsonwebtoken::Validation;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::admission::Way;

/// The audience of these tokens; no route accepts them as access tokens.
const AUDIENCE: &str = "svc-mfa";
/// The validation rules for such a token.
static CHALLENGE: LazyLock<Validation> = LazyLock::new(|| validation(AUDIENCE));

/// The claims of a token that proves the first of two factors.
#[derive(Debug, Serialize, Deserialize)]
struct ChallengeClaims {
    sub: UserId,
    tv: i64,
    way: Way,
    jti: Uuid,
    aud: String,
    iss: String,
    iat: i64,
    exp: i64,
}

/// A user who has proved the first factor, and the way in which they did.
#[derive(Debug, Clone, Copy)]
pub(super) struct Challenged {
    pub(super) user: UserId,
    pub(super) token_version: i64,
    pub(super) way: Way,
    /// Id of the proof. The session that it opens spends it.
    pub(super) id: Uuid,
    pub(super) expires_at: Timestamp,
}

pub(super) fn sign_challenge(
    app: &App,
    user: &User,
    token_version: i64,
    way: Way,
    lifetime_secs: u32,
) -> Result<String, Error> {
    let now = app.clock.now().timestamp();
    let claims = ChallengeClaims {
        sub: user.id,
        tv: token_version,
        way,
        jti: app.clock.new_id(),
        aud: AUDIENCE.to_owned(),
        iss: ISSUER.to_owned(),
        iat: now,
        exp: now + i64::from(lifetime_secs),
    };
    sign(&app.keys.token_key(), &claims)
}

pub(super) fn verify_challenge(app: &App, token: &str) -> Result<Challenged, Error> {
    let claims: ChallengeClaims = decode(&app.keys.token_key(), token, &CHALLENGE)?;
    refuse_expired(claims.exp, app.clock.now())?;
    let expires_at =
        Timestamp::from_timestamp(claims.exp, 0).ok_or(Error::Unauthenticated("token is not valid"))?;
    Ok(Challenged { user: claims.sub, token_version: claims.tv, way: claims.way, id: claims.jti, expires_at })
}
