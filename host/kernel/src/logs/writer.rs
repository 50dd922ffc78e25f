//! Writes lines to the log database in batches, and removes old ones in steps.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use heddle_store::logs::{self, LogLine, Retention};
use heddle_store::{Db, Error};
use tokio_util::sync::CancellationToken;

use super::database::LATER_LIMIT;
use super::layer::Lines;
use crate::app::{App, SharedApp};

/// Lines of one transaction.
const BATCH: usize = 500;
/// How long lines gather after the first one.
const GATHER: Duration = Duration::from_millis(200);
/// Time between two attempts to reach a database that is away.
const RETRY: Duration = Duration::from_secs(2);
/// The longest that one transaction takes.
const WRITE_LIMIT: Duration = Duration::from_secs(10);
/// The longest that the end of the service waits for its last lines.
const LAST_LIMIT: Duration = Duration::from_secs(2);
/// How often old lines are looked for.
const TRIM_INTERVAL: Duration = Duration::from_mins(10);
/// Lines after which old ones are looked for sooner.
const TRIM_LINES: usize = 20_000;
/// Lines that one transaction removes.
const TRIM_STEP: u32 = 2_000;
const KEPT_DAYS: i64 = 14;
const LINES_MAX: i64 = 1_000_000;

/// Stores lines until the service stops.
pub(crate) async fn write(app: SharedApp) {
    let stop = app.tasks.stopping();
    let Some(db) = reach(&app, &stop).await else { return };
    let mut lines = app.logs.take_lines();
    let mut trimmed_at: Option<Instant> = None;
    let mut new = 0;
    loop {
        if new >= TRIM_LINES || trimmed_at.is_none_or(|at| at.elapsed() >= TRIM_INTERVAL) {
            trim(&app, db, &stop).await;
            (trimmed_at, new) = (Some(Instant::now()), 0);
        }
        let mut batch = Vec::new();
        tokio::select! {
            () = stop.cancelled() => return finish(db, lines, batch).await,
            () = gather(lines.as_mut(), &mut batch) => {}
            () = tokio::time::sleep(TRIM_INTERVAL) => {}
        }
        new += batch.len();
        keep(&app, db, &batch, &stop).await;
    }
}

/// Returns the database as soon as it answers; `None` when the service stops before.
async fn reach<'a>(app: &'a App, stop: &CancellationToken) -> Option<&'a Db> {
    loop {
        if let Some(db) = app.logs.db() {
            return Some(db);
        }
        tokio::select! {
            () = stop.cancelled() => return None,
            () = tokio::time::sleep(RETRY) => {}
        }
        match app.logs.connect(LATER_LIMIT).await {
            Ok(()) => tracing::info!("log database is open"),
            Err(error) => tracing::debug!(error = %error, "log database cannot be opened yet"),
        }
    }
}

/// Waits for a line and for those that follow it closely. When the log is not stored, it waits without end.
async fn gather(lines: Option<&mut Lines>, batch: &mut Vec<LogLine>) {
    let Some(lines) = lines else { return std::future::pending().await };
    if lines.receiver.recv_many(batch, BATCH).await == 0 {
        return std::future::pending().await;
    }
    if batch.len() < BATCH {
        tokio::time::sleep(GATHER).await;
        while batch.len() < BATCH
            && let Ok(line) = lines.receiver.try_recv()
        {
            batch.push(line);
        }
    }
}

/// Writes a batch, however long the database is away. Newer lines wait in the channel meanwhile.
async fn keep(app: &App, db: &Db, batch: &[LogLine], stop: &CancellationToken) {
    let mut was_away = false;
    while !batch.is_empty() {
        match insert(db, batch).await {
            Ok(()) => {
                if was_away {
                    tracing::info!(dropped = app.logs.dropped().get(), "log database answers again");
                }
                return;
            }
            Err(error) if may_pass(&error) && !stop.is_cancelled() => {
                if !was_away {
                    tracing::warn!(error = %error, "log database takes no lines; they wait, and are dropped when too many do");
                }
                was_away = true;
            }
            Err(error) => {
                tracing::error!(error = %error, cause = ?std::error::Error::source(&error), "{} log lines are dropped", batch.len());
                app.logs.dropped().inc_by(u64::try_from(batch.len()).unwrap_or_default());
                return;
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(RETRY) => {}
        }
    }
}

async fn insert(db: &Db, batch: &[LogLine]) -> heddle_store::Result<()> {
    in_time(async {
        let mut tx = db.write().await?;
        logs::insert(&mut tx, batch).await?;
        tx.commit().await
    })
    .await
}

/// Applies the time limit. A database that gives no answer counts as away.
async fn in_time<T>(work: impl Future<Output = heddle_store::Result<T>>) -> heddle_store::Result<T> {
    match tokio::time::timeout(WRITE_LIMIT, work).await {
        Ok(result) => result,
        Err(elapsed) => Err(Error::Unavailable(Box::new(elapsed))),
    }
}

/// Whether a later attempt with the same lines can succeed.
fn may_pass(error: &Error) -> bool {
    matches!(error, Error::Unavailable(_) | Error::Busy | Error::Full | Error::ReadOnly)
}

/// Writes the waiting lines when the service stops.
async fn finish(db: &Db, lines: Option<Lines>, mut rest: Vec<LogLine>) {
    let Some(mut lines) = lines else { return };
    while let Ok(line) = lines.receiver.try_recv() {
        rest.push(line);
    }
    if !matches!(tokio::time::timeout(LAST_LIMIT, insert(db, &rest)).await, Ok(Ok(()))) {
        tracing::warn!("the last {} log lines are not kept", rest.len());
    }
}

async fn trim(app: &App, db: &Db, stop: &CancellationToken) {
    let oldest = app.clock.now() - TimeDelta::days(KEPT_DAYS);
    let retention = Retention { oldest, lines_max: LINES_MAX };
    let mut removed = 0;
    while !stop.is_cancelled() {
        match trim_step(db, retention).await {
            Ok(0) => break,
            Ok(count) => removed += count,
            Err(error) => {
                tracing::warn!(error = %error, "old log lines cannot be removed; tried again");
                break;
            }
        }
        // Lines that came meanwhile must not wait for a long clean-up.
        tokio::task::yield_now().await;
    }
    if removed > 0 {
        tracing::info!("removed {removed} old log lines");
    }
}

async fn trim_step(db: &Db, retention: Retention) -> heddle_store::Result<u64> {
    in_time(async {
        let mut tx = db.write().await?;
        let removed = logs::trim(&mut tx, retention, TRIM_STEP).await?;
        tx.commit().await?;
        Ok(removed)
    })
    .await
}
