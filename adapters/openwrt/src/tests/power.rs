//! Restart, upgrade and reset.

use heddle_sdk::testing::send_stage;
use heddle_sdk::{Adapter, Danger, Fault, Operation, Outcome, Stage};
use serde_json::json;

use super::device::{Device, router};
use super::{change, plan};
use crate::OpenWrt;

fn up(device: &Device, uptime: u64, version: &str) {
    let mut answers = device.answers.borrow_mut();
    answers
        .insert("system.board".to_owned(), json!([0, {"board_name": "m", "release": {"version": version}}]));
    answers.insert("system.info".to_owned(), json!([0, {"uptime": uptime}]));
}

#[test]
fn a_restart_is_pending_until_the_uptime_starts_again() {
    let device = router();
    up(&device, 5000, "24.10");
    device.answers.borrow_mut().insert("system.reboot".to_owned(), json!([0]));
    let plan = plan(&device, &change("system.reboot", Operation::Update, &json!({}))).unwrap();
    assert_eq!(plan.danger, Danger::Catastrophic);
    assert!(plan.inverse.is_none() && !plan.holds);
    let Outcome::Pending(task) = send_stage::<OpenWrt>(&device.host(), Stage::Apply, &[], &plan).unwrap()
    else {
        panic!("a restart takes time")
    };
    assert!(matches!(OpenWrt::poll(&device.host(), &task.token).unwrap(), Outcome::Pending(_)));
    *device.breaks_at.borrow_mut() = Some("system.board".to_owned());
    assert!(matches!(OpenWrt::poll(&device.host(), &task.token).unwrap(), Outcome::Pending(_)));
    *device.breaks_at.borrow_mut() = None;
    up(&device, 12, "24.10");
    assert!(matches!(OpenWrt::poll(&device.host(), &task.token).unwrap(), Outcome::Done(_)));
}

#[test]
fn an_image_with_another_hash_is_not_installed() {
    let device = router();
    up(&device, 5000, "24.10");
    device
        .answers
        .borrow_mut()
        .insert("file.exec".to_owned(), json!([0, {"code": 0, "stdout": "beef  /tmp/firmware.bin"}]));
    let payload = json!({"url": "https://example.org/image.bin", "sha256": "ab".repeat(32)});
    let plan = plan(&device, &change("system.firmware-upgrade", Operation::Update, &payload)).unwrap();
    assert_eq!(plan.native.len(), 3);
    assert!(
        plan.native[2].json().unwrap().to_string().contains("\"keep\":true"),
        "settings are kept unless asked otherwise"
    );
    let host = device.host();
    assert!(matches!(send_stage::<OpenWrt>(&host, Stage::Apply, &[], &plan), Err(Fault::Invalid(_))));
    assert!(!host.sent.borrow().iter().any(|call| call["params"][2] == "upgrade_start"));
}

#[test]
fn an_action_is_planned_alone() {
    let device = router();
    up(&device, 1, "24.10");
    let reset = change("system.factory-reset", Operation::Update, &json!({}));
    assert!(matches!(OpenWrt::plan(&device.host(), &[reset.clone(), reset]), Err(Fault::Invalid(_))));
}
