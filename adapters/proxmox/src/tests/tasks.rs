//! Tasks: running, done, with warnings, failed, and lost.

use heddle_lab::Fault as LabFault;
use heddle_lab_proxmox::Setup;
use heddle_sdk::testing::{FakeHost, json_response, send_stage};
use heddle_sdk::{Adapter as _, Effect, Fault, FaultExt, Operation, Outcome, Stage, Task, fault};
use serde_json::{Value, json};

use super::device::Device;
use super::{change, plan, run, standing};
use crate::Proxmox;

/// Sends an action up to its task.
fn started(device: &Device, feature: &str, payload: &Value) -> Task {
    let made = plan(device, &change(feature, Operation::Create, payload)).unwrap();
    match send_stage::<Proxmox>(&device.host(), Stage::Apply, &[], &made).unwrap() {
        Outcome::Pending(task) => task,
        other => panic!("{other:?} is no task"),
    }
}

fn polled(device: &Device, task: &Task) -> Outcome {
    Proxmox::poll(&device.host(), &task.token).unwrap()
}

fn failure(outcome: Outcome) -> Fault {
    match outcome {
        Outcome::Failed(found) => found,
        other => panic!("{other:?} is no failure"),
    }
}

#[test]
fn a_task_is_pending_until_it_ends() {
    let device = Device::new();
    let task = started(&device, "vm.start", &json!({ "vmid": 103 }));
    assert!(matches!(polled(&device, &task), Outcome::Pending(_)));
    device.wait_ms(2_000);
    assert!(matches!(polled(&device, &task), Outcome::Done(done) if done.warnings.is_empty()));
}

#[test]
fn warnings_of_a_task_are_those_of_its_completion() {
    let device = Device::new();
    device.lab().fault(LabFault::vendor("task_fail", json!({ "text": "WARNINGS: 1" })).times(1));
    let task = started(&device, "vm.start", &json!({ "vmid": 103 }));
    device.wait_ms(5_000);
    match polled(&device, &task) {
        Outcome::Done(done) => assert_eq!(done.warnings.len(), 1, "{:?}", done.warnings),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_reason_of_a_task_that_failed_is_told_and_something_may_have_changed() {
    let device = Device::new();
    device.lab().fault(
        LabFault::vendor("task_fail", json!({ "text": "start failed: QEMU exited with code 1" })).times(1),
    );
    let task = started(&device, "vm.start", &json!({ "vmid": 103 }));
    device.wait_ms(5_000);
    let fault = failure(polled(&device, &task));
    assert!(fault.info().message.contains("QEMU exited with code 1"));
    assert_eq!(fault.info().code.as_deref(), Some("vendor:task-failed"));
    assert!(matches!(fault.info().effect, Effect::Possible));
}

#[test]
fn what_became_of_a_lost_task_is_not_known() {
    let device = Device::new();
    device.lab().fault(LabFault::vendor("task_fail", json!({ "text": "unexpected status" })).times(1));
    let task = started(&device, "vm.start", &json!({ "vmid": 103 }));
    device.wait_ms(5_000);
    let fault = failure(polled(&device, &task));
    assert_eq!(fault.info().code.as_deref(), Some("vendor:task-lost"));
    assert!(matches!(fault.info().effect, Effect::Possible));
    let forgotten = b"UPID:pve1:0017C594:0ADB2769:665F1A20:qmstart:103:root@pam:";
    let fault = failure(Proxmox::poll(&device.host(), forgotten).unwrap());
    assert_eq!(fault.info().code.as_deref(), Some("vendor:task-lost"));
}

#[test]
fn a_node_that_is_away_is_no_end_of_a_task() {
    let device = Device::new();
    let task = started(&device, "vm.start", &json!({ "vmid": 103 }));
    device.lab().fault(LabFault::vendor("node_offline", json!({ "node": "pve2" })));
    device.wait_ms(1);
    assert!(matches!(Proxmox::poll(&device.host(), &task.token), Err(Fault::NotReady(_))));
}

#[test]
fn a_guest_under_high_availability_is_waited_for() {
    let device = Device::of(Setup::default());
    let task = started(&device, "vm.stop", &json!({ "vmid": 102 }));
    // The task ends first, and the guest stops some time later.
    device.wait_ms(700);
    assert!(matches!(polled(&device, &task), Outcome::Pending(_)));
    device.wait_ms(5_000);
    assert!(matches!(polled(&device, &task), Outcome::Done(_)));
}

#[test]
fn a_start_is_seen_and_taken_back() {
    let device = Device::new();
    let made = plan(&device, &change("vm.start", Operation::Create, &json!({ "vmid": 103 }))).unwrap();
    assert_eq!(standing(&device, &made), "before");
    run(&device, Stage::Apply, &made).unwrap();
    assert_eq!(standing(&device, &made), "after");
    run(&device, Stage::Restore, &made).unwrap();
    assert_eq!(standing(&device, &made), "before");
    let inverse = &made.inverse.unwrap()[0];
    assert_eq!(inverse.feature, "proxmox.vm.shutdown");
}

/// A task that ended, of a type, with what its log and the zones of the nodes say.
fn ended(kind: &str, log: &Value, zones: &Value) -> Vec<String> {
    let host = FakeHost::new(|request, _| {
        let path = request.path.as_str();
        let data = match path {
            _ if path.ends_with("/status") => json!({ "status": "stopped", "exitstatus": "OK" }),
            _ if path.contains("/log?") => log.clone(),
            _ if path.ends_with("?type=sdn") => zones.clone(),
            _ => return Err(fault::generic(format!("{path} is not asked for"))),
        };
        Ok(json_response(200, &json!({ "data": data })))
    });
    let upid = format!("UPID:pve1:0017C594:0ADB2769:665F1A20:{kind}:x:root@pam:");
    match Proxmox::poll(&host, upid.as_bytes()).unwrap() {
        Outcome::Done(done) => done.warnings,
        other => panic!("{other:?}"),
    }
}

#[test]
fn interfaces_and_zones_that_did_not_come_up_are_warnings() {
    let log =
        json!([{ "n": 1, "t": "error: vmbr9: bridge port eno9 does not exist" }, { "n": 2, "t": "TASK OK" }]);
    assert_eq!(ended("srvreload", &log, &json!([])), ["error: vmbr9: bridge port eno9 does not exist"]);
    let zones = json!([
        { "type": "sdn", "sdn": "lan", "node": "pve1", "status": "ok" },
        { "type": "sdn", "sdn": "lan", "node": "pve2", "status": "error" },
    ]);
    let found = ended("reloadnetworkall", &json!([]), &zones);
    assert_eq!(found, ["the zone 'lan' is in error on the node 'pve2'"]);
    assert!(ended("qmstart", &json!([]), &json!([])).is_empty());
}
