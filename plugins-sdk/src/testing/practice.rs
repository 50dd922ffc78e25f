//! A practice device that keeps state, and a reviewed plan on its way through the stages.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{FakeHost, finish_stage};
use crate::{Adapter, Change, ChangePlan, Completion, Fault, FaultExt, Stage, Standing};

/// A device that tests plan and apply changes at.
pub trait Practice {
    /// The adapter under test.
    type Adapter: Adapter;

    /// A host that asks the device, with the package's rules ([`FakeHost::with_package`]).
    fn host(&self) -> FakeHost<'_>;

    /// What the device keeps, without what moves by itself and without ids that a new object gets anew: two states that
    /// a person would call the same are equal.
    fn state(&self) -> Value;

    /// What is stored and not in effect, by names; empty where the device knows no difference.
    fn inactive(&self) -> Vec<String> {
        Vec::new()
    }

    /// Everything that tells whether something was done, counters and logs among it; none where the device has no such
    /// record.
    fn traces(&self) -> Option<Value> {
        None
    }

    /// Lets time pass.
    fn wait_ms(&self, ms: u64);

    /// Lets what was started end, before anybody looks.
    fn settle(&self) {}
}

/// A plan as it was reviewed, with what the host learns while it sends it.
#[derive(Debug)]
pub struct Reviewed {
    changes: Vec<Change>,
    /// The plan.
    pub plan: ChangePlan,
    holes: RefCell<BTreeMap<String, Value>>,
    left: RefCell<BTreeSet<String>>,
}

impl Reviewed {
    /// Plans changes, as a server does: a plan that it would refuse is a fault.
    pub fn of<P: Practice>(device: &P, changes: Vec<Change>) -> Result<Self, Fault> {
        let host = device.host();
        let plan = P::Adapter::plan(&host, &changes)?;
        host.check(&plan)?;
        Ok(Self { changes, plan, holes: RefCell::default(), left: RefCell::default() })
    }

    /// Sends a stage to its end, and lets the device settle.
    pub fn run<P: Practice>(&self, device: &P, stage: Stage) -> Result<Completion, Fault> {
        let host = device.host();
        host.holes.replace(self.holes.borrow().clone());
        host.left.replace(self.left.borrow().clone());
        let wait = |ms| device.wait_ms(ms);
        let ended = finish_stage::<P::Adapter>(&host, stage, &self.changes, &self.plan, wait);
        self.holes.replace(host.holes.borrow().clone());
        self.left.replace(host.left.borrow().clone());
        device.settle();
        ended
    }

    /// Where the device stands, seen from the plan; see [`standing`].
    pub fn standing<P: Practice>(&self, device: &P) -> String {
        standing::<P::Adapter>(&device.host(), &self.changes, &self.plan)
    }

    /// Whether the plan has calls of a stage.
    #[must_use]
    pub fn has(&self, stage: Stage) -> bool {
        self.plan.native.iter().any(|call| call.stage == stage)
    }

    /// Whether the plan warns that it cannot be taken back.
    #[must_use]
    pub fn is_said_to_be_final(&self) -> bool {
        self.plan.warnings.iter().any(|warning| warning.contains("cannot be taken back"))
    }
}

/// Where the device stands, seen from a plan, in words: `before`, `after`, `adjusted {..}`, `stored, needs reboot`,
/// `moved on {..}`, `other {..}`, `unseen`, or what the fault says.
pub fn standing<A: Adapter>(host: &FakeHost<'_>, changes: &[Change], plan: &ChangePlan) -> String {
    match A::compare(host, changes, &plan.token) {
        Ok(comparison) => match comparison.standing {
            Standing::Before => "before".to_owned(),
            Standing::After => "after".to_owned(),
            Standing::Adjusted(what) => format!("adjusted {what}"),
            Standing::Stored(needs) => format!("stored, needs {}", needs.join(", ")),
            Standing::MovedOn(what) => format!("moved on {what}"),
            Standing::Other(what) => format!("other {what}"),
            Standing::Unseen => "unseen".to_owned(),
        },
        Err(fault) => format!("fault {} {:?}", fault.info().message, fault.info().code),
    }
}
