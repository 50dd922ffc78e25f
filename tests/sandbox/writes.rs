//! A write sends the reviewed calls, in their order, once, or nothing.

use heddle_core::adapter::{Comparison, RunOutcome};
use heddle_core::change::{AdapterPlan, ChangeSpec, NativeCall, Operation, Stage};
use heddle_runtime::{Approval, CallError, SecretBook, TrapClass};
use serde_json::{Value, json};

use super::{Lab, trap};

fn change(trick: &str) -> [ChangeSpec; 1] {
    [ChangeSpec {
        feature: "hostile.lab.thing".to_owned(),
        operation: Operation::Update,
        site: None,
        payload: json!({ "trick": trick }),
    }]
}

pub(super) async fn plan(lab: &Lab, trick: &str) -> Result<AdapterPlan, CallError> {
    let planned = lab.adapter.plan(&lab.call(), &change(trick), &SecretBook::default()).await;
    planned.map(|(plan, _)| plan)
}

pub(super) async fn compare(lab: &Lab, trick: &str) -> Result<Comparison, CallError> {
    lab.adapter.compare(&lab.call(), &change(trick), b"hostile").await
}

/// Runs a trick with the approval of the plan that all tricks share.
async fn run(lab: &Lab, trick: &str) -> Result<Vec<Value>, CallError> {
    let native = plan(lab, "honest").await?.native;
    run_approved(lab, trick, &native).await
}

/// What the guest reports of each request it sent.
async fn run_approved(lab: &Lab, trick: &str, native: &[NativeCall]) -> Result<Vec<Value>, CallError> {
    let approval = Approval { stage: Stage::Apply, native, hold_secs: 60, secrets: &SecretBook::default() };
    let run = lab.adapter.run(&lab.call(), approval, &change(trick), b"hostile").await;
    match run.map_err(|failure| failure.error)? {
        RunOutcome::Done(done) => Ok(done
            .warnings
            .iter()
            .map(|outcome| serde_json::from_str(outcome).expect("the guest reports JSON"))
            .collect()),
        RunOutcome::Pending(task) => panic!("the guest starts no jobs: {task:?}"),
        RunOutcome::Failed(fault) => panic!("the guest starts no jobs: {fault:?}"),
    }
}

/// Sends some of the planned calls, and is refused once they are not the next of the plan.
async fn check(trick: &str, arrived: &[u32], code: &str) {
    let lab = Lab::start().await;
    let outcomes = run(&lab, trick).await.expect("the guest survives its refusals");
    let written: Vec<Value> = arrived.iter().map(|n| json!({ "n": n })).collect();
    assert_eq!(lab.device.written(), written, "'{trick}': {outcomes:?}");
    let (sent, refused) = outcomes.split_at(arrived.len());
    assert!(sent.iter().all(|outcome| outcome["status"] == 200), "'{trick}': {outcomes:?}");
    assert!(!refused.is_empty(), "'{trick}': {outcomes:?}");
    for outcome in refused {
        assert_eq!((&outcome["fault"], &outcome["code"]), (&json!("denied"), &json!(code)), "'{trick}'");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reviewed_calls_are_sent_with_reads_between_them() {
    let lab = Lab::start().await;
    let outcomes = run(&lab, "reads between").await.unwrap();
    assert!(outcomes.iter().all(|outcome| outcome["status"] == 200), "{outcomes:?}");
    assert_eq!(lab.device.written(), [json!({ "n": 1 }), json!({ "n": 2 })]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_not_in_the_plan_is_refused() {
    check("unplanned", &[], "not-approved").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_in_another_order_are_refused() {
    check("wrong order", &[], "not-approved").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_sent_once() {
    check("twice", &[1], "not-approved").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_sent_after_the_last_call() {
    check("more", &[1, 2], "not-approved").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_body_is_refused() {
    for trick in ["changed body", "number as text", "number with a point", "no body", "in a batch"] {
        check(trick, &[], "not-approved").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_path_or_method_is_refused() {
    for trick in ["other path", "with a query", "other method"] {
        check(trick, &[], "not-approved").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_another_stage_is_refused() {
    check("of another stage", &[], "not-approved").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_at_once_are_refused() {
    check("at once", &[], "not-approved").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_cannot_turn_a_reviewed_call_into_another() {
    check("with a header", &[], "header").await;
}

/// A call that was refused on its way is still the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_cannot_be_skipped_by_having_it_refused() {
    let lab = Lab::start().await;
    let outcomes = run(&lab, "skip by a header").await.unwrap();
    assert_eq!(lab.device.written(), Vec::<Value>::new(), "{outcomes:?}");
    assert_eq!(outcomes[1]["code"], "not-approved", "{outcomes:?}");
}

/// It is unknown whether the call before arrived, so nothing may follow it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_cannot_be_skipped_by_not_waiting_for_it() {
    let lab = Lab::start().await;
    let outcomes = run(&lab, "skip by a time limit").await.unwrap();
    assert_eq!(outcomes[0]["fault"], "timeout", "{outcomes:?}");
    assert_eq!(outcomes[1]["code"], "not-approved", "{outcomes:?}");
    assert!(!lab.device.written().contains(&json!({ "n": 2 })), "{:?}", lab.device.seen());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_approval_nothing_is_written() {
    let lab = Lab::start().await;
    let outcomes = run_approved(&lab, "honest", &[]).await.unwrap();
    assert!(outcomes.iter().all(|outcome| outcome["code"] == "not-approved"), "{outcomes:?}");
    assert!(lab.device.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_after_a_write_does_not_pass_for_one_that_changed_nothing() {
    let lab = Lab::start().await;
    match run(&lab, "panic after a write").await {
        Err(CallError::Trap { class: TrapClass::Panic, wrote: true, .. }) => {}
        other => panic!("the host forgot the write: {other:?}"),
    }
    assert_eq!(lab.device.written(), [json!({ "n": 1 })]);
    assert_eq!(trap(lab.ask("panic").await), TrapClass::Panic);
}
