//! What is wanted of objects of the model, how far readings were compared with it, and what vendors make of values by
//! themselves. Differences are in [`crate::drift`].

mod evidence;
mod lists;

use std::collections::HashMap;

pub use evidence::{Versioned, attempted_since, versions};
use heddle_core::drift::WantedBasis;
use heddle_core::{ChangeId, ControllerId, Timestamp};
pub use lists::{Compared, Due, Followed, due, forget_list, hold, is_due, save};
use serde_json::Value;
use sqlx::types::Json;
use sqlx::{FromRow, QueryBuilder};

use crate::db::Tx;
use crate::error::Result;
use crate::model_objects::record::List;
use crate::select::{Bind, Select, affected};

/// Most objects whose wanted state is kept for one controller.
pub const OBJECTS_MAX: i64 = 5_000;
/// Most rows that one statement writes or reads.
pub const PART_MAX: usize = 500;
/// Most rewrites that are kept for one controller.
pub const REWRITES_MAX: i64 = 500;

/// What is wanted of an object.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct WantedObject {
    pub key: String,
    pub label: String,
    pub device_key: Option<String>,
    pub basis: WantedBasis,
    pub change_id: Option<ChangeId>,
    /// The fields that can be written; those of a field are dotted.
    pub fields: Value,
    /// Of the object as it was compared last.
    pub seen_digest: String,
}

/// An object as it was read.
#[derive(Debug, Clone, FromRow)]
pub struct Listed {
    pub key: String,
    pub label: String,
    pub device_key: Option<String>,
    pub native: Option<Value>,
    pub fields: Value,
    pub digest: String,
}

const WANTED: &str = "SELECT w.key, w.label, w.device_key, w.basis, w.change_id, w.fields, w.seen_digest";

fn of_list(columns: &'static str, from: &'static str, list: &List<'_>) -> Select {
    Select::new(columns, from)
        .and_bind("w.controller_id = ?", Bind::Id(list.controller_id.0))
        .and_bind("w.kind = ?", Bind::Text(list.kind.to_owned()))
        .and_bind("w.site_ref = ?", Bind::Text(list.site_ref.to_owned()))
}

/// Objects that people made and that are not as they were compared last, behind this key; at most [`PART_MAX`].
pub async fn differing(tx: &mut Tx, list: &List<'_>, after: &str) -> Result<Vec<Listed>> {
    own(list)
        .and("(w.key IS NULL OR w.seen_digest <> o.digest)")
        .and_bind("o.key > ?", Bind::Text(after.to_owned()))
        .all(tx, "o.key", i64::try_from(PART_MAX).unwrap_or(i64::MAX))
        .await
}

/// Those of these objects that people made, whether they differ or not; at most [`PART_MAX`] keys.
pub async fn listed(tx: &mut Tx, list: &List<'_>, keys: &[&str]) -> Result<Vec<Listed>> {
    let keys = keys.iter().map(|key| Bind::Text((*key).to_owned()));
    let limit = i64::try_from(PART_MAX).unwrap_or(i64::MAX);
    own(list).and_in("o.key", keys).all(tx, "o.key", limit).await
}

fn own(list: &List<'_>) -> Select {
    Select::new(
        "SELECT o.key, o.label, o.device_key, o.native, o.fields, o.digest",
        "FROM model_object o LEFT JOIN wanted_object w ON w.controller_id = o.controller_id AND w.kind = o.kind
            AND w.site_ref = o.site_ref AND w.key = o.key",
    )
    .and_bind("o.controller_id = ?", Bind::Id(list.controller_id.0))
    .and_bind("o.kind = ?", Bind::Text(list.kind.to_owned()))
    .and_bind("o.site_ref = ?", Bind::Text(list.site_ref.to_owned()))
    .and("o.origin = 'own'")
}

/// Those of these objects that are wanted, by key; at most [`PART_MAX`] keys.
pub async fn wanted(tx: &mut Tx, list: &List<'_>, keys: &[&str]) -> Result<HashMap<String, WantedObject>> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let keys = keys.iter().map(|key| Bind::Text((*key).to_owned()));
    let limit = i64::try_from(PART_MAX).unwrap_or(i64::MAX);
    let of_keys = of_list(WANTED, "FROM wanted_object w", list).and_in("w.key", keys);
    let found: Vec<WantedObject> = of_keys.all(tx, "w.key", limit).await?;
    Ok(found.into_iter().map(|found| (found.key.clone(), found)).collect())
}

/// All that is wanted of a list, behind this key; at most [`PART_MAX`] objects.
pub async fn all_of(tx: &mut Tx, list: &List<'_>, after: &str) -> Result<Vec<WantedObject>> {
    of_list(WANTED, "FROM wanted_object w", list)
        .and_bind("w.key > ?", Bind::Text(after.to_owned()))
        .all(tx, "w.key", i64::try_from(PART_MAX).unwrap_or(i64::MAX))
        .await
}

/// A wanted object that is not listed as one that people made.
#[derive(Debug, Clone, FromRow)]
pub struct Unlisted {
    #[sqlx(flatten)]
    pub wanted: WantedObject,
    /// It is listed, and has another origin by now.
    pub is_listed: bool,
}

/// Wanted objects that are not listed as such that people made; at most [`OBJECTS_MAX`].
pub async fn unlisted(tx: &mut Tx, list: &List<'_>) -> Result<Vec<Unlisted>> {
    of_list(
        "SELECT w.key, w.label, w.device_key, w.basis, w.change_id, w.fields, w.seen_digest, o.id IS NOT NULL AS is_listed",
        "FROM wanted_object w LEFT JOIN model_object o ON w.controller_id = o.controller_id AND w.kind = o.kind
            AND w.site_ref = o.site_ref AND w.key = o.key",
        list,
    )
    .and("(o.id IS NULL OR o.origin <> 'own')")
    .all(tx, "w.key", OBJECTS_MAX)
    .await
}

/// How many objects of the controller are wanted.
pub async fn count(tx: &mut Tx, controller: ControllerId) -> Result<i64> {
    Select::new("SELECT w.key", "FROM wanted_object w")
        .and_bind("w.controller_id = ?", Bind::Id(controller.0))
        .count(tx)
        .await
}

/// Stores what is wanted of these objects; at most [`PART_MAX`], with different keys.
pub async fn write(tx: &mut Tx, list: &List<'_>, rows: &[WantedObject], now: Timestamp) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    on!(tx, conn => {
        let mut insert = QueryBuilder::new(
            "INSERT INTO wanted_object (controller_id, kind, site_ref, key, label, device_key, basis, change_id, fields,
                seen_digest, updated_at) ",
        );
        insert.push_values(rows, |mut row, object| {
            row.push_bind(list.controller_id)
                .push_bind(list.kind)
                .push_bind(list.site_ref)
                .push_bind(&object.key)
                .push_bind(&object.label)
                .push_bind(object.device_key.as_ref())
                .push_bind(object.basis)
                .push_bind(object.change_id)
                .push_bind(&object.fields)
                .push_bind(&object.seen_digest)
                .push_bind(now);
        });
        insert.push(
            " ON CONFLICT (controller_id, kind, site_ref, key) DO UPDATE SET
                label = excluded.label, device_key = excluded.device_key, basis = excluded.basis,
                change_id = excluded.change_id, fields = excluded.fields, seen_digest = excluded.seen_digest,
                updated_at = excluded.updated_at",
        );
        insert.build().execute(conn).await.map(|_| ())
    })?;
    Ok(())
}

/// Removes what is wanted of an object.
pub async fn remove(tx: &mut Tx, list: &List<'_>, key: &str) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "DELETE FROM wanted_object WHERE controller_id = $1 AND kind = $2 AND site_ref = $3 AND key = $4"
        )
        .bind(list.controller_id)
        .bind(list.kind)
        .bind(list.site_ref)
        .bind(key)
    );
    Ok(())
}

/// Forgets what is wanted of up to so many objects of lists that are read no more; returns how many.
pub async fn sweep(tx: &mut Tx, rows: u32) -> Result<u64> {
    affected!(
        tx,
        sqlx::query(
            "DELETE FROM wanted_list WHERE NOT EXISTS (
                SELECT 1 FROM model_reading r WHERE r.controller_id = wanted_list.controller_id
                    AND r.kind = wanted_list.kind AND r.site_ref = wanted_list.site_ref)"
        )
    );
    Ok(affected!(
        tx,
        sqlx::query(
            "DELETE FROM wanted_object WHERE (controller_id, kind, site_ref, key) IN (
                SELECT w.controller_id, w.kind, w.site_ref, w.key
                FROM wanted_object w LEFT JOIN model_reading r ON r.controller_id = w.controller_id
                    AND r.kind = w.kind AND r.site_ref = w.site_ref
                WHERE r.kind IS NULL
                ORDER BY w.controller_id, w.kind, w.site_ref, w.key LIMIT CAST($1 AS BIGINT))"
        )
        .bind(i64::from(rows))
    ))
}

/// What a vendor made of a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewrite {
    pub field: String,
    /// SHA-256 of both values.
    pub digest: String,
    pub wanted: Option<Value>,
    pub observed: Option<Value>,
    pub change_id: ChangeId,
}

#[derive(FromRow)]
struct RewriteRow {
    field: String,
    digest: String,
    #[sqlx(json)]
    pair: (Option<Value>, Option<Value>),
    change_id: ChangeId,
}

/// What the vendor of a controller made of values of a kind.
pub async fn rewrites(tx: &mut Tx, controller: ControllerId, kind: &str) -> Result<Vec<Rewrite>> {
    let rows: Vec<RewriteRow> =
        Select::new("SELECT w.field, w.digest, w.pair, w.change_id", "FROM vendor_rewrite w")
            .and_bind("w.controller_id = ?", Bind::Id(controller.0))
            .and_bind("w.kind = ?", Bind::Text(kind.to_owned()))
            .all(tx, "w.field, w.digest", REWRITES_MAX)
            .await?;
    let rewrite = |row: RewriteRow| {
        let (wanted, observed) = row.pair;
        Rewrite { field: row.field, digest: row.digest, wanted, observed, change_id: row.change_id }
    };
    Ok(rows.into_iter().map(rewrite).collect())
}

/// Keeps what a vendor made of a value; of the controller's, those that were learned first are forgotten when they are
/// too many.
pub async fn learn(tx: &mut Tx, list: &List<'_>, rewrite: &Rewrite, now: Timestamp) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "INSERT INTO vendor_rewrite (controller_id, kind, field, digest, pair, change_id, learned_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7)
            ON CONFLICT (controller_id, kind, field, digest) DO UPDATE SET
                change_id = excluded.change_id, learned_at = excluded.learned_at"
        )
        .bind(list.controller_id)
        .bind(list.kind)
        .bind(&rewrite.field)
        .bind(&rewrite.digest)
        .bind(Json((&rewrite.wanted, &rewrite.observed)))
        .bind(rewrite.change_id)
        .bind(now)
    );
    affected!(
        tx,
        sqlx::query(
            "DELETE FROM vendor_rewrite WHERE controller_id = $1 AND digest NOT IN (
                SELECT digest FROM vendor_rewrite WHERE controller_id = $1
                ORDER BY learned_at DESC, digest LIMIT CAST($2 AS BIGINT))"
        )
        .bind(list.controller_id)
        .bind(REWRITES_MAX)
    );
    Ok(())
}

#[cfg(test)]
mod tests;
