//! Access tokens: JSON web tokens, HS256 and nothing else.
//!
//! A token only says which user and session it was made for. Whether those are
//! still good is read from the database with every request.

use std::sync::LazyLock;

use heddle_core::{OrgId, Role, Timestamp, UserId};
use heddle_store::sessions::SessionId;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::error::Error;

const AUDIENCE: &str = "svc-api";
/// Names the issuer (`iss`) of every token that this service signs. Kinds of tokens differ in their audience.
pub const ISSUER: &str = "svc";
/// The validation rules for an access token.
static ACCESS: LazyLock<Validation> = LazyLock::new(|| validation(AUDIENCE));

/// The claims of a token. Times are seconds since 1970.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claims {
    pub(crate) sub: UserId,
    pub(crate) org_id: OrgId,
    /// For clients to look at; never for a decision.
    pub(crate) role: Role,
    /// Version of the user's tokens; a bump invalidates all older ones.
    pub(crate) tv: i64,
    pub(crate) jti: Uuid,
    /// The session, by which one login is revoked.
    pub(crate) sid: SessionId,
    aud: String,
    iss: String,
    pub(crate) iat: i64,
    pub(crate) exp: i64,
}

/// The user and session that a token is made for.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    pub user: UserId,
    pub org: OrgId,
    pub role: Role,
    pub token_version: i64,
    pub session: SessionId,
}

impl Claims {
    /// Makes the claims of an access token that is valid from `now` for `lifetime_secs`, in whole seconds.
    /// `jti` is a new id for each token.
    pub fn new(subject: Subject, jti: Uuid, now: Timestamp, lifetime_secs: u32) -> Self {
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

/// Signs claims as a JSON web token with HS256. [`decode`] accepts it only with the claims `exp`, `aud`,
/// `iss` and `sub`. An error is a 500: the claims cannot be written as JSON.
pub fn sign<T: Serialize>(key: &[u8; 32], claims: &T) -> Result<String, Error> {
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &EncodingKey::from_secret(key))
        .map_err(Error::internal)
}

/// The claims of a token that this service signed and that has not expired.
pub(super) fn verify(key: &[u8; 32], token: &str, now: Timestamp) -> Result<Claims, Error> {
    let claims: Claims = decode(key, token, &ACCESS)?;
    refuse_expired(claims.exp, now)?;
    Ok(claims)
}

/// Returns the claims of a token that is signed with this key and fits the rules, else 401. An expired token
/// passes: the calling function has to call [`refuse_expired`].
pub fn decode<T: DeserializeOwned>(key: &[u8; 32], token: &str, validation: &Validation) -> Result<T, Error> {
    decode_as(key, token, validation).map_err(|_| Error::Unauthenticated("token is not valid"))
}

/// Returns the rules for [`decode`]: HS256 alone, this audience, and [`ISSUER`]. Each kind of token has an
/// audience of its own, so that none passes for another. The expiry is not among the rules.
pub fn validation(audience: &str) -> Validation {
    let mut validation = Validation::new(Algorithm::HS256);
    validation.set_audience(&[audience]);
    validation.set_issuer(&[ISSUER]);
    validation.set_required_spec_claims(&["exp", "aud", "iss", "sub"]);
    // The calling function checks it against the service's own clock.
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

/// Returns 401 once the time has reached `exp`, which is in seconds since 1970. No tolerance is added: the
/// clock that is compared is the one that set `exp`.
pub fn refuse_expired(exp: i64, now: Timestamp) -> Result<(), Error> {
    if exp <= now.timestamp() { Err(Error::Unauthenticated("token is expired")) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
