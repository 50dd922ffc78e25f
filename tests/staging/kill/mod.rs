//! The server is killed for real, at random moments, and started again: what it tells is what the router holds, and each
//! change is at its end or can be brought to it.

mod calls;
mod lapse;
mod rig;
mod windows;

use std::time::{Duration, Instant};

use serde_json::json;

use self::rig::{Ends, Moments, Rig};
use crate::support::{Database, Place};

/// Kills while a plain change is applied: from the first byte to after the end.
async fn kill_applies(database: Database, kills: u32) {
    let mut rig = Rig::start(database, 1).await;
    let mut ends = Ends::default();
    for kill in 0..kills {
        let subject = rig.stage(0, &[format!("Kill-{kill:03}")]).await;
        // An apply takes about 100 ms and 50 ms of settling.
        let moment = Duration::from_millis(rig.random.next(256));
        rig.kill_during(&subject.path("apply"), &json!({ "force": true }), Some(moment)).await;
        let seen = subject.ended(rig.api()).await;
        let told = format!("seed {}", rig.random.seed);
        ends.count(&subject.check_truth(rig.router(0), &seen, &told));
        subject.leave(rig.api(), &told).await;
    }
    let counters = rig.router(0).counters();
    assert!(
        usize::try_from(counters.applies).is_ok_and(|applies| applies >= ends.of("applied")),
        "{counters:?} {ends:?}"
    );
    rig.check_end(&ends).await;
}

/// Kills while a set of changes is applied, with a confirm window and without.
async fn kill_sets(database: Database, kills: u32) {
    let mut rig = Rig::start(database, 1).await;
    let mut ends = Ends::default();
    let rules = |name: &str| [1, 2].map(|n| format!("Set-{name}-{n}"));
    let undisturbed = rig.stage(0, &rules("first")).await;
    let began = Instant::now();
    undisturbed.act(rig.api(), "apply", &json!({ "force": true })).await.expect_status(200);
    let moments = Moments::since(began, kills);
    for kill in 0..kills {
        let subject = rig.stage(0, &rules(&format!("{kill:03}"))).await;
        let mut body = json!({ "force": true });
        if rig.random.next(2) == 0 {
            body["confirm_within_secs"] = json!(120);
        }
        let moment = moments.of(kill, &mut rig.random);
        let told = format!("seed {} kill {kill} after {moment:?} of {body}", rig.random.seed);
        let _place = Place(told.clone());
        rig.kill_during(&subject.path("apply"), &body, moment).await;
        let met = subject.at_rest(rig.api()).await;
        let state = subject.check_truth(rig.router(0), &met, &told);
        ends.count(&state);
        if state == "awaiting_confirm" {
            let (verb, end) = *rig.random.pick(&[("confirm", "applied"), ("revert", "reverted")]);
            let ended = subject.end(rig.api(), verb).await;
            assert_eq!(subject.check_truth(rig.router(0), &ended, &told), end, "{told}: {ended}");
        } else {
            assert!(["none", "failed", "applied"].contains(&state.as_str()), "{told}: {met}");
        }
        subject.leave(rig.api(), &told).await;
    }
    rig.check_end(&ends).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_kills_lose_nothing_and_apply_nothing_twice_on_sqlite() {
    kill_applies(Database::sqlite(), 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_lose_nothing_and_apply_nothing_twice_on_postgres() {
    if let Some(database) = Database::postgres().await {
        kill_applies(database, 30).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_leave_a_set_of_changes_whole_on_sqlite() {
    kill_sets(Database::sqlite(), 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_leave_a_set_of_changes_whole_on_postgres() {
    if let Some(database) = Database::postgres().await {
        kill_sets(database, 8).await;
    }
}
