//! How many channels are open, and how many are being opened.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heddle_core::{ControllerId, OrgId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ended::{Ended, Whose};
use super::limits::{
    CHANNELS_MAX, CHANNELS_PER_CONTROLLER_MAX, CHANNELS_PER_ORGANIZATION_MAX, OPENING_MAX, OPENINGS_MAX,
    OPENINGS_PER_ORGANIZATION_MAX,
};

/// From here on, organizations that open nothing are forgotten.
const ORGS_KEPT: usize = 256;

/// Places of the connections of a process.
pub(crate) struct Places {
    open: Mutex<Open>,
    openings: Arc<Semaphore>,
    of_organizations: Mutex<HashMap<OrgId, Arc<Semaphore>>>,
}

/// How many connections of channels a process has open or is opening.
#[derive(Debug, Clone, Default)]
pub struct ChannelsOpen {
    /// [`CHANNELS_MAX`] at most.
    pub all: usize,
    /// [`CHANNELS_PER_ORGANIZATION_MAX`] of each at most. An organization without one is not there.
    pub organizations: HashMap<OrgId, usize>,
}

impl ChannelsOpen {
    /// Those of an organization.
    #[must_use]
    pub fn of(&self, org: OrgId) -> usize {
        self.organizations.get(&org).copied().unwrap_or_default()
    }
}

#[derive(Debug, Default)]
struct Open {
    counts: ChannelsOpen,
    controllers: HashMap<ControllerId, usize>,
}

/// The place of one connection, until it is dropped.
pub(super) struct Taken {
    places: Arc<Places>,
    org: OrgId,
    controller: ControllerId,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            openings: Arc::new(Semaphore::new(OPENINGS_MAX)),
            of_organizations: Mutex::default(),
        }
    }
}

impl Places {
    /// Takes a place.
    pub(super) fn take(self: &Arc<Self>, org: OrgId, controller: ControllerId) -> Result<Taken, Ended> {
        let mut open = self.open();
        let of_controller = open.controllers.get(&controller).copied().unwrap_or_default();
        let counts = [
            (of_controller, CHANNELS_PER_CONTROLLER_MAX, Whose::Controller),
            (open.counts.of(org), CHANNELS_PER_ORGANIZATION_MAX, Whose::Organization),
            (open.counts.all, CHANNELS_MAX, Whose::Process),
        ];
        if let Some((_, most, whose)) = counts.into_iter().find(|(count, most, _)| count >= most) {
            return Err(Ended::NoPlace { whose, most });
        }
        open.counts.all += 1;
        *open.counts.organizations.entry(org).or_default() += 1;
        *open.controllers.entry(controller).or_default() += 1;
        Ok(Taken { places: Arc::clone(self), org, controller })
    }

    /// How many are taken.
    pub(crate) fn counts(&self) -> ChannelsOpen {
        self.open().counts.clone()
    }

    /// Waits for a turn to open a channel. An organization waits in places of its own.
    pub(super) async fn opening(&self, org: OrgId) -> Result<[OwnedSemaphorePermit; 2], Ended> {
        let of_org = {
            let mut orgs = self.of_organizations.lock().unwrap_or_else(PoisonError::into_inner);
            if orgs.len() > ORGS_KEPT {
                orgs.retain(|_, turns| Arc::strong_count(turns) > 1);
            }
            let new = || Arc::new(Semaphore::new(OPENINGS_PER_ORGANIZATION_MAX));
            Arc::clone(orgs.entry(org).or_insert_with(new))
        };
        let turn = async {
            Some([of_org.acquire_owned().await.ok()?, Arc::clone(&self.openings).acquire_owned().await.ok()?])
        };
        match tokio::time::timeout(OPENING_MAX, turn).await {
            Ok(Some(turn)) => Ok(turn),
            _ => Err(Ended::Unreachable(
                "other channels are being opened; there was no turn in time".to_owned(),
            )),
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut open = self.places.open();
        open.counts.all = open.counts.all.saturating_sub(1);
        less(&mut open.counts.organizations, &self.org);
        less(&mut open.controllers, &self.controller);
    }
}

fn less<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    let Some(count) = counts.get_mut(key) else { return };
    *count = count.saturating_sub(1);
    if *count == 0 {
        counts.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    #[test]
    fn a_controller_an_organization_and_the_process_have_so_many_places() {
        let (places, clock) = (Arc::new(Places::default()), Clock::default());
        let org: OrgId = clock.new_id();
        let full = |org, controller| match places.take(org, controller) {
            Err(Ended::NoPlace { whose, most }) => Some((whose, most)),
            _ => None,
        };
        let mut held = Vec::new();
        for _ in 0..CHANNELS_PER_ORGANIZATION_MAX / CHANNELS_PER_CONTROLLER_MAX {
            let controller = clock.new_id();
            held.extend((0..CHANNELS_PER_CONTROLLER_MAX).map(|_| places.take(org, controller).unwrap()));
            assert_eq!(full(org, controller), Some((Whose::Controller, CHANNELS_PER_CONTROLLER_MAX)));
        }
        assert_eq!(full(org, clock.new_id()), Some((Whose::Organization, CHANNELS_PER_ORGANIZATION_MAX)));
        let others = CHANNELS_MAX - CHANNELS_PER_ORGANIZATION_MAX;
        held.extend((0..others).map(|_| places.take(clock.new_id(), clock.new_id()).unwrap()));
        assert_eq!(full(clock.new_id(), clock.new_id()), Some((Whose::Process, CHANNELS_MAX)));
        held.clear();
        assert_eq!(full(org, clock.new_id()), None);
        assert!(places.counts().organizations.is_empty(), "nothing is kept of who has none");
    }

    #[test]
    fn it_is_known_how_many_places_each_organization_has_taken() {
        let (places, clock) = (Arc::new(Places::default()), Clock::default());
        let [one, two, none]: [OrgId; 3] = [clock.new_id(), clock.new_id(), clock.new_id()];
        let held = [one, two, one].map(|org| places.take(org, clock.new_id()).unwrap());
        let counts = places.counts();
        assert_eq!((counts.all, counts.of(one), counts.of(two), counts.of(none)), (3, 2, 1, 0));
        drop(held);
        assert_eq!(places.counts().all, 0);
        assert_eq!(counts.all, 3, "what was read stays as it was");
    }

    #[tokio::test(start_paused = true)]
    async fn an_organization_waits_for_its_own_openings() {
        let (places, clock) = (Places::default(), Clock::default());
        let (one, two): (OrgId, OrgId) = (clock.new_id(), clock.new_id());
        let mut turns = Vec::new();
        for _ in 0..OPENINGS_PER_ORGANIZATION_MAX {
            turns.push(places.opening(one).await.unwrap());
        }
        assert_eq!(places.opening(one).await.unwrap_err().as_str(), "unreachable");
        assert!(places.opening(two).await.is_ok());
        turns.pop();
        assert!(places.opening(one).await.is_ok());
    }
}
