//! Every feature of the description, from the plan to the way back.

use heddle_lab_mikrotik::{Release, Settings};
use heddle_sdk::testing::Package;
use heddle_sdk::testing::conformance::{self, Checked, Exception, Rule, Sample, World};
use serde_json::Value;

use super::device::{Device, package};
use super::samples;

struct Routers;

/// The newest of the releases that have a feature.
fn release_of(feature: &Value) -> Release {
    let minor = |word: &str| -> Option<u32> {
        feature["releases"][word].as_str()?.trim_start_matches("7.").parse().ok()
    };
    match (minor("from"), minor("to")) {
        (_, None) => Release::V7_24,
        (Some(17..), Some(_)) | (_, Some(22..)) => Release::V7_22,
        _ => Release::V7_16,
    }
}

/// The last word of what an action sends.
fn command(feature: &Value) -> &str {
    feature["binding"]["action"]["path"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default()
}

/// Commands to radios, cables, counters, storage and other devices, which are not simulated.
const PASSING: [&str; 73] = [
    "activate",
    "activate-user-profile",
    "add-device",
    "at-chat",
    "authorize",
    "balance-cancel",
    "balance-start",
    "bandwidth-test",
    "beep",
    "blink",
    "cable-test",
    "check-status",
    "clear",
    "close-session",
    "deactivate",
    "delete",
    "download",
    "download-file",
    "dump-saved-advertisements",
    "eject",
    "expire-password",
    "firmware-upgrade",
    "flat-snoop",
    "flood-ping",
    "format",
    "frequency-monitor",
    "frequency-scan",
    "generate-voucher",
    "grant",
    "install",
    "issued-revoke",
    "kill",
    "pause",
    "provision",
    "qkd-get-key",
    "qkd-get-key-with-ids",
    "refresh",
    "release",
    "remove-device",
    "remove-file",
    "renew",
    "replace-cancel",
    "replace-device",
    "resend",
    "reset-alert",
    "reset-configuration",
    "reset-counters",
    "reset-html",
    "reset-mac-address",
    "resume",
    "roam",
    "rtc",
    "scan",
    "scrub-cancel",
    "scrub-start",
    "self-test",
    "send-reconfigure",
    "set-identity",
    "set-nickname",
    "setup-repeater",
    "sniff",
    "sniffer",
    "snoop",
    "spectral-history",
    "spectral-scan",
    "speed-test",
    "stop",
    "trim",
    "uninstall",
    "unschedule",
    "upgrade",
    "wps-client",
    "wps-push-button",
];
/// Commands that ask an authority, a server or a file that is not there.
const ASKING: [&str; 5] = ["add-acme", "add-scep", "enable-ssl-certificate", "fetch", "scep-renew"];

impl World for Routers {
    type Device = Device;

    fn package(&self) -> &Package {
        package()
    }

    fn device(&self, feature: &Value) -> Device {
        Device::of(Settings { release: release_of(feature), ..Settings::default() })
    }

    fn sample(&self, device: &Device, feature: &Value) -> Checked<Sample> {
        samples::prepare(device, feature)
    }

    fn exceptions(&self) -> Vec<Exception> {
        vec![
            Exception::new(
                Rule::Trace,
                "it acts on radios, cables, counters, storage or other devices, which are not simulated",
                |feature| PASSING.contains(&command(feature)),
            ),
            Exception::new(
                Rule::Ends,
                "it asks others, and the simulated router reaches nobody",
                |feature| ASKING.contains(&command(feature)),
            ),
        ]
    }
}

/// The feature's id without the vendor.
pub(super) fn short(feature: &Value) -> &str {
    feature["id"].as_str().unwrap().strip_prefix("mikrotik.").unwrap()
}

#[test]
fn every_feature_is_planned_applied_read_back_and_restored() {
    conformance::every_feature(&Routers);
}
