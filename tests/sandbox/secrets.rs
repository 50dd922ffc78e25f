//! A guest uses secrets without ever seeing one, even when the device helps it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::package::manifest_with_login;
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

    let body = report["echo"]["body"].as_str().unwrap();
    assert_eq!(body.matches("***").count(), 5, "{body}");
    for text in [body, &report["echo"]["headers"].to_string()] {
        assert!(!text.contains("canary") && !text.contains("Y2FuYX"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_inside_of_base64_is_taken_out() {
    let lab = Lab::start().await;
    let report = lab.report("secret").await;
    let sent = STANDARD.encode(format!("root:{CANARY}"));
    assert_eq!(lab.device.authorization(), format!("Basic {sent}"), "the device did get it");
    let shown = report["basic"]["body"].as_str().unwrap();
    assert!(shown.contains("***") && !shown.contains(&sent[8..16]), "{shown}");
}

/// Also in an answer to a request that carried none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_the_device_repeats_later_is_taken_out() {
    let lab = Lab::start().await;
    assert_eq!(lab.report("secret").await["later"]["body"], "***");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_goes_nowhere_but_into_a_gap_of_the_request() {
    let lab = Lab::start().await;
    let report = lab.report("secret-places").await;
    for (place, outcome) in report.as_object().unwrap() {
        assert_eq!(outcome["fault"], "denied", "'{place}' was answered with {outcome}");
    }
    assert!(lab.device.seen().is_empty(), "{:?}", lab.device.seen());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_exposes_no_secret_that_the_device_repeats() {
    let lab = Lab::start_with(&manifest_with_login()).await;
    let report = lab.report("session").await;
    // A user name is no secret; whatever holds a password or another capture is withheld as a whole.
    assert_eq!(report["facts"], serde_json::json!({ "site": "site-1", "user": "id-of-root" }));
    let read = report["read"]["body"].as_str().unwrap();
    assert!(read.contains("***") && !read.contains("canary"), "{read}");
    let seen = lab.device.seen();
    assert!(seen[0].body.contains("canary"), "the device did get it: {seen:?}");
    let token = seen[1].headers.iter().find(|(name, _)| name == "x-token").map(|(_, value)| value.as_str());
    assert_eq!(token, Some("tok-17"), "what is not told is used");
    assert_eq!((seen[2].method.as_str(), seen[2].path.as_str()), ("DELETE", "/session"));
}
