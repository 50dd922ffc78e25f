//! Tells the server how calls end, for its counters.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::api::CallError;
use crate::egress::phase::Phase;

/// A call that is over. Its texts come from closed sets, but for the component's id.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The adapter's id, or that of a plugin behind `plugin:`, which no id has.
    pub adapter: &'a str,
    /// What the call was for: `probe`, `read`, `plan`, `verify`, `write`, `poll`.
    pub operation: &'static str,
    /// `ok`, the kind of the fault, or what kept the component from answering.
    pub outcome: &'static str,
    /// With the wait for a free place.
    pub duration: Duration,
}

/// Told of every call of a component. Must be quick.
pub type Observer = Arc<dyn Fn(&Observed<'_>) + Send + Sync>;

/// One call under way; dropped without an end it was cancelled.
pub(crate) struct Observation<'a> {
    observer: Option<&'a Observer>,
    adapter: Cow<'a, str>,
    phase: Phase,
    started: Instant,
    outcome: &'static str,
}

impl<'a> Observation<'a> {
    /// Of a call of an adapter.
    pub(crate) fn begin(observer: Option<&'a Observer>, adapter: &'a str, phase: Phase) -> Self {
        Self::of(observer, Cow::Borrowed(adapter), phase)
    }

    /// Of a call of a plugin, whose id may also be that of an adapter.
    pub(crate) fn begin_of_plugin(observer: Option<&'a Observer>, plugin: &str, phase: Phase) -> Self {
        Self::of(observer, Cow::Owned(format!("plugin:{plugin}")), phase)
    }

    fn of(observer: Option<&'a Observer>, adapter: Cow<'a, str>, phase: Phase) -> Self {
        Self { observer, adapter, phase, started: Instant::now(), outcome: "cancelled" }
    }

    pub(crate) fn end<T>(mut self, result: &Result<T, CallError>) {
        self.outcome = outcome(result);
    }
}

impl Drop for Observation<'_> {
    fn drop(&mut self) {
        let Some(observer) = self.observer else { return };
        observer(&Observed {
            adapter: &self.adapter,
            operation: operation(self.phase),
            outcome: self.outcome,
            duration: self.started.elapsed(),
        });
    }
}

fn operation(phase: Phase) -> &'static str {
    match phase {
        Phase::Probe => "probe",
        Phase::Read => "read",
        Phase::Plan => "plan",
        Phase::Verify => "verify",
        Phase::Write => "write",
        Phase::Poll => "poll",
    }
}

fn outcome<T>(result: &Result<T, CallError>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(CallError::Fault(fault)) => fault.kind.as_str(),
        Err(CallError::Trap { .. }) => "trap",
        Err(CallError::Suspended { .. }) => "suspended",
        Err(CallError::Overload) => "overload",
        Err(CallError::Host(_)) => "host_error",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use heddle_core::fault::{Fault, FaultKind};

    use super::*;

    #[test]
    fn every_call_is_told_of_once_also_a_cancelled_one() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let inner = told.clone();
        let observer: Observer = Arc::new(move |call| {
            inner.lock().unwrap().push((call.adapter.to_owned(), call.operation, call.outcome));
        });
        let begin = || Observation::begin(Some(&observer), "acme", Phase::Read);
        begin().end(&Ok(()));
        begin().end::<()>(&Err(CallError::Fault(Fault::new(FaultKind::Timeout, "late"))));
        drop(begin());
        Observation::begin_of_plugin(Some(&observer), "acme", Phase::Read).end(&Ok(()));
        Observation::begin(None, "acme", Phase::Read).end(&Ok(()));
        let told = told.lock().unwrap();
        let outcomes: Vec<_> = told.iter().map(|(_, _, outcome)| *outcome).collect();
        assert_eq!(outcomes, ["ok", "timeout", "cancelled", "ok"]);
        assert_eq!((told[0].0.as_str(), told[3].0.as_str()), ("acme", "plugin:acme"));
    }
}
