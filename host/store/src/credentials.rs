//! Credentials of controllers. The secret is sealed by the caller; here it is opaque, and never serializes.

use heddle_core::tls::TlsPolicy;
use heddle_core::{CredentialId, OrgId, SiteId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::FromRow;
use sqlx::types::Json;

use crate::select::{Bind, Select, affected};
use crate::sort::{InOrder, Key, Sorted};
use crate::{Result, Scope, Set, Tx};

#[derive(Debug, Clone, PartialEq, Eq, FromRow, Serialize, JsonSchema)]
pub struct Credential {
    pub id: CredentialId,
    #[serde(rename = "organization_id")]
    pub org_id: OrgId,
    pub name: String,
    pub username: Option<String>,
    pub has_password: bool,
    pub has_api_key: bool,
    /// Where it is good: what its test takes when it is not told otherwise.
    pub host: Option<String>,
    pub port: Option<i64>,
    #[sqlx(json(nullable))]
    pub tls: Option<TlsPolicy>,
    /// Grows with every new secret.
    pub version: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

impl Sorted for Credential {
    const KEYS: &'static [Key] = &[
        Key::of("name", "LOWER(c.name)"),
        Key::of("created_at", "c.created_at"),
        Key::of("updated_at", "c.updated_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["c.id"];
}

/// A sealed secret and what may be told of it.
#[derive(Clone)]
pub struct SealedSecret {
    pub username: Option<String>,
    pub has_password: bool,
    pub has_api_key: bool,
    /// Which key sealed it.
    pub key_id: String,
    pub secret: Vec<u8>,
}

#[derive(Clone)]
pub struct NewCredential {
    pub id: CredentialId,
    pub org_id: OrgId,
    pub name: String,
    pub host: Option<String>,
    pub port: Option<i64>,
    pub tls: Option<TlsPolicy>,
    pub sealed: SealedSecret,
    pub now: Timestamp,
}

/// What to change; `None` keeps.
#[derive(Clone, Default)]
pub struct CredentialUpdate {
    pub name: Option<String>,
    pub host: Set<String>,
    pub port: Set<i64>,
    pub tls: Set<TlsPolicy>,
    pub sealed: Option<SealedSecret>,
}

#[derive(Clone, FromRow)]
pub struct SealedCredential {
    pub id: CredentialId,
    pub key_id: String,
    pub secret: Vec<u8>,
    pub version: i64,
}

const SELECT: &str =
    "SELECT c.id, c.org_id, c.name, c.username, c.has_password, c.has_api_key, c.host, c.port,
    c.tls, c.version, c.created_at, c.updated_at, c.deleted_at";
const FROM: &str = "FROM credential c";

pub async fn insert(tx: &mut Tx, new: &NewCredential) -> Result<Credential> {
    let sealed = &new.sealed;
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO credential (id, org_id, name, username, has_password, has_api_key, key_id, secret,
            host, port, tls, version, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $10, $11, $12, 1, $9, $9)
        RETURNING id, org_id, name, username, has_password, has_api_key, host, port, tls, version,
            created_at, updated_at, deleted_at")
        .bind(new.id).bind(new.org_id).bind(&new.name).bind(sealed.username.as_ref())
        .bind(sealed.has_password).bind(sealed.has_api_key).bind(&sealed.key_id).bind(&sealed.secret)
        .bind(new.now).bind(new.host.as_ref()).bind(new.port).bind(new.tls.as_ref().map(Json))
        .fetch_one(conn)
        .await)?)
}

pub async fn find(tx: &mut Tx, scope: &Scope, id: CredentialId) -> Result<Option<Credential>> {
    live(scope).and_bind("c.id = ?", Bind::Id(id.0)).one(tx).await
}

/// The credential as it is until the transaction ends: nobody else changes it meanwhile.
pub async fn lock(tx: &mut Tx, scope: &Scope, id: CredentialId) -> Result<Option<Credential>> {
    live(scope).and_bind("c.id = ?", Bind::Id(id.0)).one_locked(tx, "c").await
}

/// The sealed secret: for the call that needs it.
pub async fn find_sealed(tx: &mut Tx, org: OrgId, id: CredentialId) -> Result<Option<SealedCredential>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT id, key_id, secret, version
        FROM credential
        WHERE org_id = $1 AND id = $2 AND deleted_at IS NULL")
        .bind(org).bind(id)
        .fetch_optional(conn)
        .await)?)
}

pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    search: Option<&str>,
    page: impl Into<InOrder<Credential>>,
) -> Result<(Vec<Credential>, i64)> {
    live(scope).search(&["c.name", "c.username"], search).page(tx, page).await
}

/// A new secret raises the version, so that sessions opened with the old one are not used again.
pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    id: CredentialId,
    update: &CredentialUpdate,
    now: Timestamp,
) -> Result<Option<Credential>> {
    let sealed = update.sealed.as_ref();
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE credential
        SET name = COALESCE($3, name),
            username = CASE WHEN $4 THEN $5 ELSE username END,
            has_password = COALESCE($6, has_password), has_api_key = COALESCE($7, has_api_key),
            key_id = COALESCE($8, key_id), secret = COALESCE($9, secret),
            host = CASE WHEN $12 THEN $13 ELSE host END, port = CASE WHEN $14 THEN $15 ELSE port END,
            tls = CASE WHEN $16 THEN $17 ELSE tls END,
            version = CASE WHEN $4 THEN version + 1 ELSE version END, updated_at = $10
        WHERE id = $1 AND deleted_at IS NULL AND ($11 OR org_id = $2)
        RETURNING id, org_id, name, username, has_password, has_api_key, host, port, tls, version,
            created_at, updated_at, deleted_at")
        .bind(id).bind(scope.org).bind(update.name.as_ref())
        .bind(sealed.is_some()).bind(sealed.and_then(|s| s.username.as_ref()))
        .bind(sealed.map(|s| s.has_password)).bind(sealed.map(|s| s.has_api_key))
        .bind(sealed.map(|s| &s.key_id)).bind(sealed.map(|s| &s.secret))
        .bind(now).bind(scope.org.is_none())
        .bind(update.host.is_set()).bind(update.host.value())
        .bind(update.port.is_set()).bind(update.port.value())
        .bind(update.tls.is_set()).bind(update.tls.value().map(Json))
        .fetch_optional(conn)
        .await)?)
}

/// Hides the credential; false when there is none to hide. Ask [`used_by`] first.
pub async fn remove(tx: &mut Tx, scope: &Scope, id: CredentialId, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE credential SET deleted_at = $2, updated_at = $2
        WHERE id = $1 AND deleted_at IS NULL AND ($3 OR org_id = $4)"
        )
        .bind(id)
        .bind(now)
        .bind(scope.org.is_none())
        .bind(scope.org)
    );
    Ok(rows == 1)
}

/// Brings a removed credential back.
pub async fn restore(
    tx: &mut Tx,
    scope: &Scope,
    id: CredentialId,
    now: Timestamp,
) -> Result<Option<Credential>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE credential SET deleted_at = NULL, updated_at = $2
        WHERE id = $1 AND deleted_at IS NOT NULL AND ($3 OR org_id = $4)
        RETURNING id, org_id, name, username, has_password, has_api_key, host, port, tls, version,
            created_at, updated_at, deleted_at")
        .bind(id).bind(now).bind(scope.org.is_none()).bind(scope.org)
        .fetch_optional(conn)
        .await)?)
}

/// How many controllers that are not removed use the credential.
pub async fn used_by(tx: &mut Tx, id: CredentialId) -> Result<i64> {
    Ok(on!(tx, conn => sqlx::query_scalar(
        "SELECT COUNT(*) FROM controller WHERE credential_id = $1 AND deleted_at IS NULL")
        .bind(id)
        .fetch_one(conn)
        .await)?)
}

/// Whether controllers of these sites use the credential, and none of any other site.
///
/// A removed controller of another site counts: it can be restored.
pub async fn is_used_only_at(tx: &mut Tx, id: CredentialId, sites: &[SiteId]) -> Result<bool> {
    let using =
        || Select::new("SELECT c.id", "FROM controller c").and_bind("c.credential_id = ?", Bind::Id(id.0));
    let here = || using().and_in("c.site_id", sites.iter().map(|site| Bind::Id(site.0)));
    let in_use = here().and("c.deleted_at IS NULL").count(tx).await?;
    Ok(in_use > 0 && here().count(tx).await? == using().count(tx).await?)
}

fn live(scope: &Scope) -> Select {
    Select::new(SELECT, FROM).within(scope, "c.org_id", None).and("c.deleted_at IS NULL")
}

#[cfg(test)]
mod tests;
