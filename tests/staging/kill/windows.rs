//! Kills while a person confirms a change in its window, takes it back, or gives the window more time.

use std::time::Instant;

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::rig::{Ends, Moments, Rig};
use crate::staging::foreign::edits::Edit;
use crate::staging::subject::{Subject, deadline};
use crate::support::{Answer, Database, Place};

/// A window that stays open for as long as a kill and a start take.
fn open() -> Value {
    json!({ "confirm_within_secs": 120, "extendable_to_secs": 600 })
}

/// Stages a change for a rule and applies it; its window is open.
async fn held(rig: &Rig, rule: &str) -> (Subject, Value) {
    let subject = rig.stage(0, &[rule.to_owned()]).await;
    let held = subject.hold(rig.api(), &open()).await;
    (subject, held)
}

/// How long a request on a change in its window takes that nothing disturbs.
async fn moments(rig: &Rig, verb: &str, body: &Value, kills: u32) -> Moments {
    let (subject, _) = held(rig, "Undisturbed").await;
    // The way back that spares an edit of others is the longer one.
    let edit = Edit::added("first", "Foreign-first");
    edit.save(rig.router(0));
    let began = Instant::now();
    subject.act(rig.api(), verb, body).await.expect_status(200);
    let moments = Moments::since(began, kills);
    if verb == "extend" {
        subject.act(rig.api(), "revert", &json!({})).await.expect_status(200);
    }
    edit.clean(rig.router(0));
    subject.leave(rig.api(), "undisturbed").await;
    moments
}

/// An end that was answered before the kill is the end.
fn check_answer(answer: Option<Answer>, state: &str, end: &str, told: &str) {
    if let Some(answer) = answer {
        assert_eq!((answer.status, state), (200, end), "{told}: {}", answer.text);
    }
}

/// The window is open as it was, or the confirmation was recorded and the change is permanent.
async fn kill_confirms(database: Database, kills: u32) {
    let mut rig = Rig::start(database, 1).await;
    let mut ends = Ends::default();
    let moments = moments(&rig, "confirm", &json!({}), kills).await;
    for kill in 0..kills {
        let (subject, _) = held(&rig, &format!("Confirmed-{kill:03}")).await;
        let moment = moments.of(kill, &mut rig.random);
        let told = format!("seed {} kill {kill} after {moment:?}", rig.random.seed);
        let _place = Place(told.clone());
        let answer = rig.kill_during(&subject.path("confirm"), &json!({}), moment).await;
        let met = subject.at_rest(rig.api()).await;
        let state = subject.check_truth(rig.router(0), &met, &told);
        ends.count(&state);
        check_answer(answer, &state, "applied", &told);
        if state == "awaiting_confirm" {
            let ended = subject.end(rig.api(), "confirm").await;
            assert_eq!(subject.check_truth(rig.router(0), &ended, &told), "applied", "{told}: {ended}");
        } else {
            assert_eq!(state, "applied", "{told}: {met}");
        }
        subject.leave(rig.api(), &told).await;
    }
    rig.check_end(&ends).await;
}

/// The window is open as it was, or the change is back; what others saved meanwhile stays, or is named.
async fn kill_reverts(database: Database, kills: u32) {
    let mut rig = Rig::start(database, 1).await;
    let mut ends = Ends::default();
    let moments = moments(&rig, "revert", &json!({}), kills).await;
    for kill in 0..kills {
        let (subject, _) = held(&rig, &format!("Taken-back-{kill:03}")).await;
        let foreign = format!("Foreign-{kill:03}");
        let edit = (rig.random.next(3) > 0).then(|| Edit::added(&format!("f{kill}"), &foreign));
        edit.iter().for_each(|edit| edit.save(rig.router(0)));
        let moment = moments.of(kill, &mut rig.random);
        let told = format!("seed {} kill {kill} after {moment:?} {edit:?}", rig.random.seed);
        let _place = Place(told.clone());
        let answer = rig.kill_during(&subject.path("revert"), &json!({}), moment).await;
        let met = subject.at_rest(rig.api()).await;
        let mut ended = met.clone();
        let state = subject.check_truth(rig.router(0), &met, &told);
        // What was asked for is known within a moment, and done after the kill: only the answer tells the kills apart.
        ends.count(if answer.is_some() { "answered" } else { &state });
        check_answer(answer, &state, "reverted", &told);
        if state == "awaiting_confirm" {
            ended = subject.end(rig.api(), "revert").await;
            assert_eq!(subject.check_truth(rig.router(0), &ended, &told), "reverted", "{told}: {ended}");
        } else {
            assert_eq!(state, "reverted", "{told}: {met}");
        }
        if let Some(edit) = edit {
            let is_named = ended["outcome"].to_string().contains(&foreign);
            assert!(edit.is_there(rig.router(0)) || is_named, "{edit:?} is lost, {told}: {ended}");
            edit.clean(rig.router(0));
        }
        subject.leave(rig.api(), &told).await;
    }
    rig.check_end(&ends).await;
}

/// The window ends when it did or when it was extended to, and is open until then.
async fn kill_extends(database: Database, kills: u32) {
    let mut rig = Rig::start(database, 1).await;
    let mut ends = Ends::default();
    let body = json!({ "secs": 60 });
    let moments = moments(&rig, "extend", &body, kills).await;
    for kill in 0..kills {
        let (subject, held) = held(&rig, &format!("Extended-{kill:03}")).await;
        let (first, extended) = (deadline(&held), deadline(&held) + TimeDelta::seconds(60));
        let moment = moments.of(kill, &mut rig.random);
        let told = format!("seed {} kill {kill} after {moment:?}", rig.random.seed);
        let _place = Place(told.clone());
        let answer = rig.kill_during(&subject.path("extend"), &body, moment).await;
        let met = subject.at_rest(rig.api()).await;
        assert_eq!(subject.check_truth(rig.router(0), &met, &told), "awaiting_confirm", "{told}: {met}");
        let end = deadline(&met);
        assert!(end == extended || (end == first && answer.is_none()), "{told}: {answer:?} {met}");
        ends.count(if end == first { "open as before" } else { "extended" });
        let (verb, state) = *rig.random.pick(&[("confirm", "applied"), ("revert", "reverted")]);
        let ended = subject.end(rig.api(), verb).await;
        assert_eq!(subject.check_truth(rig.router(0), &ended, &told), state, "{told}: {ended}");
        subject.leave(rig.api(), &told).await;
    }
    rig.check_end(&ends).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_lose_no_confirmation_on_sqlite() {
    kill_confirms(Database::sqlite(), 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_lose_no_confirmation_on_postgres() {
    if let Some(database) = Database::postgres().await {
        kill_confirms(database, 8).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_leave_no_change_half_taken_back_on_sqlite() {
    kill_reverts(Database::sqlite(), 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_leave_no_change_half_taken_back_on_postgres() {
    if let Some(database) = Database::postgres().await {
        kill_reverts(database, 8).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_lose_no_extension_that_was_answered_on_sqlite() {
    kill_extends(Database::sqlite(), 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_lose_no_extension_that_was_answered_on_postgres() {
    if let Some(database) = Database::postgres().await {
        kill_extends(database, 8).await;
    }
}
