//! Work that grows with what a device or a component answered: on threads of its own, few at a time, and one at a time of
//! an organization. What is small is done at once, by the caller.
//!
//! The same turns bound components that compute for long, so that heavy work of all kinds together leaves processors to
//! calls that need little, and an organization with much of it waits for itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use heddle_core::OrgId;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api::CallError;
use crate::task;

/// Bytes that are worked on where they are. Even the slowest pass over them takes less than a millisecond.
pub const LIGHT_BYTES: usize = 16 << 10;
/// Time that a component computes before it needs a turn.
pub(crate) const LIGHT_CPU: Duration = Duration::from_millis(20);
/// From here on, organizations without heavy work are forgotten.
const ORGS_KEPT: usize = 256;

pub(crate) struct Apart {
    threads: Handle,
    all: Arc<Semaphore>,
    orgs: Mutex<HashMap<OrgId, Arc<Semaphore>>>,
}

/// Leave for heavy work until it is dropped.
pub(crate) struct Turn {
    _permits: [Option<OwnedSemaphorePermit>; 2],
}

impl Apart {
    /// `width` turns at a time, on the blocking threads of this runtime.
    pub(crate) fn new(threads: Handle, width: usize) -> Self {
        Self { threads, all: Arc::new(Semaphore::new(width.max(1))), orgs: Mutex::default() }
    }

    /// Waits for a turn. Those who wait are served in order, and an organization waits in one place.
    pub(crate) async fn turn(&self, org: OrgId) -> Turn {
        let org = self.org(org).acquire_owned().await.ok();
        let all = Arc::clone(&self.all).acquire_owned().await.ok();
        Turn { _permits: [org, all] }
    }

    /// Does work on so many bytes.
    ///
    /// # Errors
    /// The work panicked, or the runtime ended.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        org: OrgId,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CallError> {
        if bytes <= LIGHT_BYTES {
            return Ok(work());
        }
        self.heavy(org, work).await
    }

    /// Does work whose cost does not follow from a number of bytes: a schema that an author wrote judges as slowly as
    /// its author wants.
    ///
    /// # Errors
    /// The work panicked, or the runtime ended.
    pub(crate) async fn heavy<T: Send + 'static>(
        &self,
        org: OrgId,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CallError> {
        let turn = self.turn(org).await;
        let work = move || {
            let _turn = turn;
            work()
        };
        let ended = task::block(&self.threads, work).await;
        ended.map_err(|error| CallError::host(format!("heavy work did not end: {error}")))
    }

    fn org(&self, id: OrgId) -> Arc<Semaphore> {
        let mut orgs = self.orgs.lock().unwrap_or_else(PoisonError::into_inner);
        if orgs.len() > ORGS_KEPT {
            orgs.retain(|_, turns| turns.available_permits() == 0 || Arc::strong_count(turns) > 1);
        }
        Arc::clone(orgs.entry(id).or_insert_with(|| Arc::new(Semaphore::new(1))))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use heddle_core::Clock;

    use super::*;

    #[tokio::test]
    async fn an_organization_has_one_turn_and_leaves_the_others_to_others() {
        let (apart, clock) = (Apart::new(Handle::current(), 2), Clock::default());
        let (one, two): (OrgId, OrgId) = (clock.new_id(), clock.new_id());
        let held = apart.turn(one).await;
        assert!(apart.turn(one).now_or_never().is_none());
        let other = apart.turn(two).now_or_never().expect("there is a turn for another organization");
        drop((held, other));
        assert!(apart.turn(one).now_or_never().is_some());
    }

    #[tokio::test]
    async fn small_work_is_done_at_once_and_large_work_elsewhere() {
        let (apart, org) = (Apart::new(Handle::current(), 1), Clock::default().new_id());
        let here = std::thread::current().id();
        let held = apart.turn(org).await;
        assert_eq!(apart.run(org, LIGHT_BYTES, || std::thread::current().id()).await.unwrap(), here);
        let other = Clock::default().new_id();
        assert!(apart.run(other, LIGHT_BYTES + 1, || ()).now_or_never().is_none(), "the only turn is taken");
        drop(held);
        assert_ne!(apart.run(org, LIGHT_BYTES + 1, || std::thread::current().id()).await.unwrap(), here);
    }

    #[tokio::test]
    async fn heavy_work_waits_for_a_turn_however_little_it_works_on() {
        let (apart, org) = (Apart::new(Handle::current(), 1), Clock::default().new_id());
        let here = std::thread::current().id();
        let held = apart.turn(org).await;
        assert!(apart.heavy(org, || ()).now_or_never().is_none(), "the only turn is taken");
        drop(held);
        assert_ne!(apart.heavy(org, || std::thread::current().id()).await.unwrap(), here);
    }
}
