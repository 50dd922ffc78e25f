//! A plugin that does what its parameters say, so that a test asks for exactly one thing.
//!
//! It is built for tests only and is in no package that is delivered. Each of its three actions has another effect in the
//! manifest; all of them do the same.

mod burn;
mod kv;

use std::collections::BTreeMap;

use heddle_sdk::plugin::{Action, Entry, Event, Host, Plugin, action};
use heddle_sdk::{Auth, Fault, Method, Place, Request, fault, register_plugin};
use serde::Deserialize;
use serde_json::{Value, json};

/// The guest.
#[derive(Debug)]
pub struct Scripted;

impl Plugin for Scripted {
    const ACTIONS: &'static [Entry] = &[action::<Look>(), action::<Arrange>(), action::<Act>()];

    fn check(host: &dyn Host) -> Result<Option<Value>, Fault> {
        let settings = host.settings();
        if let Some(event) = settings["emit-in-check"].as_str() {
            host.emit(&[Event::new(event, json!({}))])?;
        }
        if let Some(key) = settings["store-in-check"].as_str() {
            host.kv_set(key, b"stored", None)?;
        }
        if let Some(operation) = settings["call-in-check"].as_str() {
            return Ok(Some(json!({ "called": host.call(operation, &json!({}))? })));
        }
        Ok(Some(json!({ "settings": settings })))
    }
}

register_plugin!(Scripted);

macro_rules! actions {
    ($($(#[$doc:meta])* $name:ident = $id:literal),* $(,)?) => {$(
        $(#[$doc])*
        struct $name;

        impl Action for $name {
            const ID: &'static str = $id;
            type Params = Step;
            type Output = Value;

            fn run(host: &dyn Host, step: Step) -> Result<Value, Fault> {
                step.run(host)
            }
        }
    )*};
}

actions! {
    /// Reads.
    Look = "look",
    /// Stages changes.
    Arrange = "arrange",
    /// Changes something outside.
    Act = "act",
}

/// What to do.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
enum Step {
    /// Answers what it was given.
    Echo {
        value: Value,
    },
    Settings,
    Http(Asked),
    Kv(kv::Asked),
    Call {
        operation: String,
        params: Value,
    },
    Emit {
        event_type: String,
        payload: Value,
        dedup_key: Option<String>,
        times: Option<u32>,
    },
    Burn {
        how: burn::How,
    },
    /// Sends a request, and then uses up what the host lends.
    SendAndBurn {
        request: Asked,
        how: burn::How,
    },
    /// Answers what a test's server would refuse as an output.
    Raw {
        value: Value,
    },
}

/// A request to send.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Asked {
    target: String,
    method: Option<String>,
    path: String,
    body: Option<Value>,
    /// Names of secrets by their places, as manifests write these.
    #[serde(default)]
    secrets: BTreeMap<String, String>,
    times: Option<u32>,
}

impl Step {
    fn run(self, host: &dyn Host) -> Result<Value, Fault> {
        match self {
            Self::Echo { value } => Ok(json!({ "value": value })),
            Self::Settings => Ok(json!({ "settings": host.settings(), "left-ms": host.deadline_ms() })),
            Self::Http(asked) => asked.run(host),
            Self::Kv(asked) => asked.run(host),
            Self::Call { operation, params } => Ok(json!({ "answer": host.call(&operation, &params)? })),
            Self::Emit { event_type, payload, dedup_key, times } => {
                let event = Event { event_type, payload, dedup_key };
                host.emit(&vec![event; times.unwrap_or(1) as usize])?;
                Ok(json!({}))
            }
            Self::Burn { how } => how.run(host),
            Self::SendAndBurn { request, how } => {
                request.run(host)?;
                how.run(host)
            }
            Self::Raw { value } => Ok(value),
        }
    }
}

impl Asked {
    fn run(self, host: &dyn Host) -> Result<Value, Fault> {
        let mut answers = Vec::new();
        for _ in 0..self.times.unwrap_or(1) {
            let mut request = Request::new(self.method()?, self.path.clone());
            if let Some(body) = &self.body {
                request = request.with_json(body);
            }
            let answer = host.send(&self.target, request, self.auth())?;
            answers.push(json!({ "status": answer.status, "body": String::from_utf8_lossy(&answer.body) }));
        }
        Ok(json!({ "answers": answers }))
    }

    fn method(&self) -> Result<Method, Fault> {
        Ok(match self.method.as_deref().unwrap_or("GET") {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            other => return Err(fault::invalid(format!("'{other}' is no method of this guest"))),
        })
    }

    fn auth(&self) -> Auth {
        if self.secrets.is_empty() {
            return Auth::None;
        }
        if let (Some(username), Some(password)) =
            (self.secrets.get("basic-username"), self.secrets.get("basic-password"))
        {
            return Auth::Basic { username: username.clone().into(), password: password.clone().into() };
        }
        let places = self.secrets.iter().map(|(place, name)| {
            let place = match place.split_once(':') {
                None => Place::Bearer,
                Some(("header", header)) => Place::Header((header.to_owned(), String::new())),
                Some(("query", parameter)) => Place::Query(parameter.to_owned()),
                Some(("json", pointer)) => Place::JsonPointer(pointer.to_owned()),
                Some((_, field)) => Place::FormField(field.to_owned()),
            };
            (place, name.clone().into())
        });
        Auth::Inject(places.collect())
    }
}
