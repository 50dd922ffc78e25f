//! The host as a plugin sees it: one trait, and the real thing behind it.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::bindings::heddle::plugin::{events, fabric, kv, schedule};
use super::{Change, Expected, NewValue, Op, Page, Standing, Stored, Timer};
use crate::bindings::heddle::host::{clock, context, http, log, random};
use crate::host::with_auth;
use crate::{Attribute, Auth, Fault, FaultExt as _, Level, Request, Response, fault};

/// An event of a type that the manifest declares.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// `plugin.<id>.<word>`.
    pub event_type: String,
    /// As the type's `payload-schema` says.
    pub payload: Value,
    /// Of two events of one type with the same key, the later one is dropped.
    pub dedup_key: Option<String>,
}

impl Event {
    /// An event without a key.
    pub fn new(event_type: impl Into<String>, payload: Value) -> Self {
        Self { event_type: event_type.into(), payload, dedup_key: None }
    }

    /// The same event with a key.
    #[must_use]
    pub fn with_dedup_key(mut self, key: impl Into<String>) -> Self {
        self.dedup_key = Some(key.into());
        self
    }
}

/// What a plugin may ask of its surroundings. Each needs its capability in the manifest.
pub trait Host {
    /// Sends one request to a target of the manifest. Any status is an answer.
    fn send(&self, target: &str, request: Request, auth: Auth) -> Result<Response, Fault>;

    /// Sends requests, up to `parallel` at a time; answers keep the order.
    fn send_all(
        &self,
        target: &str,
        requests: Vec<Request>,
        auth: Auth,
        parallel: u8,
    ) -> Vec<Result<Response, Fault>> {
        let _ = parallel;
        requests.into_iter().map(|request| self.send(target, request, auth.clone())).collect()
    }

    /// The settings of the organization.
    fn settings(&self) -> Value {
        Value::Object(serde_json::Map::new())
    }

    /// What is stored under a key.
    fn kv_get(&self, key: &str) -> Result<Option<Stored>, Fault>;

    /// Stores a value, for so many seconds or until it is changed.
    fn kv_set(&self, key: &str, value: &[u8], ttl_s: Option<u32>) -> Result<(), Fault> {
        let change = Change::Set(NewValue { value: value.to_vec(), ttl_s });
        self.kv_transact(&[Op { key: key.to_owned(), expected: Expected::Any, change }]).map(drop)
    }

    /// Removes a key, if it is there.
    fn kv_delete(&self, key: &str) -> Result<(), Fault> {
        let op = Op { key: key.to_owned(), expected: Expected::Any, change: Change::Delete };
        self.kv_transact(&[op]).map(drop)
    }

    /// Writes at most 8 MiB in one call. Carries out all changes or none: false where one of them found something other than it expected.
    fn kv_transact(&self, ops: &[Op]) -> Result<bool, Fault>;

    /// Keys that begin with `prefix`. `cursor` is the `next` of the page before.
    fn kv_list(&self, prefix: &str, cursor: Option<&str>, limit: u32) -> Result<Page, Fault>;

    /// Calls an operation of the Fabric, with the rights of the user on whose behalf the plugin runs.
    fn call(&self, operation: &str, params: &Value) -> Result<Value, Fault>;

    /// Emits all events, or none. At most 100 in one call, and those that are refused count, too.
    fn emit(&self, events: &[Event]) -> Result<(), Fault>;

    /// Sets timers, each in the place of the one of its name: all, or none. One that is as it was keeps its next time.
    fn set_timers(&self, timers: &[Timer]) -> Result<(), Fault>;

    /// Removes the timers of these names, where there are any.
    fn cancel_timers(&self, names: &[String]) -> Result<(), Fault>;

    /// All timers, by their names.
    fn timers(&self) -> Result<Vec<Standing>, Fault>;

    /// Milliseconds since 1970-01-01T00:00:00Z.
    fn now_ms(&self) -> u64 {
        0
    }

    /// So many bytes of the system generator, at most 4096.
    fn random(&self, len: u32) -> Vec<u8> {
        vec![0; len.min(4_096) as usize]
    }

    /// Wall time left for this call.
    fn deadline_ms(&self) -> u32 {
        15_000
    }

    /// Writes to the host's log. Never a secret.
    fn log(&self, _level: Level, _message: &str, _fields: &[(&str, &str)]) {}
}

/// The settings of the organization in the form that the plugin wants.
///
/// # Errors
/// They do not fit; the server has checked them against `config-schema`, so type and schema differ.
pub fn settings<T: DeserializeOwned>(host: &dyn Host) -> Result<T, Fault> {
    serde_json::from_value(host.settings()).map_err(|error| {
        fault::invalid(format!("the settings are not accepted: {error}")).with_code("settings")
    })
}

/// The real host. Works only inside a component.
#[derive(Debug)]
pub struct Live;

/// The fault of what the manifest does not ask for.
///
/// The checks of features below are constants: what is behind them is not in the component, and neither is its import.
fn undeclared(capability: &str) -> Fault {
    fault::denied(format!("the manifest's capabilities have no '{capability}'")).with_code("undeclared")
}

/// Gives a request its secrets, where the component can name any.
fn with_secrets<T>(auth: &Auth, then: impl FnOnce(http::Auth<'_>) -> T) -> Result<T, Fault> {
    if cfg!(feature = "secrets") {
        return with_auth(auth, then);
    }
    match auth {
        Auth::None => Ok(then(http::Auth::None)),
        Auth::Session(name) => Ok(then(http::Auth::Session(name.clone().into_owned()))),
        Auth::Basic { .. } | Auth::Inject(_) => Err(undeclared("secrets")),
    }
}

impl Host for Live {
    fn send(&self, target: &str, request: Request, auth: Auth) -> Result<Response, Fault> {
        if cfg!(feature = "http") {
            let target = http::open(target)?;
            with_secrets(&auth, |auth| target.send(&request, &auth))?
        } else {
            Err(undeclared("http"))
        }
    }
    fn send_all(
        &self,
        target: &str,
        requests: Vec<Request>,
        auth: Auth,
        parallel: u8,
    ) -> Vec<Result<Response, Fault>> {
        let sent = if cfg!(feature = "http") {
            http::open(target)
                .and_then(|target| with_secrets(&auth, |auth| target.send_all(&requests, &auth, parallel)))
        } else {
            Err(undeclared("http"))
        };
        match sent {
            Ok(answers) => answers,
            Err(fault) => requests.iter().map(|_| Err(fault.clone())).collect(),
        }
    }
    fn settings(&self) -> Value {
        serde_json::from_str(&context::config()).unwrap_or_default()
    }
    fn kv_get(&self, key: &str) -> Result<Option<Stored>, Fault> {
        if cfg!(feature = "kv") { kv::get(key) } else { Err(undeclared("kv")) }
    }
    fn kv_set(&self, key: &str, value: &[u8], ttl_s: Option<u32>) -> Result<(), Fault> {
        if cfg!(feature = "kv") { kv::set(key, value, ttl_s) } else { Err(undeclared("kv")) }
    }
    fn kv_delete(&self, key: &str) -> Result<(), Fault> {
        if cfg!(feature = "kv") { kv::delete(key) } else { Err(undeclared("kv")) }
    }
    fn kv_transact(&self, ops: &[Op]) -> Result<bool, Fault> {
        if cfg!(feature = "kv") { kv::transact(ops) } else { Err(undeclared("kv")) }
    }
    fn kv_list(&self, prefix: &str, cursor: Option<&str>, limit: u32) -> Result<Page, Fault> {
        if cfg!(feature = "kv") { kv::list(prefix, cursor, limit) } else { Err(undeclared("kv")) }
    }
    fn call(&self, operation: &str, params: &Value) -> Result<Value, Fault> {
        if !cfg!(feature = "fabric") {
            return Err(undeclared("fabric.call"));
        }
        let answer = fabric::call(operation, &params.to_string())?;
        serde_json::from_str(&answer)
            .map_err(|error| fault::generic(format!("the answer of '{operation}' is not JSON: {error}")))
    }
    fn emit(&self, events: &[Event]) -> Result<(), Fault> {
        if !cfg!(feature = "events") {
            return Err(undeclared("events.emit"));
        }
        let events: Vec<events::Emitted> = events
            .iter()
            .map(|event| events::Emitted {
                event_type: event.event_type.clone(),
                payload: event.payload.to_string(),
                dedup_key: event.dedup_key.clone(),
            })
            .collect();
        events::emit(&events)
    }
    fn set_timers(&self, timers: &[Timer]) -> Result<(), Fault> {
        if cfg!(feature = "schedule") { schedule::set(timers) } else { Err(undeclared("schedule")) }
    }
    fn cancel_timers(&self, names: &[String]) -> Result<(), Fault> {
        if cfg!(feature = "schedule") { schedule::cancel(names) } else { Err(undeclared("schedule")) }
    }
    fn timers(&self) -> Result<Vec<Standing>, Fault> {
        if cfg!(feature = "schedule") { schedule::list() } else { Err(undeclared("schedule")) }
    }
    fn now_ms(&self) -> u64 {
        clock::now_ms()
    }
    fn random(&self, len: u32) -> Vec<u8> {
        random::bytes(len)
    }
    fn deadline_ms(&self) -> u32 {
        context::current().deadline_ms
    }
    fn log(&self, level: Level, message: &str, fields: &[(&str, &str)]) {
        let fields: Vec<Attribute> = fields
            .iter()
            .map(|(key, value)| Attribute { key: (*key).to_owned(), value: (*value).to_owned() })
            .collect();
        log::emit(level, message, &fields);
    }
}
