//! Generators of one-time codes and the codes that stand in for them.
//!
//! The server knows what a code is worth; here it is only spent once.

use heddle_core::{Timestamp, UserId};
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::select::affected;

/// A generator. Its secret is sealed by the server.
#[derive(Clone, PartialEq, Eq, FromRow)]
pub struct SecondFactor {
    #[sqlx(rename = "id")]
    pub user_id: UserId,
    pub secret: Vec<u8>,
    /// Time step of the newest code that was accepted.
    pub last_step: i64,
    /// `None` while it is only staged.
    pub confirmed_at: Option<Timestamp>,
}

/// Stages a generator in place of one that was staged; false when the user has a confirmed one.
pub async fn stage(tx: &mut Tx, user: UserId, secret: &[u8], now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO second_factor (id, secret, last_step, created_at) VALUES ($1, $2, 0, $3)
        ON CONFLICT (id) DO UPDATE SET secret = excluded.secret, last_step = 0, created_at = excluded.created_at
        WHERE second_factor.confirmed_at IS NULL"
        )
        .bind(user)
        .bind(secret)
        .bind(now)
    );
    Ok(rows == 1)
}

/// Returns the user's generator, confirmed or only staged, without a lock. `None` means that there is none.
pub async fn find(tx: &mut Tx, user: UserId) -> Result<Option<SecondFactor>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT id, secret, last_step, confirmed_at FROM second_factor WHERE id = $1")
        .bind(user)
        .fetch_optional(conn)
        .await)?)
}

/// Spends the code of a time step; false when that code or a later one was accepted before. Of several at once, one wins.
pub async fn spend_step(tx: &mut Tx, user: UserId, step: i64) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query("UPDATE second_factor SET last_step = $2 WHERE id = $1 AND last_step < $2")
            .bind(user)
            .bind(step)
    );
    Ok(rows == 1)
}

/// The staged generator becomes the user's; false when there is none that is staged.
pub async fn confirm(tx: &mut Tx, user: UserId, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query("UPDATE second_factor SET confirmed_at = $2 WHERE id = $1 AND confirmed_at IS NULL")
            .bind(user)
            .bind(now)
    );
    if rows == 1 {
        flag(tx, user, true, now).await?;
    }
    Ok(rows == 1)
}

/// Forgets the generator and all backup codes; false when there was no generator.
pub async fn remove(tx: &mut Tx, user: UserId, now: Timestamp) -> Result<bool> {
    affected!(tx, sqlx::query("DELETE FROM backup_code WHERE user_id = $1").bind(user));
    let rows = affected!(tx, sqlx::query("DELETE FROM second_factor WHERE id = $1").bind(user));
    flag(tx, user, false, now).await?;
    Ok(rows == 1)
}

async fn flag(tx: &mut Tx, user: UserId, is_enabled: bool, now: Timestamp) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "UPDATE app_user SET mfa_enabled = $2, revision = revision + 1, updated_at = $3 WHERE id = $1 AND mfa_enabled <> $2"
        )
        .bind(user)
        .bind(is_enabled)
        .bind(now)
    );
    Ok(())
}

/// Puts these hashes in place of all backup codes of the user.
pub async fn replace_backup_codes(
    tx: &mut Tx,
    user: UserId,
    hashes: &[String],
    now: Timestamp,
) -> Result<()> {
    affected!(tx, sqlx::query("DELETE FROM backup_code WHERE user_id = $1").bind(user));
    for hash in hashes {
        affected!(
            tx,
            sqlx::query("INSERT INTO backup_code (user_id, code_hash, created_at) VALUES ($1, $2, $3)")
                .bind(user)
                .bind(hash)
                .bind(now)
        );
    }
    Ok(())
}

/// Spends a backup code; false when there is none like it that is not spent. Of several at once, one wins.
pub async fn spend_backup_code(tx: &mut Tx, user: UserId, hash: &str, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "UPDATE backup_code SET used_at = $3 WHERE user_id = $1 AND code_hash = $2 AND used_at IS NULL"
        )
        .bind(user)
        .bind(hash)
        .bind(now)
    );
    Ok(rows == 1)
}

/// How many backup codes are left.
pub async fn backup_codes_left(tx: &mut Tx, user: UserId) -> Result<i64> {
    Ok(on!(tx, conn => sqlx::query_scalar(
        "SELECT COUNT(*) FROM backup_code WHERE user_id = $1 AND used_at IS NULL")
        .bind(user)
        .fetch_one(conn)
        .await)?)
}

#[cfg(test)]
mod tests;
