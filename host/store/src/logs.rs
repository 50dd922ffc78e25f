//! The service's own log lines, in a database that holds nothing else.
//!
//! Lines belong to the service, but for those that an organization wrote by
//! `fabric.log`. Take the transaction from a database opened with
//! [`crate::db::Db::open_logs`].

use heddle_core::page::{WalkRequest, Walked};
use heddle_core::{LogLevel, OrgId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sqlx::{FromRow, QueryBuilder};
use uuid::Uuid;

use crate::db::Tx;
use crate::error::Result;
use crate::select::{Bind, Select, affected};
use crate::sort::{Key, Sorted};

/// Rows of one INSERT: nine values each, far below both databases' limit of parameters.
const ROWS_PER_STATEMENT: usize = 500;

/// One line, as it is written and as it is read.
#[derive(Debug, Clone, PartialEq, FromRow, Serialize, JsonSchema)]
pub struct LogLine {
    pub id: Uuid,
    pub at: Timestamp,
    pub level: LogLevel,
    /// The part of the program that wrote it: `heddle_inventory::sync`.
    pub target: String,
    pub message: String,
    /// What the line says besides its message, by name.
    pub fields: Value,
    /// Id of the request that it belongs to.
    pub request_id: Option<String>,
    /// What was going on, outermost first: `request`, `task:sync`.
    pub span: Option<String>,
    /// The organization that wrote it by `fabric.log`; null for the service's own lines.
    #[serde(rename = "organization_id")]
    pub org_id: Option<OrgId>,
}

impl Sorted for LogLine {
    const KEYS: &'static [Key] = &[Key::of("at", "l.at")];
    const DEFAULT: &'static str = "-at";
    const LAST: &'static [&'static str] = &["l.id"];
}

/// Narrows a walk along the log. A field that is `None` or empty has no effect; all others must hold.
#[derive(Debug, Clone, Default)]
pub struct LogFilter {
    /// Lines that this organization wrote; `None` means all lines.
    pub org: Option<OrgId>,
    /// Lines of this gravity and graver ones.
    pub level: Option<LogLevel>,
    /// How the target begins.
    pub target: Option<String>,
    /// Anywhere in the message or the fields, whatever its case.
    pub search: Option<String>,
    /// Of any of these requests; empty means all lines.
    pub request_ids: Vec<String>,
    /// From this instant.
    pub since: Option<Timestamp>,
    /// Before this instant.
    pub until: Option<Timestamp>,
}

/// What is kept.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// Lines from before this instant go.
    pub oldest: Timestamp,
    /// Of more lines than this the oldest go.
    pub lines_max: i64,
}

const SELECT: &str =
    "SELECT l.id, l.at, l.level, l.target, l.message, l.fields, l.request_id, l.span, l.org_id";
const FROM: &str = "FROM log_line l";

/// Writes lines; the number of statements grows with their hundreds.
///
/// Those that are there already stay: a commit whose answer was lost is tried again.
pub async fn insert(tx: &mut Tx, lines: &[LogLine]) -> Result<()> {
    for rows in lines.chunks(ROWS_PER_STATEMENT) {
        on!(tx, conn => {
            let mut insert = QueryBuilder::new(
                "INSERT INTO log_line (id, at, level, target, message, fields, request_id, span, org_id) ",
            );
            insert.push_values(rows, |mut row, line| {
                row.push_bind(line.id)
                    .push_bind(line.at)
                    .push_bind(line.level)
                    .push_bind(&line.target)
                    .push_bind(&line.message)
                    .push_bind(&line.fields)
                    .push_bind(line.request_id.as_ref())
                    .push_bind(line.span.as_ref())
                    .push_bind(line.org_id);
            });
            insert.push(" ON CONFLICT (id) DO NOTHING");
            insert.build().execute(conn).await.map(|_| ())
        })?;
    }
    Ok(())
}

/// Lines that fit, newest first. A line has no number: that of a cursor is 0.
pub async fn walk(tx: &mut Tx, filter: &LogFilter, request: WalkRequest) -> Result<Walked<LogLine>> {
    let mut select = Select::new(SELECT, FROM)
        .and_some("l.org_id = ?", filter.org.map(|id| Bind::Id(id.0)))
        .and_some("LOWER(l.target) LIKE LOWER(?) ESCAPE '\\'", filter.target.as_deref().map(beginning))
        .and_some("l.at >= ?", filter.since.map(Bind::Time))
        .and_some("l.at < ?", filter.until.map(Bind::Time))
        .search(&["l.message", "CAST(l.fields AS TEXT)"], filter.search.as_deref());
    // The first condition is that of an index, word for word.
    if filter.level.is_some_and(|level| level > LogLevel::Info) {
        select = select.and("l.level <> 'info'");
    }
    if filter.level == Some(LogLevel::Error) {
        select = select.and("l.level = 'error'");
    }
    if !filter.request_ids.is_empty() {
        select = select.and_in("l.request_id", filter.request_ids.iter().cloned().map(Bind::Text));
    }
    select.walk::<_, LogLine>(tx, request).await
}

/// The pattern of texts that begin like this one; `%` and `_` are nothing special.
fn beginning(text: &str) -> Bind {
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    Bind::Text(format!("{escaped}%"))
}

/// Removes at most `step` of the lines that are not kept, the oldest first; tells how many went.
pub async fn trim(tx: &mut Tx, retention: Retention, step: u32) -> Result<u64> {
    let expired = affected!(
        tx,
        sqlx::query(
            "DELETE FROM log_line WHERE id IN
                (SELECT id FROM log_line WHERE at < $1 ORDER BY at, id LIMIT CAST($2 AS BIGINT))"
        )
        .bind(retention.oldest)
        .bind(i64::from(step))
    );
    if expired > 0 {
        return Ok(expired);
    }
    let surplus = Select::new(SELECT, FROM).count(tx).await? - retention.lines_max;
    if surplus <= 0 {
        return Ok(0);
    }
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM log_line WHERE id IN (
            SELECT id FROM log_line ORDER BY at, id LIMIT CAST($1 AS BIGINT))"
        )
        .bind(surplus.min(i64::from(step)))
    ))
}

#[cfg(test)]
mod tests;
