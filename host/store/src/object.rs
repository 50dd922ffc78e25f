//! Objects that people make, edit, remove and bring back: what their tables share.
//!
//! Such a table has the columns `id`, `revision`, `created_at`, `updated_at` and `deleted_at`. Every write here is an edit by
//! people, and raises the revision; readings and counts are written elsewhere, and leave it as it is. A removed object keeps
//! its row, and only a restore sees it. An object's own module adds its columns, its lists, and what else a write of it
//! touches.

use heddle_core::{OrgId, Timestamp};
use serde_json::Value;
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::db::Tx;
use crate::error::{Error, Result};
use crate::select::{Bind, Row, Scope, Select, Set, affected, bind_all};
use crate::sort::Sorted;

/// Where the objects of a type are kept.
#[derive(Debug)]
pub struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static str,
    pub(crate) select: &'static str,
    pub(crate) from: &'static str,
    /// Another table, of which a row holds columns as well; a statement that writes cannot answer those.
    pub(crate) join: Option<&'static str>,
    pub(crate) org: &'static str,
    pub(crate) site: Option<&'static str>,
    pub(crate) id: &'static str,
    pub(crate) select_id: &'static str,
    pub(crate) is: &'static str,
    pub(crate) live: &'static str,
    pub(crate) removed: &'static str,
}

/// Describes a table: its name, the columns of a row, those that say whose it is, and the tables that are joined to it.
///
/// Columns are qualified with the table's own name: `SQLite` accepts no alias where a statement answers what it wrote.
macro_rules! table {
    (@some) => { None };
    (@some $given:expr) => { Some($given) };
    ($name:literal, $columns:expr, org: $org:literal $(, site: $site:literal)? $(, join: $join:literal)?) => {
        $crate::object::Table {
            name: $name,
            columns: $columns,
            select: concat!("SELECT ", $columns),
            from: concat!("FROM ", $name $(, " ", $join)?),
            join: table!(@some $($join)?),
            org: concat!($name, ".", $org),
            site: table!(@some $(concat!($name, ".", $site))?),
            id: concat!($name, ".id"),
            select_id: concat!("SELECT ", $name, ".id"),
            is: concat!($name, ".id = ?"),
            live: concat!($name, ".deleted_at IS NULL"),
            removed: concat!($name, ".deleted_at IS NOT NULL"),
        }
    };
}
pub(crate) use table;

/// An object in one state that people gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revision {
    pub object: Uuid,
    /// The number of its edits, also of fields that no answer shows.
    pub number: i64,
}

impl Revision {
    /// Pairs an object's id with the number of its edits, which its row has as `revision`.
    pub fn of(object: impl Into<Uuid>, number: i64) -> Self {
        Self { object: object.into(), number }
    }
}

/// What counts the edits that people make.
pub trait Revised {
    /// Returns the state that an edit by people changes. Readings and counts leave it as it is.
    fn revision(&self) -> Revision;
}

/// Types with the fields `id` and `revision`.
#[macro_export]
macro_rules! revised {
    ($($of:ty),+ $(,)?) => {$(
        impl $crate::object::Revised for $of {
            fn revision(&self) -> $crate::object::Revision {
                $crate::object::Revision::of(self.id, self.revision)
            }
        }
    )+};
}
pub(crate) use revised;

/// An object of an organization.
///
/// A removal or a restore that touches other rows too is written by the type itself, in place of the one here.
pub trait Object: Row + Sorted + Revised {
    type Id: Copy + Into<Uuid> + Send + Sync;
    const TABLE: Table;

    /// The organization that has it.
    fn organization(&self) -> OrgId;

    /// Returns the object as it is now, without a lock.
    /// `None` means that it is outside of the scope, is removed, or never existed.
    fn find(tx: &mut Tx, scope: &Scope, id: Self::Id) -> impl Future<Output = Result<Option<Self>>> + Send {
        live::<Self>(scope).and_bind(Self::TABLE.is, Bind::Id(id.into())).one(tx)
    }

    /// The object as it is until the transaction ends: nothing else changes it meanwhile.
    fn lock(tx: &mut Tx, scope: &Scope, id: Self::Id) -> impl Future<Output = Result<Option<Self>>> + Send {
        live::<Self>(scope).and_bind(Self::TABLE.is, Bind::Id(id.into())).one_locked(tx, Self::TABLE.name)
    }

    /// The object, if it is a removed one.
    fn find_removed(
        tx: &mut Tx,
        scope: &Scope,
        id: Self::Id,
    ) -> impl Future<Output = Result<Option<Self>>> + Send {
        removed::<Self>(scope).and_bind(Self::TABLE.is, Bind::Id(id.into())).one(tx)
    }

    /// Hides the object; false when there is none to hide. Its name is free again.
    fn remove(
        tx: &mut Tx,
        scope: &Scope,
        id: Self::Id,
        now: Timestamp,
    ) -> impl Future<Output = Result<bool>> + Send {
        hide::<Self>(tx, scope, id, Columns::default(), now)
    }

    /// Brings a removed object back.
    ///
    /// # Errors
    /// [`Error::Unique`] when its name was taken since.
    fn restore(
        tx: &mut Tx,
        scope: &Scope,
        id: Self::Id,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<Self>>> + Send {
        unhide(tx, scope, id, now)
    }
}

/// Columns that a statement writes, and their values.
#[derive(Default)]
pub(crate) struct Columns(Vec<(&'static str, Written)>);

enum Written {
    Null,
    To(Bind),
    /// One more than before.
    Raised,
}

impl Columns {
    pub(crate) fn with(self, name: &'static str, value: impl Into<Bind>) -> Self {
        self.push(name, Written::To(value.into()))
    }

    pub(crate) fn null(self, name: &'static str) -> Self {
        self.push(name, Written::Null)
    }

    /// `NULL` where there is no value.
    pub(crate) fn or_null(self, name: &'static str, value: Option<impl Into<Bind>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self.null(name),
        }
    }

    /// Not written where there is no value.
    pub(crate) fn or_keep(self, name: &'static str, value: Option<impl Into<Bind>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Written as the update says.
    pub(crate) fn set<'v, T>(self, name: &'static str, value: &'v Set<T>) -> Self
    where
        Bind: From<&'v T>,
    {
        match value {
            Set::Keep => self,
            Set::Clear => self.null(name),
            Set::To(value) => self.with(name, value),
        }
    }

    /// A number that grows by one.
    pub(crate) fn raised(self, name: &'static str) -> Self {
        self.push(name, Written::Raised)
    }

    fn push(mut self, name: &'static str, value: Written) -> Self {
        self.0.push((name, value));
        self
    }

    /// Each column with what stands for its value in a statement that has these values already.
    fn placed(self, binds: &mut Vec<Bind>) -> impl Iterator<Item = (&'static str, String)> {
        self.0.into_iter().map(|(name, value)| match value {
            Written::Null => (name, "NULL".to_owned()),
            Written::Raised => (name, format!("{name} + 1")),
            Written::To(value) => {
                binds.push(value);
                (name, format!("${}", binds.len()))
            }
        })
    }
}

/// Objects of the scope that are not removed.
pub(crate) fn live<T: Object>(scope: &Scope) -> Select {
    live_as::<T>(T::TABLE.select, scope)
}

/// The same with other columns than those of a row.
pub(crate) fn live_as<T: Object>(select: &'static str, scope: &Scope) -> Select {
    within::<T>(select, scope).and(T::TABLE.live)
}

fn removed<T: Object>(scope: &Scope) -> Select {
    within::<T>(T::TABLE.select, scope).and(T::TABLE.removed)
}

fn within<T: Object>(select: &'static str, scope: &Scope) -> Select {
    Select::new(select, T::TABLE.from).within(scope, T::TABLE.org, T::TABLE.site)
}

/// Makes an object.
///
/// # Errors
/// [`Error::Unique`] with the name of the index when what must be unique is taken.
pub(crate) async fn insert<T: Object>(tx: &mut Tx, id: T::Id, columns: Columns, now: Timestamp) -> Result<T> {
    let columns = columns.with("id", id.into()).with("created_at", now).with("updated_at", now);
    let mut binds = Vec::new();
    let (names, values): (Vec<_>, Vec<_>) = columns.placed(&mut binds).unzip();
    let (names, values) = (names.join(", "), values.join(", "));
    let sql = format!("INSERT INTO {} ({names}) VALUES ({values})", T::TABLE.name);
    let made = answered(tx, &Scope::everything(), id, sql, &binds).await?;
    made.ok_or_else(|| {
        Error::Internal(format!("a row of {} that was just made is not there", T::TABLE.name).into())
    })
}

/// Writes columns of an object that is not removed; `None` when there is no such object.
///
/// # Errors
/// [`Error::Unique`] with the name of the index when what must be unique is taken.
pub(crate) async fn update<T: Object>(
    tx: &mut Tx,
    scope: &Scope,
    id: T::Id,
    columns: Columns,
    now: Timestamp,
) -> Result<Option<T>> {
    write(tx, scope, (id, live::<T>(scope)), columns, now).await
}

/// Hides an object, and writes these columns of it; false when there is none to hide.
pub(crate) async fn hide<T: Object>(
    tx: &mut Tx,
    scope: &Scope,
    id: T::Id,
    columns: Columns,
    now: Timestamp,
) -> Result<bool> {
    let columns = columns.with("deleted_at", now);
    let (sql, binds) = update_of::<T>((id, live::<T>(scope)), columns, now);
    Ok(affected!(tx, bind_all!(sqlx::query(AssertSqlSafe(sql)), &binds)) == 1)
}

/// The removed object as it is until the transaction ends.
pub(crate) async fn lock_removed<T: Object>(tx: &mut Tx, scope: &Scope, id: T::Id) -> Result<Option<T>> {
    removed::<T>(scope).and_bind(T::TABLE.is, Bind::Id(id.into())).one_locked(tx, T::TABLE.name).await
}

/// Shows a removed object again; `None` when there is none.
pub(crate) async fn unhide<T: Object>(
    tx: &mut Tx,
    scope: &Scope,
    id: T::Id,
    now: Timestamp,
) -> Result<Option<T>> {
    write(tx, scope, (id, removed::<T>(scope)), Columns::default().null("deleted_at"), now).await
}

/// Writes columns of an object, if it is among these.
pub(crate) async fn write<T: Object>(
    tx: &mut Tx,
    scope: &Scope,
    of: (T::Id, Select),
    columns: Columns,
    now: Timestamp,
) -> Result<Option<T>> {
    let id = of.0;
    let (sql, binds) = update_of::<T>(of, columns, now);
    answered(tx, scope, id, sql, &binds).await
}

/// The statement that writes columns of one object among these.
fn update_of<T: Object>((id, of): (T::Id, Select), columns: Columns, now: Timestamp) -> (String, Vec<Bind>) {
    let columns = columns.raised("revision").with("updated_at", now);
    let (conditions, mut binds) = of.and_bind(T::TABLE.is, Bind::Id(id.into())).into_conditions();
    let written: Vec<String> =
        columns.placed(&mut binds).map(|(name, value)| format!("{name} = {value}")).collect();
    (format!("UPDATE {} SET {}{conditions}", T::TABLE.name, written.join(", ")), binds)
}

/// Runs a statement that writes one row, and reads the object as it is then.
async fn answered<T: Object>(
    tx: &mut Tx,
    scope: &Scope,
    id: T::Id,
    mut sql: String,
    binds: &[Bind],
) -> Result<Option<T>> {
    if T::TABLE.join.is_some() {
        let rows = affected!(tx, bind_all!(sqlx::query(AssertSqlSafe(sql)), binds));
        return if rows == 1 { T::find(tx, scope, id).await } else { Ok(None) };
    }
    sql.push_str(" RETURNING ");
    sql.push_str(T::TABLE.columns);
    Ok(on!(tx, conn => bind_all!(sqlx::query_as(AssertSqlSafe(sql)), binds).fetch_optional(conn).await)?)
}

macro_rules! binds {
    ($($of:ty => $kind:ident),+ $(,)?) => {$(
        impl From<$of> for Bind {
            fn from(value: $of) -> Self {
                Self::$kind(value)
            }
        }

        impl From<&$of> for Bind {
            fn from(value: &$of) -> Self {
                Self::$kind(value.clone())
            }
        }
    )+};
}

binds! {
    Uuid => Id,
    String => Text,
    Timestamp => Time,
    bool => Flag,
    i64 => Number,
    Value => Json,
    Vec<u8> => Bytes,
}

impl From<&str> for Bind {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

#[cfg(test)]
mod tests;
