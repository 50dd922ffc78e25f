//! A device that says itself what its adapter does: a test plays every kind of adapter with it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path as At, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::Lab as RouterLab;
use crate::sandbox::package;
use crate::support::{Api, Database, Options, Server};

/// What the device says, and what it received.
pub(super) struct Script {
    /// The vendor's sites.
    pub(super) sites: Vec<&'static str>,
    /// How many plans were asked for, and whether they wait.
    pub(super) plans: usize,
    pub(super) holds_plans: bool,
    /// `{holds, undo_takes_all, touches, stages}`, and `{calls: {apply: 2}, once}`: how many calls a stage has, and
    /// whether none of them may be sent twice. With `shows_at_once` the first call of a stage shows as all of them.
    pub(super) plan: Value,
    /// Where a stage goes on, `{from}`, or `{fault}`; behind what left when it is not named.
    pub(super) ready: BTreeMap<String, Value>,
    /// How each stage ends; done when it is not named.
    pub(super) said: BTreeMap<String, Value>,
    /// Where the device stands once a stage was sent.
    pub(super) then: BTreeMap<String, Value>,
    /// How the task goes; the last answer stays.
    pub(super) task: Vec<Value>,
    /// How the task goes once a call of the stage `abort` arrived.
    pub(super) task_aborted: Option<Vec<Value>>,
    /// Where the device stands once its task has ended.
    pub(super) task_then: Option<Value>,
    pub(super) compare: Value,
    /// The stages that were sent.
    pub(super) sent: Vec<String>,
    /// Stage and number of each call that arrived.
    pub(super) calls: Vec<(String, u64)>,
    /// What filled the text of each call that names a hole: `named: {apply-1: text}` of the plan.
    pub(super) named: Vec<Value>,
    /// What calls are answered with, by stage and number: `apply-0`.
    pub(super) answers: BTreeMap<String, Value>,
    /// What `/fresh` reads.
    pub(super) fresh: Value,
    /// Stages whose calls arrive and get no answer.
    pub(super) lost: Vec<String>,
    /// Calls that take two seconds, by stage and number.
    pub(super) slow: Vec<String>,
    /// How long a call takes.
    pub(super) takes: Duration,
    pub(super) comparisons: usize,
}

pub(super) fn before() -> Value {
    json!({ "standing": "before", "items": [], "foreign": [] })
}

pub(super) fn after() -> Value {
    json!({ "standing": "after", "items": [], "foreign": [] })
}

/// Ours is in effect, and others changed this.
pub(super) fn after_with(foreign: &[&str]) -> Value {
    json!({ "standing": "after", "items": [], "foreign": foreign })
}

impl Default for Script {
    fn default() -> Self {
        let then = [("apply", after()), ("undo", before()), ("restore", before())];
        Self {
            sites: Vec::new(),
            plans: 0,
            holds_plans: false,
            plan: json!({ "holds": true, "undo_takes_all": true, "touches": [], "stages": ["apply", "confirm", "undo", "restore"] }),
            ready: BTreeMap::new(),
            said: BTreeMap::new(),
            then: then.into_iter().map(|(stage, standing)| (stage.to_owned(), standing)).collect(),
            task: vec![json!({})],
            task_aborted: None,
            task_then: None,
            compare: before(),
            sent: Vec::new(),
            calls: Vec::new(),
            named: Vec::new(),
            answers: BTreeMap::new(),
            fresh: json!({}),
            lost: Vec::new(),
            slow: Vec::new(),
            takes: Duration::ZERO,
            comparisons: 0,
        }
    }
}

type Shared = Arc<Mutex<Script>>;

fn lock(script: &Shared) -> MutexGuard<'_, Script> {
    script.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

async fn write(State(script): State<Shared>, Json(body): Json<Value>) -> Response {
    let (takes, is_lost, answer) = {
        let mut script = lock(&script);
        let stage = body["stage"].as_str().unwrap_or_default().to_owned();
        let n = body["n"].as_u64().unwrap_or_default();
        script.calls.push((stage.clone(), n));
        script.named.extend(body.get("named").cloned());
        let answer = script.answers.get(&format!("{stage}-{n}")).cloned().unwrap_or(json!({}));
        script.sent.push(stage.clone());
        script.stands(&stage);
        if stage == "abort"
            && let Some(task) = script.task_aborted.take()
        {
            script.task = task;
        }
        let is_slow = script.slow.contains(&format!("{stage}-{n}"));
        let takes = if is_slow { Duration::from_secs(2) } else { script.takes };
        (takes, script.lost.contains(&stage), answer)
    };
    tokio::time::sleep(takes).await;
    if is_lost {
        let broken = futures::stream::once(async { Err::<Bytes, _>(std::io::Error::other("cut")) });
        return Body::from_stream(broken).into_response();
    }
    Json(answer).into_response()
}

impl Script {
    /// How many calls of a stage arrived.
    pub(super) fn arrived(&self, stage: &str) -> usize {
        self.sent.iter().filter(|sent| *sent == stage).count()
    }

    /// A stage leads where it leads once all of its calls arrived; until then the device is between both.
    fn stands(&mut self, stage: &str) {
        let calls =
            self.plan["calls"][stage].as_u64().filter(|_| self.plan["shows_at_once"] != true).unwrap_or(1);
        let whole = usize::try_from(calls).is_ok_and(|calls| self.arrived(stage) >= calls);
        if let Some(standing) = self.then.get(stage).cloned() {
            self.compare = if whole { standing } else { json!({ "standing": { "part": stage } }) };
        }
    }
}

async fn plan(State(script): State<Shared>) -> Json<Value> {
    lock(&script).plans += 1;
    while lock(&script).holds_plans {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Json(lock(&script).plan.clone())
}

async fn said(State(script): State<Shared>, At(stage): At<String>) -> Json<Value> {
    Json(lock(&script).said.get(&stage).cloned().unwrap_or(json!({})))
}

/// Asked before a stage is sent, and when it goes on; `left` is in the query.
async fn ready(State(script): State<Shared>, At(stage): At<String>) -> Json<Value> {
    Json(lock(&script).ready.get(&stage).cloned().unwrap_or(json!({})))
}

async fn fresh(State(script): State<Shared>) -> Json<Value> {
    Json(lock(&script).fresh.clone())
}

async fn task(State(script): State<Shared>) -> Json<Value> {
    let mut script = lock(&script);
    let answer = if script.task.len() > 1 { script.task.remove(0) } else { script.task[0].clone() };
    if answer.get("task").is_none()
        && let Some(standing) = script.task_then.take()
    {
        script.compare = standing;
    }
    Json(answer)
}

async fn compare(State(script): State<Shared>) -> Json<Value> {
    let mut script = lock(&script);
    script.comparisons += 1;
    Json(script.compare.clone())
}

/// The device, and the package of its adapter.
pub(super) struct Device {
    pub(super) url: String,
    script: Shared,
    serving: tokio::task::JoinHandle<()>,
    packages: tempfile::TempDir,
}

impl Drop for Device {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A server with the scripted adapter, and its device.
pub(super) struct Scripted {
    pub(super) server: Server,
    pub(super) api: Api,
    pub(super) controller: String,
    device: Device,
}

/// Puts a package of the scripted adapter into a folder.
pub(crate) fn lay_package(folder: &Path, version: &str) {
    lay_package_with(folder, version, &json!({}));
}

/// The same with more keys of the manifest.
pub(crate) fn lay_package_with(folder: &Path, version: &str, more: &Value) {
    let mut manifest = package::manifest();
    for (key, value) in more.as_object().expect("keys of a manifest") {
        manifest[key] = value.clone();
    }
    manifest["reads"] = json!([]);
    manifest["version"] = json!(version);
    let files = package::packed(&manifest, &package::hostile()).expect("the package is sound");
    let home = folder.join("hostile");
    for (name, bytes) in files {
        let path = home.join(name);
        std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder can be made");
        std::fs::write(path, bytes).expect("a file can be written");
    }
    let trusted = heddle_marketplace::write_trusted_keys(&[package::key().trusted()]);
    std::fs::write(folder.join("trusted-keys.json"), trusted).expect("a file can be written");
}

impl Device {
    pub(super) async fn start() -> Self {
        let packages = tempfile::tempdir().expect("a folder can be made");
        lay_package(packages.path(), "1.0.0");
        let script = Shared::default();
        let routes = Router::new()
            .route(
                "/read",
                get(async |State(script): State<Shared>| Json(json!({ "sites": lock(&script).sites }))),
            )
            .route("/plan", get(plan))
            .route("/write", post(write))
            .route("/said/{stage}", get(said))
            .route("/ready/{stage}", get(ready))
            .route("/task", get(task))
            .route("/fresh", get(fresh))
            .route("/compare", get(compare))
            .with_state(Arc::clone(&script));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("the listener has an address"));
        #[expect(
            clippy::disallowed_methods,
            reason = "the device is the outside world, and ends with the test"
        )]
        let serving =
            tokio::spawn(async move { axum::serve(listener, routes).await.expect("the device serves") });
        Self { url, script, serving, packages }
    }

    pub(super) fn script(&self) -> MutexGuard<'_, Script> {
        lock(&self.script)
    }

    /// Puts another version of the adapter in the place of the first: a server that starts then takes it.
    pub(super) fn replace_adapter(&self, version: &str) {
        lay_package(self.packages.path(), version);
    }

    /// What a server needs to take its adapter.
    pub(super) fn options(&self) -> Options {
        let packages = self.packages.path();
        Options::default()
            .with("ADAPTER_PACKAGES", packages.display().to_string())
            .with("ADAPTER_TRUSTED_KEYS", packages.join("trusted-keys.json").display().to_string())
            .with("APPLY_SETTLE_MS", "50")
            .with("APPLY_HOLD_SECS", "8")
    }

    /// Registers it; returns the controller's id.
    pub(super) async fn register(&self, api: &Api) -> String {
        let credential = json!({ "name": "device", "username": "root", "password": "canary-5uP3r-secret" });
        let credential = api.post("/credentials", &credential).await.expect_status(201).body;
        let sites = api.get("/sites").await.expect_status(200).body;
        let controller = json!({
            "name": "scripted", "site_id": sites["items"][0]["id"], "vendor": "hostile", "url": self.url,
            "credential_id": credential["id"],
        });
        let controller = api.post("/controllers", &controller).await.expect_status(201).body;
        controller["id"].as_str().expect("a controller has an id").to_owned()
    }
}

/// Stages a change of this name.
pub(super) async fn stage(api: &Api, controller: &str, name: &str) -> Value {
    let path = format!("/gateway-hostile-lab/{controller}/changes/hostile.lab.thing?operation=update");
    let body = json!({ "payload": { "trick": format!("scripted {name}") } });
    api.post(&path, &body).await.expect_status(201).body
}

impl Scripted {
    pub(super) async fn start(database: Database) -> Self {
        Self::start_on(database, Device::start().await).await
    }

    /// The device says what it should before it is registered.
    pub(super) async fn start_on(database: Database, device: Device) -> Self {
        let server = Server::start_with(database, device.options()).await;
        let api = server.set_up().await;
        let controller = device.register(&api).await;
        Self { server, api, controller, device }
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    pub(super) fn script(&self) -> MutexGuard<'_, Script> {
        self.device.script()
    }

    pub(super) async fn stage(&self, name: &str) -> Value {
        stage(&self.api, &self.controller, name).await
    }

    pub(super) async fn get(&self, change: &Value) -> Value {
        self.api.get(&RouterLab::path(change, "")).await.expect_status(200).body
    }

    /// Does something with the change; answers the status and the body.
    pub(super) async fn act(&self, change: &Value, verb: &str, body: &Value) -> (u16, Value) {
        let answer = self.api.post(&RouterLab::path(change, verb), body).await;
        (answer.status, answer.body)
    }

    /// Applies with a window, which is then open.
    pub(super) async fn apply_held(&self, change: &Value) -> Value {
        let body = json!({ "force": true, "confirm_within_secs": 60 });
        let (status, held) = self.act(change, "apply", &body).await;
        assert_eq!((status, &held["outcome"]["state"]), (200, &json!("awaiting_confirm")), "{held}");
        held
    }
}
