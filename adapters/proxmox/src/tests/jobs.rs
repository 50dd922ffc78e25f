//! Where a task is asked for and ended, what is none, and what is refused before one begins.

use std::cell::RefCell;

use heddle_sdk::crud::{Purpose, Vendor as _, Written};
use heddle_sdk::testing::{FakeHost, json_response};
use heddle_sdk::{Adapter as _, Effect, Fault, FaultExt, Operation, Outcome, Stage};
use serde_json::{Value, json};

use super::device::{Device, description};
use super::{change, plan, run, standing};
use crate::{Proxmox, Vendor};

/// Asks for a task that a token started at the second node, and returns the paths that were asked.
fn polled(status: &Value) -> (Outcome, Vec<String>) {
    let asked = RefCell::new(Vec::new());
    let host = FakeHost::new(|request, _| {
        asked.borrow_mut().push(request.path.clone());
        let data = if request.path.ends_with("/status") { status.clone() } else { json!([]) };
        Ok(json_response(200, &json!({ "data": data })))
    });
    let upid = b"UPID:pve2:0017C594:10ADB2769:665F1A20:qmclone:103:ops@pve!key:";
    let outcome = Proxmox::poll(&host, upid).unwrap();
    drop(host);
    (outcome, asked.into_inner())
}

/// Any node answers, and only the one that runs it knows the task.
#[test]
fn task_is_asked_for_at_its_own_node() {
    let (outcome, asked) = polled(&json!({ "status": "running", "node": "pve1" }));
    assert!(matches!(outcome, Outcome::Pending(_)));
    assert_eq!(asked.len(), 1);
    let path = asked[0].strip_prefix("/api2/json/nodes/pve2/tasks/").unwrap();
    assert!(path.starts_with("UPID%3Apve2%3A") && path.ends_with("/status"), "{path}");
    assert!(path.contains("ops%40pve%21key"), "{path}");
    let (outcome, _) = polled(&json!({ "status": "stopped", "exitstatus": "OK" }));
    assert!(matches!(outcome, Outcome::Done(_)));
}

#[test]
fn end_that_no_line_tells_is_not_known() {
    for end in [
        json!("unexpected status"),
        json!("unable to get last line from task log '/var/log/pve/tasks/0/x'"),
        json!(""),
        Value::Null,
    ] {
        let Outcome::Failed(fault) = polled(&json!({ "status": "stopped", "exitstatus": end })).0 else {
            panic!("{end}")
        };
        assert_eq!(fault.info().code.as_deref(), Some("vendor:task-lost"), "{end}");
        assert!(matches!(fault.info().effect, Effect::Possible), "the guest itself tells: {end}");
    }
    // A text that says why is the reason, whatever it is.
    for end in ["interrupted by signal", "received interrupt", "command 'x' failed: exit code 255", "ok"] {
        let Outcome::Failed(fault) = polled(&json!({ "status": "stopped", "exitstatus": end })).0 else {
            panic!("{end}")
        };
        assert_eq!(fault.info().code.as_deref(), Some("vendor:task-failed"), "{end}");
        assert!(fault.info().message.contains(end), "{end}");
    }
}

#[test]
fn every_job_can_be_ended_where_it_runs() {
    let mut count = 0;
    for feature in description()["features"].as_array().unwrap() {
        for word in ["create", "update", "delete", "action"] {
            let Some(cancel) = feature["binding"][word].get("cancel") else { continue };
            count += 1;
            let wanted =
                json!({ "method": "DELETE", "path": "/api2/json/nodes/{node}/tasks/{job}", "job": "/data" });
            assert_eq!(*cancel, wanted, "{} {word}", feature["id"]);
        }
    }
    assert!(count > 40, "{count}");
}

/// Some writes answer the name of what they made, a token, or nothing, although others of their kind start a task.
#[test]
fn text_that_is_no_task_is_the_end_of_a_write() {
    let vendor = Vendor::of(&FakeHost::new(|_, _| unreachable!()));
    for data in [
        json!("local:101/vm-101-disk-1.raw"),
        json!("9a3c1f60-27be-4f0c-8d44-1f0a51b6f6c2"),
        json!("bc:24:11:00:04:00"),
        json!("upid"),
        json!(""),
        Value::Null,
        json!(1),
    ] {
        let answer = json_response(200, &json!({ "data": data }));
        for purpose in [Purpose::Create, Purpose::Update, Purpose::Delete, Purpose::Act] {
            assert!(matches!(vendor.written(purpose, &answer), Ok(Written::Done)), "{data}");
        }
    }
}

#[test]
fn running_guest_is_refused_before_a_task_begins() {
    let device = Device::new();
    let made = plan(&device, &change("vm.config", Operation::Delete, &json!({ "vmid": 101 }))).unwrap();
    let tasks = device.lab().state()["tasks"].clone();
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(matches!(&fault, Fault::Conflict(info) if matches!(info.effect, Effect::None)), "{fault:?}");
    assert!(fault.info().message.contains("is running"), "{}", fault.info().message);
    assert_eq!((standing(&device, &made).as_str(), &device.lab().state()["tasks"]), ("before", &tasks));
}
