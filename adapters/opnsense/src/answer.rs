//! What an answer of the firewall means: the status alone never tells. [`acted`](super::acted) has those to actions.

use heddle_sdk::crud::{self, Modelled, Purpose, Vendor, Written};
use heddle_sdk::fault::{self, Row, Table};
use heddle_sdk::{Auth, Effect, Fault, FaultExt, Host, Request, Response};
use serde_json::Value;

use crate::{acted, model};

/// The session of the manifest; it has no login, each request carries the key.
pub(crate) const SESSION: &str = "api";
const MESSAGE_CHARS: usize = 300;
const STARTING_RETRY_MS: u64 = 10_000;

/// The vendor's envelope.
#[derive(Debug, Clone, Copy)]
pub struct Opnsense;

impl Vendor for Opnsense {
    fn session(&self) -> &'static str {
        SESSION
    }

    fn content(&self, response: &Response) -> Result<Value, Fault> {
        let answer = opened(response)?;
        match answer.get("errorMessage").and_then(Value::as_str) {
            Some(text) => Err(refused(text, &answer, response.status)),
            None => Ok(answer),
        }
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
        if purpose == Purpose::Act {
            return acted::written(response);
        }
        let answer = opened(response).map_err(|fault| {
            // A rule refuses before anything is saved; what failed otherwise may have been halfway.
            let is_refusal = is_refusal(&fault) && purpose != Purpose::Activate;
            if !is_refusal && is_open(response.status) { fault.with_effect(Effect::Possible) } else { fault }
        })?;
        if let Some(text) = answer.get("errorMessage").and_then(Value::as_str) {
            let fault = refused(text, &answer, response.status);
            let is_refusal = is_refusal(&fault) && purpose != Purpose::Activate;
            return Err(fault.with_effect(if is_refusal { Effect::None } else { Effect::Possible }));
        }
        if let Some(fields) = answer.get("validations").filter(|fields| fields.is_object()) {
            return Err(invalid(fields));
        }
        let word = word_of(&answer);
        let is_done = match purpose {
            // What makes no model says the word of a reload.
            Purpose::Create | Purpose::Update => word == "saved" || word == "ok",
            // What is gone already is where the call leads to.
            Purpose::Delete => ["deleted", "not found", "done", "ok"].contains(&word.as_str()),
            Purpose::Activate | Purpose::Act | Purpose::Cancel => is_good(&word),
        };
        if is_done {
            return Ok(Written::Done);
        }
        // Only this word says that nothing was saved.
        let is_certain = word == "failed" && purpose != Purpose::Activate;
        let effect = if is_certain { Effect::None } else { Effect::Possible };
        Err(fault::generic(format!("the firewall answered '{word}' instead of a success"))
            .with_code("vendor:failed")
            .with_effect(effect))
    }
}

/// Statuses behind which a request may have been carried out, although the answer proves nothing.
pub(crate) fn is_open(status: u16) -> bool {
    status >= 500 || (200..300).contains(&status) || status == 408
}

/// Words with which reloads say that they worked; some controllers hand on what a script printed.
pub(crate) fn is_good(word: &str) -> bool {
    ["ok", "done", "control file syntax ok"].contains(&word) || word.starts_with("ok ")
}

/// The one word of an answer, trimmed and in lower case.
pub(crate) fn word_of(answer: &Value) -> String {
    let fields = ["result", "status", "response", "message"];
    let word = fields.iter().find_map(|field| answer.get(*field)?.as_str());
    word.unwrap_or_default().trim().to_lowercase().chars().take(MESSAGE_CHARS).collect()
}

/// What statuses mean where no rule of the firewall says more.
const STATUSES: Table = Table::new(&[
    Row::codes(
        &[200, 302],
        Fault::NotReady,
        "the firewall answered with a page instead of the API; it may be starting, or the path leads to \
         the web interface",
    )
    .with_retry_after_ms(STARTING_RETRY_MS),
    Row::codes(&[400], Fault::Invalid, "the firewall refuses the request: {}"),
    Row::codes(&[401], Fault::Authentication, "the firewall refuses the API key or its secret"),
    Row::codes(&[403], Fault::Denied, "the user of the API key lacks the privilege for this"),
    Row::codes(
        &[404],
        Fault::Unsupported,
        "this version of the firewall does not have this, or a plugin is missing",
    ),
]);

/// The JSON of an answer that is no failure by its status.
pub(crate) fn opened(response: &Response) -> Result<Value, Fault> {
    let answer: Option<Value> = serde_json::from_slice(&response.body).ok();
    let said = |field: &str| answer.as_ref().and_then(|answer| answer.get(field)?.as_str());
    match (response.status, &answer, said("errorMessage")) {
        (200, Some(_), _) => Ok(answer.unwrap_or_default()),
        (500, Some(answer), Some(text)) => Err(refused(text, answer, 500)),
        _ => Err(STATUSES.of_status(response, said("message").unwrap_or_default())),
    }
}

/// Whether the firewall itself decided against the request.
fn is_refusal(fault: &Fault) -> bool {
    matches!(fault, Fault::Invalid(_) | Fault::Denied(_))
}

/// A rule of the firewall refuses the request: an object is in use, locked, or the user may only read.
pub(crate) fn refused(text: &str, answer: &Value, status: u16) -> Fault {
    let text = plain(text);
    let title = answer.get("errorTitle").and_then(Value::as_str).filter(|title| !title.is_empty()).map(plain);
    // Only a rule has a title or a level. What failed otherwise says so in the language of the box.
    let is_rule = ["errorTitle", "errorLevel"].iter().any(|name| answer.get(*name).is_some());
    let said = match title {
        Some(title) if !text.contains(&title) => format!("{title}: {text}"),
        _ => text.clone(),
    };
    let fault = if text.to_lowercase().contains("denied for write") {
        fault::denied("the user of the API key may only read")
    } else if is_rule {
        fault::invalid(format!("the firewall refuses: {said}"))
    } else {
        fault::generic(format!("the firewall failed at the request; its log says why: {said}"))
    };
    fault.with_code("vendor:refused").with_upstream_status(status)
}

/// Messages are escaped for a page since 26.7.2.
fn plain(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#039;", "'");
    fault::said(&text.replace("&amp;", "&"))
}

/// Fields that did not pass, under `root.field`, each with one message or several.
pub(crate) fn invalid(fields: &Value) -> Fault {
    let mut fault = fault::invalid("the firewall does not accept the values").with_fields(fields);
    for field in &mut fault.info_mut().fields {
        if let Some((_, own)) = field.pointer.split_once('.') {
            field.pointer = format!("/{own}");
        }
        field.message = plain(&field.message);
    }
    fault
}

/// One read.
pub(crate) fn read(host: &dyn Host, path: &str) -> Result<Value, Fault> {
    let response = host.send(Request::get(path), Auth::session(SESSION))?;
    Opnsense.content(&response)
}
