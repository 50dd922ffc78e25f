//! Requests that a guest must not send, whatever it calls them.

use serde_json::Value;

use super::{Lab, all_refused};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_that_could_name_something_else_is_refused() {
    let lab = Lab::start().await;
    let report = lab.report("paths").await;
    assert!(report.as_object().unwrap().len() >= 25);
    all_refused(&report, "path");
    assert!(lab.device.seen().is_empty(), "{:?}", lab.device.seen());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_of_the_host_or_with_a_line_break_is_refused() {
    let lab = Lab::start().await;
    let report = lab.report("headers").await;
    assert!(report.as_object().unwrap().len() >= 25);
    all_refused(&report, "header");
    assert!(lab.device.seen().is_empty(), "{:?}", lab.device.seen());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_is_no_target_but_the_controller() {
    let lab = Lab::start().await;
    let report = lab.report("other-targets").await;
    assert!(report.as_object().unwrap().values().all(|opened| opened == false), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_cannot_write() {
    let lab = Lab::start().await;
    let mut report = lab.report("writes-in-read").await;
    let read = report.as_object_mut().unwrap().remove("a read").unwrap();
    assert_eq!(read["status"], 200, "{read}");
    for (what, outcome) in report.as_object().unwrap() {
        assert_eq!(outcome["fault"], "denied", "'{what}' was answered with {outcome}");
    }
    let seen = lab.device.seen();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!((seen[0].method.as_str(), seen[0].path.as_str()), ("POST", "/read"));
    assert_eq!(seen[0].body, r#"{"op":"read"}"#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_write_in_a_batch_makes_the_batch_a_write() {
    let lab = Lab::start().await;
    let mut report = lab.report("batches").await;
    let reads = report.as_object_mut().unwrap().remove("reads").unwrap();
    assert_eq!(reads["status"], 200, "{reads}");
    all_refused(&report, "read-only");
    assert_eq!(lab.device.seen().len(), 1);
}

/// The host sends its own text of what it checked, so no key arrives twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_two_parsers_read_differently_does_not_arrive() {
    let lab = Lab::start().await;
    let report = lab.report("duplicate-keys").await;
    assert_eq!(report.as_object().unwrap().len(), 9);
    for seen in lab.device.seen() {
        assert!(!seen.body.contains("write"), "{seen:?}");
        let own_text = serde_json::from_str::<Value>(&seen.body).unwrap().to_string();
        assert_eq!(seen.body, own_text, "a key occurs twice");
    }
    let taken = report.as_object().unwrap().values().filter(|outcome| outcome["status"] == 200).count();
    assert_eq!(lab.device.seen().len(), taken);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_phase_stays_one_in_plan_and_compare() {
    let lab = Lab::start().await;
    for fault in [
        super::fault(super::writes::plan(&lab, "write in plan").await),
        super::fault(super::writes::compare(&lab, "write in compare").await),
    ] {
        assert_eq!(fault.kind, heddle_core::fault::FaultKind::Denied, "{fault:?}");
    }
    assert!(lab.device.seen().is_empty());
}
