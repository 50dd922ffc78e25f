//! What an answer means. There is no status for an object that is absent, taken or locked: the reason tells, which stands
//! in the status line and, since 8.4, in the body.

use heddle_sdk::crud::{self, Encoding, Modelled, Place, Purpose, Vendor, Written};
use heddle_sdk::{Auth, Effect, Fault, FaultExt, Host, Request, Response, fault, json as sdk_json};
use serde_json::{Map, Value};

use crate::{model, task};

/// Below which all paths stand.
pub(crate) const BASE: &str = "/api2/json";
const TOKEN: &str = "token";
const TICKET: &str = "ticket";
const MESSAGE_CHARS: usize = 400;
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
        let folder = match kind {
            "vm.config" => "qemu",
            "container.config" => "lxc",
            _ => return Ok(Vec::new()),
        };
        let Some(node) = place.get("node") else { return Ok(Vec::new()) };
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
    if response.status != 200 {
        return Err(refused(response));
    }
    let answer: Option<Map<String, Value>> = serde_json::from_slice(&response.body).ok();
    let data = answer.and_then(|mut answer| answer.remove("data"));
    data.map(normal).ok_or_else(|| {
        fault::not_ready("the node answered with a page instead of the API; it may be starting")
            .with_retry_after_ms(STARTING_RETRY_MS)
            .with_upstream_status(200)
    })
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

/// The reason of a refusal: that of the body, else that of the status line.
fn reason(response: &Response, body: &Value) -> String {
    let said = sdk_json::text(body, "/message").or(response.reason.as_deref()).unwrap_or_default();
    let one_line: String = said.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    one_line.chars().take(MESSAGE_CHARS).collect()
}

/// The fault of an answer that is no success.
fn refused(response: &Response) -> Fault {
    let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let (status, text) = (response.status, reason(response, &body));
    let errors = body.get("errors").and_then(Value::as_object);
    let fault = match status {
        400 => invalid(&text, errors),
        401 => fault::authentication(format!("the node refuses the login: {}", said(&text))),
        403 => fault::denied(format!("the user or token may not do this: {}", said(&text))),
        // A page of a proxy says nothing of objects.
        404 if body.is_object() => fault::not_found(format!("there is no such object: {}", said(&text))),
        501 if text.contains("data too large") => {
            fault::invalid(format!("the request is larger than the node takes: {}", said(&text)))
        }
        501 => fault::unsupported(format!("this version does not have it: {}", said(&text))),
        506 => fault::unsupported(format!("the node does not take this request: {}", said(&text))),
        595..=599 => {
            fault::not_ready("the node that answers does not reach the node that the request is for")
                .with_retry_after_ms(STARTING_RETRY_MS)
        }
        // No status of the vendor: a proxy in front answers so.
        429 | 502..=504 => fault::of_status(response),
        _ => by_text(&text),
    };
    let fault = if fault.info().code.is_none() { fault.with_code(format!("vendor:{status}")) } else { fault };
    fault.with_upstream_status(status)
}

fn said(text: &str) -> &str {
    if text.is_empty() { "no reason given" } else { text }
}

/// Parameters that did not pass, each with its message. Some of them tell that an object is absent or taken.
fn invalid(text: &str, errors: Option<&Map<String, Value>>) -> Fault {
    let texts: Vec<(&String, String)> = errors
        .into_iter()
        .flatten()
        .map(|(name, message)| (name, message.as_str().unwrap_or("is not accepted").trim().to_owned()))
        .collect();
    let all = texts.iter().map(|(name, message)| format!("{name}: {message}")).collect::<Vec<_>>().join("; ");
    let fault = match class(&all) {
        Class::Absent => fault::not_found(format!("there is no such object: {all}")),
        Class::Taken => fault::conflict(format!("it exists already: {all}")),
        _ if all.is_empty() => fault::invalid(format!("the node does not accept the values: {}", said(text))),
        _ => fault::invalid("the node does not accept the values"),
    };
    texts.into_iter().fold(fault, |fault, (name, message)| fault.with_field(format!("/{name}"), message))
}

/// What a reason says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Absent,
    Taken,
    Locked,
    /// Others changed it meanwhile.
    Moved,
    NoQuorum,
    Missing,
    WrongState,
    Timeout,
    Other,
}

/// The class of a reason, by what the vendor writes.
pub(crate) fn class(text: &str) -> Class {
    let text = text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match () {
        // A command that failed may have come halfway, whatever it says.
        () if has(&["exit code", "command '", "no such file", "no such cluster node"]) => Class::Other,
        () if has(&["already exist", "already defined", "is already used", "already a pool member"]) => {
            Class::Taken
        }
        () if has(&["detected modified configuration", "file change by other user"]) => Class::Moved,
        () if has(&["is locked", "can't lock file", "already locked", "unable to acquire lock"]) => {
            Class::Locked
        }
        () if has(&["no quorum"]) => Class::NoQuorum,
        () if has(&[
            "binary not installed",
            "not fully configured",
            "not installed",
            "migrated to rules",
        ]) =>
        {
            Class::Missing
        }
        () if has(&[
            "does not exist",
            "no such",
            "not existing",
            "unable to find",
            "no rule at position",
        ]) =>
        {
            Class::Absent
        }
        () if has(&[
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
        ]) =>
        {
            Class::WrongState
        }
        () if has(&["got timeout", "timed out"]) => Class::Timeout,
        () => Class::Other,
    }
}

/// The fault of a status that says nothing.
fn by_text(text: &str) -> Fault {
    let text = said(text);
    match class(text) {
        Class::Absent => fault::not_found(format!("there is no such object: {text}")),
        Class::Taken => fault::conflict(format!("it exists already: {text}")),
        Class::Locked => {
            fault::busy(format!("another operation holds it: {text}")).with_retry_after_ms(BUSY_RETRY_MS)
        }
        Class::Moved => fault::state_moved(format!("others changed it meanwhile; plan again: {text}"))
            .with_code("state-moved"),
        Class::NoQuorum => fault::not_ready(format!("the cluster takes no writes: {text}"))
            .with_retry_after_ms(STARTING_RETRY_MS),
        Class::Missing => fault::unsupported(format!("it is not there: {text}")),
        Class::WrongState => fault::conflict(format!("its state does not allow this: {text}")),
        Class::Timeout => fault::timeout(format!("the node waited in vain: {text}")),
        Class::Other => fault::generic(format!("the node refuses: {text}")),
    }
}

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
