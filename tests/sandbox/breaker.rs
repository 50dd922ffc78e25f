//! A component that keeps failing is suspended where it fails, and tried again later.

use chrono::TimeDelta;
use heddle_runtime::{CallError, TrapClass};

use super::{Lab, objects, trap};

async fn fail_until_suspended(lab: &Lab) -> u64 {
    for _ in 0..20 {
        match lab.ask("panic").await {
            Err(CallError::Suspended { component, retry_after_secs }) => {
                assert_eq!(component, "hostile");
                return retry_after_secs;
            }
            ended => assert_eq!(trap(ended), TrapClass::Panic),
        }
    }
    panic!("20 traps did not suspend the adapter");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_traps_suspend_the_adapter_for_that_controller_only() {
    let lab = Lab::start().await;
    let retry_after_secs = fail_until_suspended(&lab).await;
    assert!((1..=31).contains(&retry_after_secs), "{retry_after_secs}");
    assert!(matches!(lab.ask("calm").await, Err(CallError::Suspended { .. })));
    assert!(lab.device.seen().is_empty(), "a suspended adapter is not run at all");

    let other = lab.call_as(lab.clock.new_id());
    assert_eq!(objects(&lab.adapter, &other, "calm").await.unwrap()["status"], 200);
    assert!(!lab.adapter.is_quarantined());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_call_that_works_ends_the_suspension() {
    let lab = Lab::start().await;
    fail_until_suspended(&lab).await;
    lab.clock.advance(TimeDelta::seconds(31));
    assert_eq!(lab.report("calm").await["status"], 200);
    assert_eq!(lab.report("calm").await["status"], 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trial_that_fails_suspends_for_longer() {
    let lab = Lab::start().await;
    let first = fail_until_suspended(&lab).await;
    lab.clock.advance(TimeDelta::seconds(31));
    assert_eq!(trap(lab.ask("panic").await), TrapClass::Panic);
    match lab.ask("calm").await {
        Err(CallError::Suspended { retry_after_secs, .. }) => assert!(retry_after_secs > first),
        ended => panic!("one failed trial is enough: {ended:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_requests_count_as_failures() {
    let lab = Lab::start().await;
    for _ in 0..5 {
        lab.report("headers").await;
    }
    assert!(matches!(lab.ask("calm").await, Err(CallError::Suspended { .. })));
}
