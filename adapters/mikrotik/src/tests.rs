//! The adapter against the simulated router, in the process of the test.

mod answers;
mod by_hand;
mod concurrency;
mod device;
mod every;
mod hold;
mod inventory;
mod manifest;
mod model;
mod order;
mod others;
mod releases;
mod samples;
mod written;

use heddle_sdk::testing::send_stage;
use heddle_sdk::{Adapter, Change, ChangePlan, Fault, Operation, Outcome, Stage};
use serde_json::Value;

use crate::Mikrotik;
use device::Device;

fn change(feature: &str, operation: Operation, payload: &Value) -> Change {
    Change { feature: format!("mikrotik.{feature}"), operation, site: None, payload: payload.to_string() }
}

fn plan(device: &Device, change: &Change) -> Result<ChangePlan, Fault> {
    Mikrotik::plan(&device.host(), std::slice::from_ref(change))
}

/// Sends a stage, with what the host keeps of those before.
fn run(device: &Device, stage: Stage, plan: &ChangePlan) -> Result<Outcome, Fault> {
    let host = device.host();
    let (holes, left) = device.kept.take();
    host.holes.replace(holes);
    host.left.replace(left);
    let outcome = send_stage::<Mikrotik>(&host, stage, &[], plan);
    device.kept.replace((host.holes.take(), host.left.take()));
    outcome
}

fn standing(device: &Device, plan: &ChangePlan) -> String {
    heddle_sdk::testing::standing::<Mikrotik>(&device.host(), &[], plan)
}
