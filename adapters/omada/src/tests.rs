//! The adapter against the simulated controller, in the process of the test.

mod actions;
mod answers;
mod cassette;
mod device;
mod every;
mod inventory;
mod login;
mod manifest;
mod model;
mod others;
mod releases;
mod samples;
mod sites;
mod transport;
mod world;
mod writing;
mod written;

use heddle_sdk::testing::send_stage;
use heddle_sdk::{Adapter, Change, ChangePlan, Fault, Operation, Outcome, Stage};
use serde_json::Value;

use crate::Omada;
use device::Device;

fn change(feature: &str, operation: Operation, payload: &Value) -> Change {
    Change { feature: format!("omada.{feature}"), operation, site: None, payload: payload.to_string() }
}

fn plan(device: &Device, change: &Change) -> Result<ChangePlan, Fault> {
    Omada::plan(&device.host(), std::slice::from_ref(change))
}

/// Sends a stage, and what the plan left open stays known for the next one.
fn run(device: &Device, stage: Stage, plan: &ChangePlan) -> Result<Outcome, Fault> {
    let host = device.host();
    host.holes.replace(device.holes.borrow().clone());
    host.left.replace(device.left.borrow().clone());
    let outcome = send_stage::<Omada>(&host, stage, &[], plan);
    device.holes.replace(host.holes.borrow().clone());
    device.left.replace(host.left.borrow().clone());
    outcome
}

fn standing(device: &Device, plan: &ChangePlan) -> String {
    heddle_sdk::testing::standing::<Omada>(&device.host(), &[], plan)
}

/// Plans and applies a change that is expected to work.
fn applied(device: &Device, feature: &str, operation: Operation, payload: &Value) -> ChangePlan {
    let made = plan(device, &change(feature, operation, payload)).unwrap();
    device.forget_calls();
    run(device, Stage::Apply, &made).unwrap();
    made
}
