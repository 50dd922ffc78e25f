//! Who may call now: bounded per component, per organisation and in total, so
//! that one of them cannot take every slot.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use heddle_core::OrgId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(crate) const COMPONENT_CALLS: usize = 64;
/// A quarter of a component's slots: one organization's silent devices leave room for the others.
const ORG_CALLS: usize = 16;
const WAIT: Duration = Duration::from_secs(2);
/// From here on, organisations without calls are forgotten.
const ORGS_KEPT: usize = 256;

pub(crate) struct Admission {
    all: Arc<Semaphore>,
    orgs: Mutex<HashMap<OrgId, Arc<Semaphore>>>,
}

/// Slots of one call; given back when dropped.
pub(crate) struct Slots {
    _permits: [OwnedSemaphorePermit; 3],
}

impl Admission {
    pub(crate) fn new(instances: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(instances.max(1))), orgs: Mutex::default() }
    }

    /// Waits up to two seconds for a slot; `None` when there was none.
    pub(crate) async fn enter(&self, component: &Arc<Semaphore>, org: OrgId) -> Option<Slots> {
        let org = self.org(org);
        let take = async {
            // The narrow ones first, so that a waiting call holds no common slot.
            let org = org.acquire_owned().await.ok()?;
            let component = Arc::clone(component).acquire_owned().await.ok()?;
            let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(Slots { _permits: [org, component, all] })
        };
        tokio::time::timeout(WAIT, take).await.ok().flatten()
    }

    fn org(&self, id: OrgId) -> Arc<Semaphore> {
        let mut orgs = self.orgs.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if orgs.len() > ORGS_KEPT {
            orgs.retain(|_, slots| slots.available_permits() < ORG_CALLS || Arc::strong_count(slots) > 1);
        }
        Arc::clone(orgs.entry(id).or_insert_with(|| Arc::new(Semaphore::new(ORG_CALLS))))
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_organisation_at_its_limit_does_not_keep_others_out() {
        let admission = Admission::new(100);
        let (one, two): (OrgId, OrgId) = (Clock::default().new_id(), Clock::default().new_id());
        let component = Arc::new(Semaphore::new(100));
        let mut held = Vec::new();
        for _ in 0..ORG_CALLS {
            held.push(admission.enter(&component, one).await.unwrap());
        }
        assert!(admission.enter(&component, one).await.is_none());
        assert!(admission.enter(&component, two).await.is_some());
        held.pop();
        assert!(admission.enter(&component, one).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_component_without_a_free_slot_is_overloaded_after_the_wait() {
        let admission = Admission::new(100);
        let org: OrgId = Clock::default().new_id();
        let component = Arc::new(Semaphore::new(1));
        let _held = admission.enter(&component, org).await.unwrap();
        let before = tokio::time::Instant::now();
        assert!(admission.enter(&component, org).await.is_none());
        assert_eq!(before.elapsed(), WAIT);
    }
}
