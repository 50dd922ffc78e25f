//! The faults that a test or a demo can order.

use heddle_lab::FaultKind;
use serde::{Deserialize, Serialize};

/// A fault. Times are in milliseconds; without one the fault lasts until faults are cleared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fault {
    /// Connections are accepted and requests read, but neither executed nor answered; closed when it ends.
    Hang {
        #[serde(default)]
        for_ms: Option<u64>,
    },
    /// The path is cut: every connection is closed without an answer. The router itself lives on.
    Cut {
        #[serde(default)]
        for_ms: Option<u64>,
    },
    /// Every answer comes this much later; the calls are executed at once.
    Delay { ms: u64 },
    /// The next `times` requests (all, when absent) get an HTML page, and are not executed.
    Html {
        #[serde(default)]
        times: Option<u32>,
    },
    /// The next `times` requests (all, when absent) are executed, and half of the answer is sent.
    Truncate {
        #[serde(default)]
        times: Option<u32>,
    },
    /// Once, right after the call (`object.method`) was executed with status 0, before its answer is sent.
    AfterCall { call: String, then: Effect },
    /// Once, right after the given number of write calls (counted from now), before the last one is answered.
    AfterWrites { writes: u32, then: Effect },
}

/// What a trigger does. The answer of the triggering request is lost in every case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Only this answer is lost.
    DropAnswer,
    /// As [`Fault::Cut`].
    Cut {
        #[serde(default)]
        for_ms: Option<u64>,
    },
    /// As [`Fault::Hang`]; the answer of the triggering request hangs as well.
    Hang {
        #[serde(default)]
        for_ms: Option<u64>,
    },
    /// The router restarts at once: sessions, staging and a pending rollback are gone.
    Reboot,
}

/// Faults that wait for a call.
#[derive(Default)]
pub(crate) struct Triggers(Vec<Fault>);

impl Triggers {
    pub(crate) fn order(&mut self, trigger: Fault) {
        self.0.push(trigger);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The effect that one executed call triggers. A trigger fires once.
    pub(crate) fn after_call(&mut self, name: &str, is_write: bool, is_ok: bool) -> Option<Effect> {
        let fired = self.0.iter_mut().position(|fault| match fault {
            Fault::AfterCall { call, .. } => is_ok && call == name,
            Fault::AfterWrites { writes, .. } if is_write => {
                *writes = writes.saturating_sub(1);
                *writes == 0
            }
            _ => false,
        })?;
        match self.0.remove(fired) {
            Fault::AfterCall { then, .. } | Fault::AfterWrites { then, .. } => Some(then),
            _ => None,
        }
    }
}

impl Fault {
    /// The skeleton's fault that does the same; the error is a trigger, which only the router knows.
    pub(crate) fn of_skeleton(self) -> Result<heddle_lab::Fault, Self> {
        let on_calls = |kind: FaultKind, times: Option<u32>| heddle_lab::Fault {
            times,
            ..heddle_lab::Fault::from(kind).on("POST", "/ubus")
        };
        let lasting = |fault: heddle_lab::Fault, for_ms: Option<u64>| heddle_lab::Fault { for_ms, ..fault };
        match self {
            Self::Hang { for_ms } => Ok(lasting(heddle_lab::Fault::hang(), for_ms)),
            Self::Cut { for_ms } => Ok(lasting(heddle_lab::Fault::cut(), for_ms)),
            Self::Delay { ms } => Ok(heddle_lab::Fault::slow(ms)),
            Self::Html { times } => Ok(on_calls(FaultKind::Html { status: 200 }, times)),
            Self::Truncate { times } => Ok(on_calls(FaultKind::Truncate, times)),
            Self::AfterCall { .. } | Self::AfterWrites { .. } => Err(self),
        }
    }
}
