//! Background work: named, cancelled together, awaited at the end.
//!
//! The only place that spawns. A task that panics is logged and does not take the process with it.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

use futures::FutureExt as _;
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
        self.tracker.spawn(watched(name, work))
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
    tokio::spawn(watched(name, work))
}

/// Runs work that keeps a thread busy on a thread of its own. A panic of it goes on here.
pub async fn block<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|ended| match ended.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(cancelled) => panic!("work on a thread of its own was given up: {cancelled}"),
    })
}

/// Runs work in a span of its name, and logs its panic. The task that waits for it still sees the panic.
///
/// No async block: one that awaits what it captured has room for it twice, and thousands of connections wait here.
fn watched<F: Future>(name: &'static str, work: F) -> impl Future<Output = F::Output> {
    let logged = AssertUnwindSafe(work).catch_unwind().map(move |ended| {
        ended.unwrap_or_else(|panic| {
            tracing::error!(panic = text_of(&*panic), "task {name} panicked");
            resume_unwind(panic)
        })
    });
    logged.instrument(tracing::info_span!("task", task.name = name))
}

/// Returns the message of a panic.
pub(crate) fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_watched_task_is_hardly_larger_than_its_work() {
        let work = async {
            let room = [0_u8; 4096];
            std::future::ready(()).await;
            room.len()
        };
        let own = size_of_val(&work);
        let watched = size_of_val(&watched("connection", work));
        assert!(watched < own + 256, "{own} bytes of work became {watched}");
    }

    #[tokio::test]
    async fn a_panic_of_a_task_is_logged_and_reaches_the_waiting_task() {
        let kept = Kept::default();
        let writer = kept.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
        let _logs = tracing::subscriber::set_default(subscriber);
        let ended = Tasks::default().spawn("sweep", async { panic!("no {}", "luck") }).await;
        assert!(ended.is_err_and(|error| error.is_panic()));
        let lines = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert!(lines.contains("task sweep panicked") && lines.contains("no luck"), "{lines}");
    }
}
