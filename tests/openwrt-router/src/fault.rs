//! The faults that a test or a demo can order.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

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

/// How a request may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    Hung,
    Down,
}

/// How long a fault lasts.
#[derive(Clone, Copy, Default)]
enum Lasting {
    #[default]
    Over,
    Until(Instant),
    UntilCleared,
}

impl Lasting {
    fn from(now: Instant, for_ms: Option<u64>) -> Self {
        for_ms.map_or(Self::UntilCleared, |ms| Self::Until(now + Duration::from_millis(ms)))
    }

    fn holds(self, now: Instant) -> bool {
        match self {
            Self::Over => false,
            Self::Until(end) => now < end,
            Self::UntilCleared => true,
        }
    }
}

/// The faults in force.
#[derive(Default)]
pub(crate) struct Faults {
    hang: Lasting,
    cut: Lasting,
    pub(crate) delay: Duration,
    active: Vec<Fault>,
}

impl Faults {
    pub(crate) fn order(&mut self, fault: Fault, now: Instant) {
        match fault {
            Fault::Hang { for_ms } => self.hang = Lasting::from(now, for_ms),
            Fault::Cut { for_ms } => self.cut = Lasting::from(now, for_ms),
            Fault::Delay { ms } => self.delay = Duration::from_millis(ms),
            counted => self.active.push(counted),
        }
    }

    pub(crate) fn gate(&self, now: Instant) -> Gate {
        if self.cut.holds(now) {
            Gate::Down
        } else if self.hang.holds(now) {
            Gate::Hung
        } else {
            Gate::Open
        }
    }

    /// Whether this request gets an HTML page.
    pub(crate) fn take_html(&mut self) -> bool {
        self.take(|fault| match fault {
            Fault::Html { times } => Some(times),
            _ => None,
        })
    }

    /// Whether this request's answer is cut in half.
    pub(crate) fn take_truncate(&mut self) -> bool {
        self.take(|fault| match fault {
            Fault::Truncate { times } => Some(times),
            _ => None,
        })
    }

    fn take(&mut self, kind: impl Fn(&mut Fault) -> Option<&mut Option<u32>>) -> bool {
        let Some(at) = self.active.iter_mut().position(|fault| kind(fault).is_some()) else { return false };
        if let Some(Some(left)) = kind(&mut self.active[at]) {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.active.remove(at);
            }
        }
        true
    }

    /// The effect that one executed call triggers. A trigger fires once.
    pub(crate) fn after_call(&mut self, name: &str, is_write: bool, is_ok: bool) -> Option<Effect> {
        let fired = self.active.iter_mut().position(|fault| match fault {
            Fault::AfterCall { call, .. } => is_ok && call == name,
            Fault::AfterWrites { writes, .. } if is_write => {
                *writes = writes.saturating_sub(1);
                *writes == 0
            }
            _ => false,
        })?;
        match self.active.remove(fired) {
            Fault::AfterCall { then, .. } | Fault::AfterWrites { then, .. } => Some(then),
            _ => None,
        }
    }
}
