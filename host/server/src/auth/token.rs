//! Access tokens: JSON web tokens, HS256 and nothing else.
//!
//! A token only says which user and session it was made for. Whether those are
//! still good is read from the database with every request.

use std::sync::LazyLock;

use heddle_core::{OrgId, Role, SessionId, Timestamp, UserId};
use heddle_store::users::User;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::admission::Way;
use crate::app::App;
use crate::http::error::Error;

const AUDIENCE: &str = "svc-api";
/// Of tokens that only prove the first of two factors: no route takes them for an access token.
const CHALLENGE_AUDIENCE: &str = "svc-mfa";
const ISSUER: &str = "svc";
/// What is asked of the tokens of either audience.
static ACCESS: LazyLock<Validation> = LazyLock::new(|| validation(AUDIENCE));
static CHALLENGE: LazyLock<Validation> = LazyLock::new(|| validation(CHALLENGE_AUDIENCE));

/// What a token says. Times are seconds since 1970.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Claims {
    pub(super) sub: UserId,
    pub(super) org_id: OrgId,
    /// For clients to look at; never for a decision.
    pub(super) role: Role,
    /// Version of the user's tokens; a bump makes all older ones worthless.
    pub(super) tv: i64,
    pub(super) jti: Uuid,
    /// The session, by which one login is revoked.
    pub(super) sid: SessionId,
    aud: String,
    iss: String,
    pub(super) iat: i64,
    pub(super) exp: i64,
}

/// Whom a token is made for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject {
    pub(super) user: UserId,
    pub(super) org: OrgId,
    pub(super) role: Role,
    pub(super) token_version: i64,
    pub(super) session: SessionId,
}

impl Claims {
    pub(super) fn new(subject: Subject, jti: Uuid, now: Timestamp, lifetime_secs: u32) -> Self {
        Self {
            sub: subject.user,
            org_id: subject.org,
            role: subject.role,
            tv: subject.token_version,
            jti,
            sid: subject.session,
            aud: AUDIENCE.to_owned(),
            iss: ISSUER.to_owned(),
            iat: now.timestamp(),
            exp: now.timestamp() + i64::from(lifetime_secs),
        }
    }
}

/// What a token says that proves the first of two factors.
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

/// Who has proved the first factor, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Challenged {
    pub(super) user: UserId,
    pub(super) token_version: i64,
    pub(super) way: Way,
    /// Names the proof, which is spent by the session that it opens.
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
        aud: CHALLENGE_AUDIENCE.to_owned(),
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

pub(super) fn sign<T: Serialize>(key: &[u8; 32], claims: &T) -> Result<String, Error> {
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &EncodingKey::from_secret(key))
        .map_err(Error::internal)
}

/// The claims of a token that this service signed and that has not expired.
pub(super) fn verify(key: &[u8; 32], token: &str, now: Timestamp) -> Result<Claims, Error> {
    let claims: Claims = decode(key, token, &ACCESS)?;
    refuse_expired(claims.exp, now)?;
    Ok(claims)
}

fn decode<T: DeserializeOwned>(key: &[u8; 32], token: &str, validation: &Validation) -> Result<T, Error> {
    decode_as(key, token, validation).map_err(|_| Error::Unauthenticated("token is not valid"))
}

fn validation(audience: &str) -> Validation {
    let mut validation = Validation::new(Algorithm::HS256);
    validation.set_audience(&[audience]);
    validation.set_issuer(&[ISSUER]);
    validation.set_required_spec_claims(&["exp", "aud", "iss", "sub"]);
    // Against the service's own clock, by the caller.
    validation.validate_exp = false;
    validation
}

fn decode_as<T: DeserializeOwned>(
    key: &[u8],
    token: &str,
    validation: &Validation,
) -> jsonwebtoken::errors::Result<T> {
    jsonwebtoken::decode::<T>(token, &DecodingKey::from_secret(key), validation).map(|decoded| decoded.claims)
}

pub(super) fn refuse_expired(exp: i64, now: Timestamp) -> Result<(), Error> {
    if exp <= now.timestamp() { Err(Error::Unauthenticated("token is expired")) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
