//! Answers that all callers share who ask at about the same time: what is looked at for probes and metrics costs little,
//! however many ask.

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use heddle_store::{Db, Tx};

/// The longest that a look takes; as long as a ping.
pub(crate) const LOOK_LIMIT: Duration = Duration::from_secs(3);
/// How long something is good that was read of many rows.
const READ_KEPT: Duration = Duration::from_secs(5);

/// An answer that is good for a while.
pub struct Recent<T: Clone>(Mutex<Option<(Instant, Shared<BoxFuture<'static, T>>)>>);

impl<T: Clone> Default for Recent<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Clone> std::fmt::Debug for Recent<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recent").finish_non_exhaustive()
    }
}

impl<T: Clone + Send + Sync + 'static> Recent<T> {
    /// The last answer while it is good, the one that is being found, or a new one.
    pub(crate) async fn get<F>(&self, kept: Duration, find: impl FnOnce() -> F) -> T
    where
        F: Future<Output = T> + Send + 'static,
    {
        let answer = {
            let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match &*slot {
                Some((begun, answer)) if is_good(begun.elapsed(), answer.peek().is_some(), kept) => {
                    answer.clone()
                }
                _ => {
                    let answer = find().boxed().shared();
                    *slot = Some((Instant::now(), answer.clone()));
                    answer
                }
            }
        };
        answer.await
    }
}

impl<T: Clone + Default + Send + Sync + 'static> Recent<T> {
    /// What is read of the database, at most every five seconds; the default where it does not answer in time.
    pub async fn read(&self, db: &Db, read: Read<T>) -> T {
        let db = db.clone();
        let find = || async move {
            let read = async { read(&mut db.read().await?).await };
            tokio::time::timeout(LOOK_LIMIT, read).await.ok().and_then(Result::ok).unwrap_or_default()
        };
        self.get(READ_KEPT, find).await
    }
}

/// Reads something that many ask for at about the same time.
type Read<T> = for<'a> fn(&'a mut Tx) -> BoxFuture<'a, heddle_store::Result<T>>;

/// A look that is under way is joined, unless everybody who waited for it has gone away long ago.
fn is_good(age: Duration, is_found: bool, kept: Duration) -> bool {
    if is_found { age < kept } else { age < LOOK_LIMIT * 2 }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_look_is_shared_and_kept_for_a_while() {
        let recent = Arc::new(Recent::<usize>::default());
        let count = Arc::new(AtomicUsize::new(0));
        let get = |kept: Duration| {
            let (recent, count) = (recent.clone(), count.clone());
            async move {
                let find = || async move {
                    tokio::time::sleep(Duration::from_millis(30)).await;
                    count.fetch_add(1, Ordering::SeqCst)
                };
                recent.get(kept, find).await
            }
        };
        let long = Duration::from_mins(1);
        assert_eq!(tokio::join!(get(long), get(long), get(long)), (0, 0, 0));
        assert_eq!(get(long).await, 0);
        assert_eq!(get(Duration::ZERO).await, 1);
    }
}
