//! What an answer of the router means: its status, and the reason in words.

use heddle_sdk::crud::{self, Encoding, Modelled, Purpose, Vendor, Written};
use heddle_sdk::fault::{self, Row, Table};
use heddle_sdk::{Auth, Effect, Fault, FaultExt, Host, Request, Response};
use serde_json::{Value, json};

use crate::model;

/// The session of the manifest; it has no login, each request carries the user and the password.
pub(crate) const SESSION: &str = "rest";
pub(crate) const BASE: &str = "/rest/";
const STARTING_RETRY_MS: u64 = 15_000;

/// The vendor's envelope.
#[derive(Debug, Clone, Copy)]
pub struct RouterOs;

impl Vendor for RouterOs {
    fn session(&self) -> &'static str {
        SESSION
    }

    fn encoding(&self) -> Encoding {
        Encoding::FlatJson
    }

    fn content(&self, response: &Response) -> Result<Value, Fault> {
        opened(response)
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

    fn written(&self, purpose: Purpose, response: &Response) -> Result<Written, Fault> {
        let answer = match opened(response) {
            // What is gone already is where a delete leads to.
            Err(Fault::NotFound(_)) if purpose == Purpose::Delete => return Ok(Written::Done),
            other => other?,
        };
        let is_proven = match purpose {
            Purpose::Create => answer.get(".id").is_some_and(|id| id.as_str().is_some_and(is_id)),
            // These say nothing beside their status.
            Purpose::Update | Purpose::Delete => answer.is_null() || answer == json!([]),
            Purpose::Act | Purpose::Activate | Purpose::Cancel => !has_failed(&answer),
        };
        if is_proven {
            return Ok(Written::Done);
        }
        let said = last_status(&answer).unwrap_or("no proof that it was done");
        Err(fault::generic(format!("the router answered: {}", fault::said(said)))
            .with_code("vendor:failed")
            .with_effect(Effect::Possible))
    }
}

fn is_id(text: &str) -> bool {
    text.strip_prefix('*').is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|c| c.is_ascii_hexdigit()))
}

/// Commands that take time tell how they go in rows, of which the last one counts.
fn last_status(answer: &Value) -> Option<&str> {
    let last = answer.as_array().and_then(|rows| rows.last()).unwrap_or(answer);
    last.get("status").and_then(Value::as_str)
}

fn has_failed(answer: &Value) -> bool {
    let status = last_status(answer).unwrap_or_default().to_lowercase();
    ["fail", "error", "could not", "can't"].iter().any(|word| status.contains(word))
}

/// What the router says where it did not begin: the console checks names and values before it writes.
const REFUSALS: Table = Table::new(&[
    Row::codes(
        &[401],
        Fault::Authentication,
        "the router refuses the user: the password is wrong, the group lacks the policy 'rest-api', or the \
         user may not log in from this address",
    ),
    Row::codes(
        &[403],
        Fault::Denied,
        "the router has REST switched off for this protocol (ip/service/webserver)",
    ),
    Row::words(&["not allowed (9)"], Fault::Denied, "the group of the user lacks the policy 'api'"),
    Row::words(
        &["not enough permissions"],
        Fault::Denied,
        "the group of the user lacks the policy that this needs",
    ),
    Row::codes(&[404], Fault::NotFound, "the router does not have this row"),
    Row::words(&["no such item"], Fault::NotFound, "the router does not have this row"),
    // The request may have been in the queue of the user, or was carried out in part.
    Row::words(
        &["session closed"],
        Fault::Timeout,
        "the router ended the request after 60 seconds; it may go on, and other requests of this user wait",
    )
    .with_effect(Effect::Possible),
    Row::words(
        &["no such command", "no such directory"],
        Fault::Unsupported,
        "this router does not have this: the release is another one, or a package or hardware is missing",
    ),
    Row::words(
        &["already have", "already exists", "entry already"],
        Fault::Conflict,
        "there is such an entry already: {}",
    ),
    Row::words(
        &["unknown parameter"],
        Fault::Invalid,
        "this release of the router does not know a field: {}",
    ),
    Row::words(
        &["does not match any value", "invalid value for argument", "out of range", "missing ="],
        Fault::Invalid,
        "the router does not accept a value: {}",
    ),
    Row::codes(&[415], Fault::Invalid, "the router does not take this type of content"),
    // After these words something may have been changed all the same.
    Row::codes(&[400], Fault::Invalid, "the router refuses: {}").with_effect(Effect::Possible),
    Row::codes(
        &[200, 302, 502, 503, 504],
        Fault::NotReady,
        "the router answered without JSON; it may be starting",
    )
    .with_retry_after_ms(STARTING_RETRY_MS)
    .with_effect(Effect::Possible),
    Row::rest(Fault::Generic, "the router failed with status {code}: {}").with_effect(Effect::Possible),
]);

/// Words before and behind the name of a field that the router does not accept.
const OF_FIELDS: [(&str, &str); 5] = [
    ("unknown parameter ", ""),
    ("does not match any value of ", ""),
    ("invalid value for argument ", ""),
    ("value of ", " out of range"),
    ("missing =", "="),
];

/// The JSON of an answer that is a success by its status; null where it has no content.
fn opened(response: &Response) -> Result<Value, Fault> {
    let answer = parsed(&response.body);
    let is_success = (200..300).contains(&response.status);
    match answer {
        Some(answer) if is_success => Ok(answer),
        None if response.status == 204 && response.body.is_empty() => Ok(Value::Null),
        answer => Err(refused(response, answer.as_ref())),
    }
}

fn refused(response: &Response, answer: Option<&Value>) -> Fault {
    let said = |name: &str| answer.and_then(|answer| answer.get(name)?.as_str());
    let detail = said("detail").or_else(|| said("message")).unwrap_or_default();
    let fault = REFUSALS.of_status(response, detail);
    match OF_FIELDS.iter().find_map(|(before, behind)| between(detail, before, behind)) {
        Some(field) => fault.with_field(format!("/{}", field.trim_start_matches('!')), fault::said(detail)),
        None => fault,
    }
}

fn between<'t>(text: &'t str, before: &str, behind: &str) -> Option<&'t str> {
    let rest = text.split_once(before)?.1;
    let end = if behind.is_empty() { rest.find(' ').unwrap_or(rest.len()) } else { rest.find(behind)? };
    Some(rest[..end].trim()).filter(|name| !name.is_empty())
}

/// JSON, also where texts hold control characters as they are, which comments and scripts do.
fn parsed(body: &[u8]) -> Option<Value> {
    serde_json::from_slice(body).ok().or_else(|| {
        let clean: Vec<u8> = body.iter().map(|byte| if *byte < b' ' { b' ' } else { *byte }).collect();
        serde_json::from_slice(&clean).ok()
    })
}

/// One read of a menu.
pub(crate) fn read(host: &dyn Host, menu: &str) -> Result<Value, Fault> {
    let response = host.send(Request::get(format!("{BASE}{menu}")), Auth::session(SESSION))?;
    opened(&response)
}

/// The same, where a part that this router does not have, or that the user may not read, is nothing.
pub(crate) fn read_if_there(host: &dyn Host, menu: &str) -> Result<Value, Fault> {
    match read(host, menu) {
        Err(Fault::Unsupported(_) | Fault::Denied(_) | Fault::NotFound(_)) => Ok(Value::Null),
        other => other,
    }
}

/// What a command tells.
pub(crate) fn ask(host: &dyn Host, command: &str, body: &Value) -> Result<Value, Fault> {
    let request = Request::new(heddle_sdk::Method::Post, format!("{BASE}{command}")).with_json(body);
    let response = host.send(request, Auth::session(SESSION))?;
    opened(&response)
}
