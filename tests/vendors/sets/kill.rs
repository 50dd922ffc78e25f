//! The service is killed, and paths to devices are cut, while a set goes through its steps at the controllers of several
//! vendors: no call is lost or doubled, and the set is what the devices show.
//!
//! `SET_KILLS` is the number of rounds, `SET_SEED` repeats a run, and with `SET_VENDORS=all` every vendor takes part.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::kill::fits;
use super::super::practice;
use super::{Place, THREE, act, check_truth, path, serving, set, standing, vendors};
use crate::support::{self, Api, Database, Options, Process, Random, variable};

/// Rounds where the variable names no number. The scenes take turns.
const ROUNDS: u32 = 10;

/// What is under way when the service is killed or a path is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scene {
    /// A plain apply.
    Apply,
    /// An apply with a window.
    Hold,
    /// The confirmation of what is held.
    Confirm,
    /// Taking back what is held.
    TakeBack,
    /// An apply that a controller will refuse, so that the others are taken back.
    Refused,
}

const SCENES: [Scene; 5] = [Scene::Apply, Scene::Hold, Scene::Confirm, Scene::TakeBack, Scene::Refused];

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    Kill,
    /// Killed again while the next process takes the set up.
    KillTwice,
    /// The path to a device is cut for a while, and the service lives on.
    Cut(usize),
    /// Both.
    CutAndKill(usize),
}

struct Rig {
    places: Vec<Place>,
    folder: TempDir,
    options: Options,
    process: Process,
    token: String,
    random: Random,
    /// How long the request of a scene takes that nothing disturbs.
    spans: BTreeMap<Scene, Duration>,
}

impl Rig {
    async fn start() -> Self {
        let ids: Vec<&str> = match variable("SET_VENDORS").as_deref() {
            Some("all") => practice::all().iter().map(|vendor| vendor.id()).collect(),
            _ => THREE.to_vec(),
        };
        let vendors = vendors(&ids);
        let folder = tempfile::tempdir().expect("a folder can be made");
        let options = serving(&vendors)
            .with("SYNC_INTERVAL_SECS", "3600")
            .with("LOG_FILTER", "warn")
            .with("APPLY_HOLD_SECS", "8");
        let started = Process::start(folder.path(), &Database::sqlite(), &options).await;
        let (process, token) = started.set_up().await;
        let mut places = Vec::new();
        for vendor in vendors {
            places.push(Place::register(&process.api, vendor).await);
        }
        let seed = variable("SET_SEED").map(|text| text.parse().expect("SET_SEED is a number"));
        let random = seed.map_or_else(Random::new, Random::of);
        Self { places, folder, options, process, token, random, spans: BTreeMap::new() }
    }

    fn api(&self) -> &Api {
        &self.process.api
    }

    async fn restart(&mut self) {
        let process = Process::start(self.folder.path(), &Database::sqlite(), &self.options).await;
        self.process = process.with_token(&self.token);
    }

    /// Brings the devices to where the scene begins; returns the set, what is sent then, and a change of another person.
    async fn open(&self, scene: Scene) -> (Value, &'static str, Value, Option<(usize, Value)>) {
        let set = set(self.api(), &self.places).await;
        let plain = json!({ "force": true });
        let held = json!({ "force": true, "confirm_within_secs": 300 });
        match scene {
            Scene::Apply => (set, "apply", plain, None),
            Scene::Hold => (set, "apply", held, None),
            Scene::Confirm | Scene::TakeBack => {
                let seen = act(self.api(), &set, "apply", &held).await.expect_status(200).body;
                assert_eq!(seen["outcome"]["state"], "awaiting_confirm", "{seen}");
                (set, if scene == Scene::Confirm { "confirm" } else { "revert" }, json!({}), None)
            }
            Scene::Refused => {
                let last = set["parts"].as_array().and_then(|parts| parts.last()).expect("a set has parts");
                let at = self.places.iter().position(|place| last["controller_id"] == place.controller);
                let at = at.expect("the part is at one of the places");
                let theirs = self.places[at].stage(self.api()).await;
                let force = json!({ "force": true });
                self.api().post(&super::super::path(&theirs, "apply"), &force).await.expect_status(200);
                (set, "apply", plain, Some((at, theirs)))
            }
        }
    }

    async fn at_rest(&self, set: &Value) -> Value {
        for _ in 0..2400 {
            let seen = self.api().get(&path(set, "")).await.expect_status(200).body;
            if ["idle", "holding"].iter().any(|step| seen["outcome"]["step"] == *step) {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the work on the set does not end: {}", self.api().get(&path(set, "")).await.body);
    }

    /// Sends the request, has the trouble happen at this moment, and returns the set at rest.
    async fn disturb(
        &mut self,
        set: &Value,
        (verb, body): (&str, &Value),
        trouble: Trouble,
        moment: Duration,
    ) -> Value {
        let (api, path) = (self.api().clone(), path(set, verb));
        let body = body.to_string().into_bytes();
        let sending = async {
            let _ = api.try_send("POST", &path, Some(body)).await;
        };
        let (places, process) = (&self.places, &mut self.process);
        let troubling = async {
            tokio::time::sleep(moment).await;
            match trouble {
                Trouble::Kill | Trouble::KillTwice => process.kill(),
                Trouble::Cut(at) => {
                    places[at].device.cut();
                    tokio::time::sleep(Duration::from_millis(900)).await;
                    places[at].device.mend();
                }
                Trouble::CutAndKill(at) => {
                    places[at].device.cut();
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    process.kill();
                }
            }
        };
        tokio::join!(sending, troubling);
        if !matches!(trouble, Trouble::Cut(_)) {
            self.restart().await;
        }
        if trouble == Trouble::KillTwice {
            let moment = Duration::from_millis(self.random.next(400));
            tokio::time::sleep(moment).await;
            self.process.kill();
            self.restart().await;
        }
        if let Trouble::CutAndKill(at) = trouble {
            tokio::time::sleep(Duration::from_millis(300)).await;
            self.places[at].device.mend();
        }
        self.at_rest(set).await
    }

    /// Leads every device back to where it began.
    async fn leave(&self, set: &Value, seen: &Value, theirs: Option<(usize, Value)>, told: &str) {
        let api = self.api();
        let mut seen = seen.clone();
        if seen["outcome"]["state"] == "awaiting_confirm" {
            seen = act(api, set, "revert", &json!({})).await.expect_status(200).body;
        }
        if seen["outcome"]["state"] == "stuck" {
            act(api, set, "verify", &json!({})).await.expect_status(200);
            seen = self.at_rest(set).await;
        }
        if seen["outcome"]["state"] == "stuck" {
            let back = act(api, set, "revert", &json!({})).await;
            assert_eq!(back.status, 200, "{told}: {}", back.text);
            seen = back.body;
        }
        if seen["outcome"]["state"] == "committed" {
            let inverse = act(api, set, "revert", &json!({})).await.expect_status(201).body;
            let back = act(api, &inverse, "apply", &json!({ "force": true })).await;
            assert_eq!(back.status, 200, "{told}: {}", back.text);
        } else {
            act(api, set, "discard", &json!({})).await.expect_status(200);
        }
        if let Some((_, theirs)) = theirs {
            let post = async |change: &Value, verb: &str, body: &Value, status: u16| {
                api.post(&super::super::path(change, verb), body).await.expect_status(status).body
            };
            let inverse = post(&theirs, "revert", &json!({}), 201).await;
            post(&inverse, "apply", &json!({ "force": true }), 200).await;
        }
        for place in &self.places {
            assert_eq!(
                place.device.configuration(),
                place.before,
                "{}, {told}: as it was",
                place.vendor.id()
            );
        }
    }

    /// How often each call of the set's plans may arrive at its device, and how often it did.
    fn check_at_most_once(&self, set: &Value, told: &str) {
        for place in &self.places {
            let executed = place.device.executed();
            let parts = set["parts"].as_array().expect("a set has parts");
            let part = parts.iter().find(|part| part["controller_id"] == place.controller);
            let native = part.and_then(|part| part["plan"]["native"].as_array()).expect("a part has a plan");
            let names: Vec<(String, &Value)> =
                native.iter().map(|call| (place.device.name_of(call), call)).collect();
            for (name, _) in &names {
                let same = || names.iter().filter(|(other, _)| other == name).map(|(_, call)| *call);
                // What leads back or makes permanent may be sent as often as it must, where the plan says so.
                if same().any(|call| call["stage"] != "apply" && call["repeatable"] == true) {
                    continue;
                }
                let arrived = executed.iter().filter(|other| fits(name, other)).count();
                assert!(
                    arrived <= same().count(),
                    "{}: {name} arrived {arrived} times, {told}: {executed:?}",
                    place.vendor.id()
                );
            }
        }
    }

    fn trouble(&mut self, round: u32) -> Trouble {
        let places = u64::try_from(self.places.len()).expect("they are few");
        let at = usize::try_from(self.random.next(places)).expect("it is small");
        match round % 4 {
            0 => Trouble::Kill,
            1 => Trouble::Cut(at),
            2 => Trouble::KillTwice,
            _ => Trouble::CutAndKill(at),
        }
    }
}

/// The standing of the part at each place, for the figures of a long run.
fn told_standings(rig: &Rig, seen: &Value) -> Vec<String> {
    rig.places.iter().map(|place| format!("{} {}", place.vendor.id(), standing(seen, place))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_and_faults_leave_a_set_committed_or_compensated_or_stuck_and_never_false() {
    let mut rig = Rig::start().await;
    let rounds = variable("SET_KILLS").map_or(ROUNDS, |text| text.parse().expect("SET_KILLS is a number"));
    for scene in SCENES {
        let (set, verb, body, theirs) = rig.open(scene).await;
        let began = Instant::now();
        act(rig.api(), &set, verb, &body).await;
        rig.spans.insert(scene, began.elapsed());
        let told = format!("{scene:?} undisturbed");
        let seen = rig.at_rest(&set).await;
        if theirs.is_none() {
            check_truth(&rig.places, &seen, &told);
        }
        let expected = match scene {
            Scene::Apply | Scene::Confirm => "committed",
            Scene::Hold => "awaiting_confirm",
            Scene::TakeBack | Scene::Refused => "compensated",
        };
        assert_eq!(seen["outcome"]["state"], expected, "{told}: {seen}");
        rig.leave(&set, &seen, theirs, &told).await;
    }
    let mut ends: BTreeMap<String, u32> = BTreeMap::new();
    let count = u32::try_from(SCENES.len()).expect("they are few");
    for round in 0..rounds {
        let scene = SCENES[usize::try_from(round % count).expect("it is small")];
        let trouble = rig.trouble(round / count + round);
        let (set, verb, body, theirs) = rig.open(scene).await;
        rig.places.iter().for_each(|place| place.device.forget());
        let span = rig.spans[&scene] * 5 / 4;
        let moment = span * u32::try_from(rig.random.next(1000)).expect("it is small") / 1000;
        let told = format!("seed {} round {round} {scene:?} {trouble:?} after {moment:?}", rig.random.seed);
        let _place = support::Place(told.clone());
        let seen = rig.disturb(&set, (verb, &body), trouble, moment).await;
        rig.check_at_most_once(&set, &told);
        if let Some((at, _)) = &theirs {
            // The object of the other person is there, whatever became of the set; all else reads as before.
            assert_ne!(seen["outcome"]["state"], "committed", "{told}: {seen}");
            let others = rig.places.iter().enumerate().filter(|(other, _)| other != at);
            for (_, place) in
                others.filter(|(_, place)| ["waiting", "unchanged"].contains(&standing(&seen, place)))
            {
                assert!(place.is_before(), "{}, {told}: {seen}", place.vendor.id());
            }
        } else {
            check_truth(&rig.places, &seen, &told);
        }
        *ends.entry(format!("{scene:?} {}", seen["outcome"]["state"])).or_default() += 1;
        if seen["outcome"]["state"] == "stuck" {
            eprintln!("{told}: {:?}", told_standings(&rig, &seen));
        }
        rig.leave(&set, &seen, theirs, &told).await;
    }
    let audit = rig.api().get("/audit/validate").await.expect_status(200).body;
    assert_eq!(audit["valid"], true, "{audit}");
    eprintln!("{rounds} kills and faults, {ends:?}");
}
