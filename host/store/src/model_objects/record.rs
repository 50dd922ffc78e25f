//! How a reading writes objects of the model: part by part, in a number of statements that does not grow with the objects.

use std::collections::HashMap;

use heddle_core::adapter::Origin;
use heddle_core::{ControllerId, OrgId, SiteId, Timestamp};
use serde_json::Value;
use sqlx::{FromRow, QueryBuilder};

use super::ModelObjectId;
use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Select, affected, push_list};

heddle_core::ids! {
    /// Tells one reading of a kind from the others.
    pub ModelReadingId,
}

/// Most objects that are written at once; keeps the parameters of a statement below what both databases accept.
pub const PART_MAX: usize = 1_000;
/// Most objects whose fields are loaded at once, each of up to 64 KiB.
pub const LOADED_MAX: usize = 50;

/// The objects that one list of an adapter's is about: a kind at a controller, or at a vendor's site of it.
#[derive(Debug, Clone, Copy)]
pub struct List<'a> {
    pub controller_id: ControllerId,
    pub kind: &'a str,
    /// The vendor's id of the site; empty where the objects are the controller's.
    pub site_ref: &'a str,
}

/// Where objects of a list are written, and by which reading.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub org_id: OrgId,
    pub site_id: SiteId,
    pub reading_id: ModelReadingId,
    pub now: Timestamp,
}

/// An object as it can be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Storable {
    pub key: String,
    pub label: String,
    pub origin: Origin,
    pub device_key: Option<String>,
    pub native: Option<Value>,
    pub fields: Value,
    /// Of all that counts as a change.
    pub digest: String,
    /// Of fields and native reference, whether they count or not.
    pub contents_digest: String,
    /// What a search looks at, in lower case.
    pub searched: String,
}

/// What tells whether an object is stored as it is seen.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Digests {
    pub id: ModelObjectId,
    pub key: String,
    pub digest: String,
    pub contents_digest: String,
    /// The reading that saw it last.
    pub reading_id: ModelReadingId,
}

/// What counts of an object as it is stored.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct Known {
    pub id: ModelObjectId,
    pub site_id: SiteId,
    pub key: String,
    pub label: String,
    pub origin: Origin,
    pub device_key: Option<String>,
    pub fields: Value,
}

const DIGESTS: &str = "SELECT o.id, o.key, o.digest, o.contents_digest, o.reading_id";
const KNOWN: &str = "SELECT o.id, o.site_id, o.key, o.label, o.origin, o.device_key, o.fields";

fn of_list(columns: &'static str, list: &List<'_>) -> Select {
    Select::new(columns, "FROM model_object o")
        .and_bind("o.controller_id = ?", Bind::Id(list.controller_id.0))
        .and_bind("o.kind = ?", Bind::Text(list.kind.to_owned()))
        .and_bind("o.site_ref = ?", Bind::Text(list.site_ref.to_owned()))
}

fn texts(keys: &[&str]) -> Vec<Bind> {
    keys.iter().map(|key| Bind::Text((*key).to_owned())).collect()
}

/// The digests of those of these keys that are stored, by key; at most [`PART_MAX`] keys.
pub async fn digests(tx: &mut Tx, list: &List<'_>, keys: &[&str]) -> Result<HashMap<String, Digests>> {
    let limit = i64::try_from(PART_MAX).unwrap_or(i64::MAX);
    let of_keys = of_list(DIGESTS, list).and_in("o.key", texts(keys));
    let found: Vec<Digests> = of_keys.all(tx, "o.key", limit).await?;
    Ok(found.into_iter().map(|found| (found.key.clone(), found)).collect())
}

/// Those of these keys that are stored, by key; at most [`LOADED_MAX`] keys.
pub async fn known(tx: &mut Tx, list: &List<'_>, keys: &[&str]) -> Result<HashMap<String, Known>> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let limit = i64::try_from(LOADED_MAX).unwrap_or(i64::MAX);
    let found: Vec<Known> = of_list(KNOWN, list).and_in("o.key", texts(keys)).all(tx, "o.key", limit).await?;
    Ok(found.into_iter().map(|known| (known.key.clone(), known)).collect())
}

/// Stores new objects, and those that differ from what is stored; at most [`PART_MAX`], with different keys.
pub async fn write(
    tx: &mut Tx,
    list: &List<'_>,
    place: &Place,
    rows: &[(ModelObjectId, &Storable)],
) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    on!(tx, conn => {
        let mut insert = QueryBuilder::new(
            "INSERT INTO model_object (id, org_id, site_id, controller_id, kind, site_ref, key, label, origin, device_key,
                native, fields, digest, contents_digest, searched, reading_id, first_seen_at, changed_at, observed_at) ",
        );
        insert.push_values(rows, |mut row, (id, object)| {
            row.push_bind(*id)
                .push_bind(place.org_id)
                .push_bind(place.site_id)
                .push_bind(list.controller_id)
                .push_bind(list.kind)
                .push_bind(list.site_ref)
                .push_bind(&object.key)
                .push_bind(&object.label)
                .push_bind(object.origin)
                .push_bind(object.device_key.as_ref())
                .push_bind(object.native.as_ref())
                .push_bind(&object.fields)
                .push_bind(&object.digest)
                .push_bind(&object.contents_digest)
                .push_bind(&object.searched)
                .push_bind(place.reading_id)
                .push_bind(place.now)
                .push_bind(place.now)
                .push_bind(place.now);
        });
        insert.push(
            " ON CONFLICT (controller_id, kind, site_ref, key) DO UPDATE SET
                site_id = excluded.site_id, label = excluded.label, origin = excluded.origin,
                device_key = excluded.device_key, native = excluded.native, fields = excluded.fields,
                contents_digest = excluded.contents_digest,
                searched = excluded.searched, reading_id = excluded.reading_id, observed_at = excluded.observed_at,
                changed_at = CASE WHEN model_object.digest = excluded.digest
                    THEN model_object.changed_at ELSE excluded.changed_at END,
                digest = excluded.digest",
        );
        insert.build().execute(conn).await.map(|_| ())
    })?;
    Ok(())
}

/// Notes that the reading saw these as they are stored, at this site; at most [`PART_MAX`].
pub async fn touch(tx: &mut Tx, place: &Place, ids: &[ModelObjectId]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    on!(tx, conn => {
        let mut update = QueryBuilder::new("UPDATE model_object SET reading_id = ");
        update.push_bind(place.reading_id).push(", observed_at = ").push_bind(place.now);
        update.push(", site_id = ").push_bind(place.site_id).push(" WHERE id IN (");
        push_list!(update, ids);
        update.push(")");
        update.build().execute(conn).await.map(|_| ())
    })?;
    Ok(())
}

/// The objects that the reading did not see, at most as many as this; what was seen longest ago comes first.
pub async fn unseen(tx: &mut Tx, list: &List<'_>, reading: ModelReadingId, most: i64) -> Result<Vec<Known>> {
    let unseen = of_list(KNOWN, list).and_bind("o.reading_id <> ?", Bind::Id(reading.0));
    unseen.all(tx, "o.observed_at, o.key", most).await
}

/// How many objects the reading did not see, nor any other reading since this time.
pub async fn unseen_since(
    tx: &mut Tx,
    list: &List<'_>,
    reading: ModelReadingId,
    since: Timestamp,
) -> Result<i64> {
    let unseen = of_list(DIGESTS, list).and_bind("o.reading_id <> ?", Bind::Id(reading.0));
    unseen.and_bind("o.observed_at < ?", Bind::Time(since)).count(tx).await
}

/// Removes the objects that [`unseen`] lists; returns how many.
pub async fn remove_unseen(tx: &mut Tx, list: &List<'_>, reading: ModelReadingId, most: i64) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "DELETE FROM model_object WHERE id IN (
                SELECT id FROM model_object
                WHERE controller_id = $1 AND kind = $2 AND site_ref = $3 AND reading_id <> $4
                ORDER BY observed_at, key LIMIT CAST($5 AS BIGINT))"
        )
        .bind(list.controller_id)
        .bind(list.kind)
        .bind(list.site_ref)
        .bind(reading)
        .bind(most)
    ))
}

/// How many objects of the list are stored.
pub async fn stored(tx: &mut Tx, list: &List<'_>) -> Result<i64> {
    of_list(DIGESTS, list).count(tx).await
}

/// How many objects of the same kind the controller's other lists had when each of them ended last.
pub async fn stored_elsewhere(tx: &mut Tx, list: &List<'_>) -> Result<i64> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        SELECT CAST(COALESCE(SUM(objects), 0) AS BIGINT)
        FROM model_reading WHERE controller_id = $1 AND kind = $2 AND site_ref <> $3")
        .bind(list.controller_id).bind(list.kind).bind(list.site_ref)
        .fetch_one(conn)
        .await)?)
}
