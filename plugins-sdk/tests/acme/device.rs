//! The invented device: it keeps state, and tells what is stored from what runs.

use std::cell::RefCell;
use std::collections::BTreeMap;

use heddle_sdk::testing::{FakeHost, json_body, json_response};
use heddle_sdk::{Auth, Method, Request, Response};
use serde_json::{Map, Value, json};

#[derive(Default)]
pub(crate) struct Device {
    pub(crate) stored: RefCell<State>,
    /// What was active when the hosts were last applied.
    pub(crate) running: RefCell<State>,
    /// Changes of the device that were asked for so far.
    pub(crate) writes: RefCell<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    pub(crate) hosts: BTreeMap<String, Map<String, Value>>,
    pub(crate) dns: Map<String, Value>,
}

pub(crate) fn fields(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

impl Device {
    pub(crate) fn new() -> Self {
        let device = Device::default();
        device.put(
            "a1",
            &json!({ "name": "printer", "address": "10.0.0.9", "enabled": true, "note": "floor 2" }),
        );
        device.stored.borrow_mut().dns = fields(&json!({ "forwarders": ["9.9.9.9"], "dnssec": true }));
        device.apply();
        device
    }

    pub(crate) fn put(&self, id: &str, host: &Value) {
        self.stored.borrow_mut().hosts.insert(id.to_owned(), fields(host));
    }

    pub(crate) fn apply(&self) {
        *self.running.borrow_mut() = self.stored.borrow().clone();
    }

    pub(crate) fn host<'a>(&'a self, description: &'a Value) -> FakeHost<'a> {
        FakeHost::new(|request, auth| Ok(self.answer(request, auth))).describing(description)
    }

    pub(crate) fn answer(&self, request: &Request, auth: &Auth) -> Response {
        assert!(matches!(auth, Auth::Session(name) if name == "api"), "{auth:?}");
        if request.method != Method::Get {
            self.writes.borrow_mut().push(format!("{:?} {}", request.method, request.path));
        }
        let body = fields(&json_body(request).unwrap_or_default());
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let (status, answer) = match (request.method, path.strip_prefix("/hosts/")) {
            (method, Some(id)) => self.of_host(method, id, body),
            (Method::Get, None) => self.read(path, query),
            (Method::Put, None) if path == "/dns" => {
                self.stored.borrow_mut().dns = body;
                (200, json!({}))
            }
            (Method::Post, None) if path == "/apply" => {
                self.apply();
                (200, json!({}))
            }
            _ => (404, json!({})),
        };
        json_response(status, &answer)
    }

    fn read(&self, path: &str, query: &str) -> (u16, Value) {
        let stored = self.stored.borrow();
        match path {
            "/about" => (200, json!({ "name": "gw", "model": "A1", "version": "2.0" })),
            "/dns" => (200, Value::Object(stored.dns.clone())),
            "/leases" => (200, json!([{ "mac": "02:00:00:00:00:01", "address": "10.0.0.50" }])),
            "/hosts" => {
                let number = |name: &str| {
                    query.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
                };
                let (from, max) = (number("from").unwrap_or(0), number("max").unwrap_or(2));
                let shown = stored.hosts.iter().skip(from).take(max);
                let items: Vec<Value> = shown.map(|(id, host)| with_id(id, host)).collect();
                (200, json!({ "items": items, "total": stored.hosts.len() }))
            }
            _ => (404, json!({})),
        }
    }

    fn of_host(&self, method: Method, id: &str, body: Map<String, Value>) -> (u16, Value) {
        let mut stored = self.stored.borrow_mut();
        if let Some(address) = body.get("address").and_then(Value::as_str)
            && address.starts_with("127.")
        {
            return (422, json!({ "fields": { "address": "is an address of this device" } }));
        }
        let is_taken = stored.hosts.iter().any(|(other, host)| {
            other != id && body.get("name").is_some_and(|name| host.get("name") == Some(name))
        });
        match (method, stored.hosts.contains_key(id)) {
            (Method::Put | Method::Patch, _) if is_taken => (409, json!({})),
            (Method::Get, true) => (200, with_id(id, &stored.hosts[id])),
            (Method::Put, false) => {
                let mut host = fields(&json!({ "enabled": true, "note": "" }));
                host.extend(body);
                stored.hosts.insert(id.to_owned(), host);
                (201, json!({}))
            }
            (Method::Patch, true) => {
                stored.hosts.entry(id.to_owned()).or_default().extend(body);
                (200, json!({}))
            }
            (Method::Delete, true) => {
                stored.hosts.remove(id);
                (204, json!({}))
            }
            (_, false) => (404, json!({})),
            _ => (405, json!({})),
        }
    }
}

fn with_id(id: &str, host: &Map<String, Value>) -> Value {
    let mut host = host.clone();
    host.insert("id".to_owned(), json!(id));
    Value::Object(host)
}
