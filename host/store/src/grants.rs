//! Which sites a user may access. A user without grants may access all of them.

use heddle_core::{SiteId, SiteLevel, Timestamp, UserId};
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::FromRow;

use crate::select::affected;
use crate::{Result, Tx};

#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow, Serialize, JsonSchema)]
pub struct SiteGrant {
    pub site_id: SiteId,
    pub level: SiteLevel,
}

#[derive(Debug, Clone)]
pub struct NewGrant {
    pub user_id: UserId,
    pub site_id: SiteId,
    pub level: SiteLevel,
    pub granted_by: UserId,
    pub now: Timestamp,
}

/// # Errors
/// [`crate::Error::Unique`] with `site_grant_pkey` when the user has one for the site.
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

pub async fn list(tx: &mut Tx, user: UserId) -> Result<Vec<SiteGrant>> {
    Ok(on!(tx, conn => sqlx::query_as(
        "SELECT site_id, level FROM site_grant WHERE user_id = $1 ORDER BY created_at, site_id LIMIT 10000")
        .bind(user)
        .fetch_all(conn)
        .await)?)
}

#[cfg(test)]
mod tests;
