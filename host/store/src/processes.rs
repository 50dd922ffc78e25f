//! The processes that serve one database: which are alive, which are gone, and which one does a task for all.
//!
//! A process is alive while it holds a lock, which its end frees at once, however it ended. Times never decide it. On
//! `PostgreSQL` the lock is an advisory lock of a session of its own, on `SQLite` a lock on a file, and there is one
//! process. A process id is registered once and never again: a process that is gone stays gone.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::{ProcessId, Timestamp};
use sqlx::PgPool;
use sqlx::postgres::{PgListener, PgPoolOptions};

use crate::db::{Db, Tx, Whereabouts};
use crate::error::{Error, Result};
use crate::select::affected;

/// How often a session is asked whether it lives.
const PING_INTERVAL: Duration = Duration::from_secs(1);
/// A session that gives no answer in this time is lost. It is shorter than the time after which the
/// server gives a silent client up, so a process knows of its loss before others take its work.
const PING_LIMIT: Duration = Duration::from_secs(3);
/// The same as the server sees it: a client's machine that is gone frees its locks in some ten seconds.
const KEEPALIVE: &str = "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2;
    SET tcp_keepalives_count = 3";
const CHANNEL: &str = "heddle_process";

/// A process about to be known to the others.
#[derive(Debug, Clone)]
pub struct NewProcess {
    pub id: ProcessId,
    pub host: String,
    pub pid: u32,
    pub version: String,
    pub now: Timestamp,
}

/// The lock that says that a process lives. It ends with this value, or with the process.
#[derive(Debug)]
pub struct Presence(Held);

#[derive(Debug)]
enum Held {
    /// Locked for as long as it is open.
    File {
        _lock: File,
    },
    Session(Box<Session>),
}

#[derive(Debug)]
struct Session {
    listener: PgListener,
    /// Of the listener's connection alone.
    pool: PgPool,
    key: i64,
}

impl Presence {
    /// Takes the lock of this process. On `SQLite` it is the lock of the file.
    ///
    /// # Errors
    /// [`Error::Served`] when another process serves the file.
    pub async fn take(db: &Db, id: ProcessId) -> Result<Self> {
        match db.whereabouts() {
            Whereabouts::File(path) => Ok(Self(Held::File { _lock: lock_beside(&path)? })),
            Whereabouts::Server(options) => {
                let pool = PgPoolOptions::new()
                    .max_connections(1)
                    .max_lifetime(None)
                    .idle_timeout(None)
                    .acquire_timeout(PING_LIMIT * 3)
                    .connect_with(*options)
                    .await?;
                let mut listener = PgListener::connect_with(&pool).await?;
                listener.eager_reconnect(false);
                listener.listen(CHANNEL).await?;
                sqlx::raw_sql(KEEPALIVE).execute(&mut listener).await?;
                let key = lock_key(id);
                let is_taken: bool = sqlx::query_scalar("SELECT pg_try_advisory_lock($1)")
                    .bind(key)
                    .fetch_one(&mut listener)
                    .await?;
                if !is_taken {
                    return Err(Error::Busy);
                }
                Ok(Self(Held::Session(Box::new(Session { listener, pool, key }))))
            }
        }
    }

    /// Waits until the lock is lost although the process lives; answers why. A file's lock never is.
    pub async fn lost(&mut self) -> Error {
        match &mut self.0 {
            Held::File { .. } => std::future::pending().await,
            Held::Session(session) => session.lost().await,
        }
    }

    /// Gives the lock back.
    pub async fn leave(self) {
        if let Held::Session(session) = self.0 {
            let Session { listener, pool, .. } = *session;
            drop(listener);
            // A server that is away has freed the lock already.
            let _ = tokio::time::timeout(PING_LIMIT, pool.close()).await;
        }
    }
}

impl Session {
    async fn lost(&mut self) -> Error {
        loop {
            tokio::select! {
                // A connection that ends is seen at once.
                heard = self.listener.try_recv() => match heard {
                    Ok(Some(_)) => {}
                    Ok(None) => return gone("the session was ended"),
                    Err(error) => return error.into(),
                },
                () = tokio::time::sleep(PING_INTERVAL) => {
                    match tokio::time::timeout(PING_LIMIT, self.holds_lock()).await {
                        Ok(Ok(true)) => {}
                        Ok(Ok(false)) => return gone("the session has lost its lock"),
                        Ok(Err(error)) => return error,
                        Err(_elapsed) => return gone("the session gives no answer"),
                    }
                }
            }
        }
    }

    async fn holds_lock(&mut self) -> Result<bool> {
        let key: Option<i64> = sqlx::query_scalar(
            "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks
            WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND pid = pg_backend_pid()
                AND (classid::bigint << 32) | objid::bigint = $1",
        )
        .bind(self.key)
        .fetch_optional(&mut self.listener)
        .await?;
        Ok(key.is_some())
    }
}

fn gone(why: &'static str) -> Error {
    Error::Unavailable(why.into())
}

/// Locks the file `<path>.lock`, until the answer is dropped.
fn lock_beside(path: &std::path::Path) -> Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let lock = std::path::PathBuf::from(name);
    let file = File::options().create(true).append(true).open(&lock).map_err(sqlx::Error::Io)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Served(lock.display().to_string())),
        Err(TryLockError::Error(error)) => Err(sqlx::Error::Io(error).into()),
    }
}

/// The half of the id that is random.
fn lock_key(id: ProcessId) -> i64 {
    let (_, random) = id.0.as_u64_pair();
    i64::from_ne_bytes(random.to_ne_bytes())
}

/// Returns those of the owners that are no longer alive. The caller has read the owners before this call.
pub(crate) async fn gone_among(
    tx: &mut Tx,
    me: ProcessId,
    mut owners: Vec<ProcessId>,
) -> Result<Vec<ProcessId>> {
    owners.retain(|owner| *owner != me);
    if owners.is_empty() {
        return Ok(owners);
    }
    if let Tx::Postgres(tx) = tx {
        // A process that registered holds a lock before its id is written anywhere.
        let held: Vec<i64> = sqlx::query_scalar(
            "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks
            WHERE locktype = 'advisory' AND objsubid = 1 AND granted
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        )
        .fetch_all(&mut **tx)
        .await?;
        let held: HashSet<i64> = held.into_iter().collect();
        owners.retain(|owner| !held.contains(&lock_key(*owner)));
    }
    Ok(owners)
}

/// Makes a process known. It holds its lock already.
pub async fn insert(tx: &mut Tx, new: &NewProcess) -> Result<()> {
    affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO process (id, host, pid, version, started_at, seen_at) VALUES ($1, $2, $3, $4, $5, $5)"
        )
        .bind(new.id)
        .bind(&new.host)
        .bind(i64::from(new.pid))
        .bind(&new.version)
        .bind(new.now)
    );
    Ok(())
}

/// Records, for readers of the table, that the process was there.
pub async fn seen(tx: &mut Tx, id: ProcessId, now: Timestamp) -> Result<()> {
    affected!(tx, sqlx::query("UPDATE process SET seen_at = $2 WHERE id = $1").bind(id).bind(now));
    Ok(())
}

/// Records that the process leaves, and releases what it owned for any process.
pub async fn leave(tx: &mut Tx, id: ProcessId, now: Timestamp) -> Result<()> {
    affected!(tx, sqlx::query("UPDATE change SET apply_owner = NULL WHERE apply_owner = $1").bind(id));
    affected!(tx, sqlx::query("UPDATE controller SET sync_owner = NULL WHERE sync_owner = $1").bind(id));
    crate::push::release_all(tx, id, now).await?;
    crate::webhooks::sending::release(tx, id, now).await?;
    affected!(
        tx,
        sqlx::query("UPDATE process SET seen_at = $2, ended_at = $2 WHERE id = $1").bind(id).bind(now)
    );
    Ok(())
}

/// Forgets processes that were last there before this time, up to a number; tells how many.
pub async fn trim(tx: &mut Tx, before: Timestamp, limit: u32) -> Result<u64> {
    Ok(affected!(
        tx,
        sqlx::query(
            "
        DELETE FROM process WHERE id IN (
            SELECT id FROM process WHERE seen_at < $1 ORDER BY seen_at LIMIT CAST($2 AS BIGINT))"
        )
        .bind(before)
        .bind(i64::from(limit))
    ))
}

/// Takes a piece of work that one process does for all; false when it was taken less than `every` ago.
pub async fn take_duty(
    tx: &mut Tx,
    name: &str,
    owner: ProcessId,
    now: Timestamp,
    every: TimeDelta,
) -> Result<bool> {
    let rows = affected!(
        tx,
        sqlx::query(
            "
        INSERT INTO duty (name, owner, taken_at) VALUES ($1, $2, $3)
        ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, taken_at = excluded.taken_at
        WHERE duty.taken_at <= $4"
        )
        .bind(name)
        .bind(owner)
        .bind(now)
        .bind(now - every)
    );
    Ok(rows == 1)
}

#[cfg(test)]
mod tests;
