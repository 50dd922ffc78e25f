//! When adapters were released last, for every process that serves the database.

use heddle_core::Timestamp;

use crate::db::Tx;
use crate::error::Result;
use crate::select::affected;

/// More than can be installed.
const RELEASES_MAX: i64 = 1_000;

/// A component that takes calls again since then.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Release {
    pub adapter_id: String,
    pub component_sha256: String,
    pub released_at: Timestamp,
}

/// Keeps the last release of an adapter.
pub async fn record(tx: &mut Tx, release: &Release) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "INSERT INTO adapter_release (adapter_id, component_sha256, released_at) VALUES ($1, $2, $3)
            ON CONFLICT (adapter_id) DO UPDATE
            SET component_sha256 = excluded.component_sha256, released_at = excluded.released_at"
        )
        .bind(&release.adapter_id)
        .bind(&release.component_sha256)
        .bind(release.released_at)
    );
    Ok(())
}

/// The last release of every adapter that was released.
pub async fn all(tx: &mut Tx) -> Result<Vec<Release>> {
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT adapter_id, component_sha256, released_at FROM adapter_release
        ORDER BY adapter_id LIMIT CAST($1 AS BIGINT)")
        .bind(RELEASES_MAX)
        .fetch_all(conn)
        .await)?)
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;
    use crate::testing::on_both;

    on_both! {
        async fn the_last_release_of_an_adapter_is_kept(db) {
            let clock = Clock::default();
            let release = |sha256: &str| Release {
                adapter_id: "acme".to_owned(),
                component_sha256: sha256.to_owned(),
                released_at: clock.now(),
            };
            let (first, second) = (release("ab"), release("cd"));
            let mut tx = db.write().await.unwrap();
            assert_eq!(all(&mut tx).await.unwrap(), []);
            record(&mut tx, &first).await.unwrap();
            record(&mut tx, &second).await.unwrap();
            assert_eq!(all(&mut tx).await.unwrap(), [second]);
        }
    }
}
