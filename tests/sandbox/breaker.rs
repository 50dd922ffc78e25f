//! A component that keeps failing is suspended where it fails, and tried again later.

use chrono::TimeDelta;
use heddle_runtime::{Call, CallError, TrapClass, Urgency};

use super::{Lab, objects, trap};

async fn fail_until_suspended(lab: &Lab) -> u64 {
    for _ in 0..20 {
        match lab.ask("panic").await {
            Err(CallError::Suspended { component, retry_after_secs, .. }) => {
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

/// A call of another organization, to a controller of its own.
fn another_tenant(lab: &Lab) -> Call {
    let mut call = lab.call_as(lab.clock.new_id());
    call.target.org_id = lab.clock.new_id();
    call
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_that_are_too_large_suspend_their_controllers_and_nobody_elses() {
    let lab = Lab::start().await;
    for _ in 0..9 {
        let call = lab.call_as(lab.clock.new_id());
        assert_eq!(trap(objects(&lab.adapter, &call, "huge-list").await), TrapClass::TooLarge);
    }
    let mut ended = 0;
    while let Err(CallError::Trap { class: TrapClass::TooLarge, .. }) = lab.ask("huge-list").await {
        ended += 1;
    }
    assert_eq!(ended, 5, "five of them suspend the controller");
    assert!(matches!(lab.ask("calm").await, Err(CallError::Suspended { .. })));
    assert_eq!(objects(&lab.adapter, &another_tenant(&lab), "calm").await.unwrap()["status"], 200);
    assert_eq!(lab.adapter.standing().suspended_until, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_organization_cannot_suspend_a_component_for_others() {
    let lab = Lab::start().await;
    for _ in 0..10 {
        let call = lab.call_as(lab.clock.new_id());
        assert_eq!(trap(objects(&lab.adapter, &call, "not-json").await), TrapClass::Abi);
    }
    assert_eq!(objects(&lab.adapter, &another_tenant(&lab), "calm").await.unwrap()["status"], 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_under_way_is_carried_on_by_a_quarantined_component() {
    let lab = Lab::start().await;
    let under_way = |call: Call| Call { urgency: Urgency::UnderWay, ..call };
    fail_until_suspended(&lab).await;
    let compared = lab.adapter.compare(&under_way(lab.call()), &[], b"").await;
    assert!(!matches!(compared, Err(CallError::Suspended { .. })), "{compared:?}");
    for _ in 0..3 {
        let tenants: Vec<Call> = (0..3).map(|_| another_tenant(&lab)).collect();
        for call in tenants.iter().flat_map(|call| [call; 3]) {
            drop(objects(&lab.adapter, call, "not-json").await);
        }
        lab.clock.advance(TimeDelta::minutes(6));
    }
    assert!(lab.adapter.is_quarantined());
    let tenant = another_tenant(&lab);
    assert!(matches!(objects(&lab.adapter, &tenant, "calm").await, Err(CallError::Suspended { .. })));
    assert_eq!(objects(&lab.adapter, &under_way(tenant.clone()), "calm").await.unwrap()["status"], 200);
    lab.adapter.release();
    assert_eq!(objects(&lab.adapter, &tenant, "calm").await.unwrap()["status"], 200);
}
