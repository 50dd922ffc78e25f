//! A device that says itself what its adapter does: a test plays every kind of adapter with it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::{Path as At, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::Lab as RouterLab;
use crate::sandbox::package;
use crate::support::{Api, Database, Options, Server};

/// What the device says, and what it received.
pub(super) struct Script {
    /// `{holds, undo_takes_all, touches, stages}`.
    pub(super) plan: Value,
    /// How each stage ends; done when it is not named.
    pub(super) said: BTreeMap<String, Value>,
    /// Where the device stands once a stage was sent.
    pub(super) then: BTreeMap<String, Value>,
    /// How the task goes; the last answer stays.
    pub(super) task: Vec<Value>,
    /// Where the device stands once its task has ended.
    pub(super) task_then: Option<Value>,
    pub(super) compare: Value,
    /// The stages that were sent.
    pub(super) sent: Vec<String>,
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
            plan: json!({ "holds": true, "undo_takes_all": true, "touches": [], "stages": ["apply", "confirm", "undo", "restore"] }),
            said: BTreeMap::new(),
            then: then.into_iter().map(|(stage, standing)| (stage.to_owned(), standing)).collect(),
            task: vec![json!({})],
            task_then: None,
            compare: before(),
            sent: Vec::new(),
            comparisons: 0,
        }
    }
}

type Shared = Arc<Mutex<Script>>;

fn lock(script: &Shared) -> MutexGuard<'_, Script> {
    script.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

async fn write(State(script): State<Shared>, Json(body): Json<Value>) -> Json<Value> {
    let mut script = lock(&script);
    let stage = body["stage"].as_str().unwrap_or_default().to_owned();
    if let Some(standing) = script.then.get(&stage).cloned() {
        script.compare = standing;
    }
    script.sent.push(stage);
    Json(json!({}))
}

async fn said(State(script): State<Shared>, At(stage): At<String>) -> Json<Value> {
    Json(lock(&script).said.get(&stage).cloned().unwrap_or(json!({})))
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

/// A server with the scripted adapter, and its device.
pub(super) struct Scripted {
    _server: Server,
    pub(super) api: Api,
    pub(super) controller: String,
    script: Shared,
    serving: tokio::task::JoinHandle<()>,
    _packages: tempfile::TempDir,
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn lay_package(folder: &Path) {
    let mut manifest = package::manifest();
    manifest["reads"] = json!([]);
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

impl Scripted {
    pub(super) async fn start(database: Database) -> Self {
        let packages = tempfile::tempdir().expect("a folder can be made");
        lay_package(packages.path());
        let script = Shared::default();
        let routes = Router::new()
            .route("/read", get(async || Json(json!({}))))
            .route("/plan", get(async |State(script): State<Shared>| Json(lock(&script).plan.clone())))
            .route("/write", post(write))
            .route("/said/{stage}", get(said))
            .route("/task", get(task))
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
        let options = Options::default()
            .with("ADAPTER_PACKAGES", packages.path().display().to_string())
            .with("ADAPTER_TRUSTED_KEYS", packages.path().join("trusted-keys.json").display().to_string())
            .with("APPLY_SETTLE_MS", "50")
            .with("APPLY_HOLD_SECS", "8");
        let server = Server::start_with(database, options).await;
        let api = server.set_up().await;
        let credential = json!({ "name": "device", "username": "root", "password": "canary-5uP3r-secret" });
        let credential = api.post("/credentials", &credential).await.expect_status(201).body;
        let sites = api.get("/sites").await.expect_status(200).body;
        let controller = json!({
            "name": "scripted", "site_id": sites["items"][0]["id"], "vendor": "hostile", "url": url,
            "credential_id": credential["id"],
        });
        let controller = api.post("/controllers", &controller).await.expect_status(201).body;
        let controller = controller["id"].as_str().expect("a controller has an id").to_owned();
        Self { _server: server, api, controller, script, serving, _packages: packages }
    }

    pub(super) fn script(&self) -> MutexGuard<'_, Script> {
        lock(&self.script)
    }

    pub(super) async fn stage(&self, name: &str) -> Value {
        let path =
            format!("/gateway-hostile-lab/{}/changes/hostile.lab.thing?operation=update", self.controller);
        let body = json!({ "payload": { "trick": format!("scripted {name}") } });
        self.api.post(&path, &body).await.expect_status(201).body
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
