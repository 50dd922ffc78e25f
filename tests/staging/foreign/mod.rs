//! Other people edit the router while a change, or a set of changes, is in its window: no edit of theirs is lost without
//! having been named beforehand, no outcome is false, and every change has a way out.
//!
//! The window is confirmed, taken back or left to lapse, and may be extended before. A lapse takes no time: the test
//! moves the server's clock to the end of the window, and lets the router's own timer run out.

pub(super) mod edits;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::TimeDelta;
use heddle_core::Timestamp;
use heddle_lab_openwrt::Change;
use serde_json::json;

use self::edits::{Edit, Saved, standing};
use super::Lab;
use super::subject::{Subject, deadline, sections, times};
use crate::support::{Database, Options, Place, Random, variable};

/// Rounds of one database, where nothing else is asked for.
const ROUNDS: u32 = 60;
/// Longer than a round takes on a machine that is busy.
const WINDOW_SECS: u32 = 60;
/// After how many rounds the user logs in again: the clock runs ahead of the sessions.
const LOGIN_ROUNDS: u32 = 250;
/// Longer than the server takes to look at its clock again.
const LOOK: Duration = Duration::from_millis(600);

/// What ends a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Confirm,
    Revert,
    Lapse,
}

/// What happens in a round.
#[derive(Debug)]
struct Course {
    round: u32,
    /// One of a change, several of a set.
    rules: Vec<String>,
    is_extended: bool,
    /// How much others save.
    edits: u64,
    /// Before which of the edits the device's own timer runs out.
    timer: Option<u64>,
    /// Whether others change the rule of the change itself.
    touches_own: bool,
    end: End,
}

impl Course {
    fn draw(random: &mut Random, round: u32) -> Self {
        let edits = random.next(4);
        let changes = if random.next(4) == 0 { 2 } else { 1 };
        Self {
            round,
            rules: (0..changes).map(|n| format!("Own-{round}-{n}")).collect(),
            is_extended: random.next(4) == 0,
            edits,
            timer: (random.next(6) == 0).then(|| random.next(edits + 1)),
            touches_own: random.next(12) == 0,
            end: *random.pick(&[End::Confirm, End::Revert, End::Lapse]),
        }
    }

    /// Opens the window; answers its end.
    async fn open(&self, lab: &Lab, subject: &Subject) -> Timestamp {
        let mut window = json!({ "confirm_within_secs": WINDOW_SECS });
        if !self.is_extended {
            return deadline(&subject.hold(&lab.api, &window).await);
        }
        window["extendable_to_secs"] = json!(600);
        let first = deadline(&subject.hold(&lab.api, &window).await);
        let body = json!({ "secs": WINDOW_SECS });
        let extended = subject.act(&lab.api, "extend", &body).await.expect_status(200).body;
        let end = deadline(&extended);
        assert_eq!(end, first + TimeDelta::seconds(i64::from(WINDOW_SECS)), "{self:?}: {extended}");
        // The first end passes, and the change goes on to be held.
        pass(lab, first);
        end
    }

    /// What others do while the window is open.
    async fn edit(&self, lab: &Lab, random: &mut Random, subject: &Subject) -> Vec<Saved> {
        let mut saved = Vec::new();
        let mut is_at_risk = true;
        for n in 0..=self.edits {
            if self.timer == Some(n) {
                assert!(lab.router.run_out_rollback_timer(), "the device holds the change: {self:?}");
                is_at_risk = false;
            }
            if n == self.edits {
                break;
            }
            let edit = Edit::some(random, self.round, n);
            edit.save(&lab.router);
            saved.push(Saved { edit, is_at_risk });
            if random.next(3) == 0 {
                subject.act(&lab.api, "verify", &json!({})).await.expect_status(200);
            }
        }
        if self.is_touched() {
            let own = sections(&lab.router, &self.rules[..1]);
            let section = own.first().expect("the rule is at the router");
            lab.router.edit("firewall", &[Change::set(section, "dest_port", "9443")]);
        }
        // Sometimes the server gets the time to look at its clock before the end.
        if random.next(8) == 0 {
            tokio::time::sleep(LOOK).await;
        }
        saved
    }

    /// Whether others changed the rule: where the device has taken it back, there is none.
    fn is_touched(&self) -> bool {
        self.touches_own && self.timer.is_none()
    }

    /// Whether the round may end so.
    fn permits(&self, state: &str) -> bool {
        let is_kept = self.end == End::Confirm && self.timer.is_none();
        match state {
            "applied" => is_kept,
            "reverted" => !is_kept,
            "partial" => self.is_touched(),
            _ => false,
        }
    }
}

/// Moves the server's clock to this time, unless it is past it.
fn pass(lab: &Lab, time: Timestamp) {
    let clock = &lab.server.running().app.clock;
    let left = time - clock.now();
    if left > TimeDelta::zero() {
        clock.advance(left + TimeDelta::milliseconds(1));
    }
}

/// One change among the edits of others, from its staging to its end.
async fn round(lab: &Lab, random: &mut Random, round: u32) -> String {
    let course = Course::draw(random, round);
    let place = Place(format!("seed {} {course:?}", random.seed));
    let subject = Subject::stage(&lab.api, &lab.controller, &course.rules).await;
    let end = course.open(lab, &subject).await;
    let edits = course.edit(lab, random, &subject).await;
    let answer = match course.end {
        End::Confirm => subject.act(&lab.api, "confirm", &json!({})).await.text,
        End::Revert => subject.act(&lab.api, "revert", &json!({})).await.text,
        End::Lapse => {
            pass(lab, end);
            String::new()
        }
    };
    let ended = subject.ended(&lab.api).await;
    let told = format!("{} {edits:?}: {answer} {ended}", place.0);

    // What the service says of the change is what the router holds.
    let state = subject.check_truth(&lab.router, &ended, &told);
    assert!(course.permits(&state), "{state}: {told}");
    // No edit of others is lost that was not named beforehand, and none at all by a confirmation.
    for Saved { edit, is_at_risk } in standing(&edits) {
        let may_go = *is_at_risk && subject.warns() && state != "applied";
        assert!(may_go || edit.is_there(&lab.router), "{edit:?} is lost; {told}");
    }
    // Each has a way out.
    let inverts = random.next(4) == 0;
    if inverts && state == "applied" && !course.is_touched() {
        invert(lab, &subject, &edits, &told).await;
    }
    subject.leave(&lab.api, &told).await;
    clean(lab, &subject, &edits);
    state
}

/// Takes back by another change what is permanent; nothing of others goes with it.
async fn invert(lab: &Lab, subject: &Subject, edits: &[Saved], told: &str) {
    let inverse = subject.act(&lab.api, "revert", &json!({})).await;
    assert_eq!(inverse.status, 201, "{}; {told}", inverse.text);
    let applied = lab.api.post(&Lab::path(&inverse.body, "apply"), &json!({ "force": true })).await;
    assert_eq!(applied.status, 200, "{}; {told}", applied.text);
    assert!(subject.rules.iter().all(|rule| times(&lab.router, rule) == 0), "{told}");
    assert_eq!(subject.get(&lab.api).await["outcome"]["state"], "reverted", "{told}");
    for saved in standing(edits) {
        assert!(saved.edit.is_there(&lab.router), "{saved:?} is lost by the inverse; {told}");
    }
}

/// Brings the router back to its size: a round is as quick as the ones before it.
fn clean(lab: &Lab, subject: &Subject, edits: &[Saved]) {
    edits.iter().for_each(|saved| saved.edit.clean(&lab.router));
    let own: Vec<Change> =
        sections(&lab.router, &subject.rules).iter().map(|name| Change::remove(name)).collect();
    lab.router.edit("firewall", &own);
    lab.router.forget_calls();
}

async fn many(database: Database) {
    let options = Options::default()
        .with("APPLY_SETTLE_MS", "10")
        .with("SYNC_INTERVAL_SECS", "3600")
        .with("ACCESS_TOKEN_EXPIRE_MINUTES", "1440")
        .with("LOG_FILTER", "error");
    let mut lab = Lab::start_with(database, options).await;
    let rounds = variable("HEDDLE_FOREIGN_ROUNDS").and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    let seed = variable("HEDDLE_FOREIGN_SEED").and_then(|text| text.parse().ok());
    let mut random = seed.map_or_else(Random::new, Random::of);
    let mut ends = BTreeMap::<String, u32>::new();
    for n in 0..rounds {
        if n % LOGIN_ROUNDS == LOGIN_ROUNDS - 1 {
            lab.api = lab.server.log_in("ada").await;
        }
        *ends.entry(round(&lab, &mut random, n).await).or_default() += 1;
    }
    let is_rich = ends.contains_key("applied") && ends.contains_key("reverted");
    assert!(is_rich || rounds < ROUNDS, "seed {}: {ends:?}", random.seed);
    let valid = lab.api.get("/audit/validate").await.expect_status(200).body;
    assert_eq!(valid["valid"], true, "seed {}: {valid}", random.seed);
}

/// `HEDDLE_FOREIGN_ROUNDS` says how many rounds there are, `HEDDLE_FOREIGN_SEED` repeats a run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_edit_of_others_is_lost_and_no_outcome_is_false_on_sqlite() {
    many(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_edit_of_others_is_lost_and_no_outcome_is_false_on_postgres() {
    if let Some(database) = Database::postgres().await {
        many(database).await;
    }
}
