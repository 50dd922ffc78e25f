//! Admits calls: bounded per component, per organisation and in total, so that one of them cannot take every slot.
//!
//! Plugins have slots of their own: a call of a plugin keeps its slot while an operation that it calls needs one of an
//! adapter, so that calls of plugins alone could take every slot and wait for each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use heddle_core::OrgId;
use heddle_marketplace::manifest::Kind;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api::Urgency;

pub(crate) const COMPONENT_CALLS: usize = 64;
/// A quarter of a component's slots: one organization's silent devices leave room for the others.
const ORG_CALLS: usize = 16;
/// Slots in addition to these for changes in flight, of all components together.
pub(crate) const RESERVED_CALLS: usize = 8;
/// Of them, those of one organization.
const ORG_RESERVED_CALLS: usize = 4;
/// Slots of calls of plugins, in addition to those of adapters.
pub(crate) const PLUGIN_CALLS: usize = 32;
/// Of them, those of one plugin.
const PLUGIN_COMPONENT_CALLS: usize = 16;
/// Of them, those of one organization.
const PLUGIN_ORG_CALLS: usize = 8;
const WAIT: Duration = Duration::from_secs(2);
/// From here on, organisations without calls are forgotten.
const ORGS_KEPT: usize = 256;

pub(crate) struct Admission {
    all: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
    plugins: Arc<Semaphore>,
    orgs: Mutex<HashMap<OrgId, OfOrg>>,
}

/// Slots of one organization.
#[derive(Clone)]
struct OfOrg {
    ordinary: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
    plugins: Arc<Semaphore>,
}

/// Slots of one component.
#[derive(Clone)]
pub(crate) struct OfComponent {
    kind: Kind,
    ordinary: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
}

/// Slots of one call; given back when dropped.
pub(crate) struct Slots {
    _permits: [OwnedSemaphorePermit; 3],
}

impl OfComponent {
    pub(crate) fn new(kind: Kind) -> Self {
        match kind {
            Kind::Adapter => Self::of(kind, COMPONENT_CALLS),
            Kind::Plugin => Self::of(kind, PLUGIN_COMPONENT_CALLS),
        }
    }

    fn of(kind: Kind, ordinary: usize) -> Self {
        Self {
            kind,
            ordinary: Arc::new(Semaphore::new(ordinary)),
            reserved: Arc::new(Semaphore::new(RESERVED_CALLS)),
        }
    }
}

impl Admission {
    /// Makes slots for as many instances, in addition to those that are reserved and those of plugins.
    pub(crate) fn new(instances: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(instances.max(1))),
            reserved: Arc::new(Semaphore::new(RESERVED_CALLS)),
            plugins: Arc::new(Semaphore::new(PLUGIN_CALLS)),
            orgs: Mutex::default(),
        }
    }

    /// Waits up to two seconds for a slot; `None` when there was none.
    pub(crate) async fn enter(&self, component: &OfComponent, org: OrgId, urgency: Urgency) -> Option<Slots> {
        let org = self.org(org);
        let ordinary = [&org.ordinary, &component.ordinary, &self.all];
        let wanted = match urgency {
            // Nothing of a plugin is under way at a device.
            _ if component.kind == Kind::Plugin => [&org.plugins, &component.ordinary, &self.plugins],
            Urgency::Ordinary => ordinary,
            // A slot that is free to all is taken first: the reserved ones are few.
            Urgency::UnderWay => match take_now(ordinary) {
                Some(slots) => return Some(slots),
                None => [&org.reserved, &component.reserved, &self.reserved],
            },
        };
        let [org, component, all] = wanted.map(Arc::clone);
        let take = async {
            // The narrow ones first, so that a waiting call holds no common slot.
            let org = org.acquire_owned().await.ok()?;
            let component = component.acquire_owned().await.ok()?;
            let all = all.acquire_owned().await.ok()?;
            Some(Slots { _permits: [org, component, all] })
        };
        tokio::time::timeout(WAIT, take).await.ok().flatten()
    }

    fn org(&self, id: OrgId) -> OfOrg {
        let mut orgs = self.orgs.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if orgs.len() > ORGS_KEPT {
            let is_used = |slots: &Arc<Semaphore>, most: usize| {
                slots.available_permits() < most || Arc::strong_count(slots) > 1
            };
            orgs.retain(|_, of| {
                is_used(&of.ordinary, ORG_CALLS)
                    || is_used(&of.reserved, ORG_RESERVED_CALLS)
                    || is_used(&of.plugins, PLUGIN_ORG_CALLS)
            });
        }
        let new = || OfOrg {
            ordinary: Arc::new(Semaphore::new(ORG_CALLS)),
            reserved: Arc::new(Semaphore::new(ORG_RESERVED_CALLS)),
            plugins: Arc::new(Semaphore::new(PLUGIN_ORG_CALLS)),
        };
        orgs.entry(id).or_insert_with(new).clone()
    }
}

fn take_now(slots: [&Arc<Semaphore>; 3]) -> Option<Slots> {
    let take = |slots: &Arc<Semaphore>| Arc::clone(slots).try_acquire_owned().ok();
    Some(Slots { _permits: [take(slots[0])?, take(slots[1])?, take(slots[2])?] })
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_organisation_at_its_limit_does_not_keep_others_out() {
        let admission = Admission::new(100);
        let (one, two): (OrgId, OrgId) = (Clock::default().new_id(), Clock::default().new_id());
        let component = OfComponent::of(Kind::Adapter, 100);
        let mut held = Vec::new();
        for _ in 0..ORG_CALLS {
            held.push(admission.enter(&component, one, Urgency::Ordinary).await.unwrap());
        }
        assert!(admission.enter(&component, one, Urgency::Ordinary).await.is_none());
        assert!(admission.enter(&component, two, Urgency::Ordinary).await.is_some());
        held.pop();
        assert!(admission.enter(&component, one, Urgency::Ordinary).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_component_without_a_free_slot_is_overloaded_after_the_wait() {
        let admission = Admission::new(100);
        let org: OrgId = Clock::default().new_id();
        let component = OfComponent::of(Kind::Adapter, 1);
        let _held = admission.enter(&component, org, Urgency::Ordinary).await.unwrap();
        let before = tokio::time::Instant::now();
        assert!(admission.enter(&component, org, Urgency::Ordinary).await.is_none());
        assert_eq!(before.elapsed(), WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_under_way_has_slots_that_no_other_call_takes() {
        let (admission, clock) = (Admission::new(1), Clock::default());
        let (one, two): (OrgId, OrgId) = (clock.new_id(), clock.new_id());
        let component = OfComponent::of(Kind::Adapter, 1);
        let mut held = vec![admission.enter(&component, one, Urgency::Ordinary).await.unwrap()];
        assert!(admission.enter(&component, two, Urgency::Ordinary).await.is_none());
        for _ in 0..ORG_RESERVED_CALLS {
            held.push(admission.enter(&component, one, Urgency::UnderWay).await.unwrap());
        }
        assert!(admission.enter(&component, one, Urgency::UnderWay).await.is_none());
        assert!(admission.enter(&component, two, Urgency::UnderWay).await.is_some());
        assert!(admission.enter(&component, two, Urgency::Ordinary).await.is_none());
        held.clear();
        assert!(admission.enter(&component, two, Urgency::Ordinary).await.is_some());
    }

    /// One of them holds its slot while an operation that it called reads a device of the same organization.
    #[tokio::test(start_paused = true)]
    async fn calls_of_plugins_do_not_wait_for_each_other_when_they_read_devices() {
        let (admission, clock) = (Admission::new(64), Clock::default());
        let org: OrgId = clock.new_id();
        let (plugin, adapter) = (OfComponent::new(Kind::Plugin), OfComponent::new(Kind::Adapter));
        let nested = |_| async {
            let _outer = admission.enter(&plugin, org, Urgency::Ordinary).await?;
            // All that have a slot have it before one of them asks for more.
            tokio::time::sleep(Duration::from_millis(10)).await;
            let _inner = admission.enter(&adapter, org, Urgency::Ordinary).await?;
            tokio::time::sleep(Duration::from_millis(10)).await;
            Some(())
        };
        let ended = futures::future::join_all((0..16).map(nested)).await;
        assert_eq!(ended.into_iter().flatten().count(), 16);
    }

    #[tokio::test(start_paused = true)]
    async fn plugins_take_no_slot_of_a_device_call() {
        let (admission, clock) = (Admission::new(1), Clock::default());
        let (org, plugin): (OrgId, _) = (clock.new_id(), OfComponent::new(Kind::Plugin));
        let mut held = Vec::new();
        for _ in 0..PLUGIN_ORG_CALLS {
            held.push(admission.enter(&plugin, org, Urgency::Ordinary).await.unwrap());
        }
        assert!(admission.enter(&plugin, org, Urgency::Ordinary).await.is_none());
        // Further organizations, until the plugin has its share.
        for _ in 0..PLUGIN_COMPONENT_CALLS - PLUGIN_ORG_CALLS {
            held.push(admission.enter(&plugin, clock.new_id(), Urgency::Ordinary).await.unwrap());
        }
        assert!(admission.enter(&plugin, clock.new_id(), Urgency::Ordinary).await.is_none());
        let other = OfComponent::new(Kind::Plugin);
        assert!(admission.enter(&other, clock.new_id(), Urgency::Ordinary).await.is_some());
        let adapter = OfComponent::new(Kind::Adapter);
        assert!(admission.enter(&adapter, org, Urgency::Ordinary).await.is_some());
    }
}
