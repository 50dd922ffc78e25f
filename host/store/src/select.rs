//! What several tables' functions share: the scope of a caller, and lists with filters, search and pages.
//!
//! SQL comes in as literals only, values only as bound parameters.
//!
//! A limit is bound as `CAST($1 AS BIGINT)`: `SQLite` looks at the value of a bare parameter to choose a plan, and so
//! prepares the statement again each time that it runs. It does the same for a bare parameter behind `LIKE`, and for one
//! that is compared with a column of a partial index's condition: such a state is written as a literal.

use std::borrow::Cow;

use heddle_core::page::{Cursor, Place, WalkRequest, Walked};
use heddle_core::{OrgId, SiteId, Timestamp};
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, FromRow};
use uuid::Uuid;

use crate::db::Tx;
use crate::error::Result;
use crate::grants::SiteGrant;
use crate::sort::{InOrder, Sort, Sorted};

/// Most rows of one page, whatever is asked for.
pub const PER_PAGE_MAX: i64 = 200;
/// Rows of a list that grows without end are not counted beyond so many.
pub const COUNT_MAX: i64 = 10_000;

/// The organization and the sites whose rows a function may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// `None` spans all organizations.
    pub org: Option<OrgId>,
    pub sites: SiteScope,
}

/// Which sites' rows are seen. An empty list in `Only` shows none.
/// Tables without a column for the site ignore it: there the caller decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SiteScope {
    All,
    Only(Vec<SiteId>),
}

impl SiteScope {
    /// All sites without grants; with some, exactly those.
    pub fn of(grants: &[SiteGrant]) -> Self {
        if grants.is_empty() {
            SiteScope::All
        } else {
            SiteScope::Only(grants.iter().map(|grant| grant.site_id).collect())
        }
    }
}

impl Scope {
    /// Every site of one organization.
    pub fn organization(org: OrgId) -> Self {
        Self { org: Some(org), sites: SiteScope::All }
    }

    /// Every organization: for the host's own work.
    pub fn everything() -> Self {
        Self { org: None, sites: SiteScope::All }
    }
}

/// What an update does to a field that may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Set<T> {
    #[default]
    Keep,
    Clear,
    To(T),
}

impl<T> Set<T> {
    /// Whether the field is written at all.
    pub(crate) fn is_set(&self) -> bool {
        !matches!(self, Set::Keep)
    }

    pub(crate) fn value(&self) -> Option<&T> {
        match self {
            Set::To(value) => Some(value),
            Set::Keep | Set::Clear => None,
        }
    }

    pub(crate) fn map<'v, U>(&'v self, to: impl FnOnce(&'v T) -> U) -> Set<U> {
        match self {
            Set::Keep => Set::Keep,
            Set::Clear => Set::Clear,
            Set::To(value) => Set::To(to(value)),
        }
    }
}

/// What an update's body says of a field: absent keeps, `null` clears.
impl<T> From<Option<Option<T>>> for Set<T> {
    fn from(given: Option<Option<T>>) -> Self {
        match given {
            None => Set::Keep,
            Some(None) => Set::Clear,
            Some(Some(value)) => Set::To(value),
        }
    }
}

/// A value to bind.
#[derive(Clone)]
pub(crate) enum Bind {
    Id(Uuid),
    Text(String),
    Time(Timestamp),
    Flag(bool),
    Number(i64),
    Json(serde_json::Value),
    Bytes(Vec<u8>),
}

/// Without the value: some are hashes of passwords and sealed secrets.
impl std::fmt::Debug for Bind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bind")
    }
}

/// Binds every value of a list to a query, in order.
macro_rules! bind_all {
    ($query:expr, $binds:expr) => {{
        let mut query = $query;
        for bind in $binds {
            query = match bind {
                $crate::select::Bind::Id(value) => query.bind(*value),
                $crate::select::Bind::Text(value) => query.bind(value.clone()),
                $crate::select::Bind::Time(value) => query.bind(*value),
                $crate::select::Bind::Flag(value) => query.bind(*value),
                $crate::select::Bind::Number(value) => query.bind(*value),
                $crate::select::Bind::Json(value) => query.bind(value.clone()),
                $crate::select::Bind::Bytes(value) => query.bind(value.clone()),
            };
        }
        query
    }};
}

/// A row that both databases can give.
pub trait Row: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}
impl<T> Row for T where T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}

/// A statement whose conditions are known only when it runs.
///
/// In a condition one `?` stands for the bound value.
#[derive(Debug)]
pub(crate) struct Select {
    head: &'static str,
    from: Cow<'static, str>,
    conditions: String,
    binds: Vec<Bind>,
}

impl Select {
    /// `head` is `SELECT columns`, `from` is `FROM table alias`.
    pub(crate) fn new(head: &'static str, from: &'static str) -> Self {
        Self { head, from: from.into(), conditions: String::new(), binds: Vec::new() }
    }

    /// `from` has a place for one value, as a condition of a join.
    pub(crate) fn with_bind(head: &'static str, from: &'static str, value: Bind) -> Self {
        let (before, after) = from.split_once('?').expect("the tables have a place for their value");
        Self {
            head,
            from: format!("{before}$1{after}").into(),
            conditions: String::new(),
            binds: vec![value],
        }
    }

    pub(crate) fn and(mut self, condition: &'static str) -> Self {
        self.begin_condition();
        self.conditions.push_str(condition);
        self
    }

    pub(crate) fn and_bind(mut self, condition: &'static str, value: Bind) -> Self {
        self.begin_condition();
        let (before, after) = condition.split_once('?').expect("the condition has a place for its value");
        self.conditions.push_str(before);
        self.push_bind(value);
        self.conditions.push_str(after);
        self
    }

    pub(crate) fn and_some(self, condition: &'static str, value: Option<Bind>) -> Self {
        match value {
            Some(value) => self.and_bind(condition, value),
            None => self,
        }
    }

    pub(crate) fn and_in(mut self, column: &'static str, values: impl IntoIterator<Item = Bind>) -> Self {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return self.and("1 = 0");
        }
        self.begin_condition();
        self.push_in(column, values);
        self
    }

    /// Rows whose column is empty, or holds one of the values.
    pub(crate) fn and_null_or_in(
        mut self,
        column: &'static str,
        values: impl IntoIterator<Item = Bind>,
    ) -> Self {
        self.begin_condition();
        self.conditions.push('(');
        self.conditions.push_str(column);
        self.conditions.push_str(" IS NULL");
        let mut values = values.into_iter().peekable();
        if values.peek().is_some() {
            self.conditions.push_str(" OR ");
            self.push_in(column, values);
        }
        self.conditions.push(')');
        self
    }

    /// Only rows of the scope; names the columns that hold the organization and the site.
    pub(crate) fn within(self, scope: &Scope, org: &'static str, site: Option<&'static str>) -> Self {
        let select = match scope.org {
            Some(id) => self.and(org).equals(Bind::Id(id.0)),
            None => self,
        };
        match (&scope.sites, site) {
            (SiteScope::Only(sites), Some(column)) => {
                select.and_in(column, sites.iter().map(|site| Bind::Id(site.0)))
            }
            _ => select,
        }
    }

    /// Rows where one of the columns contains the text, whatever its case; `%` and `_` are nothing special.
    pub(crate) fn search(mut self, columns: &[&'static str], text: Option<&str>) -> Self {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return self };
        let pattern = format!("%{}%", text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_"));
        self.begin_condition();
        self.conditions.push('(');
        for (at, column) in columns.iter().enumerate() {
            if at > 0 {
                self.conditions.push_str(" OR ");
            }
            self.conditions.push_str("LOWER(");
            self.conditions.push_str(column);
            self.conditions.push_str(") LIKE LOWER(");
            self.push_bind(Bind::Text(pattern.clone()));
            self.conditions.push_str(") ESCAPE '\\'");
        }
        self.conditions.push(')');
        self
    }

    /// One page of the rows in their order, and how many rows there are in all: two statements.
    pub(crate) async fn page<T: Row + Sorted>(
        self,
        tx: &mut Tx,
        page: impl Into<InOrder<T>>,
    ) -> Result<(Vec<T>, i64)> {
        let InOrder { request, sort } = page.into();
        let limit = request.limit().min(PER_PAGE_MAX);
        let offset = i64::from(request.page.saturating_sub(1)) * limit;
        self.slice(tx, &sort.order(), limit, offset).await
    }

    /// Rows of the given order from an offset, and how many there are in all: two statements.
    pub(crate) async fn slice<T: Row>(
        self,
        tx: &mut Tx,
        order: &str,
        limit: i64,
        offset: i64,
    ) -> Result<(Vec<T>, i64)> {
        let total = self.count(tx).await?;
        Ok((self.rows(tx, order, limit, offset).await?, total))
    }

    /// Part of a list without an end, such as events, ordered by time. Takes two statements; with a cursor, neither takes
    /// longer in a longer list. The columns of `S` are those of a [`Cursor`]: time, number if there is one, id.
    pub(crate) async fn walk<T: Row, S: Sorted>(
        self,
        tx: &mut Tx,
        request: WalkRequest,
    ) -> Result<Walked<T>> {
        let sort = Sort::<S>::towards(request.is_ascending);
        match request.place {
            Place::Page(_) => self.stretch(tx, &sort.order(), request).await,
            Place::Behind(cursor) => {
                let counted = self.count_few(tx).await?;
                let limit = i64::from(request.per_page).min(PER_PAGE_MAX);
                let columns = match S::LAST {
                    [id] => format!("{}, 0, {id}", sort.column()),
                    more => format!("{}, {}", sort.column(), more.join(", ")),
                };
                let select = self.behind(&columns, sort.is_descending, &cursor);
                let items = select.rows(tx, &sort.order(), limit + 1, 0).await?;
                Ok(walked(items, limit, counted))
            }
        }
    }

    /// A page of such a list in the given order. It needs no cursor: a request that holds one gets the first page.
    pub(crate) async fn stretch<T: Row>(
        self,
        tx: &mut Tx,
        order: &str,
        request: WalkRequest,
    ) -> Result<Walked<T>> {
        let counted = self.count_few(tx).await?;
        let limit = i64::from(request.per_page).min(PER_PAGE_MAX);
        let page = match request.place {
            Place::Page(page) => page,
            Place::Behind(_) => 1,
        };
        let items = self.rows(tx, order, limit + 1, i64::from(page.saturating_sub(1)) * limit).await?;
        Ok(walked(items, limit, counted))
    }

    /// The conditions alone, for a statement that writes.
    pub(crate) fn into_conditions(self) -> (String, Vec<Bind>) {
        (self.conditions, self.binds)
    }

    fn behind(mut self, columns: &str, is_descending: bool, cursor: &Cursor) -> Self {
        self.begin_condition();
        self.conditions.push('(');
        self.conditions.push_str(columns);
        self.conditions.push_str(if is_descending { ") < (" } else { ") > (" });
        self.push_bind(Bind::Time(cursor.occurred_at));
        self.conditions.push_str(", ");
        self.push_bind(Bind::Number(cursor.seq));
        self.conditions.push_str(", ");
        self.push_bind(Bind::Id(cursor.id));
        self.conditions.push(')');
        self
    }

    /// Counts no further than one beyond [`COUNT_MAX`].
    async fn count_few(&self, tx: &mut Tx) -> Result<i64> {
        let sql = format!(
            "SELECT COUNT(*) FROM (SELECT 1 {}{} LIMIT {}) AS few",
            self.from,
            self.conditions,
            COUNT_MAX + 1
        );
        Ok(
            on!(tx, conn => bind_all!(sqlx::query_scalar(AssertSqlSafe(sql)), &self.binds).fetch_one(conn).await)?,
        )
    }

    pub(crate) async fn count(&self, tx: &mut Tx) -> Result<i64> {
        let sql = format!("SELECT COUNT(*) {}{}", self.from, self.conditions);
        Ok(
            on!(tx, conn => bind_all!(sqlx::query_scalar(AssertSqlSafe(sql)), &self.binds).fetch_one(conn).await)?,
        )
    }

    /// The rows of each group, ordered by what they are grouped by: few, whatever is counted.
    pub(crate) async fn grouped<T: Row>(self, tx: &mut Tx, by: &'static str) -> Result<Vec<T>> {
        let sql = format!("{} {}{} GROUP BY {by} ORDER BY {by}", self.head, self.from, self.conditions);
        Ok(on!(tx, conn => bind_all!(sqlx::query_as(AssertSqlSafe(sql)), &self.binds).fetch_all(conn).await)?)
    }

    pub(crate) async fn all<T: Row>(self, tx: &mut Tx, order: &'static str, limit: i64) -> Result<Vec<T>> {
        self.rows(tx, order, limit, 0).await
    }

    pub(crate) async fn one<T: Row>(self, tx: &mut Tx) -> Result<Option<T>> {
        let sql = format!("{} {}{}", self.head, self.from, self.conditions);
        Ok(
            on!(tx, conn => bind_all!(sqlx::query_as(AssertSqlSafe(sql)), &self.binds).fetch_optional(conn).await)?,
        )
    }

    /// The row, locked until the transaction ends, so that it can be changed as it was read.
    ///
    /// `OF` names the table of the row. Others may still write rows that refer to it: `FOR UPDATE` would hold up every
    /// event of a locked organization, and deadlock with one that waits for the organization's next number. On `SQLite`
    /// a transaction that writes is alone anyway.
    pub(crate) async fn one_locked<T: Row>(mut self, tx: &mut Tx, of: &'static str) -> Result<Option<T>> {
        if matches!(tx, Tx::Postgres(_)) {
            self.conditions.push_str(" FOR NO KEY UPDATE OF ");
            self.conditions.push_str(of);
        }
        self.one(tx).await
    }

    /// Returns rows in the given order, each locked as by [`Select::one_locked`]. Where locks are not waited for, it
    /// leaves out those that another transaction has locked.
    pub(crate) async fn all_locked<T: Row>(
        self,
        tx: &mut Tx,
        order: &'static str,
        limit: i64,
        (of, waits): (&'static str, bool),
    ) -> Result<Vec<T>> {
        let lock = if matches!(tx, Tx::Postgres(_)) { Some((of, waits)) } else { None };
        self.fetch(tx, order, (limit, 0), lock).await
    }

    async fn rows<T: Row>(self, tx: &mut Tx, order: &str, limit: i64, offset: i64) -> Result<Vec<T>> {
        self.fetch(tx, order, (limit, offset), None).await
    }

    async fn fetch<T: Row>(
        self,
        tx: &mut Tx,
        order: &str,
        (limit, offset): (i64, i64),
        lock: Option<(&'static str, bool)>,
    ) -> Result<Vec<T>> {
        let mut sql = format!("{} {}{} ORDER BY {order}", self.head, self.from, self.conditions);
        let at = self.binds.len();
        sql.push_str(&format!(" LIMIT CAST(${} AS BIGINT) OFFSET CAST(${} AS BIGINT)", at + 1, at + 2));
        if let Some((table, waits)) = lock {
            sql.push_str(" FOR NO KEY UPDATE OF ");
            sql.push_str(table);
            sql.push_str(if waits { "" } else { " SKIP LOCKED" });
        }
        Ok(on!(tx, conn => bind_all!(sqlx::query_as(AssertSqlSafe(sql)), &self.binds)
            .bind(limit)
            .bind(offset)
            .fetch_all(conn)
            .await)?)
    }

    fn equals(mut self, value: Bind) -> Self {
        self.conditions.push_str(" = ");
        self.push_bind(value);
        self
    }

    fn begin_condition(&mut self) {
        self.conditions.push_str(if self.conditions.is_empty() { " WHERE " } else { " AND " });
    }

    fn push_bind(&mut self, value: Bind) {
        self.binds.push(value);
        self.conditions.push_str(&format!("${}", self.binds.len()));
    }

    fn push_in(&mut self, column: &'static str, values: impl Iterator<Item = Bind>) {
        self.conditions.push_str(column);
        self.conditions.push_str(" IN (");
        for (at, value) in values.enumerate() {
            if at > 0 {
                self.conditions.push_str(", ");
            }
            self.push_bind(value);
        }
        self.conditions.push(')');
    }
}

/// Behind a selection of one table within a statement that writes: locks its rows in their order. Two statements that lock in
/// the same order never wait for each other. On `SQLite` a transaction that writes is alone anyway.
pub(crate) fn lock(tx: &Tx) -> &'static str {
    if matches!(tx, Tx::Postgres(_)) { " FOR NO KEY UPDATE" } else { "" }
}

/// As [`lock`], but leaves out rows that another transaction has locked.
pub(crate) fn lock_free(tx: &Tx) -> &'static str {
    if matches!(tx, Tx::Postgres(_)) { " FOR NO KEY UPDATE SKIP LOCKED" } else { "" }
}

/// One row more than the limit was read, to see whether there are more.
fn walked<T>(mut items: Vec<T>, limit: i64, counted: i64) -> Walked<T> {
    let shown = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = items.len() > shown;
    items.truncate(shown);
    Walked { items, total: counted.min(COUNT_MAX), total_is_capped: counted > COUNT_MAX, has_more }
}

/// Runs a literal `UPDATE` or `DELETE` and tells how many rows it touched.
macro_rules! affected {
    ($tx:expr, $query:expr) => {
        match $tx {
            $crate::db::Tx::Sqlite(tx) => {
                let result: sqlx::Result<sqlx::sqlite::SqliteQueryResult> = $query.execute(&mut **tx).await;
                result?.rows_affected()
            }
            $crate::db::Tx::Postgres(tx) => {
                let result: sqlx::Result<sqlx::postgres::PgQueryResult> = $query.execute(&mut **tx).await;
                result?.rows_affected()
            }
        }
    };
}

/// Binds every value of a list, with commas between them.
macro_rules! push_list {
    ($sql:expr, $values:expr) => {{
        let mut list = $sql.separated(", ");
        for value in $values {
            list.push_bind(*value);
        }
    }};
}
pub(crate) use affected;
pub(crate) use bind_all;
pub(crate) use push_list;

#[cfg(test)]
pub(crate) mod tests {
    use std::path::{Path, PathBuf};

    /// Every Rust source below a folder.
    fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }

    /// Every Rust source of this crate.
    pub(crate) fn all_sources() -> Vec<(PathBuf, String)> {
        let mut texts = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut texts);
        assert!(texts.len() > 50, "the sources are found");
        texts
    }

    #[test]
    fn no_limit_makes_sqlite_prepare_its_statement_again() {
        let texts = all_sources();
        let bare = ["LIMIT", "OFFSET"].map(|word| ['$', '"'].map(|next| format!("{word} {next}"))).concat();
        for (_, text) in texts {
            let line = text.lines().find(|line| bare.iter().any(|bare| line.contains(bare)));
            assert_eq!(line, None, "a bare parameter is written CAST($1 AS BIGINT)");
        }
    }
}
