//! Every feature of the description, from the plan to the way back.

use heddle_lab_pfsense::Settings;
use heddle_sdk::testing::Package;
use heddle_sdk::testing::conformance::{self, Checked, Sample, World};
use serde_json::Value;

use super::device::{Device, package};
use super::samples;

struct Firewall;

impl World for Firewall {
    type Device = Device;

    fn package(&self) -> &Package {
        package()
    }

    fn device(&self, feature: &Value) -> Device {
        // What is installed cannot be installed.
        let packages = (short(feature) == "system.package").then(Vec::new);
        Device::of(Settings { packages, update_to: Some("2.8.2-RELEASE".to_owned()), ..Settings::default() })
    }

    fn sample(&self, device: &Device, feature: &Value) -> Checked<Sample> {
        samples::prepare(device, feature)
    }
}

/// The feature's id without the vendor.
pub(super) fn short(feature: &Value) -> &str {
    feature["id"].as_str().unwrap().strip_prefix("pfsense.").unwrap()
}

#[test]
fn every_feature_is_planned_applied_read_back_and_restored() {
    conformance::every_feature(&Firewall);
}
