//! What an answer of the REST API package means: one envelope for everything, whose codes and ids tell.

use heddle_sdk::crud::{self, Modelled, Purpose, Vendor, Written};
use heddle_sdk::fault::{Row, Table};
use heddle_sdk::{Auth, Effect, Fault, FaultExt, Host, Request, Response};
use serde_json::{Map, Value};

use crate::model;

/// Below which all paths stand.
pub(crate) const BASE: &str = "/api/v2";
const BASIC: &str = "basic";
/// Ways to log in that a controller can be set to; each is a session of the manifest.
const LOGINS: [&str; 3] = [BASIC, "api-key", "jwt"];
const STARTING_RETRY_MS: u64 = 10_000;
const LOCKED_RETRY_MS: u64 = 5_000;
const QUEUE_RETRY_MS: u64 = 300_000;

/// The vendor's envelope, in one of the sessions of the manifest.
#[derive(Debug, Clone, Copy)]
pub struct Pfsense {
    session: &'static str,
}

impl Pfsense {
    /// By name and password in each request, unless the settings of the controller say another `login`.
    pub fn of(host: &dyn Host) -> Self {
        let settings = host.settings();
        let chosen = settings.get("login").and_then(Value::as_str);
        Self { session: LOGINS.into_iter().find(|login| Some(*login) == chosen).unwrap_or(BASIC) }
    }
}

impl Vendor for Pfsense {
    fn session(&self) -> &'static str {
        self.session
    }

    fn content(&self, response: &Response) -> Result<Value, Fault> {
        opened(response)
    }

    fn written(&self, purpose: Purpose, response: &Response) -> Result<Written, Fault> {
        let answer = match opened(response) {
            // What is gone already is where a delete leads to.
            Err(Fault::NotFound(_)) if purpose == Purpose::Delete => return Ok(Written::Done),
            Err(fault) if is_open(response.status) => return Err(fault.with_effect(Effect::Possible)),
            other => other?,
        };
        Ok(match answer.get("applied") {
            Some(Value::Bool(false)) if matches!(purpose, Purpose::Activate | Purpose::Act) => {
                Written::Warned(vec![
                    "the firewall tells that something still waits to be applied".to_owned(),
                ])
            }
            _ => Written::Done,
        })
    }

    fn modelled(&self, kind: &str, row: &Value, object: &mut Modelled) -> bool {
        model::modelled(kind, row, object)
    }

    fn expressed(
        &self,
        host: &dyn Host,
        asked: &crud::Asked<'_>,
        changes: &mut Vec<crud::Expressed>,
    ) -> Result<(), Fault> {
        model::expressed(host, asked, changes)
    }
}

/// Statuses behind which a write may have been carried out: a refusal comes before anything is stored.
fn is_open(status: u16) -> bool {
    !(400..500).contains(&status) || status == 408
}

/// What codes mean; their words begin with the id of the refusal.
const REFUSALS: Table = Table::new(&[
    Row::codes(
        &[200, 301, 302],
        Fault::NotReady,
        "the firewall answered with a page instead of its API; it may be starting, or the REST API package is missing",
    )
    .with_retry_after_ms(STARTING_RETRY_MS),
    Row::codes(&[400], Fault::Conflict, "the firewall has such an object already: {}").with_words(&["must_be_unique"]),
    Row::codes(&[400], Fault::Conflict, "the object is in use: {}").with_words(&["in_use", "while_assigned"]),
    Row::codes(&[400, 406, 415, 422], Fault::Invalid, "the firewall does not accept it: {}"),
    Row::codes(
        &[401],
        Fault::Authentication,
        "the firewall refuses the login; or this way to log in is switched off in the settings of its REST API",
    ),
    Row::codes(&[403], Fault::Invalid, "the firewall refuses: {}").with_words(&[
        "cannot_delete_protected",
        "minimum_reached",
        "cannot_be_deleted",
        "in_use",
    ]),
    Row::codes(&[403], Fault::Denied, "the user lacks the privilege for this: {}"),
    Row::codes(&[404, 424], Fault::Unsupported, "a package is missing on the firewall: {}")
        .with_words(&["package"]),
    Row::codes(&[404], Fault::NotFound, "the firewall does not have it: {}").with_words(&["not_found", "not_exist"]),
    Row::codes(&[404, 405], Fault::Unsupported, "this release of the REST API package does not have this"),
    Row::codes(&[409], Fault::Conflict, "the object is in use: {}"),
    Row::codes(&[500], Fault::Generic, "the firewall failed at the request: {}").with_effect(Effect::Possible),
    Row::codes(&[503], Fault::Unsupported, "the REST API of the firewall is switched off")
        .with_words(&["not_enabled"]),
    Row::codes(&[503], Fault::Busy, "too many jobs wait on the firewall: {}")
        .with_words(&["too_many_queued"])
        .with_retry_after_ms(QUEUE_RETRY_MS),
    Row::codes(&[503], Fault::Busy, "the firewall is busy with another write: {}")
        .with_words(&["locked"])
        .with_retry_after_ms(LOCKED_RETRY_MS),
    Row::codes(&[503], Fault::NotReady, "the firewall cannot answer now: {}").with_retry_after_ms(STARTING_RETRY_MS),
]);

/// The content of a good answer, or the fault that it tells.
fn opened(response: &Response) -> Result<Value, Fault> {
    let mut answer: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let is_good = response.status == 200
        && answer.get("code") == Some(&Value::from(200))
        && answer.get("status").is_some_and(|status| status == "ok");
    match answer.get_mut("data") {
        Some(data) if is_good => Ok(without_places(data.take())),
        _ => Err(refused(response, &answer)),
    }
}

fn refused(response: &Response, answer: &Value) -> Fault {
    let text = |name: &str| answer.get(name).and_then(Value::as_str).unwrap_or_default();
    let (id, message) = (text("response_id"), text("message"));
    let words = [id, message].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ");
    // A trace of the program stands behind the first line.
    let fault = REFUSALS.of_status(response, words.lines().next().unwrap_or_default());
    let fault = if id.is_empty() { fault } else { fault.with_code(format!("vendor:{id}")) };
    match field_of(message).filter(|_| matches!(fault, Fault::Invalid(_) | Fault::Conflict(_))) {
        Some(field) => fault.with_field(format!("/{field}"), message.to_owned()),
        None => fault,
    }
}

/// The field that a message is about: ``Field `type` is required.``
fn field_of(message: &str) -> Option<&str> {
    let (field, _) = message.strip_prefix("Field `")?.split_once('`')?;
    Some(field).filter(|field| !field.is_empty())
}

/// The same without the places of the objects that stand in lists of others: they move, and nothing is written by them.
fn without_places(mut content: Value) -> Value {
    match &mut content {
        Value::Array(rows) => rows.iter_mut().filter_map(Value::as_object_mut).for_each(below),
        Value::Object(one) => below(one),
        _ => {}
    }
    content
}

fn below(object: &mut Map<String, Value>) {
    for list in object.values_mut().filter_map(Value::as_array_mut) {
        for child in list.iter_mut().filter_map(Value::as_object_mut) {
            child.remove("id");
            child.remove("parent_id");
        }
    }
}

/// One read; the path is below that of the API.
pub(crate) fn read(host: &dyn Host, path: &str) -> Result<Value, Fault> {
    let vendor = Pfsense::of(host);
    let response = host.send(Request::get(format!("{BASE}{path}")), Auth::session(vendor.session))?;
    vendor.content(&response)
}

/// The rows of a list.
pub(crate) fn rows(host: &dyn Host, path: &str) -> Result<Vec<Value>, Fault> {
    match read(host, path)? {
        Value::Array(rows) => Ok(rows),
        _ => Err(heddle_sdk::fault::generic("the firewall answered no list")),
    }
}
