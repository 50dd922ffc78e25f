//! Keys of publishers that are trusted in addition to those of the operator's file.

use heddle_core::Timestamp;
use serde_json::Value;
use sqlx::FromRow;

use crate::db::Tx;
use crate::error::Result;
use crate::select::{Select, affected};

heddle_core::ids! {
    /// A trusted key of a publisher.
    pub PublisherKeyId,
}

/// Keys that are read at once.
const KEYS_MAX: i64 = 10_000;

/// A key of a publisher.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct PublisherKeyRow {
    pub id: PublisherKeyId,
    /// SHA-256 of the key, lower-case hex.
    pub key_id: String,
    pub publisher: String,
    /// Ed25519 public key, lower-case hex.
    pub public_key: String,
    /// Packages that it may sign: a list of exact ids, or beginnings that end with `*`.
    pub ids: Value,
    /// The plugin that a catalogue listed it for; empty where a person trusts it.
    pub listed_for: String,
    pub added_at: Timestamp,
    /// Name of the user.
    pub added_by: String,
}

/// All keys: those that persons trust, and those that catalogues listed for what was installed.
pub async fn all(tx: &mut Tx) -> Result<Vec<PublisherKeyRow>> {
    Select::new("SELECT k.*", "FROM publisher_key k").all(tx, "k.added_at, k.id", KEYS_MAX).await
}

/// Keeps a key. False where it was kept before for the same.
pub async fn put(tx: &mut Tx, row: &PublisherKeyRow) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO publisher_key (id, key_id, publisher, public_key, ids, listed_for, added_at, added_by)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (key_id, listed_for, publisher) DO NOTHING"
        )
        .bind(row.id)
        .bind(&row.key_id)
        .bind(&row.publisher)
        .bind(&row.public_key)
        .bind(&row.ids)
        .bind(&row.listed_for)
        .bind(row.added_at)
        .bind(&row.added_by)
    );
    Ok(rows == 1)
}

/// Ends that a person trusts a key. False where none did.
pub async fn remove(tx: &mut Tx, key_id: &str) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query("DELETE FROM publisher_key WHERE key_id = $1 AND listed_for = ''").bind(key_id)
    );
    Ok(rows > 0)
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;
    use serde_json::json;

    use super::*;
    use crate::testing::on_both;

    on_both! {
        async fn a_key_is_kept_once_for_a_person_and_once_for_each_plugin(db) {
            let clock = Clock::default();
            let row = |listed_for: &str| PublisherKeyRow {
                id: clock.new_id(),
                key_id: "ab".to_owned(),
                publisher: "acme".to_owned(),
                public_key: "cd".to_owned(),
                ids: json!(["acme"]),
                listed_for: listed_for.to_owned(),
                added_at: clock.now(),
                added_by: "ada".to_owned(),
            };
            let (own, listed) = (row(""), row("acme"));
            let mut tx = db.write().await.unwrap();
            assert!(put(&mut tx, &own).await.unwrap());
            assert!(!put(&mut tx, &row("")).await.unwrap());
            assert!(put(&mut tx, &listed).await.unwrap());
            assert_eq!(all(&mut tx).await.unwrap(), [own, listed.clone()]);
            assert!(remove(&mut tx, "ab").await.unwrap());
            assert!(!remove(&mut tx, "ab").await.unwrap());
            assert_eq!(all(&mut tx).await.unwrap(), [listed]);
        }
    }
}
