//! Every feature of the description, from the plan to the way back.

use heddle_sdk::testing::Package;
use heddle_sdk::testing::conformance::{self, Checked, Sample, World};
use serde_json::Value;

use super::device::{Device, package};
use super::samples;

struct Cluster;

impl World for Cluster {
    type Device = Device;

    fn package(&self) -> &Package {
        package()
    }

    fn device(&self, feature: &Value) -> Device {
        samples::device(short(feature))
    }

    fn sample(&self, device: &Device, feature: &Value) -> Checked<Sample> {
        if feature["binding"]["action"].is_object() {
            samples::prepare_action(device, feature).map(Sample::action)
        } else {
            samples::prepare(device, feature)
        }
    }
}

pub(super) fn feature(id: &str) -> &'static Value {
    let name = format!("proxmox.{id}");
    package().feature(&name).unwrap_or_else(|| panic!("no feature {name}"))
}

/// The feature's id without the vendor.
pub(super) fn short(feature: &Value) -> &str {
    feature["id"].as_str().unwrap().strip_prefix("proxmox.").unwrap()
}

#[test]
fn every_feature_is_planned_applied_read_back_and_restored() {
    conformance::every_feature(&Cluster);
}
