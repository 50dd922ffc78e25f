//! Others do not notice.

use futures::future::{Either, join_all, select};
use heddle_runtime::TrapClass;

use super::{Lab, objects, trap};

const SPINNERS: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_answered_while_others_spin() {
    let lab = Lab::start().await;
    let calls: Vec<_> = (0..SPINNERS).map(|_| lab.call_as(lab.clock.new_id())).collect();
    let spinners = join_all(calls.iter().map(|call| objects(&lab.adapter, call, "spin")));

    let calm = async {
        for _ in 0..20 {
            assert_eq!(lab.report("calm").await["status"], 200);
        }
    };
    match select(Box::pin(spinners), Box::pin(calm)).await {
        // What is dropped with the other side is cancelled.
        Either::Right(((), _)) => {}
        Either::Left((ended, _)) => panic!("the spinners ended first: {ended:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_from_one_controller_leaves_the_others_their_answers() {
    let lab = Lab::start().await;
    for behaviour in ["memory", "recursion", "huge-text", "handles"] {
        let other = lab.call_as(lab.clock.new_id());
        let (bad, good) = futures::join!(objects(&lab.adapter, &other, behaviour), lab.ask("calm"));
        assert!(bad.is_err(), "{behaviour}");
        assert_eq!(good.unwrap()["status"], 200, "{behaviour}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_stopped_instance_is_in_the_next() {
    let lab = Lab::start().await;
    assert_eq!(trap(lab.ask("memory").await), TrapClass::Resource);
    // All of the memory is there again.
    assert_eq!(trap(lab.ask("memory").await), TrapClass::Resource);
    assert_eq!(lab.report("calm").await["status"], 200);
}
