//! A simulated console, and a host that asks it without a connection.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use heddle_lab::{Controller as _, FormPart, Lab};
use heddle_lab_unifi::{Console, Kind, Settings};
use heddle_sdk::testing::{FakeHost, Package, Practice, method_word, response};
use heddle_sdk::{Auth, Body, Method, Part, Request, Response};
use serde_json::{Map, Value, json};

use crate::Unifi;

/// Tables of the console that move by themselves, or keep what happened.
const MOVING: [&str; 8] = ["log", "sta", "health", "alarm", "event", "session", "report", "topology"];
/// Fields that a new object gets anew, or that move by themselves.
const OWN: [&str; 14] = [
    "_id",
    "external_id",
    "site_id",
    "last_seen",
    "first_seen",
    "uptime",
    "index",
    "attr_no_delete",
    "state",
    "cfgversion",
    "provisioned_at",
    "last_config_applied_successfully",
    "hits",
    "last_hit",
];

/// What the official interface wrote of an object that the older ones have no words for.
const OFFICIAL: &str = "~official";

/// The checked-in manifest and description.
pub(super) fn package() -> &'static Package {
    heddle_sdk::package_of!("../../manifest.json", "../../description.json")
}

/// The checked-in description.
pub(super) fn description() -> &'static Value {
    package().description()
}

pub(super) struct Device {
    lab: Lab<Console>,
    /// Keeps the lab's tasks.
    _runtime: tokio::runtime::Runtime,
    key: String,
    /// Headers of a session by account; empty where the key proves who asks.
    session: RefCell<Vec<(String, String)>>,
    /// What the controller's settings say.
    pub(super) settings: Value,
    /// Requests that may write.
    pub(super) writes: Cell<usize>,
    /// Requests in all; moves the time of the host, as it moves for real.
    asked: Cell<u64>,
    /// What is known of the holes of the plan that is sent.
    holes: RefCell<BTreeMap<String, Value>>,
    left: RefCell<BTreeSet<String>>,
}

impl Device {
    pub(super) fn new() -> Self {
        Self::of(Settings::default())
    }

    pub(super) fn of(settings: Settings) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let key = settings.api_keys[0].clone();
        let is_classic = settings.kind == Kind::Classic;
        let lab = runtime.block_on(Lab::builder(Console::new(settings)).paused().start());
        let device = Device {
            lab,
            _runtime: runtime,
            key,
            session: RefCell::default(),
            settings: json!({ "login": if is_classic { "self-hosted" } else { "api-key" } }),
            writes: Cell::new(0),
            asked: Cell::new(0),
            holes: RefCell::default(),
            left: RefCell::default(),
        };
        if is_classic {
            device.log_in("/api/login");
        }
        device
    }

    /// The same console, asked by an account.
    pub(super) fn with_account(mut self) -> Self {
        self.settings = json!({ "login": "account" });
        self.log_in("/api/auth/login");
        self
    }

    pub(super) fn with_key(mut self, key: &str) -> Self {
        key.clone_into(&mut self.key);
        self
    }

    /// What the host's login does.
    fn log_in(&self, path: &str) {
        let (username, password) = Settings::default().admin;
        let body = json!({ "username": username, "password": password, "rememberMe": true });
        let sent = heddle_lab::Request::new("POST", path, body.to_string())
            .with_header("content-type", "application/json");
        let mut locked = self.lab.lock();
        let (console, context) = locked.parts();
        let answer = console.handle(&sent, context);
        assert_eq!(answer.status, 200);
        let cookies: Vec<String> = answer
            .headers
            .iter()
            .filter(|(name, _)| name == "set-cookie")
            .filter_map(|(_, value)| value.split(';').next().map(str::to_owned))
            .collect();
        let mut session = vec![("cookie".to_owned(), cookies.join("; "))];
        session.extend(answer.headers.iter().filter(|(name, _)| name == "x-csrf-token").cloned());
        self.session.replace(session);
    }

    pub(super) fn lab(&self) -> &Lab<Console> {
        &self.lab
    }

    /// The SHA-256 of a backup that the console knows.
    pub(super) fn backup_sha256(&self) -> String {
        let mut locked = self.lab.lock();
        let (console, _) = locked.parts();
        console.backup_sha256().expect("a console has a backup from the start")
    }

    /// Requests so far.
    pub(super) fn asked(&self) -> u64 {
        self.asked.get()
    }

    pub(super) fn host(&self) -> FakeHost<'_> {
        let mut host =
            FakeHost::new(|request, auth| Ok(self.exchange(request, auth))).with_package(package());
        host.settings = self.settings.clone();
        host.now_ms.set(1_700_000_000_000 + self.asked.get());
        host.holes.replace(self.holes.borrow().clone());
        host.left.replace(self.left.borrow().clone());
        host
    }

    /// Lets devices take what they were given.
    pub(super) fn rest(&self) {
        self.lab.advance(Duration::from_secs(30));
    }

    pub(super) fn exchange(&self, request: &Request, auth: &Auth) -> Response {
        let wanted = self.settings["login"].as_str().unwrap();
        assert!(matches!(auth, Auth::Session(name) if name == wanted), "{auth:?}");
        self.asked.set(self.asked.get() + 1);
        if request.method != Method::Get && !package().is_read(request) {
            self.writes.set(self.writes.get() + 1);
        }
        let body = match &request.body {
            Body::Json(text) => text.clone(),
            _ => String::new(),
        };
        let mut sent = heddle_lab::Request::new(method_word(request.method), &request.path, body.clone());
        if !body.is_empty() {
            sent = sent.with_header("content-type", "application/json");
        }
        let session = self.session.borrow().clone();
        if session.is_empty() {
            sent = sent.with_header("x-api-key", &self.key);
        }
        for (name, value) in &session {
            sent = sent.with_header(name, value);
        }
        if let Body::Multipart(parts) = &request.body {
            sent = sent.with_header("content-type", "multipart/form-data; boundary=x");
            let of =
                |part: &Part| FormPart::of_reference(&part.name, part.filename.as_deref(), &part.content);
            sent.parts = parts.iter().map(of).collect();
        }
        let mut locked = self.lab.lock();
        let (console, context) = locked.parts();
        let answer = console.handle(&sent, context);
        // The host takes a new token from any answer.
        for (name, value) in answer.headers.iter().filter(|(name, _)| name == "x-csrf-token") {
            if let Some(known) = self.session.borrow_mut().iter_mut().find(|(own, _)| own == name) {
                known.1.clone_from(value);
            }
        }
        response(answer.status, answer.headers, answer.body)
    }

    /// What a person does at the web pages, below the prefix.
    pub(super) fn person(&self, method: Method, path: &str, body: &Value) -> Value {
        let prefix = if self.settings["login"] == "self-hosted" { "" } else { "/proxy/network" };
        let request = Request::new(method, format!("{prefix}{path}"));
        let is_bare = matches!(method, Method::Get | Method::Delete);
        let request = if is_bare { request } else { request.with_json(body) };
        let answer =
            self.exchange(&request, &Auth::session(self.settings["login"].as_str().unwrap().to_owned()));
        let text: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        assert!((200..300).contains(&answer.status), "{path}: {} {text}", answer.status);
        text
    }

    /// What is stored in a table of the first site.
    pub(super) fn table(&self, table: &str) -> Vec<Value> {
        self.lab.state()["default"][table].as_array().cloned().unwrap_or_default()
    }

    /// The row of a table of the first site whose field is this.
    #[track_caller]
    pub(super) fn row(&self, table: &str, field: &str, wanted: &str) -> Value {
        let found = self.table(table).into_iter().find(|row| row[field] == wanted);
        found.unwrap_or_else(|| panic!("no row of {table} has {field} '{wanted}'"))
    }
}

impl Practice for Device {
    type Adapter = Unifi;

    fn host(&self) -> FakeHost<'_> {
        self.host()
    }

    fn state(&self) -> Value {
        plain(&self.traces().unwrap_or_default()["stored"])
    }

    fn traces(&self) -> Option<Value> {
        let mut locked = self.lab.lock();
        let (console, _) = locked.parts();
        Some(console.traces())
    }

    fn wait_ms(&self, ms: u64) {
        self.lab.advance(Duration::from_millis(ms));
    }

    fn settle(&self) {
        self.rest();
    }
}

/// What is stored, without what moves, and without what says nothing.
fn plain(state: &Value) -> Value {
    match state {
        Value::Object(fields) => {
            let is_kept = |(name, value): &(&String, &Value)| {
                // Fields of the simulator move by themselves, but for what the official interface wrote.
                let is_simulated = name.starts_with('~') && *name != OFFICIAL;
                let is_moving =
                    MOVING.contains(&name.as_str()) || OWN.contains(&name.as_str()) || is_simulated;
                !is_moving && !is_nothing(value)
            };
            let kept: Map<String, Value> = fields
                .iter()
                .filter(is_kept)
                .map(|(name, value)| (name.clone(), plain(value)))
                .filter(|(_, value)| !is_nothing(value))
                .collect();
            Value::Object(kept)
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(plain).collect();
            // What is written back stands at the end of its table.
            items.sort_by_key(|item| heddle_sdk::json::canonical(item).to_string());
            Value::Array(items)
        }
        other => other.clone(),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(_) | Value::Bool(true) => false,
    }
}
