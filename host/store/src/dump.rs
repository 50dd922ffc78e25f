//! Every row of every table, in and out: for backups.
//!
//! Which tables there are is read from the migrations themselves, on a database
//! in memory, so that no table can be forgotten. Nothing here knows a file, or
//! what a value means.

mod cell;

use std::collections::BTreeSet;

pub use cell::{Cell, Kind, NotA};
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};

use crate::db;
use crate::db::Tx;
use crate::error::{Error, Result};
use crate::select::affected;

/// Most values of one `INSERT`; both databases take more.
const VALUES_MAX: usize = 8_000;

/// A column as the migrations declare it. A column of the primary key is never nullable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
    pub nullable: bool,
}

/// A table as the migrations make it.
#[derive(Debug, Clone)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    /// Positions of the primary key's columns, in its order.
    key: Vec<usize>,
    /// Other tables that must be filled before this one.
    refers_to: BTreeSet<String>,
}

/// All tables, each after those that it refers to.
///
/// # Errors
/// [`Error::Internal`] when a migration made a table that cannot be dumped: of
/// an unknown column type, without a primary key, or in a circle of references.
pub async fn tables() -> Result<Vec<Table>> {
    let mut connection = db::migrated_in_memory().await?;
    let names: Vec<String> = sqlx::query_scalar(
        "SELECT name FROM sqlite_schema
         WHERE type = 'table' AND name NOT LIKE 'sqlite^_%' ESCAPE '^' AND name NOT LIKE '^_sqlx%' ESCAPE '^'
         ORDER BY name",
    )
    .fetch_all(&mut connection)
    .await?;
    let mut left = Vec::new();
    for name in names {
        left.push(read_table(&mut connection, name).await?);
    }
    let mut ordered: Vec<Table> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let is_filled = |name: &String| ordered.iter().any(|table| table.name == *name);
        let Some(at) = left.iter().position(|table| table.refers_to.iter().all(is_filled)) else {
            let names: Vec<&str> = left.iter().map(|table| table.name.as_str()).collect();
            return Err(unfit(format!("tables refer to each other in a circle: {}", names.join(", "))));
        };
        ordered.push(left.remove(at));
    }
    Ok(ordered)
}

async fn read_table(connection: &mut SqliteConnection, name: String) -> Result<Table> {
    let rows: Vec<SqliteRow> =
        sqlx::query("SELECT name, type, \"notnull\", pk FROM pragma_table_info($1) ORDER BY cid")
            .bind(&name)
            .fetch_all(&mut *connection)
            .await?;
    let (mut columns, mut key) = (Vec::new(), Vec::new());
    for (at, row) in rows.iter().enumerate() {
        let (column, declared): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let in_key: i64 = row.try_get(3)?;
        let kind = Kind::of_declared(&declared)
            .ok_or_else(|| unfit(format!("{name}.{column} has the type '{declared}'")))?;
        if in_key > 0 {
            key.push((in_key, at));
        }
        let nullable = row.try_get::<i64, _>(2)? == 0 && in_key == 0;
        columns.push(Column { name: column, kind, nullable });
    }
    if key.is_empty() {
        return Err(unfit(format!("{name} has no primary key")));
    }
    key.sort_unstable();
    let mut refers_to: BTreeSet<String> =
        sqlx::query_scalar("SELECT DISTINCT \"table\" FROM pragma_foreign_key_list($1)")
            .bind(&name)
            .fetch_all(connection)
            .await?
            .into_iter()
            .collect();
    // A reference to the table itself is deferred until the commit.
    refers_to.remove(&name);
    Ok(Table { name, columns, key: key.into_iter().map(|(_, at)| at).collect(), refers_to })
}

fn unfit(reason: String) -> Error {
    Error::Internal(reason.into())
}

impl Table {
    /// Counts all rows of the table, those of removed objects too.
    pub async fn count(&self, tx: &mut Tx) -> Result<i64> {
        let sql = format!("SELECT COUNT(*) FROM {}", self.name);
        Ok(on!(tx, conn => sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(conn).await)?)
    }

    /// Up to `limit` rows in the order of the primary key, from behind the row `after`.
    pub async fn page(&self, tx: &mut Tx, after: Option<&[Cell]>, limit: i64) -> Result<Vec<Vec<Cell>>> {
        let key = self.names(self.key.iter().copied()).join(", ");
        let mut sql = format!("SELECT {} FROM {}", self.names(0..self.columns.len()).join(", "), self.name);
        if after.is_some() {
            let places: Vec<String> = (1..=self.key.len()).map(|n| format!("${n}")).collect();
            sql.push_str(&format!(" WHERE ({key}) > ({})", places.join(", ")));
        }
        sql.push_str(&format!(" ORDER BY {key} LIMIT {limit}"));
        let bound: Vec<&Cell> = match after {
            Some(row) => self.key.iter().map(|at| &row[*at]).collect(),
            None => Vec::new(),
        };
        on!(tx, conn => {
            let mut query = sqlx::query(AssertSqlSafe(sql));
            for cell in bound {
                query = cell::bind!(query, cell);
            }
            let rows = query.fetch_all(conn).await?;
            rows.iter().map(|row| cell::row!(row, self.columns)).collect()
        })
    }

    /// Inserts rows whose cells are in the order of the columns.
    pub async fn insert(&self, tx: &mut Tx, rows: &[Vec<Cell>]) -> Result<()> {
        let width = self.columns.len();
        let names = self.names(0..width).join(", ");
        for rows in rows.chunks((VALUES_MAX / width).max(1)) {
            let places: Vec<String> = (0..rows.len())
                .map(|row| {
                    let row: Vec<String> = (1..=width).map(|n| format!("${}", row * width + n)).collect();
                    format!("({})", row.join(", "))
                })
                .collect();
            let sql = format!("INSERT INTO {} ({names}) VALUES {}", self.name, places.join(", "));
            affected!(tx, {
                let mut query = sqlx::query(AssertSqlSafe(sql));
                for cell in rows.iter().flatten() {
                    query = cell::bind!(query, cell);
                }
                query
            });
        }
        Ok(())
    }

    fn names(&self, positions: impl Iterator<Item = usize>) -> Vec<&str> {
        positions.map(|at| self.columns[at].name.as_str()).collect()
    }
}

#[cfg(test)]
mod tests;
