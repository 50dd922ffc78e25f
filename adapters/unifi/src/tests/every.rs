//! Every feature of the description, from the plan to the way back.

use heddle_lab_unifi::{Kind, Release, Settings};
use heddle_sdk::testing::Package;
use heddle_sdk::testing::conformance::{self, Checked, Exception, Rule, Sample, World, schema};
use serde_json::Value;

use super::device::{Device, package};
use super::samples;

struct Controller;

impl World for Controller {
    type Device = Device;

    fn package(&self) -> &Package {
        package()
    }

    fn device(&self, feature: &Value) -> Device {
        // What later releases have taken out is tried at the last one that has it.
        let release = match feature["releases"]["to"].as_str() {
            Some("9.5") => Release::V9_5,
            Some(_) => Release::V10_3,
            None => Release::default(),
        };
        let is_of_list = short(feature) == "firewall.rule";
        let is_of_console = ["firmware.console-update", "system.reboot-console"].contains(&short(feature));
        let kind = if short(feature) == "system.reboot-cloudkey" { Kind::Classic } else { Kind::UnifiOs };
        let device = Device::of(Settings { kind, release, has_zones: !is_of_list, ..Settings::default() });
        if is_of_console { device.with_account() } else { device }
    }

    fn sample(&self, device: &Device, feature: &Value) -> Checked<Sample> {
        samples::prepare(device, feature)
    }

    fn exceptions(&self) -> Vec<Exception> {
        vec![Exception::new(
            Rule::Sampled,
            "an update of it says only what names the object",
            has_nothing_to_see,
        )]
    }
}

/// Whether an update has no field beyond those that name the object.
fn has_nothing_to_see(feature: &Value) -> bool {
    let named = samples::key_of(feature);
    let properties = schema(feature, "update").unwrap()["properties"].as_object().unwrap();
    properties.keys().all(|name| named.contains(name))
}

/// The feature's id without the vendor.
pub(super) fn short(feature: &Value) -> &str {
    feature["id"].as_str().unwrap().strip_prefix("unifi.").unwrap()
}

#[test]
fn every_feature_is_planned_applied_read_back_and_restored() {
    conformance::every_feature(&Controller);
}
