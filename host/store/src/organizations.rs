//! Organizations. Removing one hides it; its rows stay.

use heddle_core::{OrgId, Tier, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sqlx::FromRow;

use crate::select::{Bind, Select, affected};
use crate::sort::{InOrder, Key, Sorted};
use crate::{Result, Scope, Tx};

#[derive(Debug, Clone, PartialEq, FromRow, Serialize, JsonSchema)]
pub struct Organization {
    pub id: OrgId,
    pub name: String,
    /// Unique among the organizations that are not removed.
    pub slug: String,
    /// How much it may have.
    pub tier: Tier,
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub settings: Value,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

impl Sorted for Organization {
    const KEYS: &'static [Key] = &[
        Key::of("name", "LOWER(o.name)"),
        Key::of("slug", "LOWER(o.slug)"),
        Key::of("tier", "CASE o.tier WHEN 'free' THEN 0 WHEN 'standard' THEN 1 ELSE 2 END"),
        Key::of("created_at", "o.created_at"),
        Key::of("updated_at", "o.updated_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["o.id"];
}

#[derive(Debug, Clone)]
pub struct NewOrganization {
    pub id: OrgId,
    pub name: String,
    pub slug: String,
    pub settings: Value,
    pub now: Timestamp,
}

/// What to change; `None` keeps.
#[derive(Debug, Clone, Default)]
pub struct OrganizationUpdate {
    pub name: Option<String>,
    pub slug: Option<String>,
    pub tier: Option<Tier>,
    pub settings: Option<Value>,
}

#[derive(Debug, Clone, Default)]
pub struct OrganizationFilter {
    pub tier: Option<Tier>,
    /// Part of the name or the slug.
    pub search: Option<String>,
}

const SELECT: &str =
    "SELECT o.id, o.name, o.slug, o.tier, o.settings, o.created_at, o.updated_at, o.deleted_at";
const FROM: &str = "FROM organization o";

/// A new organization is of the tier `standard`.
///
/// # Errors
/// [`crate::Error::Unique`] with `organization_slug` when the slug is taken.
pub async fn insert(tx: &mut Tx, new: &NewOrganization) -> Result<Organization> {
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO organization (id, name, slug, settings, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $5)
        RETURNING id, name, slug, tier, settings, created_at, updated_at, deleted_at")
        .bind(new.id).bind(&new.name).bind(&new.slug).bind(&new.settings).bind(new.now)
        .fetch_one(conn)
        .await)?)
}

pub async fn find(tx: &mut Tx, scope: &Scope, id: OrgId) -> Result<Option<Organization>> {
    live(scope).and_bind("o.id = ?", Bind::Id(id.0)).one(tx).await
}

/// The organization as it is until the transaction ends: nobody else changes it meanwhile.
pub async fn lock(tx: &mut Tx, scope: &Scope, id: OrgId) -> Result<Option<Organization>> {
    live(scope).and_bind("o.id = ?", Bind::Id(id.0)).one_locked(tx, "o").await
}

pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    filter: &OrganizationFilter,
    page: impl Into<InOrder<Organization>>,
) -> Result<(Vec<Organization>, i64)> {
    live(scope)
        .and_some("o.tier = ?", filter.tier.map(|tier| Bind::Text(tier.to_string())))
        .search(&["o.name", "o.slug"], filter.search.as_deref())
        .page(tx, page)
        .await
}

/// # Errors
/// [`crate::Error::Unique`] with `organization_slug` when the slug is taken.
pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    id: OrgId,
    update: &OrganizationUpdate,
    now: Timestamp,
) -> Result<Option<Organization>> {
    if find(tx, scope, id).await?.is_none() {
        return Ok(None);
    }
    affected!(
        tx,
        sqlx::query(
            "
        UPDATE organization
        SET name = COALESCE($2, name), slug = COALESCE($3, slug),
            settings = COALESCE($4, settings), tier = COALESCE($6, tier), updated_at = $5
        WHERE id = $1 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(update.name.as_ref())
        .bind(update.slug.as_ref())
        .bind(update.settings.as_ref())
        .bind(now)
        .bind(update.tier)
    );
    find(tx, scope, id).await
}

/// Hides the organization; false when there is none to hide. Its slug is free again.
pub async fn remove(tx: &mut Tx, scope: &Scope, id: OrgId, now: Timestamp) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        UPDATE organization SET deleted_at = $2, updated_at = $2
        WHERE id = $1 AND deleted_at IS NULL AND ($3 OR id = $4)"
        )
        .bind(id)
        .bind(now)
        .bind(scope.org.is_none())
        .bind(scope.org)
    );
    Ok(rows == 1)
}

/// Brings a removed organization back.
///
/// # Errors
/// [`crate::Error::Unique`] with `organization_slug` when its slug was taken since.
pub async fn restore(tx: &mut Tx, scope: &Scope, id: OrgId, now: Timestamp) -> Result<Option<Organization>> {
    Ok(on!(tx, conn => sqlx::query_as("
        UPDATE organization SET deleted_at = NULL, updated_at = $2
        WHERE id = $1 AND deleted_at IS NOT NULL AND ($3 OR id = $4)
        RETURNING id, name, slug, tier, settings, created_at, updated_at, deleted_at")
        .bind(id).bind(now).bind(scope.org.is_none()).bind(scope.org)
        .fetch_optional(conn)
        .await)?)
}

fn live(scope: &Scope) -> Select {
    Select::new(SELECT, FROM).within(scope, "o.id", None).and("o.deleted_at IS NULL")
}

/// Every organization's settings, also of those that were removed.
pub async fn settings(tx: &mut Tx) -> Result<Vec<(OrgId, serde_json::Value)>> {
    Ok(on!(tx, conn => sqlx::query_as("SELECT id, settings FROM organization ORDER BY id")
        .fetch_all(conn)
        .await)?)
}

#[cfg(test)]
mod tests;
