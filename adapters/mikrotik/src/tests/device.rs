//! A simulated router, and a host that asks it without a connection.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use heddle_lab::{Controller as _, Lab};
use heddle_lab_mikrotik::{Release, Router, Settings};
use heddle_sdk::testing::{FakeHost, Package, Practice, method_word, response};
use heddle_sdk::{Auth, Body, Method, Request, Response};
use serde_json::{Map, Value, json};

use crate::Mikrotik;
use crate::answer::SESSION;

/// The checked-in manifest and description.
pub(super) fn package() -> &'static Package {
    heddle_sdk::package_of!("../../manifest.json", "../../description.json")
}

/// The checked-in description.
pub(super) fn description() -> &'static Value {
    package().description()
}

pub(super) struct Device {
    lab: Lab<Router>,
    /// Keeps the lab's tasks.
    _runtime: tokio::runtime::Runtime,
    user: (String, String),
    /// Requests that may write.
    pub(super) posts: Cell<usize>,
    /// Holes and ids of calls that a host keeps with a change.
    pub(super) kept: RefCell<(BTreeMap<String, Value>, BTreeSet<String>)>,
    release: Release,
    /// Requests in all; moves the time of the host, as it moves for real.
    asked: Cell<u64>,
}

impl Device {
    pub(super) fn new() -> Self {
        Self::of(Settings::default())
    }

    pub(super) fn of(settings: Settings) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (user, release) = (settings.admin.clone(), settings.release);
        let lab = runtime.block_on(Lab::builder(Router::new(settings)).paused().start());
        let (posts, asked, kept) = (Cell::new(0), Cell::new(0), RefCell::default());
        Device { lab, _runtime: runtime, user, posts, kept, release, asked }
    }

    /// The same device for a user who may read and write nothing.
    pub(super) fn for_reader(mut self) -> Self {
        self.user = Settings::default().reader;
        self
    }

    pub(super) fn with_password(mut self, password: &str) -> Self {
        password.clone_into(&mut self.user.1);
        self
    }

    pub(super) fn lab(&self) -> &Lab<Router> {
        &self.lab
    }

    /// The number behind the point of the release.
    pub(super) fn release(&self) -> u64 {
        match self.release {
            Release::V7_16 => 16,
            Release::V7_22 => 22,
            Release::V7_24 => 24,
        }
    }

    pub(super) fn asked(&self) -> u64 {
        self.asked.get()
    }

    pub(super) fn host(&self) -> FakeHost<'_> {
        let host = FakeHost::new(|request, auth| Ok(self.exchange(request, auth))).with_package(package());
        host.now_ms.set(1_700_000_000_000 + self.asked.get());
        host
    }

    pub(super) fn exchange(&self, request: &Request, auth: &Auth) -> Response {
        assert!(matches!(auth, Auth::Session(name) if name == SESSION), "{auth:?}");
        self.asked.set(self.asked.get() + 1);
        let method = method_word(request.method);
        if !package().is_read(request) {
            self.posts.set(self.posts.get() + 1);
        }
        let body = match &request.body {
            // What the host fills in.
            Body::Json(text) => text.replace("\"{{host.hold_secs}}\"", "120"),
            _ => String::new(),
        };
        let basic = BASE64_STANDARD.encode(format!("{}:{}", self.user.0, self.user.1));
        let mut sent = heddle_lab::Request::new(method, &request.path, body.clone())
            .with_header("authorization", &format!("Basic {basic}"));
        if !body.is_empty() {
            sent = sent.with_header("content-type", "application/json");
        }
        let mut locked = self.lab.lock();
        let (router, context) = locked.parts();
        let answer = router.handle(&sent, context);
        response(answer.status, answer.headers, answer.body)
    }

    /// What a person does at the console.
    pub(super) fn person(&self, menu: &str, command: &str, args: &Value) -> Value {
        self.lab.edit(&json!({ "do": "command", "menu": menu, "command": command, "args": args })).unwrap()
    }

    /// The rows of a menu as the API shows them.
    pub(super) fn rows(&self, menu: &str) -> Vec<Value> {
        let request = Request::new(Method::Get, format!("/rest/{menu}"));
        let answer = self.exchange(&request, &Auth::session(SESSION));
        let parsed = serde_json::from_slice(&answer.body).unwrap_or_default();
        match parsed {
            Value::Array(rows) if answer.status == 200 => rows,
            one @ Value::Object(_) if answer.status == 200 => vec![one],
            _ => Vec::new(),
        }
    }

    /// What is configured, without flags that are off and ids.
    pub(super) fn configured(&self) -> Value {
        let state = self.lab.state();
        let menus = state["configuration"].as_object().unwrap();
        let of_menu = |rows: &Value| -> Value {
            match rows {
                Value::Array(rows) => rows.iter().map(told).collect(),
                one => told(one),
            }
        };
        // Unchanged settings equal settings that were never written.
        let is_told = |rows: &Value| match rows {
            Value::Array(rows) => rows.iter().any(|row| *row != json!({})),
            one => *one != json!({}),
        };
        let told = menus.iter().map(|(menu, rows)| (menu.clone(), of_menu(rows)));
        Value::Object(told.filter(|(_, rows)| is_told(rows)).collect())
    }
}

/// A row without what says nothing.
fn told(row: &Value) -> Value {
    let fields = row.as_object().into_iter().flatten();
    let kept = fields.filter(|(name, value)| *name != ".id" && *value != "false" && *value != "");
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
}

impl Practice for Device {
    type Adapter = Mikrotik;

    fn host(&self) -> FakeHost<'_> {
        self.host()
    }

    /// Without entries for ways back, which a confirmation takes away.
    fn state(&self) -> Value {
        let mut state = self.configured();
        if let Some(Value::Array(entries)) = state.get_mut("system/scheduler") {
            entries.retain(|entry| {
                !entry["name"].as_str().is_some_and(|name| name.starts_with("heddle-way-back"))
            });
        }
        state
    }

    fn traces(&self) -> Option<Value> {
        Some(self.lab.state())
    }

    fn wait_ms(&self, ms: u64) {
        self.lab.advance(Duration::from_millis(ms));
    }
}
