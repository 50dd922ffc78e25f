//! A simulated cluster, and a host that asks it without a connection.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use heddle_lab::{Controller as _, FormPart, Lab};
use heddle_lab_proxmox::{AUDITOR_TOKEN, Proxmox as Cluster, ROOT_TOKEN, Setup};
use heddle_sdk::testing::{FakeHost, Package, Practice, method_word, response};
use heddle_sdk::{Auth, Body, Part, Request, Response};
use serde_json::{Value, json};

use super::SETTLE_MS;
use crate::Proxmox;

/// The checked-in manifest and description.
pub(super) fn package() -> &'static Package {
    heddle_sdk::package_of!("../../manifest.json", "../../description.json")
}

/// The checked-in description.
pub(super) fn description() -> &'static Value {
    package().description()
}

pub(super) struct Device {
    lab: Lab<Cluster>,
    /// Keeps the lab's tasks.
    _runtime: tokio::runtime::Runtime,
    token: String,
    /// Ticket and CSRF token instead of the API token.
    ticket: Option<(String, String)>,
    settings: Value,
    /// Requests that are no GET.
    pub(super) writes: Cell<usize>,
    /// Paths that were asked for, with their methods.
    pub(super) asked: RefCell<Vec<String>>,
}

impl Device {
    pub(super) fn new() -> Self {
        Self::of(Setup::default())
    }

    pub(super) fn of(setup: Setup) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let setup = Setup { login_delay: Duration::ZERO, ..setup };
        let lab = runtime.block_on(Lab::builder(Cluster::new(setup)).paused().start());
        Device {
            lab,
            _runtime: runtime,
            token: ROOT_TOKEN.to_owned(),
            ticket: None,
            settings: json!({}),
            writes: Cell::new(0),
            asked: RefCell::default(),
        }
    }

    /// The same cluster for a token that reads everything and writes nothing.
    pub(super) fn for_auditor(mut self) -> Self {
        AUDITOR_TOKEN.clone_into(&mut self.token);
        self
    }

    pub(super) fn with_token(mut self, token: &str) -> Self {
        token.clone_into(&mut self.token);
        self
    }

    /// The same cluster for its administrator, who logged in with a password.
    pub(super) fn with_ticket(mut self) -> Self {
        let body = "username=root%40pam&password=proxmox";
        let sent = heddle_lab::Request::new("POST", "/api2/json/access/ticket", body.to_owned())
            .with_header("content-type", "application/x-www-form-urlencoded");
        let answer: Value = {
            let mut locked = self.lab.lock();
            let (cluster, context) = locked.parts();
            serde_json::from_slice(&cluster.handle(&sent, context).body).unwrap()
        };
        let text = |name: &str| answer["data"][name].as_str().unwrap().to_owned();
        self.ticket = Some((text("ticket"), text("CSRFPreventionToken")));
        self.settings = json!({ "login": "ticket" });
        self
    }

    pub(super) fn with_settings(mut self, settings: Value) -> Self {
        self.settings = settings;
        self
    }

    pub(super) fn lab(&self) -> &Lab<Cluster> {
        &self.lab
    }

    /// Lets the time of the cluster go on.
    pub(super) fn wait_ms(&self, ms: u64) {
        self.lab.advance(Duration::from_millis(ms));
    }

    /// What a person does at the console.
    pub(super) fn edit(&self, edit: &Value) {
        self.lab.edit(edit).unwrap();
    }

    pub(super) fn host(&self) -> FakeHost<'_> {
        let mut host =
            FakeHost::new(|request, auth| Ok(self.exchange(request, auth))).with_package(package());
        host.settings = self.settings.clone();
        host
    }

    /// The session is as the settings say; the credential of a real one is not known here.
    pub(super) fn exchange(&self, request: &Request, auth: &Auth) -> Response {
        let wanted = self.settings["login"].as_str().unwrap_or("token");
        assert!(matches!(auth, Auth::Session(name) if name == wanted), "{auth:?}");
        let method = method_word(request.method);
        self.asked.borrow_mut().push(format!("{method} {}", request.path));
        let is_read = package().is_read(request);
        if !is_read {
            self.writes.set(self.writes.get() + 1);
        }
        let body = match &request.body {
            Body::Form(fields) => form(fields),
            Body::Json(text) => {
                assert!(
                    is_read || request.path.contains("/sdn/fabrics/"),
                    "{} is asked by JSON",
                    request.path
                );
                text.clone()
            }
            _ => String::new(),
        };
        let mut sent = heddle_lab::Request::new(method, &request.path, body.clone());
        sent = match &self.ticket {
            None => sent.with_header("authorization", &self.token),
            Some((ticket, csrf)) => sent
                .with_header("cookie", &format!("PVEAuthCookie={}", heddle_sdk::crud::escaped(ticket)))
                .with_header("csrfpreventiontoken", csrf),
        };
        if !body.is_empty() {
            let is_form = matches!(request.body, Body::Form(_));
            let content_type = if is_form { "application/x-www-form-urlencoded" } else { "application/json" };
            sent = sent.with_header("content-type", content_type);
        }
        if let Body::Multipart(parts) = &request.body {
            sent = sent.with_header("content-type", "multipart/form-data; boundary=x");
            let of =
                |part: &Part| FormPart::of_reference(&part.name, part.filename.as_deref(), &part.content);
            sent.parts = parts.iter().map(of).collect();
        }
        let mut locked = self.lab.lock();
        let (cluster, context) = locked.parts();
        let answer = cluster.handle(&sent, context);
        Response { reason: answer.reason, ..response(answer.status, answer.headers, answer.body) }
    }

    /// What the cluster holds, without what only time moves, and without what is empty.
    pub(super) fn state(&self) -> Value {
        let mut state = self.lab.state();
        if let Some(object) = state.as_object_mut() {
            object.remove("tasks");
        }
        without_empty(state)
    }
}

impl Practice for Device {
    type Adapter = Proxmox;

    fn host(&self) -> FakeHost<'_> {
        self.host()
    }

    fn state(&self) -> Value {
        self.state()
    }

    fn wait_ms(&self, ms: u64) {
        self.wait_ms(ms);
    }

    fn settle(&self) {
        self.wait_ms(SETTLE_MS);
    }
}

/// A state in the form that equal states share: an absent value is an empty one to the cluster.
fn without_empty(value: Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().map(|(name, value)| (name, without_empty(value)));
            Value::Object(kept.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(items) => items.into_iter().map(without_empty).collect(),
        Value::String(text) => Value::from(text.trim_end()),
        other => other,
    }
}

fn form(fields: &[(String, String)]) -> String {
    let part = heddle_sdk::crud::escaped;
    fields.iter().map(|(name, value)| format!("{}={}", part(name), part(value))).collect::<Vec<_>>().join("&")
}
