//! Names of new objects whose natural key stands in the path of their create, and not among their fields: snapshots,
//! permissions, members of pools. The review and what the plan touches say them in full.

use heddle_sdk::{Change, ChangePlan, Host, Operation};
use serde_json::Value;

/// Completes the names of what a plan creates.
pub(crate) fn complete(host: &dyn Host, plan: &mut ChangePlan, changes: &[Change]) {
    for (at, change) in changes.iter().enumerate().filter(|(_, change)| change.operation == Operation::Create)
    {
        let feature = host.feature_binding(&change.feature).unwrap_or_default();
        let Some(kind) = feature["kind"].as_str().filter(|_| feature.get("action").is_none()) else {
            continue;
        };
        let binding = host.kind_binding(kind).unwrap_or_default();
        let Some(name) = full_name(&binding, change) else { continue };
        let Some(step) = plan.steps.get_mut(at).filter(|step| step.before.is_none()) else { continue };
        let begin = format!("create {} '", binding["noun"].as_str().unwrap_or_default());
        let old =
            step.summary.strip_prefix(&begin).and_then(|rest| rest.strip_suffix('\'')).map(str::to_owned);
        let Some(old) = old else { continue };
        step.summary = format!("{begin}{name}'");
        let (touched, whole) = (format!("{kind}/{old}"), format!("{kind}/{name}"));
        if let Some(touch) = plan.touches.iter_mut().find(|touch| **touch == touched) {
            *touch = whole.chars().take(200).collect();
        }
    }
}

/// The natural key of a payload, where not all of it is among the fields.
fn full_name(binding: &Value, change: &Change) -> Option<String> {
    let payload: Value = serde_json::from_str(&change.payload).ok()?;
    let names = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(|name| Some(name.as_str()?.to_owned())).collect()
    };
    let own = names(&binding["key"]);
    if own.iter().all(|name| binding["fields"].get(name).is_some()) {
        return None;
    }
    let all = names(&binding["within"]["key"]).into_iter().chain(own);
    let text = |name: String| match &payload[name.as_str()] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    Some(all.map(text).collect::<Vec<_>>().join(":"))
}
