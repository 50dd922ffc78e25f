//! How a call went, for people.

use std::io::Write;

use heddle_runtime::CallError;
use serde_json::{Value, json};

use crate::session::{Done, Session};

/// Prints what the plugin asked for, and its answer.
pub(crate) fn say_done(session: &Session, done: &Done, out: &mut dyn Write) -> anyhow::Result<()> {
    for line in session.services.trace() {
        writeln!(out, "  {line}")?;
    }
    match &done.outcome {
        Ok(answer) => writeln!(out, "{answer:#}")?,
        Err(error) => writeln!(out, "failed: {error}\n{:#}", outcome_of(&done.outcome))?,
    }
    writeln!(out, "{}", costs(session, done))?;
    Ok(())
}

/// What a call cost: its wall time, and how often it asked the host.
pub(crate) fn costs(session: &Session, done: &Done) -> String {
    let counts = session.services.counts();
    format!(
        "{:.1} ms; {} requests, {} uses of the storage, {} operations, {} events",
        done.took.as_secs_f64() * 1_000.0,
        counts.requests,
        counts.kv,
        counts.operations,
        counts.events
    )
}

/// The outcome of a call as recorded calls expect it: what does not change from run to run.
pub(crate) fn outcome_of(outcome: &Result<Value, CallError>) -> Value {
    match outcome {
        Ok(output) => json!({ "output": output }),
        Err(CallError::Fault(fault)) => {
            let mut expected = json!({ "kind": fault.kind.as_str(), "message": fault.message });
            if let Some(code) = &fault.code {
                expected["code"] = json!(code);
            }
            json!({ "fault": expected })
        }
        Err(CallError::Trap { class, .. }) => json!({ "stopped": class.to_string() }),
        Err(other) => json!({ "failed": other.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::fault::{Fault, FaultKind};

    use super::*;

    #[test]
    fn an_outcome_says_what_lasts() {
        assert_eq!(outcome_of(&Ok(json!({ "n": 1 }))), json!({ "output": { "n": 1 } }));
        let fault = Fault::new(FaultKind::Invalid, "no such name").with_code("name");
        let expected = json!({ "fault": { "kind": "invalid", "message": "no such name", "code": "name" } });
        assert_eq!(outcome_of(&Err(CallError::Fault(fault))), expected);
        assert_eq!(outcome_of(&Err(CallError::Overload))["failed"].as_str().map(str::is_empty), Some(false));
    }
}
