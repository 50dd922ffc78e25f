//! What users allowed apps, and the codes that grants begin with.

use heddle_core::{OrgId, Timestamp, UserId};
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::FromRow;
use sqlx::types::Json;

use crate::db::Tx;
use crate::error::Result;
use crate::oauth2::OauthAppId;
use crate::select::{Bind, Select, affected};
use crate::sort::{InOrder, Key, Sorted};

heddle_core::ids! {
    /// What one user allowed one app.
    pub OauthGrantId,
}

/// A grant as its user sees it.
#[derive(Debug, Clone, PartialEq, Eq, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "OAuth2Grant")]
pub struct Grant {
    pub id: OauthGrantId,
    pub app_id: OauthAppId,
    pub app_name: String,
    #[sqlx(json)]
    pub scopes: Vec<String>,
    pub created_at: Timestamp,
    /// Exact to a minute.
    pub last_used_at: Timestamp,
    /// When it ends unless the app uses it before.
    pub expires_at: Timestamp,
}

impl Sorted for Grant {
    const KEYS: &'static [Key] = &[
        Key::of("app_name", "LOWER(a.name)"),
        Key::of("created_at", "g.created_at"),
        Key::of("last_used_at", "g.last_used_at"),
        Key::of("expires_at", "g.expires_at"),
    ];
    const DEFAULT: &'static str = "-created_at";
    const LAST: &'static [&'static str] = &["g.id"];
}

/// A row of `oauth2_grant` about to be written, together with the code that the app exchanges for tokens.
/// `token_version` is the user's current one: the grant is worthless once the user has another.
#[derive(Clone)]
pub struct NewGrant {
    pub id: OauthGrantId,
    pub app_id: OauthAppId,
    pub user_id: UserId,
    pub scopes: Vec<String>,
    pub token_version: i64,
    pub code_hash: String,
    pub code_challenge: String,
    pub redirect_uri: String,
    pub code_expires_at: Timestamp,
    pub now: Timestamp,
}

/// Everything that decides whether tokens may follow from a grant.
#[derive(Debug, Clone, FromRow)]
pub struct GrantState {
    pub id: OauthGrantId,
    pub app_id: OauthAppId,
    pub org_id: OrgId,
    pub user_id: UserId,
    #[sqlx(json)]
    pub scopes: Vec<String>,
    pub token_version: i64,
    pub code_challenge: String,
    pub redirect_uri: String,
    pub code_expires_at: Timestamp,
    pub code_spent_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

const SELECT: &str = "SELECT g.id, g.app_id, a.name AS app_name, g.scopes, g.created_at, g.last_used_at,
    g.expires_at";
const SELECT_STATE: &str = "SELECT g.id, g.app_id, a.org_id, g.user_id, g.scopes, g.token_version,
    g.code_challenge, g.redirect_uri, g.code_expires_at, g.code_spent_at, g.revoked_at";
const FROM: &str = "FROM oauth2_grant g JOIN oauth2_app a ON a.id = g.app_id";

/// Writes a grant whose code is not spent. It ends with its code unless [`spend_code`] extends it.
pub async fn insert_grant(tx: &mut Tx, new: &NewGrant) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO oauth2_grant (id, app_id, user_id, scopes, token_version, code_hash, code_challenge,
            redirect_uri, code_expires_at, created_at, last_used_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $9)"
        )
        .bind(new.id)
        .bind(new.app_id)
        .bind(new.user_id)
        .bind(Json(&new.scopes))
        .bind(new.token_version)
        .bind(&new.code_hash)
        .bind(&new.code_challenge)
        .bind(&new.redirect_uri)
        .bind(new.code_expires_at)
        .bind(new.now)
    );
    Ok(())
}

/// The grant that this code began.
pub async fn find_by_code(tx: &mut Tx, code_hash: &str) -> Result<Option<GrantState>> {
    by_code(code_hash).one(tx).await
}

/// The grant that this code began, as it is until the transaction ends.
pub async fn lock_by_code(tx: &mut Tx, code_hash: &str) -> Result<Option<GrantState>> {
    by_code(code_hash).one_locked(tx, "g").await
}

fn by_code(code_hash: &str) -> Select {
    Select::new(SELECT_STATE, FROM).and_bind("g.code_hash = ?", Bind::Text(code_hash.to_owned()))
}

/// Spends the code of a grant, which lives on until `expires_at`. Of several at once, one does it.
pub async fn spend_code(
    tx: &mut Tx,
    id: OauthGrantId,
    expires_at: Timestamp,
    now: Timestamp,
) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE oauth2_grant SET code_spent_at = $2, last_used_at = $2, expires_at = $3
        WHERE id = $1 AND code_spent_at IS NULL AND revoked_at IS NULL AND code_expires_at > $2"
        )
        .bind(id)
        .bind(now)
        .bind(expires_at)
    );
    Ok(rows == 1)
}

/// Ends a grant with all of its tokens; false when it had ended.
pub async fn revoke(tx: &mut Tx, id: OauthGrantId, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query("UPDATE oauth2_grant SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL")
            .bind(id)
            .bind(now)
    );
    Ok(rows == 1)
}

/// Ends all of a user's grants to an app but the newest so many; tells which.
pub async fn revoke_older(
    tx: &mut Tx,
    app: OauthAppId,
    user: UserId,
    kept: u32,
    now: Timestamp,
) -> Result<Vec<OauthGrantId>> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        UPDATE oauth2_grant SET revoked_at = $3
        WHERE app_id = $1 AND user_id = $2 AND revoked_at IS NULL AND expires_at > $3 AND id NOT IN (
            SELECT id FROM oauth2_grant
            WHERE app_id = $1 AND user_id = $2 AND revoked_at IS NULL AND expires_at > $3
            ORDER BY created_at DESC, id DESC
            LIMIT CAST($4 AS BIGINT))
        RETURNING id")
        .bind(app).bind(user).bind(now).bind(i64::from(kept))
        .fetch_all(conn)
        .await)?)
}

/// Notes that the grant was used; with a time, it lives on until then.
pub async fn record_use(
    tx: &mut Tx,
    id: OauthGrantId,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "UPDATE oauth2_grant SET last_used_at = $2, expires_at = COALESCE($3, expires_at) WHERE id = $1"
        )
        .bind(id)
        .bind(now)
        .bind(expires_at)
    );
    Ok(())
}

/// The user's grants that are in effect, newest first.
pub async fn list_own(
    tx: &mut Tx,
    user: UserId,
    now: Timestamp,
    page: impl Into<InOrder<Grant>>,
) -> Result<(Vec<Grant>, i64)> {
    own(user, now).page(tx, page).await
}

/// Returns one of the grants that [`list_own`] lists, without a lock.
/// `None` means that it is another user's, that it or its app has ended, or that its code was never spent.
pub async fn find_own(tx: &mut Tx, user: UserId, id: OauthGrantId, now: Timestamp) -> Result<Option<Grant>> {
    own(user, now).and_bind("g.id = ?", Bind::Id(id.0)).one(tx).await
}

/// The user's grant as it is until the transaction ends.
pub async fn lock_own(tx: &mut Tx, user: UserId, id: OauthGrantId, now: Timestamp) -> Result<Option<Grant>> {
    own(user, now).and_bind("g.id = ?", Bind::Id(id.0)).one_locked(tx, "g").await
}

/// Forgets grants that expired before this time, with their tokens, up to a number; tells how many.
pub async fn trim_grants(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM oauth2_token WHERE grant_id IN (
            SELECT id FROM oauth2_grant WHERE expires_at < $1 ORDER BY expires_at, id LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    );
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM oauth2_grant WHERE id IN (
            SELECT id FROM oauth2_grant WHERE expires_at < $1 ORDER BY expires_at, id LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    ))
}

/// Those that tokens followed from and may follow again. A newer token version of the user ends all of before.
fn own(user: UserId, now: Timestamp) -> Select {
    Select::new(
        SELECT,
        "FROM oauth2_grant g JOIN oauth2_app a ON a.id = g.app_id JOIN app_user u ON u.id = g.user_id",
    )
    .and_bind("g.user_id = ?", Bind::Id(user.0))
    .and("g.revoked_at IS NULL AND g.code_spent_at IS NOT NULL AND a.deleted_at IS NULL")
    .and("g.token_version = u.token_version AND u.org_id = a.org_id")
    .and_bind("g.expires_at > ?", Bind::Time(now))
}
