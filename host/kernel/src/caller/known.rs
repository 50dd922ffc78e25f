//! The callers of the last moments, so that a busy caller does not cost a query with every request.
//!
//! An entry is at most [`FRESH_FOR`] old, in every process: a caller that is
//! revoked, demoted or removed anywhere is refused within a second everywhere. In
//! the process that did it, [`Callers::forget`] takes effect at once.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use heddle_core::Timestamp;
use moka::future::Cache;
use moka::ops::compute::Op;
use tokio::sync::Notify;

use super::rights::Caller;
use crate::http::error::Error;

/// Maximum age of an entry.
const FRESH_FOR: Duration = Duration::from_millis(750);
const _: () = assert!(FRESH_FOR.as_millis() < 1_000, "within a second, as is promised");
/// Maximum number of entries.
const CALLERS_MAX: u64 = 10_000;

/// What proves a caller. Only a request that presents the same proof finds the entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Proof {
    /// The SHA-256 of the whole access token. An unknown token is verified before its caller is kept.
    Session([u8; 32]),
    /// The keyed hash of the whole API key.
    ApiKey(String),
    /// The keyed hash of an app's access token.
    App(String),
}

/// A caller, and until when it is valid.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) caller: Caller,
    /// End of the session, of the key or of the app's token.
    pub(super) expires_at: Option<Timestamp>,
    /// End of a session's access token, in seconds since 1970.
    pub(super) token_exp: Option<i64>,
}

#[derive(Debug, Clone)]
struct Entry {
    known: Arc<Known>,
    since: Instant,
    generation: u64,
}

/// Caches callers by their credential: at most 10 000, and each for less than a second. Code that changes
/// rights outside of a route with the mark `ChangesCallers` calls [`Callers::forget`] itself.
#[derive(Debug)]
pub struct Callers {
    entries: Cache<Proof, Entry>,
    fresh_for: Duration,
    generation: AtomicU64,
    forgotten: Notify,
}

impl Default for Callers {
    fn default() -> Self {
        Self::keeping(FRESH_FOR)
    }
}

impl Callers {
    fn keeping(fresh_for: Duration) -> Self {
        let entries = Cache::builder().max_capacity(CALLERS_MAX).time_to_live(fresh_for).build();
        Self { entries, fresh_for, generation: AtomicU64::new(0), forgotten: Notify::new() }
    }

    /// Forgets all callers: the access of one may have changed. The guard calls it after every request that could
    /// change it.
    pub fn forget(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.forgotten.notify_one();
    }

    /// Waits until the access of a caller may have changed since the last wait. For one task that waits.
    pub(crate) async fn forgotten(&self) {
        self.forgotten.notified().await;
    }

    /// Returns the known caller, or what `load` finds. Of many requests at once, one loads.
    pub(super) async fn find<F>(&self, proof: Proof, load: impl Fn() -> F) -> Result<Arc<Known>, Error>
    where
        F: Future<Output = Result<Known, Error>>,
    {
        if let Some(entry) = self.entries.get(&proof).await {
            if self.is_fresh(&entry) {
                return Ok(entry.known);
            }
            self.remove_stale(&proof).await;
        }
        let entry = self.entries.try_get_with(proof, async {
            let (since, generation) = (Instant::now(), self.generation.load(Ordering::SeqCst));
            let known = load().await.map_err(|_| ())?;
            Ok::<_, ()>(Entry { known: Arc::new(known), since, generation })
        });
        match entry.await {
            Ok(entry) if self.is_fresh(&entry) => Ok(entry.known),
            // The shared load failed, so each request loads to learn the reason. Or the entry aged while it was loaded.
            _ => load().await.map(Arc::new),
        }
    }

    /// Removes an entry that is too old. One that another request has loaded meanwhile stays: many requests see the old one at
    /// the same time, and each would have the caller loaded once more.
    async fn remove_stale(&self, proof: &Proof) {
        let judge = |kept: Option<moka::Entry<Proof, Entry>>| {
            let is_stale = kept.is_some_and(|kept| !self.is_fresh(kept.value()));
            std::future::ready(if is_stale { Op::Remove } else { Op::Nop })
        };
        self.entries.entry_by_ref(proof).and_compute_with(judge).await;
    }

    fn is_fresh(&self, entry: &Entry) -> bool {
        entry.since.elapsed() < self.fresh_for && entry.generation == self.generation.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicUsize;

    use heddle_core::{Clock, Role};
    use heddle_store::SiteScope;

    use super::*;
    use crate::caller::Credential;

    /// Longer than any machine takes for a test.
    const LONG: Duration = Duration::from_hours(1);

    fn known() -> Known {
        let clock = Clock::default();
        let caller = Caller {
            user_id: clock.new_id(),
            username: "ada".to_owned(),
            org_id: clock.new_id(),
            role: Role::Guest,
            credential: Credential::ApiKey(clock.new_id()),
            scopes: None,
            sites: SiteScope::All,
            grants: BTreeMap::new(),
        };
        Known { caller, expires_at: None, token_exp: None }
    }

    #[tokio::test]
    async fn of_many_requests_at_once_one_loads_also_where_the_kept_caller_is_stale() {
        let (callers, loads) = (Callers::keeping(LONG), AtomicUsize::new(0));
        let load = async || {
            loads.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            Ok(known())
        };
        let find = || callers.find(Proof::Session([1; 32]), &load);
        find().await.unwrap();
        callers.forget();
        for found in futures::future::join_all((0..64).map(|_| find())).await {
            found.unwrap();
        }
        assert_eq!(loads.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn a_request_that_saw_a_stale_caller_leaves_the_one_that_was_loaded_since() {
        let callers = Callers::keeping(LONG);
        let proof = Proof::Session([1; 32]);
        let load = || async { Ok(known()) };
        callers.find(proof.clone(), load).await.unwrap();
        callers.remove_stale(&proof).await;
        assert!(callers.entries.get(&proof).await.is_some(), "it is fresh");
        callers.forget();
        callers.remove_stale(&proof).await;
        assert!(callers.entries.get(&proof).await.is_none());
    }
}
