//! API keys: found by their public half, proved by a hash that the server compares.

use heddle_core::{Timestamp, UserId};
use sqlx::FromRow;
use sqlx::types::Json;

use crate::calling_user::{CallingRow, CallingUser};
use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Select, affected};
use crate::sort::{InOrder, Key, Sorted};

heddle_core::ids! {
    pub ApiKeyId,
}

/// An API key as its user may see it: a row of `api_key` without the hash of the key.
/// The row of a revoked or expired key stays in the table, but no list or search here gives it.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct ApiKey {
    pub id: ApiKeyId,
    pub user_id: UserId,
    /// The public half, by which leaked keys are recognised.
    pub prefix: String,
    pub name: String,
    pub description: Option<String>,
    /// Empty: everything that the user may do.
    #[sqlx(json)]
    pub scopes: Vec<String>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
}

impl Sorted for ApiKey {
    const KEYS: &'static [Key] = &[
        Key::of("name", "LOWER(k.name)"),
        Key::of("created_at", "k.created_at"),
        Key::nullable("expires_at", "k.expires_at"),
        Key::nullable("last_used_at", "k.last_used_at"),
    ];
    const DEFAULT: &'static str = "-created_at";
    const LAST: &'static [&'static str] = &["k.id"];
}

/// A row of `api_key` about to be written. It holds the keyed hash of the whole key, never the key itself.
/// A key without `expires_at` does not expire.
#[derive(Clone)]
pub struct NewApiKey {
    pub id: ApiKeyId,
    pub user_id: UserId,
    pub prefix: String,
    pub secret_hash: String,
    pub name: String,
    pub description: Option<String>,
    pub scopes: Vec<String>,
    pub expires_at: Option<Timestamp>,
    pub now: Timestamp,
}

/// A key that is neither revoked nor expired, with its user as they are now.
#[derive(Clone)]
pub struct Presented {
    pub id: ApiKeyId,
    pub secret_hash: String,
    pub scopes: Vec<String>,
    pub expires_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
    pub user: CallingUser,
}

#[derive(FromRow)]
struct PresentedRow {
    id: ApiKeyId,
    secret_hash: String,
    scopes: Json<Vec<String>>,
    expires_at: Option<Timestamp>,
    last_used_at: Option<Timestamp>,
    #[sqlx(flatten)]
    user: CallingRow,
}

/// # Errors
/// [`crate::error::Error::Unique`] with `api_key_prefix` when the public half is taken.
pub async fn insert(tx: &mut Tx, new: &NewApiKey) -> Result<ApiKey> {
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO api_key (id, user_id, prefix, secret_hash, name, description, scopes, expires_at, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        RETURNING id, user_id, prefix, name, description, scopes, created_at, expires_at, last_used_at")
        .bind(new.id).bind(new.user_id).bind(&new.prefix).bind(&new.secret_hash).bind(&new.name)
        .bind(new.description.as_ref()).bind(Json(&new.scopes)).bind(new.expires_at).bind(new.now)
        .fetch_one(conn)
        .await)?)
}

fn active(user: UserId, now: Timestamp) -> Select {
    Select::new(
        "SELECT k.id, k.user_id, k.prefix, k.name, k.description, k.scopes, k.created_at, k.expires_at, k.last_used_at",
        "FROM api_key k",
    )
    .and_bind("k.user_id = ?", Bind::Id(user.0))
    .and("k.revoked_at IS NULL")
    .and_bind("(k.expires_at IS NULL OR k.expires_at > ?)", Bind::Time(now))
}

/// The user's keys that are neither revoked nor expired, newest first.
pub async fn list_active(
    tx: &mut Tx,
    user: UserId,
    now: Timestamp,
    page: impl Into<InOrder<ApiKey>>,
) -> Result<(Vec<ApiKey>, i64)> {
    active(user, now).page(tx, page).await
}

/// How many keys of the user are neither revoked nor expired.
pub async fn count_active(tx: &mut Tx, user: UserId, now: Timestamp) -> Result<i64> {
    active(user, now).count(tx).await
}

/// One key of this user that is neither revoked nor expired.
pub async fn find_active(tx: &mut Tx, user: UserId, id: ApiKeyId, now: Timestamp) -> Result<Option<ApiKey>> {
    active(user, now).and_bind("k.id = ?", Bind::Id(id.0)).one(tx).await
}

/// Ends one key of the user; false when it is not theirs or has ended.
pub async fn revoke(tx: &mut Tx, user: UserId, id: ApiKeyId, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "UPDATE api_key SET revoked_at = $3 WHERE id = $1 AND user_id = $2 AND revoked_at IS NULL
                AND (expires_at IS NULL OR expires_at > $3)"
        )
        .bind(id)
        .bind(user)
        .bind(now)
    );
    Ok(rows == 1)
}

/// Ends all keys of the user; tells how many.
pub async fn revoke_all(tx: &mut Tx, user: UserId, now: Timestamp) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query("UPDATE api_key SET revoked_at = $2 WHERE user_id = $1 AND revoked_at IS NULL")
            .bind(user)
            .bind(now)
    ))
}

/// Notes that the key was used.
pub async fn record_use(tx: &mut Tx, id: ApiKeyId, now: Timestamp) -> Result<()> {
    affected!(tx, sqlx::query("UPDATE api_key SET last_used_at = $2 WHERE id = $1").bind(id).bind(now));
    Ok(())
}

/// What the check of a request needs, in one statement.
///
/// `None` when the key, its user or the organization is absent, removed, revoked or expired.
/// A grant for a removed site counts: losing a site must not open the others.
pub async fn present(tx: &mut Tx, prefix: &str, now: Timestamp) -> Result<Option<Presented>> {
    let rows: Vec<PresentedRow> = on!(tx, conn => sqlx::query_as("
        SELECT k.id, k.secret_hash, k.scopes, k.expires_at, k.last_used_at,
            u.id AS user_id, u.username, u.org_id, u.role, u.is_active,
            g.site_id, g.level AS site_level
        FROM api_key k
        JOIN app_user u ON u.id = k.user_id
        JOIN organization o ON o.id = u.org_id
        LEFT JOIN site_grant g ON g.user_id = u.id
        WHERE k.prefix = $1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $2)
            AND u.deleted_at IS NULL AND o.deleted_at IS NULL
        ORDER BY g.created_at, g.site_id
        LIMIT 10000")
        .bind(prefix).bind(now)
        .fetch_all(conn)
        .await)?;
    let grants = rows.iter().filter_map(|row| row.user.grant()).collect();
    Ok(rows.into_iter().next().map(|row| Presented {
        id: row.id,
        secret_hash: row.secret_hash,
        scopes: row.scopes.0,
        expires_at: row.expires_at,
        last_used_at: row.last_used_at,
        user: row.user.into_user(grants),
    }))
}

#[cfg(test)]
mod tests;
