//! What a reviewer must know that no binding says: disks that go, cards that change, and where a new rule stands.

use heddle_sdk::{Change, ChangePlan, Danger, Operation};
use serde_json::{Map, Value};

use crate::order;

/// Keys of volumes in the configuration of a guest, without their numbers.
const VOLUMES: [&str; 8] = ["scsi", "virtio", "sata", "ide", "efidisk", "tpmstate", "rootfs", "mp"];

/// Raises the danger of a plan, and adds warnings.
pub(crate) fn complete(plan: &mut ChangePlan, changes: &[Change]) {
    if plan.native.is_empty() {
        return;
    }
    for change in changes {
        let Ok(Value::Object(payload)) = serde_json::from_str::<Value>(&change.payload) else { continue };
        let feature = change.feature.as_str();
        let is_config = ["proxmox.vm.config", "proxmox.container.config"].contains(&feature);
        if is_config && change.operation == Operation::Update {
            of_config(plan, &payload);
            of_volumes(plan, &payload);
        }
        if order::is_rule(feature) {
            of_rule(plan, change.operation, &payload);
        }
    }
}

fn of_config(plan: &mut ChangePlan, payload: &Map<String, Value>) {
    for (name, value) in payload {
        let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
        match (base, value.is_null()) {
            ("unused", true) => {
                raise(plan, Danger::Catastrophic);
                warn(plan, format!("'{name}' is deleted with all that is on it"));
            }
            (volume, true) if VOLUMES.contains(&volume) => {
                raise(plan, Danger::Destructive);
                warn(plan, format!("'{name}' is detached; its volume stays as an unused one"));
            }
            ("net", _) => raise(plan, Danger::Destructive),
            _ => {}
        }
    }
}

/// A volume in the place of another one detaches that.
fn of_volumes(plan: &mut ChangePlan, payload: &Map<String, Value>) {
    let before = plan.steps.iter().filter_map(|step| serde_json::from_str(step.before.as_deref()?).ok());
    let known: Vec<Value> = before.collect();
    for (name, value) in payload.iter().filter(|(_, value)| value.get("file").is_some()) {
        let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_other = |before: &Value| {
            before.get(name).and_then(|old| old.get("file")).is_some_and(|old| Some(old) != value.get("file"))
        };
        if VOLUMES.contains(&base) && known.iter().any(is_other) {
            raise(plan, Danger::Destructive);
            warn(plan, format!("'{name}' gets another volume; the old one stays as an unused one"));
        }
    }
}

fn of_rule(plan: &mut ChangePlan, operation: Operation, payload: &Map<String, Value>) {
    match operation {
        Operation::Create => {
            warn(
                plan,
                "a new rule stands at position 0, before all others; move it where it belongs".to_owned(),
            );
            if payload.get("enable") != Some(&Value::Bool(true)) {
                warn(plan, "the new rule is off".to_owned());
            }
        }
        Operation::Delete => {
            warn(plan, "made again by another change, the rule stands before all others".to_owned());
        }
        Operation::Update => {}
    }
}

fn raise(plan: &mut ChangePlan, danger: Danger) {
    let rank = |danger: Danger| match danger {
        Danger::Normal => 0,
        Danger::Destructive => 1,
        Danger::Catastrophic => 2,
    };
    if rank(danger) > rank(plan.danger) {
        plan.danger = danger;
    }
}

fn warn(plan: &mut ChangePlan, warning: String) {
    if !plan.warnings.contains(&warning) {
        plan.warnings.push(warning);
    }
}
