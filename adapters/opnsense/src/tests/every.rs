//! Every feature of the description, from the plan to the way back.

use heddle_sdk::testing::Package;
use heddle_sdk::testing::conformance::{self, Checked, Exception, Rule, Sample, World};
use serde_json::Value;

use super::device::{Device, package};
use super::{payloads, samples};

struct Firewall;

impl World for Firewall {
    type Device = Device;

    fn package(&self) -> &Package {
        package()
    }

    fn device(&self, _feature: &Value) -> Device {
        Device::new()
    }

    fn sample(&self, device: &Device, feature: &Value) -> Checked<Sample> {
        let has = |word: &str| conformance::schema(feature, word).is_some();
        if feature["binding"]["action"].is_object() {
            return payloads::prepared(device, feature).map(Sample::action);
        }
        if !has("create") && !has("update") {
            return payloads::prepared(device, feature).map(Sample::deletion);
        }
        let sample = samples::prepare(device, feature)?;
        device.activate(feature);
        Ok(sample)
    }

    fn exceptions(&self) -> Vec<Exception> {
        vec![Exception::new(
            Rule::Ends,
            "it ends with a restart, which takes along what would prove its end",
            |feature| feature["id"] == "opnsense.core.firmware-update",
        )]
    }
}

/// The feature's id without the vendor.
pub(super) fn short(feature: &Value) -> &str {
    feature["id"].as_str().unwrap().strip_prefix("opnsense.").unwrap()
}

#[test]
fn every_feature_is_planned_applied_read_back_and_restored() {
    conformance::every_feature(&Firewall);
}
