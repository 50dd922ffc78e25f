//! A guest uses secrets without ever seeing one, even when the device helps it.

use super::{CANARY, Lab};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_the_device_repeats_is_taken_out() {
    let lab = Lab::start().await;
    let report = lab.report("secret").await;
    assert_eq!(report["name"], "password");
    assert_eq!(report["unknown"], false);

    let seen = lab.device.seen();
    let key = seen[0].headers.iter().find(|(name, _)| name == "x-key").map(|(_, value)| value.as_str());
    assert_eq!(key, Some(CANARY), "the device did get it");

    let body = report["body"].as_str().unwrap();
    assert_eq!(body.matches("***").count(), 5, "{body}");
    for text in [body, &report["headers"].to_string()] {
        assert!(!text.contains("canary") && !text.contains("Y2FuYX"), "{text}");
    }
}
