//! Logins: refresh tokens by their hash, and the check of each request.
//!
//! Knows no token, only hashes; what a spent or foreign hash means is the caller's rule.

use heddle_core::{OrgId, Timestamp, UserId};
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::FromRow;
use uuid::Uuid;

use crate::calling_user::{CallingRow, CallingUser};
use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Select, affected};
use crate::sort::{InOrder, Key, Sorted};

heddle_core::ids! {
    pub SessionId,
}

/// A login of a user on one client. `ip` and `user_agent` are of the login; every refresh moves `expires_at`.
#[derive(Debug, Clone, PartialEq, Eq, FromRow, Serialize, JsonSchema)]
pub struct Session {
    pub id: SessionId,
    pub user_id: UserId,
    pub ip: String,
    pub user_agent: String,
    pub created_at: Timestamp,
    pub last_used_at: Timestamp,
    pub expires_at: Timestamp,
}

impl Sorted for Session {
    const KEYS: &'static [Key] = &[
        Key::of("created_at", "s.created_at"),
        Key::of("last_used_at", "s.last_used_at"),
        Key::of("expires_at", "s.expires_at"),
    ];
    const DEFAULT: &'static str = "-last_used_at";
    const LAST: &'static [&'static str] = &["s.id"];
}

/// A row of `user_session` about to be written. `refresh_hash` is the keyed hash of the first refresh token.
/// `token_version` is the user's current one: the session is worthless once the user has another.
#[derive(Clone)]
pub struct NewSession {
    pub id: SessionId,
    pub user_id: UserId,
    pub refresh_hash: String,
    pub token_version: i64,
    pub ip: String,
    pub user_agent: String,
    pub expires_at: Timestamp,
    pub now: Timestamp,
}

/// Which of a session's hashes was presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matched {
    Current,
    /// Spent by a rotation at this time.
    Spent(Timestamp),
}

/// The row of `user_session` that a refresh token belongs to, also when it is revoked or expired.
/// The caller decides by the fields what the token is worth.
#[derive(Debug, Clone)]
pub struct FoundSession {
    pub session: Session,
    pub token_version: i64,
    pub revoked_at: Option<Timestamp>,
    pub matched: Matched,
}

/// How the exchange of a refresh token for the next one ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rotation {
    Rotated(Session),
    /// Another request rotated first, or the session ended.
    Lost,
}

/// Everything that decides whether a request is its user's, read at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authenticated {
    pub user: CallingUser,
    /// The user's; a token must carry it.
    pub token_version: i64,
    pub session_id: SessionId,
    pub session_token_version: i64,
    pub revoked_at: Option<Timestamp>,
    pub expires_at: Timestamp,
}

#[derive(FromRow)]
struct FoundRow {
    #[sqlx(flatten)]
    session: Session,
    token_version: i64,
    revoked_at: Option<Timestamp>,
    /// Absent where the hash is the current one.
    #[sqlx(default)]
    spent_at: Option<Timestamp>,
}

#[derive(FromRow)]
struct AuthenticatedRow {
    #[sqlx(flatten)]
    user: CallingRow,
    token_version: i64,
    session_id: SessionId,
    session_token_version: i64,
    revoked_at: Option<Timestamp>,
    expires_at: Timestamp,
}

/// Writes the session and returns it. Other sessions of the user go on.
pub async fn insert(tx: &mut Tx, new: &NewSession) -> Result<Session> {
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO user_session (id, user_id, refresh_hash, token_version, ip, user_agent,
            created_at, last_used_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $8, $8, $7)
        RETURNING id, user_id, ip, user_agent, created_at, last_used_at, expires_at")
        .bind(new.id).bind(new.user_id).bind(&new.refresh_hash).bind(new.token_version)
        .bind(&new.ip).bind(&new.user_agent).bind(new.expires_at).bind(new.now)
        .fetch_one(conn)
        .await)?)
}

/// The session that this hash is good for, or was before a rotation that is not forgotten.
pub async fn find_by_refresh_hash(tx: &mut Tx, hash: &str) -> Result<Option<FoundSession>> {
    let mut row: Option<FoundRow> = on!(tx, conn => sqlx::query_as("
        SELECT id, user_id, ip, user_agent, created_at, last_used_at, expires_at, token_version, revoked_at
        FROM user_session
        WHERE refresh_hash = $1")
        .bind(hash)
        .fetch_optional(conn)
        .await)?;
    if row.is_none() {
        row = on!(tx, conn => sqlx::query_as("
            SELECT s.id, s.user_id, s.ip, s.user_agent, s.created_at, s.last_used_at, s.expires_at,
                s.token_version, s.revoked_at, r.spent_at
            FROM spent_refresh r
            JOIN user_session s ON s.id = r.session_id
            WHERE r.hash = $1")
            .bind(hash)
            .fetch_optional(conn)
            .await)?;
    }
    Ok(row.map(|row| FoundSession {
        session: row.session,
        token_version: row.token_version,
        revoked_at: row.revoked_at,
        matched: row.spent_at.map_or(Matched::Current, Matched::Spent),
    }))
}

/// Spends one refresh token for the next. Of several at once, one wins.
pub async fn rotate(tx: &mut Tx, old_hash: &str, new_hash: &str, now: Timestamp) -> Result<Rotation> {
    let session: Option<Session> = on!(tx, conn => sqlx::query_as("
        UPDATE user_session
        SET refresh_hash = $2, last_used_at = $3
        WHERE refresh_hash = $1 AND revoked_at IS NULL AND expires_at > $3
        RETURNING id, user_id, ip, user_agent, created_at, last_used_at, expires_at")
        .bind(old_hash).bind(new_hash).bind(now)
        .fetch_optional(conn)
        .await)?;
    let Some(session) = session else { return Ok(Rotation::Lost) };
    affected!(
        tx,
        sqlx::query("INSERT INTO spent_refresh (hash, session_id, spent_at) VALUES ($1, $2, $3)")
            .bind(old_hash)
            .bind(session.id)
            .bind(now)
    );
    Ok(Rotation::Rotated(session))
}

/// Forgets sessions that expired before this time, with what they spent, up to a number; tells how many.
pub async fn trim(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM spent_refresh WHERE session_id IN (
            SELECT id FROM user_session WHERE expires_at < $1 ORDER BY expires_at, id LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    );
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM user_session WHERE id IN (
            SELECT id FROM user_session WHERE expires_at < $1 ORDER BY expires_at, id LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    ))
}

/// Forgets refresh tokens that were spent before this time, up to a number; tells how many.
pub async fn trim_spent(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM spent_refresh WHERE hash IN (
            SELECT hash FROM spent_refresh WHERE spent_at < $1 ORDER BY spent_at, hash LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    ))
}

/// Forgets what was spent before this time, of all sessions; tells how many.
pub async fn forget_spent(tx: &mut Tx, before: Timestamp) -> Result<u64> {
    Ok(affected!(tx, sqlx::query("DELETE FROM spent_refresh WHERE spent_at < $1").bind(before)))
}

/// Moves the end of a session that has not ended.
pub async fn extend(tx: &mut Tx, id: SessionId, expires_at: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query("UPDATE user_session SET expires_at = $2 WHERE id = $1 AND revoked_at IS NULL")
            .bind(id)
            .bind(expires_at)
    );
    Ok(rows == 1)
}

/// Ends one session of the user; false when it is not theirs or has ended.
pub async fn revoke(tx: &mut Tx, user: UserId, id: SessionId, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "UPDATE user_session SET revoked_at = $3 WHERE id = $1 AND user_id = $2 AND revoked_at IS NULL"
        )
        .bind(id)
        .bind(user)
        .bind(now)
    );
    Ok(rows == 1)
}

/// Ends all sessions of the user; tells how many.
pub async fn revoke_all(tx: &mut Tx, user: UserId, now: Timestamp) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query("UPDATE user_session SET revoked_at = $2 WHERE user_id = $1 AND revoked_at IS NULL")
            .bind(user)
            .bind(now)
    ))
}

/// Ends all sessions of an organization's users; tells how many.
pub async fn revoke_all_of(tx: &mut Tx, org: OrgId, now: Timestamp) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        UPDATE user_session SET revoked_at = $2
        WHERE revoked_at IS NULL AND user_id IN (SELECT id FROM app_user WHERE org_id = $1)"
        )
        .bind(org)
        .bind(now)
    ))
}

/// The user's sessions that are neither revoked nor expired, the one used last first.
pub async fn list_active(
    tx: &mut Tx,
    user: UserId,
    now: Timestamp,
    page: impl Into<InOrder<Session>>,
) -> Result<(Vec<Session>, i64)> {
    Select::new(
        "SELECT s.id, s.user_id, s.ip, s.user_agent, s.created_at, s.last_used_at, s.expires_at",
        "FROM user_session s",
    )
    .and_bind("s.user_id = ?", Bind::Id(user.0))
    .and("s.revoked_at IS NULL")
    .and_bind("s.expires_at > ?", Bind::Time(now))
    .page(tx, page)
    .await
}

/// Spends the proof of a first factor; false when it was spent before.
pub async fn spend_challenge(tx: &mut Tx, id: Uuid, expires_at: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "INSERT INTO spent_challenge (id, expires_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING"
        )
        .bind(id)
        .bind(expires_at)
    );
    Ok(rows == 1)
}

/// Forgets spent proofs that expired before this time, up to a number; tells how many.
pub async fn trim_challenges(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM spent_challenge WHERE id IN (
            SELECT id FROM spent_challenge WHERE expires_at < $1 ORDER BY expires_at, id LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    ))
}

/// What the check of a request needs, in one statement.
///
/// `None` when the user, the session or the organization is absent or removed.
/// A grant for a removed site counts: losing a site must not open the others.
pub async fn authenticate(tx: &mut Tx, user: UserId, session: SessionId) -> Result<Option<Authenticated>> {
    let rows: Vec<AuthenticatedRow> = on!(tx, conn => sqlx::query_as("
        SELECT u.id AS user_id, u.username, u.org_id, u.role, u.is_active, u.token_version,
            s.id AS session_id, s.token_version AS session_token_version, s.revoked_at, s.expires_at,
            g.site_id, g.level AS site_level
        FROM user_session s
        JOIN app_user u ON u.id = s.user_id
        JOIN organization o ON o.id = u.org_id
        LEFT JOIN site_grant g ON g.user_id = u.id
        WHERE s.id = $1 AND s.user_id = $2 AND u.deleted_at IS NULL AND o.deleted_at IS NULL
        ORDER BY g.created_at, g.site_id
        LIMIT 10000")
        .bind(session).bind(user)
        .fetch_all(conn)
        .await)?;
    let grants = rows.iter().filter_map(|row| row.user.grant()).collect();
    Ok(rows.into_iter().next().map(|row| Authenticated {
        user: row.user.into_user(grants),
        token_version: row.token_version,
        session_id: row.session_id,
        session_token_version: row.session_token_version,
        revoked_at: row.revoked_at,
        expires_at: row.expires_at,
    }))
}

#[cfg(test)]
mod tests;
