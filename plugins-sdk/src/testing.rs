//! A host for native tests and benches: answers come from a closure, and what
//! was sent is kept. With a package it holds the rules of a server, too.

pub mod cassette;
#[cfg(feature = "conformance")]
pub mod conformance;
mod package;
mod pages;
mod practice;
mod rules;
mod stage;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{
    Auth, Body, Fault, FaultExt, FoundValue, Header, Host, Method, Request, Response, Saved, SavedFile, fault,
};

pub use package::{Package, PackageError};
pub use pages::every_page;
pub use practice::{Practice, Reviewed, standing};
pub use stage::{finish_stage, go_on_stage, send_stage};

type Answer<'a> = dyn Fn(&Request, &Auth) -> Result<Response, Fault> + 'a;

/// Answers requests from a closure.
pub struct FakeHost<'a> {
    answer: Box<Answer<'a>>,
    /// Bodies of the requests so far, in order; `null` for those that are not JSON.
    pub sent: RefCell<Vec<Value>>,
    /// How often a session was reset.
    pub resets: Cell<u32>,
    /// What `now_ms` says.
    pub now_ms: Cell<u64>,
    pub settings: Value,
    /// The package's description, whose bindings the host hands out.
    description: Option<&'a Value>,
    /// The package, whose rules hold for what is sent.
    package: Option<&'a Package>,
    /// What is known of the holes of the plan that is sent, by name.
    pub holes: RefCell<BTreeMap<String, Value>>,
    /// Ids of the calls that left.
    pub left: RefCell<BTreeSet<String>>,
    /// The call that left last, but for those that end a job.
    last: RefCell<Option<String>>,
}

impl std::fmt::Debug for FakeHost<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeHost").field("sent", &self.sent).finish_non_exhaustive()
    }
}

impl<'a> FakeHost<'a> {
    /// Makes a host that answers every request by this closure. The test can set the other fields: the
    /// settings are empty, and the time is 1 700 000 000 000 ms.
    pub fn new(answer: impl Fn(&Request, &Auth) -> Result<Response, Fault> + 'a) -> Self {
        FakeHost {
            answer: Box::new(answer),
            sent: RefCell::default(),
            resets: Cell::new(0),
            now_ms: Cell::new(1_700_000_000_000),
            settings: Value::Object(serde_json::Map::new()),
            description: None,
            package: None,
            holes: RefCell::default(),
            left: RefCell::default(),
            last: RefCell::default(),
        }
    }

    /// The same host with this description, whose bindings it hands out.
    #[must_use]
    pub fn describing(mut self, description: &'a Value) -> Self {
        self.description = Some(description);
        self
    }

    /// The same host with this package: it hands out bindings, and refuses what a server would refuse, which is a write
    /// by the adapter, a session that is not declared, and a plan that does not hold together.
    #[must_use]
    pub fn with_package(mut self, package: &'a Package) -> Self {
        self.package = Some(package);
        self.describing(package.description())
    }

    /// Whether the rules of a package hold.
    #[must_use]
    pub fn holds_rules(&self) -> bool {
        self.package.is_some()
    }
}

impl FakeHost<'_> {
    fn exchange(&self, request: Request, auth: &Auth) -> Result<Response, Fault> {
        self.sent.borrow_mut().push(json_body(&request).unwrap_or_default());
        (self.answer)(&request, auth)
    }

    fn fill(&self, found: Vec<FoundValue>) {
        let value = |found: FoundValue| (found.hole, serde_json::from_str(&found.value).unwrap_or_default());
        self.holes.borrow_mut().extend(found.into_iter().map(value));
    }

    fn binding(&self, of: &str, name: &str, id: &str) -> Option<Value> {
        let all = self.description?.get(of)?.as_array()?;
        all.iter().find(|one| one[name] == id)?.get("binding").cloned()
    }
}

impl Host for FakeHost<'_> {
    fn send(&self, request: Request, auth: Auth) -> Result<Response, Fault> {
        if let Some(package) = self.package {
            package.check_read(&request, &auth).map_err(|problem| refused("read-only", problem))?;
        }
        self.exchange(request, &auth)
    }
    fn save(&self, request: Request, auth: Auth) -> Result<Saved, Fault> {
        let response = self.send(request, auth)?;
        Ok(kept(response))
    }
    fn reset_session(&self, _name: &str) {
        self.resets.set(self.resets.get() + 1);
    }
    fn now_ms(&self) -> u64 {
        self.now_ms.get()
    }
    fn settings(&self) -> Value {
        self.settings.clone()
    }
    fn kind_binding(&self, id: &str) -> Option<Value> {
        self.binding("kinds", "id", id)
    }
    fn feature_binding(&self, id: &str) -> Option<Value> {
        self.binding("features", "id", id)
    }
    fn model_binding(&self, kind: &str) -> Option<Value> {
        self.binding("model", "kind", kind)
    }
}

/// An answer as a server takes it that keeps files: those of JSON are none.
fn kept(response: Response) -> Saved {
    let header = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-type"));
    let kind = header.map(|header| String::from_utf8_lossy(&header.value).to_ascii_lowercase());
    let kind = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim().to_owned());
    let is_json = kind.as_deref().is_some_and(|kind| kind == "application/json" || kind.ends_with("+json"));
    if response.status != 200 || is_json {
        return Saved::Answer(response);
    }
    let sha256 = hex::encode(Sha256::digest(&response.body));
    Saved::File(SavedFile {
        reference: format!("hdl-file:{sha256}"),
        size_bytes: response.body.len() as u64,
        content_type: kind,
    })
}

/// The JSON that a request carries.
pub fn json_body(request: &Request) -> Option<Value> {
    match &request.body {
        Body::Json(text) => serde_json::from_str(text).ok(),
        _ => None,
    }
}

/// A method as requests spell it.
#[must_use]
pub fn method_word(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Patch => "PATCH",
        Method::Delete => "DELETE",
        Method::Options => "OPTIONS",
    }
}

/// An answer with a JSON body.
#[must_use]
pub fn json_response(status: u16, body: &Value) -> Response {
    Response { status, reason: None, headers: Vec::new(), body: body.to_string().into_bytes(), elapsed_ms: 1 }
}

/// An answer as a practice device gives it.
#[must_use]
pub fn response(status: u16, headers: Vec<(String, String)>, body: Vec<u8>) -> Response {
    let headers = headers.into_iter().map(|(name, value)| Header { name, value: value.into_bytes() });
    Response { status, reason: None, headers: headers.collect(), body, elapsed_ms: 1 }
}

/// What a server says of what its rules do not allow.
fn refused(code: &str, problem: String) -> Fault {
    fault::denied(problem).with_code(code)
}
