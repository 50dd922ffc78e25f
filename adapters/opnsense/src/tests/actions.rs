//! Every action and every delete of what is otherwise only read, from the plan to what it leaves on the firewall.

use heddle_sdk::{ChangePlan, FaultExt, Operation, Stage};
use serde_json::Value;

use super::device::Device;
use super::every::{Checked, planned, sent, short, stands, word};
use super::payloads::prepared;
use super::{change, run_of};

fn is_told(made: &ChangePlan) -> bool {
    made.warnings.iter().any(|warning| warning.contains("cannot be taken back"))
}

pub(super) fn check(device: &Device, feature: &Value) -> Checked<()> {
    let payload = prepared(device, feature)?;
    let action = &feature["binding"]["action"];
    let made = planned(device, feature, Operation::Create, &payload)?;
    if made.native.is_empty() {
        return Err(format!("{payload} has nothing to do"));
    }
    if action.get("effect").is_none() {
        let before = device.lab().state();
        let change = change(short(feature), Operation::Create, &payload);
        run_of(device, &change, &made).map_err(|fault| format!("{payload}: {}", fault.info().message))?;
        stands(device, &made, "unseen", "done")?;
        return match (is_told(&made), device.lab().state() == before) {
            (true, false) => Ok(()),
            (false, _) => Err("nothing says that it cannot be taken back".to_owned()),
            (_, true) => Err("it left nothing on the firewall".to_owned()),
        };
    }
    stands(device, &made, "before", "planned")?;
    sent(device, Stage::Apply, &made)?;
    stands(device, &made, "after", "done")?;
    // What was renamed is not found by its old name.
    let is_rename = action["effect"].get("key").is_some();
    if !is_rename && !planned(device, feature, Operation::Create, &payload)?.native.is_empty() {
        return Err("a second time has calls, too".to_owned());
    }
    if action.get("inverse").is_some() != made.inverse.is_some() {
        return Err(format!("its inverse is {:?}", made.inverse));
    }
    if action.get("back").is_none() {
        return if is_told(&made) {
            Ok(())
        } else {
            Err("nothing says that it cannot be taken back".to_owned())
        };
    }
    sent(device, Stage::Restore, &made)?;
    stands(device, &made, "before", "taken back")
}

/// A feature that only deletes.
pub(super) fn check_delete(device: &Device, feature: &Value) -> Checked<()> {
    let payload = prepared(device, feature)?;
    let made = planned(device, feature, Operation::Delete, &payload)?;
    if made.native.is_empty() {
        return Err(format!("the {} of {payload} has nothing to do", word(Operation::Delete)));
    }
    stands(device, &made, "before", "planned")?;
    sent(device, Stage::Apply, &made)?;
    stands(device, &made, "after", "deleted")?;
    if is_told(&made) { Ok(()) } else { Err("nothing says that it is final".to_owned()) }
}
