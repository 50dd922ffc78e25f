//! Access tokens: JSON web tokens, HS256 and nothing else.
//!
//! A token only says which user and session it was made for. Whether those are
//! still good is read from the database with every request.

use heddle_core::{OrgId, Role, SessionId, Timestamp, UserId};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::error::Error;

const AUDIENCE: &str = "svc-api";
const ISSUER: &str = "svc";

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

pub(super) fn sign(key: &[u8; 32], claims: &Claims) -> Result<String, Error> {
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &EncodingKey::from_secret(key))
        .map_err(Error::internal)
}

/// The claims of a token that this service signed and that has not expired.
pub(super) fn verify(key: &[u8; 32], token: &str, now: Timestamp) -> Result<Claims, Error> {
    let mut validation = Validation::new(Algorithm::HS256);
    validation.set_audience(&[AUDIENCE]);
    validation.set_issuer(&[ISSUER]);
    validation.set_required_spec_claims(&["exp", "aud", "iss", "sub"]);
    // Against the service's own clock, below.
    validation.validate_exp = false;
    let decoded = jsonwebtoken::decode::<Claims>(token, &DecodingKey::from_secret(key), &validation)
        .map_err(|_| Error::Unauthenticated("token is not valid"))?;
    if decoded.claims.exp <= now.timestamp() {
        return Err(Error::Unauthenticated("token is expired"));
    }
    Ok(decoded.claims)
}

#[cfg(test)]
mod tests;
