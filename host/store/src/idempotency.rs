//! What keyed requests created: found again when the request comes again.

use heddle_core::{Timestamp, UserId};
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::select::affected;

/// The answer of a request that created something.
#[derive(Clone, FromRow)]
pub struct Kept {
    pub user_id: UserId,
    pub idempotency_key: String,
    /// Method and path with its query.
    pub route: String,
    pub request_hash: String,
    pub location: String,
    /// The entity tag of what was created; empty where the answer had none.
    pub tag: String,
    /// Sealed by the server.
    pub response: Vec<u8>,
    pub created_at: Timestamp,
}

/// # Errors
/// [`crate::error::Error::Unique`] with `idempotency_pkey` when the key was used before.
pub async fn insert(tx: &mut Tx, new: &Kept) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO idempotency (user_id, idempotency_key, route, request_hash, location, tag, response, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
        )
        .bind(new.user_id)
        .bind(&new.idempotency_key)
        .bind(&new.route)
        .bind(&new.request_hash)
        .bind(&new.location)
        .bind(&new.tag)
        .bind(&new.response)
        .bind(new.created_at)
    );
    Ok(())
}

/// Returns what is kept of the user's request with this key, whatever its age, its route and its hash are.
/// The caller compares them. `None` means that nothing is kept under the key.
pub async fn find(tx: &mut Tx, user: UserId, key: &str) -> Result<Option<Kept>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT user_id, idempotency_key, route, request_hash, location, tag, response, created_at
        FROM idempotency
        WHERE user_id = $1 AND idempotency_key = $2")
        .bind(user).bind(key)
        .fetch_optional(conn)
        .await)?)
}

/// Forgets what was kept before this time, the oldest first; tells how many.
pub async fn trim(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM idempotency WHERE (user_id, idempotency_key) IN (
            SELECT user_id, idempotency_key FROM idempotency WHERE created_at < $1
            ORDER BY created_at, user_id, idempotency_key LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    ))
}

/// Forgets one key that was kept at this time, so that it can be used for something else.
pub async fn forget_one(tx: &mut Tx, user: UserId, key: &str, created_at: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "DELETE FROM idempotency WHERE user_id = $1 AND idempotency_key = $2 AND created_at = $3"
        )
        .bind(user)
        .bind(key)
        .bind(created_at)
    );
    Ok(rows == 1)
}

#[cfg(test)]
mod tests;
