//! Columns that hold sealed bytes, for the rotation of the key that sealed them.
//!
//! The server knows what is sealed, and how. This module knows only that the first bytes, equal for everything that one
//! key sealed, name the key.

use sqlx::{AssertSqlSafe, FromRow};
use uuid::Uuid;

use crate::db::Tx;
use crate::error::Result;
use crate::select::affected;

/// Bytes at the beginning of everything sealed that name the key.
pub const MARK_BYTES: usize = 9;

/// A column with sealed bytes. They are sealed for the row: `{table}:{id}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedColumn {
    pub table: &'static str,
    pub column: &'static str,
    /// Another column of the row that names the key, too.
    pub key_id: Option<&'static str>,
}

impl SealedColumn {
    /// The column `secret` of this table.
    pub const fn of(table: &'static str) -> Self {
        Self { table, column: "secret", key_id: None }
    }
}

/// The sealed bytes of one row of any table, and the row's id. The bytes open only for this table and id.
#[derive(Clone, PartialEq, Eq, FromRow)]
pub struct Sealed {
    pub id: Uuid,
    pub bytes: Vec<u8>,
}

/// How many rows one key sealed.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Share {
    pub mark: Vec<u8>,
    pub rows: i64,
}

/// Up to `limit` rows behind `after`, in the order of their ids, that another key sealed.
pub async fn under_others(
    tx: &mut Tx,
    at: SealedColumn,
    mark: &[u8],
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Sealed>> {
    let SealedColumn { table, column, .. } = at;
    let sql = format!(
        "SELECT id, {column} AS bytes FROM {table}
         WHERE {column} IS NOT NULL AND SUBSTR({column}, 1, {MARK_BYTES}) <> $1 AND id > $2
         ORDER BY id LIMIT CAST($3 AS BIGINT)"
    );
    Ok(on!(tx, conn => sqlx::query_as(AssertSqlSafe(sql))
        .bind(mark)
        .bind(after.unwrap_or_default())
        .bind(limit)
        .fetch_all(conn)
        .await)?)
}

/// Replaces the sealed bytes unless another process did; says whether it happened.
pub async fn replace(tx: &mut Tx, at: SealedColumn, old: &Sealed, new: &[u8], key_id: &str) -> Result<bool> {
    let SealedColumn { table, column, .. } = at;
    let also = at.key_id.map(|named| format!(", {named} = $4")).unwrap_or_default();
    let sql = format!("UPDATE {table} SET {column} = $3{also} WHERE id = $1 AND {column} = $2");
    let rows = affected!(tx, {
        let query = sqlx::query(AssertSqlSafe(sql)).bind(old.id).bind(&old.bytes).bind(new);
        if at.key_id.is_some() { query.bind(key_id) } else { query }
    });
    Ok(rows == 1)
}

/// How many rows each key sealed.
pub async fn shares(tx: &mut Tx, at: SealedColumn) -> Result<Vec<Share>> {
    let SealedColumn { table, column, .. } = at;
    let sql = format!(
        "SELECT SUBSTR({column}, 1, {MARK_BYTES}) AS mark, COUNT(*) AS rows FROM {table}
         WHERE {column} IS NOT NULL
         GROUP BY SUBSTR({column}, 1, {MARK_BYTES}) ORDER BY SUBSTR({column}, 1, {MARK_BYTES})"
    );
    Ok(on!(tx, conn => sqlx::query_as(AssertSqlSafe(sql)).fetch_all(conn).await)?)
}

#[cfg(test)]
mod tests;
