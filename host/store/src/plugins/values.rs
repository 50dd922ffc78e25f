//! What plugins keep for an organization, and the keys by which they say that an event is the same as one before.

use heddle_core::{OrgId, Timestamp};
use sqlx::{FromRow, QueryBuilder};

use super::PluginUid;
use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Select, affected, push_list};

/// What a row costs beside its key and value: keys without a value are not free.
pub const ROW_BYTES: usize = 64;

/// A value that a plugin keeps.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct ValueRow {
    pub name: String,
    pub bytes: Vec<u8>,
    /// Grows with each write of this name.
    pub version: i64,
    pub expires_at: Option<Timestamp>,
}

impl ValueRow {
    /// What it takes of the quota.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.name.len() + self.bytes.len() + ROW_BYTES
    }
}

/// Whose values they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeper {
    pub org: OrgId,
    pub plugin: PluginUid,
}

/// Values that belong together: of one number, those that the plugin sees; others are copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    pub keeper: Keeper,
    pub number: i64,
}

fn live(of: Generation, now: Timestamp) -> Select {
    Select::new("SELECT v.name, v.bytes, v.version, v.expires_at", "FROM plugin_value v")
        .and_bind("v.org_id = ?", Bind::Id(of.keeper.org.0))
        .and_bind("v.plugin_uid = ?", Bind::Id(of.keeper.plugin.0))
        .and_bind("v.generation = ?", Bind::Number(of.number))
        .and_bind("(v.expires_at IS NULL OR v.expires_at > ?)", Bind::Time(now))
}

/// The value of this name that has not expired.
pub async fn find(tx: &mut Tx, of: Generation, name: &str, now: Timestamp) -> Result<Option<ValueRow>> {
    live(of, now).and_bind("v.name = ?", Bind::Text(name.to_owned())).one(tx).await
}

/// The values of these names that have not expired.
pub async fn find_all(tx: &mut Tx, of: Generation, names: &[&str], now: Timestamp) -> Result<Vec<ValueRow>> {
    let limit = i64::try_from(names.len()).unwrap_or(i64::MAX);
    let names = names.iter().map(|name| Bind::Text((*name).to_owned()));
    live(of, now).and_in("v.name", names).all(tx, "v.name", limit).await
}

/// A name under which a value is kept.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Listed {
    pub name: String,
    pub version: i64,
    /// Bytes of the name and the value.
    pub size_bytes: i64,
}

/// Names that begin so and come behind `after`, in their order.
pub async fn list(
    tx: &mut Tx,
    of: Generation,
    (prefix, after): (&str, Option<&str>),
    limit: u32,
    now: Timestamp,
) -> Result<Vec<Listed>> {
    let chars = i64::try_from(prefix.chars().count()).unwrap_or(i64::MAX);
    Ok(on!(tx, conn => sqlx::query_as("
        SELECT v.name, v.version, v.size_bytes FROM plugin_value v
        WHERE v.org_id = $1 AND v.plugin_uid = $2 AND v.generation = $8
            AND (v.expires_at IS NULL OR v.expires_at > $3)
            AND SUBSTR(v.name, 1, CAST($4 AS INTEGER)) = $5 AND v.name >= $5 AND v.name > $6
        ORDER BY v.name LIMIT CAST($7 AS BIGINT)")
        .bind(of.keeper.org).bind(of.keeper.plugin).bind(now).bind(chars).bind(prefix)
        .bind(after.unwrap_or_default()).bind(i64::from(limit)).bind(of.number)
        .fetch_all(conn)
        .await)?)
}

/// Bytes of all names and values that have not expired.
pub async fn used_bytes(tx: &mut Tx, of: Generation, now: Timestamp) -> Result<i64> {
    Ok(on!(tx, conn => sqlx::query_scalar("
        SELECT CAST(COALESCE(SUM(v.size_bytes), 0) AS BIGINT) FROM plugin_value v
        WHERE v.org_id = $1 AND v.plugin_uid = $2 AND v.generation = $4
            AND (v.expires_at IS NULL OR v.expires_at > $3)")
        .bind(of.keeper.org).bind(of.keeper.plugin).bind(now).bind(of.number)
        .fetch_one(conn)
        .await)?)
}

/// Writes values in the place of any of their names. There are few: one statement takes all.
pub async fn put(tx: &mut Tx, of: Generation, values: &[ValueRow], now: Timestamp) -> Result<()> {
    if values.is_empty() {
        return Ok(());
    }
    on!(tx, conn => {
        let mut insert = QueryBuilder::new(
            "INSERT INTO plugin_value
                (org_id, plugin_uid, generation, name, bytes, size_bytes, version, expires_at, updated_at) ",
        );
        insert.push_values(values, |mut row, value| {
            let size = i64::try_from(value.size_bytes()).unwrap_or(i64::MAX);
            row.push_bind(of.keeper.org)
                .push_bind(of.keeper.plugin)
                .push_bind(of.number)
                .push_bind(&value.name)
                .push_bind(&value.bytes)
                .push_bind(size)
                .push_bind(value.version)
                .push_bind(value.expires_at)
                .push_bind(now);
        });
        insert.push(
            " ON CONFLICT (org_id, plugin_uid, generation, name) DO UPDATE
            SET bytes = excluded.bytes, size_bytes = excluded.size_bytes, version = excluded.version,
                expires_at = excluded.expires_at, updated_at = excluded.updated_at",
        );
        insert.build().execute(conn).await.map(drop)
    })?;
    Ok(())
}

/// Removes the values of these names, where there are any.
pub async fn remove(tx: &mut Tx, of: Generation, names: &[&str]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    on!(tx, conn => {
        let mut delete = QueryBuilder::new("DELETE FROM plugin_value WHERE org_id = ");
        delete.push_bind(of.keeper.org).push(" AND plugin_uid = ").push_bind(of.keeper.plugin);
        delete.push(" AND generation = ").push_bind(of.number).push(" AND name IN (");
        push_list!(delete, names);
        delete.push(")");
        delete.build().execute(conn).await.map(drop)
    })?;
    Ok(())
}

/// Forgets values that expired before this time.
pub async fn forget_expired(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM plugin_value WHERE (org_id, plugin_uid, generation, name) IN (
            SELECT org_id, plugin_uid, generation, name FROM plugin_value WHERE expires_at IS NOT NULL AND expires_at <= $1
            ORDER BY expires_at LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    ))
}

/// Forgets values of plugins that were removed before this time, and of which no package was agreed to since.
pub async fn forget_removed(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    let forgotten = affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM plugin_value WHERE (org_id, plugin_uid, generation, name) IN (
            SELECT v.org_id, v.plugin_uid, v.generation, v.name FROM plugin_value v
            JOIN plugin p ON p.id = v.plugin_uid
            WHERE p.removed_at < $1
            ORDER BY v.org_id, v.plugin_uid, v.generation, v.name LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    );
    if forgotten == 0 {
        // What says which values are the living ones goes last.
        affected!(
            tx,
            sqlx::query(
                "DELETE FROM plugin_storage WHERE plugin_uid IN (
                    SELECT p.id FROM plugin p WHERE p.removed_at < $1)"
            )
            .bind(before)
        );
    }
    Ok(forgotten)
}

/// Forgets all values of a plugin, whether they expired or not, and the keys of its events.
pub(super) async fn forget_all(tx: &mut Tx, plugin: PluginUid) -> Result<()> {
    affected!(tx, sqlx::query("DELETE FROM plugin_value WHERE plugin_uid = $1").bind(plugin));
    affected!(tx, sqlx::query("DELETE FROM plugin_emitted WHERE plugin_uid = $1").bind(plugin));
    Ok(())
}

/// Notes keys of events, each given once. Returns those that the plugin had not given before in this organization: events
/// with the others are the same as earlier ones.
pub async fn note_emitted(
    tx: &mut Tx,
    keeper: Keeper,
    keys: &[String],
    now: Timestamp,
) -> Result<Vec<String>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    Ok(on!(tx, conn => {
        let mut insert =
            QueryBuilder::new("INSERT INTO plugin_emitted (org_id, plugin_uid, dedup_key, emitted_at) ");
        insert.push_values(keys, |mut row, key| {
            row.push_bind(keeper.org).push_bind(keeper.plugin).push_bind(key).push_bind(now);
        });
        insert.push(" ON CONFLICT (org_id, plugin_uid, dedup_key) DO NOTHING RETURNING dedup_key");
        insert.build_query_scalar().fetch_all(conn).await
    })?)
}

/// Forgets keys of events from before this time.
pub async fn trim_emitted(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM plugin_emitted WHERE (org_id, plugin_uid, dedup_key) IN (
            SELECT org_id, plugin_uid, dedup_key FROM plugin_emitted WHERE emitted_at < $1
            ORDER BY emitted_at LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    ))
}
