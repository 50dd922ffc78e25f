//! Background work: named, cancelled together, awaited at the end.
//!
//! The only place that spawns. A task that panics is logged and does not take
//! the process with it.

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::Instrument as _;

/// Runs the background work of a process, and waits for it at the end. All clones share the same tasks and
/// the same signal to stop.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// Fires when the process is asked to stop. Loops wait on it together with their work.
    pub fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Runs work to its end; a drain waits for it.
    pub fn spawn<F>(&self, name: &'static str, work: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.tracker.spawn(work.instrument(tracing::info_span!("task", task.name = name)))
    }

    /// The same without a span: for connections, whose requests have spans of their own.
    pub(crate) fn spawn_bare<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.tracker.spawn(work)
    }

    /// A drain waits for the holder of the token, as for a task.
    pub fn hold(&self) -> TaskTrackerToken {
        self.tracker.token()
    }

    /// Asks every task to stop and waits; false when some did not in time.
    pub async fn drain(&self, limit: Duration) -> bool {
        self.stop.cancel();
        self.tracker.close();
        tokio::time::timeout(limit, self.tracker.wait()).await.is_ok()
    }
}

/// Runs work that outlives the drain; the code that spawns it ends it.
pub(crate) fn spawn_apart<F>(name: &'static str, work: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    #[expect(clippy::disallowed_methods, reason = "this is the task module")]
    tokio::spawn(work.instrument(tracing::info_span!("task", task.name = name)))
}
