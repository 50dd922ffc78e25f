//! Credentials of controllers. The secret is sealed by the caller; here it is opaque, and never serializes.

use heddle_core::tls::TlsPolicy;
use heddle_core::{CredentialId, OrgId, SiteId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::object::{self, Columns, Object, Table, revised, table};
use crate::select::{Bind, Scope, Select, Set};
use crate::sort::{InOrder, Key, Sorted};

/// A credential of controllers. Of its secret parts, only their presence is shown.
#[derive(Debug, Clone, PartialEq, Eq, FromRow, Serialize, JsonSchema)]
pub struct Credential {
    pub id: CredentialId,
    /// How often people have edited it.
    #[serde(skip)]
    pub revision: i64,
    #[serde(rename = "organization_id")]
    pub org_id: OrgId,
    pub name: String,
    pub username: Option<String>,
    pub has_password: bool,
    pub has_api_key: bool,
    /// Names of its other fields, such as `client-secret`.
    #[sqlx(json)]
    pub field_names: Vec<String>,
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
        Key::of("name", "LOWER(credential.name)"),
        Key::of("created_at", "credential.created_at"),
        Key::of("updated_at", "credential.updated_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["credential.id"];
}

/// A sealed secret and what may be shown of it.
#[derive(Clone)]
pub struct SealedSecret {
    pub username: Option<String>,
    pub has_password: bool,
    pub has_api_key: bool,
    /// Names of the other fields, in order.
    pub field_names: Vec<String>,
    /// Which key sealed it.
    pub key_id: String,
    pub secret: Vec<u8>,
}

impl SealedSecret {
    fn columns(&self, columns: Columns) -> Columns {
        columns
            .or_null("username", self.username.as_ref())
            .with("has_password", self.has_password)
            .with("has_api_key", self.has_api_key)
            .with("field_names", json!(self.field_names))
            .with("key_id", &self.key_id)
            .with("secret", &self.secret)
    }
}

/// A row of `credential` about to be written. Its version begins at 1.
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

/// A row of `credential` with the sealed secret, which opens only for the id of this row.
/// `version` grows with every new secret, so that sessions opened with an older one can be told.
#[derive(Clone, FromRow)]
pub struct SealedCredential {
    pub id: CredentialId,
    pub key_id: String,
    pub secret: Vec<u8>,
    pub version: i64,
}

revised!(Credential);

impl Object for Credential {
    type Id = CredentialId;
    const TABLE: Table = table!(
        "credential",
        "credential.id, credential.revision, credential.org_id, credential.name, credential.username, credential.has_password,
        credential.has_api_key, credential.field_names, credential.host, credential.port, credential.tls, credential.version,
        credential.created_at, credential.updated_at, credential.deleted_at",
        org: "org_id"
    );

    fn organization(&self) -> OrgId {
        self.org_id
    }
}

/// Writes the credential and returns it without its secret. Two of an organization may have the same name.
pub async fn insert(tx: &mut Tx, new: &NewCredential) -> Result<Credential> {
    let columns = Columns::default()
        .with("org_id", new.org_id.0)
        .with("name", &new.name)
        .or_null("host", new.host.as_ref())
        .or_null("port", new.port)
        .or_null("tls", new.tls.as_ref().map(|tls| json!(tls)))
        .with("version", 1);
    object::insert(tx, new.id, new.sealed.columns(columns), new.now).await
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

/// Returns a page of the credentials that are not removed, and how many there are on all pages.
/// The oldest come first unless the page names another order.
/// `search` finds a part of the name or the user name.
pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    search: Option<&str>,
    page: impl Into<InOrder<Credential>>,
) -> Result<(Vec<Credential>, i64)> {
    object::live::<Credential>(scope)
        .search(&["credential.name", "credential.username"], search)
        .page(tx, page)
        .await
}

/// A new secret raises the version, so that sessions opened with the old one are not used again.
pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    id: CredentialId,
    update: &CredentialUpdate,
    now: Timestamp,
) -> Result<Option<Credential>> {
    let mut columns = Columns::default()
        .or_keep("name", update.name.as_ref())
        .set("host", &update.host)
        .set("port", &update.port)
        .set("tls", &update.tls.map(|tls| json!(tls)));
    if let Some(sealed) = &update.sealed {
        columns = sealed.columns(columns).raised("version");
    }
    object::update(tx, scope, id, columns, now).await
}

/// How many controllers that are not removed use the credential.
pub async fn used_by(tx: &mut Tx, id: CredentialId) -> Result<i64> {
    Ok(on!(tx, conn => sqlx::query_scalar(
        "SELECT COUNT(*) FROM controller WHERE credential_id = $1 AND deleted_at IS NULL")
        .bind(id)
        .fetch_one(conn)
        .await)?)
}

/// The vendors of the controllers that use the credential and are not removed, in order.
pub async fn vendors(tx: &mut Tx, id: CredentialId) -> Result<Vec<String>> {
    Ok(on!(tx, conn => sqlx::query_scalar(
        "SELECT DISTINCT vendor FROM controller WHERE credential_id = $1 AND deleted_at IS NULL ORDER BY vendor")
        .bind(id)
        .fetch_all(conn)
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

#[cfg(test)]
mod tests;
