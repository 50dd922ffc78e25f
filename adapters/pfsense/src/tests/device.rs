//! A simulated firewall, and a host that asks it without a connection.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use heddle_lab::{Controller as _, Lab};
use heddle_lab_pfsense::{Pfsense as Firewall, Settings};
use heddle_sdk::testing::{FakeHost, Package, Practice, method_word, response};
use heddle_sdk::{Auth, Body, Method, Request, Response};
use serde_json::{Map, Value, json};

use crate::Pfsense;

/// What a new object gets anew, or what moves by itself.
const OWN: [&str; 16] = [
    "created_by",
    "created_time",
    "gid",
    "ikeid",
    "lastchange",
    "number",
    "refid",
    "reqid",
    "schedlabel",
    "serial",
    "serverid",
    "tracker",
    "uid",
    "uniqid",
    "updated_by",
    "updated_time",
];

/// The checked-in manifest and description.
pub(super) fn package() -> &'static Package {
    heddle_sdk::package_of!("../../manifest.json", "../../description.json")
}

/// The checked-in description.
pub(super) fn description() -> &'static Value {
    package().description()
}

pub(super) struct Device {
    lab: Lab<Firewall>,
    /// Keeps the lab's tasks.
    _runtime: tokio::runtime::Runtime,
    login: (String, String),
    /// Requests that may write.
    pub(super) writes: Cell<usize>,
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
        let login = settings.admin.clone();
        let lab = runtime.block_on(Lab::builder(Firewall::new(settings)).paused().start());
        Device { lab, _runtime: runtime, login, writes: Cell::new(0), asked: Cell::new(0) }
    }

    /// The same device for a user who may read everything and save nothing.
    pub(super) fn for_reader(mut self) -> Self {
        self.login = Settings::default().reader;
        self
    }

    pub(super) fn with_password(mut self, password: &str) -> Self {
        password.clone_into(&mut self.login.1);
        self
    }

    /// Requests so far.
    pub(super) fn asked(&self) -> u64 {
        self.asked.get()
    }

    pub(super) fn lab(&self) -> &Lab<Firewall> {
        &self.lab
    }

    pub(super) fn host(&self) -> FakeHost<'_> {
        let host = FakeHost::new(|request, auth| Ok(self.exchange(request, auth))).with_package(package());
        host.now_ms.set(1_700_000_000_000 + self.asked.get());
        host
    }

    pub(super) fn exchange(&self, request: &Request, auth: &Auth) -> Response {
        assert!(matches!(auth, Auth::Session(name) if name == "basic"), "{auth:?}");
        self.asked.set(self.asked.get() + 1);
        // Trackers of rules are seconds.
        self.lab.advance(Duration::from_secs(1));
        if request.method != Method::Get && !package().is_read(request) {
            self.writes.set(self.writes.get() + 1);
        }
        let body = match &request.body {
            Body::Json(text) => text.clone(),
            _ => String::new(),
        };
        let basic = BASE64_STANDARD.encode(format!("{}:{}", self.login.0, self.login.1));
        let mut sent = heddle_lab::Request::new(method_word(request.method), &request.path, body.clone())
            .with_header("authorization", &format!("Basic {basic}"));
        if !body.is_empty() {
            sent = sent.with_header("content-type", "application/json");
        }
        let mut locked = self.lab.lock();
        let (firewall, context) = locked.parts();
        let answer = firewall.handle(&sent, context);
        response(answer.status, answer.headers, answer.body)
    }

    /// What a person does at the web interface, who also applies it.
    pub(super) fn person(&self, method: Method, path: &str, body: &Value) -> Value {
        let request = Request::new(method, format!("/api/v2{path}"));
        let request = if method == Method::Delete { request } else { request.with_json(body) };
        let answer = self.exchange(&request, &Auth::session("basic"));
        let text: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        assert_eq!(answer.status, 200, "{path}: {text}");
        text["data"].clone()
    }

    /// What is stored in the lists of a model.
    pub(super) fn list(&self, model: &str) -> Vec<Value> {
        self.lab.state()["stored"][model].as_array().cloned().unwrap_or_default()
    }
}

impl Practice for Device {
    type Adapter = Pfsense;

    fn host(&self) -> FakeHost<'_> {
        self.host()
    }

    fn state(&self) -> Value {
        let state = self.lab.state();
        json!({ "stored": plain(&state["stored"]), "running": plain(&state["running"]), "packages": state["packages"] })
    }

    fn inactive(&self) -> Vec<String> {
        let state = self.lab.state();
        let waiting = state["pending"].as_array().into_iter().flatten().filter_map(Value::as_str);
        waiting.map(str::to_owned).collect()
    }

    fn traces(&self) -> Option<Value> {
        Some(self.lab.state())
    }

    fn wait_ms(&self, ms: u64) {
        self.lab.advance(Duration::from_millis(ms));
    }

    fn settle(&self) {
        self.lab.advance(Duration::from_secs(30));
    }
}

/// The facts that the description was made from.
fn facts() -> &'static Value {
    static FACTS: OnceLock<Value> = OnceLock::new();
    FACTS.get_or_init(|| serde_json::from_str(include_str!("../../facts.json")).unwrap())
}

/// The lists of a configuration without what a new object gets anew, and without what only repeats a default.
fn plain(lists: &Value) -> Value {
    let list = |(model, objects): (&String, &Value)| {
        let objects = of_model(model, objects);
        objects.as_array().is_some_and(|all| !all.is_empty()).then(|| (model.clone(), objects))
    };
    Value::Object(lists.as_object().unwrap().iter().filter_map(list).collect())
}

fn of_model(model: &str, objects: &Value) -> Value {
    let known = facts()["models"][model]["fields"].as_array();
    let default = |name: &str| known?.iter().find(|field| field["name"] == name)?.get("default");
    let one = |object: &Value| {
        let told = object.as_object().into_iter().flatten().filter_map(|(name, value)| {
            match name.strip_prefix('@') {
                Some(child) if value.is_array() => Some((name.clone(), of_model(child, value))),
                _ => {
                    // The shaper learns the name of its port with its first update.
                    let is_own =
                        OWN.contains(&name.as_str()) || (model, name.as_str()) == ("TrafficShaper", "name");
                    let is_said = !is_own && !is_nothing(value) && Some(value) != default(name);
                    is_said.then(|| (name.clone(), value.clone()))
                }
            }
        });
        let told: Map<String, Value> = told.filter(|(_, value)| !is_nothing(value)).collect();
        (!told.is_empty()).then_some(Value::Object(told))
    };
    let mut items: Vec<Value> = objects.as_array().into_iter().flatten().filter_map(one).collect();
    // What is written back stands at the end of its list; where the order counts, a delete is final.
    items.sort_by_key(|item| heddle_sdk::json::canonical(item).to_string());
    Value::Array(items)
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Number(_) | Value::Bool(true) | Value::Object(_) => false,
    }
}
