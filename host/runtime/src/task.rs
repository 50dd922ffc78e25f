//! The one place that spawns. What is spawned here ends when its owner lets go.

use std::future::Future;

use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};

/// Work on another runtime; dropping this cancels it.
pub(crate) struct Owned<T>(JoinHandle<T>);

impl<T: Send + 'static> Owned<T> {
    pub(crate) fn spawn(on: &Handle, work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(on.spawn(work))
    }

    pub(crate) async fn join(mut self) -> Result<T, JoinError> {
        (&mut self.0).await
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs work that keeps a thread busy on the threads that a runtime has for it. It runs to its end, even when the
/// handle is dropped.
pub(crate) fn block<T: Send + 'static>(
    on: &Handle,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    on.spawn_blocking(work)
}
