//! The adapter against the simulated firewall, in the process of the test.

mod answers;
mod device;
mod every;
mod inventory;
mod manifest;
mod others;
mod samples;

use heddle_sdk::testing::send_stage;
use heddle_sdk::{Adapter, Change, ChangePlan, Fault, Operation, Outcome, Stage, Standing};
use serde_json::Value;

use crate::Opnsense;
use device::Device;

fn change(feature: &str, operation: Operation, payload: &Value) -> Change {
    Change { feature: format!("opnsense.{feature}"), operation, site: None, payload: payload.to_string() }
}

fn plan(device: &Device, change: &Change) -> Result<ChangePlan, Fault> {
    Opnsense::plan(&device.host(), std::slice::from_ref(change))
}

fn run(device: &Device, stage: Stage, plan: &ChangePlan) -> Result<Outcome, Fault> {
    send_stage::<Opnsense>(&device.host(), stage, &[], plan)
}

fn standing(device: &Device, plan: &ChangePlan) -> String {
    match Opnsense::compare(&device.host(), &[], &plan.token) {
        Ok(comparison) => match comparison.standing {
            Standing::Before => "before".to_owned(),
            Standing::After => "after".to_owned(),
            Standing::Adjusted(what) => format!("adjusted {what}"),
            Standing::Stored(_) => "stored".to_owned(),
            Standing::MovedOn(what) => format!("moved on {what}"),
            Standing::Other(what) => format!("other {what}"),
        },
        Err(fault) => format!("fault {fault:?}"),
    }
}
