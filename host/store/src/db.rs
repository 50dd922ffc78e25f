//! Opening a database, and transactions on whichever one it is.
//!
//! `SQLite` has one connection that writes and several that read, so that
//! writers wait their turn in the process and readers never wait. Nothing here
//! knows a table.

use std::str::FromStr as _;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::pool::PoolOptions;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection as _, Database, PgConnection, PgPool, Postgres, Sqlite, SqliteConnection, SqlitePool};

use crate::error::{Error, Result};

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");
static LOG_MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    let mut migrations = sqlx::migrate!("../../migrations/logs");
    // So that one PostgreSQL database can hold both sets of tables.
    migrations.dangerous_set_table_name("_sqlx_log_migrations");
    migrations
});

/// How often a server is asked before it counts as down, for how long each time, and the first pause; each is twice as
/// long as the one before.
const REACH_ATTEMPTS: u32 = 4;
const REACH_LIMIT: Duration = Duration::from_secs(5);
const REACH_PAUSE_FIRST: Duration = Duration::from_secs(1);
/// Between two tries to open a file that others open.
const OPEN_PAUSE: Duration = Duration::from_millis(50);
/// How long a statement waits for a lock that another process holds.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// A connection to a server is not used for longer than this: what a server process gathers for it goes with it.
const SERVER_CONNECTION_AGE_MAX: Duration = Duration::from_mins(30);
/// Nor after a pause of this length: firewalls forget connections that are idle.
const SERVER_CONNECTION_IDLE_MAX: Duration = Duration::from_mins(5);
/// After a shorter pause than this a connection is used without asking first whether it still answers: that is a round
/// trip, as long as most reads of one object take.
const SERVER_CONNECTION_FRESH: Duration = Duration::from_secs(1);
/// How long [`Db::ping`] waits for a connection of the pool and its answer.
const PING_POOL_LIMIT: Duration = Duration::from_secs(1);
/// How long it then tries over a connection of its own: three seconds together.
const PING_OWN_LIMIT: Duration = Duration::from_secs(2);

/// Limits on the connections of one [`Db`] and its clones. Each process on the same database has its own.
#[derive(Debug, Clone, Copy)]
pub struct PoolSettings {
    /// Most connections that are open at once. At least one; `SQLite` has one more, which writes.
    pub connections_max: u32,
    /// How long a transaction waits for a connection before it is [`Error::Busy`].
    pub acquire_timeout: Duration,
}

/// How a database answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Answers,
    /// It answers, but not over the pool: all connections are in use.
    Busy,
}

/// Connections at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolUse {
    pub open: u32,
    /// Of the open ones, those not in use.
    pub idle: u32,
    /// The most that there can be.
    pub max: u32,
}

/// An open, migrated database. Cloning shares its connections.
#[derive(Debug, Clone)]
pub struct Db {
    pools: Pools,
    bell: Bell,
}

#[derive(Debug, Clone)]
enum Pools {
    Sqlite { reader: SqlitePool, writer: SqlitePool },
    Postgres(PgPool),
}

/// Where a database is.
pub(crate) enum Whereabouts {
    File(std::path::PathBuf),
    Server(Box<PgConnectOptions>),
}

/// A transaction; dropped without [`Tx::commit`], it is rolled back. Or a connection for one statement: [`Db::single`].
#[derive(Debug)]
pub enum Tx {
    Sqlite(Held<Sqlite>),
    Postgres(Held<Postgres>),
}

/// Runs one query on whichever database the transaction belongs to.
macro_rules! on {
    ($tx:expr, $conn:ident => $query:expr) => {
        match $tx {
            $crate::db::Tx::Sqlite(tx) => {
                let $conn = &mut **tx;
                $query
            }
            $crate::db::Tx::Postgres(tx) => {
                let $conn = &mut **tx;
                $query
            }
        }
    };
}

mod held;
mod schema;

use held::Bell;
pub use held::Held;
pub use schema::Schema;
pub(crate) use schema::migrated_in_memory;
#[cfg(test)]
pub(crate) use schema::migration_texts;

impl Db {
    /// Opens the database at `sqlite://path` or `postgres://…` and brings its tables up to date.
    ///
    /// # Errors
    /// [`Error::Url`] for any other address, [`Error::TooNew`] when a newer
    /// version was here, [`Error::Unavailable`] when nothing answers.
    pub async fn open(url: &str, settings: &PoolSettings) -> Result<Self> {
        let db = Self::open_with(url, settings, &MIGRATIONS).await?;
        crate::folding::fill_in(&db).await?;
        Ok(db)
    }

    /// The same for the database of the log lines, which holds nothing else of ours.
    pub async fn open_logs(url: &str, settings: &PoolSettings) -> Result<Self> {
        Self::open_with(url, settings, &LOG_MIGRATIONS).await
    }

    async fn open_with(url: &str, settings: &PoolSettings, migrations: &Migrator) -> Result<Self> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            Self::open_postgres(url, settings, migrations).await
        } else if url.starts_with("sqlite://") && !url.contains(":memory:") && !url.contains("mode=memory") {
            Self::open_sqlite(url, settings, migrations).await
        } else {
            Err(Error::Url("it must begin with 'postgres://' or be 'sqlite://' and the path of a file"))
        }
    }

    /// Waits for others that open the same file: `SQLite` does not wait by itself while one of them turns its journal into
    /// a write-ahead log.
    async fn open_sqlite(url: &str, settings: &PoolSettings, migrations: &Migrator) -> Result<Self> {
        let began = Instant::now();
        loop {
            match Self::try_open_sqlite(url, settings, migrations).await {
                Err(Error::Busy) if began.elapsed() < LOCK_WAIT => tokio::time::sleep(OPEN_PAUSE).await,
                done => return done,
            }
        }
    }

    async fn try_open_sqlite(url: &str, settings: &PoolSettings, migrations: &Migrator) -> Result<Self> {
        let options = SqliteConnectOptions::from_str(url)
            .map_err(|_| Error::Url("after 'sqlite://' comes a path, and '?mode=rwc' to create the file"))?
            .journal_mode(SqliteJournalMode::Wal)
            .foreign_keys(true)
            .busy_timeout(LOCK_WAIT)
            .synchronous(SqliteSynchronous::Normal);
        let writer = unswept(SqlitePoolOptions::new())
            .max_connections(1)
            .acquire_timeout(settings.acquire_timeout)
            // No peer can close a connection to a file, so it needs no check.
            .test_before_acquire(false)
            // A commit that failed, on a full disk say, may leave the connection in between.
            .after_release(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
            .connect_with(options.clone())
            .await?;
        schema::prepare(&mut Tx::Sqlite(writer.begin().await?.into()), migrations).await?;
        schema::migrate_file(migrations, &writer)
            .await
            .map_err(|error| migration_error(error, migrations))?;
        let reader = unswept(SqlitePoolOptions::new())
            .max_connections(settings.connections_max.max(1))
            .acquire_timeout(settings.acquire_timeout)
            .test_before_acquire(false)
            .connect_with(options.pragma("query_only", "ON"))
            .await?;
        Ok(Self::over(Pools::Sqlite { reader, writer }))
    }

    async fn open_postgres(url: &str, settings: &PoolSettings, migrations: &Migrator) -> Result<Self> {
        let options = PgConnectOptions::from_str(url)
            .map_err(|_| Error::Url("after 'postgres://' comes 'user:password@host:port/database'"))?;
        reach_postgres(&options).await?;
        let pool = unswept(PgPoolOptions::new())
            .max_connections(settings.connections_max.max(1))
            .acquire_timeout(settings.acquire_timeout)
            .test_before_acquire(false)
            .before_acquire(|connection, about| {
                Box::pin(async move {
                    match before_use(about.age, about.idle_for) {
                        BeforeUse::Close => Ok(false),
                        // A network may have forgotten the connection without a word: the next one is opened then.
                        BeforeUse::Ask => {
                            let answered = tokio::time::timeout(PING_POOL_LIMIT, connection.ping());
                            Ok(matches!(answered.await, Ok(Ok(()))))
                        }
                        BeforeUse::Nothing => Ok(true),
                    }
                })
            })
            .connect_with(options)
            .await
            .map_err(not_opened)?;
        schema::prepare(&mut Tx::Postgres(pool.begin().await?.into()), migrations).await?;
        migrations.run(&pool).await.map_err(|error| migration_error(error, migrations))?;
        Ok(Self::over(Pools::Postgres(pool)))
    }

    /// What [`Db::open`] does with the tables, on a database that is open.
    #[cfg(test)]
    pub(crate) async fn migrate_again(&self) -> Result<()> {
        match &self.pools {
            Pools::Sqlite { writer, .. } => {
                schema::prepare(&mut Tx::Sqlite(writer.begin().await?.into()), &MIGRATIONS).await?;
                schema::migrate_file(&MIGRATIONS, writer).await
            }
            Pools::Postgres(pool) => {
                schema::prepare(&mut Tx::Postgres(pool.begin().await?.into()), &MIGRATIONS).await?;
                MIGRATIONS.run(pool).await
            }
        }
        .map_err(|error| migration_error(error, &MIGRATIONS))?;
        crate::folding::fill_in(self).await
    }

    fn over(pools: Pools) -> Self {
        Self { pools, bell: Bell::default() }
    }

    /// Calls `wake` after each commit of a transaction that appended an event, begun by this or a clone of it. Only the first
    /// call has an effect.
    pub fn on_events(&self, wake: impl Fn() + Send + Sync + 'static) {
        self.bell.set(Box::new(wake));
    }

    /// Begins a transaction that sees one state of the database and cannot change it.
    pub async fn read(&self) -> Result<Tx> {
        match &self.pools {
            Pools::Sqlite { reader, .. } => Ok(Tx::Sqlite(reader.begin_with("BEGIN DEFERRED").await?.into())),
            Pools::Postgres(pool) => {
                begin_postgres(pool, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", &Bell::default())
                    .await
            }
        }
    }

    /// A connection for one statement that reads.
    ///
    /// One statement sees one state of the database by itself; a transaction around it would be two more round trips,
    /// which is what most reads of one object would wait for. Two statements on it are a fault, which debug builds find.
    pub async fn single(&self) -> Result<Tx> {
        match &self.pools {
            Pools::Sqlite { reader, .. } => Ok(Tx::Sqlite(reader.acquire().await?.into())),
            Pools::Postgres(pool) => match pool.acquire().await {
                Ok(connection) => Ok(Tx::Postgres(connection.into())),
                Err(error) => Err(not_acquired(pool, error)),
            },
        }
    }

    /// Begins a transaction that writes. On `SQLite` it waits here for the writers before it.
    pub async fn write(&self) -> Result<Tx> {
        match &self.pools {
            Pools::Sqlite { writer, .. } => {
                let transaction = writer.begin_with("BEGIN IMMEDIATE").await?;
                Ok(Tx::Sqlite(Held::ringing(transaction, &self.bell)))
            }
            Pools::Postgres(pool) => begin_postgres(pool, "BEGIN", &self.bell).await,
        }
    }

    /// Whether the database answers; decides within three seconds.
    ///
    /// A pool whose connections are all in use says nothing of the database: it is asked
    /// over a connection of this very call then.
    pub async fn ping(&self) -> Result<Reach> {
        match tokio::time::timeout(PING_POOL_LIMIT, self.answer()).await {
            Ok(Ok(())) => Ok(Reach::Answers),
            Ok(Err(Error::Busy)) | Err(_) => {
                tokio::time::timeout(PING_OWN_LIMIT, self.answer_apart())
                    .await
                    .map_err(|elapsed| Error::Unavailable(Box::new(elapsed)))??;
                Ok(Reach::Busy)
            }
            Ok(Err(error)) => Err(error),
        }
    }

    async fn answer(&self) -> Result<()> {
        let mut tx = self.read().await?;
        let one: i64 =
            on!(&mut tx, conn => sqlx::query_scalar("SELECT CAST(1 AS BIGINT)").fetch_one(conn).await)?;
        debug_assert_eq!(one, 1);
        tx.rollback().await
    }

    async fn answer_apart(&self) -> Result<()> {
        match &self.pools {
            Pools::Sqlite { reader, .. } => {
                let mut own = SqliteConnection::connect_with(&reader.connect_options()).await?;
                sqlx::query("SELECT COUNT(*) FROM sqlite_schema").execute(&mut own).await?;
                own.close().await?;
            }
            Pools::Postgres(pool) => {
                let mut own = PgConnection::connect_with(&pool.connect_options()).await?;
                sqlx::query("SELECT 1").execute(&mut own).await?;
                own.close().await?;
            }
        }
        Ok(())
    }

    /// `sqlite` or `postgres`.
    pub fn kind(&self) -> &'static str {
        match &self.pools {
            Pools::Sqlite { .. } => "sqlite",
            Pools::Postgres(_) => "postgres",
        }
    }

    /// Version of the database program.
    pub async fn version(&self) -> Result<String> {
        let mut tx = self.read().await?;
        Ok(match &mut tx {
            Tx::Sqlite(tx) => sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut **tx).await?,
            Tx::Postgres(tx) => sqlx::query_scalar("SHOW server_version").fetch_one(&mut **tx).await?,
        })
    }

    /// How many connections there are; the one that writes to `SQLite` counts.
    pub fn pool_use(&self) -> PoolUse {
        let idle = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        match &self.pools {
            Pools::Sqlite { reader, writer } => PoolUse {
                open: reader.size() + writer.size(),
                idle: idle(reader.num_idle() + writer.num_idle()),
                max: reader.options().get_max_connections() + writer.options().get_max_connections(),
            },
            Pools::Postgres(pool) => PoolUse {
                open: pool.size(),
                idle: idle(pool.num_idle()),
                max: pool.options().get_max_connections(),
            },
        }
    }

    /// How the server is reached, when it is `PostgreSQL`; else the path of the file.
    pub(crate) fn whereabouts(&self) -> Whereabouts {
        match &self.pools {
            Pools::Sqlite { writer, .. } => {
                Whereabouts::File(writer.connect_options().get_filename().to_owned())
            }
            Pools::Postgres(pool) => Whereabouts::Server(Box::new((*pool.connect_options()).clone())),
        }
    }

    /// Closes every connection, once the transactions on them have ended.
    pub async fn close(&self) {
        match &self.pools {
            Pools::Sqlite { reader, writer } => {
                reader.close().await;
                // The last connection empties the log; it must be the one that may write.
                writer.close().await;
            }
            Pools::Postgres(pool) => pool.close().await,
        }
    }
}

impl Tx {
    /// Has the commit tell that there are events.
    pub(crate) fn note_events(&mut self) {
        match self {
            Tx::Sqlite(tx) => tx.note_events(),
            Tx::Postgres(tx) => tx.note_events(),
        }
    }

    /// Makes the changes permanent. If an event was appended, calls what [`Db::on_events`] was given.
    pub async fn commit(self) -> Result<()> {
        match self {
            Tx::Sqlite(tx) => Ok(tx.commit().await?),
            Tx::Postgres(tx) => Ok(tx.commit().await?),
        }
    }

    /// Undoes the changes, and waits until the database has done so.
    /// The connection of [`Db::single`] has nothing to undo.
    pub async fn rollback(self) -> Result<()> {
        match self {
            Tx::Sqlite(tx) => Ok(tx.rollback().await?),
            Tx::Postgres(tx) => Ok(tx.rollback().await?),
        }
    }
}

/// Options of a pool that no task sweeps for old connections.
///
/// The sweep of sqlx reads how many connections are idle while others take and return them. For a moment that number can be
/// below zero, which is read as 2^64: the sweep then spins without end, and whoever waits for the pool's only connection
/// behind it waits forever. It runs as soon as a pool is opened, when that is most likely.
fn unswept<DB: Database>(options: PoolOptions<DB>) -> PoolOptions<DB> {
    options.idle_timeout(None).max_lifetime(None)
}

/// What is done with a connection to a server before it is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BeforeUse {
    Close,
    /// Asks the server whether it still answers.
    Ask,
    Nothing,
}

fn before_use(age: Duration, idle_for: Duration) -> BeforeUse {
    if age >= SERVER_CONNECTION_AGE_MAX || idle_for >= SERVER_CONNECTION_IDLE_MAX {
        BeforeUse::Close
    } else if idle_for >= SERVER_CONNECTION_FRESH {
        BeforeUse::Ask
    } else {
        BeforeUse::Nothing
    }
}

async fn begin_postgres(pool: &PgPool, begin: &'static str, bell: &Bell) -> Result<Tx> {
    match pool.begin_with(begin).await {
        Ok(transaction) => Ok(Tx::Postgres(Held::ringing(transaction, bell))),
        Err(error) => Err(not_acquired(pool, error)),
    }
}

/// Makes the error of a pool that could not open its first connection. The pool tries again until its time is over; nothing
/// else can have held it up yet.
fn not_opened(error: sqlx::Error) -> Error {
    match error {
        sqlx::Error::PoolTimedOut => Error::Unavailable(Box::new(error)),
        other => other.into(),
    }
}

/// A pool that could not even fill itself waited for the server, not for its own users.
fn not_acquired(pool: &PgPool, error: sqlx::Error) -> Error {
    match error {
        sqlx::Error::PoolTimedOut if pool.size() < pool.options().get_max_connections() => {
            Error::Unavailable(Box::new(error))
        }
        error => error.into(),
    }
}

/// Waits a few seconds for a server that does not answer yet, and says at once why it waits.
///
/// A pool would try in silence until its time is over, and then not know the cause.
async fn reach_postgres(options: &PgConnectOptions) -> Result<()> {
    let mut pause = REACH_PAUSE_FIRST;
    for attempt in 1..=REACH_ATTEMPTS {
        let connecting = tokio::time::timeout(REACH_LIMIT, PgConnection::connect_with(options)).await;
        let error = match connecting {
            Ok(Ok(connection)) => {
                // The connection is no longer needed, and neither is the result of closing it.
                connection.close().await.ok();
                return Ok(());
            }
            Ok(Err(error)) if is_passing(&error) => Error::Unavailable(Box::new(error)),
            Ok(Err(error)) => return Err(error.into()),
            Err(elapsed) => Error::Unavailable(Box::new(elapsed)),
        };
        if attempt == REACH_ATTEMPTS {
            return Err(error);
        }
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        tracing::warn!(
            database.host = options.get_host(),
            "database at {}:{} does not answer ({cause}): attempt {attempt} of {REACH_ATTEMPTS}, the next in {} s",
            options.get_host(),
            options.get_port(),
            pause.as_secs()
        );
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    Ok(())
}

/// Whether the server may accept a moment later what it does not accept now.
fn is_passing(error: &sqlx::Error) -> bool {
    // It starts, it stops, or all of its connections are in use.
    const PASSING: [&str; 4] = ["57P03", "57P01", "57P02", "53300"];
    match error {
        sqlx::Error::Io(_) => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| PASSING.contains(&code.as_ref())),
        _ => false,
    }
}

fn migration_error(error: MigrateError, migrations: &Migrator) -> Error {
    let known = migrations.iter().map(|migration| migration.version).max().unwrap_or_default();
    match error {
        MigrateError::VersionMissing(found) if found > known => Error::TooNew { found, known },
        MigrateError::Execute(error) => error.into(),
        other => Error::Migration(Box::new(other)),
    }
}

#[cfg(test)]
mod tests;
