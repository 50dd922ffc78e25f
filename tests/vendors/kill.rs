//! The service is killed while a change is applied at a vendor's controller: each call of the apply arrives at most once,
//! and after the restart the record says what the device shows.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::labs::{self, Practice};
use super::{Case, cases, path};
use crate::support::{Adapters, Database, Options, Place, Process, Random};

/// Kills for each vendor. The time from the first byte of the apply to its answer is divided among them.
const KILLS: u32 = 6;

struct Rig {
    case: Case,
    device: Box<dyn Practice>,
    folder: TempDir,
    options: Options,
    process: Process,
    token: String,
    controller: String,
}

impl Rig {
    async fn start(vendor: &str) -> Self {
        let case = cases().into_iter().find(|case| case.vendor == vendor).expect("the vendor has a case");
        let device = labs::start(vendor).await;
        let folder = tempfile::tempdir().expect("a folder can be made");
        let options = Options::default()
            .serving(Adapters::Of(vec![vendor.to_owned()]))
            .with("SYNC_INTERVAL_SECS", "3600")
            .with("LOG_FILTER", "warn")
            .with("APPLY_SETTLE_MS", "50");
        let started = Process::start(folder.path(), &Database::sqlite(), &options).await;
        let (process, token) = started.set_up().await;
        let controller = super::register(&process.api, vendor, &*device).await;
        Self { case, device, folder, options, process, token, controller }
    }

    async fn restart(&mut self) {
        let process = Process::start(self.folder.path(), &Database::sqlite(), &self.options).await;
        self.process = process.with_token(&self.token);
    }

    async fn stage(&self) -> Value {
        let Case { vendor, area, feature, payload, .. } = &self.case;
        let path = format!("/gateway-{vendor}-{area}/{}/changes/{feature}?operation=create", self.controller);
        let change =
            self.process.api.post(&path, &json!({ "payload": payload })).await.expect_status(201).body;
        assert!(change["plan"].is_object(), "{change}");
        change
    }

    async fn at_rest(&self, change: &Value) -> Value {
        for _ in 0..1800 {
            let seen = self.process.api.get(&path(change, "")).await.expect_status(200).body;
            if seen["outcome"]["step"] == "idle" {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the apply does not end: {change}");
    }

    /// Applies, kills the service at this moment, starts it again, and returns the change at rest.
    async fn kill_in_apply(&mut self, change: &Value, moment: Duration) -> Value {
        let (api, path) = (self.process.api.clone(), path(change, "apply"));
        let sending = async {
            let body = json!({ "force": true }).to_string().into_bytes();
            let _ = api.try_send("POST", &path, Some(body)).await;
        };
        let dying = async {
            tokio::time::sleep(moment).await;
            self.process.kill();
        };
        tokio::join!(sending, dying);
        self.restart().await;
        self.at_rest(change).await
    }

    /// Takes the change back where it is in effect, and gives it up where it is not.
    async fn leave(&self, change: &Value, seen: &Value) {
        let api = &self.process.api;
        if seen["status"] == "applied" {
            let inverse = api.post(&path(change, "revert"), &json!({})).await.expect_status(201).body;
            api.post(&path(&inverse, "apply"), &json!({ "force": true })).await.expect_status(200);
        } else {
            api.post(&path(change, "discard"), &json!({})).await.expect_status(200);
        }
    }
}

fn name_of(call: &Value) -> String {
    let text = |name: &str| call[name].as_str().expect("a call has a method and a path");
    format!("{} {}", text("method"), text("path"))
}

/// Every call of an apply that nothing disturbed arrived once: the record has the names of the plan.
fn check_each_once(rig: &Rig, change: &Value) {
    let Some(executed) = rig.device.executed() else { return };
    let native = change["plan"]["native"].as_array().expect("a plan has calls");
    for call in native.iter().filter(|call| call["stage"] == "apply") {
        assert!(executed.contains(&name_of(call)), "{} is not in {executed:?}", name_of(call));
    }
}

/// How often each call of the apply may arrive, and how often it did.
fn check_at_most_once(rig: &Rig, change: &Value, is_taken_back: bool, told: &str) {
    let Some(executed) = rig.device.executed() else { return };
    let native = change["plan"]["native"].as_array().expect("a plan has calls");
    let apply = native.iter().filter(|call| call["stage"] == "apply");
    let names: Vec<String> = apply.map(name_of).collect();
    for name in &names {
        let planned = names.iter().filter(|other| *other == name).count();
        // The way back may activate by the same call.
        let is_shared =
            is_taken_back && native.iter().any(|call| call["stage"] == "restore" && *name == name_of(call));
        let arrived = executed.iter().filter(|other| *other == name).count();
        assert!(arrived <= planned + usize::from(is_shared), "{name} arrived {arrived} times, {told}");
    }
}

async fn kills_leave_no_doubt(vendor: &str) {
    let mut rig = Rig::start(vendor).await;
    let mut random = Random::new();
    let before = rig.device.configuration();
    let first = rig.stage().await;
    let began = Instant::now();
    rig.process.api.post(&path(&first, "apply"), &json!({ "force": true })).await.expect_status(200);
    let span = began.elapsed();
    check_each_once(&rig, &first);
    let applied = rig.device.configuration();
    let seen = rig.at_rest(&first).await;
    rig.leave(&first, &seen).await;
    assert_eq!(rig.device.configuration(), before, "{vendor}: as it was");
    for kill in 0..KILLS {
        let told = format!("{vendor}: seed {} kill {kill}", random.seed);
        let _place = Place(told.clone());
        rig.device.forget();
        let change = rig.stage().await;
        let within = u32::try_from(random.next(1000)).expect("it is small");
        let moment = span / KILLS * kill + span / KILLS * within / 1000;
        let seen = rig.kill_in_apply(&change, moment).await;
        let state = seen["outcome"]["state"].as_str().unwrap_or_default();
        check_at_most_once(&rig, &change, state == "reverted", &told);
        match state {
            "applied" => assert_ne!(rig.device.configuration(), before, "{told}: {seen}"),
            "none" | "failed" | "reverted" => {
                assert_eq!(rig.device.configuration(), before, "{told}: {seen}");
            }
            other => panic!("the end is {other}, {told}: {seen}"),
        }
        rig.leave(&change, &seen).await;
        assert_eq!(rig.device.configuration(), before, "{told}: as it was");
    }
    assert_ne!(applied, before);
}

macro_rules! killed {
    ($($vendor:ident),*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $vendor() {
            kills_leave_no_doubt(stringify!($vendor)).await;
        }
    )*};
}

killed!(openwrt, opnsense, proxmox, omada);
