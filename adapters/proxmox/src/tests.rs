//! The adapter against the simulated cluster, in the process of the test.

mod answers;
mod cassette;
mod concurrency;
mod dangers;
mod device;
mod every;
mod fields;
mod inventory;
mod jobs;
mod manifest;
mod model;
mod others;
mod releases;
mod samples;
mod tasks;
mod transport;
mod written;

use heddle_sdk::testing::finish_stage;
use heddle_sdk::{Adapter, Change, ChangePlan, Completion, Fault, Operation, Stage};
use serde_json::Value;

use crate::Proxmox;
use device::Device;

fn change(feature: &str, operation: Operation, payload: &Value) -> Change {
    Change { feature: format!("proxmox.{feature}"), operation, site: None, payload: payload.to_string() }
}

fn plan(device: &Device, change: &Change) -> Result<ChangePlan, Fault> {
    Proxmox::plan(&device.host(), std::slice::from_ref(change))
}

/// How long a host waits before it compares.
const SETTLE_MS: u64 = 3_000;

/// Sends a stage, waits for the task that it ends with, and lets the cluster settle.
fn run(device: &Device, stage: Stage, plan: &ChangePlan) -> Result<Completion, Fault> {
    let outcome = ended(device, stage, plan);
    device.wait_ms(SETTLE_MS);
    outcome
}

fn ended(device: &Device, stage: Stage, plan: &ChangePlan) -> Result<Completion, Fault> {
    finish_stage::<Proxmox>(&device.host(), stage, &[], plan, |ms| device.wait_ms(ms))
}

fn standing(device: &Device, plan: &ChangePlan) -> String {
    heddle_sdk::testing::standing::<Proxmox>(&device.host(), &[], plan)
}
