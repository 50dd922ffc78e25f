//! A simulated controller, and a host that asks it without a connection.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use std::time::Duration;

use heddle_lab::{Controller as _, Lab};
use heddle_lab_omada::{Omada, Seed};
use heddle_sdk::testing::{FakeHost, Package, Practice, method_word, response};
use heddle_sdk::{Auth, Body, Method, Request, Response};
use serde_json::{Map, Value, json};

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
    lab: Lab<Omada>,
    /// Keeps the lab's tasks.
    _runtime: tokio::runtime::Runtime,
    token: String,
    /// Ids of the sites, in their order.
    pub(super) sites: Vec<String>,
    pub(super) controller: String,
    /// What the controller's settings say.
    pub(super) settings: Value,
    /// Requests that are no reads.
    pub(super) writes: Cell<usize>,
    /// Requests in all; moves the time of the host, as it moves for real.
    asked: Cell<u64>,
    /// What is known of the holes of the plan that is sent.
    pub(super) holes: RefCell<BTreeMap<String, Value>>,
    pub(super) left: RefCell<BTreeSet<String>>,
}

impl Device {
    pub(super) fn new() -> Self {
        Self::with(Seed { sites: 2, clients: 4, ..Seed::default() }, "lab-secret")
    }

    pub(super) fn with(seed: Seed, secret: &str) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let mut omada = Omada::new(seed);
        omada.rate_limit = None;
        omada.is_pro = true;
        let controller = omada.omadac_id.clone();
        let lab = runtime.block_on(Lab::builder(omada).paused().start());
        let state = lab.state();
        let sites = state["controller"]["system.site"].as_array().unwrap().iter();
        let sites = sites.map(|site| site["siteId"].as_str().unwrap().to_owned()).collect();
        let mut device = Device {
            lab,
            _runtime: runtime,
            token: String::new(),
            sites,
            controller,
            settings: Value::Null,
            writes: Cell::new(0),
            asked: Cell::new(0),
            holes: RefCell::default(),
            left: RefCell::default(),
        };
        device.token = device.grant(secret);
        device.settings = json!({ "site": device.sites[0] });
        device
    }

    /// The token that the host's login would get; empty where it is refused.
    fn grant(&self, secret: &str) -> String {
        let body = json!({ "omadacId": self.controller, "client_id": "lab-client", "client_secret": secret });
        let path = "/openapi/authorize/token?grant_type=client_credentials";
        let request = Request::new(Method::Post, path).with_json(&body);
        let answer = self.exchange(&request, &Auth::None).json().unwrap();
        self.writes.set(0);
        answer["result"]["accessToken"].as_str().unwrap_or_default().to_owned()
    }

    pub(super) fn lab(&self) -> &Lab<Omada> {
        &self.lab
    }

    pub(super) fn host(&self) -> FakeHost<'_> {
        let mut host =
            FakeHost::new(|request, auth| Ok(self.exchange(request, auth))).with_package(package());
        host.now_ms.set(1_700_000_000_000 + self.asked.get());
        host.settings = self.settings.clone();
        host
    }

    /// What was kept of the calls of a plan before.
    pub(super) fn forget_calls(&self) {
        self.holes.borrow_mut().clear();
        self.left.borrow_mut().clear();
    }

    pub(super) fn exchange(&self, request: &Request, auth: &Auth) -> Response {
        self.asked.set(self.asked.get() + 1);
        let method = method_word(request.method);
        if !package().is_read(request) {
            self.writes.set(self.writes.get() + 1);
        }
        let body = match &request.body {
            Body::Json(text) => text.clone(),
            _ => String::new(),
        };
        let mut sent = heddle_lab::Request::new(method, &request.path, body.clone());
        match auth {
            Auth::None => {}
            Auth::Session(name) if name == SESSION => {
                sent = sent.with_header("authorization", &format!("AccessToken={}", self.token));
            }
            other => panic!("{other:?}"),
        }
        if !body.is_empty() {
            sent = sent.with_header("content-type", "application/json");
        }
        let mut locked = self.lab.lock();
        let (omada, context) = locked.parts();
        let answer = omada.handle(&sent, context);
        response(answer.status, answer.headers, answer.body)
    }

    /// A call by another client; its answer is not checked.
    pub(super) fn edit(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        self.lab.edit(&json!({ "method": method, "path": path, "body": body }))
    }

    /// Puts a row into the list at a path.
    pub(super) fn seed(&self, path: &str, row: &Value) -> Result<Value, String> {
        self.lab.edit(&json!({ "path": path, "row": row }))
    }

    /// Lets what was started end.
    pub(super) fn settle(&self) {
        self.lab.advance(Duration::from_mins(2));
    }

    /// What is stored at the first site, without what moves by itself and without ids, which a new object gets anew.
    pub(super) fn stored(&self) -> BTreeMap<String, Value> {
        let state = self.lab.state();
        let lists = state[&self.sites[0]].as_object().unwrap();
        let mut out: BTreeMap<String, Value> = lists
            .iter()
            .filter(|(name, _)| !LOGS.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), settled(value)))
            .filter(|(_, value)| !is_empty(value))
            .collect();
        let site = state["controller"]["system.site"].as_array().unwrap()[0].clone();
        out.insert("site".to_owned(), settled(&site));
        out
    }
}

impl Practice for Device {
    type Adapter = crate::Omada;

    fn host(&self) -> FakeHost<'_> {
        self.host()
    }

    fn state(&self) -> Value {
        json!(self.stored())
    }

    fn wait_ms(&self, ms: u64) {
        self.lab.advance(Duration::from_millis(ms));
    }

    fn settle(&self) {
        self.settle();
    }
}

const LOGS: [&str; 3] = ["insights.audit-log", "insights.event", "insights.alert"];
/// Fields that the controller counts or moves by itself.
const MOVING: [&str; 4] = ["detailStatus", "index", "lastSeen", "createdTime"];

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// What an answer shows for a field that was never written, and what a write of the whole then says.
fn is_default(value: &Value) -> bool {
    is_empty(value) || *value == json!(false) || *value == json!(0) || *value == json!("")
}

fn settled(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() == 24 && text.starts_with("66a0") => json!("(id)"),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(settled).collect();
            items.sort_by_key(ToString::to_string);
            Value::Array(items)
        }
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> =
                fields.iter().filter(|(name, _)| !MOVING.contains(&name.as_str())).collect();
            fields.sort_by_key(|(name, _)| *name);
            let told = fields.into_iter().map(|(name, value)| (name.clone(), settled(value)));
            Value::Object(told.filter(|(_, value)| !is_default(value)).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}
