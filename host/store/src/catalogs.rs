//! What this service believes of catalogues of packages, and what they revoked.

use heddle_core::Timestamp;
use serde_json::Value;
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Select, affected};

heddle_core::ids! {
    /// A catalogue, by what its trust began with.
    pub CatalogId,
}

/// Largest part of a catalogue that is one row, in bytes. A backup holds hundreds of rows in memory at once.
const PART_BYTES: usize = 128 << 10;

/// A catalogue, and how its last update went.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct CatalogRow {
    pub id: CatalogId,
    /// What the trust began with: one text for each first root, pinned key, or none.
    pub trust: String,
    /// What the last good update left, as the package format writes it.
    pub state: Value,
    /// Counts changes of the state.
    pub revision: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// When an update was tried last.
    pub tried_at: Option<Timestamp>,
    /// How that went.
    pub outcome: Option<String>,
    /// The step that failed.
    pub step: Option<String>,
    pub reason: Option<String>,
}

/// When an update was tried last, and how that went.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Pulse {
    pub tried_at: Option<Timestamp>,
    pub outcome: Option<String>,
}

fn of(trust: &str) -> Select {
    Select::new("SELECT c.*", "FROM package_catalog c").and_bind("c.trust = ?", Bind::Text(trust.to_owned()))
}

/// The catalogue of this beginning of trust; `None` before its first update.
pub async fn find(tx: &mut Tx, trust: &str) -> Result<Option<CatalogRow>> {
    of(trust).one(tx).await
}

/// The same, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, trust: &str) -> Result<Option<CatalogRow>> {
    of(trust).one_locked(tx, "c").await
}

/// When an update of the catalogue of this trust was tried last; `None` before the first.
pub async fn pulse(tx: &mut Tx, trust: &str) -> Result<Option<Pulse>> {
    Ok(on!(tx, conn => sqlx::query_as("SELECT tried_at, outcome FROM package_catalog WHERE trust = $1")
        .bind(trust)
        .fetch_optional(conn)
        .await)?)
}

/// Writes a catalogue whose first update was tried.
pub async fn insert(tx: &mut Tx, row: &CatalogRow) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO package_catalog (id, trust, state, revision, created_at, updated_at, tried_at, outcome, step, reason)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
        )
        .bind(row.id)
        .bind(&row.trust)
        .bind(&row.state)
        .bind(row.revision)
        .bind(row.created_at)
        .bind(row.updated_at)
        .bind(row.tried_at)
        .bind(&row.outcome)
        .bind(&row.step)
        .bind(&row.reason)
    );
    Ok(())
}

/// Writes what a locked catalogue is from now on, with the revision that the row has.
pub async fn update(tx: &mut Tx, row: &CatalogRow) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        UPDATE package_catalog
        SET state = $2, revision = $3, updated_at = $4, tried_at = $5, outcome = $6, step = $7, reason = $8
        WHERE id = $1"
        )
        .bind(row.id)
        .bind(&row.state)
        .bind(row.revision)
        .bind(row.updated_at)
        .bind(row.tried_at)
        .bind(&row.outcome)
        .bind(&row.step)
        .bind(&row.reason)
    );
    Ok(())
}

/// Keeps the bytes of the catalogue that the state names, in place of those from before.
pub async fn put_bytes(tx: &mut Tx, id: CatalogId, bytes: &[u8]) -> Result<()> {
    affected!(tx, sqlx::query("DELETE FROM package_catalog_part WHERE catalog_id = $1").bind(id));
    for (position, part) in (0_i64..).zip(bytes.chunks(PART_BYTES)) {
        affected!(
            tx,
            sqlx::query("INSERT INTO package_catalog_part (catalog_id, position, bytes) VALUES ($1, $2, $3)")
                .bind(id)
                .bind(position)
                .bind(part)
        );
    }
    Ok(())
}

/// The bytes of the catalogue that the state names; empty where it names none.
pub async fn bytes(tx: &mut Tx, id: CatalogId) -> Result<Vec<u8>> {
    let parts: Vec<Vec<u8>> = on!(tx, conn => sqlx::query_scalar("
        SELECT bytes FROM package_catalog_part WHERE catalog_id = $1 ORDER BY position")
        .bind(id)
        .fetch_all(conn)
        .await)?;
    Ok(parts.concat())
}

/// What catalogues have revoked.
pub async fn revocations(tx: &mut Tx) -> Result<Vec<Value>> {
    // Each catalogue has few, and catalogues are what operators have named. None may be left out.
    Ok(
        on!(tx, conn => sqlx::query_scalar("SELECT entry FROM package_revocation ORDER BY catalog_id, position")
        .fetch_all(conn)
        .await)?,
    )
}

/// What one catalogue has revoked.
pub async fn revocations_of(tx: &mut Tx, id: CatalogId) -> Result<Vec<Value>> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        SELECT entry FROM package_revocation WHERE catalog_id = $1 ORDER BY position")
        .bind(id)
        .fetch_all(conn)
        .await)?)
}

/// Writes what a catalogue revokes from now on, in place of what it did. The gate must be held.
pub async fn put_revocations(tx: &mut Tx, id: CatalogId, entries: &[Value]) -> Result<()> {
    affected!(tx, sqlx::query("DELETE FROM package_revocation WHERE catalog_id = $1").bind(id));
    for (position, entry) in (0_i64..).zip(entries) {
        affected!(
            tx,
            sqlx::query("INSERT INTO package_revocation (catalog_id, position, entry) VALUES ($1, $2, $3)")
                .bind(id)
                .bind(position)
                .bind(entry)
        );
    }
    affected!(tx, sqlx::query("UPDATE package_gate SET revision = revision + 1 WHERE id = 1"));
    Ok(())
}

/// How often what is revoked was changed.
pub async fn gate(tx: &mut Tx) -> Result<i64> {
    let revision: Option<i64> =
        on!(tx, conn => sqlx::query_scalar("SELECT revision FROM package_gate").fetch_optional(conn).await)?;
    Ok(revision.unwrap_or_default())
}

/// Holds the gate until the transaction ends: what is revoked stays as it is. It is the first lock of a transaction that needs
/// it, before the rows of plugins.
pub async fn hold_gate(tx: &mut Tx) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "INSERT INTO package_gate (id, revision) VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET id = excluded.id"
        )
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;
    use serde_json::json;

    use super::*;
    use crate::testing::on_both;

    on_both! {
        async fn a_catalogue_is_kept_with_its_bytes_and_its_revocations(db) {
            let clock = Clock::default();
            let now = clock.now();
            let row = CatalogRow {
                id: clock.new_id(),
                trust: "root:ab".to_owned(),
                state: json!({ "a": 1 }),
                revision: 1,
                created_at: now,
                updated_at: now,
                tried_at: Some(now),
                outcome: Some("updated".to_owned()),
                step: None,
                reason: None,
            };
            let mut tx = db.write().await.unwrap();
            assert_eq!(find(&mut tx, "root:ab").await.unwrap(), None);
            insert(&mut tx, &row).await.unwrap();
            let next = CatalogRow { revision: 2, step: Some("root".to_owned()), ..row.clone() };
            update(&mut tx, &next).await.unwrap();
            assert_eq!(lock(&mut tx, "root:ab").await.unwrap(), Some(next));
            assert_eq!(find(&mut tx, "key:ab").await.unwrap(), None);
            let told = Pulse { tried_at: Some(now), outcome: Some("updated".to_owned()) };
            assert_eq!(pulse(&mut tx, "root:ab").await.unwrap(), Some(told));
            assert_eq!(pulse(&mut tx, "key:ab").await.unwrap(), None);
            let large = vec![7; PART_BYTES + 1];
            for bytes in [&large[..], b"small"] {
                put_bytes(&mut tx, row.id, bytes).await.unwrap();
                assert_eq!(super::bytes(&mut tx, row.id).await.unwrap(), bytes);
            }
            let entries = [json!({ "b": 1 }), json!({ "a": 2 })];
            hold_gate(&mut tx).await.unwrap();
            put_revocations(&mut tx, row.id, &[json!(0)]).await.unwrap();
            put_revocations(&mut tx, row.id, &entries).await.unwrap();
            assert_eq!(gate(&mut tx).await.unwrap(), 2);
            let other = CatalogRow { id: clock.new_id(), trust: "key:cd".to_owned(), ..row.clone() };
            insert(&mut tx, &other).await.unwrap();
            put_revocations(&mut tx, other.id, &[]).await.unwrap();
            assert_eq!(revocations(&mut tx).await.unwrap(), entries, "what one said, another one does not take back");
            assert_eq!(revocations_of(&mut tx, other.id).await.unwrap(), Vec::<Value>::new());
        }
    }
}
