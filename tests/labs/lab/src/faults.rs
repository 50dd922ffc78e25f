//! The faults in force, and what they make of a request.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::{Certificate, Fault, FaultKind, Request, Then};

/// How long a fault lasts; `None` until faults are cleared.
type Until = Option<Instant>;

struct Ordered {
    id: u64,
    fault: Fault,
    until: Until,
}

/// The faults in force, in the order they were ordered.
#[derive(Default)]
pub struct Faults {
    ordered: Vec<Ordered>,
    /// Hangs that hold requests, also those that meet no further one.
    holding: BTreeMap<u64, Until>,
    last_id: u64,
}

/// What happens instead of the execution.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Instead {
    /// The id of the hang.
    Hang(u64),
    Lose(Option<Then>),
    Html(u16),
    Status(u16, Option<u64>),
}

/// What happens to the answer of an executed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoiled {
    Lost(Option<Then>),
    CutBody,
    Truncated,
}

/// What becomes of one request.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan {
    pub(crate) delay: Duration,
    pub(crate) ends_sessions: bool,
    pub(crate) instead: Option<Instead>,
    pub(crate) spoiled: Option<Spoiled>,
    /// The names of the faults.
    pub(crate) names: Vec<String>,
}

impl Faults {
    /// Orders a fault. One that meets every request replaces its like; all others add up.
    ///
    /// Orders through the lab are checked first; this one is for faults that the simulator makes itself.
    pub fn add(&mut self, fault: Fault, now: Instant) {
        let until = fault.for_ms.map(|ms| now + Duration::from_millis(ms));
        if let Some(old) = self.ordered.iter_mut().find(|old| old.fault.is_like(&fault)) {
            if let Some(held) = self.holding.get_mut(&old.id) {
                *held = until;
            }
            (old.fault, old.until) = (fault, until);
            return;
        }
        self.last_id += 1;
        self.ordered.push(Ordered { id: self.last_id, fault, until });
    }

    /// Ends every fault.
    pub fn clear(&mut self) {
        self.ordered.clear();
        self.holding.clear();
    }

    /// The faults as they were ordered, with what is left of `skip` and `times`.
    pub fn in_force(&self) -> impl Iterator<Item = &Fault> {
        self.ordered.iter().map(|ordered| &ordered.fault)
    }

    /// Ends those whose time is over.
    pub(crate) fn expire(&mut self, now: Instant) {
        let lasts = |until: Until| until.is_none_or(|until| now < until);
        self.ordered.retain(|ordered| lasts(ordered.until));
        self.holding.retain(|_, until| lasts(*until));
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.in_force().any(|fault| fault.kind == FaultKind::Cut)
    }

    pub(crate) fn certificate(&self) -> Option<Certificate> {
        self.in_force().find_map(|fault| match fault.kind {
            FaultKind::Certificate { which } => Some(which),
            _ => None,
        })
    }

    /// Whether a hang still holds the requests that it met.
    pub(crate) fn is_holding(&self, id: u64) -> bool {
        self.holding.contains_key(&id)
    }

    /// The hang, if any, that meets a request at its end: its answer was made, and has not left.
    pub(crate) fn late_hang(&mut self) -> Option<u64> {
        let hang =
            self.ordered.iter().find(|held| held.fault.kind == FaultKind::Hang && held.fault.meets_all())?;
        self.holding.insert(hang.id, hang.until);
        Some(hang.id)
    }

    /// Decides what becomes of a request, and counts the faults that meet it.
    ///
    /// A fault that replaces the execution leaves those that spoil the answer untouched.
    pub(crate) fn plan(&mut self, request: &Request) -> Plan {
        let mut plan = Plan::default();
        for stage in 0..STAGES {
            let mut at = 0;
            while at < self.ordered.len() {
                let kind = &self.ordered[at].fault.kind;
                if stage_of(kind) == Some(stage) && plan.has_room(stage) && self.meets(at, request) {
                    plan.add(&self.ordered[at]);
                    at += usize::from(!self.count(at));
                } else {
                    at += 1;
                }
            }
        }
        plan
    }

    /// Bytes after which the request breaks off, before anything else is done with it.
    pub(crate) fn cut_of_request(&mut self, request: &Request) -> Option<u64> {
        for at in 0..self.ordered.len() {
            let FaultKind::CutRequest { after_bytes } = self.ordered[at].fault.kind else { continue };
            if self.meets(at, request) {
                self.count(at);
                return Some(after_bytes);
            }
        }
        None
    }

    pub(crate) fn take_vendor(&mut self, name: &str, request: Option<&Request>) -> Option<Value> {
        for at in 0..self.ordered.len() {
            let FaultKind::Vendor { name: own, args } = &self.ordered[at].fault.kind else { continue };
            if own != name {
                continue;
            }
            let args = args.clone();
            let is_met = match request {
                Some(request) => self.meets(at, request),
                None => self.ordered[at].fault.is_anywhere() && self.is_turn(at),
            };
            if is_met {
                self.count(at);
                return Some(args);
            }
        }
        None
    }

    fn meets(&mut self, at: usize, request: &Request) -> bool {
        self.ordered[at].fault.meets(request) && self.is_turn(at)
    }

    /// Counts down what shall pass first.
    fn is_turn(&mut self, at: usize) -> bool {
        let skip = &mut self.ordered[at].fault.skip;
        let is_turn = *skip == 0;
        *skip = skip.saturating_sub(1);
        is_turn
    }

    /// Counts one request; true when the fault was for the last time, and is gone.
    fn count(&mut self, at: usize) -> bool {
        let Ordered { id, until, fault } = &mut self.ordered[at];
        if fault.kind == FaultKind::Hang {
            self.holding.insert(*id, *until);
        }
        let Some(left) = &mut fault.times else { return false };
        *left = left.saturating_sub(1);
        let is_last = *left == 0;
        if is_last {
            self.ordered.remove(at);
        }
        is_last
    }
}

impl Plan {
    fn has_room(&self, stage: u8) -> bool {
        match stage {
            0 => true,
            1 | 2 => self.instead.is_none(),
            _ => self.instead.is_none() && self.spoiled.is_none(),
        }
    }

    fn add(&mut self, ordered: &Ordered) {
        self.names.push(ordered.fault.kind.name().to_owned());
        match ordered.fault.kind {
            FaultKind::Slow { ms } => self.delay = self.delay.max(Duration::from_millis(ms)),
            FaultKind::EndSessions => self.ends_sessions = true,
            FaultKind::Hang => self.instead = Some(Instead::Hang(ordered.id)),
            FaultKind::LoseRequest { then } => self.instead = Some(Instead::Lose(then)),
            FaultKind::Html { status } => self.instead = Some(Instead::Html(status)),
            FaultKind::Status { status, retry_after_secs } => {
                self.instead = Some(Instead::Status(status, retry_after_secs));
            }
            FaultKind::LoseAnswer { then } => self.spoiled = Some(Spoiled::Lost(then)),
            FaultKind::CutBody => self.spoiled = Some(Spoiled::CutBody),
            FaultKind::Truncate => self.spoiled = Some(Spoiled::Truncated),
            FaultKind::Cut
            | FaultKind::CutRequest { .. }
            | FaultKind::Certificate { .. }
            | FaultKind::Vendor { .. } => {}
        }
    }
}

const STAGES: u8 = 4;

/// When in the life of a request a fault acts; `None` for those that are not of requests.
fn stage_of(kind: &FaultKind) -> Option<u8> {
    match kind {
        FaultKind::Slow { .. } | FaultKind::EndSessions => Some(0),
        FaultKind::Hang => Some(1),
        FaultKind::LoseRequest { .. } | FaultKind::Html { .. } | FaultKind::Status { .. } => Some(2),
        FaultKind::LoseAnswer { .. } | FaultKind::CutBody | FaultKind::Truncate => Some(3),
        FaultKind::Cut
        | FaultKind::CutRequest { .. }
        | FaultKind::Certificate { .. }
        | FaultKind::Vendor { .. } => None,
    }
}
