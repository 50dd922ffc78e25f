//! Which calls are refused for a while: a component that keeps failing is suspended,
//! first for the controller it fails at, then altogether, then for good.
//!
//! Faults that a component answers do not count; only traps and refused requests do. What a device decides (how large a
//! result is) counts for its controller alone. A component is suspended altogether only when it failed at several
//! organizations, so that none of them can suspend it for the others. What is under way at a device passes.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use heddle_core::{Clock, ControllerId, OrgId, Timestamp};

const POINTS_MAX: u32 = 5;
const POINTS_WINDOW: TimeDelta = TimeDelta::minutes(5);
const OPEN_FIRST_SECS: i64 = 30;
const OPEN_MOST_SECS: i64 = 15 * 60;
const ABI_POINTS_MAX: u32 = 20;
const ABI_WINDOW: TimeDelta = TimeDelta::minutes(10);
/// Organizations that must have seen a component fail before it is suspended for all.
const ORGS_TO_OPEN: usize = 3;
/// From here on, circuits that no longer say anything are forgotten.
const CIRCUITS_KEPT: usize = 4_096;
const OPENINGS_TO_QUARANTINE: usize = 3;
const OPENINGS_WINDOW: TimeDelta = TimeDelta::hours(1);
/// The retry time that a caller of a quarantined component gets; a person must release it.
const QUARANTINE_RETRY_SECS: u64 = 3_600;

/// One for each loaded component version.
pub(crate) struct Breaker {
    name: String,
    /// What a circuit is of, in the log.
    peers: Peers,
    clock: Clock,
    state: Mutex<Whole>,
}

/// What a component is called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peers {
    /// An adapter for controllers.
    Controllers,
    /// A plugin for organizations: the ids of its circuits are made up, and name no controller.
    Organizations,
}

#[derive(Default)]
struct Whole {
    circuits: HashMap<ControllerId, Circuit>,
    /// Points of broken borders, and the organizations that they came from.
    abi: VecDeque<(Timestamp, u32, OrgId)>,
    openings: VecDeque<Timestamp>,
    open_until: Option<Timestamp>,
    quarantined: bool,
}

struct Circuit {
    org: OrgId,
    points: VecDeque<(Timestamp, u32)>,
    open_until: Option<Timestamp>,
    opened: u32,
    probing: bool,
    /// It was opened for what the component did, not for what the device is like.
    is_components: bool,
}

/// Whether a component takes calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// It takes none until a person releases it.
    pub is_quarantined: bool,
    /// Until then it takes none for any controller.
    pub suspended_until: Option<Timestamp>,
}

/// What a failure says, and of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blame {
    /// The component, as far as this controller shows.
    Component,
    /// The component: its border is broken.
    Border,
    /// The device.
    Target,
}

/// What a call said of its component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It ran to its end.
    Sound,
    /// It failed. Points as in [`Breaker`].
    Failed { points: u32, blame: Blame },
    /// Nothing was learned.
    Open,
}

/// Leave for one call. Without a verdict it says that nothing was learned.
pub(crate) struct Pass {
    breaker: Arc<Breaker>,
    controller: ControllerId,
    settled: bool,
    /// It is the one call that is let through to see whether the component works again.
    is_probe: bool,
}

impl Breaker {
    pub(crate) fn new(name: String, peers: Peers, clock: Clock) -> Arc<Self> {
        Arc::new(Self { name, peers, clock, state: Mutex::default() })
    }

    /// Leave to call, or the seconds until it is worth trying again.
    pub(crate) fn admit(self: &Arc<Self>, org: OrgId, controller: ControllerId) -> Result<Pass, u64> {
        let now = self.clock.now();
        let mut whole = self.lock();
        if whole.quarantined {
            return Err(QUARANTINE_RETRY_SECS);
        }
        if let Some(until) = whole.open_until.filter(|until| *until > now) {
            return Err(secs_until(until, now));
        }
        let mut is_probe = false;
        if let Some(circuit) = whole.circuits.get_mut(&controller)
            && let Some(until) = circuit.open_until
        {
            if until > now {
                return Err(secs_until(until, now));
            }
            if circuit.probing {
                return Err(1);
            }
            circuit.probing = true;
            is_probe = true;
        }
        Ok(self.pass(&mut whole, org, controller, is_probe))
    }

    /// Leave for a call of a change that is under way: always.
    pub(crate) fn admit_under_way(self: &Arc<Self>, org: OrgId, controller: ControllerId) -> Pass {
        self.pass(&mut self.lock(), org, controller, false)
    }

    fn pass(
        self: &Arc<Self>,
        whole: &mut Whole,
        org: OrgId,
        controller: ControllerId,
        is_probe: bool,
    ) -> Pass {
        if whole.circuits.len() > CIRCUITS_KEPT {
            let since = self.clock.now() - POINTS_WINDOW;
            whole.circuits.retain(|_, circuit| {
                // Those of controllers that are gone are not asked for again.
                circuit.open_until.is_some_and(|until| until > since - TimeDelta::hours(1))
                    || circuit.points.iter().any(|(at, _)| *at > since)
            });
        }
        whole.circuits.entry(controller).or_insert_with(|| Circuit::closed(org));
        Pass { breaker: Arc::clone(self), controller, settled: false, is_probe }
    }

    pub(crate) fn standing(&self) -> Standing {
        let (whole, now) = (self.lock(), self.clock.now());
        let suspended_until = whole.open_until.filter(|until| *until > now);
        Standing { is_quarantined: whole.quarantined, suspended_until }
    }

    /// Forgets everything, after a person looked into it.
    pub(crate) fn release(&self) {
        *self.lock() = Whole::default();
    }

    /// The same for what failed until then; what failed since is not released.
    pub(crate) fn release_as_of(&self, at: Timestamp) -> bool {
        let mut whole = self.lock();
        let is_older = whole.openings.back().is_some_and(|opened| *opened <= at);
        if is_older {
            *whole = Whole::default();
        }
        is_older
    }

    fn lock(&self) -> MutexGuard<'_, Whole> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, controller: ControllerId, verdict: Verdict, is_probe: bool) {
        let now = self.clock.now();
        let mut whole = self.lock();
        match verdict {
            Verdict::Sound => {
                // Old points stay: a component that fails every other call is failing.
                if let Some(circuit) = whole.circuits.get_mut(&controller) {
                    if circuit.open_until.is_some() {
                        match self.peers {
                            Peers::Controllers => {
                                tracing::info!(component = self.name, controller.id = %controller, "component {} works again", self.name);
                            }
                            Peers::Organizations => {
                                tracing::info!(component = self.name, organization.id = %circuit.org, "component {} works again", self.name);
                            }
                        }
                    }
                    circuit.open_until = None;
                    circuit.probing = false;
                    circuit.opened = 0;
                    prune(&mut circuit.points, now - POINTS_WINDOW);
                }
            }
            Verdict::Open => {
                if let Some(circuit) = whole.circuits.get_mut(&controller).filter(|_| is_probe) {
                    circuit.probing = false;
                }
            }
            Verdict::Failed { points, blame } => self.fail(&mut whole, controller, (points, blame), now),
        }
    }

    fn fail(
        &self,
        whole: &mut Whole,
        controller: ControllerId,
        (points, blame): (u32, Blame),
        now: Timestamp,
    ) {
        let Some(circuit) = whole.circuits.get_mut(&controller) else { return };
        if blame == Blame::Border {
            whole.abi.push_back((now, points, circuit.org));
            whole.abi.retain(|(at, ..)| *at > now - ABI_WINDOW);
        }
        circuit.points.push_back((now, points));
        prune(&mut circuit.points, now - POINTS_WINDOW);
        if circuit.probing || sum(&circuit.points) >= POINTS_MAX {
            circuit.open(now);
            circuit.is_components = blame != Blame::Target;
            match self.peers {
                Peers::Controllers => {
                    tracing::warn!(component = self.name, controller.id = %controller, "component {} is suspended for controller {controller}", self.name);
                }
                Peers::Organizations => {
                    tracing::warn!(component = self.name, organization.id = %circuit.org, "component {} is suspended for organization {}", self.name, circuit.org);
                }
            }
        }
        let is_open = |c: &&Circuit| c.is_components && c.open_until.is_some_and(|until| until > now);
        let failing: HashSet<OrgId> = whole.circuits.values().filter(is_open).map(|c| c.org).collect();
        let broken: HashSet<OrgId> = whole.abi.iter().map(|(_, _, org)| *org).collect();
        let abi: u32 = whole.abi.iter().map(|(_, points, _)| points).sum();
        if failing.len() >= ORGS_TO_OPEN || (broken.len() >= ORGS_TO_OPEN && abi >= ABI_POINTS_MAX) {
            self.open_whole(whole, now);
        }
    }

    fn open_whole(&self, whole: &mut Whole, now: Timestamp) {
        if whole.open_until.is_some_and(|until| until > now) {
            return;
        }
        whole.abi.clear();
        whole.openings.push_back(now);
        whole.openings.retain(|at| *at > now - OPENINGS_WINDOW);
        let opened = u32::try_from(whole.openings.len()).unwrap_or(u32::MAX);
        whole.open_until = Some(now + open_time(opened - 1));
        if whole.openings.len() >= OPENINGS_TO_QUARANTINE {
            whole.quarantined = true;
            tracing::error!(
                component = self.name,
                "component {} keeps failing everywhere; it takes no calls until it is released",
                self.name
            );
        } else {
            tracing::error!(
                component = self.name,
                "component {} fails everywhere; it is suspended",
                self.name
            );
        }
    }
}

impl Circuit {
    fn closed(org: OrgId) -> Self {
        Self {
            org,
            points: VecDeque::new(),
            open_until: None,
            opened: 0,
            probing: false,
            is_components: false,
        }
    }

    fn open(&mut self, now: Timestamp) {
        self.open_until = Some(now + open_time(self.opened));
        self.opened = self.opened.saturating_add(1);
        self.probing = false;
        self.points.clear();
    }
}

impl Pass {
    pub(crate) fn settle(mut self, verdict: Verdict) {
        self.settled = true;
        self.breaker.settle(self.controller, verdict, self.is_probe);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if !self.settled {
            self.breaker.settle(self.controller, Verdict::Open, self.is_probe);
        }
    }
}

fn open_time(opened: u32) -> TimeDelta {
    let secs = OPEN_FIRST_SECS.saturating_mul(1_i64.checked_shl(opened).unwrap_or(i64::MAX));
    TimeDelta::seconds(secs.clamp(OPEN_FIRST_SECS, OPEN_MOST_SECS))
}

fn prune(points: &mut VecDeque<(Timestamp, u32)>, since: Timestamp) {
    points.retain(|(at, _)| *at > since);
}

fn sum(points: &VecDeque<(Timestamp, u32)>) -> u32 {
    points.iter().map(|(_, points)| points).sum()
}

fn secs_until(until: Timestamp, now: Timestamp) -> u64 {
    u64::try_from((until - now).num_seconds()).unwrap_or_default().saturating_add(1)
}

#[cfg(test)]
mod tests;
