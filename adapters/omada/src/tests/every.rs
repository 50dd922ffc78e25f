//! Every feature of the description, from the plan to the way back.

use heddle_sdk::testing::Package;
use heddle_sdk::testing::conformance::{self, Checked, Exception, Rule, Sample, World, schema};
use serde_json::Value;

use super::device::{Device, package};
use super::{actions, samples};

struct Controller;

impl World for Controller {
    type Device = Device;

    fn package(&self) -> &Package {
        package()
    }

    fn device(&self, _feature: &Value) -> Device {
        Device::new()
    }

    fn sample(&self, device: &Device, feature: &Value) -> Checked<Sample> {
        let sample = if feature["binding"]["action"].is_object() {
            Sample::action(actions::payload(device, feature)?)
        } else {
            samples::prepare(device, feature)?
        };
        device.settle();
        Ok(sample)
    }

    fn exceptions(&self) -> Vec<Exception> {
        vec![Exception::new(
            Rule::Sampled,
            "an update of it says only what names the object, or what no answer shows",
            has_nothing_to_see,
        )]
    }
}

/// Whether an update has no field that an answer shows, beyond those that name the object.
fn has_nothing_to_see(feature: &Value) -> bool {
    let fields = &package().kind(feature["kind"].as_str().unwrap())["fields"];
    let named = samples::key_of(feature);
    let properties = schema(feature, "update").unwrap()["properties"].as_object().unwrap();
    properties.keys().all(|name| named.contains(name) || fields[name.as_str()]["unread"] == true)
}

/// The feature's id without the vendor.
pub(super) fn short(feature: &Value) -> &str {
    feature["id"].as_str().unwrap().strip_prefix("omada.").unwrap()
}

#[test]
fn every_feature_is_planned_applied_read_back_and_restored() {
    conformance::every_feature(&Controller);
}
