//! The host as adapter logic sees it: one trait, and the real thing behind it.

use std::borrow::Cow;

use serde_json::Value;

use crate::bindings::heddle::host::{clock, context, description, http, log, progress, secrets};
use crate::{Attribute, Fault, Level, Phase, Place, Request, Response, Saved, fault};

/// How a request is authorised. Secrets are named, never read.
#[derive(Debug, Clone)]
pub enum Auth {
    None,
    /// The managed session of this name, as the manifest declares it; see [`Auth::session`].
    Session(Cow<'static, str>),
    /// Basic, with the names of the two secrets.
    Basic {
        username: Cow<'static, str>,
        password: Cow<'static, str>,
    },
    /// Where each named secret goes.
    Inject(Vec<(Place, Cow<'static, str>)>),
}

impl Auth {
    /// The managed session of this name, which may come from settings or data.
    pub fn session(name: impl Into<Cow<'static, str>>) -> Self {
        Auth::Session(name.into())
    }
}

/// What adapter logic may ask of its surroundings. Only [`Host::send`] has no default.
pub trait Host {
    /// Sends one request to the controller. Any status is an answer.
    fn send(&self, request: Request, auth: Auth) -> Result<Response, Fault>;

    /// Sends one read, and has the host keep its answer as a file. Only [`Adapter::fetch_file`](crate::Adapter::fetch_file)
    /// may.
    fn save(&self, _request: Request, _auth: Auth) -> Result<Saved, Fault> {
        Err(fault::unsupported("this host keeps no files"))
    }

    /// Sends reads, up to `parallel` at a time; answers keep the order.
    fn send_all(&self, requests: Vec<Request>, auth: Auth, parallel: u8) -> Vec<Result<Response, Fault>> {
        let _ = parallel;
        requests.into_iter().map(|request| self.send(request, auth.clone())).collect()
    }

    /// Forgets the session, logging out where the manifest says how.
    fn reset_session(&self, _name: &str) {}

    /// Ids that the login captured and the manifest exposes.
    fn session_facts(&self, _name: &str) -> Result<Vec<(String, String)>, Fault> {
        Ok(Vec::new())
    }

    /// The controller's settings.
    fn settings(&self) -> Value {
        Value::Object(serde_json::Map::new())
    }

    /// What the package's description says of a kind to its component; none where it says nothing.
    fn kind_binding(&self, _id: &str) -> Option<Value> {
        None
    }

    /// The same of a feature.
    fn feature_binding(&self, _id: &str) -> Option<Value> {
        None
    }

    /// The same of a kind of the model.
    fn model_binding(&self, _kind: &str) -> Option<Value> {
        None
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    fn now_ms(&self) -> u64 {
        0
    }

    /// Returns what this call is for. In every phase the host refuses a request that changes the device. A host
    /// without a phase of its own says [`Phase::Read`].
    fn phase(&self) -> Phase {
        Phase::Read
    }

    /// Wall time left for this call.
    fn deadline_ms(&self) -> u32 {
        30_000
    }

    /// Writes to the host's log. Never a secret.
    fn log(&self, _level: Level, _message: &str, _fields: &[(&str, &str)]) {}

    /// Tells the caller how far this call is, where the caller listens. The host takes more than 100 percent
    /// as 100, and makes the message one line of at most 2048 characters.
    fn report_progress(&self, _percent: u8, _message: &str) {}

    /// True when the caller gave up.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// The real host. Exists only inside a component.
#[derive(Debug)]
pub struct Live {
    target: http::Target,
}

impl Live {
    /// Opens the controller that this call is for.
    pub fn open() -> Result<Self, Fault> {
        http::open("controller").map(|target| Live { target })
    }
}

fn secret(name: &str) -> Result<secrets::Secret, Fault> {
    secrets::get(name).ok_or_else(|| {
        fault::authentication(format!("the credential has no secret '{name}'; add it to the credential"))
    })
}

/// Calls `then` with the authorisation in the form that the host takes.
pub(crate) fn with_auth<T>(auth: &Auth, then: impl FnOnce(http::Auth<'_>) -> T) -> Result<T, Fault> {
    Ok(match auth {
        Auth::None => then(http::Auth::None),
        Auth::Session(name) => then(http::Auth::Session(name.clone().into_owned())),
        Auth::Basic { username, password } => {
            let (username, password) = (secret(username)?, secret(password)?);
            then(http::Auth::Basic((&username, &password)))
        }
        Auth::Inject(places) => {
            let mut held = Vec::with_capacity(places.len());
            for (place, name) in places {
                held.push((place.clone(), secret(name)?));
            }
            then(http::Auth::Inject(held.iter().map(|(place, secret)| (place.clone(), secret)).collect()))
        }
    })
}

impl Host for Live {
    fn send(&self, request: Request, auth: Auth) -> Result<Response, Fault> {
        with_auth(&auth, |auth| self.target.send(&request, &auth))?
    }
    fn save(&self, request: Request, auth: Auth) -> Result<Saved, Fault> {
        with_auth(&auth, |auth| self.target.save(&request, &auth))?
    }
    fn send_all(&self, requests: Vec<Request>, auth: Auth, parallel: u8) -> Vec<Result<Response, Fault>> {
        match with_auth(&auth, |auth| self.target.send_all(&requests, &auth, parallel)) {
            Ok(answers) => answers,
            Err(fault) => requests.iter().map(|_| Err(fault.clone())).collect(),
        }
    }
    fn reset_session(&self, name: &str) {
        self.target.reset_session(name);
    }
    fn session_facts(&self, name: &str) -> Result<Vec<(String, String)>, Fault> {
        self.target.session_facts(name)
    }
    fn settings(&self) -> Value {
        serde_json::from_str(&context::config()).unwrap_or_default()
    }
    fn kind_binding(&self, id: &str) -> Option<Value> {
        description::kind_binding(id).and_then(|text| serde_json::from_str(&text).ok())
    }
    fn feature_binding(&self, id: &str) -> Option<Value> {
        description::feature_binding(id).and_then(|text| serde_json::from_str(&text).ok())
    }
    fn model_binding(&self, kind: &str) -> Option<Value> {
        description::model_binding(kind).and_then(|text| serde_json::from_str(&text).ok())
    }
    fn now_ms(&self) -> u64 {
        clock::now_ms()
    }
    fn phase(&self) -> Phase {
        context::current().phase
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
    fn report_progress(&self, percent: u8, message: &str) {
        progress::report(percent, message);
    }
    fn is_cancelled(&self) -> bool {
        progress::cancelled()
    }
}
