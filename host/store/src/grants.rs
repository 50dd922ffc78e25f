//! Which sites a user may access. A user without grants may access all of them.
//!
//! A grant for a removed site still counts: losing a site must not open the others.

use heddle_core::{OrgId, SiteId, SiteLevel, Timestamp, UserId};
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::{FromRow, QueryBuilder};

use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Scope, Select, affected};
use crate::sort::{InOrder, Key, Sorted};

/// Rows of one INSERT: five values each, far below both databases' limit of parameters.
const ROWS_PER_STATEMENT: usize = 1_000;

/// One site that a user may access, and how far. A user without any grant may access all sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow, Serialize, JsonSchema)]
pub struct SiteGrant {
    pub site_id: SiteId,
    pub level: SiteLevel,
}

/// A grant with its user and its site.
#[derive(Debug, Clone, PartialEq, FromRow, Serialize, JsonSchema)]
pub struct SiteAccess {
    #[serde(rename = "organization_id")]
    pub org_id: OrgId,
    pub user_id: UserId,
    pub username: String,
    pub site_id: SiteId,
    pub site_name: String,
    /// When the site was removed. Its grant goes on to count as one.
    pub site_deleted_at: Option<Timestamp>,
    pub level: SiteLevel,
    pub granted_by: UserId,
    pub created_at: Timestamp,
}

impl Sorted for SiteAccess {
    const KEYS: &'static [Key] = &[
        Key::of("username", "u.username_folded"),
        Key::of("site_name", "LOWER(s.name)"),
        Key::of("level", "CASE g.level WHEN 'read' THEN 0 WHEN 'write' THEN 1 ELSE 2 END"),
        Key::of("created_at", "g.created_at"),
    ];
    const DEFAULT: &'static str = "created_at";
    const LAST: &'static [&'static str] = &["g.user_id", "g.site_id"];
}

/// A row of `site_grant` about to be written. The caller checks that user and site are of one organization.
/// [`upsert`] keeps the time of a grant that is there already, and replaces its level and `granted_by`.
#[derive(Debug, Clone)]
pub struct NewGrant {
    pub user_id: UserId,
    pub site_id: SiteId,
    pub level: SiteLevel,
    pub granted_by: UserId,
    pub now: Timestamp,
}

/// Narrows a list of grants within its scope. A field that is `None` has no effect; all others must hold.
#[derive(Debug, Clone, Default)]
pub struct GrantFilter {
    pub user_id: Option<UserId>,
    pub site_id: Option<SiteId>,
}

const SELECT: &str = "SELECT u.org_id, g.user_id, u.username, g.site_id, s.name AS site_name,
    s.deleted_at AS site_deleted_at, g.level, g.granted_by, g.created_at";
const FROM: &str = "FROM site_grant g JOIN app_user u ON u.id = g.user_id JOIN site s ON s.id = g.site_id";

/// # Errors
/// [`crate::error::Error::Unique`] with `site_grant_pkey` when the user has one for the site.
pub async fn insert(tx: &mut Tx, new: &NewGrant) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "INSERT INTO site_grant (user_id, site_id, level, granted_by, created_at) VALUES ($1, $2, $3, $4, $5)"
        )
        .bind(new.user_id)
        .bind(new.site_id)
        .bind(new.level)
        .bind(new.granted_by)
        .bind(new.now)
    );
    Ok(())
}

/// Writes grants; one that is there gets the new level. None may be named twice.
///
/// The number of statements grows with the thousands of grants, not with the grants.
pub async fn upsert(tx: &mut Tx, new: &[NewGrant]) -> Result<()> {
    for rows in new.chunks(ROWS_PER_STATEMENT) {
        on!(tx, conn => {
            let mut insert = QueryBuilder::new(
                "INSERT INTO site_grant (user_id, site_id, level, granted_by, created_at) ",
            );
            insert.push_values(rows, |mut row, grant| {
                row.push_bind(grant.user_id)
                    .push_bind(grant.site_id)
                    .push_bind(grant.level)
                    .push_bind(grant.granted_by)
                    .push_bind(grant.now);
            });
            insert.push(
                " ON CONFLICT (user_id, site_id) DO UPDATE
                SET level = excluded.level, granted_by = excluded.granted_by",
            );
            insert.build().execute(conn).await.map(|_| ())
        })?;
    }
    Ok(())
}

/// The user's grants.
pub async fn list(tx: &mut Tx, user: UserId) -> Result<Vec<SiteGrant>> {
    Ok(on!(tx, conn => sqlx::query_as(
        "SELECT site_id, level FROM site_grant WHERE user_id = $1 ORDER BY created_at, site_id LIMIT 10000")
        .bind(user)
        .fetch_all(conn)
        .await)?)
}

/// The grant of a user who is not removed for a site; the site may be.
pub async fn find(tx: &mut Tx, scope: &Scope, user: UserId, site: SiteId) -> Result<Option<SiteAccess>> {
    within(scope)
        .and_bind("g.user_id = ?", Bind::Id(user.0))
        .and_bind("g.site_id = ?", Bind::Id(site.0))
        .one(tx)
        .await
}

/// Grants of users who are not removed.
pub async fn page(
    tx: &mut Tx,
    scope: &Scope,
    filter: &GrantFilter,
    page: impl Into<InOrder<SiteAccess>>,
) -> Result<(Vec<SiteAccess>, i64)> {
    within(scope)
        .and_some("g.user_id = ?", filter.user_id.map(|id| Bind::Id(id.0)))
        .and_some("g.site_id = ?", filter.site_id.map(|id| Bind::Id(id.0)))
        .page(tx, page)
        .await
}

/// Which of these users have grants for which of these sites.
pub async fn pairs(tx: &mut Tx, users: &[UserId], sites: &[SiteId]) -> Result<Vec<(UserId, SiteId)>> {
    Select::new("SELECT g.user_id, g.site_id", "FROM site_grant g")
        .and_in("g.user_id", users.iter().map(|id| Bind::Id(id.0)))
        .and_in("g.site_id", sites.iter().map(|id| Bind::Id(id.0)))
        .all(tx, "g.user_id, g.site_id", i64::try_from(users.len() * sites.len()).unwrap_or(i64::MAX))
        .await
}

/// How many grants the user has, those for removed sites too.
pub async fn count(tx: &mut Tx, user: UserId) -> Result<i64> {
    Select::new("SELECT g.user_id", "FROM site_grant g")
        .and_bind("g.user_id = ?", Bind::Id(user.0))
        .count(tx)
        .await
}

/// Takes a grant away; false when there is none.
pub async fn revoke(tx: &mut Tx, user: UserId, site: SiteId) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query("DELETE FROM site_grant WHERE user_id = $1 AND site_id = $2").bind(user).bind(site)
    );
    Ok(rows == 1)
}

fn within(scope: &Scope) -> Select {
    Select::new(SELECT, FROM).within(scope, "u.org_id", Some("g.site_id")).and("u.deleted_at IS NULL")
}

#[cfg(test)]
mod tests;
