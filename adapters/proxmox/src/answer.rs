//! What an answer means. There is no status for an object that is absent, taken or locked: the reason tells, which stands
//! in the status line and, since 8.4, in the body.

use heddle_sdk::crud::{self, Encoding, Modelled, Place, Purpose, Vendor, Written};
use heddle_sdk::fault::{self, Row, Table, Words};
use heddle_sdk::{Auth, Effect, Fault, FaultExt, Host, Request, Response, json as sdk_json};
use serde_json::Value;

use crate::{model, task};

/// Below which all paths stand.
pub(crate) const BASE: &str = "/api2/json";
const TOKEN: &str = "token";
const TICKET: &str = "ticket";
const BUSY_RETRY_MS: u64 = 5_000;
const STARTING_RETRY_MS: u64 = 10_000;

/// The vendor's envelope, in one of the two sessions of the manifest.
#[derive(Debug, Clone, Copy)]
pub struct Proxmox {
    session: &'static str,
}

impl Proxmox {
    /// By API token, unless the settings of the controller say `"login": "ticket"`.
    pub fn of(host: &dyn Host) -> Self {
        let is_ticket = host.settings().get("login").and_then(Value::as_str) == Some(TICKET);
        Self { session: if is_ticket { TICKET } else { TOKEN } }
    }
}

impl Vendor for Proxmox {
    fn session(&self) -> &'static str {
        self.session
    }

    fn places_of_page(&self) -> usize {
        // The manifest allows four times as many requests.
        128
    }

    fn encoding(&self) -> Encoding {
        Encoding::Form
    }

    fn content(&self, response: &Response) -> Result<Value, Fault> {
        opened(response)
    }

    fn written(&self, purpose: Purpose, response: &Response) -> Result<Written, Fault> {
        let answer = match opened(response) {
            // What is gone already is where a delete leads to.
            Err(Fault::NotFound(_)) if purpose == Purpose::Delete => return Ok(Written::Done),
            Err(fault) if is_open(&fault, response.status) => {
                return Err(fault.with_effect(Effect::Possible));
            }
            other => other?,
        };
        Ok(match answer.as_str().filter(|text| text.starts_with(task::PREFIX)) {
            Some(upid) => Written::Task(task::started(upid)),
            None => Written::Done,
        })
    }

    fn needs(&self, host: &dyn Host, kind: &str, place: &Place, id: &str) -> Result<Vec<String>, Fault> {
        let (node, folder) = match (place.get("node"), kind) {
            (Some(node), "vm.config") => (node, "qemu"),
            (Some(node), "container.config") => (node, "lxc"),
            _ => return Ok(Vec::new()),
        };
        let pending = read(host, &format!("/nodes/{node}/{folder}/{id}/pending"))?;
        let waits = |row: &Value| row.get("pending").is_some() || row.get("delete").is_some();
        let is_waiting = pending.as_array().is_some_and(|rows| rows.iter().any(waits));
        Ok(if is_waiting { vec!["reboot".to_owned()] } else { Vec::new() })
    }

    fn modelled(&self, kind: &str, row: &Value, object: &mut Modelled) -> bool {
        model::complete(kind, row, object)
    }

    fn expressed(
        &self,
        host: &dyn Host,
        asked: &crud::Asked<'_>,
        changes: &mut Vec<crud::Expressed>,
    ) -> Result<(), Fault> {
        model::expressed(self, host, asked, changes)
    }
}

/// Whether a refused write may have changed something: no rule of the vendor decided against it.
fn is_open(fault: &Fault, status: u16) -> bool {
    let is_refusal = !matches!(fault, Fault::Generic(_) | Fault::Timeout(_) | Fault::Connection(_));
    // A proxy in front, or the node's own, answers so although the request went through.
    let is_lost = status < 300 || status == 408 || (502..=504).contains(&status) || status >= 595;
    is_lost || (!is_refusal && status >= 500)
}

/// The content of a good answer, in the form in which payloads have it.
fn opened(response: &Response) -> Result<Value, Fault> {
    let mut body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    match body.get_mut("data") {
        Some(data) if response.status == 200 => Ok(normal(data.take())),
        _ if response.status == 200 => Err(REFUSALS.of_status(response, "")),
        _ => Err(refused(response, &body)),
    }
}

/// Answers in the form in which they are written, and lists of snapshots without the entry that is none.
fn normal(mut content: Value) -> Value {
    match &mut content {
        Value::Array(rows) => {
            rows.retain(|row| !is_present_state(row));
            rows.iter_mut().for_each(as_texts);
            rows.iter_mut().for_each(without_secret);
        }
        one => as_texts(one),
    }
    content
}

/// The entry of a list of snapshots that stands for the running state.
fn is_present_state(row: &Value) -> bool {
    let is_named = sdk_json::text(row, "/name") == Some("current");
    is_named && row.get("running").is_some() && row.get("snaptime").is_none()
}

/// Tags as they are written.
fn as_texts(object: &mut Value) {
    if let Some(tags) = object.get_mut("registered-tags")
        && let Value::Array(items) = tags
    {
        let names: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
        *tags = Value::from(names.join(";"));
    }
}

/// Lists of settings name each in a field of the row, where the host does not look for secrets.
fn without_secret(row: &mut Value) {
    let holds_one = ["env", "cipassword"].map(Some).contains(&sdk_json::text(row, "/key"));
    for name in ["value", "pending", "old", "new"] {
        if holds_one && row.get(name).is_some() {
            row[name] = Value::from("(secret)");
        }
    }
}

/// The fault of an answer that is no success.
fn refused(response: &Response, body: &Value) -> Fault {
    let text = sdk_json::text(body, "/message").or(response.reason.as_deref()).unwrap_or_default();
    let has_fields = body["errors"].as_object().is_some_and(|fields| !fields.is_empty());
    let fault = match response.status {
        400 if has_fields => invalid(&body["errors"]),
        // A page of a proxy says nothing of objects.
        404 if !body.is_object() => REFUSALS.of_words(text).fault(text),
        // No status of the vendor: a proxy in front answers so.
        429 | 502..=504 => fault::of_status(response),
        _ => REFUSALS.of_status(response, text),
    };
    fault.or_code(format!("vendor:{}", response.status)).with_upstream_status(response.status)
}

/// Parameters that did not pass, each with its message. Some of them tell that an object is absent or taken.
fn invalid(errors: &Value) -> Fault {
    let fault = fault::invalid("the node does not accept the values").with_fields(errors);
    let each = fault.info().fields.iter().map(|field| format!("{}: {}", &field.pointer[1..], field.message));
    let all = each.collect::<Vec<_>>().join("; ");
    match REFUSALS.of_words(&all) {
        row if [ABSENT, TAKEN].contains(&row.words) => row.fault(&all).with_fields(errors),
        _ => fault,
    }
}

/// A command that failed may have come halfway, whatever else its reason says.
const HALFWAY: Words = &["exit code", "command '", "no such file", "no such cluster node"];
pub(crate) const TAKEN: Words =
    &["already exist", "already defined", "is already used", "already a pool member"];
const MOVED: Words = &["detected modified configuration", "file change by other user"];
pub(crate) const LOCKED: Words =
    &["is locked", "can't lock file", "already locked", "unable to acquire lock"];
const MISSING: Words = &["not installed", "not fully configured", "migrated to rules"];
const ABSENT: Words = &["does not exist", "no such", "not existing", "unable to find", "no rule at position"];
const WRONG_STATE: Words = &[
    "not running",
    "is running",
    "already running",
    "not empty",
    "is used by",
    "protection mode",
    "protected volume",
    "a template",
    "are existing in",
    "not a pool member",
    "pending changes",
];
pub(crate) const TIMEOUT: Words = &["got timeout", "timed out"];

/// What refusals mean: some by their status, all others by the words of their reason.
pub(crate) const REFUSALS: Table = Table::new(&[
    Row::codes(
        &[200],
        Fault::NotReady,
        "the node answered with a page instead of the API; it may be starting",
    )
    .with_retry_after_ms(STARTING_RETRY_MS),
    Row::codes(&[400], Fault::Invalid, "the node does not accept the values: {}"),
    Row::codes(&[401], Fault::Authentication, "the node refuses the login: {}"),
    Row::codes(&[403], Fault::Denied, "the user or token may not do this: {}"),
    Row::codes(&[404], Fault::NotFound, "there is no such object: {}"),
    Row::codes(&[501], Fault::Invalid, "the request is larger than the node takes: {}")
        .with_words(&["data too large"]),
    Row::codes(&[501], Fault::Unsupported, "this version does not have it: {}"),
    Row::codes(&[506], Fault::Unsupported, "the node does not take this request: {}"),
    Row::codes(
        &[595, 596, 597, 598, 599],
        Fault::NotReady,
        "the node that answers does not reach the node that the request is for",
    )
    .with_retry_after_ms(STARTING_RETRY_MS),
    Row::words(HALFWAY, Fault::Generic, "the node refuses: {}"),
    Row::words(TAKEN, Fault::Conflict, "it exists already: {}"),
    Row::words(MOVED, Fault::StateMoved, "others changed it meanwhile; plan again: {}")
        .with_code("state-moved"),
    Row::words(LOCKED, Fault::Busy, "another operation holds it: {}").with_retry_after_ms(BUSY_RETRY_MS),
    Row::words(&["no quorum"], Fault::NotReady, "the cluster takes no writes: {}")
        .with_retry_after_ms(STARTING_RETRY_MS),
    Row::words(MISSING, Fault::Unsupported, "it is not there: {}"),
    Row::words(ABSENT, Fault::NotFound, "there is no such object: {}"),
    Row::words(WRONG_STATE, Fault::Conflict, "its state does not allow this: {}"),
    Row::words(TIMEOUT, Fault::Timeout, "the node waited in vain: {}"),
    Row::rest(Fault::Generic, "the node refuses: {}"),
]);

/// A number, which some answers write as a text.
pub(crate) fn number(value: &Value, pointer: &str) -> Option<u64> {
    sdk_json::number(value, pointer).or_else(|| sdk_json::text(value, pointer)?.parse().ok())
}

/// One read, below the API's path.
pub(crate) fn read(host: &dyn Host, path: &str) -> Result<Value, Fault> {
    let vendor = Proxmox::of(host);
    let response = host.send(Request::get(format!("{BASE}{path}")), Auth::session(vendor.session))?;
    vendor.content(&response)
}
