//! The adapter against the simulated cluster, in the process of the test.

mod answers;
mod dangers;
mod device;
mod every;
mod fields;
mod inventory;
mod manifest;
mod others;
mod samples;
mod tasks;

use heddle_sdk::testing::{go_on_stage, send_stage};
use heddle_sdk::{
    Adapter, Change, ChangePlan, Completion, Fault, FaultExt as _, Operation, Outcome, Stage, Standing,
};
use serde_json::Value;

use crate::Proxmox;
use device::Device;

/// Most polls of one task in a test.
const POLLS_MAX: usize = 200;

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
    let host = device.host();
    let calls = plan.native.iter().filter(|call| call.stage == stage).count();
    let before = device.writes.get();
    let mut outcome = send_stage::<Proxmox>(&host, stage, &[], plan)?;
    for _ in 0..POLLS_MAX {
        match outcome {
            Outcome::Failed(fault) => return Err(fault),
            Outcome::Pending(task) => {
                device.wait_ms(u64::from(task.poll_after_ms));
                outcome = Proxmox::poll(&host, &task.token)?;
                let left = device.writes.get() - before;
                // Behind a task the host asks where to go on.
                if matches!(outcome, Outcome::Done(_)) && left < calls {
                    let left = u32::try_from(left).unwrap();
                    outcome = go_on_stage::<Proxmox>(&host, stage, &[], plan, left)?;
                }
            }
            Outcome::Done(completion) => return Ok(completion),
        }
    }
    Err(heddle_sdk::fault::timeout("the task does not end"))
}

fn standing(device: &Device, plan: &ChangePlan) -> String {
    match Proxmox::compare(&device.host(), &[], &plan.token) {
        Ok(comparison) => match comparison.standing {
            Standing::Before => "before".to_owned(),
            Standing::After => "after".to_owned(),
            Standing::Adjusted(what) => format!("adjusted {what}"),
            Standing::Stored(needs) => format!("stored, needs {}", needs.join(", ")),
            Standing::MovedOn(what) => format!("moved on {what}"),
            Standing::Unseen => "unseen".to_owned(),
            Standing::Other(what) => format!("other {what}"),
        },
        Err(fault) => format!("fault {} {:?}", fault.info().message, fault.info().code),
    }
}
