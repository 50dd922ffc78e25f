//! A process that is asked to end hands its work over.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Pair, apply_held, change, quick, settled, verb};
use crate::support::Socket;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_ends_in_the_window_hands_the_change_over() {
    let Some(mut pair) = Pair::start(quick()).await else { return };
    let before = pair.router.fingerprint();
    let mut stream = Socket::subscribe(&pair.a.api, &["*"]).await;
    let id = pair.stage(&pair.a.api, "Handed-over").await;
    apply_held(&pair.a.api, &id, 60).await;
    let started = Instant::now();
    pair.a.ask_to_end();
    let code = stream.close_code().await;
    assert_eq!(code, 1001, "listeners are told");
    pair.a.terminate().await;
    // The window is a minute.
    assert!(started.elapsed() < Duration::from_secs(40), "nothing was waited for: {:?}", started.elapsed());
    for _ in 0..600 {
        if pair.log_of_b().contains("taking up change") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(pair.log_of_b().contains("taking up change"), "{}", pair.log_of_b());
    assert!(pair.log_of_a().contains("is left to another process"), "{}", pair.log_of_a());
    assert_eq!(pair.sql("SELECT COUNT(*) FROM process WHERE ended_at IS NOT NULL").await, 1);
    assert_eq!(change(&pair.b.api, &id).await["outcome"]["state"], "awaiting_confirm");
    let confirmed = pair.b.api.post(&verb(&id, "confirm"), &json!({})).await.expect_status(200);
    assert_eq!(confirmed.body["outcome"]["state"], "applied", "{}", confirmed.text);
    assert_eq!((pair.times("Handed-over"), pair.router.counters().applies), (1, 1));
    assert_ne!(pair.router.fingerprint(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_handed_over_is_taken_back_when_nobody_confirms() {
    let Some(mut pair) = Pair::start(quick()).await else { return };
    let before = pair.router.fingerprint();
    let id = pair.stage(&pair.a.api, "Not-confirmed").await;
    apply_held(&pair.a.api, &id, 10).await;
    pair.a.terminate().await;
    let ended = settled(&pair.b.api, &id).await;
    assert_eq!(ended["outcome"]["state"], "reverted", "{ended}");
    assert_eq!(pair.router.fingerprint(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_in_flight_is_answered_before_the_end() {
    let Some(mut pair) = Pair::start(quick()).await else { return };
    let id = pair.stage(&pair.a.api, "In-flight").await;
    let (api, path) = (pair.a.api.clone(), verb(&id, "apply"));
    let body = json!({ "force": true }).to_string().into_bytes();
    let applying = async move { api.try_send("POST", &path, Some(body)).await };
    let ending = async {
        // The process has taken the request when the change has an owner, or has already been applied.
        let taken = "SELECT COUNT(*) FROM change WHERE apply_owner IS NOT NULL OR status <> 'pending'";
        for _ in 0..2_000 {
            if pair.sql(taken).await == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(pair.sql(taken).await, 1, "the process takes the request");
        pair.a.terminate().await;
    };
    let (answer, ()) = tokio::join!(applying, ending);
    let answer = answer.expect("the request is answered");
    assert!(answer.status < 500, "{}", answer.text);
    let ended = settled(&pair.b.api, &id).await;
    let expected = usize::from(ended["outcome"]["state"] == "applied");
    assert_eq!(pair.times("In-flight"), expected, "{ended}");
}
