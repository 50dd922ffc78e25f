//! The adapter against the simulated firewall, in the process of the test.

mod answers;
mod cassette;
mod concurrency;
mod device;
mod doing;
mod every;
mod inventory;
mod manifest;
mod model;
mod others;
mod payloads;
mod releases;
mod samples;
mod transport;
mod written;

use std::time::Duration;

use heddle_sdk::testing::send_stage;
use heddle_sdk::{Adapter, Change, ChangePlan, Fault, Operation, Outcome, Stage, fault};
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

/// Waits for a job, as the host does.
fn finished(device: &Device, mut outcome: Outcome) -> Result<(), Fault> {
    for _ in 0..100 {
        match outcome {
            Outcome::Done(_) => return Ok(()),
            Outcome::Failed(fault) => return Err(fault),
            Outcome::Pending(task) => {
                device.lab().advance(Duration::from_millis(task.poll_after_ms.into()));
                outcome = Opnsense::poll(&device.host(), &task.token)?;
            }
        }
    }
    Err(fault::timeout("the job does not end"))
}

fn standing(device: &Device, plan: &ChangePlan) -> String {
    heddle_sdk::testing::standing::<Opnsense>(&device.host(), &[], plan)
}
