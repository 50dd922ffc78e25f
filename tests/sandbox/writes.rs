//! The host sends the reviewed calls, in their order; a component sends none.

use std::sync::Arc;

use heddle_core::adapter::{CallOutcome, Comparison, Readiness};
use heddle_core::change::{AdapterPlan, ChangeSpec, HoleValues, Operation, Stage};
use heddle_core::fault::{Effect, FaultKind};
use heddle_runtime::{CallError, Filling, SecretBook, SentCall, TrapClass};
use serde_json::{Value, json};

use super::{Lab, fault, trap};

fn change(trick: &str) -> [ChangeSpec; 1] {
    [ChangeSpec {
        feature: "hostile.lab.thing".to_owned(),
        operation: Operation::Update,
        site: None,
        payload: json!({ "trick": trick }),
    }]
}

pub(super) async fn plan(lab: &Lab, trick: &str) -> Result<AdapterPlan, CallError> {
    let planned = lab.adapter.plan(&lab.call(), &change(trick), &SecretBook::default(), &[]).await;
    planned.map(|(plan, _)| plan)
}

pub(super) async fn compare(lab: &Lab, trick: &str) -> Result<Comparison, CallError> {
    lab.adapter.compare(&lab.call(), &change(trick), b"hostile").await
}

async fn ready(lab: &Lab, trick: &str, left: u32) -> Result<Readiness, CallError> {
    lab.adapter.ready(&lab.call(), Stage::Apply, &change(trick), b"hostile", left).await
}

/// Sends the call `index` of the plan of a trick.
async fn send(lab: &Lab, trick: &str, index: usize) -> SentCall {
    let plan = plan(lab, trick).await.expect("the plan is good");
    lab.adapter.send(&lab.call(), &plan.native[index], filling(), index > 0).await
}

/// Sends it, and has its answer judged.
async fn send_and_judge(lab: &Lab, trick: &str, index: u32) -> Result<CallOutcome, CallError> {
    let sent = send(lab, trick, index as usize).await;
    lab.adapter.judge(&lab.call(), (Stage::Apply, index), sent.answer, &change(trick), b"hostile").await
}

fn filling() -> Filling {
    Filling {
        hold_secs: 60,
        secrets: Arc::default(),
        files: Arc::default(),
        holes: Arc::from([]),
        values: HoleValues::new(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reviewed_calls_are_sent_and_their_answers_judged() {
    let lab = Lab::start().await;
    assert_eq!(ready(&lab, "honest", 0).await.unwrap(), Readiness::Send { from: 0, found: Vec::new() });
    for index in [0, 1] {
        let CallOutcome::Done(done) = send_and_judge(&lab, "honest", index).await.unwrap() else {
            panic!("the guest starts no jobs")
        };
        assert_eq!(done.warnings, [r#"{"status":200}"#]);
    }
    assert_eq!(lab.device.written(), [json!({ "n": 1 }), json!({ "n": 2 })]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_sends_no_reviewed_call_itself() {
    let lab = Lab::start().await;
    let tried = fault(ready(&lab, "write in ready", 0).await).message;
    let CallOutcome::Failed(judged) = send_and_judge(&lab, "write in judge", 0).await.unwrap() else {
        panic!("what it tried is a fault")
    };
    for report in [tried, judged.message] {
        let outcomes: Vec<Value> = serde_json::from_str(&report).expect("the guest reports JSON");
        assert_eq!(outcomes.len(), 5);
        for outcome in outcomes {
            assert_eq!((&outcome["fault"], &outcome["code"]), (&json!("denied"), &json!("not-approved")));
        }
    }
    assert_eq!(lab.device.written(), [json!({ "n": 1 })], "only what the host sent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_that_could_not_be_sent_or_needs_no_review_is_refused() {
    let lab = Lab::start().await;
    for (trick, code) in [
        ("override by a header", "header"),
        ("authorize by a header", "header"),
        ("undeclared session", "session"),
        ("plan a read", "plan-is-read"),
        ("another host", "path"),
    ] {
        let fault = fault(plan(&lab, trick).await);
        assert_eq!((fault.kind, fault.code.as_deref()), (FaultKind::Denied, Some(code)), "{trick}");
    }
    assert!(lab.device.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_and_a_header_arrive_as_they_were_reviewed() {
    let lab = Lab::start().await;
    let plan = plan(&lab, "form and header").await.unwrap();
    assert_eq!(plan.native[0].headers, [("Prefer".to_owned(), "DELETE".to_owned())]);
    assert_eq!(plan.native[0].body, None);
    assert!(send(&lab, "form and header", 0).await.left);
    let seen = lab.device.seen();
    assert_eq!(seen[0].body, "n=1&hold=60&text=a+b%26c%3D%C3%BC");
    let header =
        |name: &str| seen[0].headers.iter().find(|(found, _)| found == name).map(|(_, v)| v.as_str());
    assert_eq!(header("prefer"), Some("DELETE"));
    assert_eq!(header("content-type"), Some("application/x-www-form-urlencoded"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_without_an_answer_may_have_arrived() {
    let lab = Lab::start().await;
    let mut plan = plan(&lab, "wait for it").await.unwrap();
    plan.native[0].headers = vec![("accept".to_owned(), "x-slow".to_owned())];
    let call = heddle_runtime::Call { deadline: Some(std::time::Duration::from_millis(300)), ..lab.call() };
    let sent = lab.adapter.send(&call, &plan.native[0], filling(), false).await;
    assert!(sent.left);
    let fault = sent.answer.unwrap_err();
    assert_eq!((fault.kind, fault.effect), (FaultKind::Timeout, Effect::Possible));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_in_a_judgement_is_a_stop_of_the_component() {
    let lab = Lab::start().await;
    assert_eq!(trap(ready(&lab, "panic in ready", 0).await), TrapClass::Panic);
    assert!(lab.device.seen().is_empty());
    assert_eq!(trap(send_and_judge(&lab, "panic in judge", 0).await), TrapClass::Panic);
    assert_eq!(lab.device.written(), [json!({ "n": 1 })]);
}
