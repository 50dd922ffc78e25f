//! How far each purpose that follows the events has come, by organization.

use std::collections::HashMap;

use heddle_core::OrgId;

use crate::db::Tx;
use crate::error::Result;
use crate::select::affected;

/// Where a purpose stands in each organization that it has seen an event of.
pub async fn positions(tx: &mut Tx, name: &str) -> Result<HashMap<OrgId, i64>> {
    let rows: Vec<(OrgId, i64)> = on!(tx, conn => sqlx::query_as("SELECT org_id, seq FROM event_consumer WHERE name = $1")
        .bind(name)
        .fetch_all(conn)
        .await)?;
    Ok(rows.into_iter().collect())
}

/// Holds a purpose's place in an organization until the transaction ends, and answers where it is.
///
/// Others wait: what follows from an event is written by one of them.
pub async fn hold(tx: &mut Tx, name: &str, org: OrgId) -> Result<i64> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        INSERT INTO event_consumer (name, org_id, seq) VALUES ($1, $2, 0)
        ON CONFLICT (name, org_id) DO UPDATE SET seq = event_consumer.seq
        RETURNING seq")
        .bind(name).bind(org)
        .fetch_one(conn)
        .await)?)
}

/// Moves a purpose on; never back.
pub async fn advance(tx: &mut Tx, name: &str, org: OrgId, seq: i64) -> Result<()> {
    affected!(
        tx,
        sqlx::query("UPDATE event_consumer SET seq = $3 WHERE name = $1 AND org_id = $2 AND seq < $3")
            .bind(name)
            .bind(org)
            .bind(seq)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, on_both};

    on_both! {
        async fn a_purpose_moves_on_and_never_back(db) {
            let world = World::new(&db, "a").await;
            let mut tx = db.write().await.unwrap();
            assert!(positions(&mut tx, "fabric").await.unwrap().is_empty());
            assert_eq!(hold(&mut tx, "fabric", world.org).await.unwrap(), 0);
            advance(&mut tx, "fabric", world.org, 7).await.unwrap();
            advance(&mut tx, "fabric", world.org, 5).await.unwrap();
            assert_eq!(hold(&mut tx, "fabric", world.org).await.unwrap(), 7);
            assert_eq!(hold(&mut tx, "webhooks", world.org).await.unwrap(), 0);
            assert_eq!(positions(&mut tx, "fabric").await.unwrap(), HashMap::from([(world.org, 7)]));
        }
    }
}
