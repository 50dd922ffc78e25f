//! The adapter against the simulated console, in the process of the test.

mod answers;
mod concurrency;
mod device;
mod every;
mod inventory;
mod manifest;
mod model;
mod parts;
mod releases;
mod samples;
mod wire;
mod written;

use heddle_sdk::testing::send_stage;
use heddle_sdk::{Adapter, Change, ChangePlan, Fault, Operation, Outcome, Stage};
use serde_json::Value;

use crate::Unifi;
use device::Device;

fn change(feature: &str, operation: Operation, payload: &Value) -> Change {
    Change { feature: format!("unifi.{feature}"), operation, site: None, payload: payload.to_string() }
}

fn plan(device: &Device, change: &Change) -> Result<ChangePlan, Fault> {
    Unifi::plan(&device.host(), std::slice::from_ref(change))
}

fn run(device: &Device, stage: Stage, plan: &ChangePlan) -> Result<Outcome, Fault> {
    send_stage::<Unifi>(&device.host(), stage, &[], plan)
}

/// Plans and applies a change.
#[track_caller]
fn applied(device: &Device, feature: &str, operation: Operation, payload: &Value) -> ChangePlan {
    let planned = plan(device, &change(feature, operation, payload)).unwrap();
    run(device, Stage::Apply, &planned).unwrap();
    device.rest();
    planned
}

fn standing(device: &Device, plan: &ChangePlan) -> String {
    heddle_sdk::testing::standing::<Unifi>(&device.host(), &[], plan)
}
