//! Failed logins with names that no user has. They lock like those of users, so that a lock does not tell which users
//! exist.

use heddle_core::Timestamp;

use crate::db::Tx;
use crate::error::Result;
use crate::select::affected;
use crate::users::LoginState;

/// Where a name stands; nothing is kept of one that never failed.
pub async fn find(tx: &mut Tx, name_hash: &str) -> Result<Option<LoginState>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT failed_logins, locked_until FROM unknown_login WHERE name_hash = $1")
        .bind(name_hash)
        .fetch_optional(conn)
        .await)?)
}

/// Counts a failed login as [`crate::users::record_failed_login`] does; `None` while the name is locked.
pub async fn record_failed_login(
    tx: &mut Tx,
    name_hash: &str,
    now: Timestamp,
    lock_after: i64,
    locked_until: Timestamp,
) -> Result<Option<LoginState>> {
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO unknown_login (name_hash, failed_logins, locked_until, updated_at)
        VALUES ($1, 1, CASE WHEN $3 <= 1 THEN $4 ELSE NULL END, $2)
        ON CONFLICT (name_hash) DO UPDATE SET
            failed_logins = CASE WHEN unknown_login.locked_until <= $2 THEN 1
                ELSE unknown_login.failed_logins + 1 END,
            locked_until = CASE
                WHEN (CASE WHEN unknown_login.locked_until <= $2 THEN 1
                    ELSE unknown_login.failed_logins + 1 END) >= $3 THEN $4
                WHEN unknown_login.locked_until <= $2 THEN NULL
                ELSE unknown_login.locked_until END,
            updated_at = excluded.updated_at
        WHERE unknown_login.locked_until IS NULL OR unknown_login.locked_until <= $2
        RETURNING failed_logins, locked_until")
        .bind(name_hash).bind(now).bind(lock_after).bind(locked_until)
        .fetch_optional(conn)
        .await)?)
}

/// Forgets names that last failed before this time, up to a number; tells how many.
pub async fn trim(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM unknown_login WHERE name_hash IN (
            SELECT name_hash FROM unknown_login WHERE updated_at < $1
            ORDER BY updated_at, name_hash LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    ))
}

#[cfg(test)]
mod tests;
