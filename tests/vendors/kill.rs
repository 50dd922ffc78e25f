//! The service is killed while a change goes through its stages at a vendor's controller: each call arrives at most once,
//! and after the restart the record says what the device shows.
//!
//! `VENDOR_KILLS` is the number of kills for each vendor.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::path;
use super::practice::{Case, Practice, Task, Vendor};
use crate::support::{Adapters, Database, Options, Place, Process, Random, variable};

/// Kills for each vendor where the variable names no number. The scenes take turns.
const KILLS: u32 = 8;

/// What is under way when the service is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scene {
    /// A plain apply.
    Apply,
    /// An apply with a confirm window.
    Hold,
    /// The confirmation of what is held.
    Confirm,
    /// Taking back what is held: the restore.
    TakeBack,
    /// The apply of the inverse of what was applied.
    Inverse,
    /// An apply that begins a task at the device.
    Job,
}

/// The request that is under way, with the change that it is about.
struct Request {
    verb: &'static str,
    body: Value,
    change: Value,
}

struct Rig {
    vendor: &'static dyn Vendor,
    case: Case,
    device: Box<dyn Practice>,
    folder: TempDir,
    options: Options,
    process: Process,
    token: String,
    controller: String,
    before: Value,
    /// How long the request of a scene takes that nothing disturbs.
    spans: BTreeMap<Scene, Duration>,
}

impl Rig {
    async fn start(vendor: &'static dyn Vendor) -> Self {
        let device = vendor.start().await;
        let folder = tempfile::tempdir().expect("a folder can be made");
        let options = Options::default()
            .serving(Adapters::Of(vec![vendor.id().to_owned()]))
            .with("SYNC_INTERVAL_SECS", "3600")
            .with("LOG_FILTER", "warn")
            .with("APPLY_SETTLE_MS", "50");
        let started = Process::start(folder.path(), &Database::sqlite(), &options).await;
        let (process, token) = started.set_up().await;
        let controller = super::register(&process.api, vendor.id(), &*device).await;
        let before = device.configuration();
        let (case, spans) = (vendor.case(), BTreeMap::new());
        Self { vendor, case, device, folder, options, process, token, controller, before, spans }
    }

    fn scenes(&self) -> Vec<Scene> {
        let mut scenes = vec![Scene::Apply, Scene::Hold, Scene::Confirm, Scene::TakeBack, Scene::Inverse];
        scenes.extend(self.vendor.task().map(|_| Scene::Job));
        scenes
    }

    async fn restart(&mut self) {
        let process = Process::start(self.folder.path(), &Database::sqlite(), &self.options).await;
        self.process = process.with_token(&self.token);
    }

    async fn stage(&self, (area, feature, payload): (&str, &str, &Value)) -> Value {
        let vendor = self.vendor.id();
        let path = format!("/gateway-{vendor}-{area}/{}/changes/{feature}?operation=create", self.controller);
        let change =
            self.process.api.post(&path, &json!({ "payload": payload })).await.expect_status(201).body;
        assert!(change["plan"].is_object(), "{change}");
        change
    }

    async fn act(&self, change: &Value, verb: &str, body: &Value) -> Value {
        let answer = self.process.api.post(&path(change, verb), body).await;
        assert!((200..300).contains(&answer.status), "{verb}: {}", answer.text);
        answer.body
    }

    /// Brings the device to where the scene begins, and says what is sent then.
    async fn open(&self, scene: Scene) -> Request {
        let change = match scene {
            Scene::Job => {
                let Task { area, feature, payload } =
                    self.vendor.task().expect("the scene is one of the vendor's");
                self.stage((area, feature, &payload)).await
            }
            _ => self.stage((self.case.area, self.case.feature, &self.case.payload)).await,
        };
        let (plain, held) = (json!({ "force": true }), json!({ "force": true, "confirm_within_secs": 300 }));
        match scene {
            Scene::Apply | Scene::Job => Request { verb: "apply", body: plain, change },
            Scene::Hold => Request { verb: "apply", body: held, change },
            Scene::Confirm | Scene::TakeBack => {
                let seen = self.act(&change, "apply", &held).await;
                assert_eq!(seen["outcome"]["state"], "awaiting_confirm", "{seen}");
                let verb = if scene == Scene::Confirm { "confirm" } else { "revert" };
                Request { verb, body: json!({}), change }
            }
            Scene::Inverse => {
                self.act(&change, "apply", &plain).await;
                let inverse = self.act(&change, "revert", &json!({})).await;
                Request { verb: "apply", body: plain, change: inverse }
            }
        }
    }

    async fn at_rest(&self, change: &Value) -> Value {
        for _ in 0..1800 {
            let seen = self.process.api.get(&path(change, "")).await.expect_status(200).body;
            let is_held =
                seen["outcome"]["state"] == "awaiting_confirm" && seen["outcome"]["step"] == "holding";
            if seen["outcome"]["step"] == "idle" || is_held {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the apply does not end: {change}");
    }

    /// Sends the request, kills the service at this moment, starts it again, and returns the change at rest.
    async fn kill_in(&mut self, request: &Request, moment: Duration) -> Value {
        let (api, path) = (self.process.api.clone(), path(&request.change, request.verb));
        let body = request.body.to_string().into_bytes();
        let sending = async {
            let _ = api.try_send("POST", &path, Some(body)).await;
        };
        let dying = async {
            tokio::time::sleep(moment).await;
            self.process.kill();
        };
        tokio::join!(sending, dying);
        self.restart().await;
        self.at_rest(&request.change).await
    }

    /// Checks that the device is as the record says, and leads it back to where it began.
    async fn leave(&self, scene: Scene, change: &Value, seen: &Value, told: &str) {
        let (now, state) =
            (self.device.configuration(), seen["outcome"]["state"].as_str().unwrap_or_default());
        // An inverse leads back: it is before where the others are after.
        let is_begun = matches!(state, "applied" | "awaiting_confirm");
        let is_before = is_begun == (scene == Scene::Inverse);
        assert!(
            matches!(state, "applied" | "awaiting_confirm" | "none" | "failed" | "reverted"),
            "the end is {state}, {told}: {seen}"
        );
        let (executed, before) = (self.device.executed(), &self.before);
        assert_eq!(now == *before, is_before, "{told}: {executed:?} {now} was {before}: {seen}");
        match (scene, state) {
            (_, "awaiting_confirm") => drop(self.act(change, "revert", &json!({})).await),
            (Scene::Inverse, "applied") => {}
            (Scene::Inverse, _) => drop(self.act(change, "apply", &json!({ "force": true })).await),
            (_, "applied") => {
                let inverse = self.act(change, "revert", &json!({})).await;
                let ended = self.act(&inverse, "apply", &json!({ "force": true })).await;
                self.at_rest(&ended).await;
            }
            _ => {}
        }
        let seen = self.at_rest(change).await;
        if seen["status"] == "pending" {
            self.act(change, "discard", &json!({})).await;
        }
        assert_eq!(self.device.configuration(), self.before, "{told}: as it was");
    }
}

/// Whether a name is that of a call, in which `{{…}}` stands for anything.
pub(super) fn fits(planned: &str, name: &str) -> bool {
    let mut parts = planned.split("{{").map(|part| part.split_once("}}").map_or(part, |(_, rest)| rest));
    let Some(mut left) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut has_hole = false;
    for part in parts {
        has_hole = true;
        let Some(at) = left.rfind(part) else { return false };
        left = &left[at + part.len()..];
    }
    has_hole || left.is_empty()
}

/// How often each call of the plan may arrive, and how often it did.
fn check_at_most_once(rig: &Rig, change: &Value, told: &str) {
    let executed = rig.device.executed();
    let native = change["plan"]["native"].as_array().expect("a plan has calls");
    let names: Vec<(String, &Value)> = native.iter().map(|call| (rig.device.name_of(call), call)).collect();
    for (name, _) in &names {
        // Several stages may have a call of one name; one that may be repeated arrives as often as it must.
        let same = || names.iter().filter(|(other, _)| other == name).map(|(_, call)| *call);
        if same().any(|call| call["stage"] != "apply" && call["repeatable"] == true) {
            continue;
        }
        let arrived = executed.iter().filter(|other| fits(name, other)).count();
        assert!(arrived <= same().count(), "{name} arrived {arrived} times, {told}: {executed:?}");
    }
}

/// Every call of an apply that nothing disturbed arrived: the record has the names of the plan.
fn check_each_once(rig: &Rig, change: &Value) {
    let executed = rig.device.executed();
    let native = change["plan"]["native"].as_array().expect("a plan has calls");
    for call in native.iter().filter(|call| call["stage"] == "apply") {
        let name = rig.device.name_of(call);
        assert!(executed.iter().any(|other| fits(&name, other)), "{name} is not in {executed:?}");
    }
}

async fn kills_leave_no_doubt(vendor: &'static dyn Vendor) {
    let mut rig = Rig::start(vendor).await;
    let vendor = vendor.id();
    let mut random = Random::new();
    let kills =
        variable("VENDOR_KILLS").map_or(KILLS, |text| text.parse().expect("VENDOR_KILLS is a number"));
    let scenes = rig.scenes();
    for scene in scenes.clone() {
        let request = rig.open(scene).await;
        rig.device.forget();
        let began = Instant::now();
        rig.act(&request.change, request.verb, &request.body).await;
        rig.spans.insert(scene, began.elapsed());
        let told = format!("{vendor}: {scene:?} undisturbed");
        let seen = rig.at_rest(&request.change).await;
        if scene == Scene::Apply {
            check_each_once(&rig, &request.change);
        }
        check_at_most_once(&rig, &request.change, &told);
        rig.leave(scene, &request.change, &seen, &told).await;
    }
    let mut ends: BTreeMap<String, u32> = BTreeMap::new();
    let rounds = kills.div_ceil(u32::try_from(scenes.len()).expect("they are few"));
    for kill in 0..kills {
        let at = usize::try_from(kill).expect("it is small");
        let (scene, round) =
            (scenes[at % scenes.len()], kill / u32::try_from(scenes.len()).expect("they are few"));
        let request = rig.open(scene).await;
        rig.device.forget();
        let within = u32::try_from(random.next(1000)).expect("it is small");
        // From the first byte to after the answer.
        let span = rig.spans[&scene] * 5 / 4 / rounds;
        let moment = span * round + span * within / 1000;
        let told = format!("{vendor}: seed {} kill {kill} {scene:?} after {moment:?}", random.seed);
        let _place = Place(told.clone());
        let seen = rig.kill_in(&request, moment).await;
        check_at_most_once(&rig, &request.change, &told);
        *ends.entry(format!("{scene:?} {}", seen["outcome"]["state"])).or_default() += 1;
        rig.leave(scene, &request.change, &seen, &told).await;
    }
    let audit = rig.process.api.get("/audit/validate").await.expect_status(200).body;
    assert_eq!(audit["valid"], true, "{audit}");
    // The figures of a long run.
    eprintln!("{vendor}: {kills} kills, {ends:?}");
}

test_each_vendor!(kills_leave_no_doubt);
