//! Registered apps.

use heddle_core::oauth2::ClientType;
use heddle_core::{OauthAppId, OrgId, Timestamp, UserId};
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::FromRow;
use sqlx::types::Json;

use crate::select::{Bind, Select, Set, affected};
use crate::sort::{InOrder, Key, Sorted};
use crate::{Result, Scope, Tx};

#[derive(Debug, Clone, PartialEq, Eq, FromRow, Serialize, JsonSchema)]
#[schemars(rename = "OAuth2App")]
pub struct OauthApp {
    /// Also the `client_id`.
    pub id: OauthAppId,
    #[serde(rename = "organization_id")]
    pub org_id: OrgId,
    pub owner_id: UserId,
    pub name: String,
    pub description: Option<String>,
    pub client_type: ClientType,
    #[sqlx(json)]
    pub redirect_uris: Vec<String>,
    /// The most that the app can be allowed.
    #[sqlx(json)]
    pub scopes: Vec<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// When the secret was last made anew; `null` for public apps.
    pub secret_rotated_at: Option<Timestamp>,
}

impl Sorted for OauthApp {
    const KEYS: &'static [Key] = &[
        Key::of("name", "LOWER(a.name)"),
        Key::of("created_at", "a.created_at"),
        Key::of("updated_at", "a.updated_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["a.id"];
}

#[derive(Clone)]
pub struct NewApp {
    pub id: OauthAppId,
    pub org_id: OrgId,
    pub owner_id: UserId,
    pub name: String,
    pub description: Option<String>,
    pub client_type: ClientType,
    pub secret_hash: Option<String>,
    pub redirect_uris: Vec<String>,
    pub scopes: Vec<String>,
    pub now: Timestamp,
}

/// What to change; `None` keeps.
#[derive(Debug, Clone, Default)]
pub struct AppUpdate {
    pub name: Option<String>,
    pub description: Set<String>,
    pub redirect_uris: Option<Vec<String>>,
    pub scopes: Option<Vec<String>>,
}

/// An app with what its check needs.
#[derive(Clone, FromRow)]
pub struct RegisteredApp {
    #[sqlx(flatten)]
    pub app: OauthApp,
    pub secret_hash: Option<String>,
    pub org_name: String,
}

const SELECT: &str = "SELECT a.id, a.org_id, a.owner_id, a.name, a.description, a.client_type,
    a.redirect_uris, a.scopes, a.created_at, a.updated_at, a.secret_rotated_at";
const FROM: &str = "FROM oauth2_app a";

pub async fn insert(tx: &mut Tx, new: &NewApp) -> Result<OauthApp> {
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO oauth2_app (id, org_id, owner_id, name, description, client_type, secret_hash,
            secret_rotated_at, redirect_uris, scopes, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, CASE WHEN $7 IS NULL THEN NULL ELSE $10 END, $8, $9, $10, $10)
        RETURNING id, org_id, owner_id, name, description, client_type, redirect_uris, scopes,
            created_at, updated_at, secret_rotated_at")
        .bind(new.id).bind(new.org_id).bind(new.owner_id).bind(&new.name).bind(new.description.as_ref())
        .bind(new.client_type).bind(new.secret_hash.as_ref()).bind(Json(&new.redirect_uris))
        .bind(Json(&new.scopes)).bind(new.now)
        .fetch_one(conn)
        .await)?)
}

/// One app of the scope, and of this owner where one is given.
pub async fn find(
    tx: &mut Tx,
    scope: &Scope,
    owner: Option<UserId>,
    id: OauthAppId,
) -> Result<Option<OauthApp>> {
    live(scope, owner).and_bind("a.id = ?", Bind::Id(id.0)).one(tx).await
}

/// The app as it is until the transaction ends: nobody else changes it meanwhile.
pub async fn lock(
    tx: &mut Tx,
    scope: &Scope,
    owner: Option<UserId>,
    id: OauthAppId,
) -> Result<Option<OauthApp>> {
    live(scope, owner).and_bind("a.id = ?", Bind::Id(id.0)).one_locked(tx, "a").await
}

/// The app of an owner who is active in an organization that is not removed, for whoever presents its id.
pub async fn find_registered(tx: &mut Tx, id: OauthAppId) -> Result<Option<RegisteredApp>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT a.id, a.org_id, a.owner_id, a.name, a.description, a.client_type, a.redirect_uris, a.scopes,
            a.created_at, a.updated_at, a.secret_rotated_at, a.secret_hash, o.name AS org_name
        FROM oauth2_app a
        JOIN organization o ON o.id = a.org_id
        JOIN app_user w ON w.id = a.owner_id
        WHERE a.id = $1 AND a.deleted_at IS NULL AND o.deleted_at IS NULL
            AND w.deleted_at IS NULL AND w.is_active")
        .bind(id)
        .fetch_optional(conn)
        .await)?)
}

pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    owner: Option<UserId>,
    search: Option<&str>,
    page: impl Into<InOrder<OauthApp>>,
) -> Result<(Vec<OauthApp>, i64)> {
    live(scope, owner).search(&["a.name", "a.description"], search).page(tx, page).await
}

/// How many apps the user has registered.
pub async fn count_of(tx: &mut Tx, owner: UserId) -> Result<i64> {
    live(&Scope::everything(), Some(owner)).count(tx).await
}

/// Changes an app that the caller has locked.
pub async fn update(
    tx: &mut Tx,
    id: OauthAppId,
    update: &AppUpdate,
    now: Timestamp,
) -> Result<Option<OauthApp>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE oauth2_app
        SET name = COALESCE($2, name), description = CASE WHEN $3 THEN $4 ELSE description END,
            redirect_uris = COALESCE($5, redirect_uris), scopes = COALESCE($6, scopes), updated_at = $7
        WHERE id = $1 AND deleted_at IS NULL
        RETURNING id, org_id, owner_id, name, description, client_type, redirect_uris, scopes,
            created_at, updated_at, secret_rotated_at")
        .bind(id).bind(update.name.as_ref()).bind(update.description.is_set()).bind(update.description.value())
        .bind(update.redirect_uris.as_ref().map(Json)).bind(update.scopes.as_ref().map(Json)).bind(now)
        .fetch_optional(conn)
        .await)?)
}

/// Replaces the secret's hash; the one before is worthless at once.
pub async fn rotate_secret(
    tx: &mut Tx,
    id: OauthAppId,
    secret_hash: &str,
    now: Timestamp,
) -> Result<Option<OauthApp>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE oauth2_app
        SET secret_hash = $2, secret_rotated_at = $3, updated_at = $3
        WHERE id = $1 AND deleted_at IS NULL AND secret_hash IS NOT NULL
        RETURNING id, org_id, owner_id, name, description, client_type, redirect_uris, scopes,
            created_at, updated_at, secret_rotated_at")
        .bind(id).bind(secret_hash).bind(now)
        .fetch_optional(conn)
        .await)?)
}

/// Removes the app for good and ends everything that it was allowed; tells how many grants that were.
pub async fn remove(tx: &mut Tx, id: OauthAppId, now: Timestamp) -> Result<u64> {
    affected!(
        tx,
        sqlx::query(
            "UPDATE oauth2_app SET deleted_at = $2, updated_at = $2 WHERE id = $1 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(now)
    );
    Ok(affected!(
        tx,
        sqlx::query("UPDATE oauth2_grant SET revoked_at = $2 WHERE app_id = $1 AND revoked_at IS NULL")
            .bind(id)
            .bind(now)
    ))
}

fn live(scope: &Scope, owner: Option<UserId>) -> Select {
    Select::new(SELECT, FROM)
        .within(scope, "a.org_id", None)
        .and("a.deleted_at IS NULL")
        .and_some("a.owner_id = ?", owner.map(|id| Bind::Id(id.0)))
}
