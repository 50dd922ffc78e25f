//! A host that answers from the exchanges of one recorded call.

use std::cell::RefCell;

use serde_json::{Value, json};

use super::format::{Cassette, Exchange, Recorded};
use crate::testing::{Package, json_body, method_word};
use crate::{Auth, Body, Fault, FaultExt, Host, Request, Response, fault};

/// Answers requests as they were answered when the call was recorded, in whatever order they come: the same request
/// gets its answers in their order, and the last of them again.
pub(super) struct Replay<'c> {
    cassette: &'c Cassette,
    package: &'c Package,
    exchanges: Vec<&'c Exchange>,
    /// A place of the call, and the answer that is given there instead.
    instead: Option<(usize, Response)>,
    used: RefCell<Vec<bool>>,
    /// Requests that were not recorded.
    pub(super) unrecorded: RefCell<Vec<String>>,
}

impl<'c> Replay<'c> {
    pub(super) fn of(cassette: &'c Cassette, package: &'c Package, recorded: &Recorded) -> Self {
        let exchanges: Vec<_> = recorded.exchanges.iter().map(|place| &cassette.exchanges[*place]).collect();
        let used = RefCell::new(vec![false; exchanges.len()]);
        Self { cassette, package, exchanges, instead: None, used, unrecorded: RefCell::default() }
    }

    /// The same with another answer at this place of the call.
    pub(super) fn with(mut self, place: usize, answer: Response) -> Self {
        self.instead = Some((place, answer));
        self
    }

    /// Takes the answer to the call of a plan that is judged.
    pub(super) fn judged(&self) -> Option<Response> {
        *self.used.borrow_mut().first_mut()? = true;
        Some(self.answer(0))
    }

    fn answer(&self, place: usize) -> Response {
        match &self.instead {
            Some((at, answer)) if *at == place => answer.clone(),
            _ => self.exchanges[place].answer.response(),
        }
    }

    fn binding(&self, of: &str, name: &str, id: &str) -> Option<Value> {
        let all = self.package.description().get(of)?.as_array()?;
        all.iter().find(|one| one[name] == id)?.get("binding").cloned()
    }
}

fn is_for(exchange: &Exchange, request: &Request) -> bool {
    let form = match &request.body {
        Body::Form(fields) => Some(fields),
        _ => None,
    };
    exchange.method == method_word(request.method)
        && exchange.path == request.path
        && exchange.body == json_body(request)
        && exchange.form.as_ref() == form
}

impl Host for Replay<'_> {
    fn send(&self, request: Request, auth: Auth) -> Result<Response, Fault> {
        let refused = |problem| fault::denied(problem).with_code("read-only");
        self.package.check_read(&request, &auth).map_err(refused)?;
        let mut used = self.used.borrow_mut();
        let mut fits = (0..self.exchanges.len()).filter(|at| is_for(self.exchanges[*at], &request));
        let last = fits.clone().next_back();
        if let Some(at) = fits.find(|at| !used[*at]).or(last) {
            used[at] = true;
            return Ok(self.answer(at));
        }
        let body = json_body(&request).map_or_else(String::new, |body| format!(" {body}"));
        let name = format!("{} {}{body}", method_word(request.method), request.path);
        let problem = fault::generic(format!("no answer was recorded to {name}"));
        self.unrecorded.borrow_mut().push(name);
        Err(problem.with_code("not-recorded"))
    }

    fn session_facts(&self, name: &str) -> Result<Vec<(String, String)>, Fault> {
        Ok(self.cassette.source.sessions.get(name).cloned().unwrap_or_default())
    }

    fn settings(&self) -> Value {
        match &self.cassette.source.settings {
            Value::Null => json!({}),
            settings => settings.clone(),
        }
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

    fn now_ms(&self) -> u64 {
        self.cassette.source.now_ms
    }
}
