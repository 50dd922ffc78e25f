//! A simulated firewall, and a host that asks it without a connection.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use heddle_lab::{Controller as _, Lab};
use heddle_lab_opnsense::{Firewall, Settings};
use heddle_sdk::testing::{FakeHost, Package, Practice, method_word, response};
use heddle_sdk::{Auth, Body, Method, Request, Response};
use serde_json::{Map, Value, json};

use crate::Opnsense;
use crate::answer::SESSION;

/// The checked-in manifest and description.
pub(super) fn package() -> &'static Package {
    heddle_sdk::package_of!("../../manifest.json", "../../description.json")
}

/// The checked-in description.
pub(super) fn description() -> &'static Value {
    package().description()
}

/// The facts that it was made from.
pub(super) fn facts() -> &'static Value {
    static FACTS: OnceLock<Value> = OnceLock::new();
    FACTS.get_or_init(|| serde_json::from_str(include_str!("../../facts.json")).unwrap())
}

pub(super) struct Device {
    lab: Lab<Firewall>,
    /// Keeps the lab's tasks.
    _runtime: tokio::runtime::Runtime,
    key: (String, String),
    /// Requests that may write.
    pub(super) posts: Cell<usize>,
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
        let key = settings.admin.clone();
        let lab = runtime.block_on(Lab::builder(Firewall::new(settings)).paused().start());
        Device { lab, _runtime: runtime, key, posts: Cell::new(0), asked: Cell::new(0) }
    }

    /// The same device for a user who may read everything and save nothing.
    pub(super) fn for_reader(mut self) -> Self {
        self.key = Settings::default().reader;
        self
    }

    pub(super) fn with_secret(mut self, secret: &str) -> Self {
        secret.clone_into(&mut self.key.1);
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
        assert!(matches!(auth, Auth::Session(name) if name == SESSION), "{auth:?}");
        self.asked.set(self.asked.get() + 1);
        let method = method_word(request.method);
        if !package().is_read(request) {
            self.posts.set(self.posts.get() + 1);
        }
        let body = match &request.body {
            Body::Json(text) => text.clone(),
            _ => String::new(),
        };
        let basic = BASE64_STANDARD.encode(format!("{}:{}", self.key.0, self.key.1));
        let mut sent = heddle_lab::Request::new(method, &request.path, body.clone())
            .with_header("authorization", &format!("Basic {basic}"));
        if !body.is_empty() {
            sent = sent.with_header("content-type", "application/json");
        }
        let mut locked = self.lab.lock();
        let (firewall, context) = locked.parts();
        let answer = firewall.handle(&sent, context);
        response(answer.status, answer.headers, answer.body)
    }

    /// Activates once what a feature activates: the first time leaves traces in other lists.
    pub(super) fn activate(&self, feature: &Value) {
        for activation in feature["binding"]["activate"].as_array().into_iter().flatten() {
            let path = activation["path"].as_str().unwrap();
            let request = Request::new(Method::Post, path).with_json(&Value::Object(Map::new()));
            self.exchange(&request, &Auth::session(SESSION));
        }
        self.lab.edit(&json!({ "do": "apply" })).unwrap();
    }

    /// What a person does at the web interface, or with the key of an administrator.
    pub(super) fn person(&self, path: &str, body: &Value) -> Value {
        let request = Request::new(Method::Post, format!("/api/{path}")).with_json(body);
        let answer = self.exchange(&request, &Auth::session(SESSION));
        assert_eq!(answer.status, 200, "{path}");
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    /// What is stored, without what only repeats a default.
    pub(super) fn stored(&self) -> BTreeMap<String, Value> {
        self.of_state("stored")
    }

    /// What runs, in the same way.
    pub(super) fn running(&self) -> BTreeMap<String, Value> {
        self.of_state("running")
    }

    fn of_state(&self, which: &str) -> BTreeMap<String, Value> {
        let state = self.lab.state();
        let lists = state[which].as_object().unwrap();
        lists
            .iter()
            .map(|(list, items)| (list.clone(), without_defaults(list, items)))
            .filter(|(_, items)| items.as_object().is_some_and(|items| !items.is_empty()))
            .collect()
    }
}

impl Practice for Device {
    type Adapter = Opnsense;

    fn host(&self) -> FakeHost<'_> {
        self.host()
    }

    fn state(&self) -> Value {
        json!({ "stored": self.stored(), "running": self.running() })
    }

    fn inactive(&self) -> Vec<String> {
        let (stored, running) = (self.stored(), self.running());
        stored.keys().filter(|list| stored.get(*list) != running.get(*list)).cloned().collect()
    }

    fn traces(&self) -> Option<Value> {
        Some(self.lab.state())
    }

    fn wait_ms(&self, ms: u64) {
        self.lab.advance(Duration::from_millis(ms));
    }
}

fn without_defaults(list: &str, items: &Value) -> Value {
    let known = facts()["fields"].get(list).and_then(Value::as_array);
    let default = |name: &str| {
        let field = known?.iter().find(|field| field["name"] == name)?;
        field.get("default")?.as_str()
    };
    let one = |item: &Value| -> Value {
        let fields = item.as_object().unwrap().iter();
        let told = fields.filter(|(name, value)| {
            // An empty text is a value only where there is a default to be empty against.
            value.as_str() != Some(default(name).unwrap_or_default())
        });
        Value::Object(told.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
    };
    let items = items.as_object().unwrap().iter().map(|(id, item)| (id.clone(), one(item)));
    let is_settings = list.ends_with(':');
    Value::Object(items.filter(|(_, item)| !is_settings || item != &Value::Object(Map::new())).collect())
}
