//! The adapter against the simulated firewall, in the process of the test.

mod answers;
mod concurrency;
mod device;
mod doing;
mod every;
mod inventory;
mod manifest;
mod model;
mod places;
mod releases;
mod samples;
mod samples_of_actions;
mod samples_of_services;
mod written;

use heddle_sdk::testing::send_stage;
use heddle_sdk::{Adapter, Change, ChangePlan, Fault, Operation, Outcome, Stage};
use serde_json::Value;

use crate::Pfsense;
use device::Device;

fn change(feature: &str, operation: Operation, payload: &Value) -> Change {
    Change { feature: format!("pfsense.{feature}"), operation, site: None, payload: payload.to_string() }
}

fn plan(device: &Device, change: &Change) -> Result<ChangePlan, Fault> {
    Pfsense::plan(&device.host(), std::slice::from_ref(change))
}

fn run(device: &Device, stage: Stage, plan: &ChangePlan) -> Result<Outcome, Fault> {
    send_stage::<Pfsense>(&device.host(), stage, &[], plan)
}

fn standing(device: &Device, plan: &ChangePlan) -> String {
    heddle_sdk::testing::standing::<Pfsense>(&device.host(), &[], plan)
}
