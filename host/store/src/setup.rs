//! Whether the service was set up. The row's primary key lets it happen once.

use heddle_core::Timestamp;

use crate::db::Tx;
use crate::error::Result;
use crate::select::affected;

/// Whether this call completed the setup, or an earlier one had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    Done,
    AlreadyDone,
}

/// Returns whether the setup was completed. It takes no lock: of two requests at once, [`complete`] decides.
pub async fn is_completed(tx: &mut Tx) -> Result<bool> {
    let rows: i64 = on!(tx, conn => sqlx::query_scalar("SELECT COUNT(*) FROM setup").fetch_one(conn).await)?;
    Ok(rows > 0)
}

/// Completes the setup, unless another did. A second one waits for the first to commit or roll back.
pub async fn complete(tx: &mut Tx, now: Timestamp) -> Result<Completion> {
    let rows = affected!(
        tx,
        sqlx::query("INSERT INTO setup (id, completed_at) VALUES (1, $1) ON CONFLICT (id) DO NOTHING")
            .bind(now)
    );
    Ok(if rows == 1 { Completion::Done } else { Completion::AlreadyDone })
}

#[cfg(test)]
mod tests;
