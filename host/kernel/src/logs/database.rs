//! The database of log lines, and the lines on their way to it.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use heddle_store::{Db, PoolSettings};
use prometheus::IntCounter;

use super::layer::{self, Lines};
use crate::config::Config;

/// How long the start of the server waits for the log database.
const FIRST_LIMIT: Duration = Duration::from_secs(3);
/// How long a later attempt may take.
pub(super) const LATER_LIMIT: Duration = Duration::from_secs(15);

/// The log database, which may not have been reached yet, and the lines on their way to it.
#[derive(Debug)]
pub struct Logs {
    url: String,
    pool: PoolSettings,
    db: OnceLock<Db>,
    lines: Mutex<Option<Lines>>,
    dropped: IntCounter,
}

impl Logs {
    /// Takes the process's lines, when its log is stored, and tries to reach the database.
    pub(crate) async fn open(config: &Config) -> Self {
        let lines = layer::take();
        let dropped = lines.as_ref().map_or_else(layer::dropped_counter, |lines| lines.dropped.clone());
        let logs = Self {
            url: config.log_database(),
            pool: PoolSettings {
                connections_max: config.log_db_pool_size.saturating_add(config.log_db_max_overflow),
                acquire_timeout: Duration::from_secs(30),
            },
            db: OnceLock::new(),
            lines: Mutex::new(lines),
            dropped,
        };
        if let Err(error) = logs.connect(FIRST_LIMIT).await {
            tracing::warn!(
                error = %error, cause = ?std::error::Error::source(&error),
                "log database cannot be opened; tried again while the service runs"
            );
        }
        logs
    }

    /// The database, once it was reached. From then on its pool reconnects by itself.
    pub(crate) fn db(&self) -> Option<&Db> {
        self.db.get()
    }

    /// Counts the lines that were lost.
    pub(crate) fn dropped(&self) -> IntCounter {
        self.dropped.clone()
    }

    pub(super) async fn connect(&self, limit: Duration) -> heddle_store::Result<()> {
        let opening = tokio::time::timeout(limit, Db::open_logs(&self.url, &self.pool));
        let db = opening.await.map_err(|elapsed| heddle_store::Error::Unavailable(Box::new(elapsed)))??;
        // Only one task connects, so the cell was empty before.
        let _ = self.db.set(db);
        Ok(())
    }

    pub(super) fn take_lines(&self) -> Option<Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
