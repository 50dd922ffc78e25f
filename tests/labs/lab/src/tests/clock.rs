//! Time that tests move.

use super::*;

#[tokio::test]
async fn time_that_is_moved_brings_what_is_due() {
    let peer = Peer { lab: Lab::builder(Toy::default()).paused().start().await, http: http() };
    assert_eq!(peer.status("POST", "/task").await, Some(202));
    peer.lab.advance(Duration::from_millis(9_999));
    assert_eq!(peer.count(), 0);
    peer.lab.advance(Duration::from_millis(1));
    assert_eq!(peer.count(), 1);
}

#[tokio::test]
async fn orders_over_http_move_the_clock() {
    let peer = Peer::new().await;
    assert_eq!(peer.status("POST", "/task").await, Some(202));
    assert_eq!(peer.order("POST", "/clock/pause", json!(null)).await.status(), 200);
    let before = peer.ask("/clock").await;
    let after: Value =
        peer.order("POST", "/clock/advance", json!({ "secs": 9, "ms": 1000 })).await.json().await.unwrap();
    assert_eq!(after["elapsed_ms"], json!(before["elapsed_ms"].as_u64().unwrap() + 10_000));
    assert_eq!(after["unix_secs"], json!(before["unix_secs"].as_u64().unwrap() + 10));
    assert_eq!((before["paused"].as_bool(), peer.count()), (Some(true), 1));
    assert_eq!(peer.order("POST", "/clock/stop", json!(null)).await.status(), 404);
}

#[test]
fn a_paused_clock_stands_and_runs_on_from_there() {
    let mut clock = Clock::new(100);
    clock.pause();
    let at = clock.now();
    std::thread::sleep(Duration::from_millis(15));
    assert_eq!(clock.now(), at);
    clock.advance(Duration::from_secs(50));
    assert_eq!((clock.now() - at, clock.unix().as_secs()), (Duration::from_secs(50), 150));
    clock.resume();
    std::thread::sleep(Duration::from_millis(5));
    let passed = clock.now() - at;
    assert!(passed > Duration::from_secs(50) && passed < Duration::from_mins(1), "{passed:?}");
}

#[test]
fn what_is_due_comes_in_order_of_time() {
    let (mut schedule, now) = (Schedule::default(), Instant::now());
    let at = |secs: u64| now + Duration::from_secs(secs);
    for (secs, entry) in [(3, "c"), (1, "a"), (1, "b"), (9, "later")] {
        schedule.at(at(secs), entry);
    }
    let due: Vec<_> = std::iter::from_fn(|| schedule.pop_due(at(3))).collect();
    assert_eq!(due, [(at(1), "a"), (at(1), "b"), (at(3), "c")]);
    assert_eq!(schedule.iter().count(), 1);
}
