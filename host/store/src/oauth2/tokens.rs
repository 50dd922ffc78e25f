//! Tokens of apps, by their keyed hash.

use heddle_core::Timestamp;
use heddle_core::oauth2::TokenKind;
use sqlx::FromRow;
use sqlx::types::Json;

use super::GrantState;
use crate::calling_user::{CallingRow, CallingUser};
use crate::db::Tx;
use crate::error::Result;
use crate::oauth2::{OauthAppId, OauthGrantId};
use crate::select::{Bind, Select, affected};

/// A row of `oauth2_token` about to be written. `hash` is the keyed hash of the token, which is not stored.
#[derive(Clone)]
pub struct NewToken {
    pub hash: String,
    pub grant_id: OauthGrantId,
    pub kind: TokenKind,
    pub scopes: Vec<String>,
    pub expires_at: Timestamp,
    pub now: Timestamp,
}

/// A token with its grant.
#[derive(Debug, Clone, FromRow)]
pub struct FoundToken {
    #[sqlx(flatten)]
    pub grant: GrantState,
    pub kind: TokenKind,
    /// The token's own; the grant may allow more.
    #[sqlx(json)]
    pub token_scopes: Vec<String>,
    pub issued_at: Timestamp,
    pub token_expires_at: Timestamp,
    /// Revoked, or spent for the next.
    pub ended_at: Option<Timestamp>,
}

/// An access token that has not ended, with its user as they are now.
#[derive(Debug, Clone)]
pub struct Presented {
    pub grant_id: OauthGrantId,
    pub app_id: OauthAppId,
    pub scopes: Vec<String>,
    /// What the app can be allowed now.
    pub app_scopes: Vec<String>,
    pub expires_at: Timestamp,
    pub last_used_at: Timestamp,
    pub user: CallingUser,
}

#[derive(FromRow)]
struct PresentedRow {
    grant_id: OauthGrantId,
    app_id: OauthAppId,
    scopes: Json<Vec<String>>,
    app_scopes: Json<Vec<String>>,
    expires_at: Timestamp,
    last_used_at: Timestamp,
    #[sqlx(flatten)]
    user: CallingRow,
}

const SELECT: &str = "SELECT g.id, g.app_id, a.org_id, g.user_id, g.scopes, g.token_version,
    g.code_challenge, g.redirect_uri, g.code_expires_at, g.code_spent_at, g.revoked_at,
    t.kind, t.scopes AS token_scopes, t.issued_at, t.expires_at AS token_expires_at, t.ended_at";
const FROM: &str = "FROM oauth2_token t JOIN oauth2_grant g ON g.id = t.grant_id
    JOIN oauth2_app a ON a.id = g.app_id";

/// Writes a token of a grant. Older tokens of the grant stay as they are; [`end_older`] ends them.
pub async fn insert_token(tx: &mut Tx, new: &NewToken) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO oauth2_token (hash, grant_id, kind, scopes, issued_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6)"
        )
        .bind(&new.hash)
        .bind(new.grant_id)
        .bind(new.kind)
        .bind(Json(&new.scopes))
        .bind(new.now)
        .bind(new.expires_at)
    );
    Ok(())
}

/// Returns the token of either kind with its grant, without a lock, also when it has ended or expired.
/// The caller decides what it is worth.
pub async fn find_token(tx: &mut Tx, hash: &str) -> Result<Option<FoundToken>> {
    by_hash(hash).one(tx).await
}

/// The token and its grant as they are until the transaction ends.
pub async fn lock_token(tx: &mut Tx, hash: &str) -> Result<Option<FoundToken>> {
    by_hash(hash).one_locked(tx, "g, t").await
}

/// Ends one token: it is spent or revoked. Of several at once, one does it.
pub async fn end(tx: &mut Tx, hash: &str, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query("UPDATE oauth2_token SET ended_at = $2 WHERE hash = $1 AND ended_at IS NULL")
            .bind(hash)
            .bind(now)
    );
    Ok(rows == 1)
}

/// Ends all access tokens of a grant but the newest so many.
pub async fn end_older(tx: &mut Tx, grant: OauthGrantId, kept: u32, now: Timestamp) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        UPDATE oauth2_token SET ended_at = $3
        WHERE grant_id = $1 AND kind = $2 AND ended_at IS NULL AND expires_at > $3 AND hash NOT IN (
            SELECT hash FROM oauth2_token
            WHERE grant_id = $1 AND kind = $2 AND ended_at IS NULL AND expires_at > $3
            ORDER BY issued_at DESC, hash
            LIMIT CAST($4 AS BIGINT))"
        )
        .bind(grant)
        .bind(TokenKind::Access)
        .bind(now)
        .bind(i64::from(kept))
    ))
}

/// What the check of a request needs, in one statement.
///
/// `None` when the token, its grant, its app, their user or the organization is absent, removed, revoked or
/// expired, or when the user's tokens of that time are worthless.
/// A grant for a removed site counts: losing a site must not open the others.
pub async fn present(tx: &mut Tx, hash: &str, now: Timestamp) -> Result<Option<Presented>> {
    let rows: Vec<PresentedRow> = on!(tx, conn => sqlx::query_as("
        SELECT g.id AS grant_id, g.app_id, t.scopes, a.scopes AS app_scopes, t.expires_at, g.last_used_at,
            u.id AS user_id, u.username, u.org_id, u.role, u.is_active,
            s.site_id, s.level AS site_level
        FROM oauth2_token t
        JOIN oauth2_grant g ON g.id = t.grant_id
        JOIN oauth2_app a ON a.id = g.app_id
        JOIN app_user u ON u.id = g.user_id
        JOIN organization o ON o.id = u.org_id
        LEFT JOIN site_grant s ON s.user_id = u.id
        WHERE t.hash = $1 AND t.kind = $2 AND t.ended_at IS NULL AND t.expires_at > $3
            AND g.revoked_at IS NULL AND g.token_version = u.token_version
            AND a.deleted_at IS NULL AND a.org_id = u.org_id
            AND u.deleted_at IS NULL AND o.deleted_at IS NULL
        ORDER BY s.created_at, s.site_id
        LIMIT 10000")
        .bind(hash).bind(TokenKind::Access).bind(now)
        .fetch_all(conn)
        .await)?;
    let grants = rows.iter().filter_map(|row| row.user.grant()).collect();
    Ok(rows.into_iter().next().map(|row| Presented {
        grant_id: row.grant_id,
        app_id: row.app_id,
        scopes: row.scopes.0,
        app_scopes: row.app_scopes.0,
        expires_at: row.expires_at,
        last_used_at: row.last_used_at,
        user: row.user.into_user(grants),
    }))
}

/// Forgets tokens that expired before this time, up to a number; tells how many.
pub async fn trim(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM oauth2_token WHERE hash IN (
            SELECT hash FROM oauth2_token WHERE expires_at < $1 ORDER BY expires_at, hash LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    ))
}

fn by_hash(hash: &str) -> Select {
    Select::new(SELECT, FROM).and_bind("t.hash = ?", Bind::Text(hash.to_owned()))
}
