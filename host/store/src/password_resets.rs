//! Links by which users set a new password, by the hash of their token.
//!
//! Knows no token, only hashes; what a link is bound to is the caller's rule.

use heddle_core::{Timestamp, UserId};
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::select::affected;

/// A row of `password_reset` about to be written. `token_hash` is a keyed hash; the token is not stored.
/// `bound_to` is a hash of what must stay the same until the link is used.
#[derive(Clone)]
pub struct NewPasswordReset {
    pub token_hash: String,
    pub user_id: UserId,
    pub bound_to: String,
    pub expires_at: Timestamp,
    pub now: Timestamp,
}

/// A link that is still good, as far as time goes.
#[derive(Clone, PartialEq, Eq, FromRow)]
pub struct PasswordReset {
    pub user_id: UserId,
    /// What must not have changed since.
    pub bound_to: String,
}

/// Writes a link. Other links of the same user stay valid.
pub async fn insert(tx: &mut Tx, new: &NewPasswordReset) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO password_reset (token_hash, user_id, bound_to, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5)"
        )
        .bind(&new.token_hash)
        .bind(new.user_id)
        .bind(&new.bound_to)
        .bind(new.now)
        .bind(new.expires_at)
    );
    Ok(())
}

/// Returns a link that has not expired, and does not spend it. The caller checks what it is bound to.
/// `None` means that the link is spent, expired or unknown.
pub async fn find(tx: &mut Tx, token_hash: &str, now: Timestamp) -> Result<Option<PasswordReset>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT user_id, bound_to FROM password_reset WHERE token_hash = $1 AND expires_at > $2")
        .bind(token_hash).bind(now)
        .fetch_optional(conn)
        .await)?)
}

/// Spends a link. Of several who come with it at once, one gets it.
pub async fn take(tx: &mut Tx, token_hash: &str, now: Timestamp) -> Result<Option<PasswordReset>> {
    Ok(on!(tx, conn => sqlx::query_as("
        DELETE FROM password_reset WHERE token_hash = $1 AND expires_at > $2
        RETURNING user_id, bound_to")
        .bind(token_hash).bind(now)
        .fetch_optional(conn)
        .await)?)
}

/// Forgets all links of the user; tells how many.
pub async fn remove_all(tx: &mut Tx, user: UserId) -> Result<u64> {
    Ok(affected!(tx, sqlx::query("DELETE FROM password_reset WHERE user_id = $1").bind(user)))
}

/// Forgets links that expired before this time, up to a number; tells how many.
pub async fn trim(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM password_reset WHERE token_hash IN (
            SELECT token_hash FROM password_reset WHERE expires_at < $1
            ORDER BY expires_at, token_hash LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    ))
}

#[cfg(test)]
mod tests;
