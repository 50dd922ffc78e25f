//! What actions need and say, and what some of them do.

use heddle_sdk::testing::conformance::{Checked, schema};
use heddle_sdk::{FaultExt, Operation};
use serde_json::{Value, json};

use super::device::Device;
use super::every::short;
use super::samples::{key_of, needed, parents};
use super::world::{Place, kind, place, row};
use super::{applied, change, plan};

/// What stands before an action.
fn before(device: &Device, feature: &str, place: &Place) {
    let site = format!("/openapi/v1/{}/sites/{}", device.controller, device.sites[0]);
    match feature {
        "insights.client-block-undo" => {
            let known = row(device, "insights.known-client", place, &Value::Null).unwrap();
            let path = format!("{site}/clients/{}/block", known["mac"].as_str().unwrap());
            device.edit("POST", &path, &Value::Null).unwrap();
        }
        "switch.stack-port-update" => {
            let stack = row(device, "switch.stack", place, &Value::Null).unwrap();
            let path = format!("{site}/stacks/{}/ports", stack["id"].as_str().unwrap());
            device.seed(&path, &json!({ "id": "sample-1" })).unwrap();
        }
        "olt.service-port-update" => {
            let olt = row(device, "device.olt", place, &Value::Null).unwrap();
            let path = format!("{site}/olts/{}/pon/service-ports/list", olt["mac"].as_str().unwrap());
            device.seed(&path, &json!({ "index": 1 })).unwrap();
        }
        "diagnostics.cli-update" => {
            let path = format!("{site}/cli/configs/cli-type/1/device-type/1");
            device.seed(&path, &json!({ "id": "sample-1", "name": "old" })).unwrap();
        }
        _ => {}
    }
}

/// Values of payloads that a schema does not say.
fn by_hand(device: &Device, feature: &str) -> Value {
    match feature {
        "device.move" | "device.move-aps" => json!({ "targetSite": device.sites[1] }),
        "system.dhcp-reservation-create-from-leases" => {
            let networks = kind("switch.network");
            let network = row(device, "switch.network", &place(device, networks).unwrap(), &Value::Null);
            json!({ "netId": network.unwrap()["id"] })
        }
        _ => json!({}),
    }
}

/// What an action is about, and what it says.
pub(super) fn payload(device: &Device, feature: &Value) -> Checked<Value> {
    let schema = schema(feature, "create").ok_or("it has no create")?;
    let Some(id) = feature["binding"]["kind"].as_str() else {
        before(device, short(feature), &Place::new());
        let mut out = needed(device, feature, schema, &Place::new());
        lay(&mut out, &by_hand(device, short(feature)));
        return Ok(out);
    };
    let place = place(device, kind(id))?;
    let row = row(device, id, &place, &Value::Null)?;
    before(device, short(feature), &place);
    let mut out = needed(device, feature, schema, &place);
    lay(&mut out, &parents(feature, &place));
    for name in key_of(feature).into_iter().filter(|name| !place.contains_key(name)) {
        out[&name] = row[&name].clone();
    }
    lay(&mut out, &by_hand(device, short(feature)));
    Ok(out)
}

fn lay(under: &mut Value, over: &Value) {
    for (name, value) in over.as_object().into_iter().flatten() {
        under[name.as_str()] = value.clone();
    }
}

#[test]
fn blocked_client_is_seen_and_unblocked() {
    let device = Device::new();
    let known = kind("insights.known-client");
    let mac = row(&device, "insights.known-client", &place(&device, known).unwrap(), &Value::Null).unwrap();
    let payload = json!({ "mac": mac["mac"] });
    let block = applied(&device, "insights.client-block", Operation::Create, &payload);
    assert_eq!(super::standing(&device, &block), "after");
    let again = plan(&device, &change("insights.client-block", Operation::Create, &payload)).unwrap();
    assert!(again.native.is_empty(), "{:?}", again.native);
    let back = applied(&device, "insights.client-block-undo", Operation::Create, &payload);
    assert_eq!(super::standing(&device, &back), "after");
    assert_eq!(super::standing(&device, &block), "before");
}

#[test]
fn action_about_a_device_that_is_not_there_is_refused() {
    let device = Device::new();
    let payload = json!({ "mac": "02-00-00-00-00-01" });
    let fault = plan(&device, &change("device.reboot", Operation::Create, &payload)).unwrap_err();
    assert!(matches!(fault, heddle_sdk::Fault::NotFound(_)), "{}", fault.info().message);
}
