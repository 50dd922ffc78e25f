//! The runs that this process is executing, and how many more it takes of which organization.
//!
//! A run counts as executing from before it is written as running until after its end is written. A run that is
//! assigned to this process but not executing was orphaned.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use heddle_core::{OrgId, RunId};
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::{Error, RateExceeded};
use heddle_store::runs::Waiting;

use super::state::FabricState;

/// Runs out of the queue that a process executes at once.
const AT_ONCE: usize = 32;
/// Those of one organization. It gets fewer while few more can be taken, so that a few organizations do not take all.
const OF_ORG: usize = 4;
/// Tests and actions of one organization that this process executes at once: a user waits for each.
const FOR_PERSONS_OF_ORG: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Origin {
    Queue,
    Person,
    /// What a provider of operations started, which bounds it by itself.
    Occasion,
}

/// The runs that are executing now.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    held: Mutex<HashMap<RunId, Held>>,
    taken: AtomicU64,
}

/// What is known of an executing run.
#[derive(Debug, Clone, Copy)]
struct Held {
    org: OrgId,
    origin: Origin,
    /// Tells two takes of one run apart: a run that waits can be taken again before its first take is dropped.
    serial: u64,
}

/// A run that counts as executing until this is dropped.
pub(crate) struct RunInFlight {
    app: SharedApp,
    run: RunId,
    serial: u64,
}

impl Drop for RunInFlight {
    fn drop(&mut self) {
        let mut held = FabricState::of(&self.app).in_flight.held();
        if held.get(&self.run).is_some_and(|one| one.serial == self.serial) {
            held.remove(&self.run);
        }
        drop(held);
        // There is room for another.
        FabricState::of(&self.app).wake.notify_one();
    }
}

impl InFlight {
    fn held(&self) -> MutexGuard<'_, HashMap<RunId, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn runs(&self) -> HashSet<RunId> {
        self.held().keys().copied().collect()
    }

    /// Returns how many more runs of each organization are taken now. The organization with the fewest executing runs
    /// comes first, then the one that waits longest.
    pub(super) fn shares(&self, waiting: &[Waiting]) -> Vec<(OrgId, u32)> {
        let mut counts: HashMap<OrgId, usize> = HashMap::new();
        for one in self.held().values().filter(|one| one.origin == Origin::Queue) {
            *counts.entry(one.org).or_default() += 1;
        }
        let mut free = AT_ONCE.saturating_sub(counts.values().sum());
        let count = |counts: &HashMap<OrgId, usize>, org| counts.get(&org).copied().unwrap_or_default();
        let mut order = waiting.to_vec();
        order.sort_by_key(|one| (count(&counts, one.org_id), one.since));
        let mut shares: Vec<(OrgId, u32)> = order.iter().map(|one| (one.org_id, 0)).collect();
        // One each in turn: no organization gets a second one before every one has a first.
        for turn in 0..OF_ORG {
            for (org, share) in &mut shares {
                let has = count(&counts, *org);
                if free > 0 && has <= turn && has < most_of_org(free) {
                    *counts.entry(*org).or_default() += 1;
                    *share += 1;
                    free -= 1;
                }
            }
        }
        shares.retain(|(_, share)| *share > 0);
        shares
    }
}

/// Returns the most runs of one organization while so many more can be taken.
fn most_of_org(free: usize) -> usize {
    (free / 4).clamp(1, OF_ORG)
}

/// Takes a run out of the queue and marks it as executing.
pub(super) fn take(app: &SharedApp, org: OrgId, run: RunId) -> RunInFlight {
    mark(app, org, run, Origin::Queue)
}

/// Marks a run that a provider started as executing, before it is written.
pub(crate) fn take_for_occasion(app: &SharedApp, org: OrgId, run: RunId) -> RunInFlight {
    mark(app, org, run, Origin::Occasion)
}

fn mark(app: &SharedApp, org: OrgId, run: RunId, origin: Origin) -> RunInFlight {
    let serial = FabricState::of(app).in_flight.taken.fetch_add(1, Ordering::Relaxed);
    FabricState::of(app).in_flight.held().insert(run, Held { org, origin, serial });
    RunInFlight { app: app.clone(), run, serial }
}

/// Marks a run that a user waits for as executing, before it is written.
pub(crate) fn take_for_person(app: &SharedApp, org: OrgId, run: RunId) -> Result<RunInFlight, Error> {
    let mut held = FabricState::of(app).in_flight.held();
    if held.values().filter(|one| one.org == org && one.origin == Origin::Person).count()
        >= FOR_PERSONS_OF_ORG
    {
        return Err(Error::RateLimited(RateExceeded::AtOnce));
    }
    let serial = FabricState::of(app).in_flight.taken.fetch_add(1, Ordering::Relaxed);
    held.insert(run, Held { org, origin: Origin::Person, serial });
    drop(held);
    Ok(RunInFlight { app: app.clone(), run, serial })
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use heddle_core::Clock;

    use super::*;

    fn hold(in_flight: &InFlight, org: OrgId, count: usize) {
        for _ in 0..count {
            let one = Held { org, origin: Origin::Queue, serial: 0 };
            in_flight.held().insert(Clock::default().new_id(), one);
        }
    }

    fn waiting(count: usize) -> Vec<Waiting> {
        let clock = Clock::default();
        let now = clock.now();
        let at = |age: usize| now - TimeDelta::seconds(i64::try_from(age).unwrap());
        (0..count).map(|age| Waiting { org_id: clock.new_id(), since: at(age) }).collect()
    }

    #[test]
    fn one_organization_gets_its_most_and_leaves_the_rest() {
        let (in_flight, orgs) = (InFlight::default(), waiting(1));
        assert_eq!(in_flight.shares(&orgs), [(orgs[0].org_id, 4)]);
        hold(&in_flight, orgs[0].org_id, 3);
        assert_eq!(in_flight.shares(&orgs), [(orgs[0].org_id, 1)]);
        hold(&in_flight, orgs[0].org_id, 1);
        assert!(in_flight.shares(&orgs).is_empty());
    }

    #[test]
    fn everybody_gets_one_before_anybody_gets_a_second() {
        let (in_flight, orgs) = (InFlight::default(), waiting(40));
        let shares = in_flight.shares(&orgs);
        assert_eq!((shares.len(), shares.iter().all(|(_, share)| *share == 1)), (32, true));
        assert_eq!(shares[0].0, orgs[39].org_id, "who waits longest is first");
    }

    #[test]
    fn a_few_do_not_take_all_places() {
        let (in_flight, orgs) = (InFlight::default(), waiting(12));
        for org in &orgs[..8] {
            for (org, share) in in_flight.shares(std::slice::from_ref(org)) {
                hold(&in_flight, org, usize::try_from(share).unwrap());
            }
        }
        for org in &orgs[8..] {
            assert!(
                !in_flight.shares(std::slice::from_ref(org)).is_empty(),
                "there is room for the ninth and on"
            );
        }
    }
}
