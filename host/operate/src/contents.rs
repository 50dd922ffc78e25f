//! The contents of a backup: a manifest, then every row of every table, one per line.

use std::io::Read;

use anyhow::Context as _;
use heddle_core::Timestamp;
use heddle_store::dump::{self, Cell, Column, Table};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::container::{Opener, Unreadable};

/// Version of the line format.
pub(super) const FORMAT: u32 = 1;

/// The first line.
#[derive(Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) format: u32,
    /// Version of the program that wrote it.
    pub(super) heddle: String,
    /// The newest migration of the database.
    pub(super) schema_version: i64,
    pub(super) created_at: Timestamp,
    /// The service's keys, in the form of the file that keeps them.
    pub(super) keys: Box<RawValue>,
    /// In the order of their rows.
    pub(super) tables: Vec<Listed>,
}

/// A table of the manifest.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Listed {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: i64,
}

impl Listed {
    pub(super) fn of(table: &Table, rows: i64) -> Self {
        let columns = table.columns.iter().map(|column| column.name.clone()).collect();
        Self { name: table.name.clone(), columns, rows }
    }
}

/// Why a file that opens cannot be restored by this program.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfit {
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error("its contents have the format {0}, this version knows {known}: use the Heddle that wrote it", known = FORMAT)]
    Format(u32),
    #[error(
        "it was written by Heddle {heddle} at version {found} of the tables, this one has version {known}: restore it with a Heddle of version {found} of the tables, and migrate then"
    )]
    Schema { heddle: String, found: i64, known: i64 },
    #[error("its tables are not those of this program, although they have the same version")]
    Tables,
}

/// Reads a backup's lines and checks each before it is used.
pub(super) struct Reader<R: Read> {
    lines: Opener<R>,
    pub(super) manifest: Manifest,
    /// The tables of this program, in the order of the file.
    pub(super) tables: Vec<Table>,
}

impl<R: Read> Reader<R> {
    pub(super) fn new(mut lines: Opener<R>, known: &[Table], known_version: i64) -> Result<Self, Unfit> {
        let first = lines.line()?.ok_or_else(|| damaged("it is empty"))?;
        // Only the numbers are read first: another format may have other fields.
        let numbers: Value =
            serde_json::from_slice(&first).map_err(|_| damaged("its manifest is not JSON"))?;
        match numbers["format"].as_u64().and_then(|n| u32::try_from(n).ok()) {
            Some(FORMAT) => {}
            other => return Err(Unfit::Format(other.unwrap_or_default())),
        }
        let manifest: Manifest =
            serde_json::from_slice(&first).map_err(|_| damaged("its manifest is not in its form"))?;
        if manifest.schema_version != known_version {
            return Err(Unfit::Schema {
                heddle: manifest.heddle,
                found: manifest.schema_version,
                known: known_version,
            });
        }
        if manifest.tables.len() != known.len() {
            return Err(Unfit::Tables);
        }
        let fitting = |listed: &Listed| known.iter().find(|table| fits(listed, table)).cloned();
        let tables: Option<Vec<Table>> = manifest.tables.iter().map(fitting).collect();
        Ok(Self { lines, tables: tables.ok_or(Unfit::Tables)?, manifest })
    }

    /// Returns the next row of a table, with each value of its column's kind.
    pub(super) fn row(&mut self, table: &Table) -> Result<Vec<Cell>, Unreadable> {
        let line =
            self.lines.line()?.ok_or_else(|| damaged(&format!("rows of '{}' are missing", table.name)))?;
        let bad = |reason: &dyn std::fmt::Display| {
            Unreadable::Contents(format!("a row of '{}' is not in its form: {reason}", table.name))
        };
        let values: Vec<Value> = serde_json::from_slice(&line).map_err(|_| bad(&"it is no list"))?;
        if values.len() != table.columns.len() {
            return Err(bad(&"it has another number of columns"));
        }
        let parse = |(column, value): (&Column, Value)| match Cell::parse(column.kind, value) {
            Ok(cell) if cell.is_null() && !column.nullable => Err(bad(&format!("{} is empty", column.name))),
            Ok(cell) => Ok(cell),
            Err(error) => Err(bad(&format!("{}: {error}", column.name))),
        };
        table.columns.iter().zip(values).map(parse).collect()
    }

    /// Nothing may follow the last row.
    pub(super) fn end(&mut self) -> Result<(), Unreadable> {
        match self.lines.line()? {
            None => Ok(()),
            Some(_) => Err(damaged("it has more rows than its manifest says")),
        }
    }
}

fn fits(listed: &Listed, table: &Table) -> bool {
    listed.rows >= 0
        && listed.name == table.name
        && listed.columns.iter().eq(table.columns.iter().map(|column| &column.name))
}

fn damaged(reason: &str) -> Unreadable {
    Unreadable::Contents(reason.to_owned())
}

/// The tables of this program.
pub(super) async fn tables() -> anyhow::Result<Vec<Table>> {
    dump::tables().await.context("tables of this program cannot be listed")
}
