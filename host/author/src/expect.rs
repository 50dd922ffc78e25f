//! What a recorded call is expected to come to: its outcome, and what it leaves behind.

use anyhow::ensure;
use heddle_core::fault::Fault;
use heddle_marketplace::manifest::Manifest;
use heddle_runtime::CallError;
use serde_json::{Map, Value};

use crate::host::Services;
use crate::replay::Missed;
use crate::show;

/// Keys of an expectation of which one is there.
const OUTCOMES: [&str; 4] = ["output", "fault", "stopped", "failed"];
/// Keys that may be left out, and then are not compared.
const TRACES: [&str; 3] = ["operations", "events", "stored"];
/// Codes of faults by which the host ends a call, or refuses what came of it.
const CODES_OF_HOST: [&str; 3] = ["deadline", "out-of-service", "output"];

/// `{"output": …}` or `{"fault": {"kind", "code", "message"}}` with those keys that count; beside it what is asked of the
/// server: `operations`, `events`, and `stored`, the whole storage afterwards.
pub(crate) type Expected = Map<String, Value>;

/// What came of a call, with all traces that this plugin can leave.
///
/// # Errors
/// The call did not end by itself: another time it could come to something else.
pub(crate) fn to_record(
    outcome: &Result<Value, CallError>,
    services: &Services,
    manifest: &Manifest,
) -> anyhow::Result<Expected> {
    let by_host = match outcome {
        Ok(_) => None,
        Err(CallError::Fault(fault)) if !is_of_host(fault) => None,
        Err(error) => Some(error),
    };
    if let Some(error) = by_host {
        anyhow::bail!(
            "the call is not recorded, since the host ended it or refused its answer: {error}. Recorded calls are those \
             that the plugin ends by itself, with an answer or a fault"
        );
    }
    let mut found = found(outcome, services);
    let asked = &manifest.capabilities;
    let can_leave = [!asked.called().is_empty(), !asked.emitted().is_empty(), asked.kv.is_some()];
    for (name, _) in TRACES.iter().zip(can_leave).filter(|(_, can_leave)| !can_leave) {
        found.remove(*name);
    }
    Ok(found)
}

fn is_of_host(fault: &Fault) -> bool {
    fault.code.as_deref().is_some_and(|code| CODES_OF_HOST.contains(&code))
}

/// All that came of a call.
pub(crate) fn found(outcome: &Result<Value, CallError>, services: &Services) -> Expected {
    let mut found = Expected::new();
    if let Value::Object(outcome) = show::outcome_of(outcome) {
        found.extend(outcome);
    }
    for (name, trace) in TRACES.iter().zip([services.called(), services.emitted(), services.stored()]) {
        found.insert((*name).to_owned(), trace);
    }
    found
}

/// Refuses an expectation that would never be met, or that says nothing.
///
/// # Errors
/// Names the key.
pub(crate) fn check(expected: &Expected) -> anyhow::Result<()> {
    let known = OUTCOMES.iter().chain(&TRACES).copied().collect::<Vec<_>>();
    for name in expected.keys() {
        ensure!(
            known.contains(&name.as_str()),
            "'expect' has an unknown key '{name}'; it may have: {}",
            known.join(", ")
        );
    }
    let outcomes = OUTCOMES.iter().filter(|name| expected.contains_key(**name)).count();
    ensure!(outcomes == 1, "'expect' has to say one outcome: 'output' or 'fault'");
    Ok(())
}

/// What is not as expected, a line each.
pub(crate) fn misfits(expected: &Expected, found: &Expected, missed: &Missed) -> Vec<String> {
    let mut lines = Vec::new();
    for (requests, words) in [
        (&missed.unknown, "requests that were not recorded"),
        (&missed.unmade, "recorded requests that were not made"),
    ] {
        if !requests.is_empty() {
            lines.push(format!("  {words}: {}", requests.join(", ")));
        }
    }
    let (outcome, came) = (only(expected, &OUTCOMES), only(found, &OUTCOMES));
    if !is_outcome(&outcome, &came) {
        lines.push(format!("  expected: {outcome}\n  found:    {came}"));
    }
    for name in TRACES {
        let (wanted, came) = (expected.get(name), found.get(name));
        if let Some(wanted) = wanted.filter(|wanted| Some(*wanted) != came) {
            let came = came.unwrap_or(&Value::Null);
            lines.push(format!("  expected {name}: {wanted}\n  found {name}:    {came}"));
        }
    }
    lines
}

fn only(all: &Expected, names: &[&str]) -> Value {
    let kept = all.iter().filter(|(name, _)| names.contains(&name.as_str()));
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Of a fault only those keys count that are expected.
fn is_outcome(expected: &Value, found: &Value) -> bool {
    match (expected.get("fault").and_then(Value::as_object), found.get("fault")) {
        (Some(wanted), Some(fault)) => wanted.iter().all(|(key, value)| fault.get(key) == Some(value)),
        _ => expected == found,
    }
}

#[cfg(test)]
mod tests {
    use heddle_core::fault::FaultKind;
    use serde_json::json;

    use super::*;

    fn of(value: Value) -> Expected {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn an_outcome_fits_only_what_is_expected() {
        let fault = json!({ "fault": { "kind": "invalid", "message": "no", "code": "name" } });
        for (expected, found, fits) in [
            (json!({ "output": { "n": 1 } }), json!({ "output": { "n": 1 } }), true),
            (json!({ "output": { "n": 1 } }), json!({ "output": { "n": 1, "m": 1 } }), false),
            (json!({ "output": null }), json!({ "output": null }), true),
            (json!({ "fault": { "kind": "invalid" } }), fault.clone(), true),
            (json!({ "fault": { "kind": "invalid", "code": "other" } }), fault.clone(), false),
            (json!({ "output": {} }), fault, false),
        ] {
            let lines = misfits(&of(expected.clone()), &of(found.clone()), &Missed::default());
            assert_eq!(lines.is_empty(), fits, "{expected} {found}");
        }
    }

    #[test]
    fn what_a_call_leaves_is_compared_where_it_is_expected() {
        let found = json!({
            "output": 1, "stored": { "a": "1" }, "operations": [],
            "events": [{ "type": "plugin.greeter.met", "payload": {} }],
        });
        for (expected, names) in [
            (json!({ "output": 1 }), ""),
            (found.clone(), ""),
            (json!({ "output": 1, "stored": {} }), "stored"),
            (json!({ "output": 1, "stored": { "a": "2" } }), "stored"),
            (json!({ "output": 1, "events": [] }), "events"),
            (json!({ "output": 1, "operations": [{ "id": "site.list", "params": {} }] }), "operations"),
        ] {
            let lines = misfits(&of(expected.clone()), &of(found.clone()), &Missed::default()).join("\n");
            let is_named = names.is_empty() && lines.is_empty()
                || !names.is_empty() && lines.contains(&format!("expected {names}:"));
            assert!(is_named, "{expected}: {lines}");
        }
        let missed = Missed { unknown: Vec::new(), unmade: vec!["GET /v1/name".to_owned()] };
        let lines = misfits(&of(json!({ "output": 1 })), &of(found), &missed).join("\n");
        assert!(lines.contains("not made: GET /v1/name"), "{lines}");
    }

    #[test]
    fn an_expectation_says_one_outcome_and_has_known_keys() {
        check(&of(json!({ "output": null, "stored": {} }))).unwrap();
        for (bad, words) in [
            (json!({}), "one outcome"),
            (json!({ "stored": {} }), "one outcome"),
            (json!({ "output": 1, "fault": {} }), "one outcome"),
            (json!({ "output": 1, "emitted": [] }), "unknown key 'emitted'"),
        ] {
            let refused = check(&of(bad)).unwrap_err().to_string();
            assert!(refused.contains(words), "{refused}");
        }
    }

    #[test]
    fn a_call_that_the_host_ended_is_not_recorded() {
        let text = include_str!("templates/manifest.json.txt").replace("{id}", "greeter");
        let mut written: Value = serde_json::from_str(&text).unwrap();
        let keys = written.as_object_mut().unwrap();
        keys.remove("$schema");
        keys.extend([("files".to_owned(), json!([])), ("publisher".to_owned(), json!("greeter"))]);
        let manifest: Manifest = serde_json::from_value(written).unwrap();
        let services = Services::new(&crate::session::Surroundings::default(), &manifest).unwrap();
        let own =
            Err(CallError::Fault(Fault::new(FaultKind::Timeout, "the target is slow").with_code("slow")));
        let recorded = to_record(&own, &services, &manifest).unwrap();
        assert_eq!(
            Value::Object(recorded),
            json!({
                "fault": { "kind": "timeout", "message": "the target is slow", "code": "slow" }, "stored": {},
            })
        );
        let late =
            Fault::new(FaultKind::Timeout, "the call has no time left for a request").with_code("deadline");
        for ended in [CallError::Overload, CallError::Host("x".to_owned()), CallError::Fault(late)] {
            let refused = to_record(&Err(ended), &services, &manifest).unwrap_err().to_string();
            assert!(refused.contains("the host ended it"), "{refused}");
        }
    }
}
