//! Classes of features that cannot keep a rule.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

/// A rule that an exception can lift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A stage is sent to its end without a fault.
    Ends,
    /// Before the apply the device stands as the plan saw it.
    Before,
    /// After the apply the device stands as the plan wants it.
    After,
    /// A second plan has nothing to do.
    Again,
    /// What was written is read back.
    ReadBack,
    /// What another person wrote meanwhile is not written over.
    Moved,
    /// An action without an effect leaves something on the device.
    Trace,
    /// There is a way back, or the plan says that there is none.
    WayBack,
    /// After the way back the device keeps what it kept before.
    Restored,
    /// The changes that take a plan back are planned, and bring back what the device kept.
    Inverse,
    /// There is a sample of each operation.
    Sampled,
}

/// A class of features that cannot keep a rule.
#[derive(Debug)]
pub struct Exception {
    rule: Rule,
    why: &'static str,
    holds_for: fn(&Value) -> bool,
    is_used: AtomicBool,
}

impl Exception {
    /// Lifts a rule for a reason, in a sentence, from the features that `holds_for` finds. Behind a rule that is not kept
    /// the feature is checked no further.
    #[must_use]
    pub fn new(rule: Rule, why: &'static str, holds_for: fn(&Value) -> bool) -> Self {
        Self { rule, why, holds_for, is_used: AtomicBool::new(false) }
    }

    /// Whether it lifts a rule from a feature; it is used then.
    pub(super) fn lifts(&self, rule: Rule, feature: &Value) -> bool {
        let lifts = self.rule == rule && (self.holds_for)(feature);
        if lifts {
            self.is_used.store(true, Ordering::Relaxed);
        }
        lifts
    }

    /// Why it may not stand here.
    pub(super) fn problem(&self) -> Option<String> {
        match () {
            () if self.why.trim().is_empty() => {
                Some(format!("an exception to {:?} has no reason", self.rule))
            }
            () if !self.is_used.load(Ordering::Relaxed) => Some(format!(
                "every feature keeps {:?}, so that nothing needs the exception: {}",
                self.rule, self.why
            )),
            () => None,
        }
    }
}
