//! Which generation of its signing secret an organization uses. The secrets themselves are the caller's to make.

use heddle_core::{OrgId, Timestamp};
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;

/// A row of `organization_signing`: the number of the secret that signs now, and since when it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
pub struct Signing {
    /// From 1.
    pub generation: i64,
    pub rotated_at: Timestamp,
}

/// `None` where the organization never asked for a secret.
pub async fn find(tx: &mut Tx, org: OrgId) -> Result<Option<Signing>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT generation, rotated_at FROM organization_signing WHERE org_id = $1")
        .bind(org)
        .fetch_optional(conn)
        .await)?)
}

/// Begins the next generation.
pub async fn rotate(tx: &mut Tx, org: OrgId, now: Timestamp) -> Result<Signing> {
    Ok(on!(tx, conn => sqlx::query_as("
        INSERT INTO organization_signing (org_id, generation, rotated_at) VALUES ($1, 1, $2)
        ON CONFLICT (org_id) DO UPDATE SET generation = organization_signing.generation + 1,
            rotated_at = excluded.rotated_at
        RETURNING generation, rotated_at")
        .bind(org)
        .bind(now)
        .fetch_one(conn)
        .await)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, on_both};

    on_both! {
        async fn generations_follow_each_other_in_each_organization(db) {
            let (a, b) = (World::new(&db, "a").await, World::new(&db, "b").await);
            let mut tx = db.write().await.unwrap();
            assert_eq!(find(&mut tx, a.org).await.unwrap(), None);
            let now = a.clock.now();
            assert_eq!(rotate(&mut tx, a.org, now).await.unwrap(), Signing { generation: 1, rotated_at: now });
            let second = rotate(&mut tx, a.org, now).await.unwrap();
            assert_eq!((second.generation, find(&mut tx, a.org).await.unwrap()), (2, Some(second)));
            assert_eq!(find(&mut tx, b.org).await.unwrap(), None);
        }
    }
}
