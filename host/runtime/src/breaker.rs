//! Who may not call for a while: a component that keeps failing is suspended,
//! first for the controller it fails at, then altogether, then for good.
//!
//! Faults that a component answers count for nobody; only traps and refused
//! requests do.

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
const ORGS_TO_OPEN: usize = 3;
const OPENINGS_TO_QUARANTINE: usize = 3;
const OPENINGS_WINDOW: TimeDelta = TimeDelta::hours(1);
/// What a caller of a quarantined component is told; a person must release it.
const QUARANTINE_RETRY_SECS: u64 = 3_600;

/// One for each loaded component version.
pub(crate) struct Breaker {
    name: String,
    clock: Clock,
    state: Mutex<Whole>,
}

#[derive(Default)]
struct Whole {
    circuits: HashMap<ControllerId, Circuit>,
    /// Organisations that called it.
    orgs: HashSet<OrgId>,
    abi: VecDeque<(Timestamp, u32)>,
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
}

/// What a call said of its component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It ran to its end.
    Sound,
    /// It failed; `abi` marks a broken border. Points as in [`Breaker`].
    Failed { points: u32, abi: bool },
    /// Nothing was learned.
    Open,
}

/// Leave for one call. Without a verdict it says that nothing was learned.
pub(crate) struct Pass {
    breaker: Arc<Breaker>,
    controller: ControllerId,
    settled: bool,
}

impl Breaker {
    pub(crate) fn new(name: String, clock: Clock) -> Arc<Self> {
        Arc::new(Self { name, clock, state: Mutex::default() })
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
        whole.orgs.insert(org);
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
        }
        Ok(Pass { breaker: Arc::clone(self), controller, settled: false }.with_org(org, &mut whole))
    }

    pub(crate) fn is_quarantined(&self) -> bool {
        self.lock().quarantined
    }

    /// Forgets everything, after a person looked into it.
    pub(crate) fn release(&self) {
        *self.lock() = Whole::default();
    }

    fn lock(&self) -> MutexGuard<'_, Whole> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, controller: ControllerId, verdict: Verdict) {
        let now = self.clock.now();
        let mut whole = self.lock();
        match verdict {
            Verdict::Sound => {
                // Old points stay: a component that fails every other call is failing.
                if let Some(circuit) = whole.circuits.get_mut(&controller) {
                    if circuit.open_until.is_some() {
                        tracing::info!(component = self.name, controller.id = %controller, "adapter {} works again", self.name);
                    }
                    circuit.open_until = None;
                    circuit.probing = false;
                    circuit.opened = 0;
                    prune(&mut circuit.points, now - POINTS_WINDOW);
                }
            }
            Verdict::Open => {
                if let Some(circuit) = whole.circuits.get_mut(&controller) {
                    circuit.probing = false;
                }
            }
            Verdict::Failed { points, abi } => self.fail(&mut whole, controller, points, abi, now),
        }
    }

    fn fail(&self, whole: &mut Whole, controller: ControllerId, points: u32, abi: bool, now: Timestamp) {
        if abi {
            whole.abi.push_back((now, points));
            prune(&mut whole.abi, now - ABI_WINDOW);
        }
        let Some(circuit) = whole.circuits.get_mut(&controller) else { return };
        circuit.points.push_back((now, points));
        prune(&mut circuit.points, now - POINTS_WINDOW);
        if circuit.probing || sum(&circuit.points) >= POINTS_MAX {
            circuit.open(now);
            tracing::warn!(component = self.name, controller.id = %controller, "adapter {} is suspended for controller {controller}", self.name);
        }
        let failing: HashSet<OrgId> = whole
            .circuits
            .values()
            .filter(|c| c.open_until.is_some_and(|until| until > now))
            .map(|c| c.org)
            .collect();
        let many =
            failing.len() >= ORGS_TO_OPEN || (whole.orgs.len() > 1 && failing.len() == whole.orgs.len());
        if many || sum(&whole.abi) >= ABI_POINTS_MAX {
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
                "adapter {} keeps failing everywhere; it takes no calls until it is released",
                self.name
            );
        } else {
            tracing::error!(component = self.name, "adapter {} fails everywhere; it is suspended", self.name);
        }
    }
}

impl Circuit {
    fn open(&mut self, now: Timestamp) {
        self.open_until = Some(now + open_time(self.opened));
        self.opened = self.opened.saturating_add(1);
        self.probing = false;
        self.points.clear();
    }
}

impl Pass {
    fn with_org(self, org: OrgId, whole: &mut Whole) -> Self {
        whole.circuits.entry(self.controller).or_insert_with(|| Circuit {
            org,
            points: VecDeque::new(),
            open_until: None,
            opened: 0,
            probing: false,
        });
        self
    }

    pub(crate) fn settle(mut self, verdict: Verdict) {
        self.settled = true;
        self.breaker.settle(self.controller, verdict);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if !self.settled {
            self.breaker.settle(self.controller, Verdict::Open);
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
