//! One queue of requests for each user, and rows that several people change at once.

use heddle_sdk::{Adapter as _, Fault, FaultExt, Operation, Stage};
use serde_json::{Value, json};

use super::device::Device;
use super::{change, plan, run, standing};
use crate::Mikrotik;

const POOL: &str = "ip/pool";

fn device() -> Device {
    let device = Device::new();
    device.person(POOL, "add", &json!({ "name": "sample", "ranges": "192.0.2.10-192.0.2.20" }));
    device
}

fn update(fields: &Value) -> heddle_sdk::Change {
    let mut payload = json!({ "name": "sample" });
    payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    change("dhcp.pool", Operation::Update, &payload)
}

fn row(device: &Device) -> Value {
    device.rows(POOL).into_iter().find(|row| row["name"] == "sample").unwrap_or_default()
}

/// A person changes the row at the console.
fn edit(device: &Device, fields: &Value) {
    let mut args = json!({ "numbers": row(device)[".id"] });
    args.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    device.person(POOL, "set", &args);
}

#[test]
fn field_that_another_person_changed_is_not_written_over() {
    let device = device();
    let made = plan(&device, &update(&json!({ "comment": "ours" }))).unwrap();
    edit(&device, &json!({ "comment": "theirs" }));
    let posts = device.posts.get();
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(matches!(&fault, Fault::StateMoved(info) if info.message.contains("sample")), "{fault:?}");
    assert_eq!(device.posts.get(), posts);
    assert_eq!(row(&device)["comment"], "theirs");
}

#[test]
fn another_field_of_the_same_row_stays_theirs_behind_the_change() {
    let device = device();
    let made = plan(&device, &update(&json!({ "comment": "ours" }))).unwrap();
    run(&device, Stage::Apply, &made).unwrap();
    edit(&device, &json!({ "ranges": "192.0.2.30-192.0.2.40" }));
    run(&device, Stage::Restore, &made).unwrap();
    assert_eq!(row(&device)["ranges"], "192.0.2.30-192.0.2.40");
    assert_eq!(row(&device).get("comment"), None);
}

#[test]
fn row_that_another_person_deleted_is_not_made_anew() {
    let device = device();
    let made = plan(&device, &update(&json!({ "comment": "ours" }))).unwrap();
    device.person(POOL, "remove", &json!({ "numbers": row(&device)[".id"] }));
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(matches!(fault.info().effect, heddle_sdk::Effect::None), "{fault:?}");
    assert_eq!(row(&device), Value::Null);
}

#[test]
fn row_that_is_gone_already_is_deleted() {
    let device = device();
    let delete = change("dhcp.pool", Operation::Delete, &json!({ "name": "sample" }));
    let made = plan(&device, &delete).unwrap();
    device.person(POOL, "remove", &json!({ "numbers": row(&device)[".id"] }));
    assert_eq!(standing(&device, &made), "after");
    assert!(Mikrotik::plan(&device.host(), &[delete]).unwrap().native.is_empty());
}
