//! Which version of the tables a database has, and opening one without changing it.

use std::str::FromStr as _;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{Connection as _, SqliteConnection, SqlitePool};

use super::{Db, LOCK_WAIT, MIGRATIONS, PoolSettings, Pools, Tx};
use crate::error::{Error, Result};
use crate::folding;

/// How often a migration is tried again that another process was faster with.
const TRIES_MAX: u32 = 100;
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// Which version of the tables a database has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// The newest migration that it has; `None` when there are no tables of ours.
    pub version: Option<i64>,
    /// The newest that this program knows.
    pub known: i64,
    /// Migrations that this program knows and the database has not.
    pub pending: usize,
    /// Migrations that the database has in another form than this program.
    pub altered: Vec<i64>,
}

impl Schema {
    /// Whether the tables are exactly those of this program.
    pub fn is_current(&self) -> bool {
        self.version == Some(self.known) && self.pending == 0 && self.altered.is_empty()
    }
}

impl Db {
    /// The newest migration that this program knows.
    pub fn known_version() -> i64 {
        MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or_default()
    }

    /// Opens a database as it is: nothing is created and nothing is migrated.
    ///
    /// `None` when the file does not exist. Transactions of [`Db::write`] are not for it.
    pub async fn open_as_is(url: &str, settings: &PoolSettings) -> Result<Option<Self>> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            let options = PgConnectOptions::from_str(url)
                .map_err(|_| Error::Url("after 'postgres://' comes 'user:password@host:port/database'"))?;
            let pool = super::unswept(PgPoolOptions::new())
                .max_connections(settings.connections_max.max(1))
                .acquire_timeout(settings.acquire_timeout)
                .connect_with(options)
                .await
                .map_err(super::not_opened)?;
            return Ok(Some(Self::over(Pools::Postgres(pool))));
        }
        if !url.starts_with("sqlite://") {
            return Err(Error::Url(
                "it must begin with 'postgres://' or be 'sqlite://' and the path of a file",
            ));
        }
        let options = SqliteConnectOptions::from_str(url)
            .map_err(|_| Error::Url("after 'sqlite://' comes a path, and '?mode=rwc' to create the file"))?
            .create_if_missing(false)
            .busy_timeout(LOCK_WAIT)
            .pragma("query_only", "ON");
        if !options.get_filename().exists() {
            return Ok(None);
        }
        let pool = |connections: u32| {
            super::unswept(SqlitePoolOptions::new())
                .max_connections(connections)
                .acquire_timeout(settings.acquire_timeout)
        };
        let reader = pool(settings.connections_max.max(1)).connect_with(options.clone()).await?;
        // The connection for writes cannot write, and opens only on request.
        Ok(Some(Self::over(Pools::Sqlite { reader, writer: pool(1).connect_lazy_with(options) })))
    }

    /// Which version the tables have.
    pub async fn schema(&self) -> Result<Schema> {
        let mut tx = self.read().await?;
        let known = Self::known_version();
        if !has_migrations(&mut tx).await? {
            return Ok(Schema {
                version: None,
                known,
                pending: MIGRATIONS.iter().count(),
                altered: Vec::new(),
            });
        }
        let applied: Vec<(i64, Vec<u8>)> = on!(&mut tx, conn => sqlx::query_as(
            "SELECT version, checksum FROM _sqlx_migrations WHERE success ORDER BY version")
            .fetch_all(conn)
            .await)?;
        let find = |version: i64| applied.iter().find(|(applied, _)| *applied == version);
        let is_altered = |version: &i64, checksum: &[u8]| {
            find(*version).is_some_and(|(_, applied)| applied.as_slice() != checksum)
        };
        Ok(Schema {
            version: applied.last().map(|(version, _)| *version),
            known,
            pending: MIGRATIONS.iter().filter(|m| find(m.version).is_none()).count(),
            altered: MIGRATIONS
                .iter()
                .filter(|m| is_altered(&m.version, &m.checksum))
                .map(|m| m.version)
                .collect(),
        })
    }

    /// What the database says against itself: nothing when it is sound.
    ///
    /// `SQLite` reads the whole file; `PostgreSQL` looks after its files itself.
    pub async fn integrity_faults(&self) -> Result<Vec<String>> {
        let mut tx = self.read().await?;
        match &mut tx {
            Tx::Sqlite(tx) => {
                let lines: Vec<String> =
                    sqlx::query_scalar("PRAGMA quick_check(20)").fetch_all(&mut **tx).await?;
                Ok(lines.into_iter().filter(|line| line != "ok").collect())
            }
            Tx::Postgres(_) => Ok(Vec::new()),
        }
    }

    /// Major version of the server and its clock; `None` for a file.
    pub async fn server(&self) -> Result<Option<(i64, DateTime<Utc>)>> {
        let mut tx = self.read().await?;
        match &mut tx {
            Tx::Sqlite(_) => Ok(None),
            Tx::Postgres(tx) => {
                let (number, now): (i32, DateTime<Utc>) = sqlx::query_as(
                    "SELECT CAST(current_setting('server_version_num') AS INTEGER), clock_timestamp()",
                )
                .fetch_one(&mut **tx)
                .await?;
                Ok(Some((i64::from(number / 10_000), now)))
            }
        }
    }
}

async fn has_migrations(tx: &mut Tx) -> Result<bool> {
    let found: i64 = match tx {
        Tx::Sqlite(tx) => {
            sqlx::query_scalar("SELECT COUNT(*) FROM sqlite_schema WHERE name = '_sqlx_migrations'")
                .fetch_one(&mut **tx)
                .await?
        }
        Tx::Postgres(tx) => {
            sqlx::query_scalar("SELECT CAST(COUNT(to_regclass('_sqlx_migrations')) AS BIGINT)")
                .fetch_one(&mut **tx)
                .await?
        }
    };
    Ok(found > 0)
}

/// Refuses what a migration that is still to run could not bring along. It changes nothing.
pub(super) async fn prepare(tx: &mut Tx, migrations: &Migrator) -> Result<()> {
    let knows_folding = migrations.iter().any(|migration| migration.version == folding::VERSION);
    if !knows_folding || !has_migrations(tx).await? {
        return Ok(());
    }
    let (applied, folded): (i64, i64) = on!(tx, conn => sqlx::query_as(
        "SELECT COUNT(*), COUNT(CASE WHEN version = $1 THEN 1 END) FROM _sqlx_migrations WHERE success")
        .bind(folding::VERSION)
        .fetch_one(conn)
        .await)?;
    if applied == 0 || folded > 0 {
        return Ok(());
    }
    folding::refuse_same_names(tx).await
}

/// Brings a file up to date. `SQLite` has no lock for it: the second process finds a table that is there already, or
/// the file locked, and looks again.
pub(super) async fn migrate_file(migrations: &Migrator, pool: &SqlitePool) -> Result<(), MigrateError> {
    let mut seen = None;
    for _ in 0..TRIES_MAX {
        let error = match migrations.run(pool).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let (MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _)) = &error else {
            return Err(error);
        };
        let applied: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM _sqlx_migrations")
            .fetch_one(pool)
            .await
            .unwrap_or_default();
        let is_locked = cause.as_database_error().is_some_and(|error| error.message().contains("locked"));
        // The first failure may be another's doing; one that stays without progress is the migration's own.
        if !is_locked && seen == Some(applied) {
            return Err(error);
        }
        seen = Some(applied);
        tokio::time::sleep(TRY_AGAIN).await;
    }
    migrations.run(pool).await
}

/// A database in memory with the tables as the migrations make them, to read them from.
pub(crate) async fn migrated_in_memory() -> Result<SqliteConnection> {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await?;
    MIGRATIONS
        .run_direct(None, &mut connection, false)
        .await
        .map_err(|error| super::migration_error(error, &MIGRATIONS))?;
    Ok(connection)
}

/// The SQL of all migrations, for tests that count what is in them.
#[cfg(test)]
pub(crate) fn migration_texts() -> String {
    MIGRATIONS.iter().map(|migration| migration.sql.as_str()).collect()
}
