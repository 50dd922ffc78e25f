//! Time, memory, stack, handles and room: each runs out, and the guest with it.

use std::time::Duration;

use heddle_core::fault::FaultKind;
use heddle_runtime::{CallError, TrapClass};
use serde_json::{Value, json};

use super::{Lab, package, trap};

/// The guest is stopped with this class, and the next call is served as before.
async fn stops(behaviour: &str, class: TrapClass) {
    stops_with(&package::manifest(), behaviour, class).await;
}

async fn stops_with(manifest: &Value, behaviour: &str, class: TrapClass) {
    let lab = Lab::start_with(manifest).await;
    assert_eq!(trap(lab.ask(behaviour).await), class, "{behaviour}");
    assert_eq!(lab.report("calm").await["status"], 200);
}

fn little_cpu() -> Value {
    package::manifest_with("/limits/cpu-ms", json!(400))
}

/// What came back was too much for the host: stopped on the way, or refused at the end.
fn is_too_much(ended: Result<Value, CallError>) -> bool {
    match ended {
        Err(CallError::Fault(fault)) => {
            fault.kind == FaultKind::Generic && fault.code.as_deref() == Some("result-too-large")
        }
        Err(CallError::Trap { class, .. }) => matches!(class, TrapClass::TooLarge | TrapClass::Resource),
        _ => false,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_that_spins_is_stopped_by_its_cpu_budget() {
    stops_with(&little_cpu(), "spin", TrapClass::Cpu).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spinning_in_small_host_calls_counts_as_its_own_time() {
    stops_with(&little_cpu(), "spin-in-host-calls", TrapClass::Cpu).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_ends_at_the_limit() {
    stops("memory", TrapClass::Resource).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recursion_ends_at_the_stack() {
    stops("recursion", TrapClass::Resource).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_guest_stack_does_not_run_into_its_data() {
    stops("stack", TrapClass::Bug).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_beyond_the_limit_of_results_is_refused() {
    let lab = Lab::start().await;
    let ended = lab.ask("huge-text").await;
    assert!(is_too_much(ended));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_beyond_the_limit_of_results_is_refused() {
    let lab = Lab::start().await;
    let ended = lab.ask("huge-list").await;
    assert!(is_too_much(ended));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_argument_beyond_the_limit_stops_the_guest() {
    stops("huge-argument", TrapClass::TooLarge).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handles_end_at_their_limit() {
    stops("handles", TrapClass::Abi).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_log_lines_is_dropped_and_harms_nobody() {
    assert_eq!(Lab::start().await.report("log-flood").await, "flooded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_is_a_panic() {
    stops("panic", TrapClass::Panic).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_is_a_panic() {
    stops("unreachable", TrapClass::Panic).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exit_ends_the_guest_and_not_the_host() {
    stops("exit", TrapClass::Panic).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_is_no_json_is_refused() {
    stops("not-json", TrapClass::Abi).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_requests_ends_at_the_budget() {
    let lab = Lab::start_with(&package::manifest_with("/limits/requests", json!(20))).await;
    let report = lab.report("request-flood").await;
    assert_eq!((&report["sent"], &report["end"]["code"]), (&json!(20), &json!("request-budget")), "{report}");
    assert_eq!(lab.device.seen().len(), 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_requests_at_once_ends_at_the_budget() {
    let lab = Lab::start_with(&package::manifest_with("/limits/requests", json!(20))).await;
    let _ = lab.ask("request-flood-at-once").await;
    assert!(lab.device.seen().len() <= 20, "{} requests arrived", lab.device.seen().len());
}

/// 60 waits of 30 ms are 1.8 s on the wall and next to nothing of the guest's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_for_a_slow_device_costs_no_cpu() {
    let lab = Lab::start_with(&little_cpu()).await;
    assert_eq!(lab.report("patience").await, "waited");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_ends_at_its_deadline_also_while_it_waits() {
    let lab = Lab::start().await;
    let mut call = lab.call();
    call.deadline = Some(Duration::from_millis(400));
    match super::objects(&lab.adapter, &call, "patience").await {
        // The last request is cut a little earlier, so that the guest can say why.
        Ok(report) => assert_eq!(report["fault"], "timeout"),
        ended => assert_eq!(trap(ended), TrapClass::Wall),
    }
}
