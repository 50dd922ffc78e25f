//! Sites, with how much is on them.

use heddle_core::{OrgId, SiteId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sqlx::FromRow;

use crate::select::{Bind, Select, affected};
use crate::sort::{InOrder, Key, Sorted};
use crate::{Result, Scope, Tx};

#[derive(Debug, Clone, PartialEq, FromRow, Serialize, JsonSchema)]
pub struct Site {
    pub id: SiteId,
    #[serde(rename = "organization_id")]
    pub org_id: OrgId,
    pub name: String,
    /// Unique among the organization's sites that are not removed.
    pub slug: String,
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub settings: Value,
    pub controller_count: i64,
    pub device_count: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

impl Sorted for Site {
    const KEYS: &'static [Key] = &[
        Key::of("name", "LOWER(s.name)"),
        Key::of("slug", "LOWER(s.slug)"),
        Key::of("created_at", "s.created_at"),
        Key::of("updated_at", "s.updated_at"),
        Key::of("controller_count", "controller_count"),
        Key::of("device_count", "device_count"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["s.id"];
}

#[derive(Debug, Clone)]
pub struct NewSite {
    pub id: SiteId,
    pub org_id: OrgId,
    pub name: String,
    pub slug: String,
    pub settings: Value,
    pub now: Timestamp,
}

/// What to change; `None` keeps.
#[derive(Debug, Clone, Default)]
pub struct SiteUpdate {
    pub name: Option<String>,
    pub slug: Option<String>,
    pub settings: Option<Value>,
}

const SELECT: &str =
    "SELECT s.id, s.org_id, s.name, s.slug, s.settings, s.created_at, s.updated_at, s.deleted_at,
    (SELECT COUNT(*) FROM controller c
        WHERE c.site_id = s.id AND c.deleted_at IS NULL) AS controller_count,
    (SELECT COUNT(*) FROM device d
        WHERE d.org_id = s.org_id AND d.site_id = s.id AND d.deleted_at IS NULL) AS device_count";
const FROM: &str = "FROM site s";

/// # Errors
/// [`crate::Error::Unique`] with `site_slug` when the slug is taken.
pub async fn insert(tx: &mut Tx, new: &NewSite) -> Result<Site> {
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO site (id, org_id, name, slug, settings, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $6)
        RETURNING id, org_id, name, slug, settings, created_at, updated_at, deleted_at,
            CAST(0 AS BIGINT) AS controller_count, CAST(0 AS BIGINT) AS device_count")
        .bind(new.id).bind(new.org_id).bind(&new.name).bind(&new.slug).bind(&new.settings).bind(new.now)
        .fetch_one(conn)
        .await)?)
}

pub async fn find(tx: &mut Tx, scope: &Scope, id: SiteId) -> Result<Option<Site>> {
    within(scope).and("s.deleted_at IS NULL").and_bind("s.id = ?", Bind::Id(id.0)).one(tx).await
}

/// The site as it is until the transaction ends: nobody else changes it meanwhile.
pub async fn lock(tx: &mut Tx, scope: &Scope, id: SiteId) -> Result<Option<Site>> {
    within(scope).and("s.deleted_at IS NULL").and_bind("s.id = ?", Bind::Id(id.0)).one_locked(tx, "s").await
}

/// Those of these sites that are in the scope and not removed.
pub async fn visible(tx: &mut Tx, scope: &Scope, ids: &[SiteId]) -> Result<Vec<SiteId>> {
    let found: Vec<(SiteId,)> = Select::new("SELECT s.id", FROM)
        .within(scope, "s.org_id", Some("s.id"))
        .and("s.deleted_at IS NULL")
        .and_in("s.id", ids.iter().map(|id| Bind::Id(id.0)))
        .all(tx, "s.id", i64::try_from(ids.len()).unwrap_or(i64::MAX))
        .await?;
    Ok(found.into_iter().map(|(id,)| id).collect())
}

/// A page of sites with their counts; they come with the rows, not row by row.
pub async fn list(
    tx: &mut Tx,
    scope: &Scope,
    search: Option<&str>,
    page: impl Into<InOrder<Site>>,
) -> Result<(Vec<Site>, i64)> {
    within(scope).and("s.deleted_at IS NULL").search(&["s.name", "s.slug"], search).page(tx, page).await
}

/// # Errors
/// [`crate::Error::Unique`] with `site_slug` when the slug is taken.
pub async fn update(
    tx: &mut Tx,
    scope: &Scope,
    id: SiteId,
    update: &SiteUpdate,
    now: Timestamp,
) -> Result<Option<Site>> {
    if find(tx, scope, id).await?.is_none() {
        return Ok(None);
    }
    affected!(
        tx,
        sqlx::query(
            "
        UPDATE site
        SET name = COALESCE($2, name), slug = COALESCE($3, slug),
            settings = COALESCE($4, settings), updated_at = $5
        WHERE id = $1 AND deleted_at IS NULL"
        )
        .bind(id)
        .bind(update.name.as_ref())
        .bind(update.slug.as_ref())
        .bind(update.settings.as_ref())
        .bind(now)
    );
    find(tx, scope, id).await
}

/// Hides the site; false when there is none to hide. Its slug is free again.
pub async fn remove(tx: &mut Tx, scope: &Scope, id: SiteId, now: Timestamp) -> Result<bool> {
    if find(tx, scope, id).await?.is_none() {
        return Ok(false);
    }
    let rows = affected!(
        tx,
        sqlx::query("UPDATE site SET deleted_at = $2, updated_at = $2 WHERE id = $1 AND deleted_at IS NULL")
            .bind(id)
            .bind(now)
    );
    Ok(rows == 1)
}

/// Brings a removed site back.
///
/// # Errors
/// [`crate::Error::Unique`] with `site_slug` when its slug was taken since.
pub async fn restore(tx: &mut Tx, scope: &Scope, id: SiteId, now: Timestamp) -> Result<Option<Site>> {
    let removed = within(scope).and("s.deleted_at IS NOT NULL").and_bind("s.id = ?", Bind::Id(id.0));
    if removed.one::<Site>(tx).await?.is_none() {
        return Ok(None);
    }
    affected!(
        tx,
        sqlx::query("UPDATE site SET deleted_at = NULL, updated_at = $2 WHERE id = $1").bind(id).bind(now)
    );
    find(tx, scope, id).await
}

fn within(scope: &Scope) -> Select {
    Select::new(SELECT, FROM).within(scope, "s.org_id", Some("s.id"))
}

#[cfg(test)]
mod tests;
