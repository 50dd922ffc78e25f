//! One process drives an apply, whatever becomes of it.

use std::time::Duration;

use serde_json::json;

use super::{Pair, apply_held, change, quick, settled, verb};
use crate::support::Random;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_starts_leaves_the_others_applies_alone() {
    let Some(mut pair) = Pair::start(quick()).await else { return };
    let id = pair.stage(&pair.a.api, "Left-alone").await;
    apply_held(&pair.a.api, &id, 60).await;
    pair.b.kill();
    pair.restart_b().await;
    let calls = pair.router.write_calls().len();
    // Several rounds of looking for orphaned applies.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(pair.router.write_calls().len(), calls, "nobody writes while it is held");
    assert!(!pair.log_of_b().contains("taking up change"), "{}", pair.log_of_b());
    assert_eq!(change(&pair.b.api, &id).await["outcome"]["state"], "awaiting_confirm");
    let again = pair.b.api.post(&verb(&id, "apply"), &json!({ "force": true })).await.expect_status(409);
    assert_eq!(again.error_type(), "under_way", "{}", again.text);
    let discarded = pair.b.api.post(&verb(&id, "discard"), &json!({})).await;
    assert_eq!(discarded.status, 409, "{}", discarded.text);
    // The process that does not drive it is asked to confirm it.
    let confirmed = pair.b.api.post(&verb(&id, "confirm"), &json!({})).await.expect_status(200);
    assert_eq!(confirmed.body["status"], "applied", "{}", confirmed.text);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!((pair.times("Left-alone"), pair.router.counters().applies), (1, 1));
    assert_eq!(change(&pair.a.api, &id).await["status"], "applied");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_wrote_before_confirms_and_takes_over_what_another_wrote() {
    let Some(mut pair) = Pair::start(quick()).await else { return };
    // It has a session of its own at the router, to which the other's provisional change does not belong.
    let own = pair.stage(&pair.b.api, "Own").await;
    pair.b.api.post(&verb(&own, "apply"), &json!({ "force": true })).await.expect_status(200);
    let id = pair.stage(&pair.a.api, "Confirmed-there").await;
    apply_held(&pair.a.api, &id, 60).await;
    let confirmed = pair.b.api.post(&verb(&id, "confirm"), &json!({})).await.expect_status(200);
    assert_eq!(confirmed.body["outcome"]["state"], "applied", "{}", confirmed.text);
    assert_eq!(pair.router.counters().rollbacks, 0);
    let before = pair.router.fingerprint();
    let id = pair.stage(&pair.a.api, "Taken-back-there").await;
    apply_held(&pair.a.api, &id, 10).await;
    pair.a.kill();
    let ended = settled(&pair.b.api, &id).await;
    assert_eq!(ended["outcome"]["state"], "reverted", "{ended}");
    assert_eq!(pair.router.fingerprint(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_leaves_its_apply_to_the_other_at_once() {
    let Some(mut pair) = Pair::start(quick()).await else { return };
    let before = pair.router.fingerprint();
    let id = pair.stage(&pair.a.api, "Taken-over").await;
    apply_held(&pair.a.api, &id, 10).await;
    assert_ne!(pair.router.fingerprint(), before);
    pair.a.kill();
    for _ in 0..600 {
        if pair.log_of_b().contains("taking up change") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(pair.log_of_b().contains("taking up change"), "{}", pair.log_of_b());
    let ended = settled(&pair.b.api, &id).await;
    assert_eq!(
        (&ended["status"], &ended["outcome"]["state"]),
        (&json!("pending"), &json!("reverted")),
        "{ended}"
    );
    assert_eq!(pair.router.fingerprint(), before);
    assert_eq!(pair.router.counters().applies, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_whose_change_is_confirmed_elsewhere_has_applied_it_once() {
    let Some(mut pair) = Pair::start(quick()).await else { return };
    let id = pair.stage(&pair.a.api, "Confirmed").await;
    apply_held(&pair.a.api, &id, 60).await;
    pair.a.kill();
    let confirmed = pair.b.api.post(&verb(&id, "confirm"), &json!({})).await.expect_status(200);
    assert_eq!(confirmed.body["outcome"]["state"], "applied", "{}", confirmed.text);
    assert_eq!((pair.times("Confirmed"), pair.router.counters().applies), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_kills_among_two_processes_lose_nothing_and_apply_nothing_twice() {
    let Some(mut pair) = Pair::start(quick()).await else { return };
    let mut random = Random::new();
    let seed = random.seed;
    let mut ends = std::collections::BTreeMap::<String, usize>::new();
    for round in 0..20 {
        let name = format!("Both-{round:02}");
        let id = pair.stage(&pair.a.api, &name).await;
        let (api, path) = (pair.a.api.clone(), verb(&id, "apply"));
        let body = json!({ "force": true }).to_string().into_bytes();
        let applying = async move { api.try_send("POST", &path, Some(body)).await };
        let dying = async {
            // Every fourth falls early, before or while the change is claimed; the others anywhere in the apply.
            let within = if round % 4 == 0 { 12 } else { 250 };
            tokio::time::sleep(Duration::from_millis(random.next(within))).await;
            pair.a.kill();
            // Sometimes the one that takes it up is killed, too.
            if random.next(3) == 0 {
                tokio::time::sleep(Duration::from_millis(random.next(1500))).await;
                pair.b.kill();
                pair.restart_b().await;
            }
        };
        let (_, ()) = tokio::join!(applying, dying);
        pair.restart_a().await;
        let ended = settled(&pair.b.api, &id).await;
        let state = ended["outcome"]["state"].as_str().unwrap().to_owned();
        let expected = match state.as_str() {
            "applied" => 1,
            "none" | "failed" | "reverted" => 0,
            other => panic!("seed {seed}, round {round}: {name} ended {other}: {ended}"),
        };
        assert_eq!(pair.times(&name), expected, "seed {seed}, round {round}: {ended}");
        *ends.entry(state).or_default() += 1;
        if ended["status"] == "pending" {
            pair.b.api.post(&verb(&id, "discard"), &json!({})).await.expect_status(200);
        }
    }
    assert!(ends.len() > 1, "seed {seed}: the kills fell on different moments: {ends:?}");
    let audit = pair.b.api.get("/audit/validate").await.expect_status(200).body;
    assert_eq!(audit["valid"], true, "{audit}");
    assert_eq!(pair.sql("SELECT COUNT(*) FROM change WHERE apply_step <> 'idle'").await, 0);
}
