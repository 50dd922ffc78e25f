//! Windows that lapse while the server is dead, and a server that is killed again while it takes the changes back.
//!
//! A window takes at least ten seconds of real time, so that those of several routers lapse together.

use std::time::Duration;

use futures::future::join_all;
use heddle_core::Clock;
use serde_json::{Value, json};

use super::rig::{Ends, Rig};
use crate::staging::foreign::edits::Edit;
use crate::staging::subject::{Subject, deadline};
use crate::support::{Database, Place};

/// Long enough for all routers of a batch to be written to, on a machine that is busy.
const WINDOW_SECS: u32 = 12;

/// A change in its window, what others saved at its router, and whether the device's own timer ran out first.
struct Held {
    at: usize,
    subject: Subject,
    edit: Option<Edit>,
    was_timer_first: bool,
}

/// Opens a window at each router at once; answers the end of the last one, too.
async fn open(rig: &Rig, batch: u32, routers: usize) -> (Vec<Held>, Value) {
    let mut held = Vec::new();
    for at in 0..routers {
        let subject = rig.stage(at, &[format!("Lapsed-{batch}-{at}")]).await;
        held.push(Held { at, subject, edit: None, was_timer_first: false });
    }
    let window = json!({ "confirm_within_secs": WINDOW_SECS });
    let answers = join_all(held.iter().map(|held| held.subject.hold(rig.api(), &window))).await;
    let last = answers.into_iter().max_by_key(deadline).expect("there are routers");
    (held, last)
}

/// The server dies before the windows end, starts after their end, and dies again while it takes the changes back.
async fn lapse_while_dead(rig: &mut Rig, held: &mut [Held], last: &Value, batch: u32) {
    // The first of these kills often falls on windows that are all open, the second on drives that have just begun.
    tokio::time::sleep(Duration::from_millis(rig.random.next(2000))).await;
    rig.process.kill();
    for held in held.iter_mut() {
        let router = rig.router(held.at);
        if held.edit.is_none() && held.at % 3 == 1 {
            let edit = Edit::added("late", &format!("Late-{batch}-{}", held.at));
            edit.save(router);
            held.edit = Some(edit);
        }
        if held.at % 3 == 2 {
            held.was_timer_first = router.run_out_rollback_timer();
        }
    }
    let left = deadline(last) - Clock::default().now();
    tokio::time::sleep(left.to_std().unwrap_or_default()).await;
    rig.restart().await;
    tokio::time::sleep(Duration::from_millis(rig.random.next(400))).await;
    rig.process.kill();
    rig.restart().await;
}

async fn kill_lapses(database: Database, batches: u32, routers: usize) {
    let mut rig = Rig::start(database, routers).await;
    let mut ends = Ends::default();
    for batch in 0..batches {
        let told = format!("seed {} batch {batch}", rig.random.seed);
        let _place = Place(told.clone());
        let (mut held, last) = open(&rig, batch, routers).await;
        for held in held.iter_mut().filter(|held| held.at % 2 == 0) {
            let edit = Edit::added("early", &format!("Early-{batch}-{}", held.at));
            edit.save(rig.router(held.at));
            held.edit = Some(edit);
        }
        lapse_while_dead(&mut rig, &mut held, &last, batch).await;
        for held in &held {
            let ended = held.subject.ended(rig.api()).await;
            let state = held.subject.check_truth(rig.router(held.at), &ended, &told);
            assert_eq!(state, "reverted", "{told}: {ended}");
            check_edit(&rig, held, &ended, &told);
            ends.count(if held.was_timer_first { "by the device" } else { "by the server" });
            held.subject.leave(rig.api(), &told).await;
        }
    }
    rig.check_end(&ends).await;
}

/// What others saved is there, or the outcome says what went along; the device's own timer spares nothing.
fn check_edit(rig: &Rig, held: &Held, ended: &Value, told: &str) {
    let Some(edit) = &held.edit else { return };
    let router = rig.router(held.at);
    let outcome = ended["outcome"].to_string();
    let is_told = outcome.contains("may have gone with it") || outcome.contains("taken back with it");
    assert!(edit.is_there(router) || is_told, "{edit:?} is lost, {told}: {ended}");
    assert!(held.subject.warns(), "{told}: {ended}");
    edit.clean(router);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_that_lapse_while_the_server_is_dead_are_ended_at_its_start_on_sqlite() {
    kill_lapses(Database::sqlite(), 2, 10).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_that_lapse_while_the_server_is_dead_are_ended_at_its_start_on_postgres() {
    if let Some(database) = Database::postgres().await {
        kill_lapses(database, 1, 8).await;
    }
}
